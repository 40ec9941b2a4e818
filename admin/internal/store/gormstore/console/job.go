package console

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"gorm.io/gorm"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/engine"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/timer"
)

// lockJob locks the job's trigger, which stands for all of the job, and reads
// the job. A deleted job is not found.
func lockJob(t *db.Tx, tenant domain.TenantID, id domain.JobID) (trigger *record.TriggerRow, job record.JobRow, now time.Time, err error) {
	return lockJobWhere(t, tenant, id, "state <> ?", int64(domain.JobDeleted))
}

func lockJobWhere(t *db.Tx, tenant domain.TenantID, id domain.JobID, where string, args ...any) (trigger *record.TriggerRow, job record.JobRow, now time.Time, err error) {
	var at int64
	trigger = &record.TriggerRow{}
	err = t.SQL.QueryRowContext(t.Ctx, "SELECT "+t.Dialect.Clock()+", "+record.TriggerColumns+" FROM triggers WHERE job_id = ? AND tenant_id = ?"+t.Dialect.ForUpdate(),
		int64(id), int64(tenant)).Scan(record.TriggerTable.Targets(trigger, &at)...)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, job, now, db.NotFound("job", id)
	} else if err != nil {
		return nil, job, now, fmt.Errorf("lock trigger: %w", err)
	}
	err = t.Gorm.Where("id = ? AND tenant_id = ?", int64(id), int64(tenant)).Where(where, args...).Take(&job).Error
	if errors.Is(err, gorm.ErrRecordNotFound) {
		err = db.NotFound("job", id)
	}
	return trigger, job, db.Instant(at), err
}

// UpdateJob writes a new revision; see revise.
func (s *Jobs) UpdateJob(ctx context.Context, p store.UpdateJobParams) (store.JobView, error) {
	err := s.Run(ctx, "update job", func(t *db.Tx) error { return s.updateJob(t, p, allow) })
	if err != nil {
		return store.JobView{}, err
	}
	return s.FindJob(ctx, p.Tenant, p.ID)
}

func (s *shared) updateJob(t *db.Tx, p store.UpdateJobParams, allow allowance) error {
	trigger, job, now, err := lockJob(t, p.Tenant, p.ID)
	if err != nil {
		return err
	}
	return s.updateLocked(t, trigger, &job, now, p, allow)
}

func (s *shared) updateLocked(t *db.Tx, trigger *record.TriggerRow, job *record.JobRow, now time.Time, p store.UpdateJobParams, allow allowance) error {
	if p.IfRevision != 0 && p.IfRevision != job.Revision {
		return domain.Errorf(domain.CodeRevisionMismatch, "job %s is at revision %d, not %d", p.ID, job.Revision, p.IfRevision)
	}
	if p.Executor != 0 && int64(p.Executor) != job.ExecutorID {
		if _, err := record.ExecutorName(t, p.Tenant, p.Executor); err != nil {
			return err
		}
		job.ExecutorID = int64(p.Executor)
	}
	if domain.JobState(job.State) == domain.JobEnabled {
		if err := allow(t, p.Tenant, growth{fires: s.Rate(now, &p.Spec) - job.FiresPerMinute}); err != nil {
			return err
		}
	}
	job.Source, job.DeclarationHash = string(p.Source), p.DeclarationHash
	job.SetDeclared(p.Declared)
	return s.revise(t, trigger, job, now, revision{spec: &p.Spec, by: p.By, next: p.Next, plan: p.Plan, allow: allow})
}

// RestoreJob implements store.Jobs. The trigger of a deleted job stays, and its lock keeps
// retention from it.
func (s *Jobs) RestoreJob(ctx context.Context, p store.RestoreJobParams) (store.JobView, error) {
	err := s.Run(ctx, "restore job", func(t *db.Tx) error {
		trigger, job, now, err := lockJobWhere(t, p.Tenant, p.ID, deletedJobs, db.Millis(p.Since))
		if err != nil {
			return err
		}
		if p.IfRevision != job.Revision {
			return domain.Errorf(domain.CodeRevisionMismatch, "job %s is at revision %d, not %d", p.ID, job.Revision, p.IfRevision)
		}
		if _, err := record.ExecutorName(t, p.Tenant, p.Executor); err != nil {
			return err
		}
		before := jobFacts(&job)
		job.ExecutorID, job.Source = int64(p.Executor), string(p.Source)
		if err := undeclareDouble(t, &job); err != nil {
			return err
		}
		state, err := stateBefore(t, &job)
		if err != nil {
			return err
		}
		job.FiresPerMinute = s.Rate(now, &p.Spec)
		job.SetState(state, p.By, "", db.Millis(now))
		job.HeldBy = 0
		if err := allowJobs(t, []record.JobRow{job}, allow); err != nil {
			return err
		}
		if err := s.revise(t, trigger, &job, now, revision{spec: &p.Spec, by: p.By, next: p.Next, plan: p.Plan, allow: allow, before: before}); err != nil {
			return err
		}
		return insertJobEvent(t, &job)
	})
	if err != nil {
		return store.JobView{}, err
	}
	return s.FindJob(ctx, p.Tenant, p.ID)
}

