package retention

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
)

// tenantTable is how rows of a table go with their tenant: by an index that begins with
// tenant_id, or with the rows of a parent, which has such an index.
type tenantTable struct {
	name string
	// index and key are those of a parent: its rows are found by the index, and its
	// children have its key in the column of the children.
	index, key, column string
	children           []string
}

// tenantSecrets are tables with sealed secrets and what lets somebody in. They go first.
var tenantSecrets = []tenantTable{
	{name: "deleted_documents", key: "id", column: "calendar_id", children: []string{"calendar_versions"}}, {name: "script_policies"}, {name: "api_keys"}, {name: "refresh_tokens"}, {name: "invitations"},
	{name: "join_tokens", index: "ix_join_tokens_executor", key: "id", column: "token_id", children: []string{"join_token_boots"}},
}

// maxSecrets bounds what goes of them in one transaction when a tenant is to go at once.
const maxSecrets = 5000

// tenantTables are all other tables of the core with rows of tenants, in the order in which they go:
// runs before their jobs. A table with a tenant_id that is missing here fails a test.
var tenantTables = []tenantTable{
	{name: "executions", index: "ix_executions_executor", key: "id", column: "execution_id", children: []string{"attempts", "execution_progress", "execution_steps", "callbacks", "waiting_runs"}},
	{name: "log_chunks"}, {name: "log_usage"},
	{name: "timer_labels"}, {name: "timer_counts"}, {name: "stored_bytes"}, {name: "statistics"}, {name: "failure_counts"}, {name: "job_weeks"}, {name: "error_texts"}, {name: "timer_cancellations"}, {name: "request_keys"}, {name: "backfills"},
	{name: "retention_rules"}, {name: "run_purges"}, {name: "document_sets"},
	{name: "jobs", index: "ix_jobs_name", key: "id", column: "job_id", children: []string{
		"timers", "job_revisions", "job_events", "job_calendars", "job_scripts", "job_callbacks", "trigger_waits", "slot_waiters", "job_slots", "triggers",
	}},
	{name: "job_proposals"}, {name: "refused_declarations"},
	{name: "script_versions"},
	{name: "calendars", key: "id", column: "calendar_id", children: []string{"calendar_versions"}},
	{name: "scripts", key: "id", column: "script_id", children: []string{"script_revisions"}},
	{name: "limits", index: "ix_limits_tenant", key: "subject_id", column: "subject_id", children: []string{"limit_holders", "limit_waiters"}},
	{name: "handlers"}, {name: "executor_builds"}, {name: "executor_denials"}, {name: "executor_aliases"}, {name: "instances"}, {name: "executors"},
	{name: "maintenance"}, {name: "quotas"}, {name: "audit_log"}, {name: "audit_chains"},
}

// tablesOf are tenantSecrets or tenantTables, with those of add-ons.
func tablesOf(d *db.DB, secret bool) (out []tenantTable) {
	for _, t := range d.Tables {
		if t.Secret == secret {
			out = append(out, tenantTable{name: t.Name, key: t.Key, column: t.Column, children: t.Children})
		}
	}
	if secret {
		return append(out, tenantSecrets...)
	}
	return append(out, tenantTables...)
}

// DeleteTenantsBefore empties deleted tenants whose time has come, table by table, and
// then forgets them. What comes in meanwhile of their last runs goes with the next table
// or is found at the end: a tenant is forgotten only when nothing of it is left.
func (s *Retention) DeleteTenantsBefore(ctx context.Context, before time.Time, limit int) (deleted int64, err error) {
	tenants, err := db.LookColumn[int64](ctx, s.DB, "find deleted tenants",
		fmt.Sprintf("SELECT id FROM tenants%s WHERE state = %d AND delete_at < ? ORDER BY delete_at LIMIT 10", s.Dialect.ByIndex("ix_tenants_state"), domain.TenantDeleted), db.Millis(before))
	for _, id := range tenants {
		if err != nil || deleted >= int64(limit) {
			return deleted, err
		}
		var n int64
		n, err = s.purgeTenant(ctx, id, limit-int(deleted))
		deleted += n
	}
	if err != nil || deleted >= int64(limit) {
		return deleted, err
	}
	n, err := s.purgeMovedBefore(ctx, before, limit-int(deleted))
	return deleted + n, err
}

// purgeMovedBefore deletes what a tenant has left behind that lives in another cell, one
// tenant at a time.
func (s *Retention) purgeMovedBefore(ctx context.Context, before time.Time, limit int) (deleted int64, err error) {
	var id int64
	err = s.LookRows(ctx, "find moved tenants", func(rows *sql.Rows) error { return rows.Scan(&id) },
		fmt.Sprintf("SELECT id FROM tenants%s WHERE state = %d AND delete_at > 0 AND delete_at < ? ORDER BY delete_at LIMIT 1", s.Dialect.ByIndex("ix_tenants_state"), domain.TenantMoved), db.Millis(before))
	if err != nil || id == 0 {
		return 0, err
	}
	if deleted, err = s.PurgeMoved(ctx, domain.TenantID(id), limit); err != nil || deleted > 0 {
		return deleted, err
	}
	return 0, s.RunRepeatable(ctx, "note that a moved tenant is purged", func(t *db.Tx) error {
		_, err := t.Exec(t.Ctx, "UPDATE tenants SET delete_at = 0 WHERE id = ? AND state = ?", id, int64(domain.TenantMoved))
		return err
	})
}

