package sim

import (
	"slices"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/run"
)

// lateStart is how long after a pause or deletion was acknowledged something
// may still start (P11).
const lateStart = time.Second

// checkPaused is P11 in the database: nothing of a schedule is offered or
// granted while its job is paused, nothing at all when it is deleted.
func (w *world) checkPaused(j *jobRow, before, after *domain.Execution) {
	if before == nil || j.state == domain.JobEnabled {
		return
	}
	offered := after.State.OnInstance() && after.State != domain.Cancelling && after.State != before.State &&
		(before.State == domain.Due || before.State == domain.RetryWait || before.State == domain.Offered)
	if offered && (j.state == domain.JobDeleted || run.Scheduled(after) && before.Attempt == 0) {
		w.fail("P11: execution %d went from %s to %s when its job was not enabled", after.ID, before.State, after.State)
	}
}

// checkStart looks at a handler that starts: not what was sent too late (P11,
// noteSent), and nothing before its time. True time is the world's: no run
// starts before its own, but for leaps of the database's clock that are too
// small to be doubted, or were confirmed.
func (w *world) checkStart(e *domain.Execution, fence int64) {
	if late, sent := w.sentLate[attemptKey{e.ID, fence}]; sent {
		w.fail("P11: execution %d started, which was sent to its instance %s after its job was stopped", e.ID, late)
	}
	if early := e.FireAt.Sub(w.epoch.Add(w.now)); early > w.believed+time.Millisecond {
		w.fail("F24: execution %d of %s starts %s early", e.ID, e.FireAt.Format(time.TimeOnly), early)
	}
}

// noteSent is P11 on the way out: whatever lets a handler start is not sent
// later than a second after a pause or deletion was acknowledged. What is sent
// later all the same, as the grant of an attempt that its executor has ended
// already, must not let it start.
func (w *world) noteSent(n *node, e *domain.Execution) {
	j := w.db.jobs[e.JobID]
	if j.stopped == 0 || w.now <= j.stopped+lateStart || n.thawed+lateStart > w.now {
		return
	}
	if j.state == domain.JobDeleted || run.Scheduled(e) && e.Attempt <= 1 {
		w.sentLate[attemptKey{e.ID, e.Fence}] = w.now - j.stopped
	}
}

// checkLimits: whoever is offered under a limit that everybody knows of finds
// room under it.
func (w *world) checkLimits(before, after *domain.Execution) {
	if before == nil || before.State.OnInstance() || !after.State.OnInstance() || after.OnlyPartsMove() {
		return
	}
	for _, l := range w.db.limits {
		if l.max == 0 || l.strictFrom > w.now || l.key.Executor != 0 && l.key.Executor != after.Executor {
			continue
		}
		on := 0
		for _, id := range w.db.alive {
			if e := w.db.find(id); e.OccupiesInstance() && (l.key.Executor == 0 || e.Executor == l.key.Executor) {
				on++
			}
		}
		if on > l.max {
			w.fail("P6: %d runs are on instances under a limit of %d", on, l.max)
		}
	}
}

// checkQueue: a fire of the schedule waits for the slot of its job only if fewer runs do
// than may, and is discarded for that reason only if as many wait. An edit may have
// lowered the bound, or raised it.
func (w *world) checkQueue(j *jobRow, before, after *domain.Execution) {
	fires := func(e *domain.Execution) bool {
		return e != nil && e.Cause == domain.CauseSchedule && e.State == domain.Due && e.Attempt == 0
	}
	least, most := int64(domain.MaxMaxWaiting), int64(0)
	for _, s := range j.specs {
		least, most = min(least, s.QueueLimit()), max(most, s.QueueLimit())
	}
	if before != nil && after.State == domain.Discarded && after.Reason == domain.ReasonQueueFull {
		if !fires(before) || int64(len(j.waiters)) < least {
			w.fail("queue: execution %d is discarded while %d wait, of %d", after.ID, len(j.waiters), least)
		}
		return
	}
	waiting := int64(0)
	for _, id := range j.waiters {
		if e := w.db.find(id); fires(e) && j.of(e).Blocking != domain.BlockCover && !heldByMaintenance(e) {
			waiting++
		}
	}
	if waiting > most {
		w.fail("queue: %d fires of job %d wait for its slot, of %d", waiting, j.id, most)
	}
}

