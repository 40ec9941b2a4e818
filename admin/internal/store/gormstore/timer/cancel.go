package timer

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"gorm.io/gorm"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/engine"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

// CancelTimers takes atOnce keys, and store.MaxListedInput bytes of inputs, in a transaction
// that ends the pending ones. It cancels the runs of the others that have not ended one by one.
func (s *Timers) CancelTimers(ctx context.Context, p store.CancelTimersParams) []store.CancelTimerResult {
	results := make([]store.CancelTimerResult, len(p.Keys))
	first := make(map[string]int, len(p.Keys)) // where each key stands first
	var keys []string
	for i, key := range p.Keys {
		if _, again := first[key]; !again {
			first[key] = i
			keys = append(keys, key)
		}
	}
	answer := func(key string, r store.CancelTimerResult) {
		if p.Brief {
			shorten(&r.View)
		}
		results[first[key]] = r
	}
	var down error // the database does not answer: the others would wait for it too
	for part := range slices.Chunk(keys, s.atOnce()) {
		err := down
		moved := part
		for tries := 0; err == nil && len(moved) > 0 && tries < 10; tries++ { // what was moved meanwhile is pending again
			var later []string
			moved, later, err = s.cancelSome(ctx, p, moved, answer)
			if moved = append(moved, later...); len(later) > 0 { // at least one of them has an answer
				tries--
			}
		}
		if err != nil {
			moved = nil
		}
		for _, key := range moved {
			results[first[key]] = store.CancelTimerResult{Err: domain.Errorf(domain.CodeUnavailable, "the timer %q is being moved by others all the time", key)}
		}
		if domain.Is(err, domain.CodeUnavailable) {
			down = err
		}
		for _, key := range part {
			if r := &results[first[key]]; r.View.ID == 0 && r.Err == nil {
				r.Err = err
			}
		}
	}
	if p.FreeEnded {
		s.freeEnded(ctx, p, results)
	}
	if !p.Brief {
		s.nameAnswers(ctx, domain.Collect(results, func(r *store.CancelTimerResult) *store.TimerView { return &r.View }))
	}
	for i, key := range p.Keys {
		results[i] = results[first[key]]
		results[i].Key = key
	}
	return results
}

// freeEnded lets the keys go whose timers have ended. Where it cannot, that is the answer.
func (s *Timers) freeEnded(ctx context.Context, p store.CancelTimersParams, results []store.CancelTimerResult) {
	var ended []int
	for i := range results {
		if domain.Is(results[i].Err, domain.CodeAlreadyFinished) {
			ended = append(ended, i)
		}
	}
	for part := range slices.Chunk(ended, 200) {
		terms, args := make([]string, len(part)), make([]any, len(part))
		for n, i := range part {
			v := &results[i].View
			terms[n] = fmt.Sprintf("(tenant_id = %d AND job_id = %d AND request_key = ? AND execution_id = %d)", p.Tenant, p.Job, v.Run.ID)
			args[n] = domain.TimerRequestKey(v.Key)
		}
		err := s.RunRepeatable(ctx, "free keys of timers", func(t *db.Tx) error {
			_, err := t.Exec(t.Ctx, "DELETE FROM request_keys WHERE "+strings.Join(terms, " OR "), args...)
			return err
		})
		if err != nil {
			for _, i := range part {
				results[i].Err = err
			}
		}
	}
}

