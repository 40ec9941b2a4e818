package callback

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// ownLines are a log without what the executors say, which have one With a tenant.
type ownLines struct{ slog.Handler }

func (ownLines) WithAttrs([]slog.Attr) slog.Handler { return slog.DiscardHandler }

// service is one that looks when a test says so, and reaches no gateway.
func service(t *testing.T, list func() ([]Tenant, error)) (*Service, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	s := New(Options{
		List: func(context.Context) ([]Tenant, error) { return list() },
		Dial: func(context.Context, domain.TenantID, domain.ExecutorID) (net.Conn, error) {
			return nil, errors.New("no gateway here")
		},
		Dir: t.TempDir(), Node: "n1", Logger: slog.New(slog.DiscardHandler),
	})
	s.log = slog.New(ownLines{slog.NewTextHandler(&log, nil)})
	s.running = true
	t.Cleanup(s.stop)
	return s, &log
}

func TestATenantThatFailsConcernsNoOther(t *testing.T) {
	policy := &domain.CallbackPolicy{Hosts: []string{"api.example.com"}, PerHost: 1}
	var bad, all error
	s, log := service(t, func() ([]Tenant, error) {
		return []Tenant{{ID: 1, Executor: 1, Policy: policy, Err: bad}, {ID: 2, Executor: 2, Policy: policy}}, all
	})
	said := ""
	look := func() string {
		log.Reset()
		said = s.report(said, s.look(t.Context()))
		return log.String()
	}
	bad = errors.New("does not open")
	require.Contains(t, look(), "of some tenants")
	require.Nil(t, s.members[1].policy.Load())
	require.Equal(t, policy, s.members[2].policy.Load().of)
	require.Empty(t, look(), "said once")
	all = errors.New("no database")
	require.Contains(t, look(), "cannot be read")
	require.Empty(t, look())
	all = nil
	require.Contains(t, look(), "of some tenants")
	bad = nil
	require.Contains(t, look(), "up to date again")
	require.Equal(t, policy, s.members[1].policy.Load().of)
	require.Empty(t, look())
}

// Whoever changes a policy does not wait for other tenants' instances.
func TestRefreshWaitsForOneTenant(t *testing.T) {
	s, _ := service(t, func() ([]Tenant, error) { return []Tenant{{ID: 1, Executor: 1}}, nil })
	s.Refresh(t.Context(), 2) // tenant 1 is never registered here
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s.Refresh(ctx, 1)
}

func TestWhyAMemberEndsIsSaidOnce(t *testing.T) {
	s, log := service(t, nil)
	for _, end := range []struct{ why, said string }{{"disk full", "disk full"}, {"disk full", ""}, {"locked", "locked"}} {
		log.Reset()
		s.logEnd(&member{tenant: 1, err: errors.New(end.why)})
		if end.said == "" {
			require.Empty(t, log.String())
		} else {
			require.Contains(t, log.String(), end.said)
		}
	}
}
