package alertsql

import (
	"context"
	"database/sql"
	"fmt"

	"gorm.io/gorm"

	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/notify"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

// alertContexts loads what messages about events need, one query per table, in
// the order of the events. What does not exist any more stays zero.
func (s *Alerts) alertContexts(ctx context.Context, q db.Querier, g *gorm.DB, events []eventRow, withRuns bool) ([]notify.AlertContext, error) {
	tenants, err := db.ByID[record.TenantRow](g, "id IN ?", db.IDs(events, func(r eventRow) int64 { return r.TenantID }), func(r record.TenantRow) int64 { return r.ID })
	if err != nil {
		return nil, fmt.Errorf("load tenants: %w", err)
	}
	jobs, err := db.ByID[record.JobRow](g, "id IN ?", db.IDs(events, func(r eventRow) int64 { return r.JobID }), func(r record.JobRow) int64 { return r.ID })
	if err != nil {
		return nil, fmt.Errorf("load jobs: %w", err)
	}
	executions := map[int64]*domain.Execution{}
	if withRuns {
		if executions, err = s.alertExecutions(ctx, q, events); err != nil {
			return nil, fmt.Errorf("load executions: %w", err)
		}
	}
	var executorIDs []int64
	keys := make([]record.RevisionKey, 0, len(events))
	for _, r := range events {
		executorIDs = append(executorIDs, alertExecutor(r, jobs, executions))
		keys = append(keys, alertRevision(r, jobs))
	}
	executors, err := db.ByID[record.ExecutorRow](g, "id IN ?", executorIDs, func(r record.ExecutorRow) int64 { return r.ID })
	if err != nil {
		return nil, fmt.Errorf("load executors: %w", err)
	}
	specs, err := s.specs.Load(ctx, q, keys)
	if err != nil {
		return nil, fmt.Errorf("load job revisions: %w", err)
	}
	out := make([]notify.AlertContext, len(events))
	for i, r := range events {
		out[i] = notify.AlertContext{
			Event: r.event(), Tenant: tenants[r.TenantID].Tenant(), Executor: executors[executorIDs[i]].Executor(),
			Execution: executions[r.ExecutionID],
		}
		job, known := jobs[r.JobID]
		if spec := specs[keys[i]].Spec; known && spec != nil && job.TenantID == r.TenantID {
			job.Revision = keys[i].Revision
			out[i].Job = job.Job(spec)
		}
	}
	return out, nil
}

func alertExecutor(r eventRow, jobs map[int64]record.JobRow, executions map[int64]*domain.Execution) int64 {
	if e := executions[r.ExecutionID]; e != nil {
		return int64(e.Executor)
	}
	if r.ExecutorID != 0 {
		return r.ExecutorID
	}
	return jobs[r.JobID].ExecutorID
}

// alertRevision is the event's revision, or the job's when it names none.
func alertRevision(r eventRow, jobs map[int64]record.JobRow) record.RevisionKey {
	revision := r.Revision
	if revision == 0 {
		revision = jobs[r.JobID].Revision
	}
	return record.RevisionKey{Job: domain.JobID(r.JobID), Revision: revision}
}

func (s *Alerts) alertExecutions(ctx context.Context, q db.Querier, events []eventRow) (map[int64]*domain.Execution, error) {
	out := map[int64]*domain.Execution{}
	wanted := db.IDs(events, func(r eventRow) int64 { return r.ExecutionID })
	if len(wanted) == 0 {
		return out, nil
	}
	return out, db.Query(ctx, q, func(rows *sql.Rows) error {
		r := &record.ExecutionRow{}
		if err := rows.Scan(record.ExecutionTable.Targets(r)...); err != nil {
			return err
		}
		e := r.Execution()
		out[r.ID] = &e
		return nil
	}, "SELECT "+record.ExecutionColumns+" FROM executions WHERE id IN ("+db.IDList(wanted)+")")
}
