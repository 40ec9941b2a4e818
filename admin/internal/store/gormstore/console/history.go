package console

import (
	"context"
	"database/sql"
	"fmt"
	"slices"

	"gorm.io/gorm"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

// history is a table of numbered documents of an owner.
type history struct{ table, owner, number, body string }

var (
	revisionHistory = history{"job_revisions", "job_id", "revision", "spec"}
	calendarHistory = history{"calendar_versions", "calendar_id", "version", "spec"}
	scriptHistory   = history{"script_versions", "script_id", "version", "spec"}
	policyHistory   = history{"script_policies", "tenant_id", "revision", "languages"}
)

// cutAtOnce bounds the documents that leave with one write. Histories of before the bound
// are long.
const cutAtOnce = 20

// cut deletes the oldest documents beyond domain.MaxHistory and returns their bytes. The
// query used names documents that stay.
func (h history) cut(t *db.Tx, owner, newest int64, used string) (freed int64, err error) {
	last := newest - domain.MaxHistory
	if last < 1 {
		return 0, nil
	}
	var gone []int64
	err = db.Query(t.Ctx, t.Conn, func(rows *sql.Rows) error {
		var number, bytes int64
		err := rows.Scan(&number, &bytes)
		gone, freed = append(gone, number), freed+bytes
		return err
	}, fmt.Sprintf("SELECT %s, OCTET_LENGTH(%s) + %d FROM %s WHERE %s = %d AND %s <= %d AND %s NOT IN (%s) ORDER BY %s LIMIT %d",
		h.number, h.body, domain.StoredRow, h.table, h.owner, owner, h.number, last, h.number, used, h.number, cutAtOnce))
	if err == nil && len(gone) > 0 {
		_, err = t.Exec(t.Ctx, fmt.Sprintf("DELETE FROM %s WHERE %s = %d AND %s IN (%s)", h.table, h.owner, owner, h.number, db.IDList(gone)))
	}
	if err != nil {
		return 0, fmt.Errorf("delete from %s: %w", h.table, err)
	}
	return freed, nil
}

// nothingUsed is a query that names no document.
const nothingUsed = "0"

// cutRevisions keeps those that living runs and backfills still read.
func cutRevisions(t *db.Tx, job *record.JobRow) (int64, error) {
	if job.Revision <= domain.MaxHistory {
		return 0, nil
	}
	living, err := record.LivingOf(t.Ctx, t.Conn, domain.TenantID(job.TenantID), domain.JobID(job.ID))
	if err != nil {
		return 0, err
	}
	return revisionHistory.cut(t, job.ID, job.Revision, fmt.Sprintf("SELECT e.revision FROM executions AS e WHERE %s"+
		" UNION SELECT b.revision FROM backfills AS b WHERE b.tenant_id = %d AND b.job_id = %d AND b.wake_at IS NOT NULL", living, job.TenantID, job.ID))
}

// store counts a document of a history, and forgets what is too old of it.
func (h history) store(t *db.Tx, tenant, owner, newest int64, document, used string) error {
	freed, err := h.cut(t, owner, newest, used)
	if err != nil {
		return err
	}
	by := documentBytes(document) - freed
	if err := record.AllowBytes(t, domain.TenantID(tenant), by); err != nil {
		return err
	}
	return record.StoreBytes(t, domain.TenantID(tenant), by)
}

func documentBytes(document string) int64 { return int64(len(document)) + domain.StoredRow }

func (s *Jobs) ListRevisions(ctx context.Context, p store.ListRevisionsParams) (out store.Page[store.Revision], err error) {
	err = s.Look(ctx, "list revisions", func(ctx context.Context, q db.Querier, g *gorm.DB) error {
		g = g.Where("job_id = ? AND tenant_id = ?", int64(p.Job), int64(p.Tenant)).Order("revision DESC")
		if p.Before != 0 {
			g = g.Where("revision < ?", p.Before)
		}
		if !p.Until.IsZero() {
			g = g.Where("created_at <= ?", db.Millis(p.Until))
		}
		rows, more, err := record.FindWithin(g, record.PageSize(p.Limit), func(r *record.RevisionRow) int { return len(r.Spec) })
		if err != nil {
			return err
		}
		if len(rows) == 0 && p.Before == 0 && p.Until.IsZero() {
			return db.NotFound("job", p.Job)
		}
		out = store.Page[store.Revision]{Items: make([]store.Revision, len(rows)), More: more}
		specs := make([]record.CachedSpec, len(rows))
		for i, r := range rows {
			spec, err := record.DecodeSpec([]byte(r.Spec))
			if err != nil {
				spec = &domain.JobSpec{Description: "This revision cannot be read: " + err.Error(), Schedule: domain.ScheduleSpec{Kind: domain.ScheduleNone}}
			}
			specs[i] = record.CachedSpec{Tenant: p.Tenant, Spec: spec}
			out.Items[i] = store.Revision{JobID: p.Job, Revision: r.Revision, CreatedAt: db.Instant(r.CreatedAt), CreatedBy: r.CreatedBy}
		}
		err = record.CalendarFiller(p.Brief)(ctx, q, specs)
		for i := range specs {
			out.Items[i].Spec = *specs[i].Spec
		}
		return err
	})
	return out, err
}

// ListJobChanges merges the events of a job, one more than are asked for because
// each is named after the one before it, with its edits.
func (s *Jobs) ListJobChanges(ctx context.Context, tenant domain.TenantID, id domain.JobID, limit int) (out []store.JobChange, err error) {
	limit = record.PageSize(limit)
	err = s.Look(ctx, "list job changes", func(ctx context.Context, q db.Querier, _ *gorm.DB) error {
		var events, edits []store.JobChange
		scan := func(into *[]store.JobChange) func(*sql.Rows) error {
			return func(rows *sql.Rows) error {
				var e store.JobChange
				var at, number int64
				err := rows.Scan(&number, &e.State, &at, &e.By, &e.Note, &e.Revision)
				e.At = db.Instant(at)
				switch {
				case e.Revision > 0:
					e.What = store.JobEdited
				case number == 1:
					e.What, e.Revision = store.JobCreated, 1
				}
				*into = append(*into, e)
				return err
			}
		}
		err := db.Query(ctx, q, scan(&events), "SELECT number, state, at, created_by, note, 0 FROM job_events WHERE job_id = ? AND tenant_id = ? ORDER BY number DESC LIMIT ?",
			int64(id), int64(tenant), limit+1)
		if err != nil {
			return err
		}
		err = db.Query(ctx, q, scan(&edits), "SELECT 0, 0, created_at, created_by, '', revision FROM job_revisions WHERE job_id = ? AND tenant_id = ? AND revision > 1 ORDER BY revision DESC LIMIT ?",
			int64(id), int64(tenant), limit)
		for i := range events {
			if events[i].What == "" {
				var before domain.JobState
				if i+1 < len(events) {
					before = events[i+1].State
				}
				events[i].What = store.JobEventOf(before, events[i].State)
			}
		}
		out = append(events, edits...)
		slices.SortStableFunc(out, func(a, b store.JobChange) int { return b.At.Compare(a.At) })
		out = out[:min(len(out), limit)]
		return err
	})
	return out, err
}
