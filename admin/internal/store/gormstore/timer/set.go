package timer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"gorm.io/gorm"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/engine"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

// SetTimers ends a transaction at atOnce timers, at store.MaxListedInput bytes of inputs, and
// before a key that comes again.
func (s *Timers) SetTimers(ctx context.Context, p store.SetTimersParams) []store.SetTimerResult {
	results := make([]store.SetTimerResult, len(p.Timers))
	for from := 0; from < len(p.Timers); {
		seen := map[record.TimerName]bool{}
		to, bytes := from, 0
		for ; to < len(p.Timers) && to-from < s.atOnce() && bytes < store.MaxListedInput; to++ {
			name := record.TimerName{Job: int64(p.Timers[to].JobID), Key: p.Timers[to].Key}
			if seen[name] {
				break
			}
			seen[name] = true
			bytes += len(p.Timers[to].Input)
		}
		set := &timerSet{s: s, held: p.Held, asked: p.Timers[from:to]}
		did, err := db.Value(ctx, s.RunBulk, "set timers", set.run)
		copy(results[from:to], did)
		if err != nil {
			if domain.Is(err, domain.CodeUnavailable) && !errors.Is(err, domain.ErrContended) {
				to = len(results) // the others would wait for it too, one after the other
			}
			for i := range results[from:to] {
				results[from+i] = store.SetTimerResult{Err: err}
			}
		}
		if p.Brief {
			for i := range results[from:to] {
				shorten(&results[from+i].View)
			}
		}
		from = to
	}
	if !p.Brief {
		s.nameAnswers(ctx, domain.Collect(results, func(r *store.SetTimerResult) *store.TimerView { return &r.View }))
	}
	return results
}

// shorten takes the texts out of a view, so that ten thousand of them stay small.
func shorten(v *store.TimerView) {
	v.Input, v.Note, v.RequestedBy, v.Trace = nil, "", "", ""
	if v.Run != nil {
		run := withoutTexts(v.Run)
		run.Note, run.Message, run.RequestedBy, run.Delays, run.Picks = "", "", "", nil, nil
		v.Run = &run
	}
}

// withoutTexts is a run without what may be large.
func withoutTexts(e *domain.Execution) domain.Execution {
	run := *e
	run.Input, run.Output, run.Error, run.Stack = nil, nil, "", ""
	return run
}

// nameAnswers adds labels and names to the views of what was done; those without an
// id are empty.
func (s *Timers) nameAnswers(ctx context.Context, views []*store.TimerView) {
	views = slices.DeleteFunc(views, func(v *store.TimerView) bool { return v.ID == 0 })
	for part := range slices.Chunk(views, timersAtOnce) {
		err := s.Look(ctx, "name timers", func(ctx context.Context, q db.Querier, _ *gorm.DB) error { return s.nameTimers(ctx, q, part) })
		if err != nil {
			s.Logger.Warn("the names of timers cannot be read", "err", err) // what was asked for is done
		}
	}
}

// timerSet is one transaction of SetTimers. A timer is inserted before the runs of
// its key are looked at: from then on nobody else can insert one of that key, or
// claim one, so that what the look finds stays true until the commit.
type timerSet struct {
	s       *Timers
	held    []int
	earlier []domain.TimerOutcome // of the last try
	asked   []store.SetTimer
	results []store.SetTimerResult

	tries int
	t     *db.Tx
	rows  []*record.TimerRow
	// counts is how pending timers and their bytes change.
	counts record.TimerCounts
	rooms  map[domain.TenantID]*room
	// paid are the timers with reserved bytes.
	paid map[int]bool
}

// run may come again after a commit of unknown outcome: what it finds of its own
// it has set before.
func (w *timerSet) run(t *db.Tx) ([]store.SetTimerResult, error) {
	w.t, w.counts, w.results = t, record.TimerCounts{}, make([]store.SetTimerResult, len(w.asked))
	w.rooms, w.paid = map[domain.TenantID]*room{}, map[int]bool{}
	w.tries++
	fresh, err := w.withJobs()
	if err != nil {
		return nil, err
	}
	if fresh, err = w.insert(fresh); err != nil {
		return nil, err
	}
	if fresh, err = w.withoutRuns(fresh); err != nil {
		return nil, err
	}
	if fresh, err = w.withinQuotas(fresh); err != nil {
		return nil, err
	}
	timers := make([]domain.Timer, len(fresh))
	for n, i := range fresh {
		timers[n] = w.results[i].View.Timer
		w.counts.Add(w.rows[i])
	}
	if err := record.InsertLabels(t, timers); err != nil {
		return nil, err
	}
	return w.results, w.counts.Save(t)
}

