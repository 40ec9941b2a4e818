package broker_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/addon/broker"
	"github.com/carillon-sched/carillon/admin/internal/addon/broker/noun"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/resource"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/gormtest"
	"github.com/carillon-sched/carillon/admin/internal/store/storetest"
	"github.com/carillon-sched/carillon/internal/testenv"
)

// fixture is a tenant of its own in a database.
type fixture struct {
	t      *testing.T
	ctx    context.Context
	s      *gormstore.Store
	table  broker.Table
	tenant domain.TenantID
}

func (f *fixture) ok(err error) {
	f.t.Helper()
	require.NoError(f.t, err)
}

// onBoth runs a test on SQLite and on MariaDB.
func onBoth(t *testing.T, test func(*testing.T, *fixture)) {
	for driver, place := range map[string]func(testing.TB) string{
		"sqlite": gormtest.SQLite, "mysql": func(tb testing.TB) string { return testenv.Database(tb) },
	} {
		t.Run(driver, func(t *testing.T) {
			o := gormstore.Options{Driver: driver, DSN: place(t), NewID: storetest.NewID, Logger: slog.New(slog.DiscardHandler)}
			require.NoError(t, gormstore.Migrate(t.Context(), o))
			s, err := gormstore.Open(t.Context(), o)
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, s.Close()) })
			f := &fixture{t, t.Context(), s, broker.NewTable(s.DB, s.EnsureBuiltIn), domain.TenantID(storetest.NewID())}
			f.ok(s.CreateTenant(f.ctx, domain.Tenant{ID: f.tenant, Name: "tenant " + f.tenant.String(), CreatedAt: time.Now()}))
			test(t, f)
		})
	}
}

// row is a new connection.
func (f *fixture) row(name, spec string) resource.Row {
	return resource.Row{Meta: resource.Meta{ID: storetest.NewID(), Tenant: f.tenant, Name: name, CreatedBy: "anna", UpdatedBy: "anna"}, Spec: []byte(spec)}
}

func TestTheFirstConnectionMakesTheBuiltInExecutor(t *testing.T) {
	onBoth(t, func(t *testing.T, f *fixture) {
		_, err := f.table.Create(f.ctx, f.row("orders", `{"broker":"nats","addresses":["nats.example:4222"]}`))
		f.ok(err)
		e, err := f.s.FindExecutorByName(f.ctx, f.tenant, domain.BuiltInExecutor)
		f.ok(err)
		require.True(t, e.BuiltIn, "it publishes")
		builtIn, err := f.s.ListBuiltIn(f.ctx)
		f.ok(err)
		require.Contains(t, builtIn, store.BuiltIn{Tenant: f.tenant, Executor: e.ID}, "without any policy")
		c, err := f.table.FindConnectionByName(f.ctx, f.tenant, "orders")
		f.ok(err)
		require.Equal(t, noun.BrokerNATS, c.Spec.Broker)
		all, err := f.table.ListAllConnections(f.ctx, 100)
		f.ok(err)
		require.Contains(t, all, c)
	})
}

// A row of before the mechanism of documents is read, and an edit writes it anew.
func TestAnOlderConnectionIsRead(t *testing.T) {
	onBoth(t, func(t *testing.T, f *fixture) {
		id := storetest.NewID()
		old := `{"description":"of the shop","broker":"kafka","addresses":["k1:1","k2:1"],"username":"u","mechanism":"scram_sha_512","tls":{"serverName":"k"},"hasPassword":true}`
		f.ok(f.s.Run(f.ctx, "insert", func(tx *db.Tx) error {
			_, err := tx.Exec(tx.Ctx, "INSERT INTO connections (id, tenant_id, name, version, spec, secrets, created_at, updated_at, created_by, updated_by) VALUES (?, ?, 'log', 4, ?, ?, 1000, 2000, 'anna', 'bob')", id, int64(f.tenant), old, []byte("sealed"))
			return err
		}))
		c, err := f.table.FindConnectionByName(f.ctx, f.tenant, "log")
		f.ok(err)
		require.Equal(t, noun.ConnectionSpec{
			Description: "of the shop", Broker: noun.BrokerKafka, Addresses: []string{"k1:1", "k2:1"}, Username: "u", Mechanism: noun.MechanismScram512,
			TLS: noun.ConnectionTLS{Enabled: true, ServerName: "k"},
		}, c.Spec)
		require.Equal(t, []any{int64(4), []byte("sealed"), map[string]string{"password": "fingerprint:unknown"}}, []any{c.Version, c.Sealed, c.Marks})
		row, err := f.table.Find(f.ctx, f.tenant, id)
		f.ok(err)
		_, err = f.table.Replace(f.ctx, row)
		f.ok(err)
		again, err := f.table.FindConnectionByName(f.ctx, f.tenant, "log")
		f.ok(err)
		require.Equal(t, c.Spec, again.Spec)
		require.Equal(t, int64(5), again.Version)
	})
}
