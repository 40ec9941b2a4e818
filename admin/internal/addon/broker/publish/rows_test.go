package publish

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/netip"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/carillon-sched/carillon/admin/internal/addon/broker/noun"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/resource"
	"github.com/carillon-sched/carillon/admin/internal/secret"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rows is a store of connections, all of tenant 1.
type rows struct {
	mu    sync.Mutex
	byKey map[string]noun.Connection // guarded by mu
	reads int                        // guarded by mu
}

func (r *rows) FindConnectionByName(_ context.Context, tenant domain.TenantID, name string) (noun.Connection, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reads++
	c, ok := r.byKey[name]
	if !ok || c.Tenant != tenant {
		return c, domain.Errorf(domain.CodeNotFound, "there is no connection %q", name)
	}
	return c, nil
}

func box(t *testing.T) *secret.Box {
	t.Helper()
	b, err := secret.New(bytes.Repeat([]byte{7}, secret.KeySize))
	require.NoError(t, err)
	return b
}

// put writes a connection's row.
func (r *rows) put(t *testing.T, id int64, name string, spec noun.ConnectionSpec, secrets map[string]string) {
	t.Helper()
	spec.Description = name
	spec.Complete()
	var c domain.Checker
	noun.CheckConnection(&resource.Draft[noun.ConnectionSpec]{Name: name, Spec: spec, Secrets: secrets}, &c)
	require.NoError(t, c.Err())
	plain, err := json.Marshal(secrets)
	require.NoError(t, err)
	sealed, err := box(t).Seal(1, secret.PurposeConnection, id, plain)
	require.NoError(t, err)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byKey == nil {
		r.byKey = map[string]noun.Connection{}
	}
	r.byKey[name] = noun.Connection{Meta: resource.Meta{ID: id, Tenant: 1, Name: name, Version: r.byKey[name].Version + 1, Sealed: sealed}, Spec: spec}
}

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

// publisher runs one until the test ends.
func publisher(t *testing.T, r *rows, change func(*Options)) *Publisher {
	t.Helper()
	options := Options{Connections: r, Secrets: box(t), AllowPrefixes: loopback, Logger: slog.New(slog.DiscardHandler)}
	if change != nil {
		change(&options)
	}
	p := New(options)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	t.Cleanup(func() { stop(); require.NoError(t, <-done) })
	return p
}
