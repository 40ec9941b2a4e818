package admin_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore"
	"github.com/carillon-sched/carillon/admin/internal/store/storetest"
)

// openTables opens a database with the tables of the core and of add-ons.
func openTables(t *testing.T, database func(*testing.T, string) string) *gormstore.Store {
	t.Helper()
	driver, dsn, _ := strings.Cut(database(t, t.TempDir()), ":")
	o := gormstore.Options{Driver: driver, DSN: dsn, NewID: storetest.NewID, Logger: slog.New(slog.DiscardHandler), Tables: admin.AddOnTables()}
	require.NoError(t, gormstore.Migrate(t.Context(), o))
	s, err := gormstore.Open(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// The columns that add-ons say of their tables are there, and each column that a clock wakes by
// is named. Otherwise a row would be moved to another cell and acted upon in both.
func TestTablesOfAddOns(t *testing.T) {
	s := openTables(t, databases["sqlite"])
	all := columnsOf(t, s)
	for _, table := range admin.AddOnTables() {
		columns := map[string]bool{"": true}
		for _, c := range all[table.Name] {
			name, _, _ := strings.Cut(c, " ")
			columns[name] = true
		}
		require.True(t, columns["tenant_id"], "%s has rows of tenants", table.Name)
		for _, c := range []string{table.Key, table.Wake, table.Only.Column, table.Claimed} {
			require.True(t, columns[c], "%s.%s", table.Name, c)
		}
		for _, c := range []string{"wake_at", "next_at", "next_fire_at", "tell_at"} {
			require.True(t, !columns[c] || table.Wake == c, "%s.%s wakes", table.Name, c)
		}
		require.Equal(t, table.Claimed == "", table.Busy == "", table.Name)
		for _, child := range table.Children {
			_, err := s.Read.ExecContext(t.Context(), "SELECT "+table.Column+" FROM "+child+" LIMIT 1")
			require.NoError(t, err)
		}
		if table.Old != nil {
			require.NotEmpty(t, table.Key, "the ids of %s have its rows' ages", table.Name)
			require.True(t, columns[table.Old.Ends], "%s.%s", table.Name, table.Old.Ends)
		}
	}
}

// columnsOf reads the schema: the columns of each table that has a tenant_id, but for
// those that the database fills.
func columnsOf(t *testing.T, s *gormstore.Store) map[string][]string {
	t.Helper()
	query := "SELECT m.name, p.name, p.type FROM sqlite_master AS m JOIN pragma_table_info(m.name) AS p WHERE m.type = 'table'"
	if s.Dialect.Name() != "sqlite" {
		query = "SELECT table_name, column_name, column_type FROM information_schema.columns WHERE table_schema = DATABASE() AND extra NOT LIKE '%GENERATED%'"
	}
	rows, err := s.Read.QueryContext(t.Context(), query)
	require.NoError(t, err)
	defer func() { require.NoError(t, rows.Close()) }()
	all := map[string][]string{}
	for rows.Next() {
		var table, column, kind string
		require.NoError(t, rows.Scan(&table, &column, &kind))
		all[table] = append(all[table], column+" "+strings.ToLower(kind))
	}
	require.NoError(t, rows.Err())
	for table, columns := range all {
		if !slices.ContainsFunc(columns, func(c string) bool { return strings.HasPrefix(c, "tenant_id ") }) {
			delete(all, table)
		}
	}
	require.Greater(t, len(all), 40)
	return all
}

// fill writes a row of a tenant into a table: all ids are the tenant's own.
func fill(t *testing.T, s *gormstore.Store, table string, columns []string, tenant int64) {
	t.Helper()
	var names []string
	var values []any
	for _, c := range columns {
		name, kind, _ := strings.Cut(c, " ")
		names = append(names, name)
		switch {
		case name == "id" || strings.HasSuffix(name, "_id") && name != "node_id":
			values = append(values, tenant)
		case strings.Contains(kind, "int"):
			values = append(values, 1)
		case strings.Contains(kind, "blob") || strings.Contains(kind, "binary"):
			values = append(values, fmt.Appendf(nil, "%016x", tenant)[:16])
		default:
			values = append(values, fmt.Sprintf("t%x", tenant)[:8])
		}
	}
	_, err := s.Write.ExecContext(t.Context(), "INSERT INTO "+table+" ("+strings.Join(names, ", ")+") VALUES (?"+strings.Repeat(", ?", len(names)-1)+")", values...)
	require.NoError(t, err, table)
}

// A table with rows of tenants that this test finds left over has to be named where
// tenants are deleted (retention.tenantTables, or the tables of its add-on).
func TestDeletedTenantsLeaveNothing(t *testing.T) {
	for name, database := range databases {
		t.Run(name, func(t *testing.T) {
			s := openTables(t, database)
			ctx := t.Context()
			tables := columnsOf(t, s)
			doomed, other := domain.TenantID(0x1111111111), domain.TenantID(0x2222222222)
			for _, id := range []domain.TenantID{doomed, other} {
				require.NoError(t, s.CreateTenant(ctx, domain.Tenant{ID: id, Name: "t" + id.String(), CreatedAt: time.Now()}))
				require.NoError(t, s.CreateUser(ctx, domain.User{ID: domain.UserID(id), Username: "u" + id.String()}, domain.Membership{TenantID: id, Role: domain.RoleAdmin}))
				for table, columns := range tables {
					if table != "memberships" {
						fill(t, s, table, columns, int64(id))
					}
				}
			}
			both := domain.User{ID: 7, Username: "both"}
			require.NoError(t, s.CreateUser(ctx, both, domain.Membership{TenantID: doomed, Role: domain.RoleViewer}))
			require.NoError(t, s.SaveMembership(ctx, domain.Membership{TenantID: other, UserID: both.ID, Role: domain.RoleViewer}))
			count := func(table string, tenant domain.TenantID) (n int) {
				require.NoError(t, s.Read.QueryRowContext(ctx, "SELECT COUNT(*) FROM "+table+" WHERE tenant_id = ?", int64(tenant)).Scan(&n))
				return n
			}
			set := func(state domain.TenantState, grace time.Duration) error {
				_, err := s.SetTenantState(ctx, store.SetTenantStateParams{ID: doomed, State: state, Grace: grace, Note: "over"})
				return err
			}
			require.Equal(t, domain.CodeConflict, domain.CodeOf(set(domain.TenantDeleted, time.Hour)), "it is enabled")
			require.NoError(t, set(domain.TenantDisabled, 0))
			require.NoError(t, set(domain.TenantDeleted, time.Hour))
			purge := func(limit int) int64 {
				now, err := s.Now(ctx)
				require.NoError(t, err)
				n, err := s.DeleteTenantsBefore(ctx, now.Add(time.Millisecond), limit)
				require.NoError(t, err)
				return n
			}
			require.Zero(t, purge(10), "it can be restored still")
			require.Equal(t, domain.CodeConflict, domain.CodeOf(set(domain.TenantEnabled, 0)))
			require.NoError(t, set(domain.TenantDisabled, 0))
			require.NoError(t, set(domain.TenantEnabled, 0))
			require.NoError(t, set(domain.TenantDisabled, 0))
			list, err := s.ListDisabled(ctx)
			require.NoError(t, err)
			require.Equal(t, map[domain.TenantID]bool{doomed: true}, list.Tenants)
			for table := range tables {
				require.Positive(t, count(table, doomed), table)
			}

			require.NoError(t, set(domain.TenantDeleted, 0))
			for _, table := range []string{"connections", "script_policies", "api_keys", "refresh_tokens", "join_tokens"} {
				require.Zero(t, count(table, doomed), "%s: secrets go at once", table)
			}
			require.Equal(t, domain.CodeConflict, domain.CodeOf(set(domain.TenantDisabled, 0)), "it is too late")
			for range 1000 {
				if purge(3) == 0 {
					break
				}
			}
			for table := range tables {
				require.Zero(t, count(table, doomed), "rows of %s are left over", table)
				require.Positive(t, count(table, other), "rows of %s are another tenant's", table)
			}
			_, err = s.FindTenant(ctx, doomed)
			require.Equal(t, domain.CodeNotFound, domain.CodeOf(err))
			_, err = s.FindUser(ctx, domain.UserID(doomed))
			require.Equal(t, domain.CodeNotFound, domain.CodeOf(err), "an account of this tenant alone")
			for _, id := range []domain.UserID{both.ID, domain.UserID(other)} {
				_, err = s.FindUser(ctx, id)
				require.NoError(t, err)
			}
			require.NoError(t, s.CreateTenant(context.Background(), domain.Tenant{ID: 5, Name: "t" + doomed.String()}), "the name is free")
		})
	}
}

// What a tenant leaves behind that lives in another cell goes when its time has come,
// but for what leads there.
func TestMovedTenantsLeaveTheWay(t *testing.T) {
	for name, database := range databases {
		t.Run(name, func(t *testing.T) {
			s := openTables(t, database)
			ctx := t.Context()
			tables := columnsOf(t, s)
			moved, other := domain.TenantID(0x1111111111), domain.TenantID(0x2222222222)
			for _, id := range []domain.TenantID{moved, other} {
				require.NoError(t, s.CreateTenant(ctx, domain.Tenant{ID: id, Name: "t" + id.String(), CreatedAt: time.Now()}))
				for table, columns := range tables {
					fill(t, s, table, columns, int64(id))
				}
			}
			now := time.Now()
			_, err := s.Write.ExecContext(ctx, "UPDATE tenants SET state = 5, cell = 'eu2', delete_at = ? WHERE id = ?", now.Add(time.Hour).UnixMilli(), int64(moved))
			require.NoError(t, err)
			n, err := s.DeleteTenantsBefore(ctx, now, 1000)
			require.NoError(t, err)
			require.Zero(t, n, "its time has not come")
			for n = 1; n > 0; {
				n, err = s.DeleteTenantsBefore(ctx, now.Add(2*time.Hour), 7)
				require.NoError(t, err)
			}
			left := []string{}
			for table := range tables {
				var mine, others int
				require.NoError(t, s.Read.QueryRowContext(ctx, "SELECT COUNT(*) FROM "+table+" WHERE tenant_id = ?", int64(moved)).Scan(&mine))
				require.NoError(t, s.Read.QueryRowContext(ctx, "SELECT COUNT(*) FROM "+table+" WHERE tenant_id = ?", int64(other)).Scan(&others))
				require.Equal(t, 1, others, table)
				if mine > 0 {
					left = append(left, table)
				}
			}
			require.ElementsMatch(t, []string{"api_keys", "join_tokens", "join_token_boots", "executors", "executor_aliases", "memberships", "audit_log", "audit_chains"}, left)
			tenant, err := s.FindTenant(ctx, moved)
			require.NoError(t, err)
			require.Equal(t, []any{domain.TenantMoved, "eu2", time.Time{}}, []any{tenant.State, tenant.Cell, tenant.DeleteAt})

			// Deleted here and restored, it leads there again, and cannot be enabled in both.
			set := func(state domain.TenantState) error {
				tenant, err = s.SetTenantState(ctx, store.SetTenantStateParams{ID: moved, State: state, Grace: time.Hour})
				return err
			}
			require.NoError(t, set(domain.TenantDeleted))
			require.NoError(t, set(domain.TenantDisabled))
			require.Equal(t, []any{domain.TenantMoved, "eu2"}, []any{tenant.State, tenant.Cell})
			require.Equal(t, domain.CodeConflict, domain.CodeOf(set(domain.TenantEnabled)))

			_, err = s.Write.ExecContext(ctx, "UPDATE tenants SET state = 4 WHERE id = ?", int64(moved))
			require.NoError(t, err)
			_, err = s.RenameTenant(ctx, moved, 0, "another")
			require.Equal(t, domain.CodeConflict, domain.CodeOf(err), "it is between two cells")
		})
	}
}
