package run

import (
	"fmt"
	"slices"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// swept are the moves of one sweep, by the task of the caller.
type swept struct{ dispatch, cancel, resend, ended []*Move }

// Sweep looks at executions whose time to be looked at has come. hold is how long
// those that may be offered are left alone then.
func (b *Batch) Sweep(ids []domain.ExecutionID, hold time.Duration) (*store.Swept, error) {
	moves, err := b.sweep(ids, hold)
	out := &store.Swept{Now: b.Now, Seen: len(ids)}
	b.onceStored(func() { b.collect(moves, out) })
	return out, err
}

func (b *Batch) sweep(ids []domain.ExecutionID, hold time.Duration) (out swept, err error) {
	leases, err := b.leases()
	if err != nil {
		return out, err
	}
	for _, id := range ids {
		m := b.Moves[id]
		if m == nil || m.E.WakeAt.After(b.Now) {
			continue // locked by another, or moved on since it was found
		}
		b.Deciding = id
		if m.E.State.Terminal() && !m.E.Lingers {
			m.E.WakeAt = time.Time{} // it cannot have one, but would be found for ever
			continue
		}
		t := b.turn(m)
		if t.parentAway() {
			continue
		}
		if !b.Now.Before(m.E.NotBefore) {
			stays, ended, err := t.maintained()
			if err != nil {
				return out, fmt.Errorf("execution %s: %w", m.E.ID, err)
			}
			if ended {
				out.ended = append(out.ended, m)
			}
			if stays {
				continue
			}
		}
		if t.stillBlocked() {
			if err := t.headWaits(); err != nil {
				return out, err
			}
			if err := m.E.Wait(b.Now, domain.ReasonWaitSlot, "", b.Now.Add(SlotCheck)); err != nil {
				return out, err
			}
			continue
		}
		was := m.E.State
		if ended, err := t.endUnattended(); err != nil {
			return out, fmt.Errorf("execution %s: %w", m.E.ID, err)
		} else if ended {
			out.ended = append(out.ended, m)
			continue
		}
		action, fx, err := m.E.Sweep(b.Now, leases[m.waitsFor()], hold, m.Policy())
		if err != nil {
			return out, fmt.Errorf("execution %s: %w", m.E.ID, err)
		}
		b.apply(m, fx)
		switch action {
		case domain.SweepDispatch:
			out.dispatch = append(out.dispatch, m)
		case domain.SweepCancel:
			out.cancel = append(out.cancel, m)
		case domain.SweepResend:
			// A one-step offer is sent again, unless its job was stopped meanwhile.
			cancelled, err := t.cancelStopped("the job was stopped before the start of the run was reported")
			if err != nil {
				return out, err
			}
			if cancelled {
				out.cancel = append(out.cancel, m)
			} else {
				out.resend = append(out.resend, m)
			}
		}
		if was != m.E.State && (m.E.State.Terminal() || m.E.State == domain.RetryWait) {
			out.ended = append(out.ended, m)
		}
	}
	return out, nil
}

// collect writes what was stored, and the runs that were woken, into out.
func (b *Batch) collect(s swept, out *store.Swept) {
	seen := map[domain.ExecutionID]bool{}
	for _, e := range append(executions(s.dispatch), b.Woken.all()...) {
		if !seen[e.ID] {
			seen[e.ID] = true
			out.Dispatch = append(out.Dispatch, e)
		}
	}
	out.Cancel, out.Ended = executions(s.cancel), executions(append(s.ended, b.Ended...))
	for _, m := range s.resend {
		out.Resend = append(out.Resend, store.OfferResult{Status: store.OfferMade, Execution: m.E, Spec: m.Spec})
	}
}

// stillBlocked reports whether an execution waits for a slot that is still
// taken. One whose slot is free (the node that was to offer it died) gets
// fresh patience: it has not waited for an instance yet.
func (t turn) stillBlocked() bool {
	s := t.b.Slots[t.e.JobID]
	if s == nil || t.e.Reason != domain.ReasonWaitSlot || t.e.HoldsSlot {
		return false
	}
	if !s.Admits(t.e, t.spec.SlotLimit()) {
		s.enqueue(t.e)
		return true
	}
	if !t.e.ExpireAt.IsZero() {
		t.e.ExpireAt = t.b.Now.Add(Patience(t.spec))
	}
	return false
}

// waitsFor is the instance whose lease decides about an execution; 0: none.
func (m *Move) waitsFor() domain.InstanceID {
	if !m.E.OccupiesInstance() && m.E.Bound != 0 {
		return m.E.Bound
	}
	return m.E.Instance
}

// leases are those of the instances that have executions of the batch, or are
// waited for.
func (b *Batch) leases() (map[domain.InstanceID]time.Time, error) {
	var ids []domain.InstanceID
	for _, m := range b.Moves {
		if m.E.OccupiesInstance() && m.E.Instance != 0 || m.E.Bound != 0 {
			ids = append(ids, m.waitsFor())
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	slices.Sort(ids)
	return b.Source.Leases(slices.Compact(ids))
}

// parentAway reports whether an execution is a part whose parent is locked by
// another transaction: then it is left alone, since its end could not be told.
// A parent whose row is gone ended long ago.
func (t turn) parentAway() bool {
	return t.e.IsPart() && t.b.Moves[t.e.Parent] == nil && t.b.Source.Known(t.e.Parent)
}
