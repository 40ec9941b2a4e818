package timer

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strings"

	"gorm.io/gorm"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/engine"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

// Timers is store.Timers, with the lists, edits and cancellations of timers.
type Timers struct {
	*db.DB
	// engine ends runs of timers, and shares the rows of their jobs.
	engine *engine.Engine
}

// New works on the engine's database.
func New(db *db.DB, engine *engine.Engine) Timers { return Timers{db, engine} }

// timersAtOnce bounds the timers of one transaction.
const timersAtOnce = 500

// atOnce is timersAtOnce, or less if the database takes fewer in a bulk transaction.
func (s *Timers) atOnce() int { return min(timersAtOnce, s.Dialect.BulkAtOnce()) }

// FindTimer looks for a pending timer first: a claim takes it away when its run is
// there. One that was moved while this looked is pending again.
func (s *Timers) FindTimer(ctx context.Context, tenant domain.TenantID, job domain.JobID, key string) (view store.TimerView, err error) {
	name := record.TimerName{Job: int64(job), Key: key}
	err = s.Look(ctx, "find timer", func(ctx context.Context, q db.Querier, _ *gorm.DB) error {
		for range 3 {
			pending, err := readTimers(ctx, q, wholeTimers, "", tenant, []record.TimerName{name})
			if err != nil {
				return err
			}
			if r := pending[name]; r != nil {
				view = store.TimerView{Timer: r.Timer()}
				return s.nameTimers(ctx, q, []*store.TimerView{&view})
			}
			run, err := s.runOfTimer(ctx, q, tenant, name)
			if err != nil {
				return err
			}
			if run == nil {
				return domain.Errorf(domain.CodeNotFound, "there is no timer %q", key)
			}
			if view = viewOfRun(run); view.Run.Reason != domain.ReasonRescheduled {
				break
			}
		}
		return s.nameTimers(ctx, q, []*store.TimerView{&view})
	})
	if err != nil {
		return store.TimerView{}, err
	}
	return view, nil
}

// CountTimers adds up the slots of all jobs of the tenant, which are few.
func (s *Timers) CountTimers(ctx context.Context, tenant domain.TenantID) (out []store.TimerCount, err error) {
	out, err = db.LookSelect(ctx, s.DB, "count timers", func(c *store.TimerCount) []any {
		return []any{&c.Job, &c.Executor, &c.ExecutorName, &c.Handler, &c.Pending}
	},
		"SELECT j.id, j.executor_id, e.name, j.handler, COALESCE((SELECT SUM(c.pending) FROM timer_counts AS c"+s.Dialect.ByPrimary()+" WHERE c.tenant_id = j.tenant_id AND c.job_id = j.id), 0)"+
			" FROM jobs AS j"+s.Dialect.ByIndex("ix_jobs_kind")+" JOIN executors AS e ON e.id = j.executor_id"+
			" WHERE j.tenant_id = ? AND j.kind = ? AND j.state IN (?, ?)",
		int64(tenant), int64(domain.JobTimer), int64(domain.JobEnabled), int64(domain.JobPaused))
	slices.SortFunc(out, func(a, b store.TimerCount) int {
		if c := strings.Compare(a.ExecutorName, b.ExecutorName); c != 0 {
			return c
		}
		return strings.Compare(a.Handler, b.Handler)
	})
	return out, err
}

// viewOfRun is the timer that a run was.
func viewOfRun(r *record.ExecutionRow) store.TimerView {
	e := r.Execution()
	timer, _ := domain.TimerOf(&e)
	return store.TimerView{Timer: timer, Run: &e}
}

// partialRun is viewOfRun for a row without its large columns.
func partialRun(r *record.ExecutionRow) store.TimerView {
	v := viewOfRun(r)
	v.Partial = true
	return v
}

// pendingView is a pending timer. Its row may have been read without its input.
func pendingView(r *record.TimerRow) store.TimerView {
	return store.TimerView{Timer: r.Timer(), Partial: r.InputLeft() > 0}
}

