package ledger

import (
	"context"
	"fmt"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/verify"
)

const (
	// idMargin is how far the clocks of nodes, which are in the ids, may be off
	// the database's, and how far ahead rows are written.
	idMargin = 10 * time.Minute
	// shortRun is less than the lease of an instance.
	shortRun = 10 * time.Second
	// overdueAfter is how long after its wake-up a living row may lie still.
	overdueAfter = time.Minute
	// stopGrace is how long after a pause or a delete an offer may still be
	// made (promise P11), in milliseconds.
	stopGrace = 1000
)

// readExecutions is the second pass: is each row right by itself? Rows that
// were written late belong to earlier fire times, hence up to the present.
func (a *account) readExecutions(ctx context.Context, r store.LedgerReader) error {
	after := domain.ExecutionID(domain.IDFloor(a.from.Add(-idMargin)))
	until := domain.ExecutionID(domain.IDFloor(a.now.Add(idMargin)))
	from, to := a.from.UnixMilli(), a.to.UnixMilli()
	return r.Executions(ctx, after, until, func(e *store.LedgerEntry) error {
		if e.FireAt >= from && e.FireAt <= to {
			a.judge(e)
		}
		return nil
	})
}

// judge looks at one row. Imported runs had ended before they were known here, and nothing was
// promised about them.
func (a *account) judge(e *store.LedgerEntry) {
	if e.Cause == domain.CauseImport {
		a.imported++
		a.report.Asked-- // the first pass took it for a run that was asked for
		return
	}
	scheduled := e.Cause == domain.CauseSchedule || e.Cause == domain.CauseMisfire
	line := a.jobs[e.JobID]
	if line == nil {
		line = &jobLine{}
	}
	if e.FireAt >= line.from {
		a.noteFamily(e)
	}
	if _, ok := a.unplanned[e.ID]; ok {
		delete(a.unplanned, e.ID)
		// Rows are planned seconds ahead. One that was cancelled then has been there, and
		// stays when its job is paused or edited before its time.
		if e.State != domain.Cancelled || e.GrantedAt != 0 || e.FinishedAt > e.FireAt {
			a.phantom(e.JobID, e.ID, e.FireAt)
		}
	}
	a.count(e, scheduled)
	a.judgeTimes(e, scheduled)
	a.judgeLate(e, line)
	a.judgeSlot(e, line)
	if e.Unlisted {
		a.find(verify.Unfinished, e.JobID, e.ID, e.FireAt, "the row is %s and waits for a start, but it is not among the waiting runs: no node loads it", e.State)
	}
	if e.WakeAt != 0 && e.WakeAt < a.now.UnixMilli()-overdueAfter.Milliseconds() {
		a.find(verify.Unfinished, e.JobID, e.ID, e.FireAt, "the row is %s, and nobody has looked at it since %s",
			e.State, time.UnixMilli(e.WakeAt).UTC().Format(time.RFC3339))
	}
}

// count sums up what became of the fire times.
func (a *account) count(e *store.LedgerEntry, scheduled bool) {
	switch {
	case !scheduled, e.Parent != 0:
	case e.State == domain.Missed || e.State == domain.Discarded || e.State == domain.Excluded || e.State == domain.Cancelled && e.Attempt == 0:
		a.report.Explained[explanation(e)]++
	case e.State.Terminal():
		a.report.Ran++
	default:
		a.report.Explained["in progress: "+e.State.String()]++
	}
	if e.Attempt > 1 {
		a.report.Repeats += int(e.Attempt) - 1
	}
}

func explanation(e *store.LedgerEntry) string {
	if e.Reason == "" {
		return e.State.String()
	}
	return e.State.String() + ": " + string(e.Reason)
}

// judgeTimes: the stamps of the database's clock are in their order.
func (a *account) judgeTimes(e *store.LedgerEntry, scheduled bool) {
	if scheduled && e.GrantedAt != 0 && e.GrantedAt < e.FireAt {
		a.find(verify.Early, e.JobID, e.ID, e.GrantedAt, "granted %d ms before its fire time", e.FireAt-e.GrantedAt)
	}
	if e.State == domain.Missed && e.Reason == domain.ReasonMisfire && e.FinishedAt < e.FireAt {
		a.find(verify.Gap, e.JobID, e.ID, e.FireAt, "called a misfire %d ms before its fire time", e.FireAt-e.FinishedAt)
	}
	if e.State == domain.Succeeded && e.Stage == domain.StageNone && (e.Attempt == 0 || e.GrantedAt == 0 || e.FinishedAt < e.GrantedAt) {
		a.find(verify.FalseResult, e.JobID, e.ID, e.FireAt, "succeeded in attempt %d, granted at %d, finished at %d", e.Attempt, e.GrantedAt, e.FinishedAt)
	}
}

