package gormstore

import (
	"context"
	"slices"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// loadChunk is how many objects one loading transaction writes: large enough
// that the commit does not matter, small enough for the undo log.
const loadChunk = 1000

// LoadJobs writes many new jobs with the rows that CreateJob would write, a
// thousand per transaction instead of one. next says when each job fires
// first. It is for measurements and for importers, which know that the
// executors exist and the names are free: a conflict fails the chunk it is in,
// and chunks before it stay.
func (s *Store) LoadJobs(ctx context.Context, jobs []domain.Job, next func(i int) time.Time) error {
	done := 0
	for chunk := range slices.Chunk(jobs, loadChunk) {
		base := done
		if err := s.run(ctx, "load jobs", func(t *txn) error {
			return t.loadJobs(chunk, func(i int) time.Time { return next(base + i) })
		}); err != nil {
			return err
		}
		done += len(chunk)
	}
	return nil
}

func (t *txn) loadJobs(jobs []domain.Job, next func(i int) time.Time) error {
	now, err := t.clock()
	if err != nil {
		return err
	}
	rows := make([]jobRow, len(jobs))
	revisions := make([]revisionRow, len(jobs))
	triggers := make([]*triggerRow, len(jobs))
	slots := make([]*slotRow, len(jobs))
	for i := range jobs {
		j := &jobs[i]
		rows[i] = jobRow{
			ID: int64(j.ID), TenantID: int64(j.TenantID), ExecutorID: int64(j.Executor), Part: int64(domain.PartitionOf(j.ID)),
			State: int64(domain.JobEnabled), Source: string(j.Source), Revision: 1,
			CreatedAt: millis(now), UpdatedAt: millis(now), CreatedBy: j.CreatedBy, UpdatedBy: j.CreatedBy,
		}
		rows[i].setSpec(&j.Spec)
		text, err := encodeSpec(&j.Spec)
		if err != nil {
			return err
		}
		revisions[i] = revisionRow{
			JobID: rows[i].ID, Revision: 1, TenantID: rows[i].TenantID, Spec: text, CreatedAt: millis(now), CreatedBy: j.CreatedBy,
		}
		triggers[i] = &triggerRow{
			jobID: rows[i].ID, tenantID: rows[i].TenantID, part: rows[i].Part, executorID: rows[i].ExecutorID,
			revision: 1, nextFireAt: millis(next(i)),
		}
		slots[i] = &slotRow{jobID: rows[i].ID, tenantID: rows[i].TenantID}
	}
	if err := t.db.CreateInBatches(rows, 250).Error; err != nil { // below SQLite's 32,766 parameters
		return err
	}
	if err := t.db.CreateInBatches(revisions, 250).Error; err != nil {
		return err
	}
	ids := make([]domain.JobID, len(jobs))
	for i := range jobs {
		ids[i] = jobs[i].ID
	}
	if _, err := t.exec(t.ctx, "INSERT INTO job_events (job_id, number, tenant_id, state, at, created_by) SELECT id, 1, tenant_id, state, created_at, created_by FROM jobs WHERE id IN ("+idList(ids)+")"); err != nil {
		return err
	}
	if err := triggerTable.insert(t, triggers); err != nil {
		return err
	}
	return slotTable.insert(t, slots)
}

// LoadExecutions writes rows as they are, whatever their state, a thousand per
// transaction. It is for measurements and importers: nothing checks that they
// could have come about.
func (s *Store) LoadExecutions(ctx context.Context, executions []domain.Execution) error {
	for chunk := range slices.Chunk(executions, loadChunk) {
		rows := make([]*executionRow, len(chunk))
		for i := range chunk {
			rows[i] = toExecutionRow(&chunk[i])
		}
		if err := s.run(ctx, "load executions", func(t *txn) error { return executionTable.insert(t, rows) }); err != nil {
			return err
		}
	}
	return nil
}

// SetNextFires moves the next fire times of a tenant's jobs, as if their
// schedules had said so; domain.Never stops them. It is for measurements that
// start and stop thousands of jobs at once: whatever the jobs had planned
// already stays.
func (s *Store) SetNextFires(ctx context.Context, tenant domain.TenantID, jobs []domain.JobID, at func(i int) time.Time) error {
	// Claims want the same rows at the same time: small bites.
	const bite = 200
	done := 0
	for chunk := range slices.Chunk(jobs, bite) {
		base := done
		if err := s.run(ctx, "set next fires", func(t *txn) error {
			triggers, err := triggerTable.selectRows(t, "SELECT "+triggerColumns+" FROM triggers WHERE job_id IN ("+idList(chunk)+") AND tenant_id = ? ORDER BY job_id"+t.d.forUpdate(), int64(tenant))
			if err != nil {
				return err
			}
			index := make(map[int64]int, len(chunk))
			for i, id := range chunk {
				index[int64(id)] = base + i
			}
			changes := make([]change[triggerRow], 0, len(triggers))
			for _, before := range triggers {
				after := *before
				after.nextFireAt = millis(at(index[before.jobID]))
				changes = append(changes, change[triggerRow]{before, &after})
			}
			return triggerTable.update(t, changes)
		}); err != nil {
			return err
		}
		done += len(chunk)
	}
	return nil
}