// cancelSome answers each of the keys, but those that were moved to another time
// while it looked, or returns why it could not answer all. later are the keys behind
// store.MaxListedInput bytes of inputs.
func (s *Timers) cancelSome(ctx context.Context, p store.CancelTimersParams, keys []string, answer func(string, store.CancelTimerResult)) (moved, later []string, err error) {
	message := "cancelled by " + p.By
	made := map[int64]bool{} // by all tries
	type cancelled struct {
		ended []*record.ExecutionRow
		left  []record.TimerName // keys without a pending timer
		later []string
	}
	did, err := db.Value(ctx, s.RunBulk, "cancel timers", func(t *db.Tx) (out cancelled, err error) {
		names := make([]record.TimerName, len(keys))
		for i, key := range keys {
			names[i] = record.TimerName{Job: int64(p.Job), Key: key}
		}
		slices.SortFunc(names, func(a, b record.TimerName) int { return cmp.Compare(a.Key, b.Key) })
		pending, err := readTimers(t.Ctx, t.Conn, timerHeads, t.Dialect.ForUpdate(), p.Tenant, names)
		if err != nil {
			return out, err
		}
		var timers []*record.TimerRow
		bytes := int64(0)
		for _, name := range names {
			if r := pending[name]; r != nil && bytes >= store.MaxListedInput {
				out.later = append(out.later, name.Key)
			} else if r != nil {
				timers = append(timers, r)
				bytes += r.Bytes()
			} else {
				out.left = append(out.left, name)
			}
		}
		out.ended, err = s.endPending(t, timers, message)
		for _, r := range out.ended {
			made[r.ID] = true // of all tries
		}
		return out, err
	})
	if err != nil {
		return nil, nil, err
	}
	for _, r := range did.ended {
		view := partialRun(r)
		answer(view.Key, store.CancelTimerResult{View: view})
	}
	left := did.left
	runs, err := s.newestRuns(ctx, p.Tenant, left)
	if err != nil {
		return nil, nil, err
	}
	over := func(key string, view store.TimerView) {
		if view.Run.Reason == domain.ReasonRescheduled || !view.Run.State.Terminal() {
			moved = append(moved, key)
			return
		}
		answer(key, store.CancelTimerResult{View: view, Err: domain.Errorf(domain.CodeAlreadyFinished, "the timer %q is %s already", key, view.Run.State)})
	}
	var late []record.TimerName // ended before they could be cancelled, or moved
	for _, name := range left {
		r := runs[name]
		if r == nil {
			answer(name.Key, store.CancelTimerResult{Err: domain.Errorf(domain.CodeNotFound, "there is no timer %q", name.Key)})
			continue
		}
		view := partialRun(r)
		switch {
		case made[r.ID]: // an earlier try was stored
			answer(name.Key, store.CancelTimerResult{View: view})
			continue
		case view.Run.State.Terminal():
			over(name.Key, view)
			continue
		}
		e, err := s.engine.RequestCancel(ctx, p.Tenant, view.Run.ID, domain.ReasonKilled, message)
		switch {
		case err == nil:
			run := withoutTexts(&e)
			view.Run = &run
		case domain.Is(err, domain.CodeAlreadyFinished):
			late = append(late, name)
			continue
		}
		answer(name.Key, store.CancelTimerResult{View: view, Err: err})
	}
	again, err := s.newestRuns(ctx, p.Tenant, late)
	if err != nil {
		return nil, nil, err
	}
	for _, name := range late {
		r := again[name]
		if r == nil { // it ended, and has grown old
			r = runs[name]
		}
		over(name.Key, partialRun(r))
	}
	return moved, did.later, nil
}

// newestRuns reads the newest runs of keys outside of a transaction.
func (s *Timers) newestRuns(ctx context.Context, tenant domain.TenantID, names []record.TimerName) (runs map[record.TimerName]*record.ExecutionRow, err error) {
	if len(names) == 0 {
		return nil, nil
	}
	err = s.Look(ctx, "find runs of timers", func(ctx context.Context, q db.Querier, _ *gorm.DB) (err error) {
		runs, err = s.runsOfTimers(ctx, q, tenant, names)
		return err
	})
	return runs, err
}

// endPending turns pending timers, which are locked, into runs that have ended as
// cancelled.
func (s *Timers) endPending(t *db.Tx, timers []*record.TimerRow, message string) ([]*record.ExecutionRow, error) {
	if len(timers) == 0 {
		return nil, nil
	}
	ids := domain.Collect(timers, func(r **record.TimerRow) domain.JobID { return domain.JobID((*r).JobID) })
	jobs, now, err := s.engine.ShareTimerJobs(t, ids)
	if err != nil {
		return nil, err
	}
	runs := make([]*record.ExecutionRow, len(timers))
	for i, r := range timers {
		timer := r.Timer()
		job, err := jobs.Of(timer.TenantID, timer.JobID)
		if err != nil {
			return nil, err
		}
		id, err := s.NewID()
		if err != nil {
			return nil, err
		}
		e := timer.EndedRun(domain.ExecutionID(id), now, job.Trigger, job.Spec, domain.Cancelled, domain.ReasonKilled, message)
		runs[i] = record.ToExecutionRow(&e)
	}
	return engine.BecomeRuns(t, timers, runs)
}
