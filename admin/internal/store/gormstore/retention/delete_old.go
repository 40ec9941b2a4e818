package retention

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/engine"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

type (
	// Retention is store.Retention.
	Retention struct{ shared }
	// Rules is store.RetentionRules.
	Rules struct{ shared }
	// RunPurges is store.RunPurges.
	RunPurges struct{ shared }
)

// shared is what rules and clean-ups delete by.
type shared struct{ *db.DB }

// New works on a database.
func New(db *db.DB) (Retention, Rules, RunPurges) {
	c := shared{db}
	return Retention{c}, Rules{c}, RunPurges{c}
}

// oldRun is what has to be known of a run to remove it.
type oldRun struct {
	id          domain.ExecutionID
	tenant, job int64
	key         string
}

// DeleteRunsBefore walks the primary key from its beginning, over all tenants:
// ids grow with time. Ended runs move no more, but for a late result, which
// then finds nothing; those that linger stay until they hold nothing. Those of
// timers have a retention of their own.
func (s *Retention) DeleteRunsBefore(ctx context.Context, before time.Time, limit int) (int64, error) {
	return db.Value(ctx, s.RunRepeatable, "delete old runs", func(t *db.Tx) (int64, error) {
		old, err := oldRuns(t, before, limit)
		if err != nil || len(old) == 0 {
			return 0, err
		}
		return deleteRuns(t, old)
	})
}

// deleteRuns removes ended runs, which are locked, with what belongs to them.
func deleteRuns(t *db.Tx, old []oldRun) (int64, error) {
	ids := db.IDList(domain.Collect(old, func(r *oldRun) domain.ExecutionID { return r.id }))
	for _, table := range []string{"attempts", "execution_progress", "execution_steps"} {
		if _, err := t.Exec(t.Ctx, "DELETE FROM "+table+" WHERE execution_id IN ("+ids+")"); err != nil {
			return 0, fmt.Errorf("delete from %s: %w", table, err)
		}
	}
	if err := deleteRequestKeys(t, old); err != nil {
		return 0, err
	}
	return t.Exec(t.Ctx, "DELETE FROM executions WHERE id IN ("+ids+")")
}

// DeleteTimersBefore goes tenant by tenant, through the phases of ended timers.
func (s *Retention) DeleteTimersBefore(ctx context.Context, before time.Time, limit int) (deleted int64, err error) {
	var tenants []domain.TenantID
	tenants, err = db.LookColumn[domain.TenantID](ctx, s.DB, "find tenants with timers",
		fmt.Sprintf("SELECT id FROM tenants WHERE EXISTS (SELECT 1 FROM jobs AS j%s WHERE j.tenant_id = tenants.id AND j.kind = %d)", s.Dialect.ByIndex("ix_jobs_kind"), domain.JobTimer))
	if err != nil {
		return 0, err
	}
	for _, tenant := range tenants {
		if deleted >= int64(limit) {
			return deleted, nil
		}
		n, err := s.deleteTimersOf(ctx, tenant, before, limit-int(deleted))
		deleted += n
		if err != nil {
			return deleted, err
		}
	}
	n, err := db.Value(ctx, s.RunRepeatable, "delete old timer cancellations", func(t *db.Tx) (int64, error) {
		return t.Exec(t.Ctx, t.Dialect.DeleteBounded("timer_cancellations", "id < ? AND wake_at IS NULL"), domain.IDFloor(before), max(int64(limit)-deleted, 1))
	})
	return deleted + n, err
}

func (s *Retention) deleteTimersOf(ctx context.Context, tenant domain.TenantID, before time.Time, limit int) (deleted int64, err error) {
	var ids []domain.ExecutionID
	ids, err = db.LookColumn[domain.ExecutionID](ctx, s.DB, "find old timers", OldTimers(s.Dialect, tenant, before, limit))
	ids = ids[:min(len(ids), limit)]
	if err != nil || len(ids) == 0 {
		return 0, err
	}
	slices.Sort(ids)
	return db.Value(ctx, s.RunRepeatable, "delete old timers", func(t *db.Tx) (int64, error) {
		old, err := oldRunsWhere(t, fmt.Sprintf("id IN (%s) AND tenant_id = %d AND state >= %d AND lingers = 0", db.IDList(ids), tenant, domain.Succeeded), limit)
		if err != nil || len(old) == 0 {
			return 0, err
		}
		labelled := db.IDList(domain.Collect(old, func(r *oldRun) domain.ExecutionID { return r.id }))
		if _, err := t.Exec(t.Ctx, "DELETE FROM timer_labels WHERE timer_id IN ("+labelled+")"); err != nil {
			return 0, fmt.Errorf("delete labels: %w", err)
		}
		return deleteRuns(t, old)
	})
}

