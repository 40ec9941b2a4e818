package scheduler

import (
	"context"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/panics"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/timing"
)

// Planning constants.
const (
	// LookAhead is how far ahead of their fire time executions are written.
	// It bounds how long a pause may have to take rows back, and has to exceed
	// PollEvery by the time that a claim may take.
	LookAhead = 3 * time.Second
	// PollEvery is the pace of claiming.
	PollEvery = 500 * time.Millisecond
	// claimLimit is the knee of the measured curve (DEPENDENCIES section 2).
	claimLimit = 500
	// firesPerClaim bounds the executions of one trigger in one claim; a
	// trigger that needs more stays due and is claimed again.
	firesPerClaim = 32
)

// Planner claims due triggers and plans executions.
type Planner struct {
	// fixed after construction
	store   store.Triggers
	held    func() []domain.PartitionTerm
	refused func()
	latest  func() time.Time
	newID   func() int64
	plan    PlanFunc
	out     func([]domain.Execution)
	log     *slog.Logger
	observe func(claimed, planned int, took time.Duration)
	nudge   chan struct{}
	waiting func() map[domain.TenantID]int
	press   *pressure
	// done is when all that was due was planned, in Unix nanoseconds.
	done atomic.Int64
}

// PlanFunc says which fires of a trigger are to be written now (timing.Cache.Plan).
type PlanFunc func(job domain.JobID, revision int64, spec *domain.JobSpec, next, now, horizon time.Time, max int) timing.Planned

// PlannerOptions configures a Planner.
type PlannerOptions struct {
	Store store.Triggers
	// Held returns the partitions that this node may plan now (lease.Keeper).
	Held func() []domain.PartitionTerm
	// Refused is told of a claim whose terms were not valid any more; may be nil.
	Refused func()
	// Latest is the latest time that is trusted of the database's clock; nil: any.
	Latest func() time.Time
	NewID  func() int64
	Plan   PlanFunc
	// Out takes planned executions that are to run.
	Out    func([]domain.Execution)
	Logger *slog.Logger
	// Waiting counts the runs in this node's memory that wait for their time or
	// for their offer; nil: planning is never held back.
	Waiting func() map[domain.TenantID]int
	// MaxWaiting and MaxWaitingAll bound them; 0 = the constants of that name.
	MaxWaiting, MaxWaitingAll int
	// Observe is called after each claim that found something; may be nil.
	Observe func(claimed, planned int, took time.Duration)
}

// NewPlanner returns a Planner; it starts nothing.
func NewPlanner(o PlannerOptions) *Planner {
	if o.Observe == nil {
		o.Observe = func(int, int, time.Duration) {}
	}
	if o.Refused == nil {
		o.Refused = func() {}
	}
	if o.Latest == nil {
		o.Latest = func() time.Time { return time.Time{} }
	}
	if o.Waiting == nil {
		o.Waiting = func() map[domain.TenantID]int { return nil }
	}
	p := &Planner{
		waiting: o.Waiting, press: newPressure(o.MaxWaiting, o.MaxWaitingAll, o.Logger.With("component", "scheduler")),
		store: o.Store, held: o.Held, refused: o.Refused, latest: o.Latest, newID: o.NewID, plan: o.Plan, out: o.Out,
		log: o.Logger.With("component", "scheduler"), observe: o.Observe, nudge: make(chan struct{}, 1),
	}
	p.done.Store(time.Now().UnixNano())
	return p
}

// Nudge makes the planner look at once, because a trigger has changed.
func (p *Planner) Nudge() {
	select {
	case p.nudge <- struct{}{}:
	default:
	}
}

// Run claims until ctx ends.
func (p *Planner) Run(ctx context.Context) {
	tick := time.NewTicker(PollEvery)
	defer tick.Stop()
	broken := false
	for {
		err := panics.Catch(func() error { return p.Claim(ctx) })
		if ctx.Err() != nil {
			return
		}
		if (err != nil) != broken { // told when it changes
			broken = err != nil
			if broken {
				p.log.Warn("claiming triggers does not work", "err", err)
			} else {
				p.log.Info("claiming triggers works again")
			}
		}
		if !p.pause(ctx, tick.C) {
			return
		}
	}
}

// pause waits until it is time to look again; false: ctx ended.
func (p *Planner) pause(ctx context.Context, tick <-chan time.Time) bool {
	for {
		var ease <-chan time.Time
		if p.press.holds() {
			ease = time.After(easeEvery)
		}
		select {
		case <-ctx.Done():
			return false
		case <-tick:
			return true
		case <-p.nudge:
			return true
		case <-ease:
			if p.press.look(p.waiting(), time.Now()) {
				return true
			}
		}
	}
}

// HeldBack reports whether triggers were left where they are lately, because
// too many runs wait in memory.
func (p *Planner) HeldBack() bool { return p.press.episode.Load() != nil }

// Lag is how long ago a fire time may have passed that this node has not
// planned: how long it has not come to an end with planning, less the time
// that it looks ahead. It is for people.
func (p *Planner) Lag() time.Duration {
	return max(0, time.Since(time.Unix(0, p.done.Load()))-LookAhead)
}

