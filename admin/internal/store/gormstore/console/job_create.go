package console

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

// createOnce is how many jobs are written in one transaction.
const createOnce = 100

// CreateJob writes the slot row with the job: without it nothing could keep
// overlap out.
func (s *Jobs) CreateJob(ctx context.Context, j domain.Job, next store.NextFireFunc) (store.JobView, error) {
	err := s.Run(ctx, "create job", func(t *db.Tx) error { return s.insertJobs(t, []store.NewJob{{Job: j, Next: next}}, allow) })
	if err != nil {
		return store.JobView{}, err
	}
	return s.FindJob(ctx, j.TenantID, j.ID)
}

// CreateJobs leaves out those whose names are taken. Where one of a hundred is
// refused for another reason, each is written by itself and gets its answer.
func (s *Jobs) CreateJobs(ctx context.Context, tenant domain.TenantID, jobs []store.NewJob) []error {
	errs := make([]error, len(jobs))
	for from := 0; from < len(jobs); from += createOnce {
		to := min(from+createOnce, len(jobs))
		s.createSome(ctx, tenant, jobs[from:to], errs[from:to])
	}
	return errs
}

func (s *Jobs) createSome(ctx context.Context, tenant domain.TenantID, jobs []store.NewJob, errs []error) {
	refused, err := db.Value(ctx, s.Run, "create jobs", func(t *db.Tx) ([]error, error) {
		taken, err := takenNames(t, tenant, jobs)
		if err != nil {
			return nil, err
		}
		refused := make([]error, len(jobs))
		fresh := make([]store.NewJob, 0, len(jobs))
		for i, j := range jobs {
			if taken[j.Spec.Name] {
				refused[i] = errNameTaken(j.Spec.Name)
				continue
			}
			taken[j.Spec.Name] = true
			fresh = append(fresh, j)
		}
		if len(fresh) == 0 {
			return refused, nil
		}
		return refused, s.insertJobs(t, fresh, allow)
	})
	if err == nil {
		copy(errs, refused)
		return
	}
	single := refusesOne(err)
	for i, j := range jobs {
		if errs[i] = err; single {
			errs[i] = s.Run(ctx, "create job", func(t *db.Tx) error { return s.insertJobs(t, []store.NewJob{j}, allow) })
		}
	}
}

// refusesOne reports whether an error may be that of one job of a batch.
func refusesOne(err error) bool {
	return slices.Contains([]domain.Code{domain.CodeConflict, domain.CodeInvalid, domain.CodeNotFound, domain.CodeQuotaExceeded,
		domain.CodeRevisionMismatch, domain.CodeExecutorDisabled}, domain.CodeOf(err))
}

// takenNames returns those names of jobs that living jobs have.
func takenNames(t *db.Tx, tenant domain.TenantID, jobs []store.NewJob) (map[string]bool, error) {
	args := []any{int64(tenant), int64(domain.JobDeleted)}
	for _, j := range jobs {
		args = append(args, j.Spec.Name)
	}
	taken, err := db.Set[string](t.Ctx, t.Conn,
		"SELECT name FROM jobs WHERE tenant_id = ? AND state <> ? AND name IN (?"+strings.Repeat(", ?", len(jobs)-1)+")", args...)
	if err != nil {
		return nil, fmt.Errorf("look for names: %w", err)
	}
	return taken, nil
}

