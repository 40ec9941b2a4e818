package console

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"gorm.io/gorm"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/engine"
)

// oldRun is what has to be known of a run to remove it.
type oldRun struct {
	id          domain.ExecutionID
	tenant, job int64
	key         string
}

// DeleteRunsBefore walks the primary key from its beginning, over all tenants:
// ids grow with time. Ended runs move no more, but for a late result, which
// then finds nothing; those that linger stay until they hold nothing.
func (s *Retention) DeleteRunsBefore(ctx context.Context, before time.Time, limit int) (deleted int64, err error) {
	err = s.RunRepeatable(ctx, "delete old runs", func(t *db.Tx) error {
		old, err := oldRuns(t, before, limit)
		if err != nil || len(old) == 0 {
			deleted = 0
			return err
		}
		ids := domain.Collect(old, func(r *oldRun) domain.ExecutionID { return r.id })
		if _, err := t.Exec(t.Ctx, "DELETE FROM attempts WHERE execution_id IN ("+db.IDList(ids)+")"); err != nil {
			return fmt.Errorf("delete attempts: %w", err)
		}
		for _, table := range []string{"execution_progress", "execution_steps"} {
			if _, err := t.Exec(t.Ctx, "DELETE FROM "+table+" WHERE execution_id IN ("+db.IDList(ids)+")"); err != nil {
				return fmt.Errorf("delete from %s: %w", table, err)
			}
		}
		if err := deleteRequestKeys(t, old); err != nil {
			return err
		}
		deleted, err = t.Exec(t.Ctx, "DELETE FROM executions WHERE id IN ("+db.IDList(ids)+")")
		return err
	})
	return deleted, err
}

func oldRuns(t *db.Tx, before time.Time, limit int) ([]oldRun, error) {
	var old []oldRun
	err := db.Query(t.Ctx, t.Conn, func(rows *sql.Rows) error {
		var r oldRun
		err := rows.Scan(&r.id, &r.tenant, &r.job, &r.key)
		old = append(old, r)
		return err
	}, fmt.Sprintf("SELECT id, tenant_id, job_id, occurrence_key FROM executions%s WHERE id < %d AND state >= %d AND lingers = 0 ORDER BY id LIMIT %d",
		t.Dialect.ByPrimary(), domain.IDFloor(before), domain.Succeeded, limit)+t.Dialect.ForUpdateSkip())
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
			terms[i] = fmt.Sprintf("(tenant_id = %d AND job_id = %d AND request_key = ?)", r.tenant, r.job)
			args[i], _ = domain.SplitRequestKey(r.key)
		}
		if _, err := t.Exec(t.Ctx, "DELETE FROM request_keys WHERE "+strings.Join(terms, " OR "), args...); err != nil {
			return fmt.Errorf("delete request keys: %w", err)
		}
	}
	return nil
}

// DeleteAlertsBefore goes along the primary keys. Deliveries are tried for
// hours, not for days: none of those that old is still under way.
func (s *Retention) DeleteAlertsBefore(ctx context.Context, before time.Time, limit int) (deleted int64, err error) {
	err = s.RunRepeatable(ctx, "delete old alerts", func(t *db.Tx) error {
		deleted = 0
		for _, table := range []string{"deliveries", "alert_events"} {
			n, err := t.Exec(t.Ctx, t.Dialect.DeleteBounded(table, "id < ?"), domain.IDFloor(before), int64(limit)-deleted)
			if err != nil {
				return fmt.Errorf("delete from %s: %w", table, err)
			}
			if deleted += n; deleted >= int64(limit) {
				return nil
			}
		}
		return nil
	})
	return deleted, err
}

// DeleteInstancesBefore reads ix_instances_lease: an executor that restarts all
// the time leaves a row each time.
func (s *Retention) DeleteInstancesBefore(ctx context.Context, before time.Time, limit int) (deleted int64, err error) {
	err = s.RunRepeatable(ctx, "delete old instances", func(t *db.Tx) (err error) {
		deleted, err = t.Exec(t.Ctx, t.Dialect.DeleteBounded("instances", "gone_at > 0 AND gone_at < ?"), db.Millis(before), int64(limit))
		return err
	})
	return deleted, err
}

// DeleteJoinTokenBootsBefore walks ix_join_token_boots_used past the boots that
// stay, which are no more than there are instances. It looks without a lock: a
// boot that comes back at this very moment, after its instance was forgotten,
// is let in as a new one.
func (s *Retention) DeleteJoinTokenBootsBefore(ctx context.Context, before time.Time, limit int) (deleted int64, err error) {
	var old []joinedBoot
	err = s.Look(ctx, "find old boots", func(ctx context.Context, q db.Querier, _ *gorm.DB) error {
		old = nil
		return db.Query(ctx, q, func(rows *sql.Rows) error {
			var b joinedBoot
			err := rows.Scan(&b.token, &b.boot)
			old = append(old, b)
			return err
		}, OldBoots(s.Dialect), db.Millis(before), limit)
	})
	if err != nil || len(old) == 0 {
		return 0, err
	}
	terms := make([]string, len(old))
	args := make([]any, len(old))
	for i, b := range old {
		terms[i], args[i] = fmt.Sprintf("(token_id = %d AND boot_id = ?)", b.token), b.boot
	}
	err = s.RunRepeatable(ctx, "delete old boots", func(t *db.Tx) error {
		deleted = 0
		for from := 0; from < len(terms); from += 200 {
			to := min(from+200, len(terms))
			n, err := t.Exec(t.Ctx, "DELETE FROM join_token_boots WHERE "+strings.Join(terms[from:to], " OR "), args[from:to]...)
			if err != nil {
				return err
			}
			deleted += n
		}
		return nil
	})
	return deleted, err
}

func OldBoots(d db.Dialect) string {
	return "SELECT b.token_id, b.boot_id FROM join_token_boots AS b" + d.ByIndex("ix_join_token_boots_used") + " WHERE b.used_at < ? AND NOT EXISTS (" +
		"SELECT 1 FROM join_tokens AS j JOIN instances AS i ON i.tenant_id = j.tenant_id AND i.executor_id = j.executor_id AND i.boot_id = b.boot_id" +
		" WHERE j.id = b.token_id) ORDER BY b.used_at LIMIT ?"
}

// DeleteLogsBefore goes tenant by tenant, along the primary key. The instant
// is compared with the time inside the execution's id.
func (s *Retention) DeleteLogsBefore(ctx context.Context, before time.Time, limit int) (deleted int64, err error) {
	tenants, err := db.FindAll[tenantRow](ctx, s.DB, "list tenants", "id", "1 = 1")
	if err != nil {
		return 0, err
	}
	for _, tenant := range tenants {
		if deleted >= int64(limit) {
			return deleted, nil
		}
		n, _, err := s.deleteOldLogs(ctx, domain.TenantID(tenant.ID), domain.IDFloor(before), math.MaxInt64, limit-int(deleted))
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
			n, freed, err := s.deleteOldLogs(ctx, tenant, math.MaxInt64, excess, limit-int(deleted))
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
