package console

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

// keptJobEvents is how many events of a job are kept, the newest ones. Whoever
// reads the ledger takes the first that is left for the beginning of what is known.
const keptJobEvents = 1000

// insertJobEvent notes the state that a job has come into, or why it stays in it.
// The caller holds the trigger's lock.
func insertJobEvent(t *db.Tx, job *record.JobRow) error {
	var number int64
	err := t.SQL.QueryRowContext(t.Ctx, "SELECT COALESCE(MAX(number), 0) + 1 FROM job_events WHERE job_id = ?", job.ID).Scan(&number)
	if err == nil {
		_, err = t.Exec(t.Ctx, "INSERT INTO job_events (job_id, number, tenant_id, state, at, created_by, note) VALUES (?, ?, ?, ?, ?, ?, ?)",
			job.ID, number, job.TenantID, job.State, job.UpdatedAt, job.UpdatedBy, job.PauseNote)
	}
	if err == nil && number > keptJobEvents {
		_, err = t.Exec(t.Ctx, "DELETE FROM job_events WHERE job_id = ? AND number <= ?", job.ID, number-keptJobEvents)
	}
	if err != nil {
		return fmt.Errorf("note job event: %w", err)
	}
	return nil
}

// LedgerReader reads in one transaction.
type LedgerReader struct {
	Q   db.Querier
	D   db.Dialect
	now time.Time
	// here keeps rows away that a tenant has left behind which lives in another cell, or
	// moves: nothing of them fires here. Empty: no tenant does.
	here string
}

var _ store.LedgerReader = (*LedgerReader)(nil)

// ReadLedger begins a transaction that cannot write. It sees each page as it is
// when it is read: what is judged lies far enough back not to change.
func (s *Ledger) ReadLedger(ctx context.Context, fn func(store.LedgerReader) error) error {
	tx, err := s.Read.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return db.Translate("read ledger", err)
	}
	defer func() { _ = tx.Rollback() }() // there is nothing to commit
	var ms int64
	if err := tx.QueryRowContext(ctx, "SELECT "+s.Dialect.Clock()).Scan(&ms); err != nil {
		return db.Translate("read ledger", err)
	}
	here, err := withoutTenants(ctx, tx, fmt.Sprintf("SELECT id FROM tenants%s WHERE state > %d AND (state <> %d OR cell <> '')",
		s.Dialect.ByIndex("ix_tenants_state"), domain.TenantDisabled, domain.TenantDeleted))
	if err != nil {
		return db.Translate("read ledger", err)
	}
	return db.Translate("read ledger", fn(&LedgerReader{tx, s.Dialect, db.Instant(ms), here}))
}

// withoutTenants is a condition that leaves out rows of the tenants that a query finds.
func withoutTenants(ctx context.Context, q db.Querier, query string) (string, error) {
	ids, err := db.SelectColumn[domain.TenantID](ctx, q, query)
	if err != nil || len(ids) == 0 {
		return "", err
	}
	return " AND +tenant_id NOT IN (" + db.IDList(ids) + ")", nil // + : no reason to take an index on the tenant
}

func (r *LedgerReader) Now() time.Time { return r.now }

// Jobs reads jobs, then their revisions and events by their primary keys.
func (r *LedgerReader) Jobs(ctx context.Context, after domain.JobID, limit int) ([]store.LedgerJob, error) {
	var list []store.LedgerJob
	index := map[domain.JobID]int{}
	err := db.Query(ctx, r.Q, func(rows *sql.Rows) error {
		var j store.LedgerJob
		var next int64
		err := rows.Scan(&j.ID, &j.TenantID, &next)
		j.NextFireAt = db.Instant(next)
		index[j.ID] = len(list)
		list = append(list, j)
		return err
	}, "SELECT job_id, tenant_id, next_fire_at FROM triggers"+r.D.ByPrimary()+" WHERE job_id > ?"+r.here+" ORDER BY job_id LIMIT ?", int64(after), limit)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	ids := domain.Collect(list, func(j *store.LedgerJob) domain.JobID { return j.ID })
	err = db.Query(ctx, r.Q, func(rows *sql.Rows) error {
		var rev store.Revision
		var at int64
		var text sql.RawBytes
		if err := rows.Scan(&rev.JobID, &rev.Revision, &at, &text); err != nil {
			return err
		}
		if spec, err := record.DecodeSpec(text); err == nil {
			rev.Spec = *spec
		} else {
			rev.Spec.Schedule.Kind = "unreadable" // whoever expands it says so
		}
		rev.CreatedAt = db.Instant(at)
		j := &list[index[rev.JobID]]
		j.Revisions = append(j.Revisions, rev)
		return nil
	}, "SELECT job_id, revision, created_at, spec FROM job_revisions WHERE job_id IN ("+db.IDList(ids)+") ORDER BY job_id, revision")
	if err != nil {
		return nil, err
	}
	err = db.Query(ctx, r.Q, func(rows *sql.Rows) error {
		var id domain.JobID
		var from int64
		err := rows.Scan(&id, &from)
		list[index[id]].RunsFrom = db.Instant(from)
		return err
	}, "SELECT job_id, runs_from FROM retention_rules WHERE job_id IN ("+db.IDList(ids)+")")
	if err != nil {
		return nil, err
	}
	return list, db.Query(ctx, r.Q, func(rows *sql.Rows) error {
		var id domain.JobID
		var e store.JobEvent
		var at int64
		err := rows.Scan(&id, &e.State, &at)
		e.At = db.Instant(at)
		j := &list[index[id]]
		j.Events = append(j.Events, e)
		return err
	}, "SELECT job_id, state, at FROM job_events WHERE job_id IN ("+db.IDList(ids)+") ORDER BY job_id, number")
}

