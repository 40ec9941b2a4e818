package scheduler

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/panics"
	"github.com/carillon-sched/carillon/admin/internal/runtable"
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
	// claimBehind is the limit while planning is held back and behind. Runs of such a claim are
	// late already. A small claim lets them start before they are too late.
	claimBehind = 100
)

// Planner claims due triggers and timers and plans executions.
type Planner struct {
	// fixed after construction
	store    store.Triggers
	timers   store.DueTimers
	held     func() []domain.PartitionTerm
	refused  func()
	latest   func() time.Time
	newID    func() int64
	disabled func() []domain.TenantID
	plan     PlanFunc
	out      func([]domain.Execution)
	log      *slog.Logger
	observe  func(claimed, planned int, took time.Duration)
	nudge    chan struct{}
	load     func() runtable.Load
	// maintenance and now: see PlannerOptions.
	maintenance store.MaintenanceView
	now         func() time.Time
	// backpressure holds tenants back that have too much in memory (docs/adr/0017).
	backpressure *backpressure
	// done is when all that was due was planned, in Unix nanoseconds.
	done atomic.Int64
}

// PlanFunc says which fires of a trigger are to be written now (timing.Cache.Plan).
type PlanFunc func(job domain.JobID, revision int64, spec *domain.JobSpec, next, now, horizon time.Time, max int) timing.Planned

// PlannerOptions configures a Planner.
type PlannerOptions struct {
	Store store.Triggers
	// Timers are claimed beside the triggers; nil: none are.
	Timers store.DueTimers
	// Disabled are tenants whose timers stay pending, however late; nil: none.
	Disabled func() []domain.TenantID
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
	// Load counts the runs in this node's memory that wait for their time or
	// for their offer; nil: planning is never held back.
	Load func() runtable.Load
	// Maintenance says which schedules and timers are not planned, because what is
	// due waits for its end; nil: none.
	Maintenance store.MaintenanceView
	// Now is the database's clock; it is asked where there is Maintenance.
	Now func() time.Time
	// MaxWaiting and MaxWaitingAll bound the pending ones; 0 = the constants of that name.
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
	if o.Disabled == nil {
		o.Disabled = func() []domain.TenantID { return nil }
	}
	if o.Load == nil {
		o.Load = func() (l runtable.Load) { return l }
	}
	p := &Planner{
		load: o.Load, backpressure: newBackpressure(o.MaxWaiting, o.MaxWaitingAll, o.Logger.With("component", "scheduler")),
		store: o.Store, timers: o.Timers, held: o.Held, refused: o.Refused, latest: o.Latest, newID: o.NewID, disabled: o.Disabled, plan: o.Plan, out: o.Out,
		maintenance: o.Maintenance, now: o.Now,
		log: o.Logger.With("component", "scheduler"), observe: o.Observe, nudge: make(chan struct{}, 1),
	}
	p.done.Store(time.Now().UnixNano())
	return p
}

// Nudge makes the planner look at once, because a trigger has changed, or a timer
// was set that is due soon.
func (p *Planner) Nudge() {
	select {
	case p.nudge <- struct{}{}:
	default:
	}
}

// TimersSet makes the planner look at once if a timer is due within what it claims ahead.
func (p *Planner) TimersSet(first time.Time) {
	if first.Sub(p.now()) < LookAhead {
		p.Nudge()
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
		var resume <-chan time.Time
		if p.backpressure.active() {
			resume = time.After(resumeInterval)
		}
		select {
		case <-ctx.Done():
			return false
		case <-tick:
			return true
		case <-p.nudge:
			return true
		case <-resume:
			if p.backpressure.update(p.load(), time.Now()) {
				return true
			}
		}
	}
}

// HeldBack reports whether triggers were left where they are lately, because
// too many runs wait in memory.
func (p *Planner) HeldBack() bool { return p.backpressure.episode.Load() != nil }

// Lag is how long ago a fire time may have passed that this node has not
// planned: how long it has not come to an end with planning, less the time
// that it looks ahead. It is for people.
func (p *Planner) Lag() time.Duration {
	return max(0, time.Since(time.Unix(0, p.done.Load()))-LookAhead)
}

