// Package past imports runs that ended before they came into the database.
//
// It writes the rows that the engine would have left, which are runs, earlier attempts and the
// ends for the statistics. Nothing moves these runs any more, so the engine is not asked.
package past

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"gorm.io/gorm/clause"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

// Key is the occurrence key of imported runs. A run of the schedule at the same fire time has
// an empty one, and both can exist.
const Key = "import"

// Past is store.Imports.
type Past struct{ *db.DB }

// New works on a database.
func New(db *db.DB) Past { return Past{db} }

// ImportRuns implements store.Imports. It locks the triggers of the jobs for sharing, so that no
// job is deleted meanwhile.
func (s *Past) ImportRuns(ctx context.Context, p store.ImportRunsParams) (int, error) {
	if len(p.Runs) > store.MaxImport {
		return 0, domain.Invalid("runs", "are %d: import at most %d at once", len(p.Runs), store.MaxImport)
	}
	return db.Value(ctx, s.RunRepeatable, "import runs", func(t *db.Tx) (int, error) {
		now, err := t.Clock()
		if err != nil {
			return 0, err
		}
		if err := insertInstances(t, &p, now); err != nil {
			return 0, err
		}
		rows, attempts, err := newRows(t, &p, now)
		if err != nil || len(rows) == 0 {
			return 0, err
		}
		if err := record.ExecutionTable.Insert(t, rows); err != nil {
			return 0, err
		}
		if err := record.AttemptTable.Insert(t, attempts); err != nil {
			return 0, err
		}
		return len(rows), record.InsertEndsByHour(t, rows)
	})
}

// newRows are those of the runs that do not exist yet.
func newRows(t *db.Tx, p *store.ImportRunsParams, now time.Time) (rows []*record.ExecutionRow, attempts []*record.AttemptRow, err error) {
	jobs, err := lockJobs(t, p)
	if err != nil {
		return nil, nil, err
	}
	known, err := knownRuns(t, p)
	if err != nil {
		return nil, nil, err
	}
	for i := range p.Runs {
		e := p.Runs[i].Execution
		job, ok := jobs[e.JobID]
		if !ok {
			return nil, nil, db.NotFound("job", e.JobID)
		}
		if err := check(&e, now); err != nil {
			return nil, nil, err
		}
		e.TenantID, e.Executor, e.Partition, e.Revision, e.OccurrenceKey = p.Tenant, job.executor, job.part, job.revision, Key
		row := record.ToExecutionRow(&e)
		if other, exists := known[e.ID]; exists {
			if other != row.Occurrence() {
				return nil, nil, domain.Errorf(domain.CodeConflict, "run %s: another run has this id", e.ID)
			}
			continue
		}
		rows = append(rows, row)
		for n := range p.Runs[i].Earlier {
			a := p.Runs[i].Earlier[n]
			a.TenantID, a.ExecutionID = p.Tenant, e.ID
			attempts = append(attempts, record.ToAttemptRow(&a))
		}
	}
	return rows, attempts, nil
}

// check refuses a run that has not ended before now, and an id that a node can have made.
func check(e *domain.Execution, now time.Time) error {
	switch {
	case !domain.Imported(int64(e.ID)):
		return domain.Invalid("id", "%s is one that a node can make: take ids of domain.ImportNode", e.ID)
	case e.Cause != domain.CauseImport:
		return domain.Invalid("cause", "run %s has the cause %q: an imported run has %q", e.ID, e.Cause, domain.CauseImport)
	case !e.State.Terminal() || e.Lingers || !e.WakeAt.IsZero():
		return domain.Invalid("state", "run %s is %s and may still move: only ended runs can be imported", e.ID, e.State)
	case e.FinishedAt.IsZero() || e.FinishedAt.After(now) || e.FinishedAt.Before(e.PlannedAt):
		return domain.Invalid("finishedAt", "run %s ends at %s: it has to end after it was planned (%s), and before now (%s)",
			e.ID, e.FinishedAt.Format(time.RFC3339), e.PlannedAt.Format(time.RFC3339), now.Format(time.RFC3339))
	}
	return nil
}

// place is what a run takes over from its job.
type place struct {
	executor domain.ExecutorID
	part     int
	revision int64
}

