package console

import (
	"context"
	"errors"
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

// wholeOnce is how many jobs FindJobsByName reads at once.
const wholeOnce = 200

// FindJobsByName implements store.Jobs. It reads along uq_jobs_live_name.
func (s *Jobs) FindJobsByName(ctx context.Context, tenant domain.TenantID, names []string) (map[string]*store.JobView, error) {
	out := make(map[string]*store.JobView, len(names))
	err := s.Look(ctx, "find jobs by name", func(ctx context.Context, q db.Querier, g *gorm.DB) error {
		for from := 0; from < len(names); from += wholeOnce {
			var rows []record.JobRow
			err := g.Where("tenant_id = ? AND name IN ? AND state <> ?", int64(tenant), names[from:min(from+wholeOnce, len(names))], int64(domain.JobDeleted)).Find(&rows).Error
			if err != nil {
				return err
			}
			views, err := s.loadedViews(ctx, q, rows)
			if err != nil {
				return err
			}
			for i := range views {
				out[views[i].Spec.Name] = &views[i]
			}
		}
		return nil
	})
	return out, err
}

// FindJobsByID implements store.Jobs.
func (s *Jobs) FindJobsByID(ctx context.Context, tenant domain.TenantID, ids []domain.JobID) (out []store.JobView, err error) {
	err = s.Look(ctx, "find jobs by id", func(ctx context.Context, q db.Querier, g *gorm.DB) error {
		out = nil
		for some := range slices.Chunk(ids, wholeOnce) {
			var rows []record.JobRow
			if err := g.Table("jobs"+s.Dialect.ByPrimary()).Where("id IN ("+db.IDList(some)+") AND tenant_id = ? AND state <> ?", int64(tenant), int64(domain.JobDeleted)).Find(&rows).Error; err != nil {
				return err
			}
			views, err := s.loadedViews(ctx, q, rows)
			if err != nil {
				return err
			}
			out = append(out, views...)
		}
		return nil
	})
	return out, err
}

// deletedJobs is the condition of jobs that can be restored. The state is a literal, as that of the
// partial index.
var deletedJobs = fmt.Sprintf("state = %d AND kind = %d AND updated_at >= ?", domain.JobDeleted, domain.JobPlain)

// FindDeletedJob implements store.Jobs.
func (s *Jobs) FindDeletedJob(ctx context.Context, tenant domain.TenantID, id domain.JobID, since time.Time) (view store.JobView, err error) {
	err = s.Look(ctx, "find deleted job", func(ctx context.Context, q db.Querier, g *gorm.DB) error {
		var row record.JobRow
		err := g.Where("id = ? AND tenant_id = ?", int64(id), int64(tenant)).Where(deletedJobs, db.Millis(since)).Take(&row).Error
		if errors.Is(err, gorm.ErrRecordNotFound) {
			return domain.Errorf(domain.CodeNotFound, "there is no deleted job %s", id)
		} else if err != nil {
			return err
		}
		views, err := s.loadedViews(ctx, q, []record.JobRow{row})
		if err == nil {
			view = views[0]
		}
		return err
	})
	return view, err
}

// ListDeletedJobs implements store.Jobs. It reads along ix_jobs_restorable.
func (s *Jobs) ListDeletedJobs(ctx context.Context, p store.ListDeletedParams) (out []store.Deleted, err error) {
	err = s.Look(ctx, "list deleted jobs", func(ctx context.Context, q db.Querier, g *gorm.DB) error {
		var rows []record.JobRow
		err := within(g.Table("jobs"+s.Dialect.ByIndex("ix_jobs_restorable")), "executor_id", p.Within).
			Where("tenant_id = ?", int64(p.Tenant)).Where(deletedJobs, db.Millis(p.Since)).
			Order("updated_at DESC, id DESC").Limit(record.PageSize(p.Limit)).Find(&rows).Error
		if err != nil {
			return err
		}
		names, err := executorNames(ctx, q, domain.Collect(rows, func(r *record.JobRow) int64 { return r.ExecutorID }))
		out = domain.Collect(rows, func(r *record.JobRow) store.Deleted {
			return store.Deleted{ID: r.ID, Version: r.Revision, Name: r.Name, Executor: names[r.ExecutorID], At: db.Instant(r.UpdatedAt), By: r.UpdatedBy}
		})
		return err
	})
	return out, err
}

// jobText is a row with the text of its revision.
type jobText struct {
	record.JobRow
	Text      string `gorm:"column:text"`
	WrittenAt int64  `gorm:"column:written_at"`
	WrittenBy string `gorm:"column:written_by"`
}

// ListWholeJobs implements store.Jobs. It reads along ix_jobs_name, and no days of calendars.
func (s *Jobs) ListWholeJobs(ctx context.Context, p store.ListWholeJobsParams) (views []store.JobView, more bool, err error) {
	err = s.Look(ctx, "list whole jobs", func(ctx context.Context, q db.Querier, g *gorm.DB) error {
		g = within(g.Table("jobs AS j").Select("j.*, r.spec AS text, r.created_at AS written_at, r.created_by AS written_by"), "j.executor_id", p.Within).
			Joins("JOIN job_revisions AS r ON r.job_id = j.id AND r.revision = j.revision").
			Where("j.tenant_id = ? AND j.name > ? AND j.kind = ? AND j.state <> ?", int64(p.Tenant), p.After, int64(domain.JobPlain), int64(domain.JobDeleted))
		if !p.Declared {
			g = g.Where("(j.declared_by = 0 OR j.undeclared <> 0 OR j.source <> ?)", string(domain.SourceCode))
		}
		found, cut, err := record.FindWithin(g.Order("j.name, j.id"), record.PageSize(p.Limit), func(r *jobText) int { return len(r.Text) })
		if err != nil {
			return err
		}
		rows, specs := make([]record.JobRow, len(found)), make([]record.CachedSpec, len(found))
		for i := range found {
			rows[i] = found[i].JobRow
			spec, err := record.DecodeSpec([]byte(found[i].Text))
			if err != nil {
				spec = rows[i].Unreadable(err)
			}
			specs[i] = record.CachedSpec{Tenant: p.Tenant, Spec: spec, At: db.Instant(found[i].WrittenAt), By: found[i].WrittenBy}
		}
		if err := record.CalendarFiller(true)(ctx, q, specs); err != nil {
			return err
		}
		views, err = s.wholeViews(ctx, q, rows, func(i int) record.CachedSpec { return specs[i] })
		more = cut
		return err
	})
	return views, more, err
}

// loadedViews are whole views with specs of the cache.
func (s *shared) loadedViews(ctx context.Context, q db.Querier, rows []record.JobRow) ([]store.JobView, error) {
	keys := domain.Collect(rows, func(r *record.JobRow) record.RevisionKey {
		return record.RevisionKey{Job: domain.JobID(r.ID), Revision: r.Revision}
	})
	specs, err := s.specs.Load(ctx, q, keys)
	if err != nil {
		return nil, err
	}
	return s.wholeViews(ctx, q, rows, func(i int) record.CachedSpec {
		if revision := specs[keys[i]]; revision.Spec != nil {
			return revision
		}
		return record.CachedSpec{Spec: rows[i].Unreadable(s.specs.Why(keys[i]))}
	})
}

// wholeViews adds to jobs their specs, executors and next fire times.
func (s *shared) wholeViews(ctx context.Context, q db.Querier, rows []record.JobRow, revision func(int) record.CachedSpec) ([]store.JobView, error) {
	if len(rows) == 0 {
		return nil, nil
	}
	executors, err := executorNames(ctx, q, domain.Collect(rows, func(r *record.JobRow) int64 { return r.ExecutorID }))
	if err != nil {
		return nil, err
	}
	ids := domain.Collect(rows, func(r *record.JobRow) int64 { return r.ID })
	next, err := db.Pairs[int64, int64](ctx, q, "SELECT job_id, next_fire_at FROM triggers"+s.Dialect.ByPrimary()+" WHERE job_id IN ("+db.IDList(ids)+")")
	if err != nil {
		return nil, err
	}
	views := make([]store.JobView, len(rows))
	for i := range rows {
		r, of := &rows[i], revision(i)
		views[i] = store.JobView{Job: r.Job(of.Spec), Written: store.Authorship{At: of.At, By: of.By}, ExecutorName: executors[r.ExecutorID], NextFireAt: db.Instant(next[r.ID])}
	}
	return views, nil
}

// CountFires implements store.Jobs. Each second is a range of ix_triggers_next, of which it
// reads no more than most entries.
func (s *Jobs) CountFires(ctx context.Context, tenant domain.TenantID, seconds []int64, most int) (out map[int64]int, err error) {
	if len(seconds) == 0 {
		return nil, nil
	}
	terms := make([]string, len(seconds))
	for i, at := range seconds {
		terms[i] = fmt.Sprintf("SELECT %d, COUNT(*) FROM (SELECT 1 FROM triggers%s WHERE tenant_id = %d AND next_fire_at >= %d AND next_fire_at < %d LIMIT %d) AS s%d",
			at, s.Dialect.ByIndex("ix_triggers_next"), tenant, at*1000, at*1000+1000, most, i)
	}
	err = s.Look(ctx, "count fires", func(ctx context.Context, q db.Querier, _ *gorm.DB) error {
		out, err = db.Pairs[int64, int](ctx, q, strings.Join(terms, " UNION ALL "))
		return err
	})
	return out, err
}