// stateBefore is what a job was before its deletion.
func stateBefore(t *db.Tx, job *record.JobRow) (domain.JobState, error) {
	found, err := db.SelectColumn[domain.JobState](t.Ctx, t.Conn, "SELECT state FROM job_events WHERE job_id = ? AND state <> ? ORDER BY number DESC LIMIT 1", job.ID, int64(domain.JobDeleted))
	if err != nil || len(found) == 0 {
		return domain.JobPaused, err
	}
	return found[0], nil
}

// undeclareDouble takes the declaration from a job that code has deleted, or has declared anew.
func undeclareDouble(t *db.Tx, job *record.JobRow) error {
	var n int64
	if job.DeclaredName != "" {
		err := t.Gorm.Model(&record.JobRow{}).Where("tenant_id = ? AND declared_by = ? AND declared_name = ? AND state <> ?",
			job.TenantID, job.DeclaredBy, job.DeclaredName, int64(domain.JobDeleted)).Count(&n).Error
		if err != nil {
			return fmt.Errorf("look for the job that is declared in its place: %w", err)
		}
	}
	if job.DeclaredName == "" || n > 0 {
		job.SetDeclared(&domain.Declared{})
		job.DeclarationHash, job.Source = "", string(domain.SourceConsole)
	}
	return nil
}

// revision is what a new revision of a job is made of.
type revision struct {
	spec *domain.JobSpec
	by   string
	next store.NextFireFunc
	plan store.PlanFunc
	// allow refuses the revision if the tenant may not store more; nil: it is not asked.
	allow allowance
	// before are the job's facts before the edit, for the audit log. Empty: those of the row.
	before string
}

// revise ends the plan of the old revision and starts anew with the next one.
// The trigger is locked.
func (s *shared) revise(t *db.Tx, trigger *record.TriggerRow, job *record.JobRow, now time.Time, r revision) error {
	now, err := s.engine.EndPlan(t, trigger, now, r.plan, domain.JobEnabled)
	if err != nil {
		return err
	}
	before := cmp.Or(r.before, jobFacts(job))
	job.Revision++
	job.UpdatedAt, job.UpdatedBy = max(db.Millis(now), job.UpdatedAt), r.by
	job.SetSpec(r.spec)
	job.FiresPerMinute = s.Rate(now, r.spec)
	if err := linkCalendars(t, job, r.spec); err != nil {
		return err
	}
	if err := linkScript(t, job, r.spec); err != nil {
		return err
	}
	if err := linkCallbacks(t, job, r.spec); err != nil {
		return err
	}
	changed := auditedJob(job)
	changed.Before = before
	t.Audited(changed)
	bytes, err := insertRevision(t, job, r.spec)
	if err != nil {
		return err
	}
	if r.allow != nil {
		if err := r.allow(t, domain.TenantID(job.TenantID), growth{bytes: bytes}); err != nil {
			return err
		}
	}
	at := domain.Never
	if domain.JobState(job.State) == domain.JobEnabled {
		if at, err = engine.FirstFire(t, job, r.spec, r.next(now, r.spec)); err != nil {
			return err
		}
	}
	if err := saveJob(t, job, at); err != nil {
		return err
	}
	return record.StoreBytes(t, domain.TenantID(job.TenantID), bytes)
}

// endTimers has the pending timers of a job that is deleted cancelled, however many
// there are.
func (s *shared) endTimers(t *db.Tx, job *record.JobRow, now time.Time, by string) error {
	if domain.JobKind(job.Kind) != domain.JobTimer {
		return nil
	}
	id, err := s.NewID()
	if err != nil {
		return err
	}
	return timer.InsertCancellation(t, domain.TimerCancellation{
		ID: domain.TimerCancellationID(id), TenantID: domain.TenantID(job.TenantID), JobID: domain.JobID(job.ID), CreatedBy: by,
	}, now)
}