// heldByMaintenance reports whether maintenance has kept the run from starting: it has a
// place in the queue whatever its length.
func heldByMaintenance(e *domain.Execution) bool {
	return e.Reason == domain.ReasonMaintenance || slices.ContainsFunc(e.Delays, func(d domain.Delay) bool { return d.Reason == domain.ReasonMaintenance })
}

// checkDelay: a run of a fixed delay is planned when the one before has ended,
// and for its delay after that.
func (w *world) checkDelay(j *jobRow, before, after *domain.Execution) {
	spec := j.of(after)
	if spec.Schedule.Kind != domain.ScheduleFixedDelay {
		return
	}
	if before != nil {
		if after.ID == j.lastRun && after.State.Terminal() && !before.State.Terminal() {
			j.lastEnd = w.dbNow()
		}
		j.revived = j.revived || before.State.Terminal() && !after.State.Terminal() // a late failure is repeated
		return
	}
	if after.State.Terminal() { // it was passed over, and the next one counts from now
		j.lastEnd = time.Time{}
		return
	}
	for _, id := range w.db.alive {
		e := w.db.find(id)
		if e.ID != after.ID && e.JobID == j.id && run.Scheduled(e) && !e.State.Terminal() && !j.revived && j.delayedSince(e.Revision) {
			w.fail("fixed delay: execution %d is planned while %d is %s", after.ID, e.ID, e.State)
		}
	}
	j.lastRun = after.ID
	// An edit or a resumption counts from itself.
	if from := j.periods[len(j.periods)-1].from; !j.lastEnd.After(from) || w.stepped || j.revived {
		return
	}
	if want := j.lastEnd.Add(spec.Schedule.Every); !after.FireAt.Equal(want) {
		w.fail("fixed delay: execution %d fires %s after its time", after.ID, after.FireAt.Sub(want))
	}
}

// delayedSince says whether all revisions from this one on have a fixed delay.
func (j *jobRow) delayedSince(revision int64) bool {
	return !slices.ContainsFunc(j.specs[revision-1:], func(s *domain.JobSpec) bool { return s.Schedule.Kind != domain.ScheduleFixedDelay })
}

// checkDelays: no fixed delay has stood still.
func (w *world) checkDelays() {
	for _, id := range w.db.jobOrder {
		j := w.db.jobs[id]
		if e := w.db.find(j.awaits); j.state == domain.JobEnabled && j.awaits != 0 && (e == nil || e.State.Terminal()) {
			w.fail("fixed delay: job %d waits for execution %d, which is no more", id, j.awaits)
		}
	}
}

// failureAlerts are the states that somebody has to know of.
var failureAlerts = map[domain.State]domain.AlertKind{
	domain.Failed: domain.AlertRunFailed, domain.TimedOut: domain.AlertRunTimedOut, domain.Lost: domain.AlertRunLost,
}

func (w *world) noteFailure(before, after *domain.Execution) {
	if domain.MissedUntold(after) && (before == nil || before.State != after.State) {
		w.failures = append(w.failures, alertKey(domain.AlertRunMissed, after))
	}
	if after.State == domain.Discarded && after.Reason == domain.ReasonQueueFull && (before == nil || before.State != after.State) {
		w.failures = append(w.failures, domain.PileKey(after.JobID, w.dbNow()))
	}
	kind := failureAlerts[after.State]
	if after.State == domain.Succeeded && wishOf(after.JobID) != domain.SuccessUnwanted {
		kind = domain.AlertRunSucceeded
	}
	if kind != "" && before != nil && before.State != after.State && !after.IsPart() {
		w.failures = append(w.failures, alertKey(kind, after))
	}
}

// checkAlerts is P7: each end that somebody has to know of has its alert, under
// a key of its own, and nothing else has one.
func (w *world) checkAlerts() {
	due := map[string]bool{}
	for _, key := range w.failures {
		due[key] = true
		if !w.db.alerts[key] {
			w.fail("P7: nobody is told of %s", key)
		}
	}
	for _, key := range w.db.alertOrder {
		// Those of a pile are also written at the end of a run that took too long.
		if !due[key] && !strings.HasPrefix(key, string(domain.AlertRunsPileUp)) {
			w.fail("P7: somebody is told of %s, which has not happened", key)
		}
	}
}
