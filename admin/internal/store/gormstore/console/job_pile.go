package console

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
)

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
