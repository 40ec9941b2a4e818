package sim

import (
	"cmp"
	"slices"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/completer"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/executor-sdk/simulate"
)

// witness writes down what handlers really did.
type witness struct {
	w       *world
	starts  map[attemptKey]*started
	byRun   map[domain.ExecutionID][]*started
	byJob   map[domain.JobID][]*started // whose handlers have not ended, and some that have
	turns   map[domain.ExecutionID]int  // when each took its slot last
	holding map[domain.ExecutionID]bool // whether each has its slot, as far as its moves were looked at
	turn    int                         // how often slots were taken
}

// started is one call of a handler.
type started struct {
	id        domain.ExecutionID
	fence     int64
	executor  *executor
	boot      string
	lapses    int  // of its instance's lease, before it started
	cancelled bool // its context has ended
	ended     bool
	succeeded bool
	died      bool // with its process
	written   bool // its result is on the disk
}

// begin checks P3: one start per attempt; and where a lost attempt must not be
// repeated, none as long as the end of an earlier one is not known. P8: an
// earlier one that may be repeated was told to stop before.
func (t *witness) begin(e *executor, b *simulate.Begin) *started {
	key := attemptKey{domain.ExecutionID(b.Key.Execution), b.Key.Fence}
	w := t.w
	w.trace(e.name, "handler starts", b.Key.Execution, b.Key.Fence)
	if first := t.starts[key]; first != nil {
		w.fail("P3: execution %d fence %d started at %s and again at %s", key.id, key.fence, first.boot, e.boot)
	}
	s := &started{id: key.id, fence: key.fence, executor: e, boot: e.boot, lapses: w.db.lapses[w.db.boots[e.boot]]}
	row := w.db.find(key.id)
	t.checkOverlap(s, row)
	spec := w.db.jobs[row.JobID].of(row)
	repeat := domain.PolicyOf(spec, spec.Handler == handlerSafe).RetryLost
	w.checkStart(row, key.fence)
	if n := len(t.byRun[key.id]) + 1; !repeat && n > max(1, spec.Retry.MaxAttempts) {
		w.fail("P3: execution %d started %d times, its owner allows %d", key.id, n, spec.Retry.MaxAttempts)
	}
	for _, o := range t.byRun[key.id] {
		if o.fence >= key.fence {
			w.fail("P4: execution %d started with fence %d after fence %d", key.id, key.fence, o.fence)
		}
		switch {
		case !repeat && (o.died || !o.ended):
			w.fail("P3: execution %d fence %d started though the outcome of fence %d is unknown and it must not be repeated", key.id, key.fence, o.fence)
		case !o.ended && !o.died && !o.cancelled && o.executor.paused <= w.now && !w.stepped && !w.unheard(o):
			w.fail("P8: execution %d fence %d started while fence %d runs and was not told to stop", key.id, key.fence, o.fence)
		}
	}
	t.starts[key] = s
	t.byRun[key.id] = append(t.byRun[key.id], s)
	t.byJob[row.JobID] = append(t.byJob[row.JobID], s)
	return s
}

// checkOverlap is P6 as the handlers see it: a run that holds a slot starts
// beside no more handlers than the slot has other places. Those whose lease was
// over since they started do not count: their end cannot be waited for. The
// slot has as many places as the revision of the run says that took its place
// last, which found all others there: an edit may give more places while an
// earlier run has its own, but has not started yet.
func (t *witness) checkOverlap(s *started, row *domain.Execution) {
	w := t.w
	mine := w.db.holder(row)
	limit, last := w.db.jobs[row.JobID].of(mine).SlotLimit(), t.turns[mine.ID]
	if limit == 0 || w.stepped || row.Fence != s.fence || !mine.HoldsSlot {
		return
	}
	live := slices.DeleteFunc(t.byJob[row.JobID], func(o *started) bool { return o.ended || o.died })
	t.byJob[row.JobID] = live
	beside, counted := 0, map[domain.ExecutionID]bool{mine.ID: true}
	for _, o := range live {
		e := w.db.holder(w.db.find(o.id))
		if counted[e.ID] {
			continue
		}
		places := w.db.jobs[e.JobID].of(e).SlotLimit()
		if places == 0 {
			continue // of a revision without a slot
		}
		i := w.db.instances[w.db.boots[o.boot]]
		if o.lapses == w.db.lapses[i.ID] && !w.db.lapsed(i, w.dbNow()) {
			beside++
			counted[e.ID] = true
			if turn := t.turns[e.ID]; turn > last {
				limit, last = places, turn
			}
		}
	}
	if beside >= limit {
		w.fail("P6: execution %d fence %d started beside %d handlers of its job that run under live leases, execution %d is one", s.id, s.fence, beside, live[0].id)
	}
}

