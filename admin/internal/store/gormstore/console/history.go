package console

import (
	"database/sql"
	"fmt"

	"github.com/carillon-sched/carillon/admin/internal/domain"
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