// insertJobs writes new jobs with all that belongs to them.
func (s *shared) insertJobs(t *db.Tx, jobs []store.NewJob, allow allowance) error {
	now, err := t.Clock()
	if err != nil {
		return err
	}
	known := map[domain.ExecutorID]bool{}
	rows := make([]record.JobRow, len(jobs))
	for i := range jobs {
		j := &jobs[i].Job
		if !known[j.Executor] {
			if _, err := record.ExecutorName(t, j.TenantID, j.Executor); err != nil {
				return err
			}
			known[j.Executor] = true
		}
		rows[i] = newJobRow(j, now)
		rows[i].FiresPerMinute = s.Rate(now, &j.Spec)
	}
	if err := allowJobs(t, rows, allow); err != nil {
		return err
	}
	if err := t.Gorm.Create(&rows).Error; err != nil {
		return db.NameTaken(err, "job", jobs[0].Spec.Name)
	}
	revisions := make([]record.RevisionRow, len(jobs))
	events, bytes := make([]any, 0, 5*len(jobs)), int64(0)
	triggers, slots := make([]*record.TriggerRow, len(jobs)), make([]*record.SlotRow, len(jobs))
	for i := range jobs {
		row, spec := &rows[i], &jobs[i].Spec
		if err := linkNew(t, row, spec); err != nil {
			return err
		}
		if revisions[i], err = revisionOf(row, spec); err != nil {
			return err
		}
		bytes += documentBytes(revisions[i].Spec)
		events = append(events, row.ID, row.TenantID, row.State, row.UpdatedAt, row.UpdatedBy)
		at := domain.Never
		if domain.JobState(row.State) == domain.JobEnabled {
			at = jobs[i].Next(now, spec)
		}
		triggers[i] = &record.TriggerRow{JobID: row.ID, TenantID: row.TenantID, Part: row.Part, ExecutorID: row.ExecutorID, Revision: 1, NextFireAt: db.Millis(at)}
		slots[i] = &record.SlotRow{JobID: row.ID, TenantID: row.TenantID}
	}
	if len(rows) == 1 || domain.AuditOf(t.Ctx).IsEach() { // otherwise the API names those of a batch
		for i := range rows {
			t.Audited(auditedJob(&rows[i]))
		}
	}
	tenant := domain.TenantID(rows[0].TenantID)
	if err := allow(t, tenant, growth{bytes: bytes}); err != nil {
		return err
	}
	if err := t.Gorm.Create(&revisions).Error; err != nil {
		return fmt.Errorf("insert job revisions: %w", err)
	}
	if _, err := t.Exec(t.Ctx, "INSERT INTO job_events (job_id, number, tenant_id, state, at, created_by) VALUES (?, 1, ?, ?, ?, ?)"+
		strings.Repeat(", (?, 1, ?, ?, ?, ?)", len(jobs)-1), events...); err != nil {
		return fmt.Errorf("note job events: %w", err)
	}
	if err := record.TriggerTable.Insert(t, triggers); err != nil {
		return err
	}
	if err := record.SlotTable.Insert(t, slots); err != nil {
		return err
	}
	return record.StoreBytes(t, tenant, bytes)
}

// auditedJob is a job as it is now. Its revisions have their contents elsewhere.
func auditedJob(row *record.JobRow) domain.AuditObject {
	return domain.AuditObject{Kind: "job", ID: domain.JobID(row.ID).String(), Name: row.Name, After: jobFacts(row)}
}

func jobFacts(row *record.JobRow) string {
	return fmt.Sprintf(`{"revision":%d,"state":%q}`, row.Revision, domain.JobState(row.State))
}

func newJobRow(j *domain.Job, now time.Time) record.JobRow {
	row := record.JobRow{
		ID: int64(j.ID), TenantID: int64(j.TenantID), ExecutorID: int64(j.Executor), Part: int64(domain.PartitionOf(j.ID)),
		Kind:   int64(j.Kind),
		Source: string(j.Source), DeclarationHash: j.DeclarationHash, Revision: 1,
		CreatedAt: db.Millis(now), UpdatedAt: db.Millis(now), CreatedBy: j.CreatedBy, UpdatedBy: j.CreatedBy,
	}
	row.SetState(max(j.State, domain.JobEnabled), j.CreatedBy, record.Clip(j.Pause.Note, record.MessageSize), row.CreatedAt)
	row.SetDeclared(&j.Declared)
	row.SetSpec(&j.Spec)
	return row
}

// linkNew notes what a new job uses, of which there is nothing yet.
func linkNew(t *db.Tx, row *record.JobRow, spec *domain.JobSpec) error {
	if len(spec.Schedule.Calendars) > 0 {
		if err := linkCalendars(t, row, spec); err != nil {
			return err
		}
	}
	if spec.Script != nil {
		if err := linkScript(t, row, spec); err != nil {
			return err
		}
	}
	return insertCallbacks(t, row, spec)
}

func errNameTaken(name string) error {
	return domain.Errorf(domain.CodeConflict, "there is a job named %q already", name)
}

// insertRevision returns by how much the stored bytes grow.
func insertRevision(t *db.Tx, row *record.JobRow, spec *domain.JobSpec) (int64, error) {
	r, err := revisionOf(row, spec)
	if err != nil {
		return 0, err
	}
	if err := t.Gorm.Create(&r).Error; err != nil {
		return 0, err
	}
	freed, err := cutRevisions(t, row)
	return documentBytes(r.Spec) - freed, err
}

func revisionOf(row *record.JobRow, spec *domain.JobSpec) (record.RevisionRow, error) {
	text, err := record.EncodeSpec(spec)
	if err != nil {
		return record.RevisionRow{}, fmt.Errorf("encode job: %w", err)
	}
	return record.RevisionRow{
		JobID: row.ID, Revision: row.Revision, TenantID: row.TenantID, Spec: text, CreatedAt: row.UpdatedAt, CreatedBy: row.UpdatedBy,
	}, nil
}