// unheard reports whether the attempt was taken from its executor because nobody
// heard of it: an idempotent handler that has started may run a second time beside it.
func (w *world) unheard(s *started) bool {
	a := w.db.attempts[attemptKey{s.id, s.fence}]
	return a != nil && a.Reason == domain.ReasonSessionLost && w.db.jobs[w.db.find(s.id).JobID].of(w.db.find(s.id)).Handler == handlerSafe
}

// checkMove looks at every change of an execution: terminal states are final
// but for late results (P7), fences grow (P4), slots are counted (P6).
func (w *world) checkMove(before, after *domain.Execution) {
	w.trace("db", "move", int64(after.ID), int64(after.State)<<32+after.Fence)
	j := w.db.jobs[after.JobID]
	if before != nil {
		switch {
		case after.Fence < before.Fence || after.Fence > before.Fence+1:
			w.fail("P4: execution %d: fence went from %d to %d", after.ID, before.Fence, after.Fence)
		case before.State.Terminal() && after.State != before.State && (before.State != domain.Lost || after.Fence != before.Fence):
			w.fail("execution %d left the terminal state %s for %s", after.ID, before.State, after.State)
		case before.State.OnInstance() && after.State.OnInstance() && before.Instance != after.Instance && before.Fence == after.Fence:
			w.fail("P4: execution %d moved from one instance to another under fence %d", after.ID, after.Fence)
		case after.State == domain.Running && before.State != domain.Running && before.State != domain.Offered && before.Fence == after.Fence:
			w.fail("execution %d: granted when it was %s", after.ID, before.State)
		case after.State == domain.Running && before.State == domain.Offered && !w.dbNow().Before(before.OfferedAt.Add(domain.OfferTTL)):
			w.fail("P3: execution %d fence %d: granted after the end of its offer", after.ID, after.Fence)
		case after.Attempt > after.MaxAttempts:
			w.fail("execution %d: attempt %d of %d", after.ID, after.Attempt, after.MaxAttempts)
		}
		if before.State == domain.Running && after.State == domain.Succeeded && !after.OnlyPartsMove() {
			if s := w.witness.starts[attemptKey{after.ID, after.Fence}]; s == nil || !s.succeeded {
				w.fail("P4: execution %d succeeded under fence %d, which has not", after.ID, after.Fence)
			}
		}
		if after.State == domain.Lost && before.State != domain.Lost {
			if i := w.db.instances[before.Instance]; after.Reason == domain.ReasonLeaseExpired && i != nil && i.LeaseUntil.After(w.dbNow()) {
				w.fail("P4: execution %d was given up while the lease of its instance lasts", after.ID)
			}
		}
	}
	w.checkMisfire(j, before, after)
	w.checkInterrupted(j, before, after)
	w.checkParent(before, after)
	w.checkSlot(j, before, after)
	w.checkQueue(j, before, after)
	w.checkPaused(j, before, after)
	w.checkMaintenance(before, after)
	w.checkLimits(before, after)
	w.checkDelay(j, before, after)
	w.noteFailure(before, after)
}

// checkMisfire: no run of a schedule gets its first grant beyond its misfire
// threshold, unless the policy lets it, or it is on record that it waited.
func (w *world) checkMisfire(j *jobRow, before, after *domain.Execution) {
	if before == nil || after.State != domain.Running || before.State == domain.Running || after.Attempt != 1 || before.Stage != domain.StageNone {
		return
	}
	ungranted := *after
	ungranted.Attempt, ungranted.Stage = 0, domain.StageNone
	waited := w.db.maintenances().Covers(domain.MaintenanceWait, tenant, executorID, after.FireAt) != nil
	if !waited && domain.Misfired(&ungranted, w.dbNow(), j.of(after)) {
		w.fail("misfire: execution %d of %s is granted beyond its misfire threshold", after.ID, after.FireAt.Format(time.TimeOnly))
	}
}