// partitionOf is that of the id, or one of the setter's for a timer that is due
// before another node has looked.
func partitionOf(timer *domain.Timer, now time.Time, held []int) int {
	own := domain.PartitionOf(domain.JobID(timer.ID))
	if len(held) == 0 || timer.FireAt.Sub(now) > store.SoonTimer || slices.Contains(held, own) {
		return own
	}
	return held[own%len(held)]
}

// mine answers a timer that an earlier try has set.
func (w *timerSet) mine(i int, view store.TimerView) {
	w.results[i] = store.SetTimerResult{Outcome: cmp.Or(w.earlier[i], domain.TimerCreated), View: view}
}

// again reports whether the request of this name has set the timer before. It sets no
// second timer, also after a cancellation.
func (w *timerSet) again(i int, request string) bool {
	return request != "" && w.asked[i].RequestID == request
}

// refuse answers a timer that is not set.
func (w *timerSet) refuse(i int, err error, view store.TimerView) {
	w.results[i] = store.SetTimerResult{View: view, Err: err}
}

// withJobs makes the rows, and returns those whose job is there.
func (w *timerSet) withJobs() (fresh []int, err error) {
	ids := domain.Collect(w.asked, func(a *store.SetTimer) domain.JobID { return a.JobID })
	jobsOf := w.s.engine.ShareTimerJobs
	if w.tries > 1 { // others set the same keys: they would lock each other out again
		jobsOf = w.s.engine.LockTimerJobs
	}
	jobs, now, err := jobsOf(w.t, ids)
	if err != nil {
		return nil, err
	}
	w.rows, w.earlier = make([]*record.TimerRow, len(w.asked)), make([]domain.TimerOutcome, len(w.asked))
	for i := range w.asked {
		timer := w.asked[i].Timer
		timer.Partition = partitionOf(&timer, now, w.held)
		w.rows[i], w.earlier[i] = record.ToTimerRow(&timer), w.results[i].Outcome
		w.results[i] = store.SetTimerResult{Outcome: domain.TimerCreated, View: store.TimerView{Timer: timer}}
		job, err := jobs.Of(timer.TenantID, timer.JobID)
		if err == nil && (job.State == domain.JobDeleted || job.Kind != domain.JobTimer) {
			err = db.NotFound("job", timer.JobID)
		}
		if err != nil { // it is that job's alone
			w.refuse(i, err, store.TimerView{})
			continue
		}
		fresh = append(fresh, i)
	}
	return fresh, nil
}

// insert writes those whose keys no pending timer has, and decides about the others.
// It returns those that were written.
func (w *timerSet) insert(fresh []int) ([]int, error) {
	for range 5 {
		rows := make([]*record.TimerRow, len(fresh))
		for n, i := range fresh {
			rows[n] = w.rows[i]
		}
		err := engine.Savepoint(w.t, func() error { return record.TimerTable.Insert(w.t, rows) })
		if !db.IsDuplicate(err) {
			return fresh, err
		}
		names := make([]record.TimerName, len(fresh))
		for n, i := range fresh {
			names[n] = w.rows[i].Name()
		}
		slices.SortFunc(names, func(a, b record.TimerName) int { return cmp.Or(cmp.Compare(a.Job, b.Job), cmp.Compare(a.Key, b.Key)) })
		there, err := readTimers(w.t.Ctx, w.t.Conn, timerHeads, w.t.Dialect.ForUpdate(), 0, names)
		if err != nil {
			return nil, err
		}
		var gone []int64
		kept := make([]int, 0, len(fresh))
		for _, i := range fresh {
			old := there[w.rows[i].Name()]
			switch {
			case old == nil:
				kept = append(kept, i)
			case old.ID == w.rows[i].ID: // of an earlier try
				w.mine(i, pendingView(old))
			case w.again(i, old.RequestID):
				w.results[i] = store.SetTimerResult{Outcome: domain.TimerKept, View: pendingView(old)}
			case w.asked[i].Policy == domain.TimerReplace:
				fits, err := w.fits(i, 0, w.rows[i].Bytes()-old.Bytes(), pendingView(old))
				if err != nil {
					return nil, err
				}
				if fits {
					w.results[i].Outcome = domain.TimerReplaced
					gone, kept = append(gone, old.ID), append(kept, i)
					w.counts.Remove(old)
				}
			default:
				w.stays(i, pendingView(old))
			}
		}
		if err := deleteTimers(w.t, gone); err != nil {
			return nil, err
		}
		fresh = kept // where nothing was there any more, it was claimed or cancelled
	}
	return nil, domain.Errorf(domain.CodeUnavailable, "set timers: %w", domain.ErrContended) // other keys are not concerned
}

