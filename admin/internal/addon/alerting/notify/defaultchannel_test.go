package notify

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/noun"
	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// unheard has three tenants that no alert reaches. The last one's settings were saved.
type unheard struct {
	made  map[domain.TenantID][]string
	fails error
}

func (u *unheard) ListUnheardTenants(context.Context, bool) (out []UnheardTenant, err error) {
	for n, name := range []string{"shop", "web", "saved"} {
		out = append(out, UnheardTenant{Tenant: domain.Tenant{ID: domain.TenantID(n + 1), Name: name}, Fresh: name != "saved"})
	}
	return out, nil
}

func (u *unheard) CreateDefaultReceiver(_ context.Context, c noun.AlertChannel, _ string) (bool, error) {
	if u.fails == nil {
		u.made[c.TenantID] = c.Spec.Emails
	}
	return u.fails == nil, u.fails
}

// The store decides whether a tenant has a channel of the name already, also without addresses.
func TestReceiversOfTenants(t *testing.T) {
	for _, addresses := range [][]string{nil, {"ops@example.com"}} {
		u := &unheard{made: map[domain.TenantID][]string{}}
		r := Receivers{Store: u, NewID: func() int64 { return 7 }, Default: addresses, Log: slog.New(slog.DiscardHandler)}
		require.NoError(t, r.Give(t.Context()))
		require.Equal(t, map[domain.TenantID][]string{1: addresses, 2: addresses}, u.made)
	}
}

// A start ends with the error. A request that made a tenant does not: the next start does it.
func TestAReceiverThatCannotBeMade(t *testing.T) {
	var log strings.Builder
	broken := errors.New("broken")
	r := Receivers{Store: &unheard{fails: broken}, NewID: func() int64 { return 7 }, Default: []string{"ops@example.com"}, Log: slog.New(slog.NewTextHandler(&log, nil))}
	require.ErrorIs(t, r.Give(t.Context()), broken)
	r.TenantMade(t.Context(), domain.Tenant{ID: 9, Name: "later"})
	require.Contains(t, log.String(), "tenant=later")
}