// saveJob writes the job and its trigger.
func saveJob(t *db.Tx, job *record.JobRow, next time.Time) error {
	result := t.Gorm.Model(&record.JobRow{}).Where("id = ? AND tenant_id = ?", job.ID, job.TenantID).Select("*").Omit("id", "tenant_id", "part", "kind", "created_at", "created_by").Updates(job)
	if result.Error != nil {
		return db.NameTaken(result.Error, "job", job.Name)
	}
	_, err := t.Exec(t.Ctx, "UPDATE triggers SET executor_id = ?, revision = ?, next_fire_at = ? WHERE job_id = ? AND tenant_id = ?",
		job.ExecutorID, job.Revision, db.Millis(next), job.ID, job.TenantID)
	return err
}

// SetJobState holds the trigger's lock while it ends what waits: a claim sees
// the job before or after, never in between.
func (s *Jobs) SetJobState(ctx context.Context, p store.SetJobStateParams) (store.JobView, error) {
	view, err := db.Value(ctx, s.Run, "set job state", func(t *db.Tx) (store.JobView, error) { return s.setJobState(t, p, allow) })
	if err != nil {
		return store.JobView{}, err
	}
	if p.State == domain.JobDeleted {
		return view, nil // no list shows it any more
	}
	return s.FindJob(ctx, p.Tenant, p.ID)
}

func (s *shared) setJobState(t *db.Tx, p store.SetJobStateParams, allow allowance) (view store.JobView, err error) {
	trigger, job, now, err := lockJob(t, p.Tenant, p.ID)
	if err != nil {
		return view, err
	}
	return s.setLockedState(t, trigger, &job, now, p, allow)
}

func (s *shared) setLockedState(t *db.Tx, trigger *record.TriggerRow, job *record.JobRow, now time.Time, p store.SetJobStateParams, allow allowance) (view store.JobView, err error) {
	if p.IfRevision != 0 && p.IfRevision != job.Revision {
		return view, domain.Errorf(domain.CodeRevisionMismatch, "job %s is at revision %d, not %d", p.ID, job.Revision, p.IfRevision)
	}
	if skip, err := held(t, job, &p); skip || err != nil {
		return view, err
	}
	if p.Mine && notMine(job, p.By) {
		return view, nil
	}
	again := pausedAgain(job, &p)
	declared := p.Declared
	if again && declared != nil { // somebody was quicker than the server
		d := *declared
		d.PausedGone, declared = false, &d
	}
	revision, err := s.specs.RevisionOf(t, job)
	if err != nil {
		return view, err
	}
	spec, next := revision.Spec, domain.Never
	switch {
	case p.State == domain.JobEnabled && domain.JobState(job.State) == domain.JobEnabled:
		next = db.Instant(trigger.NextFireAt) // nothing changes but the note
	case p.State == domain.JobEnabled:
		if p.Release != 0 {
			if now, err = releasedAt(t, job, now); err != nil {
				return view, err
			}
		}
		job.FiresPerMinute = s.Rate(now, spec)
		if err := allow(t, p.Tenant, growth{fires: job.FiresPerMinute}); err != nil {
			return view, err
		}
		if next, err = engine.FirstFire(t, job, spec, p.Next(now, spec)); err != nil {
			return view, err
		}
	default:
		to := p.State
		if p.Hold != 0 {
			to = domain.JobEnabled // what is due keeps waiting: it runs when executor and tenant are enabled
		}
		if now, err = s.engine.EndPlan(t, trigger, now, p.Plan, to); err != nil {
			return view, err
		}
		if p.State == domain.JobDeleted {
			if err := s.unlinkDeleted(t, job, now, &p); err != nil {
				return view, err
			}
		}
	}
	if p.Declared == nil {
		job.Decided()
	}
	job.SetDeclared(declared)
	if !again {
		note := record.Clip(p.Note, record.MessageSize)
		changed, before := job.State != int64(p.State) || job.PauseNote != note, jobFacts(job)
		job.SetState(p.State, p.By, note, db.Millis(now))
		job.HeldBy, job.UpdatedAt, job.UpdatedBy = p.Hold, max(db.Millis(now), job.UpdatedAt), p.By
		if p.Hold == 0 && p.Release == 0 { // otherwise it follows its executor or tenant
			object := auditedJob(job)
			object.Before = before
			t.Audited(object)
		}
		if changed {
			if err := insertJobEvent(t, job); err != nil {
				return view, err
			}
		}
	}
	return store.JobView{Job: job.Job(spec), Written: store.Authorship{At: revision.At, By: revision.By}, NextFireAt: next}, saveJob(t, job, next)
}

