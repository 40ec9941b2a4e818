package run

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// SlotCheck is how long an execution that waits for its slot is left alone.
// The release of the slot wakes it; this is the net below, for a crash of the
// node that was to offer it then.
const SlotCheck = 30 * time.Second

// Batch is what one transaction has loaded and may change. A method decides, Conclude
// ends the decisions, the rows are saved, and then Stored completes what the method returned.
type Batch struct {
	Kind Kind
	// Now is the database's clock after the last lock.
	Now time.Time
	// Moves are the executions that may change, or be looked at.
	Moves Moves
	// Slots are those of the jobs that have one and whose runs may take or give
	// it back here. Limits are those that bound them; empty where none may.
	Slots  map[domain.JobID]*Slot
	Limits Limits
	// Parents are the runs with parts that may have moved. A sweep also moves those on that
	// are in Moves for another reason.
	Parents map[domain.ExecutionID]bool
	// FenceFloor is below every fence that is given here (domain.History.FenceFloor).
	FenceFloor int64
	// Misfire is asked about an execution that starts late; nil: never.
	Misfire store.MisfireFunc
	Source  Source

	// Deciding is the execution whose turn it is: it is to blame for an error, or a panic.
	Deciding domain.ExecutionID

	stopped  JobStates // see findStopped
	slotless *Move     // it freed a slot that is not loaded

	Outcome
}

// Outcome is what has to be written beside executions, slots and limits.
type Outcome struct {
	Archived []*domain.Attempt
	// Unarchive are archived attempts whose late result has been taken, and
	// Late are results that came too late to change more than the archive.
	Unarchive []AttemptKey
	Late      []LateResult
	Alerts    []domain.AlertEvent // without ids
	Missed    []domain.Execution  // whose jobs' owners are told of it together
	Callbacks []domain.Callback
	Born      []domain.Execution                // parts to insert
	Ended     []*Move                           // parents that ended because their parts have
	Contended []domain.JobID                    // jobs for whose slots somebody began to wait
	Waits     map[domain.ExecutionID]store.Wait // of runs that wait for an instance now
	Woken     Woken                             // by Conclude

	stored []func() // see Stored
}

// AttemptKey names an archived attempt.
type AttemptKey struct {
	Tenant domain.TenantID
	ID     domain.ExecutionID
	Fence  int64
}

// LateResult is what an archived attempt that counts as lost has come to.
type LateResult struct {
	AttemptKey
	State  domain.State
	Report domain.Report
}

// Source is asked for what a decision needs beside the rows of the batch. Its
// answers are those of the batch's transaction.
type Source interface {
	// Stopped returns those of the jobs that are not enabled.
	Stopped(jobs []domain.JobID) (JobStates, error)
	// Maintenances are those that a run may be under, as the node knows them.
	Maintenances() (domain.Maintenances, error)
	// SuccessWish says whether somebody is told that a run has succeeded, as the node
	// knows it.
	SuccessWish(m *Move) domain.SuccessWish
	// TriggerRevision is the revision of a job's schedule that is in force.
	TriggerRevision(job domain.JobID) (int64, error)
	// Leases are the ends of the leases of instances; absent: there is none.
	Leases(ids []domain.InstanceID) (map[domain.InstanceID]time.Time, error)
	// Serving are the instances that could take a shard of a run now, the one
	// that came first first.
	Serving(m *Move) ([]domain.InstanceID, error)
	// Family says what a parent's parts say, those of the batch as it leaves
	// them. While one of them lives it need not say more than that.
	Family(parent *Move) (domain.Family, error)
	// Results is what the after hook of a parent gets.
	Results(parent *Move, family domain.Family) ([]byte, error)
	// HeldSince is the last grant of the runs that hold the slot of a job, among those just
	// before a fire time; zero: there is none. It is asked about the head of a queue of many.
	HeldSince(job domain.JobID, before time.Time) (time.Time, error)
	// Known reports whether an execution has a row, in this batch or not.
	Known(id domain.ExecutionID) bool
	NewID() (domain.ExecutionID, error)
}

// Move is one execution on its way. E is changed in place.
type Move struct {
	E    domain.Execution
	Spec *domain.JobSpec
	was  domain.State
}

// NewMove is a move of an execution as it was loaded. spec is what the run, or
// the part, follows.
func NewMove(e domain.Execution, spec *domain.JobSpec) Move {
	return Move{E: e, Spec: spec, was: e.State}
}

// Was is the state in which the execution was loaded.
func (m *Move) Was() domain.State { return m.was }

// Policy is the execution's.
func (m *Move) Policy() domain.Policy { return domain.PolicyOf(m.Spec, m.E.Idempotent) }

// Moves are the executions of a batch by id.
type Moves map[domain.ExecutionID]*Move

// Find returns the execution if it was loaded and belongs to the tenant.
func (b *Batch) Find(tenant domain.TenantID, id domain.ExecutionID) *Move {
	b.Deciding = id
	if m := b.Moves[id]; m != nil && m.E.TenantID == tenant {
		return m
	}
	return nil
}

// asStored replaces executions that were collected before the batch was saved.
func (all Moves) asStored(list []domain.Execution) {
	for i := range list {
		list[i] = all[list[i].ID].E
	}
}

// onceStored has results completed when the batch is saved.
func (b *Batch) onceStored(complete func()) { b.stored = append(b.stored, complete) }

// Stored completes results by the executions as they were saved, and by Woken.
func (b *Batch) Stored() {
	for _, complete := range b.stored {
		complete()
	}
	b.Deciding = 0
}