// Claim is one round of Run: it claims until nothing is due inside the horizon,
// but for tenants whose runs fill the memory, and for what is under maintenance:
// theirs stay triggers and timers, and are late in the database.
func (p *Planner) Claim(ctx context.Context) error {
	for ctx.Err() == nil {
		held := p.held() // asked each time: trust may end while there is much to do
		if len(held) == 0 {
			return nil
		}
		p.backpressure.update(p.load(), time.Now())
		if p.backpressure.all {
			return nil
		}
		except := p.backpressure.heldTenants()
		idle, err := p.underMaintenance(ctx)
		if err != nil {
			return err
		}
		if idle.All {
			p.done.Store(time.Now().UnixNano())
			return nil
		}
		without := slices.Concat(except, idle.Tenants)
		moreTriggers, err := p.claimTriggers(ctx, held, without, idle.Executors)
		moreTimers, timersErr := p.claimTimers(ctx, held, without) // whatever became of the triggers
		if domain.Is(err, domain.CodeStaleTerm) || domain.Is(timersErr, domain.CodeStaleTerm) {
			p.refused()
			return nil
		}
		if err := errors.Join(err, timersErr); err != nil {
			return err
		}
		if !moreTriggers && !moreTimers {
			if len(except) == 0 {
				p.done.Store(time.Now().UnixNano())
			}
			return nil
		}
	}
	return nil
}

func (p *Planner) claimTriggers(ctx context.Context, held []domain.PartitionTerm, except []domain.TenantID, executors []domain.ExecutorID) (more bool, err error) {
	began, limit := time.Now(), claimLimit
	if p.backpressure.episode.Load() != nil && p.Lag() > 0 {
		limit = claimBehind
	}
	claimed, err := p.store.ClaimDueTriggers(ctx, store.ClaimDueTriggersParams{
		Partitions: held, Except: except, ExceptExecutors: executors, Horizon: LookAhead, Limit: limit, Plan: p.PlanTrigger, Latest: p.latest,
	})
	if err != nil {
		return false, err
	}
	if claimed.Triggers > 0 {
		p.observe(claimed.Triggers, len(claimed.Executions), time.Since(began))
	}
	p.out(runnable(claimed.Executions))
	// A full batch means that there may be more; so does a trigger whose
	// next fire time still lies inside the horizon.
	return claimed.Triggers >= limit || !claimed.NextFireAt.After(claimed.Now.Add(LookAhead)), nil
}

func (p *Planner) claimTimers(ctx context.Context, held []domain.PartitionTerm, except []domain.TenantID) (more bool, err error) {
	if p.timers == nil {
		return false, nil
	}
	began := time.Now()
	claimed, err := p.timers.ClaimDueTimers(ctx, store.ClaimDueTimersParams{
		Partitions: held, Except: slices.Concat(except, p.disabled()), Horizon: LookAhead, Limit: claimLimit, NewID: p.newID, Latest: p.latest,
	})
	if err != nil {
		return false, err
	}
	if claimed.Timers > 0 {
		p.observe(claimed.Timers, len(claimed.Executions), time.Since(began))
	}
	p.out(runnable(claimed.Executions))
	return claimed.More, nil
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
	fires := firesPerClaim
	heldBack, memory := p.backpressure.heldBack(t.TenantID)
	if memory {
		fires = 1 // what is late has many fire times, and memory little room
	}
	paused := p.pausedOf(t, now)
	planned := p.plan(t.JobID, t.Revision, paused.spec(spec), t.NextFireAt, now, now.Add(LookAhead), fires)
	out := store.TriggerPlan{NextFireAt: planned.Next, LastFireAt: t.LastFireAt, Err: planned.Err}
	for _, f := range planned.Fires {
		out.Executions = append(out.Executions, paused.note(now, f, newExecution(domain.ExecutionID(p.newID()), now, t, spec, f, heldBack)))
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