// unlinkDeleted ends what hangs on a job that is deleted.
func (s *shared) unlinkDeleted(t *db.Tx, job *record.JobRow, now time.Time, p *store.SetJobStateParams) error {
	if err := unlinkCalendars(t, job); err != nil {
		return err
	}
	if err := linkScript(t, job, &domain.JobSpec{}); err != nil {
		return err
	}
	if err := unlinkCallbacks(t, job); err != nil {
		return err
	}
	if p.Declared != nil && job.DeclaredName != "" { // code deletes it: that somebody deleted one before it does not count any more
		_, err := t.Exec(t.Ctx, "UPDATE jobs SET declared_name = '' WHERE tenant_id = ? AND declared_by = ? AND declared_name = ? AND state = ?",
			job.TenantID, job.DeclaredBy, job.DeclaredName, int64(domain.JobDeleted))
		if err != nil {
			return fmt.Errorf("forget that the job was deleted before: %w", err)
		}
	}
	return s.endTimers(t, job, now, p.By)
}

// pausedAgain reports whether a person has paused the job already. Author, time and note
// of that pause stay. A pause by the server itself gives way to a person's.
func pausedAgain(job *record.JobRow, p *store.SetJobStateParams) bool {
	return p.State == domain.JobPaused && domain.JobState(job.State) == domain.JobPaused && !job.PausedByMachine()
}

// notMine reports whether the job is paused, but not by this actor. The way that a
// request came does not count: "anna via mcp" is anna.
func notMine(job *record.JobRow, by string) bool {
	actor, _, _ := strings.Cut(by, domain.Via)
	pausedBy, _, _ := strings.Cut(job.PausedBy, domain.Via)
	return domain.JobState(job.State) == domain.JobPaused && (job.PausedByMachine() || pausedBy != actor)
}

func (s *Catalogue) ListDeclaredJobs(ctx context.Context, tenant domain.TenantID, executor domain.ExecutorID) (views []store.JobView, err error) {
	err = s.Look(ctx, "list declared jobs", func(ctx context.Context, q db.Querier, g *gorm.DB) error {
		var rows []record.JobRow
		err := g.Where("tenant_id = ? AND declared_by = ? AND state <> ?", int64(tenant), int64(executor), int64(domain.JobDeleted)).
			Order("id").Find(&rows).Error
		if err == nil {
			views, err = s.jobViews(ctx, q, rows, store.RecentRuns, s.specs.Load)
		}
		return err
	})
	return views, err
}

func (s *Catalogue) FindDeclaredJob(ctx context.Context, tenant domain.TenantID, executor domain.ExecutorID, name string) (view store.JobView, err error) {
	err = s.Look(ctx, "find declared job", func(ctx context.Context, q db.Querier, g *gorm.DB) error {
		var row record.JobRow
		err := g.Where("tenant_id = ? AND declared_by = ? AND declared_name = ? AND state <> ?",
			int64(tenant), int64(executor), name, int64(domain.JobDeleted)).Order("id").Take(&row).Error
		if err != nil {
			return err
		}
		views, err := s.jobViews(ctx, q, []record.JobRow{row}, store.RecentRuns, s.specs.Load)
		if err == nil {
			view = views[0]
		}
		return err
	})
	return view, err
}

func (s *Catalogue) WasDeclared(ctx context.Context, tenant domain.TenantID, executor domain.ExecutorID, name string) (was bool, err error) {
	err = s.Look(ctx, "find deleted job", func(_ context.Context, _ db.Querier, g *gorm.DB) error {
		var n int64
		err := g.Model(&record.JobRow{}).Where("tenant_id = ? AND declared_by = ? AND declared_name = ? AND state = ?",
			int64(tenant), int64(executor), name, int64(domain.JobDeleted)).Count(&n).Error
		was = n > 0
		return err
	})
	return was, err
}

// markDeclared keeps the revision and the time of the last change, since a mark is no edit.
func markDeclared(t *db.Tx, tenant domain.TenantID, m store.DeclaredMark) error {
	_, job, _, err := lockJob(t, tenant, m.Job)
	if err != nil {
		return err
	}
	if job.SetDeclared(&m.Declared); m.Hash != "" {
		job.DeclarationHash = m.Hash
	}
	return t.Gorm.Model(&record.JobRow{}).Where("id = ? AND tenant_id = ?", job.ID, job.TenantID).
		Select("declared_by", "declared_name", "ownership", "removal", "declared_build", "declared_version", "undeclared", "replaced_revision", "declaration_hash").Updates(&job).Error
}