// apply carries out what a move demands. It is called after every move that
// may end or archive an attempt.
func (b *Batch) apply(m *Move, fx domain.Effects) {
	s := b.Slots[m.E.JobID]
	switch {
	case fx.ReleaseSlot && s == nil:
		b.slotless = m
	case fx.ReleaseSlot:
		s.release()
	}
	if m.E.State.Terminal() {
		if s != nil {
			s.dequeue(&m.E)
		}
		b.Limits.leave(&m.E, nil)
		// The parts of a run are no ends: its own is.
		if m.E.Parent == 0 && m.Spec.Callback(m.E.State).Any() && m.was != m.E.State {
			b.Callbacks = append(b.Callbacks, domain.Callback{Tenant: m.E.TenantID, ID: m.E.ID, Success: m.E.State == domain.Succeeded})
		}
		if m.E.Parent == 0 && m.E.State == domain.Succeeded && m.was != domain.Succeeded {
			b.tellSuccess(m)
		}
	}
	if fx.Archive != nil {
		b.Archived = append(b.Archived, fx.Archive)
	}
	switch {
	case fx.Alert == "" || m.E.IsPart(): // its parent's end is told
	case fx.Alert == domain.AlertRunMissed:
		b.Missed = append(b.Missed, m.E)
	default:
		b.Alerts = append(b.Alerts, b.alertOf(m, fx.Alert))
	}
}

func (b *Batch) alertOf(m *Move, kind domain.AlertKind) domain.AlertEvent {
	detail := ""
	if kind != domain.AlertRunSucceeded {
		detail = domain.ErrorLine(m.E.Error)
	}
	return domain.AlertEvent{
		Detail: detail, TenantID: m.E.TenantID, Kind: kind, JobID: m.E.JobID, Revision: m.E.Revision, ExecutionID: m.E.ID, CreatedAt: b.Now, Reason: m.E.Reason,
		DedupeKey: string(kind) + ":" + m.E.ID.String() + ":" + strconv.FormatInt(m.E.Fence, 10),
	}
}

// tellSuccess writes an event if a rule wants it. Those of one job in one batch are
// one event, which names the last one, unless somebody reads what each says.
func (b *Batch) tellSuccess(m *Move) {
	wish := b.Source.SuccessWish(m)
	if wish == domain.SuccessUnwanted {
		return
	}
	e := b.alertOf(m, domain.AlertRunSucceeded)
	if wish == domain.SuccessCounted {
		at := slices.IndexFunc(b.Alerts, func(o domain.AlertEvent) bool { return o.Kind == e.Kind && o.JobID == e.JobID })
		if at >= 0 {
			e.Missed = max(1, b.Alerts[at].Missed) + 1
			b.Alerts[at] = e
			return
		}
	}
	b.Alerts = append(b.Alerts, e)
}

// Woken are executions that may be offered now, by job.
type Woken map[domain.JobID][]*Move

// all lists them in the order of their jobs.
func (w Woken) all() (out []domain.Execution) {
	for _, job := range slices.Sorted(maps.Keys(w)) {
		for _, m := range w[job] {
			out = append(out, m.E)
		}
	}
	return out
}

// Conclude is the last decision of every transaction. If the parts of a parent have ended,
// it moves the parent on. If a place in a slot became free, it makes the oldest waiters
// ready. Waiters stay in the queue until they are offered, so that they keep their order.
// A kind that loads no heads of queues leaves this to a transaction of the kind
// Successors, for the jobs that Freed returns.
func (b *Batch) Conclude() error {
	b.Woken = Woken{}
	if b.slotless != nil {
		return fmt.Errorf("execution %s freed the slot of job %s, which is not loaded", b.slotless.E.ID, b.slotless.E.JobID)
	}
	if !b.Kind.Wakes() {
		return nil
	}
	if err := b.advanceParents(b.Woken); err != nil {
		return err
	}
	for job, s := range b.Slots {
		if !s.freed && b.Kind != Successors || len(s.Queue) == 0 {
			continue
		}
		places := s.Holders
		for _, w := range slices.Clone(s.Queue) {
			m := b.Moves[w.ID]
			if m == nil && b.Kind.SkipsLocked() {
				break // another transaction has it: the next sweep comes back to it
			}
			b.Deciding = w.ID
			if m == nil {
				s.drop(w) // without a row; it cannot be, but would block the queue for ever
				continue
			}
			if m.E.State != domain.Due && m.E.State != domain.RetryWait {
				s.dequeue(&m.E) // cannot be, but would block the queue for ever
				continue
			}
			if places >= int64(m.Spec.SlotLimit()) {
				break
			}
			places++
			if m.E.Reason != domain.ReasonWaitSlot {
				continue // it keeps its place, and waits for something else now
			}
			if err := m.E.Wake(b.Now, Patience(m.Spec)); err != nil {
				return err
			}
			b.Woken[job] = append(b.Woken[job], m)
		}
	}
	return nil
}

// Freed are the jobs with a free place in the slot, if Conclude has not looked at the
// successors.
func (b *Batch) Freed() (jobs []domain.JobID) {
	for job, s := range b.Slots {
		if s.freed && !b.Kind.Wakes() {
			jobs = append(jobs, job)
		}
	}
	slices.Sort(jobs)
	return jobs
}

// Patience is how long a due execution waits for an instance.
func Patience(spec *domain.JobSpec) time.Duration {
	if spec.DispatchTimeout > 0 {
		return spec.DispatchTimeout
	}
	return domain.DefaultDispatchTimeout
}

// byID lists moves in the order of their ids.
func (all Moves) byID(pick func(*Move) bool) (out []*Move) {
	for _, m := range all {
		if pick(m) {
			out = append(out, m)
		}
	}
	slices.SortFunc(out, func(x, y *Move) int { return cmp.Compare(x.E.ID, y.E.ID) })
	return out
}
