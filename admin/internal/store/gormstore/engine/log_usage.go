package engine

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
)

// logUsageOf reads what the tenants have written today.
func (s *LogAppender) logUsageOf(ctx context.Context, keys []AttemptKey, today int64) (map[UsageKey]LogUsage, error) {
	out := map[UsageKey]LogUsage{}
	if s.logLimits.TenantDayBytes == 0 {
		return out, nil
	}
	tenants := map[domain.TenantID]bool{}
	for _, k := range keys {
		tenants[k.Tenant] = true
	}
	err := db.Query(ctx, s.Lookup, func(rows *sql.Rows) error {
		k := UsageKey{Day: today}
		var u LogUsage
		err := rows.Scan(&k.Tenant, &u.lines, &u.Bytes)
		out[k] = u
		return err
	}, "SELECT tenant_id, line_count, bytes FROM log_usage WHERE tenant_id IN ("+db.IDList(slices.Sorted(maps.Keys(tenants)))+") AND day = ?", today)
	if err != nil {
		return nil, fmt.Errorf("read log usage: %w", err)
	}
	return out, nil
}

// CountLogs adds to the sums, in the order of their keys. It comes last in a
// transaction: all who append for a tenant wait for the row.
func CountLogs(t *db.Tx, change map[UsageKey]LogUsage) error {
	keys := slices.SortedFunc(maps.Keys(change), func(a, b UsageKey) int {
		return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Day, b.Day))
	})
	for _, k := range keys {
		c := change[k]
		if c == (LogUsage{}) {
			continue
		}
		n, err := t.Exec(t.Ctx, "UPDATE log_usage SET line_count = line_count + ?, bytes = bytes + ? WHERE tenant_id = ? AND day = ?",
			c.lines, c.Bytes, int64(k.Tenant), k.Day)
		if err == nil && n == 0 {
			_, err = t.Exec(t.Ctx, "INSERT INTO log_usage (tenant_id, day, line_count, bytes) VALUES (?, ?, ?, ?)", int64(k.Tenant), k.Day, c.lines, c.Bytes)
		}
		if err != nil {
			return fmt.Errorf("count logs: %w", err)
		}
	}
	return nil
}