// FillTimer looks for the pending timer of a view, and for its run if there is none.
func (s *Timers) FillTimer(ctx context.Context, v *store.TimerView) error {
	if !v.Partial {
		return nil
	}
	if v.Run == nil {
		inputs, err := db.LookColumn[[]byte](ctx, s.DB, "read input of timer", "SELECT input FROM timers WHERE id = ? AND tenant_id = ?", int64(v.ID), int64(v.TenantID))
		if err != nil {
			return err
		}
		if len(inputs) > 0 {
			v.Input, v.Partial = inputs[0], false
			return nil
		}
	}
	err := s.Look(ctx, "read run of timer", func(ctx context.Context, q db.Querier, _ *gorm.DB) error {
		var r *record.ExecutionRow
		var err error
		if v.Run != nil {
			r, err = record.ExecutionByID(ctx, q, v.TenantID, v.Run.ID)
		} else { // it was claimed since it was read
			r, err = s.runOfTimer(ctx, q, v.TenantID, record.TimerName{Job: int64(v.JobID), Key: v.Key})
		}
		if err != nil || r == nil {
			return err
		}
		e := r.Execution()
		if timer, ok := domain.TimerOf(&e); ok && timer.ID == v.ID {
			v.Input = e.Input
			if v.Run != nil {
				run := *v.Run
				run.Input, run.Output, run.Error, run.Stack = e.Input, e.Output, e.Error, e.Stack
				v.Run = &run
			}
		}
		return nil
	})
	v.Partial = err != nil
	return err
}

// timerColumns says which columns of timers are read.
type timerColumns struct {
	list    string
	targets func(*record.TimerRow) []any
}

// wholeTimers are for one timer, and timerHeads for many.
var (
	wholeTimers = timerColumns{record.TimerColumns, func(r *record.TimerRow) []any { return record.TimerTable.Targets(r) }}
	timerHeads  = timerColumns{record.TimerHeads, (*record.TimerRow).HeadTargets}
)

// readTimers reads pending timers of a tenant by their names; lock is what follows
// the SELECT.
func readTimers(ctx context.Context, q db.Querier, columns timerColumns, lock string, tenant domain.TenantID, names []record.TimerName) (map[record.TimerName]*record.TimerRow, error) {
	out := make(map[record.TimerName]*record.TimerRow, len(names))
	for part := range slices.Chunk(names, 200) {
		terms := make([]string, len(part))
		args := make([]any, len(part))
		for i, n := range part {
			terms[i], args[i] = fmt.Sprintf("(job_id = %d AND timer_key = ?)", n.Job), n.Key
		}
		but := ""
		if tenant != 0 {
			but = fmt.Sprintf(" AND tenant_id = %d", tenant)
		}
		err := db.Query(ctx, q, func(rows *sql.Rows) error {
			r := &record.TimerRow{}
			err := rows.Scan(columns.targets(r)...)
			out[r.Name()] = r
			return err
		}, "SELECT "+columns.list+" FROM timers WHERE ("+strings.Join(terms, " OR ")+")"+but+lock, args...)
		if err != nil {
			return nil, fmt.Errorf("read timers: %w", err)
		}
	}
	return out, nil
}

// runOfTimer reads all of the newest run of a key; nil: there is none.
func (s *Timers) runOfTimer(ctx context.Context, q db.Querier, tenant domain.TenantID, name record.TimerName) (*record.ExecutionRow, error) {
	runs, err := s.runsOfTimers(ctx, q, tenant, []record.TimerName{name})
	if err != nil || runs[name] == nil {
		return nil, err
	}
	return record.ExecutionByID(ctx, q, tenant, domain.ExecutionID(runs[name].ID))
}

// runsOfTimers reads the newest runs of keys without their inputs and other large columns.
func (s *Timers) runsOfTimers(ctx context.Context, q db.Querier, tenant domain.TenantID, names []record.TimerName) (map[record.TimerName]*record.ExecutionRow, error) {
	requests, err := requestsOf(ctx, q, tenant, names)
	if err != nil {
		return nil, err
	}
	return s.timerRuns(ctx, q, tenant, slices.Collect(maps.Keys(requests)))
}

