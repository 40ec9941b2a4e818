package tenantmove

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/gormtest"
)

// ofAddOns are tables of add-ons, which say themselves how these move (package admin tests that).
var ofAddOns = map[string]bool{
	"connections": true, "bulk_operations": true, "bulk_items": true, "alert_events": true, "alert_channels": true, "alert_settings": true, "alert_rules": true, "alert_silences": true, "deliveries": true, "alert_incidents": true,
}

// Every table with rows of tenants moves, or is named with why it does not, and every
// column and key that is named is there.
func TestEveryTableOfTenantsMoves(t *testing.T) {
	o := db.Options{Driver: "sqlite", DSN: gormtest.SQLite(t)}
	require.NoError(t, db.Migrate(t.Context(), o))
	s, err := db.Open(o)
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	tables, err := readTables(t.Context(), s)
	require.NoError(t, err)

	moves := map[string]bool{}
	for _, g := range groups {
		require.False(t, moves[g.table], "%s is named twice", g.table)
		moves[g.table] = true
		require.Contains(t, tables, g.table)
		own := tables[g.table]
		require.True(t, own.has("tenant_id"), g.table)
		if g.key == "" {
			require.Equal(t, "tenant_id", own.columns[own.key[0]], "the primary key of %s", g.table)
		} else {
			require.True(t, own.has(g.key), g.table)
		}
		for _, c := range g.children {
			// Versions of a document outlive it.
			require.True(t, !moves[c.table] || c.table == "calendar_versions" || c.table == "script_versions", "%s is named twice", c.table)
			moves[c.table] = true
			require.True(t, tables[c.table].has(c.column), c.table)
		}
	}
	for name, own := range tables {
		if own.has("tenant_id") && !ofAddOns[name] {
			require.True(t, moves[name] != (notCopied[name] != ""), "does %s move? name it in groups, or in notCopied with why not", name)
		}
	}
	for name, p := range parked {
		require.True(t, moves[name] && tables[name].has(p.column), name)
	}
	for name, own := range tables {
		for _, c := range []string{"wake_at", "next_at", "next_fire_at", "tell_at"} {
			if own.has(c) && moves[name] {
				require.Contains(t, parked, name, "it has a column that a clock wakes by")
			}
		}
	}
}

// Rows of each table can be deleted in parts, also where SQLite has no rowid.
func TestEveryTableHasAKeyForDeletion(t *testing.T) {
	o := db.Options{Driver: "sqlite", DSN: gormtest.SQLite(t)}
	s, err := db.Open(o)
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	tables, err := db.SelectColumn[string](t.Context(), s.Read, "SELECT name FROM sqlite_master WHERE type = 'table' AND sql LIKE '%WITHOUT ROWID%'")
	require.NoError(t, err)
	require.NotEmpty(t, tables)
	for _, name := range tables {
		_, err := s.Write.ExecContext(t.Context(), s.Dialect.DeleteBounded(name, "0 = 1"), 1)
		require.NoError(t, err, "name the primary key of %s in withoutRowid", name)
	}
}
