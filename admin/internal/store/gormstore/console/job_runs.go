package console

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"

	"gorm.io/gorm"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

// ListRecentRuns reads the runs of one job as lists of jobs do.
func (s *Jobs) ListRecentRuns(ctx context.Context, tenant domain.TenantID, id domain.JobID, n int) (out []store.LastRun, err error) {
	err = s.Look(ctx, "list recent runs", func(ctx context.Context, q db.Querier, _ *gorm.DB) error {
		runs, err := s.recentRuns(ctx, q, int64(tenant), []int64{int64(id)}, n, nil)
		out = runs[int64(id)]
		return err
	})
	return out, err
}

// recentRun is a row of one of a job's newest runs.
type recentRun struct {
	store.LastRun
	job, revision, fence, startedAt, tookUS int64
}

// errorRead bounds the characters of an error that are read for its first line.
const errorRead = 400

// recentRuns finds each job's newest n runs whose fire time has come: a few steps in the
// unique index per job. specs are revisions that the caller has already read.
func (s *shared) recentRuns(ctx context.Context, q db.Querier, tenant int64, jobs []int64, n int, specs map[record.RevisionKey]record.CachedSpec) (map[int64][]store.LastRun, error) {
	var all []recentRun
	bad := fmt.Sprintf("state IN (%d, %d, %d, %d)", domain.Failed, domain.TimedOut, domain.Lost, domain.Missed)
	for part := range slices.Chunk(jobs, 200) {
		var terms []string
		for _, id := range part {
			terms = append(terms, s.Dialect.Bounded(fmt.Sprintf(
				"SELECT job_id, id, state, reason, fire_at, finished_at, revision, fence, started_at, took_us, cause, CASE WHEN %s THEN SUBSTR(COALESCE(NULLIF(error, ''), message), 1, %d) ELSE '' END"+
					" FROM executions%s WHERE job_id = %d AND tenant_id = %d AND fire_at <= %s AND parent_id = 0 ORDER BY fire_at DESC LIMIT %d",
				bad, errorRead, s.Dialect.ByIndex("uq_executions_occurrence"), id, tenant, s.Dialect.ClockNow(), n)))
		}
		err := db.Query(ctx, q, func(rows *sql.Rows) error {
			var r recentRun
			var fireAt, finishedAt int64
			err := rows.Scan(&r.job, &r.ID, &r.State, &r.Reason, &fireAt, &finishedAt, &r.revision, &r.fence, &r.startedAt, &r.tookUS, &r.Cause, &r.Message)
			r.FireAt, r.FinishedAt, r.Message = db.Instant(fireAt), db.Instant(finishedAt), domain.ShortError(r.Message)
			all = append(all, r)
			return err
		}, strings.Join(terms, " UNION ALL "))
		if err != nil {
			return nil, err
		}
	}
	if err := s.measureRuns(ctx, q, tenant, all, specs); err != nil {
		return nil, err
	}
	out := map[int64][]store.LastRun{}
	for i := range all {
		out[all[i].job] = append(out[all[i].job], all[i].LastRun)
	}
	for _, list := range out { // the parts of a UNION come in any order
		slices.SortFunc(list, func(a, b store.LastRun) int {
			return cmp.Or(b.FireAt.Compare(a.FireAt), cmp.Compare(b.ID, a.ID))
		})
	}
	return out, nil
}

// measureRuns fills in how long runs took, when they first started and how much jitter they
// had. It reads the first starts of runs that were sent more than once, and revisions that
// specs lacks.
func (s *shared) measureRuns(ctx context.Context, q db.Querier, tenant int64, runs []recentRun, specs map[record.RevisionKey]record.CachedSpec) error {
	var retried []int64
	var missing []record.RevisionKey
	for i := range runs {
		r := &runs[i]
		if r.fence > 1 {
			retried = append(retried, int64(r.ID))
		}
		key := record.RevisionKey{Job: domain.JobID(r.job), Revision: r.revision}
		if _, ok := specs[key]; !ok && r.Cause == domain.CauseSchedule && !slices.Contains(missing, key) {
			missing = append(missing, key)
		}
	}
	var older map[record.RevisionKey]record.CachedSpec
	var starts map[int64]int64
	var err error
	if len(retried) > 0 {
		if starts, err = s.firstStarts(ctx, q, tenant, retried); err != nil {
			return err
		}
	}
	if len(missing) > 0 {
		if older, err = s.specs.LoadLight(ctx, q, missing); err != nil {
			return err
		}
	}
	for i := range runs {
		r := &runs[i]
		key := record.RevisionKey{Job: domain.JobID(r.job), Revision: r.revision}
		r.Took, r.FirstStartAt = r.took(), db.Instant(cmp.Or(starts[int64(r.ID)], r.startedAt))
		if spec := cmp.Or(specs[key].Spec, older[key].Spec); spec != nil {
			r.JitterMax = spec.Schedule.JitterMax
		}
	}
	return nil
}