// requestsOf reads the ids of the newest runs of keys, and the names of the requests that
// have set their timers.
func requestsOf(ctx context.Context, q db.Querier, tenant domain.TenantID, names []record.TimerName) (map[int64]string, error) {
	requests := map[int64]string{}
	for part := range slices.Chunk(names, 200) {
		terms := make([]string, len(part))
		args := make([]any, len(part))
		for i, n := range part {
			terms[i], args[i] = fmt.Sprintf("(tenant_id = %d AND job_id = %d AND request_key = ?)", tenant, n.Job), domain.TimerRequestKey(n.Key)
		}
		err := db.Query(ctx, q, func(rows *sql.Rows) error {
			var id int64
			var request string
			err := rows.Scan(&id, &request)
			requests[id] = request
			return err
		}, "SELECT execution_id, COALESCE(request_id, '') FROM request_keys WHERE "+strings.Join(terms, " OR "), args...)
		if err != nil {
			return nil, fmt.Errorf("read keys of timers: %w", err)
		}
	}
	return requests, nil
}

// timerRuns reads runs of timers by their ids, without their inputs and other large columns.
func (s *Timers) timerRuns(ctx context.Context, q db.Querier, tenant domain.TenantID, ids []int64) (map[record.TimerName]*record.ExecutionRow, error) {
	out := make(map[record.TimerName]*record.ExecutionRow, len(ids))
	if len(ids) == 0 {
		return out, nil
	}
	err := db.Query(ctx, q, func(rows *sql.Rows) error {
		r := &record.ExecutionRow{}
		err := rows.Scan(record.ExecutionTable.Targets(r)...)
		if _, key, ok := domain.SplitTimerOccurrence(r.OccurrenceKey); ok && r.TenantID == int64(tenant) {
			out[record.TimerName{Job: r.JobID, Key: key}] = r
		}
		return err
	}, "SELECT "+record.ExecutionListColumns+" FROM executions"+s.Dialect.ByPrimary()+" WHERE id IN ("+db.IDList(ids)+")")
	if err != nil {
		return nil, fmt.Errorf("read runs of timers: %w", err)
	}
	return out, nil
}

// nameTimers fills in what stands in other rows: labels, executors and handlers.
func (s *Timers) nameTimers(ctx context.Context, q db.Querier, views []*store.TimerView) error {
	byID := make(map[int64]*store.TimerView, len(views))
	ids := make([]int64, 0, len(views))
	var jobs []domain.JobID
	for _, v := range views {
		id := int64(v.ID)
		if v.Run != nil {
			id = int64(v.Run.ID)
		}
		byID[id], ids = v, append(ids, id)
		jobs = append(jobs, v.JobID)
		v.Labels = nil
	}
	if len(ids) == 0 {
		return nil
	}
	err := db.Query(ctx, q, func(rows *sql.Rows) error {
		var id int64
		var label string
		err := rows.Scan(&id, &label)
		if v := byID[id]; v != nil {
			v.Labels = append(v.Labels, label)
		}
		return err
	}, "SELECT timer_id, label FROM timer_labels"+s.Dialect.ByIndex("ix_timer_labels_timer")+" WHERE timer_id IN ("+db.IDList(ids)+")")
	if err != nil {
		return fmt.Errorf("read labels: %w", err)
	}
	slices.Sort(jobs)
	type names struct{ executor, handler string }
	of := map[domain.JobID]names{}
	err = db.Query(ctx, q, func(rows *sql.Rows) error {
		var id domain.JobID
		var n names
		err := rows.Scan(&id, &n.executor, &n.handler)
		of[id] = n
		return err
	}, "SELECT j.id, e.name, j.handler FROM jobs AS j JOIN executors AS e ON e.id = j.executor_id WHERE j.id IN ("+db.IDList(slices.Compact(jobs))+")")
	if err != nil {
		return fmt.Errorf("read jobs of timers: %w", err)
	}
	for _, v := range views {
		slices.Sort(v.Labels)
		v.ExecutorName, v.Handler = of[v.JobID].executor, of[v.JobID].handler
	}
	return nil
}