// OldTimers finds runs of timers that ended before an instant, some of each phase.
// One may have waited for an instance for long: its key is known for the whole time
// after its end.
func OldTimers(d db.Dialect, tenant domain.TenantID, before time.Time, limit int) string {
	var terms []string
	for _, st := range domain.States {
		if st.Terminal() {
			terms = append(terms, d.Bounded(fmt.Sprintf("SELECT id FROM executions%s WHERE tenant_id = %d AND phase = %d AND id < %d AND finished_at < %d ORDER BY id LIMIT %d",
				d.ByIndex("ix_executions_phase"), tenant, record.PhaseTimer+int64(st), domain.IDFloor(before), db.Millis(before), limit)))
		}
	}
	return strings.Join(terms, " UNION ALL ")
}

func oldRuns(t *db.Tx, before time.Time, limit int) ([]oldRun, error) {
	return oldRunsWhere(t, fmt.Sprintf("id < %d AND state >= %d AND lingers = 0 AND cause <> '%s'", domain.IDFloor(before), domain.Succeeded, domain.CauseTimer), limit)
}

func oldRunsWhere(t *db.Tx, condition string, limit int) ([]oldRun, error) {
	var old []oldRun
	old, err := db.Select(t.Ctx, t.Conn, func(r *oldRun) []any { return []any{&r.id, &r.tenant, &r.job, &r.key} },
		fmt.Sprintf("SELECT id, tenant_id, job_id, occurrence_key FROM executions%s WHERE %s ORDER BY id LIMIT %d", t.Dialect.ByPrimary(), condition, limit)+
			t.Dialect.ForUpdateSkip())
	return old, err
}

// deleteRequestKeys removes the keys of runs that somebody asked for; runs of
// a schedule have none.
func deleteRequestKeys(t *db.Tx, old []oldRun) error {
	asked := slices.DeleteFunc(slices.Clone(old), func(r oldRun) bool { return r.key == "" })
	for part := range slices.Chunk(asked, 200) {
		terms := make([]string, len(part))
		args := make([]any, len(part))
		for i, r := range part {
			terms[i] = fmt.Sprintf("(tenant_id = %d AND job_id = %d AND request_key = ? AND execution_id = %d)", r.tenant, r.job, r.id)
			if _, key, ok := domain.SplitTimerOccurrence(r.key); ok {
				args[i] = domain.TimerRequestKey(key) // of the newest run of the key, or of a pending timer's run before
				continue
			}
			args[i], _ = domain.SplitRequestKey(r.key)
		}
		if _, err := t.Exec(t.Ctx, "DELETE FROM request_keys WHERE "+strings.Join(terms, " OR "), args...); err != nil {
			return fmt.Errorf("delete request keys: %w", err)
		}
	}
	return nil
}

// DeleteOutboxBefore goes along the primary keys. Readers of the outbox take rows within
// hours, not days, so that rows that old have no reader.
func (s *Retention) DeleteOutboxBefore(ctx context.Context, before time.Time, limit int) (int64, error) {
	return db.Value(ctx, s.RunRepeatable, "delete old events", func(t *db.Tx) (int64, error) {
		deleted := int64(0)
		for _, topic := range domain.Topics {
			n, err := t.Exec(t.Ctx, t.Dialect.DeleteBounded("outbox", "topic = ? AND id < ?"), int64(topic), domain.IDFloor(before), int64(limit)-deleted)
			if err != nil {
				return 0, fmt.Errorf("delete from the outbox, %s: %w", topic, err)
			}
			deleted += n
		}
		for i := range s.Tables {
			if deleted >= int64(limit) {
				break
			}
			n, err := deleteOldRows(t, &s.Tables[i], before, int64(limit)-deleted)
			if err != nil {
				return 0, fmt.Errorf("delete from %s: %w", s.Tables[i].Name, err)
			}
			deleted += n
		}
		return deleted, nil
	})
}