// checkInterrupted: that its executor stops costs a run that may be repeated no
// attempt, nor do its first losses; and both give one to no other.
func (w *world) checkInterrupted(j *jobRow, before, after *domain.Execution) {
	if before == nil || after.OnlyPartsMove() {
		return
	}
	free := domain.PolicyOf(j.of(before), before.Idempotent).RetryLost
	grew := after.MaxAttempts - before.MaxAttempts
	stopped := after.Reason == domain.ReasonStopped && before.State == domain.Running && !after.Lingers
	lost := after.LostAttempts - before.LostAttempts
	late := before.State == domain.RetryWait && before.LogLines < 0 // the result of a lost attempt may still come
	switch {
	case after.LostAttempts > domain.FreeLosses+max(1, after.MaxAttempts):
		w.fail("P3: execution %d has lost %d attempts of %d", after.ID, after.LostAttempts, after.MaxAttempts)
	case lost == 1 && grew == 1 && free && after.State == domain.RetryWait && after.LostAttempts <= domain.FreeLosses:
	case lost == -1 && grew == -1 && late && (after.LogLines >= 0 || after.State == domain.Due) && before.LostAttempts <= domain.FreeLosses:
	case lost == -1 && grew == 0 && late && after.Reason == domain.ReasonStopped: // once instead of once
	case after.State == domain.Lost && before.State == domain.Running && free && after.LostAttempts < domain.FreeLosses && after.Bound == 0:
		w.fail("P3: execution %d may be repeated, and is lost after %d losses", after.ID, after.LostAttempts)
	case grew != 0 && (grew != 1 || !free || after.Reason != domain.ReasonStopped || after.State != domain.RetryWait):
		w.fail("P3: execution %d may make %d attempts instead of %d, and is %s (%s)", after.ID, after.MaxAttempts, before.MaxAttempts, after.State, after.Reason)
	case stopped && free && grew != 1:
		w.fail("stop: execution %d has used up attempt %d of %d because its executor stopped", after.ID, after.Attempt, after.MaxAttempts)
	}
}

func (w *world) checkSlot(j *jobRow, before, after *domain.Execution) {
	limit := j.of(after).SlotLimit()
	if after.State.OnInstance() && limit > 0 && !after.HoldsSlot {
		w.fail("P6: execution %d is %s without a slot", after.ID, after.State)
	}
	if after.State.Terminal() && after.HoldsSlot && !after.Lingers {
		w.fail("P6: execution %d is %s and holds a slot", after.ID, after.State)
	}
	took := after.HoldsSlot && (before == nil || !before.HoldsSlot)
	if took {
		w.witness.turn++
		w.witness.turns[after.ID] = w.witness.turn
	}
	w.witness.holding[after.ID] = after.HoldsSlot
	holders, found := 0, 0 // found: by this one, and not by those that took theirs later in the same transaction
	for _, id := range w.db.alive {
		if e := w.db.find(id); e.JobID == j.id && e.HoldsSlot {
			holders++
			if w.witness.holding[id] {
				found++
			}
		}
	}
	if took && found > limit && limit > 0 || holders != j.holders {
		w.fail("P6: job %d: %d runs hold its slot, its row says %d of %d", j.id, holders, j.holders, limit)
	}
}

// checkClaim: whoever plans holds the partition in the database's time.
func (w *world) checkClaim(p store.ClaimDueTriggersParams) {
	for _, h := range p.Partitions {
		if l := w.db.leases[h.Partition]; l.Term != h.Term || !l.Until.After(w.dbNow()) {
			w.fail("lease: %s planned partition %d under term %d, whose row says term %d of %s", w.claimer.name, h.Partition, h.Term, l.Term, l.BootID)
		}
	}
	w.checkTenures()
}

// checkTenures: while nobody sets the database's clock, no two nodes believe
// that they hold the same partition.
func (w *world) checkTenures() {
	if w.stepped {
		return
	}
	var owner [domain.Partitions]*node
	for _, n := range w.nodes {
		if !n.up {
			continue
		}
		for _, h := range n.leases.Held() {
			if o := owner[h.Partition]; o != nil {
				w.fail("lease: %s and %s hold partition %d", o.name, n.name, h.Partition)
			}
			owner[h.Partition] = n
		}
	}
}

// checkAcked is P5: what the executor may forget now stands in a row. A process
// that died before the end of a handler was on its disk left nothing to forget:
// what is acknowledged to the next one is that the outcome is unknown.
func (w *world) checkAcked(x *executor, acks []completer.Ack) {
	for _, a := range acks {
		e := w.db.find(a.ID)
		key := attemptKey{a.ID, a.Fence}
		s := w.witness.starts[key]
		switch {
		case e == nil || e.Fence > key.fence: // a newer attempt exists
		case e.State == domain.Running || e.State == domain.Lost && s != nil && s.succeeded && (s.written || s.boot == x.boot):
			w.fail("P5: the result of execution %d fence %d was acknowledged, and its row is %s", key.id, key.fence, e.State)
		}
	}
}

