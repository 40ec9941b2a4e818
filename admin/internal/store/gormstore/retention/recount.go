package retention

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"gorm.io/gorm"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

// recountTimeout bounds the reading of one tenant's rows.
const recountTimeout = 5 * time.Minute

// documents are the tables that stored_bytes sums, and the bytes of one row.
var documents = []struct{ from, bytes string }{
	{"jobs AS o JOIN job_revisions AS d ON d.job_id = o.id", "OCTET_LENGTH(d.spec)"},
	{"calendars AS o JOIN calendar_versions AS d ON d.calendar_id = o.id", "OCTET_LENGTH(d.spec)"},
	{"deleted_documents AS o JOIN calendar_versions AS d ON d.calendar_id = o.id", "OCTET_LENGTH(d.spec)"},
	{"script_versions AS o", "OCTET_LENGTH(o.spec)"},
	{"job_proposals AS o", "OCTET_LENGTH(o.spec)"},
	{"executor_builds AS o", "OCTET_LENGTH(o.handlers) + COALESCE(OCTET_LENGTH(o.catalogue), 0)"},
	{"handlers AS o", "COALESCE(OCTET_LENGTH(o.input_schema), 0) + COALESCE(OCTET_LENGTH(o.output_schema), 0) + COALESCE(OCTET_LENGTH(o.calls), 0)"},
}

// RecountStored corrects the sums of tenants if their last count is older than an
// instant. It returns the number of wrong ones. One statement reads rows and sums, and
// sums change by additions only. So writes at the same time do no harm.
func (s *Retention) RecountStored(ctx context.Context, since time.Time) (wrong int, err error) {
	tenants, err := db.LookPairs[domain.TenantID, int64](ctx, s.DB, "find tenants to recount",
		fmt.Sprintf("SELECT t.id, COALESCE(b.counted_at, 0) FROM tenants AS t LEFT JOIN stored_bytes AS b ON b.tenant_id = t.id AND b.slot = 0"+
			" WHERE t.state IN (%d, %d) AND COALESCE(b.counted_at, 0) < ?", domain.TenantEnabled, domain.TenantDisabled), db.Millis(since))
	for tenant, counted := range tenants {
		if err != nil || ctx.Err() != nil {
			break
		}
		var corrected bool
		if corrected, err = s.recount(ctx, tenant, counted); corrected {
			wrong++
		}
	}
	return wrong, err
}

// recount is for one node at a time. If another one was faster, counted has changed.
func (s *Retention) recount(ctx context.Context, tenant domain.TenantID, counted int64) (corrected bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, recountTimeout)
	defer cancel()
	var stored int64
	timers := record.TimerCounts{}
	err = s.Look(ctx, "recount stored bytes", func(ctx context.Context, q db.Querier, _ *gorm.DB) (err error) {
		if stored, err = missingBytes(ctx, q, tenant); err == nil {
			timers, err = s.missingTimers(ctx, q, tenant)
		}
		return err
	})
	if err != nil {
		return false, err
	}
	return db.Value(ctx, s.RunRepeatable, "correct stored bytes", func(t *db.Tx) (bool, error) {
		_, err := t.Exec(t.Ctx, "INSERT INTO stored_bytes (tenant_id, slot, bytes) VALUES (?, 0, 0)"+
			t.Dialect.OnDuplicate("tenant_id, slot")+" bytes = stored_bytes.bytes", int64(tenant))
		if err != nil {
			return false, err
		}
		mine, err := t.Exec(t.Ctx, "UPDATE stored_bytes SET counted_at = "+t.Dialect.ClockNow()+" WHERE tenant_id = ? AND slot = 0 AND counted_at = ?", int64(tenant), counted)
		if err != nil || mine == 0 || stored == 0 && len(timers) == 0 {
			return false, err
		}
		if err := record.StoreBytes(t, tenant, stored); err != nil {
			return false, err
		}
		return true, timers.Save(t)
	})
}

// missingBytes is by how much the sum of documents is too small.
func missingBytes(ctx context.Context, q db.Querier, tenant domain.TenantID) (bytes int64, err error) {
	sums := make([]string, len(documents))
	for i, d := range documents {
		sums[i] = fmt.Sprintf("(SELECT COALESCE(SUM(%s + %d), 0) FROM %s WHERE o.tenant_id = %d)", d.bytes, domain.StoredRow, d.from, tenant)
	}
	err = db.Query(ctx, q, func(rows *sql.Rows) error { return rows.Scan(&bytes) },
		fmt.Sprintf("SELECT %s - (SELECT COALESCE(SUM(bytes), 0) FROM stored_bytes WHERE tenant_id = %d)", strings.Join(sums, " + "), tenant))
	return bytes, err
}

// missingTimers is the difference between the timers of jobs and their counts, for wrong
// counts only.
func (s *Retention) missingTimers(ctx context.Context, q db.Querier, tenant domain.TenantID) (record.TimerCounts, error) {
	jobs, err := db.SelectColumn[int64](ctx, q, fmt.Sprintf("SELECT id FROM jobs%s WHERE tenant_id = %d AND kind = %d",
		s.Dialect.ByIndex("ix_jobs_kind"), tenant, domain.JobTimer))
	missing := record.TimerCounts{}
	for _, job := range jobs {
		if err != nil {
			break
		}
		var by record.TimerChange
		err = db.Query(ctx, q, func(rows *sql.Rows) error { return rows.Scan(&by.Pending, &by.Bytes) },
			fmt.Sprintf("SELECT w.pending - c.pending, w.bytes - c.bytes FROM (SELECT COUNT(*) AS pending, COALESCE(SUM(%s), 0) AS bytes FROM timers WHERE job_id = %d) AS w,"+
				" (SELECT COALESCE(SUM(pending), 0) AS pending, COALESCE(SUM(bytes), 0) AS bytes FROM timer_counts WHERE tenant_id = %d AND job_id = %d) AS c",
				record.TimerBytes, job, tenant, job))
		if by != (record.TimerChange{}) {
			missing[record.TimerOwner{Tenant: int64(tenant), Job: job}] = by
		}
	}
	return missing, err
}

// DeleteDocumentsBefore goes along ix_deleted_documents_age. The versions of a document
// go before it.
func (s *Retention) DeleteDocumentsBefore(ctx context.Context, before time.Time, limit int) (int64, error) {
	old := "SELECT id FROM deleted_documents WHERE deleted_at < ? LIMIT ?"
	return s.deleteWhole(ctx, "delete old documents", old, before, limit, func(t *db.Tx, ids []int64, most int64) (int64, error) {
		return deleteDocuments(t, db.IDList(ids), most)
	})
}

// deleteDocuments deletes documents after their versions. At most so many versions go at once.
func deleteDocuments(t *db.Tx, ids string, most int64) (deleted int64, err error) {
	if err := record.RecountSoon(t, "deleted_documents", ids); err != nil {
		return 0, err
	}
	for _, versions := range []struct{ table, owner string }{{"calendar_versions", "calendar_id"}, {"script_versions", "script_id"}} {
		n, err := t.Exec(t.Ctx, t.Dialect.DeleteBounded(versions.table, versions.owner+" IN ("+ids+")"), most-deleted)
		if deleted += n; err != nil || deleted >= most {
			return deleted, err
		}
	}
	n, err := t.Exec(t.Ctx, "DELETE FROM deleted_documents WHERE id IN ("+ids+")")
	return deleted + n, err
}