func lockJobs(t *db.Tx, p *store.ImportRunsParams) (map[domain.JobID]place, error) {
	out := map[domain.JobID]place{}
	for i := range p.Runs {
		out[p.Runs[i].JobID] = place{}
	}
	if len(out) == 0 {
		return nil, nil
	}
	ids := make([]domain.JobID, 0, len(out))
	for id := range out {
		ids = append(ids, id)
	}
	clear(out)
	rows, err := t.SQL.QueryContext(t.Ctx, "SELECT tr.job_id, tr.executor_id, tr.part, tr.revision FROM triggers AS tr JOIN jobs AS j ON j.id = tr.job_id WHERE tr.job_id IN ("+
		db.IDList(ids)+") AND tr.tenant_id = ? AND j.state <> ? ORDER BY tr.job_id"+t.Dialect.ForShare(), int64(p.Tenant), int64(domain.JobDeleted))
	if err != nil {
		return nil, fmt.Errorf("lock jobs: %w", err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var id domain.JobID
		var of place
		if err := rows.Scan(&id, &of.executor, &of.part, &of.revision); err != nil {
			return nil, fmt.Errorf("lock jobs: %w", err)
		}
		out[id] = of
	}
	return out, rows.Err()
}

// knownRuns are the occurrences of the ids that exist.
func knownRuns(t *db.Tx, p *store.ImportRunsParams) (map[domain.ExecutionID]record.Occurrence, error) {
	if len(p.Runs) == 0 {
		return nil, nil
	}
	ids := domain.Collect(p.Runs, func(r *store.ImportedRun) domain.ExecutionID { return r.ID })
	rows, err := t.SQL.QueryContext(t.Ctx, "SELECT id, job_id, fire_at, occurrence_key FROM executions WHERE id IN ("+db.IDList(ids)+")")
	if err != nil {
		return nil, fmt.Errorf("find imported runs: %w", err)
	}
	defer func() { _ = rows.Close() }()
	out := map[domain.ExecutionID]record.Occurrence{}
	for rows.Next() {
		var id domain.ExecutionID
		var o record.Occurrence
		if err := rows.Scan(&id, &o.Job, &o.FireAt, &o.Key); err != nil {
			return nil, fmt.Errorf("find imported runs: %w", err)
		}
		out[id] = o
	}
	return out, rows.Err()
}

// insertInstances writes the instances that do not exist yet.
func insertInstances(t *db.Tx, p *store.ImportRunsParams, now time.Time) error {
	if len(p.Instances) == 0 {
		return nil
	}
	rows := make([]record.InstanceRow, len(p.Instances))
	for n := range p.Instances {
		i := &p.Instances[n]
		if !domain.Imported(int64(i.ID)) || i.GoneAt.IsZero() || i.GoneAt.After(now) {
			return domain.Invalid("instances", "%q has the id %s and went at %s: an imported one has an id of domain.ImportNode and went before now",
				i.Name, i.ID, i.GoneAt.Format(time.RFC3339))
		}
		labels, err := json.Marshal(i.Labels)
		if err != nil {
			return fmt.Errorf("encode labels: %w", err)
		}
		gone := db.Millis(i.GoneAt)
		rows[n] = record.InstanceRow{
			ID: int64(i.ID), TenantID: int64(p.Tenant), ExecutorID: int64(i.Executor), BootID: i.BootID, Name: record.Clip(i.Name, record.NameSize),
			Host: record.Clip(i.Host, 255), AppVersion: record.Clip(i.AppVersion, record.NameSize), Client: record.Clip(i.Client, record.NameSize),
			Labels: string(labels), Handlers: "[]", Slots: int64(i.Slots), StartedAt: db.Millis(i.StartedAt), ConnectedAt: db.Millis(i.ConnectedAt),
			LastSeenAt: db.Millis(i.LastSeenAt), LeaseUntil: gone, GoneAt: gone, GoneReason: record.Clip(i.GoneReason, record.NameSize),
		}
	}
	if err := t.Gorm.Clauses(clause.OnConflict{DoNothing: true}).Create(&rows).Error; err != nil {
		return fmt.Errorf("insert instances: %w", err)
	}
	return nil
}
