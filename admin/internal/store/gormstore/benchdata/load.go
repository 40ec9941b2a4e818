// Package benchdata fills the tables of a database with what real use would leave in
// them, by the thousand, and reads back what a measurement counts. It is for
// measurements and tests, which know what they write: nothing checks that it could
// have come about. All of it may be called concurrently.
package benchdata

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

// loadChunk is how many objects one loading transaction writes: large enough
// that the commit does not matter, small enough for the undo log.
const loadChunk = 1000

// LoadJobs writes many new jobs with the rows that CreateJob would write, a
// thousand per transaction instead of one; of quotas it counts nothing. next says
// when each job fires first. The executors have to exist and the names to be free:
// a conflict fails the chunk it is in, and chunks before it stay.
func LoadJobs(ctx context.Context, s *db.DB, jobs []domain.Job, next func(i int) time.Time) error {
	done := 0
	for chunk := range slices.Chunk(jobs, loadChunk) {
		base := done
		if err := s.Run(ctx, "load jobs", func(t *db.Tx) error {
			return loadJobs(t, chunk, func(i int) time.Time { return next(base + i) })
		}); err != nil {
			return err
		}
		done += len(chunk)
	}
	return nil
}

func loadJobs(t *db.Tx, jobs []domain.Job, next func(i int) time.Time) error {
	now, err := t.Clock()
	if err != nil {
		return err
	}
	rows := make([]record.JobRow, len(jobs))
	revisions := make([]record.RevisionRow, len(jobs))
	triggers := make([]*record.TriggerRow, len(jobs))
	slots := make([]*record.SlotRow, len(jobs))
	for i := range jobs {
		j := &jobs[i]
		rows[i] = record.JobRow{
			ID: int64(j.ID), TenantID: int64(j.TenantID), ExecutorID: int64(j.Executor), Part: int64(domain.PartitionOf(j.ID)),
			State: int64(cmp.Or(j.State, domain.JobEnabled)), Source: string(j.Source), Revision: 1,
			CreatedAt: db.Millis(now), UpdatedAt: db.Millis(now), CreatedBy: j.CreatedBy, UpdatedBy: j.CreatedBy,
		}
		rows[i].SetSpec(&j.Spec)
		text, err := record.EncodeSpec(&j.Spec)
		if err != nil {
			return err
		}
		revisions[i] = record.RevisionRow{
			JobID: rows[i].ID, Revision: 1, TenantID: rows[i].TenantID, Spec: text, CreatedAt: db.Millis(now), CreatedBy: j.CreatedBy,
		}
		triggers[i] = &record.TriggerRow{
			JobID: rows[i].ID, TenantID: rows[i].TenantID, Part: rows[i].Part, ExecutorID: rows[i].ExecutorID,
			Revision: 1, NextFireAt: db.Millis(next(i)),
		}
		slots[i] = &record.SlotRow{JobID: rows[i].ID, TenantID: rows[i].TenantID}
	}
	if err := t.Gorm.CreateInBatches(rows, 250).Error; err != nil { // below SQLite's 32,766 parameters
		return err
	}
	if err := t.Gorm.CreateInBatches(revisions, 250).Error; err != nil {
		return err
	}
	ids := domain.Collect(jobs, func(j *domain.Job) domain.JobID { return j.ID })
	if _, err := t.Exec(t.Ctx, "INSERT INTO job_events (job_id, number, tenant_id, state, at, created_by) SELECT id, 1, tenant_id, state, created_at, created_by FROM jobs WHERE id IN ("+db.IDList(ids)+")"); err != nil {
		return err
	}
	if err := record.TriggerTable.Insert(t, triggers); err != nil {
		return err
	}
	return record.SlotTable.Insert(t, slots)
}

// LoadExecutions writes rows as they are, whatever their state, a thousand per
// transaction.
func LoadExecutions(ctx context.Context, s *db.DB, executions []domain.Execution) error {
	for chunk := range slices.Chunk(executions, loadChunk) {
		rows := make([]*record.ExecutionRow, len(chunk))
		for i := range chunk {
			rows[i] = record.ToExecutionRow(&chunk[i])
		}
		if err := s.Run(ctx, "load executions", func(t *db.Tx) error { return record.ExecutionTable.Insert(t, rows) }); err != nil {
			return err
		}
	}
	return nil
}

// SetNextFires moves the next fire times of a tenant's jobs, as if their
// schedules had said so; domain.Never stops them. Whatever the jobs had planned
// already stays.
func SetNextFires(ctx context.Context, s *db.DB, tenant domain.TenantID, jobs []domain.JobID, at func(i int) time.Time) error {
	// Claims want the same rows at the same time: small bites, and what a claim
	// has locked comes later. Whoever waits for its turn at each of thousands of
	// rows does not end while several nodes plan all they can.
	const bite = 200
	index := make(map[int64]int, len(jobs))
	for i, id := range jobs {
		index[int64(id)] = i
	}
	for left := jobs; len(left) > 0; {
		var locked []domain.JobID
		for chunk := range slices.Chunk(left, bite) {
			done, err := setUnlocked(ctx, s, tenant, chunk, func(job int64) time.Time { return at(index[job]) })
			if err != nil {
				return err
			}
			for _, id := range chunk {
				if !done[int64(id)] {
					locked = append(locked, id)
				}
			}
		}
		if len(locked) == len(left) { // or they do not exist
			if !db.Sleep(ctx, db.TxBackoff) {
				return db.Translate("set next fires", ctx.Err())
			}
			var err error
			if locked, err = withTrigger(ctx, s, tenant, locked); err != nil {
				return err
			}
		}
		left = locked
	}
	return nil
}

// withTrigger returns those of the jobs that the tenant has.
func withTrigger(ctx context.Context, s *db.DB, tenant domain.TenantID, jobs []domain.JobID) (found []domain.JobID, err error) {
	return db.LookColumn[domain.JobID](ctx, s, "find triggers",
		"SELECT job_id FROM triggers WHERE job_id IN ("+db.IDList(jobs)+") AND tenant_id = ?", int64(tenant))
}

// setUnlocked sets the next fire times of those jobs whose triggers nobody has
// locked, and returns which these are.
func setUnlocked(ctx context.Context, s *db.DB, tenant domain.TenantID, jobs []domain.JobID, at func(job int64) time.Time) (map[int64]bool, error) {
	return db.Value(ctx, s.Run, "set next fires", func(t *db.Tx) (map[int64]bool, error) {
		done := make(map[int64]bool, len(jobs))
		triggers, err := record.TriggerTable.SelectRows(t, "SELECT "+record.TriggerColumns+" FROM triggers WHERE job_id IN ("+db.IDList(jobs)+") AND tenant_id = ? ORDER BY job_id"+t.Dialect.ForUpdateSkip(), int64(tenant))
		if err != nil {
			return nil, err
		}
		changes := make([]db.Change[record.TriggerRow], 0, len(triggers))
		for _, before := range triggers {
			after := *before
			after.NextFireAt = db.Millis(at(before.JobID))
			done[before.JobID] = true
			changes = append(changes, db.Change[record.TriggerRow]{Before: before, After: &after})
		}
		return done, record.TriggerTable.Update(t, changes)
	})
}