// took is what domain.Execution.Duration says of the row.
func (r *recentRun) took() time.Duration {
	e := domain.Execution{StartedAt: db.Instant(r.startedAt), FinishedAt: r.FinishedAt, Took: time.Duration(r.tookUS) * time.Microsecond}
	if d, ok := e.Duration(); ok {
		return d
	}
	return -1
}

// pile is the queue for a job's slot.
type pile struct {
	waiting int64
	up      bool
}

// pileRuns bounds how many runs before the first one that waits are read.
const pileRuns = 20

// piles reads the slots of jobs by primary key. If at least domain.PileAt runs of a job
// wait, it also reads the head of the queue and the runs just before it.
func (s *shared) piles(ctx context.Context, q db.Querier, jobs []int64, specOf func(job int64) *domain.JobSpec) (map[int64]pile, error) {
	waiting, err := db.Pairs[int64, int64](ctx, q, "SELECT job_id, waiters FROM job_slots"+s.Dialect.ByPrimary()+" WHERE job_id IN ("+db.IDList(jobs)+") AND waiters > 0")
	if err != nil || len(waiting) == 0 {
		return nil, err
	}
	out := make(map[int64]pile, len(waiting))
	var many []int64
	for _, job := range jobs {
		if n := waiting[job]; n > 0 {
			out[job] = pile{waiting: n}
			if spec := specOf(job); n >= domain.PileAt && spec != nil && spec.SlotLimit() > 0 {
				many = append(many, job)
			}
		}
	}
	for part := range slices.Chunk(many, 100) {
		before, err := s.beforeQueues(ctx, q, part)
		if err != nil {
			return nil, fmt.Errorf("look for piles of runs: %w", err)
		}
		for _, job := range part {
			p := out[job]
			took, interval := before[job].longest()
			p.up = domain.PilesUp(p.waiting, specOf(job).SlotLimit(), took, interval)
			out[job] = p
		}
	}
	return out, nil
}

// pastRun is a run before the head of the queue. took is 0 if it has not started.
type pastRun struct {
	fireAt int64
	took   time.Duration
}

// pastRuns are in the order of their fire times, the latest first. The head of the queue
// is the first one.
type pastRuns []pastRun

// longest returns how long the newest run that has started took, or takes so far, and the
// shortest time between two fires.
func (p pastRuns) longest() (took, interval time.Duration) {
	for i, r := range p {
		if took == 0 {
			took = r.took
		}
		if i == 0 {
			continue
		}
		if gap := time.Duration(p[i-1].fireAt-r.fireAt) * time.Millisecond; gap > 0 && (interval == 0 || gap < interval) {
			interval = gap
		}
	}
	return took, interval
}

// beforeQueues reads the heads of queues and the runs of the schedule before them. A run
// that goes on counts by the time since its start, if none has ended.
func (s *shared) beforeQueues(ctx context.Context, q db.Querier, jobs []int64) (map[int64]pastRuns, error) {
	var heads, runs []string
	for _, job := range jobs {
		heads = append(heads, s.Dialect.Bounded(fmt.Sprintf("SELECT job_id, fire_at FROM slot_waiters WHERE job_id = %d ORDER BY job_id, fire_at, execution_id LIMIT 1", job)))
	}
	head, err := db.Pairs[int64, int64](ctx, q, strings.Join(heads, " UNION ALL "))
	if err != nil {
		return nil, err
	}
	out := make(map[int64]pastRuns, len(jobs))
	for _, job := range jobs {
		if at := head[job]; at > 0 {
			out[job] = pastRuns{{fireAt: at}}
			runs = append(runs, s.Dialect.Bounded(fmt.Sprintf(
				"SELECT job_id, fire_at, state, started_at, finished_at, took_us, %s FROM executions%s WHERE job_id = %d AND fire_at < %d AND parent_id = 0 AND cause = '%s' ORDER BY fire_at DESC LIMIT %d",
				s.Dialect.ClockNow(), s.Dialect.ByIndex("uq_executions_occurrence"), job, at, domain.CauseSchedule, pileRuns)))
		}
	}
	if len(runs) == 0 {
		return out, nil
	}
	running := map[int64]time.Duration{}
	err = db.Query(ctx, q, func(rows *sql.Rows) error {
		var job, fireAt, started, finished, us, now int64
		var state domain.State
		if err := rows.Scan(&job, &fireAt, &state, &started, &finished, &us, &now); err != nil {
			return err
		}
		r := pastRun{fireAt: fireAt}
		switch {
		case started > 0 && state.Terminal():
			if r.took = time.Duration(us) * time.Microsecond; us == 0 {
				r.took = time.Duration(finished-started) * time.Millisecond
			}
		case started > 0:
			running[job] = max(running[job], time.Duration(now-started)*time.Millisecond)
		}
		out[job] = append(out[job], r)
		return nil
	}, strings.Join(runs, " UNION ALL "))
	for job, list := range out {
		slices.SortStableFunc(list, func(a, b pastRun) int { return int(b.fireAt - a.fireAt) })
		if took, _ := list.longest(); took < running[job] {
			list[0].took = running[job]
		}
	}
	return out, err
}
