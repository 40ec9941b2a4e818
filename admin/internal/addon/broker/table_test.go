package broker_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/addon/broker"
	"github.com/carillon-sched/carillon/admin/internal/addon/broker/noun"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/gormtest"
	"github.com/carillon-sched/carillon/admin/internal/store/storetest"
	"github.com/carillon-sched/carillon/internal/testenv"
)

// fixture is a tenant of its own in a database.
type fixture struct {
	t      *testing.T
	ctx    context.Context
	s      *gormstore.Store
	table  *broker.Table
	tenant domain.TenantID
}

func (f *fixture) ok(err error) {
	f.t.Helper()
	require.NoError(f.t, err)
}

func (f *fixture) code(want domain.Code, err error) {
	f.t.Helper()
	require.Equal(f.t, want, domain.CodeOf(err), "%v", err)
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
			f := &fixture{t, t.Context(), s, &broker.Table{DB: s.DB, EnsureBuiltIn: s.EnsureBuiltIn}, domain.TenantID(storetest.NewID())}
			f.ok(s.CreateTenant(f.ctx, domain.Tenant{ID: f.tenant, Name: "tenant " + f.tenant.String(), CreatedAt: time.Now()}))
			test(t, f)
		})
	}
}

func TestConnections(t *testing.T) { onBoth(t, testConnections) }

func TestConnectionsMost(t *testing.T) { onBoth(t, testConnectionsMost) }

func testConnections(t *testing.T, f *fixture) {
	spec := noun.ConnectionSpec{
		Name: "订单", Description: "orders", Broker: noun.BrokerRabbitMQ, Addresses: []string{"mq1.example:5671", "mq2.example:5671"},
		Username: "shop", Mechanism: noun.MechanismPassword, VirtualHost: "/shop",
		TLS: noun.ConnectionTLS{Enabled: true, Authorities: "A", ServerName: "mq.example", Certificate: "C"},
	}
	made, err := f.table.CreateConnection(f.ctx, noun.Connection{
		ID: noun.ConnectionID(storetest.NewID()), TenantID: f.tenant, Spec: spec, Secrets: []byte("sealed\x00"), HasPassword: true, HasClientKey: true, CreatedBy: "anna",
	})
	f.ok(err)
	require.Equal(t, spec, made.Spec)
	e, err := f.s.FindExecutorByName(f.ctx, f.tenant, domain.BuiltInExecutor)
	f.ok(err)
	require.True(t, e.BuiltIn, "it publishes")
	builtIn, err := f.s.ListBuiltIn(f.ctx)
	f.ok(err)
	require.Contains(t, builtIn, store.BuiltIn{Tenant: f.tenant, Executor: e.ID}, "without any policy")
	require.Equal(t, []any{int64(1), []byte("sealed\x00"), true, true, "anna", "anna"},
		[]any{made.Version, made.Secrets, made.HasPassword, made.HasClientKey, made.CreatedBy, made.UpdatedBy})
	require.False(t, made.CreatedAt.IsZero())
	_, err = f.table.CreateConnection(f.ctx, noun.Connection{ID: noun.ConnectionID(storetest.NewID()), TenantID: f.tenant, Spec: spec})
	f.code(domain.CodeConflict, err)

	plain, err := f.table.CreateConnection(f.ctx, noun.Connection{ID: noun.ConnectionID(storetest.NewID()), TenantID: f.tenant, Spec: noun.ConnectionSpec{
		Name: "cache", Broker: noun.BrokerRedis, Addresses: []string{"redis.example:26379"}, Mechanism: noun.MechanismPassword, Database: 3, SentinelMaster: "main",
	}})
	f.ok(err)
	require.Empty(t, plain.Secrets)
	list, err := f.table.ListConnections(f.ctx, f.tenant)
	f.ok(err)
	require.Equal(t, []noun.Connection{plain, made}, list, "by name")

	changed := made
	changed.Spec.TLS, changed.Spec.Name = noun.ConnectionTLS{}, "orders"
	changed.Secrets, changed.HasPassword, changed.HasClientKey, changed.UpdatedBy, changed.CreatedBy = []byte("other"), true, false, "bob", "bob"
	changed, err = f.table.UpdateConnection(f.ctx, changed)
	f.ok(err)
	require.Equal(t, []any{int64(2), []byte("other"), false, "anna", "bob", noun.ConnectionTLS{}},
		[]any{changed.Version, changed.Secrets, changed.HasClientKey, changed.CreatedBy, changed.UpdatedBy, changed.Spec.TLS})
	_, err = f.table.UpdateConnection(f.ctx, made)
	f.code(domain.CodeRevisionMismatch, err)
	same := changed
	same.Spec.Name = plain.Spec.Name
	_, err = f.table.UpdateConnection(f.ctx, same)
	f.code(domain.CodeConflict, err)
	found, err := f.table.FindConnectionByName(f.ctx, f.tenant, "orders")
	f.ok(err)
	require.Equal(t, changed, found)

	foreign := changed
	foreign.TenantID++
	_, err = f.table.FindConnection(f.ctx, foreign.TenantID, changed.ID)
	f.code(domain.CodeNotFound, err)
	_, err = f.table.FindConnectionByName(f.ctx, foreign.TenantID, "orders")
	f.code(domain.CodeNotFound, err)
	_, err = f.table.UpdateConnection(f.ctx, foreign)
	f.code(domain.CodeNotFound, err)
	f.code(domain.CodeNotFound, f.table.DeleteConnection(f.ctx, foreign.TenantID, changed.ID))
	list, err = f.table.ListConnections(f.ctx, foreign.TenantID)
	f.ok(err)
	require.Empty(t, list)

	f.ok(f.table.DeleteConnection(f.ctx, f.tenant, changed.ID))
	f.code(domain.CodeNotFound, f.table.DeleteConnection(f.ctx, f.tenant, changed.ID))
	_, err = f.table.UpdateConnection(f.ctx, changed)
	f.code(domain.CodeNotFound, err)
	_, err = f.table.FindConnectionByName(f.ctx, f.tenant, "orders")
	f.code(domain.CodeNotFound, err)
}

func testConnectionsMost(t *testing.T, f *fixture) {
	create := func(n int) error {
		_, err := f.table.CreateConnection(f.ctx, noun.Connection{ID: noun.ConnectionID(storetest.NewID()), TenantID: f.tenant, Spec: noun.ConnectionSpec{
			Name: fmt.Sprint("c", n), Broker: noun.BrokerNATS, Addresses: []string{"nats.example:4222"},
		}})
		return err
	}
	for n := range noun.MaxConnections {
		f.ok(create(n))
	}
	err := create(noun.MaxConnections)
	f.code(domain.CodeConflict, err)
	require.ErrorContains(t, err, "delete one first")
}