// checkEnd looks at what is left after all has healed.
func (w *world) checkEnd() {
	if !w.idle() {
		w.failUnfinished()
	}
	w.checkFires()
	w.checkTimers()
	w.checkAlerts()
	w.checkDelays()
	w.checkFamilies()
	w.checkAttempts()
	for _, id := range w.db.order {
		e := w.db.find(id)
		s := w.witness.starts[attemptKey{id, e.Fence}]
		if e.State == domain.Lost && s != nil && s.ended && s.written {
			w.fail("P5: execution %d fence %d ended, and its result was lost", id, e.Fence)
		}
		if e.State == domain.Succeeded && e.Stage == domain.StageNone && (s == nil || !s.succeeded) {
			w.fail("execution %d is said to have succeeded, and has not", id)
		}
	}
	for _, id := range w.db.jobOrder {
		if j := w.db.jobs[id]; j.holders != 0 || len(j.waiters) != 0 {
			w.fail("P6: job %d has %d holders and %d waiters after its last run", id, j.holders, len(j.waiters))
		}
	}
}

// checkAttempts: no two attempts of a run have one number.
func (w *world) checkAttempts() {
	archived := map[domain.ExecutionID][]domain.Attempt{}
	for key, a := range w.db.attempts {
		archived[key.id] = append(archived[key.id], *a)
	}
	for _, id := range w.db.order {
		list := archived[id]
		slices.SortFunc(list, func(a, b domain.Attempt) int { return cmp.Compare(a.Fence, b.Fence) })
		list = domain.Attempts(w.db.find(id), list)
		for n := 1; n < len(list); n++ {
			if a, b := &list[n-1], &list[n]; a.Number >= b.Number {
				w.fail("execution %d has attempt %d with fence %d, and then attempt %d with fence %d", id, a.Number, a.Fence, b.Number, b.Fence)
			}
		}
	}
}

func (w *world) failUnfinished() {
	for _, id := range w.db.jobOrder {
		if j := w.db.jobs[id]; !j.trigger.NextFireAt.Equal(domain.Never) {
			w.fail("liveness: job %d still fires at %s", id, j.trigger.NextFireAt.Format(time.TimeOnly))
		}
	}
	for _, t := range w.db.timers {
		w.fail("liveness: timer %d of %s is pending", t.ID, t.FireAt.Format(time.TimeOnly))
	}
	for _, id := range w.db.living() {
		e := w.db.find(id)
		w.fail("liveness: execution %d of job %d is %s (%s), wakes at %s, now %s", id, e.JobID, e.State, e.Reason, e.WakeAt.Format(time.TimeOnly), w.dbNow().Format(time.TimeOnly))
	}
	for _, x := range w.execs {
		if !x.alive || x.machine.Owed() > 0 {
			w.fail("liveness: %s owes %d results", x.name, x.machine.Owed())
		}
	}
}

// checkFires is P1 and P2: each point of the grid has one row.
func (w *world) checkFires() {
	rows := map[occurrence]int{}
	for _, id := range w.db.order {
		if e := w.db.find(id); !e.IsPart() && e.Cause != domain.CauseTimer {
			rows[occurrence{e.JobID, e.FireAt.UnixMilli(), ""}]++
		}
	}
	for _, id := range w.db.jobOrder {
		j := w.db.jobs[id]
		for _, p := range j.periods {
			s := j.specs[p.revision-1].Schedule
			if s.Kind != domain.ScheduleFixedRate {
				continue
			}
			for at := s.Anchor.Add(s.Every); at.Before(s.EndAt) && (p.to.IsZero() || !at.After(p.to)); at = at.Add(s.Every) {
				if n := rows[occurrence{id, at.UnixMilli(), ""}]; n != 1 && at.After(p.from) {
					w.fail("P1, P2: job %d has %d rows for %s", id, n, at.Format(time.TimeOnly))
				}
			}
		}
	}
	if dup := slices.IndexFunc(w.db.order, func(id domain.ExecutionID) bool {
		e := w.db.find(id)
		return rows[occurrence{e.JobID, e.FireAt.UnixMilli(), ""}] > 1
	}); dup >= 0 {
		w.fail("P2: execution %d shares its fire time", w.db.order[dup])
	}
}