// deleteOldRows deletes rows of an add-on that are old.
func deleteOldRows(t *db.Tx, of *db.OwnedTable, before time.Time, limit int64) (int64, error) {
	if of.Old == nil {
		return 0, nil
	}
	where := fmt.Sprintf("%s < %d", of.Key, domain.IDFloor(before))
	if of.Old.Where != "" {
		where += " AND " + of.Old.Where
	}
	if of.Old.Ends != "" {
		where += fmt.Sprintf(" AND %s < %d", of.Old.Ends, db.Millis(before))
	}
	if len(of.Children) == 0 {
		return t.Exec(t.Ctx, t.Dialect.DeleteBounded(of.Name, where), limit)
	}
	ids, err := db.SelectColumn[int64](t.Ctx, t.Conn, "SELECT "+of.Key+" FROM "+of.Name+" WHERE "+where+" ORDER BY "+of.Key+" LIMIT ?", limit)
	if err != nil || len(ids) == 0 {
		return 0, err
	}
	list := " IN (" + db.IDList(ids) + ")"
	for _, child := range of.Children {
		if _, err := t.Exec(t.Ctx, "DELETE FROM "+child+" WHERE "+of.Column+list); err != nil {
			return 0, err
		}
	}
	return t.Exec(t.Ctx, "DELETE FROM "+of.Name+" WHERE "+of.Key+list)
}

// DeleteInstancesBefore reads ix_instances_lease: an executor that restarts all
// the time leaves a row each time.
func (s *Retention) DeleteInstancesBefore(ctx context.Context, before time.Time, limit int) (int64, error) {
	return db.Value(ctx, s.RunRepeatable, "delete old instances", func(t *db.Tx) (int64, error) {
		return t.Exec(t.Ctx, t.Dialect.DeleteBounded("instances", "gone_at > 0 AND gone_at < ?"), db.Millis(before), int64(limit))
	})
}

func (s *Retention) DeleteMaintenanceBefore(ctx context.Context, before time.Time, limit int) (int64, error) {
	return db.Value(ctx, s.RunRepeatable, "delete old maintenance", func(t *db.Tx) (int64, error) {
		return t.Exec(t.Ctx, t.Dialect.DeleteBounded("maintenance", "ends_at < ?"), db.Millis(before), int64(limit))
	})
}

// DeleteJoinTokenBootsBefore walks ix_join_token_boots_used past the boots that
// stay, which are no more than there are instances. It looks without a lock: a
// boot that comes back at this very moment, after its instance was forgotten,
// is let in as a new one.
func (s *Retention) DeleteJoinTokenBootsBefore(ctx context.Context, before time.Time, limit int) (deleted int64, err error) {
	type joined struct {
		token int64
		boot  string
	}
	var old []joined
	old, err = db.LookSelect(ctx, s.DB, "find old boots", func(b *joined) []any { return []any{&b.token, &b.boot} },
		OldBoots(s.Dialect), db.Millis(before), limit)
	if err != nil || len(old) == 0 {
		return 0, err
	}
	terms := make([]string, len(old))
	args := make([]any, len(old))
	for i, b := range old {
		terms[i], args[i] = fmt.Sprintf("(token_id = %d AND boot_id = ?)", b.token), b.boot
	}
	return db.Value(ctx, s.RunRepeatable, "delete old boots", func(t *db.Tx) (deleted int64, err error) {
		for from := 0; from < len(terms); from += 200 {
			to := min(from+200, len(terms))
			n, err := t.Exec(t.Ctx, "DELETE FROM join_token_boots WHERE "+strings.Join(terms[from:to], " OR "), args[from:to]...)
			if err != nil {
				return 0, err
			}
			deleted += n
		}
		return deleted, nil
	})
}

func OldBoots(d db.Dialect) string {
	return "SELECT b.token_id, b.boot_id FROM join_token_boots AS b" + d.ByIndex("ix_join_token_boots_used") + " WHERE b.used_at < ? AND NOT EXISTS (" +
		"SELECT 1 FROM join_tokens AS j JOIN instances AS i ON i.tenant_id = j.tenant_id AND i.executor_id = j.executor_id AND i.boot_id = b.boot_id" +
		" WHERE j.id = b.token_id) ORDER BY b.used_at LIMIT ?"
}

