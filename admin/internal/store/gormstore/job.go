package gormstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"gorm.io/gorm"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
)

type jobRow struct {
	ID              int64  `gorm:"column:id;primaryKey;autoIncrement:false"`
	TenantID        int64  `gorm:"column:tenant_id"`
	ExecutorID      int64  `gorm:"column:executor_id"`
	Part            int64  `gorm:"column:part"`
	State           int64  `gorm:"column:state"`
	Kind            int64  `gorm:"column:kind"`
	Name            string `gorm:"column:name"`
	Handler         string `gorm:"column:handler"`
	Description     string `gorm:"column:description"`
	Labels          string `gorm:"column:labels"`
	Owner           string `gorm:"column:owner"`
	PauseNote       string `gorm:"column:pause_note"`
	Source          string `gorm:"column:source"`
	DeclarationHash string `gorm:"column:declaration_hash"`
	DeclaredBy      int64  `gorm:"column:declared_by"`
	Ownership       string `gorm:"column:ownership"`
	Removal         string `gorm:"column:removal"`
	DeclaredBuild   string `gorm:"column:declared_build"`
	DeclaredVersion string `gorm:"column:declared_version"`
	Undeclared      int64  `gorm:"column:undeclared"`
	Revision        int64  `gorm:"column:revision"`
	FiresPerMinute  int64  `gorm:"column:fires_per_minute"`
	CreatedAt       int64  `gorm:"column:created_at;autoCreateTime:false"`
	UpdatedAt       int64  `gorm:"column:updated_at;autoUpdateTime:false"`
	CreatedBy       string `gorm:"column:created_by"`
	UpdatedBy       string `gorm:"column:updated_by"`
}

func (jobRow) TableName() string { return "jobs" }

type revisionRow struct {
	JobID     int64  `gorm:"column:job_id;primaryKey;autoIncrement:false"`
	Revision  int64  `gorm:"column:revision;primaryKey;autoIncrement:false"`
	TenantID  int64  `gorm:"column:tenant_id"`
	Spec      string `gorm:"column:spec"`
	CreatedAt int64  `gorm:"column:created_at;autoCreateTime:false"`
	CreatedBy string `gorm:"column:created_by"`
}

func (revisionRow) TableName() string { return "job_revisions" }

// setSpec copies what lists filter and sort by.
func (r *jobRow) setSpec(spec *domain.JobSpec) {
	r.Name, r.Handler, r.Description = spec.Name, spec.Handler, spec.Description
	r.Owner = clip(strings.TrimSpace(spec.Owner.Name+" "+spec.Owner.Email), 512)
	keys := make([]string, 0, len(spec.Labels))
	for k := range spec.Labels {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	var b strings.Builder
	for _, k := range keys {
		b.WriteString("\n" + k + "=" + spec.Labels[k] + "\n")
	}
	r.Labels = b.String()
}

func (r *jobRow) job(spec *domain.JobSpec) domain.Job {
	return domain.Job{
		ID: domain.JobID(r.ID), TenantID: domain.TenantID(r.TenantID), Executor: domain.ExecutorID(r.ExecutorID), Partition: int(r.Part),
		State: domain.JobState(r.State), Kind: domain.JobKind(r.Kind), PauseNote: r.PauseNote, Source: domain.Source(r.Source), DeclarationHash: r.DeclarationHash,
		Declared: r.declared(), Revision: r.Revision, Spec: *spec, CreatedAt: db.Instant(r.CreatedAt), UpdatedAt: db.Instant(r.UpdatedAt),
		CreatedBy: r.CreatedBy, UpdatedBy: r.UpdatedBy,
	}
}

// lockJob locks the job's trigger, which stands for all of the job, and reads
// the job. A deleted job is not found.
func lockJob(t *db.Tx, tenant domain.TenantID, id domain.JobID) (trigger *triggerRow, job jobRow, now time.Time, err error) {
	var at int64
	trigger = &triggerRow{}
	err = t.SQL.QueryRowContext(t.Ctx, "SELECT "+t.Dialect.Clock()+", "+triggerColumns+" FROM triggers WHERE job_id = ? AND tenant_id = ?"+t.Dialect.ForUpdate(),
		int64(id), int64(tenant)).Scan(triggerTable.Targets(trigger, &at)...)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, job, now, db.NotFound("job", id)
	} else if err != nil {
		return nil, job, now, fmt.Errorf("lock trigger: %w", err)
	}
	err = t.Gorm.Where("id = ? AND tenant_id = ? AND state <> ?", int64(id), int64(tenant), int64(domain.JobDeleted)).Take(&job).Error
	if errors.Is(err, gorm.ErrRecordNotFound) {
		err = db.NotFound("job", id)
	}
	return trigger, job, db.Instant(at), err
}

// UpdateJob writes a new revision; see revise.
func (s *Jobs) UpdateJob(ctx context.Context, p store.UpdateJobParams) (store.JobView, error) {
	err := s.Run(ctx, "update job", func(t *db.Tx) error {
		trigger, job, now, err := lockJob(t, p.Tenant, p.ID)
		if err != nil {
			return err
		}
		if p.IfRevision != 0 && p.IfRevision != job.Revision {
			return domain.Errorf(domain.CodeRevisionMismatch, "job %s is at revision %d, not %d", p.ID, job.Revision, p.IfRevision)
		}
		if p.Executor != 0 && int64(p.Executor) != job.ExecutorID {
			if _, err := executorName(t, p.Tenant, p.Executor); err != nil {
				return err
			}
			job.ExecutorID = int64(p.Executor)
		}
		if err := allowFires(t, &job, s.rate(now, &p.Spec)); err != nil {
			return err
		}
		job.Source, job.DeclarationHash = string(p.Source), p.DeclarationHash
		job.setDeclared(p.Declared)
		return s.revise(t, trigger, &job, now, revision{spec: &p.Spec, by: p.By, next: p.Next, plan: p.Plan})
	})
	if err != nil {
		return store.JobView{}, err
	}
	return s.FindJob(ctx, p.Tenant, p.ID)
}

