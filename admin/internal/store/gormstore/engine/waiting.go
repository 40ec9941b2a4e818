package engine

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"gorm.io/gorm"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

// stillDue are the states of what waits to be offered.
var stillDue = fmt.Sprintf("state IN (%d, %d)", domain.Due, domain.RetryWait)

func (s *Sweeps) StillDue(ctx context.Context, ids []domain.ExecutionID) (map[domain.ExecutionID]int64, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	found := make(map[domain.ExecutionID]int64, len(ids))
	err := s.Look(ctx, "look at waiting executions", func(ctx context.Context, q db.Querier, _ *gorm.DB) error {
		return db.Query(ctx, q, func(rows *sql.Rows) error {
			var id domain.ExecutionID
			var fence int64
			err := rows.Scan(&id, &fence)
			found[id] = fence
			return err
		}, "SELECT id, fence FROM executions"+s.Dialect.ByPrimary()+" WHERE id IN ("+db.IDList(slices.Clone(ids))+") AND "+stillDue)
	})
	return found, err
}

// ListWaiting reads along the index of what the sweep looks at. Where much else
// is to be looked at later, such as attempts that run, it reads over that.
func (s *Sweeps) ListWaiting(ctx context.Context, p store.ListWaitingParams) (out store.WaitingList, err error) {
	if len(p.Partitions) == 0 || p.Limit <= 0 {
		return out, nil
	}
	known, err := s.lookAtMaintenance(ctx)
	if err != nil {
		return out, err
	}
	where := fmt.Sprintf("wake_at > %s AND wake_at < %d AND %s AND %s", s.Dialect.ClockNow(), record.ParkedFrom, waitsToStart(known.stopping), stillDue)
	if len(p.Executors) > 0 {
		where += " AND executor_id IN (" + db.IDList(slices.Clone(p.Executors)) + ")"
	}
	_, ids, err := s.findByWake(ctx, "find waiting executions", byWake{p.Partitions, where, p.Limit, p.Unattended, nil})
	if err != nil {
		return out, err
	}
	// Counted before the rows are read, because rows may drop out then.
	if out.More = len(ids) == p.Limit; out.More && len(p.Executors) == 0 {
		if out.Executors, err = s.waitingExecutors(ctx, p.Partitions, where); err != nil {
			return store.WaitingList{}, err
		}
	}
	for part := range slices.Chunk(ids, 500) {
		err := s.Look(ctx, "read waiting executions", func(ctx context.Context, q db.Querier, _ *gorm.DB) error {
			return db.Query(ctx, q, func(rows *sql.Rows) error {
				r := &record.ExecutionRow{}
				err := rows.Scan(record.ExecutionTable.Targets(r)...)
				out.Executions = append(out.Executions, r.Execution())
				return err
			}, "SELECT "+record.ExecutionColumns+" FROM executions"+s.Dialect.ByPrimary()+" WHERE id IN ("+db.IDList(part)+") AND "+stillDue)
		})
		if err != nil {
			return store.WaitingList{}, err
		}
	}
	slices.SortFunc(out.Executions, func(a, b domain.Execution) int {
		return cmp.Or(a.WakeAt.Compare(b.WakeAt), cmp.Compare(a.ID, b.ID))
	})
	return out, nil
}

// waitingExecutors reads the executors with waiting runs in the partitions. It reads all
// of these runs. It is called if a node cannot load all runs of gained partitions at once.
func (s *Sweeps) waitingExecutors(ctx context.Context, partitions []int, where string) ([]store.ExecutorOf, error) {
	ids := make([]int64, len(partitions))
	for i, p := range partitions {
		ids[i] = int64(p)
	}
	return db.LookSelect(ctx, s.DB, "find executors of waiting executions", func(e *store.ExecutorOf) []any { return []any{&e.Tenant, &e.Executor} },
		"SELECT DISTINCT tenant_id, executor_id FROM executions"+s.Dialect.ByIndex("ix_executions_wake")+
			" WHERE part IN ("+db.IDList(ids)+") AND "+where+" ORDER BY tenant_id, executor_id")
}

// waitingJobsRead bounds the rows that are looked through for the jobs of an
// executor.
const waitingJobsRead = 5_000

func (s *Sweeps) ListWaitingJobs(ctx context.Context, tenant domain.TenantID, executor domain.ExecutorID) (out []store.WaitingJob, err error) {
	var alive []string
	for _, of := range []int64{0, record.PhaseTimer} {
		alive = append(alive, s.Dialect.Bounded(fmt.Sprintf("SELECT job_id, revision FROM executions%s WHERE tenant_id = %d AND phase = %d AND executor_id = %d AND %s ORDER BY id LIMIT %d",
			s.Dialect.ByIndex("ix_executions_phase"), tenant, of+record.PhaseAlive, executor, stillDue, waitingJobsRead)))
	}
	return db.LookSelect(ctx, s.DB, "list waiting jobs", func(j *store.WaitingJob) []any { return []any{&j.Job, &j.Revision} },
		"SELECT job_id, MAX(revision) FROM ("+strings.Join(alive, " UNION ALL ")+") AS alive GROUP BY job_id ORDER BY job_id")
}