// DeleteLogsBefore goes tenant by tenant, along the primary key. The instant
// is compared with the time inside the execution's id.
func (s *Retention) DeleteLogsBefore(ctx context.Context, before time.Time, limit int) (deleted int64, err error) {
	tenants, err := db.FindAll[record.TenantRow](ctx, s.DB, "list tenants", "id", "1 = 1")
	if err != nil {
		return 0, err
	}
	for _, tenant := range tenants {
		if deleted >= int64(limit) {
			return deleted, nil
		}
		n, _, err := s.deleteOldLogs(ctx, domain.TenantID(tenant.ID), below(before), math.MaxInt64, limit-int(deleted))
		deleted += n
		if err != nil {
			return deleted, err
		}
	}
	return deleted, s.RunRepeatable(ctx, "delete old log usage", func(t *db.Tx) error {
		_, err := t.Exec(t.Ctx, "DELETE FROM log_usage WHERE day > 0 AND day < ?", engine.DayOf(before))
		return err
	})
}

// TrimLogs deletes the oldest chunks of tenants that have more than a number of
// bytes stored, until they have a tenth less: not a little with every append.
func (s *Retention) TrimLogs(ctx context.Context, most int64, limit int) (deleted int64, err error) {
	stored, err := s.logBytesOf(ctx)
	if err != nil {
		return 0, err
	}
	for tenant, bytes := range stored {
		excess := bytes - most/10*9
		for bytes > most && excess > 0 && deleted < int64(limit) {
			n, freed, err := s.deleteOldLogs(ctx, tenant, "", excess, limit-int(deleted))
			deleted += n
			if err != nil {
				return deleted, err
			}
			if excess -= freed; n == 0 {
				break // another node is at it, or nothing is left
			}
		}
	}
	return deleted, nil
}

// logBytesOf returns what is stored of each tenant's logs, after compression.
func (s *Retention) logBytesOf(ctx context.Context) (map[domain.TenantID]int64, error) {
	out, err := db.LookPairs[domain.TenantID, int64](ctx, s.DB, "read log usage", "SELECT tenant_id, bytes FROM log_usage WHERE day = 0")
	return out, err
}

// oldLog is the end of what a deletion takes of a tenant's logs.
type oldLog struct {
	execution, attempt, first int64
	chunks, bytes             int64
}

// below is the condition of runs that were planned before an instant.
func below(before time.Time) string {
	return fmt.Sprintf(" AND execution_id < %d", domain.IDFloor(before))
}

// deleteOldLogs deletes the oldest chunks of a tenant: at most limit of them, of
// the executions that a condition names, which begins with AND, and no more than it
// takes to free some bytes.
func (s shared) deleteOldLogs(ctx context.Context, tenant domain.TenantID, which string, bytes int64, limit int) (deleted, freed int64, err error) {
	type gone struct{ chunks, bytes int64 }
	g, err := db.Value(ctx, s.RunRepeatable, "delete old logs", func(t *db.Tx) (gone, error) {
		var end oldLog
		err := db.Query(t.Ctx, t.Conn, func(rows *sql.Rows) error {
			if end.bytes >= bytes {
				return nil
			}
			var size int64
			err := rows.Scan(&end.execution, &end.attempt, &end.first, &size)
			end.chunks, end.bytes = end.chunks+1, end.bytes+size
			return err
		}, "SELECT execution_id, attempt, first_line, body_bytes FROM log_chunks"+t.Dialect.ByPrimary()+
			" WHERE tenant_id = ?"+which+" ORDER BY execution_id, attempt, first_line LIMIT ?"+t.Dialect.ForUpdateSkip(), int64(tenant), limit)
		if err != nil || end.chunks == 0 {
			return gone{}, err
		}
		chunks, err := t.Exec(t.Ctx, fmt.Sprintf(`DELETE FROM log_chunks WHERE tenant_id = %d%[5]s AND execution_id <= %[2]d
			AND (execution_id < %[2]d OR attempt < %[3]d OR (attempt = %[3]d AND first_line <= %[4]d))`, tenant, end.execution, end.attempt, end.first, which))
		if err != nil {
			return gone{}, err
		}
		return gone{chunks, end.bytes}, engine.CountLogs(t, map[engine.UsageKey]engine.LogUsage{{Tenant: tenant, Day: 0}: {Bytes: -end.bytes}})
	})
	return g.chunks, g.bytes, err
}