// Claim is one round of Run: it claims until nothing is due inside the horizon,
// but for tenants whose runs crowd the memory: theirs stay triggers, and are
// late in the database.
func (p *Planner) Claim(ctx context.Context) error {
	for ctx.Err() == nil {
		held := p.held() // asked each time: trust may end while there is much to do
		if len(held) == 0 {
			return nil
		}
		began := time.Now()
		p.press.look(p.waiting(), began)
		if p.press.all {
			return nil
		}
		except := p.press.except()
		claimed, err := p.store.ClaimDueTriggers(ctx, store.ClaimDueTriggersParams{
			Partitions: held, Except: except, Horizon: LookAhead, Limit: claimLimit, Plan: p.PlanTrigger, Latest: p.latest,
		})
		if domain.Is(err, domain.CodeStaleTerm) {
			p.refused()
			return nil
		}
		if err != nil {
			return err
		}
		if claimed.Triggers > 0 {
			p.observe(claimed.Triggers, len(claimed.Executions), time.Since(began))
		}
		p.out(runnable(claimed.Executions))
		// A full batch means that there may be more; so does a trigger whose
		// next fire time still lies inside the horizon.
		if claimed.Triggers < claimLimit && claimed.NextFireAt.After(claimed.Now.Add(LookAhead)) {
			if len(except) == 0 {
				p.done.Store(time.Now().UnixNano())
			}
			return nil
		}
	}
	return nil
}

// runnable are those that a timer of this node is to hold. One that jitter has
// put off for long stays cold: its WakeAt comes shortly before its time.
func runnable(all []domain.Execution) []domain.Execution {
	if !slices.ContainsFunc(all, func(e domain.Execution) bool { return e.State != domain.Due }) {
		return all
	}
	out := all[:0:0]
	for _, e := range all {
		if e.State == domain.Due && !e.WakeAt.Before(e.NotBefore) {
			out = append(out, e)
		}
	}
	return out
}

// PlanTrigger plans one locked trigger. It is pure, and runs inside the
// transaction that claims or changes the trigger.
func (p *Planner) PlanTrigger(now time.Time, t domain.Trigger, spec *domain.JobSpec) store.TriggerPlan {
	fires, crowds := firesPerClaim, p.press.crowds(t.TenantID)
	if crowds {
		fires = 1 // what is late has many fire times, and memory little room
	}
	planned := p.plan(t.JobID, t.Revision, spec, t.NextFireAt, now, now.Add(LookAhead), fires)
	out := store.TriggerPlan{NextFireAt: planned.Next, LastFireAt: t.LastFireAt, Err: planned.Err}
	for _, f := range planned.Fires {
		out.Executions = append(out.Executions, newExecution(domain.ExecutionID(p.newID()), now, t, spec, f, crowds))
		out.LastFireAt = f.At
	}
	if planned.AwaitsFinish && len(out.Executions) > 0 {
		out.Awaits = out.Executions[len(out.Executions)-1].ID
	}
	return out
}

func newExecution(id domain.ExecutionID, now time.Time, t domain.Trigger, spec *domain.JobSpec, f timing.Fire, heldBack bool) domain.Execution {
	wait := spec.DispatchTimeout
	if wait <= 0 {
		wait = domain.DefaultDispatchTimeout
	}
	runAt := f.RunAt
	if runAt.IsZero() {
		runAt = f.At
	}
	start := runAt
	if start.Before(now) {
		start = now
	}
	e := domain.Execution{
		ID: id, TenantID: t.TenantID, JobID: t.JobID, Revision: t.Revision, Executor: t.Executor,
		Partition: t.Partition, Cause: domain.CauseSchedule, Priority: spec.Priority, FireAt: f.At, State: domain.Due,
		MaxAttempts: max(1, spec.Retry.MaxAttempts), NotBefore: runAt, PlannedAt: now, LogLines: -1,
		WakeAt: domain.FirstWake(now, start), ExpireAt: start.Add(wait),
	}
	if f.Misfire {
		e.Cause = domain.CauseMisfire
	}
	if f.Missed != "" {
		passed := "passed while nobody could plan it, "
		if heldBack {
			passed = "passed while planning was held back because too many runs were waiting, "
		}
		e.State, e.Reason, e.Message = domain.Missed, f.Missed, missedText(f, passed)
		e.WakeAt, e.ExpireAt, e.FinishedAt = time.Time{}, time.Time{}, now
	}
	if f.Missed == domain.ReasonCalendar {
		e.State = domain.Excluded
	}
	return e
}

func missedText(f timing.Fire, passed string) string {
	switch f.Missed {
	case domain.ReasonCalendar:
		return f.Detail
	case domain.ReasonCoalesced:
		return passed + "and the run of " + f.Into.UTC().Format("2006-01-02T15:04:05.000Z07:00") + " stands for it"
	case domain.ReasonMisfireWindow:
		return passed + "and is older than what the misfire policy makes up"
	case domain.ReasonMisfireCap:
		return passed + "and more fire times passed than the misfire policy makes up"
	default:
		return passed + "and the misfire policy skips such fire times"
	}
}
