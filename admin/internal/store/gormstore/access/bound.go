package access

import (
	"fmt"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
)

// forgetAtOnce bounds what forget deletes with one write.
const forgetAtOnce = 100

// forget deletes the oldest rows of a condition beyond so many.
func forget(t *db.Tx, table string, keep int, where string, args ...any) error {
	gone, err := db.SelectColumn[int64](t.Ctx, t.Conn,
		fmt.Sprintf("SELECT id FROM %s WHERE %s ORDER BY id DESC LIMIT %d OFFSET %d", table, where, forgetAtOnce, keep), args...)
	if err == nil && len(gone) > 0 {
		_, err = t.Exec(t.Ctx, "DELETE FROM "+table+" WHERE id IN ("+db.IDList(gone)+")")
	}
	if err != nil {
		return fmt.Errorf("forget old rows of %s: %w", table, err)
	}
	return nil
}

// allowJoinToken lets an executor have one more token, and forgets the oldest of its
// dead tokens. Their boots go with the retention.
func allowJoinToken(t *db.Tx, tenant domain.TenantID, executor domain.ExecutorID) error {
	dead := "(revoked_at > 0 OR expires_at > 0 AND expires_at < " + t.Dialect.ClockNow() + ")"
	of := "tenant_id = ? AND executor_id = ? AND "
	err := atMost(t, "join_tokens", domain.MaxJoinTokens, "the executor has %d join tokens that are valid, which is the most; revoke one that no process uses any more",
		of+"NOT "+dead, int64(tenant), int64(executor))
	if err != nil {
		return err
	}
	return forget(t, "join_tokens", domain.MaxJoinTokens, of+dead, int64(tenant), int64(executor))
}

// allowDenial lets an executor have one more denial.
func allowDenial(t *db.Tx, d *domain.Denial) error {
	return atMost(t, "executor_denials", domain.MaxDenials, "the executor has %d denials, which is the most; delete those of processes and certificates that are gone",
		"tenant_id = ? AND executor_id = ? AND subject <> ?", int64(d.TenantID), int64(d.Executor), d.Subject)
}

// atMost is CodeQuotaExceeded with a message if there are so many rows already.
func atMost(t *db.Tx, table string, most int, message, where string, args ...any) error {
	var n int
	if err := t.SQL.QueryRowContext(t.Ctx, "SELECT COUNT(*) FROM "+table+" WHERE "+where, args...).Scan(&n); err != nil {
		return fmt.Errorf("count rows of %s: %w", table, err)
	}
	if n >= most {
		return domain.Errorf(domain.CodeQuotaExceeded, message, n)
	}
	return nil
}
