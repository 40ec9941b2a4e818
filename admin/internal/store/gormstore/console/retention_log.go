package console

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/engine"
)

// logBytesOf returns what is stored of each tenant's logs, after compression.
func (s *Retention) logBytesOf(ctx context.Context) (map[domain.TenantID]int64, error) {
	out := map[domain.TenantID]int64{}
	err := s.LookRows(ctx, "read log usage", func(rows *sql.Rows) error {
		var tenant domain.TenantID
		var bytes int64
		err := rows.Scan(&tenant, &bytes)
		out[tenant] = bytes
		return err
	}, "SELECT tenant_id, bytes FROM log_usage WHERE day = 0")
	return out, err
}

// oldLog is the end of what a deletion takes of a tenant's logs.
type oldLog struct {
	execution, attempt, first int64
	chunks, bytes             int64
}

// deleteOldLogs deletes the oldest chunks of a tenant: at most limit of them, of
// executions below floor, and no more than it takes to free some bytes.
func (s *Retention) deleteOldLogs(ctx context.Context, tenant domain.TenantID, floor, bytes int64, limit int) (deleted, freed int64, err error) {
	err = s.RunRepeatable(ctx, "delete old logs", func(t *db.Tx) error {
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
			" WHERE tenant_id = ? AND execution_id < ? ORDER BY execution_id, attempt, first_line LIMIT ?"+t.Dialect.ForUpdateSkip(), int64(tenant), floor, limit)
		if deleted, freed = 0, 0; err != nil || end.chunks == 0 {
			return err
		}
		deleted, err = t.Exec(t.Ctx, fmt.Sprintf(`DELETE FROM log_chunks WHERE tenant_id = %d AND execution_id <= %[2]d
			AND (execution_id < %[2]d OR attempt < %[3]d OR (attempt = %[3]d AND first_line <= %[4]d))`, tenant, end.execution, end.attempt, end.first))
		if err != nil {
			return err
		}
		freed = end.bytes
		return engine.CountLogs(t, map[engine.UsageKey]engine.LogUsage{{Tenant: tenant, Day: 0}: {Bytes: -end.bytes}})
	})
	return deleted, freed, err
}
