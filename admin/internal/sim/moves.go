package sim

import (
	"slices"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/executor-sdk/simulate"
)

// slotCheck is how long a run that waits for its slot is left alone (as in
// gormstore).
const slotCheck = 30 * time.Second

// offer is OfferExecutions.
func (d *database) offer(known *limitsKnown, offers []store.Offer) []store.OfferResult {
	now := d.clock()
	out := make([]store.OfferResult, len(offers))
	order := make([]int, 0, len(offers))
	for i, o := range offers {
		if e := d.find(o.ID); e != nil && e.TenantID == o.Tenant {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(x, y int) int { return d.compareOffers(offers[x].ID, offers[y].ID) })
	for _, i := range order {
		out[i] = d.offerOne(now, known, offers[i])
	}
	for i := range out {
		if id := out[i].Execution.ID; id != 0 {
			out[i].Execution = *d.find(id)
		}
	}
	return out
}

// compareOffers is the order in which offers are decided.
func (d *database) compareOffers(x, y domain.ExecutionID) int {
	a, b := d.find(x), d.find(y)
	if a.JobID == b.JobID && a.ID != b.ID && d.jobs[a.JobID].of(a).SlotLimit() > 0 {
		c := 1
		if before(a, b) {
			c = -1
		}
		if d.jobs[a.JobID].of(a).Blocking == domain.BlockCover {
			c = -c
		}
		return c
	}
	return domain.ComparePrecedence(a, b)
}

func (d *database) offerOne(now time.Time, known *limitsKnown, o store.Offer) store.OfferResult {
	e := d.find(o.ID)
	j := d.jobs[e.JobID]
	r := store.OfferResult{Status: store.OfferGone, Execution: *e, Spec: j.of(e)}
	if e.State != domain.Due && e.State != domain.RetryWait || r.Spec.Sharding.On() || now.Before(e.NotBefore) && !d.maybeAhead(now, known, j, e, o) {
		return r
	}
	if e.Bound != 0 && e.Bound != o.Instance || !d.enter(now, o.Since, known, j, e, &r) {
		return r
	}
	needsSlot := j.of(e).SlotLimit() > 0 && !e.HoldsSlot
	bounds := d.bounds(known, e)
	for _, l := range bounds {
		if !d.fits(l, e) {
			return d.waitForRoom(now, bounds, l, j, e, r)
		}
	}
	_ = d.move(now, e, func(j *jobRow, e *domain.Execution) (domain.Effects, error) {
		d.occupy(known, e)
		if needsSlot {
			e.HoldsSlot = true
			j.holders++
			j.dequeue(e.ID)
		}
		e.Passed = o.Passed
		return domain.Effects{}, e.Offer(now, o.Node, o.Instance, o.Idempotent, o.Granted && o.Idempotent, domain.PolicyOf(j.of(e), o.Idempotent))
	})
	r.Status = store.OfferMade
	return r
}

// maybeAhead is gormstore's.
func (d *database) maybeAhead(now time.Time, known *limitsKnown, j *jobRow, e *domain.Execution, o store.Offer) bool {
	spec := j.of(e)
	if !e.Ahead(now) || !spec.MaybeAhead() || o.Granted && o.Idempotent || len(d.bounds(known, e)) > 0 || stopReason(j, e, e.Attempt) != "" || e.SendsSpent(spec.SendRetry) {
		return false
	}
	return spec.SlotLimit() == 0 || e.HoldsSlot || d.admits(j, e)
}

// enter is gormstore's; known is nil for who waits under no limits.
func (d *database) enter(now, since time.Time, known *limitsKnown, j *jobRow, e *domain.Execution, r *store.OfferResult) bool {
	if reason := stopReason(j, e, e.Attempt); reason != "" && (e.Fence > 0 || e.IsPart()) && !d.rules.startStopped {
		_ = d.move(now, e, func(_ *jobRow, e *domain.Execution) (domain.Effects, error) {
			if e.Attempt > 0 {
				return e.RequestCancel(now, reason, "")
			}
			return e.Miss(now, reason, "")
		})
		r.Status = store.OfferDiscarded
		return false
	}
	if d.lapse(now, since, e) {
		r.Status = store.OfferDiscarded
		return false
	}
	if e.SendsSpent(j.of(e).SendRetry) {
		_ = d.move(now, e, func(_ *jobRow, e *domain.Execution) (domain.Effects, error) { return e.SendFailed(now) })
		r.Status = store.OfferDiscarded
		return false
	}
	if e.Expired(now) {
		_ = d.move(now, e, func(_ *jobRow, e *domain.Execution) (domain.Effects, error) { return e.Expire(now) })
		r.Status = store.OfferDiscarded
		return false
	}
	if j.of(e).SlotLimit() == 0 || e.HoldsSlot {
		return true
	}
	if j.of(e).Blocking == domain.BlockCover {
		var later bool
		if r.Covered, later = d.cover(now, j, e); later {
			r.Status = store.OfferDiscarded
			return false
		}
	}
	if !d.admits(j, e) {
		*r = d.block(now, known, j, e, *r)
		return false
	}
	return true
}

func (d *database) block(now time.Time, known *limitsKnown, j *jobRow, e *domain.Execution, r store.OfferResult) store.OfferResult {
	if j.of(e).Blocking == domain.BlockDiscard && e.State == domain.Due && e.Attempt == 0 {
		_ = d.move(now, e, func(_ *jobRow, e *domain.Execution) (domain.Effects, error) {
			return e.Discard(now, "an earlier run of the job had not ended")
		})
		r.Status = store.OfferDiscarded
		return r
	}
	_ = d.move(now, e, func(j *jobRow, e *domain.Execution) (domain.Effects, error) {
		d.enqueue(j, e)
		return domain.Effects{}, e.Wait(now, domain.ReasonWaitSlot, "", now.Add(slotCheck))
	})
	if known != nil {
		for _, l := range d.bounds(known, e) {
			l.leave(e.ID)
		}
	}
	r.Status = store.OfferBlocked
	return r
}

// waitForRoom lets e wait under a limit, and before later runs of its job.
func (d *database) waitForRoom(now time.Time, bounds []*limitRow, full *limitRow, j *jobRow, e *domain.Execution, r store.OfferResult) store.OfferResult {
	for _, l := range bounds {
		if l != full {
			l.leave(e.ID)
		}
	}
	d.queue(full, e)
	if !e.HoldsSlot && j.of(e).SlotLimit() > 0 {
		d.enqueue(j, e)
	}
	_ = d.move(now, e, func(_ *jobRow, e *domain.Execution) (domain.Effects, error) {
		return domain.Effects{}, e.Wait(now, domain.ReasonWaitLimit, "", now.Add(limitCheck))
	})
	r.Status = store.OfferBlocked
	return r
}

// cover ends the earlier runs of a job, or e, when a later one came before.
func (d *database) cover(now time.Time, j *jobRow, e *domain.Execution) (covered []domain.Execution, later bool) {
	var others []*domain.Execution
	for _, id := range d.living() {
		o := d.find(id)
		if o == e || o.JobID != e.JobID || !o.HoldsSlot && !slices.Contains(j.waiters, id) {
			continue
		}
		if before(e, o) {
			_ = d.move(now, e, func(_ *jobRow, e *domain.Execution) (domain.Effects, error) { return e.Cover(now, "later") })
			return nil, true
		}
		if o.State != domain.Cancelling && !o.Lingers {
			others = append(others, o)
		}
	}
	for _, o := range others {
		_ = d.move(now, o, func(_ *jobRow, o *domain.Execution) (domain.Effects, error) { return o.Cover(now, "covered") })
		covered = append(covered, *o)
	}
	return covered, false
}

// grant is GrantOffers.
func (d *database) grant(requests []store.GrantRequest) []store.GrantResult {
	now := d.clock()
	out := make([]store.GrantResult, len(requests))
	for i, g := range requests {
		e := d.find(g.ID)
		if e == nil || e.TenantID != g.Tenant {
			continue
		}
		if e.Has(g.Fence, g.Instance) {
			out[i].Granted = d.grantAgain(now, e)
			out[i].Execution = *e
			continue
		}
		d.lapseOffered(now, e)
		err := d.move(now, e, func(_ *jobRow, e *domain.Execution) (domain.Effects, error) {
			at := now
			if d.rules.skipOfferEnd && e.State == domain.Due && e.Fence == g.Fence { // it was given back
				e.State, e.Instance = domain.Offered, g.Instance
			}
			if d.rules.skipOfferEnd && e.State == domain.Offered && !now.Before(e.OfferedAt.Add(domain.OfferTTL)) {
				at = e.OfferedAt.Add(domain.OfferTTL - 1)
			}
			if d.rules.grantEarly && e.Ahead(at) {
				at = e.NotBefore
			}
			return domain.Effects{}, e.Grant(at, g.Fence, g.Instance, d.policy(e))
		})
		out[i] = store.GrantResult{Granted: err == nil, Execution: *e}
	}
	return out
}

// grantAgain is the store's: the job may have been stopped meanwhile.
func (d *database) grantAgain(now time.Time, e *domain.Execution) bool {
	reason := stopReason(d.jobs[e.JobID], e, e.Attempt-1)
	if reason == "" {
		return true
	}
	_ = d.move(now, e, func(_ *jobRow, e *domain.Execution) (domain.Effects, error) {
		return e.RequestCancel(now, reason, "")
	})
	return false
}

// giveBack is GiveBackOffers.
func (d *database) giveBack(items []store.GiveBack) []store.OfferResult {
	now := d.clock()
	out := make([]store.OfferResult, len(items))
	for i, g := range items {
		e := d.find(g.ID)
		if e == nil || e.TenantID != g.Tenant || e.Instance != g.Instance {
			continue
		}
		err := d.move(now, e, func(j *jobRow, e *domain.Execution) (domain.Effects, error) {
			wait := e.SendWait(j.of(e).SendRetry, g.Wait)
			if g.Unheard {
				return d.unheard(now, j, e, g)
			}
			if g.Refused {
				err := e.Refuse(now, g.Fence, g.Reason, g.Message, wait)
				if err == nil && g.Busy {
					e.SentToFull()
				}
				return domain.Effects{}, err
			}
			return domain.Effects{}, e.GiveBack(now, g.Fence, g.Reason, g.Message, wait)
		})
		if err == nil && e.State != domain.Cancelling {
			out[i].Status = store.OfferMade
		}
		out[i].Execution, out[i].Spec = *e, d.jobs[e.JobID].of(e)
	}
	return out
}

// unheard is the store's: a job that was stopped has its instance asked.
func (d *database) unheard(now time.Time, j *jobRow, e *domain.Execution, g store.GiveBack) (domain.Effects, error) {
	moved := *e
	fx, err := moved.Unheard(now, g.Fence, g.Message, d.policy(e))
	if err != nil {
		return fx, err
	}
	if reason := stopReason(j, e, e.Attempt-1); reason != "" {
		return e.RequestCancel(now, reason, "")
	}
	*e = moved
	return fx, nil
}

// wait is RecordWaits.
func (d *database) wait(known *limitsKnown, waits []store.Wait) (covered []domain.Execution) {
	now := d.clock()
	for _, w := range waits {
		e := d.find(w.ID)
		if e == nil || e.TenantID != w.Tenant {
			continue
		}
		if d.lapse(now, w.Since, e) {
			covered = append(covered, *e)
			continue
		}
		err := d.move(now, e, func(_ *jobRow, e *domain.Execution) (domain.Effects, error) {
			err := e.Wait(now, w.Reason, w.Message, w.Until(now, e))
			if w.Full && err == nil {
				e.WaitsForRoom(now, d.policy(e))
			}
			return domain.Effects{}, err
		})
		if err == nil {
			for _, l := range d.bounds(known, e) {
				l.leave(e.ID)
			}
		}
		j := d.jobs[e.JobID]
		if err != nil || j.of(e).SlotLimit() == 0 || e.HoldsSlot {
			continue
		}
		if j.of(e).Blocking == domain.BlockCover {
			ended, later := d.cover(now, j, e)
			covered = append(covered, ended...)
			if later {
				covered = append(covered, *e)
				continue
			}
		}
		d.enqueue(j, e)
	}
	return covered
}

// start is RecordStarts.
func (d *database) start(starts []store.Start) {
	now := d.clock()
	for _, s := range starts {
		if e := d.find(s.ID); e != nil && e.TenantID == s.Tenant {
			_ = d.move(now, e, func(_ *jobRow, e *domain.Execution) (domain.Effects, error) {
				return domain.Effects{}, e.Started(now, s.Fence, s.Instance, s.StartedAt)
			})
		}
	}
}

// finish is FinishAttempts.
func (d *database) finish(known *limitsKnown, reports []store.AttemptReport) []store.FinishResult {
	now := d.begin()
	out := make([]store.FinishResult, len(reports))
	for i, r := range reports {
		e := d.find(r.Report.ExecutionID)
		if e == nil || e.TenantID != r.Tenant || e.Executor != r.Executor {
			out[i].Code = store.FinishNotFound
			continue
		}
		was, report := *e, r.Report
		if d.rules.skipFence && report.Fence < e.Fence {
			report.Fence = e.Fence
		}
		err := d.move(now, e, func(_ *jobRow, e *domain.Execution) (domain.Effects, error) {
			p := d.policy(e)
			p.RetryLost = p.RetryLost || d.rules.stopFree && report.ErrorKind == simulate.KindStopping
			return e.Finish(now, report, p)
		})
		switch domain.CodeOf(err) {
		case "":
			out[i].Code = store.FinishStored
			if was.Lingers {
				out[i].Code = store.FinishReturned
			}
			if was.State == domain.RetryWait {
				d.unarchive(&was, e)
			}
			if !was.OccupiesInstance() && e.OccupiesInstance() {
				d.occupy(known, e)
			}
		case domain.CodeAlreadyFinished:
			out[i].Code = store.FinishDuplicate
		case domain.CodeStaleFence:
			out[i].Code = store.FinishStale
			d.keepStale(now, r.Report)
		default:
			out[i].Code = store.FinishStale
			if report.Outcome == domain.OutcomeNeverStarted && was.State == domain.Due {
				out[i].Code = store.FinishDuplicate
			}
		}
	}
	var moved []*domain.Execution
	for i, r := range reports {
		if out[i].Code != store.FinishNotFound {
			moved = append(moved, d.find(r.Report.ExecutionID))
		}
	}
	woken, ended := d.advance(now, d.parentsOf(moved, false))
	for i, r := range reports {
		if out[i].Code == store.FinishNotFound {
			continue
		}
		e := d.find(r.Report.ExecutionID)
		if j := d.jobs[e.JobID]; out[i].Code == store.FinishStored || out[i].Code == store.FinishReturned {
			out[i].Woken = d.wake(now, j)
			j.freed = false // once per job
			out[i].Woken = append(ofJob(woken, j.id), out[i].Woken...)
			woken = slices.DeleteFunc(woken, func(e domain.Execution) bool { return e.JobID == j.id })
		}
		out[i].Execution = *e
	}
	if len(out) > 0 {
		out[0].Ended = ended
	}
	return out
}

func ofJob(list []domain.Execution, job domain.JobID) (out []domain.Execution) {
	for _, e := range list {
		if e.JobID == job {
			out = append(out, e)
		}
	}
	return out
}

// unarchive: the attempt was archived when it was given up; its result
// replaces that, here or in a new archive.
func (d *database) unarchive(was, e *domain.Execution) {
	if a := d.attempts[attemptKey{e.ID, was.Fence}]; a != nil && a.State == domain.Lost {
		delete(d.attempts, attemptKey{e.ID, was.Fence})
	}
}

func (d *database) keepStale(now time.Time, r domain.Report) {
	a := d.attempts[attemptKey{r.ExecutionID, r.Fence}]
	state := map[domain.Outcome]domain.State{
		domain.OutcomeSucceeded: domain.Succeeded, domain.OutcomeFailed: domain.Failed,
		domain.OutcomeTimedOut: domain.TimedOut, domain.OutcomeCancelled: domain.Cancelled,
	}[r.Outcome]
	if a != nil && a.State == domain.Lost && state != 0 {
		a.State, a.FinishedAt = state, now
	}
}

// cancel is RequestCancel.
func (d *database) cancel(tenant domain.TenantID, id domain.ExecutionID) (domain.Execution, error) {
	now := d.begin()
	e := d.find(id)
	if e == nil || e.TenantID != tenant {
		return domain.Execution{}, domain.Errorf(domain.CodeNotFound, "no such run")
	}
	err := d.move(now, e, func(_ *jobRow, e *domain.Execution) (domain.Effects, error) {
		return e.RequestCancel(now, domain.ReasonKilled, "")
	})
	if err == nil {
		d.advance(now, d.parentsOf([]*domain.Execution{e}, false))
		d.wake(now, d.jobs[e.JobID])
	}
	return *e, err
}