// Occurrences reads the index alone: it holds every column that is asked for.
func (r *LedgerReader) Occurrences(ctx context.Context, jobs []domain.JobID, from, to time.Time, fn func(store.Occurrence) error) error {
	var cells [4]sql.RawBytes
	return db.Query(ctx, r.Q, func(rows *sql.Rows) error {
		if err := rows.Scan(&cells[0], &cells[1], &cells[2], &cells[3]); err != nil {
			return err
		}
		return fn(store.Occurrence{
			JobID: domain.JobID(integer(cells[0])), FireAt: integer(cells[1]), Scheduled: len(cells[2]) == 0, Part: bytes.HasPrefix(cells[2], partPrefix), ID: domain.ExecutionID(integer(cells[3])),
		})
	}, "SELECT job_id, fire_at, occurrence_key, id FROM executions"+r.D.ByIndex("uq_executions_occurrence")+
		" WHERE job_id IN ("+db.IDList(jobs)+") AND fire_at >= ? AND fire_at <= ? ORDER BY job_id, fire_at, occurrence_key", db.Millis(from), db.Millis(to))
}

// partPrefix begins the keys of parts (domain.PartKeys), and no other.
var partPrefix = []byte("part:")

// ledgerPage is how many executions one statement reads.
const ledgerPage = 50_000

// ledgerColumns are numbers but for the names of cause and reason, and the beginning of the
// delays, up to the first instant. The last one is Unlisted.
var ledgerColumns = []string{
	"id", "job_id", "tenant_id", "fire_at", "state", "attempt", "COALESCE(wake_at, 0)", "not_before", "COALESCE(SUBSTR(delays, 1, 24), '')",
	"planned_at", "offered_at", "granted_at", "started_at", "finished_at",
	"parent_id", "shard_index", "shard_total", "role", "stage", "picks IS NOT NULL", "cause", "reason",
	fmt.Sprintf("CASE WHEN state IN (%d, %d) AND reason IN ('%s', '%s') THEN NOT EXISTS (SELECT 1 FROM waiting_runs AS w WHERE w.execution_id = executions.id) ELSE 0 END",
		domain.Due, domain.RetryWait, domain.ReasonWaitInstance, domain.ReasonMaintenance),
}

// Executions reads page by page along the primary key.
func (r *LedgerReader) Executions(ctx context.Context, after, until domain.ExecutionID, fn func(*store.LedgerEntry) error) error {
	cells := make([]sql.RawBytes, len(ledgerColumns))
	targets := make([]any, len(cells))
	for i := range cells {
		targets[i] = &cells[i]
	}
	causes, reasons := map[string]domain.Cause{}, map[string]domain.Reason{}
	var e store.LedgerEntry
	numbers := []*int64{
		(*int64)(&e.ID), (*int64)(&e.JobID), (*int64)(&e.TenantID), &e.FireAt, nil, &e.Attempt, &e.WakeAt, &e.NotBefore, nil,
		&e.PlannedAt, &e.OfferedAt, &e.GrantedAt, &e.StartedAt, &e.FinishedAt,
		(*int64)(&e.Parent), &e.Shard, &e.Shards,
	}
	statement := "SELECT " + strings.Join(ledgerColumns, ", ") + " FROM executions" + r.D.ByPrimary() +
		" WHERE id > ? AND id <= ?" + r.here + " ORDER BY id LIMIT " + strconv.Itoa(ledgerPage)
	for found := ledgerPage; found == ledgerPage; {
		found = 0
		err := db.Query(ctx, r.Q, func(rows *sql.Rows) error {
			if err := rows.Scan(targets...); err != nil {
				return err
			}
			for i, target := range numbers {
				if target != nil {
					*target = integer(cells[i])
				}
			}
			e.State, e.FirstDelay = domain.State(integer(cells[4])), firstDelay(cells[8])
			e.Part, e.Stage, e.Picked = domain.Part(integer(cells[17])), domain.Stage(integer(cells[18])), integer(cells[19]) != 0
			e.Cause, e.Reason = interned(causes, cells[20]), interned(reasons, cells[21])
			e.Unlisted = integer(cells[22]) != 0
			found++
			return fn(&e)
		}, statement, int64(after), int64(until))
		if err != nil {
			return err
		}
		after = e.ID
	}
	return nil
}

// firstDelay reads the first instant of the column delays (delayRow).
func firstDelay(text []byte) int64 {
	rest, found := bytes.CutPrefix(text, []byte(`[{"at":`))
	at, _, whole := bytes.Cut(rest, []byte(","))
	if !found || !whole {
		return 0
	}
	return integer(at)
}

// integer reads an integer column.
func integer(text []byte) int64 {
	n, negative := int64(0), false
	for _, c := range text {
		if c == '-' {
			negative = true
			continue
		}
		n = n*10 + int64(c-'0')
	}
	if negative {
		return -n
	}
	return n
}

// interned keeps one copy of a word of a few.
func interned[T ~string](words map[string]T, text []byte) T {
	word, ok := words[string(text)]
	if !ok {
		word = T(text)
		words[string(word)] = word
	}
	return word
}