// judgeLate measures how late the only attempt of a run started. The start is
// the executor's clock; it counts from the grant where that clock is behind.
func (a *account) judgeLate(e *store.LedgerEntry, line *jobLine) {
	if e.Cause != domain.CauseSchedule || e.Attempt != 1 || e.GrantedAt == 0 || e.Part == domain.PartAfter {
		return
	}
	late := time.Duration(max(e.StartedAt, e.GrantedAt)-e.FireAt-line.jitter) * time.Millisecond
	late = max(late, 0)
	inTime := e.FireAt + line.jitter + line.threshold
	switch {
	case e.FirstDelay != 0 && e.FirstDelay <= inTime:
		a.waited.add(late) // for its slot, a limit or an instance, as is on record
		return
	case line.threshold != 0 && e.GrantedAt > inTime && e.Parent == 0:
		a.find(verify.Late, e.JobID, e.ID, e.GrantedAt, "granted %s after its fire time, beyond the misfire threshold, and nothing that it waited for was on record by then",
			time.Duration(e.GrantedAt-e.FireAt)*time.Millisecond)
	}
	a.late.add(late)
	a.report.AddStart(time.UnixMilli(e.FireAt), late)
}

// judgeSlot: no run was granted while its job's only slot was taken, and none
// was offered after its job had stopped.
func (a *account) judgeSlot(e *store.LedgerEntry, line *jobLine) {
	if e.Stage != domain.StageNone {
		a.judgeParentSlot(e, line)
		return
	}
	if e.GrantedAt == 0 {
		return
	}
	if e.Parent != 0 { // its parent holds the slot
		a.judgeStopped(e, line)
		return
	}
	// A run that was lost gave its slot away, and may be finished by a late
	// result: only runs too short to have been lost tell something.
	short := line.finished-line.granted < shortRun.Milliseconds()
	if line.single && short && line.granted != 0 && e.GrantedAt >= line.granted && e.GrantedAt < line.finished {
		a.find(verify.Overlap, e.JobID, e.ID, e.GrantedAt, "granted while the run before it held the job's only slot")
	}
	if e.GrantedAt >= line.granted {
		line.granted, line.finished = e.GrantedAt, e.FinishedAt
	}
	a.judgeStopped(e, line)
}

// judgeStopped: no first attempt was offered after the job had stopped.
func (a *account) judgeStopped(e *store.LedgerEntry, line *jobLine) {
	if line.life == nil || e.Attempt > 1 {
		return
	}
	offered := verify.Time(e.OfferedAt * 1000)
	paused, deleted := line.life.Stopped(offered-stopGrace*1000, offered)
	if deleted || paused && (e.Cause == domain.CauseSchedule || e.Cause == domain.CauseMisfire) {
		a.find(verify.Phantom, e.JobID, e.ID, e.OfferedAt, "offered more than a second after its job was paused or deleted")
	}
}

// sum finishes the report.
func (a *account) sum() {
	r := a.report
	r.Name, r.From, r.To = "database", a.from.UTC(), a.to.UTC()
	r.Outside, r.Waited = a.late.stats(), a.waited.stats()
	if r.Rows == 0 && r.Expected == 0 {
		r.Notes = append(r.Notes, "no fire time was due and nothing was asked for: there was nothing to judge")
	}
	r.Notes = append(r.Notes, "the rows are compared with the schedules, not with witnesses: what handlers did is not judged")
	if a.imported > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("%d runs were imported after they had ended: they are not judged", a.imported))
	}
	if a.deleted > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("of %d jobs runs were deleted before their age, by a rule of retention or by hand: earlier fire times are not judged", a.deleted))
	}
	if a.forgotten > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("of %d jobs old revisions are not kept any more: earlier fire times are not judged", a.forgotten))
	}
	if a.uncertain > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("%d jobs are older than their record of pauses: what they had to do before it is not known", a.uncertain))
	}
	r.Sort()
}
