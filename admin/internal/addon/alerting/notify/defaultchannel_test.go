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
	asked int
	made  map[domain.TenantID][]string
	fails error
}

func (u *unheard) ListUnheardTenants(context.Context, bool) (out []UnheardTenant, err error) {
	u.asked++
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

func TestReceiversOfTenants(t *testing.T) {
	declared := map[string][]string{"shop": {"shop@example.com"}, "saved": {"late@example.com"}}
	for name, test := range map[string]struct {
		declared  map[string][]string
		otherwise []string
		want      map[domain.TenantID][]string
	}{
		"none":     {nil, nil, map[domain.TenantID][]string{}},
		"declared": {declared, nil, map[domain.TenantID][]string{1: {"shop@example.com"}}},
		"default":  {nil, []string{"ops@example.com"}, map[domain.TenantID][]string{1: {"ops@example.com"}, 2: {"ops@example.com"}}},
		"both":     {declared, []string{"ops@example.com"}, map[domain.TenantID][]string{1: {"shop@example.com"}, 2: {"ops@example.com"}}},
	} {
		t.Run(name, func(t *testing.T) {
			u := &unheard{made: map[domain.TenantID][]string{}}
			r := Receivers{Store: u, NewID: func() int64 { return 7 }, Default: test.otherwise, Log: slog.New(slog.DiscardHandler)}
			require.NoError(t, r.Give(t.Context(), test.declared))
			require.Equal(t, test.want, u.made)
			require.Equal(t, name == "none", u.asked == 0)
		})
	}
}

// A start ends with the error. A request that made a tenant does not: the next start does it.
func TestAReceiverThatCannotBeMade(t *testing.T) {
	var log strings.Builder
	broken := errors.New("broken")
	r := Receivers{Store: &unheard{fails: broken}, NewID: func() int64 { return 7 }, Default: []string{"ops@example.com"}, Log: slog.New(slog.NewTextHandler(&log, nil))}
	require.ErrorIs(t, r.Give(t.Context(), nil), broken)
	r.TenantMade(t.Context(), domain.Tenant{ID: 9, Name: "later"})
	require.Contains(t, log.String(), "tenant=later")
}
