package run

import (
	"slices"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// Finish takes results, and says for each what the executor is told. Wake is
// called after it, and FinishResults when the batch is stored.
func (b *Batch) Finish(reports []store.AttemptReport) ([]store.FinishResult, error) {
	results := make([]store.FinishResult, len(reports))
	for i, r := range reports {
		code, err := b.finish(r)
		if err != nil {
			return nil, err
		}
		results[i].Code = code
	}
	return results, nil
}

// FinishResults completes results by what was stored: the executions, whom they
// woke, once for each job, and the parents that ended.
func (b *Batch) FinishResults(reports []store.AttemptReport, results []store.FinishResult, woken Woken) {
	for i, r := range reports {
		if results[i].Code == store.FinishNotFound {
			continue
		}
		m := b.Moves[r.Report.ExecutionID]
		results[i].Execution = m.E
		if results[i].Code == store.FinishStored || results[i].Code == store.FinishReturned {
			for _, w := range woken[m.E.JobID] {
				results[i].Woken = append(results[i].Woken, w.E)
			}
			delete(woken, m.E.JobID)
		}
	}
	results[0].Ended = b.ParentsEnded()
}

func (b *Batch) finish(r store.AttemptReport) (store.FinishCode, error) {
	m := b.Find(r.Tenant, r.Report.ExecutionID)
	if m == nil || m.E.Executor != r.Executor {
		return store.FinishNotFound, nil
	}
	was, lingered, occupied := m.E.State, m.E.Lingers, m.E.OccupiesInstance()
	archived := AttemptKey{m.E.TenantID, m.E.ID, m.E.Fence}
	fx, err := m.E.Finish(b.Now, r.Report, m.Policy())
	switch domain.CodeOf(err) {
	case "":
	case domain.CodeStaleFence:
		b.keepLate(m, r.Report)
		return store.FinishStale, nil
	case domain.CodeAlreadyFinished:
		return store.FinishDuplicate, nil
	case domain.CodeIllegalMove:
		if r.Report.Outcome == domain.OutcomeNeverStarted && was == domain.Due {
			return store.FinishDuplicate, nil // it came back already
		}
		return store.FinishStale, nil
	default:
		return "", err
	}
	if was == domain.RetryWait {
		// The attempt was archived when it was given up, perhaps in this batch; its
		// result replaces that.
		b.Archived = slices.DeleteFunc(b.Archived, func(a *domain.Attempt) bool { return AttemptKey{a.TenantID, a.ExecutionID, a.Fence} == archived })
		b.Unarchive = append(b.Unarchive, archived)
	}
	b.apply(m, fx)
	if lingered {
		return store.FinishReturned, nil
	}
	if !occupied && m.E.OccupiesInstance() {
		b.takeCapacity(&m.E) // its handler runs after all, beside others if there is no room
	}
	return store.FinishStored, nil
}

// keepLate keeps a result that came after a newer attempt was offered: on
// the archived attempt, where it changes nothing but what people can read.
func (b *Batch) keepLate(m *Move, r domain.Report) {
	state := map[domain.Outcome]domain.State{
		domain.OutcomeSucceeded: domain.Succeeded, domain.OutcomeFailed: domain.Failed,
		domain.OutcomeTimedOut: domain.TimedOut, domain.OutcomeCancelled: domain.Cancelled,
	}[r.Outcome]
	if state != 0 && r.Fence <= m.E.Fence {
		b.Late = append(b.Late, LateResult{AttemptKey{m.E.TenantID, m.E.ID, r.Fence}, state, r})
	}
}

// RequestCancel cancels an execution; nil: there is none.
func (b *Batch) RequestCancel(tenant domain.TenantID, id domain.ExecutionID, reason domain.Reason, message string) (*Move, error) {
	m := b.Find(tenant, id)
	if m == nil {
		return nil, nil
	}
	fx, err := m.E.RequestCancel(b.Now, reason, message)
	if err == nil {
		b.apply(m, fx)
	}
	return m, err
}

// Grant says which offered executions may start.
func (b *Batch) Grant(grants []store.GrantRequest) ([]store.GrantResult, error) {
	results := make([]store.GrantResult, len(grants))
	for i, g := range grants {
		m := b.Find(g.Tenant, g.ID)
		if m == nil {
			continue
		}
		if !m.E.Has(g.Fence, g.Instance) {
			if err := b.maintainedOffer(m); err != nil {
				return nil, err
			}
			if err := b.lapseOffered(m); err != nil {
				return nil, err
			}
			results[i].Granted = m.E.Grant(b.Now, g.Fence, g.Instance, m.Policy()) == nil
			continue
		}
		var err error
		if results[i].Granted, err = b.grantAgain(m); err != nil {
			return nil, err
		}
	}
	return results, nil
}

// GiveBack takes offers back. The slot stays with the execution, so that order is
// kept. One whose sends are spent is ended by the sweep, or by the next offer.
func (b *Batch) GiveBack(items []store.GiveBack) ([]store.OfferResult, error) {
	results := make([]store.OfferResult, len(items))
	for i, g := range items {
		m := b.Find(g.Tenant, g.ID)
		if m == nil || m.E.Instance != g.Instance {
			continue
		}
		if g.Unheard {
			moved, err := b.unheard(m, g)
			if err != nil {
				return nil, err
			}
			if moved {
				results[i].Status = store.OfferMade
			}
			continue
		}
		giveBack := m.E.GiveBack
		if g.Refused {
			giveBack = m.E.Refuse
		}
		if giveBack(b.Now, g.Fence, g.Reason, g.Message, m.E.SendWait(m.Spec.SendRetry, g.Wait)) == nil {
			if g.Busy {
				m.E.SentToFull()
			}
			results[i].Status = store.OfferMade
		}
	}
	return results, nil
}

// Start notes when attempts began: at, cut to what is stored.
func (b *Batch) Start(starts []store.Start) {
	for _, st := range starts {
		if m := b.Find(st.Tenant, st.ID); m != nil && !st.StartedAt.IsZero() {
			// An illegal move means that the attempt has ended meanwhile.
			_ = m.E.Started(b.Now, st.Fence, st.Instance, time.UnixMilli(st.StartedAt.UnixMilli()).UTC())
		}
	}
}

// Settle compares an item of an inventory with what is stored.
func (b *Batch) Settle(of *store.SettleInventoryParams, h domain.Held) (out store.SettledItem, err error) {
	out.Verdict = domain.VerdictDrop
	m := b.Theirs(of, h)
	if m == nil {
		return out, nil
	}
	was := m.E.State
	if err := b.lapseOffered(m); err != nil {
		return out, err
	}
	out.Verdict = m.E.Reconcile(b.Now, h, of.Instance, m.Policy())
	out.GivenBack = was == domain.Offered && m.E.State == domain.Due
	if was == domain.Running && out.Verdict == domain.VerdictGrant {
		again, err := b.grantAgain(m)
		if err != nil {
			return out, err
		}
		if !again {
			out.Verdict = domain.VerdictKeep // its cancel is on the way
		}
	}
	return out, nil
}

// Theirs is the execution that an inventory names; nil: there is none of the executor's.
func (b *Batch) Theirs(of *store.SettleInventoryParams, h domain.Held) *Move {
	if m := b.Find(of.Tenant, h.ID); m != nil && m.E.Executor == of.Executor {
		return m
	}
	return nil
}

// EndOrphans ends the attempts that an instance does not have, though it was there
// before accepted, by an inventory that it gave since: see store.EndOrphansParams.
// has says what the instance has.
func (b *Batch) EndOrphans(p *store.EndOrphansParams, accepted time.Time, has func(*domain.Execution) bool) (ended []*Move) {
	for _, m := range b.byID(func(m *Move) bool { // others have moved on since they were found, or are queued for a slot
		e := &m.E
		return e.TenantID == p.Tenant && e.Executor == p.Executor && e.Instance == p.Instance && e.OccupiesInstance() && e.OfferedAt.Before(accepted) && !has(e)
	}) {
		b.Deciding = m.E.ID
		if fx, over := m.E.EndOrphaned(b.Now, m.Policy()); over {
			b.apply(m, fx)
			ended = append(ended, m)
		}
	}
	return ended
}