// movedKeeps are what a tenant that lives in another cell leaves behind: hashes and names
// by which those who come with a key or token are led there, and the audit log of this cell.
var movedKeeps = []string{"api_keys", "join_tokens", "executors", "executor_aliases", "audit_log", "audit_chains"}

// PurgeMoved deletes about limit rows of a tenant that has moved to another cell, and
// leaves what leads there.
func (s *Retention) PurgeMoved(ctx context.Context, id domain.TenantID, limit int) (deleted int64, err error) {
	for _, table := range slices.Concat(tablesOf(s.DB, false), tablesOf(s.DB, true)) {
		if slices.Contains(movedKeeps, table.name) {
			continue
		}
		n, err := db.Value(ctx, s.RunRepeatable, "delete rows of a moved tenant", func(t *db.Tx) (int64, error) {
			return purgeTables(t, int64(id), []tenantTable{table}, int64(limit)-deleted)
		})
		if err != nil {
			return deleted, fmt.Errorf("delete %s of a moved tenant: %w", table.name, err)
		}
		if deleted += n; deleted >= int64(limit) {
			break
		}
	}
	return deleted, nil
}

func (s *Retention) purgeTenant(ctx context.Context, tenant int64, limit int) (deleted int64, err error) {
	for _, tables := range [][]tenantTable{tablesOf(s.DB, true), tablesOf(s.DB, false)} {
		for i := range tables {
			for deleted < int64(limit) {
				n, err := db.Value(ctx, s.RunRepeatable, "delete rows of a tenant", func(t *db.Tx) (int64, error) {
					return purgeTables(t, tenant, tables[i:i+1], int64(limit)-deleted)
				})
				deleted += n
				if err != nil {
					return deleted, fmt.Errorf("delete %s of a tenant: %w", tables[i].name, err)
				}
				if n == 0 {
					break
				}
			}
			if deleted >= int64(limit) {
				return deleted, nil
			}
		}
	}
	if deleted > 0 {
		return deleted, nil // once more, until nothing is found
	}
	n, err := s.forgetTenant(ctx, tenant)
	return deleted + n, err
}

// PurgeSecrets deletes what lets somebody in, and sealed secrets, of a tenant that is to
// go at once. What is more than maxSecrets is left to the retention.
func PurgeSecrets(t *db.Tx, tenant int64) error {
	_, err := purgeTables(t, tenant, tablesOf(t.DB, true), maxSecrets)
	return err
}

// purgeTables deletes about limit rows of a tenant, from the first table on that has any.
func purgeTables(t *db.Tx, tenant int64, tables []tenantTable, limit int64) (deleted int64, err error) {
	for _, table := range tables {
		n, err := purgeTable(t, tenant, table, limit-deleted)
		deleted += n
		if err != nil || deleted >= limit {
			return deleted, err
		}
	}
	return deleted, nil
}

func purgeTable(t *db.Tx, tenant int64, table tenantTable, limit int64) (deleted int64, err error) {
	if table.children == nil {
		return t.Exec(t.Ctx, t.Dialect.DeleteBounded(table.name, "tenant_id = ?"), tenant, limit)
	}
	var parents []int64
	index := ""
	if table.index != "" { // without one it is a table of people's, and short
		index = t.Dialect.ByIndex(table.index)
	}
	parents, err = db.SelectColumn[int64](t.Ctx, t.Conn,
		"SELECT "+table.key+" FROM "+table.name+index+" WHERE tenant_id = ? LIMIT ?", tenant, min(limit, deletedOnce))
	if err != nil || len(parents) == 0 {
		return 0, err
	}
	list := db.IDList(parents)
	for _, child := range table.children {
		n, err := t.Exec(t.Ctx, t.Dialect.DeleteBounded(child, table.column+" IN ("+list+")"), limit)
		deleted += n
		if err != nil || deleted >= limit {
			return deleted, err // their parents stay until they are gone
		}
	}
	n, err := t.Exec(t.Ctx, "DELETE FROM "+table.name+" WHERE "+table.key+" IN ("+list+")")
	return deleted + n, err
}

// forgetTenant ends memberships, deletes accounts that belong to no other tenant, and the
// tenant.
func (s *Retention) forgetTenant(ctx context.Context, tenant int64) (int64, error) {
	return db.Value(ctx, s.RunRepeatable, "forget tenant", func(t *db.Tx) (deleted int64, err error) {
		users, err := db.SelectColumn[int64](t.Ctx, t.Conn,
			"SELECT m.user_id FROM memberships AS m JOIN users AS u ON u.id = m.user_id WHERE m.tenant_id = ? AND u.platform_admin = 0"+
				" AND NOT EXISTS (SELECT 1 FROM memberships AS o WHERE o.user_id = m.user_id AND o.tenant_id <> m.tenant_id)", tenant)
		if err != nil {
			return 0, err
		}
		if len(users) > 0 {
			for _, statement := range []string{"DELETE FROM invitations WHERE user_id IN (", "DELETE FROM users WHERE id IN ("} {
				n, err := t.Exec(t.Ctx, statement+db.IDList(users)+")")
				if deleted += n; err != nil {
					return 0, err
				}
			}
		}
		for _, statement := range []string{"DELETE FROM memberships WHERE tenant_id = ?", "DELETE FROM tenants WHERE id = ?"} {
			n, err := t.Exec(t.Ctx, statement, tenant)
			if deleted += n; err != nil {
				return 0, err
			}
		}
		return deleted, nil
	})
}
