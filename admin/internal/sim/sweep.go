package sim

import (
	"slices"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// settle is SettleInventories of one.
func (d *database) settle(p store.SettleInventoryParams) []store.SettledItem {
	now := d.clock()
	out := make([]store.SettledItem, len(p.Items))
	for i, h := range p.Items {
		out[i].Verdict = domain.VerdictDrop
		e := d.find(h.ID)
		if e == nil || e.TenantID != p.Tenant || e.Executor != p.Executor {
			continue
		}
		was := e.State
		d.lapseOffered(now, e)
		_ = d.move(now, e, func(_ *jobRow, e *domain.Execution) (domain.Effects, error) {
			out[i].Verdict = e.Reconcile(now, h, p.Instance, d.policy(e))
			return domain.Effects{}, nil
		})
		out[i].GivenBack = was == domain.Offered && e.State == domain.Due
		if was == domain.Running && out[i].Verdict == domain.VerdictGrant && !d.grantAgain(now, e) {
			out[i].Verdict = domain.VerdictKeep
		}
		out[i].Execution = *e
	}
	return out
}

// sweep is SweepExecutions.
func (d *database) sweep(p store.SweepParams) (store.Swept, error) {
	now := d.begin()
	out := store.Swept{Now: now}
	if err := believe(now, p.Latest); err != nil {
		return out, err
	}
	var in [domain.Partitions]bool
	for _, part := range p.Partitions {
		in[part] = true
	}
	var found []*domain.Execution
	for _, id := range d.living() {
		e := d.find(id)
		if in[e.Partition] && !e.WakeAt.IsZero() && !e.WakeAt.After(now) &&
			(e.Reason == domain.ReasonWaitInstance || !e.WakeAt.After(now.Add(-p.Overdue))) &&
			(p.Unattended == nil || len(p.Unattended([]domain.ExecutionID{e.ID})) > 0) {
			found = append(found, e)
		}
	}
	slices.SortStableFunc(found, func(a, b *domain.Execution) int { return a.WakeAt.Compare(b.WakeAt) })
	found = found[:min(len(found), p.Limit)]
	out.Seen = len(found)
	for _, e := range found {
		d.sweepOne(now, e, p.Hold, &out)
	}
	advanced, ended := d.advance(now, d.parentsOf(found, true))
	out.Ended = append(out.Ended, ended...)
	for _, id := range d.jobOrder {
		for _, w := range append(ofJob(advanced, id), d.wake(now, d.jobs[id])...) {
			if !slices.ContainsFunc(out.Dispatch, func(e domain.Execution) bool { return e.ID == w.ID }) {
				out.Dispatch = append(out.Dispatch, w)
			}
		}
	}
	for _, list := range [][]domain.Execution{out.Dispatch, out.Cancel, out.Ended} {
		for i := range list {
			list[i] = *d.find(list[i].ID)
		}
	}
	for i := range out.Resend {
		out.Resend[i].Execution = *d.find(out.Resend[i].Execution.ID)
	}
	return out, nil
}

func (d *database) sweepOne(now time.Time, e *domain.Execution, hold time.Duration, out *store.Swept) {
	j := d.jobs[e.JobID]
	was := *e
	if j.of(e).SlotLimit() > 0 && e.Reason == domain.ReasonWaitSlot && !e.HoldsSlot {
		if !d.admits(j, e) {
			_ = d.move(now, e, func(j *jobRow, e *domain.Execution) (domain.Effects, error) {
				d.enqueue(j, e)
				return domain.Effects{}, e.Wait(now, domain.ReasonWaitSlot, "", now.Add(slotCheck))
			})
			return
		}
		if !e.ExpireAt.IsZero() {
			e.ExpireAt = now.Add(patience(j.of(e)))
		}
	}
	var lease time.Time
	at := e.Instance
	if !e.OccupiesInstance() && e.Bound != 0 {
		at = e.Bound
	}
	if i := d.instances[at]; i != nil {
		lease = i.LeaseUntil
	}
	if d.rules.skipLease {
		lease = now
	}
	var action domain.SweepAction
	_ = d.move(now, e, func(_ *jobRow, e *domain.Execution) (fx domain.Effects, err error) {
		action, fx, err = e.Sweep(now, lease, hold, d.policy(e))
		return fx, err
	})
	switch action {
	case domain.SweepDispatch:
		out.Dispatch = append(out.Dispatch, *e)
	case domain.SweepCancel:
		out.Cancel = append(out.Cancel, *e)
	case domain.SweepResend:
		if reason := stopReason(j, e, e.Attempt-1); reason != "" {
			_ = d.move(now, e, func(_ *jobRow, e *domain.Execution) (domain.Effects, error) { return e.RequestCancel(now, reason, "") })
			out.Cancel = append(out.Cancel, *e)
			break
		}
		out.Resend = append(out.Resend, store.OfferResult{Status: store.OfferMade, Execution: *e, Spec: j.of(e)})
	}
	if e.State != was.State && (e.State.Terminal() || e.State == domain.RetryWait) {
		out.Ended = append(out.Ended, *e)
	}
}