// stays answers a timer in whose place another one stays.
func (w *timerSet) stays(i int, view store.TimerView) {
	if w.asked[i].Policy != domain.TimerReject {
		w.results[i] = store.SetTimerResult{Outcome: domain.TimerKept, View: view}
		return
	}
	w.refuse(i, domain.Errorf(domain.CodeTimerExists, "there is a timer %q already", view.Key), view)
}

// deleteTimers deletes pending timers with their labels.
func deleteTimers(t *db.Tx, ids []int64) error {
	if len(ids) == 0 {
		return nil
	}
	_, err := t.Exec(t.Ctx, "DELETE FROM timers WHERE id IN ("+db.IDList(ids)+")")
	if err == nil {
		_, err = t.Exec(t.Ctx, "DELETE FROM timer_labels WHERE timer_id IN ("+db.IDList(ids)+")")
	}
	if err != nil {
		return fmt.Errorf("delete timers: %w", err)
	}
	return nil
}

// withoutRuns takes those back whose keys have runs that stand in the way, and
// returns the others.
func (w *timerSet) withoutRuns(fresh []int) ([]int, error) {
	byTenant := map[domain.TenantID][]record.TimerName{}
	for _, i := range fresh {
		tenant := w.asked[i].TenantID
		byTenant[tenant] = append(byTenant[tenant], w.rows[i].Name())
	}
	runs, requests := map[record.TimerName]*record.ExecutionRow{}, map[int64]string{}
	for tenant, names := range byTenant {
		some, err := requestsOf(w.t.Ctx, w.t.Conn, tenant, names)
		if err != nil {
			return nil, err
		}
		maps.Copy(requests, some)
		found, err := w.s.timerRuns(w.t.Ctx, w.t.Conn, tenant, slices.Collect(maps.Keys(some)))
		if err != nil {
			return nil, err
		}
		for name, r := range found {
			runs[name] = r
		}
	}
	var gone []int64
	kept := make([]int, 0, len(fresh))
	for _, i := range fresh {
		run := runs[w.rows[i].Name()]
		free := run == nil
		if !free {
			var err error
			if free, err = w.pass(i, partialRun(run), requests[run.ID]); err != nil {
				return nil, err
			}
		}
		if free {
			kept = append(kept, i)
		} else {
			gone = append(gone, w.rows[i].ID)
		}
	}
	return kept, deleteTimers(w.t, gone)
}

// pass reports whether a timer may be set although its key has a run. request is the name
// of the request that has set the timer of that run.
func (w *timerSet) pass(i int, there store.TimerView, request string) (free bool, err error) {
	switch {
	case w.again(i, request):
		w.results[i] = store.SetTimerResult{Outcome: domain.TimerKept, View: there}
		return false, nil
	case there.ID == w.asked[i].ID: // of an earlier try, and claimed meanwhile
		w.mine(i, there)
		return false, nil
	case there.Run.State == domain.Cancelled:
		return true, nil
	case there.Run.State == domain.Cancelling && w.asked[i].Policy == domain.TimerKeep: // nobody wants that one
		w.refuse(i, domain.Errorf(domain.CodeTimerStarted, "the run %s of the timer %q is being cancelled; the key is free when it has stopped", there.Run.ID, there.Key), there)
		return false, nil
	case w.asked[i].Policy != domain.TimerReplace:
		w.stays(i, there)
		return false, nil
	case there.Run.State.Terminal():
		return true, nil
	}
	if fits, err := w.fits(i, 0, w.rows[i].Bytes(), there); !fits || err != nil {
		return false, err
	}
	w.paid[i] = true
	_, err = w.s.engine.EndTimerRun(w.t, there.TenantID, there.Run.ID, "replaced by a new timer of its key")
	switch {
	case err == nil:
		w.results[i].Outcome = domain.TimerReplaced
	case domain.Is(err, domain.CodeTimerStarted):
		w.refuse(i, err, there)
		return false, nil
	case domain.Is(err, domain.CodeAlreadyFinished), domain.Is(err, domain.CodeNotFound): // it ended meanwhile
		err = nil
	}
	return err == nil, err
}