// revision is what a new revision of a job is made of.
type revision struct {
	spec *domain.JobSpec
	by   string
	next store.NextFireFunc
	plan store.PlanFunc
}

// revise ends the plan of the old revision and starts anew with the next one.
// The trigger is locked.
func (s *shared) revise(t *db.Tx, trigger *triggerRow, job *jobRow, now time.Time, r revision) error {
	now, err := s.engine.endPlan(t, trigger, now, r.plan, domain.JobEnabled)
	if err != nil {
		return err
	}
	job.Revision++
	job.UpdatedAt, job.UpdatedBy = max(db.Millis(now), job.UpdatedAt), r.by
	job.setSpec(r.spec)
	job.FiresPerMinute = s.rate(now, r.spec)
	if err := linkCalendars(t, job, r.spec); err != nil {
		return err
	}
	if err := linkScript(t, job, r.spec); err != nil {
		return err
	}
	if err := insertRevision(t, job, r.spec); err != nil {
		return err
	}
	at := domain.Never
	if domain.JobState(job.State) == domain.JobEnabled {
		if at, err = firstFire(t, job, r.spec, r.next(now, r.spec)); err != nil {
			return err
		}
	}
	return saveJob(t, job, at)
}

// saveJob writes the job and its trigger.
func saveJob(t *db.Tx, job *jobRow, next time.Time) error {
	result := t.Gorm.Model(&jobRow{}).Where("id = ? AND tenant_id = ?", job.ID, job.TenantID).Select("*").Omit("id", "tenant_id", "part", "kind", "created_at", "created_by").Updates(job)
	if result.Error != nil {
		return nameTaken(result.Error, job.Name)
	}
	_, err := t.Exec(t.Ctx, "UPDATE triggers SET executor_id = ?, revision = ?, next_fire_at = ? WHERE job_id = ? AND tenant_id = ?",
		job.ExecutorID, job.Revision, db.Millis(next), job.ID, job.TenantID)
	return err
}

// SetJobState holds the trigger's lock while it ends what waits: a claim sees
// the job before or after, never in between.
func (s *Jobs) SetJobState(ctx context.Context, p store.SetJobStateParams) (store.JobView, error) {
	var view store.JobView
	err := s.Run(ctx, "set job state", func(t *db.Tx) error {
		trigger, job, now, err := lockJob(t, p.Tenant, p.ID)
		if err != nil {
			return err
		}
		spec, err := s.specs.ofJob(t, &job)
		if err != nil {
			return err
		}
		next := domain.Never
		switch {
		case p.State == domain.JobEnabled && domain.JobState(job.State) == domain.JobEnabled:
			next = db.Instant(trigger.nextFireAt) // nothing changes but the note
		case p.State == domain.JobEnabled:
			job.FiresPerMinute = s.rate(now, spec)
			if err := grow(t, p.Tenant, growth{domain.QuotaFires, job.FiresPerMinute}); err != nil {
				return err
			}
			if next, err = firstFire(t, &job, spec, p.Next(now, spec)); err != nil {
				return err
			}
		default:
			if now, err = s.engine.endPlan(t, trigger, now, p.Plan, p.State); err != nil {
				return err
			}
			if p.State == domain.JobDeleted {
				if err := unlinkCalendars(t, &job); err != nil {
					return err
				}
				if err := linkScript(t, &job, &domain.JobSpec{}); err != nil {
					return err
				}
			}
		}
		job.setDeclared(p.Declared)
		changed := job.State != int64(p.State)
		job.State, job.PauseNote = int64(p.State), clip(p.Note, messageSize)
		job.UpdatedAt, job.UpdatedBy = max(db.Millis(now), job.UpdatedAt), p.By
		if changed {
			if err := insertJobEvent(t, &job); err != nil {
				return err
			}
		}
		view = store.JobView{Job: job.job(spec), NextFireAt: next}
		return saveJob(t, &job, next)
	})
	if err != nil {
		return store.JobView{}, err
	}
	if p.State == domain.JobDeleted {
		return view, nil // no list shows it any more
	}
	return s.FindJob(ctx, p.Tenant, p.ID)
}

func (c *specCache) ofJob(t *db.Tx, job *jobRow) (*domain.JobSpec, error) {
	key := revisionKey{domain.JobID(job.ID), job.Revision}
	specs, err := c.load(t.Ctx, t.Conn, []revisionKey{key})
	if err != nil {
		return nil, err
	}
	if specs[key].spec == nil {
		return job.unreadable(c.why(key)), nil
	}
	return specs[key].spec, nil
}

// unreadable stands for a revision that cannot be read, so that the job can be
// seen, paused, deleted and saved anew.
func (r *jobRow) unreadable(why error) *domain.JobSpec {
	return &domain.JobSpec{
		Name: r.Name, Handler: r.Handler, Description: "This job cannot be run: " + why.Error() + ". Save it anew.",
		Schedule: domain.ScheduleSpec{Kind: domain.ScheduleNone},
	}
}
