package audit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

func TestRefusalsAreBounded(t *testing.T) {
	var stored []domain.AuditEntry
	var fault error
	registry := prometheus.NewRegistry()
	leftOut := func() float64 {
		families, err := registry.Gather()
		require.NoError(t, err)
		return families[0].GetMetric()[0].GetCounter().GetValue()
	}
	r := newRefusals(registry, slog.New(slog.DiscardHandler), func(_ context.Context, e domain.AuditEntry) error {
		stored = append(stored, e)
		return fault
	})
	now := time.Now()
	take := func(tenant domain.TenantID, address string) {
		r.take(t.Context(), domain.AuditEntry{Tenant: tenant, Address: address}, now)
	}
	for i := range 50 {
		take(1, fmt.Sprintf("2001:db8::%x", i)) // one network
	}
	require.Len(t, stored, addressBurst)
	require.Equal(t, 40.0, leftOut())
	take(2, "2001:db8::1")
	require.Len(t, stored, addressBurst+1, "another tenant")
	now = now.Add(addressInterval)
	take(1, "2001:db8::ffff")
	require.Equal(t, `{"leftOut":40}`, stored[len(stored)-1].After)

	stored = nil
	for i := range 1000 {
		take(3, fmt.Sprintf("192.0.2.%d", i%250))
	}
	require.Len(t, stored, tenantBurst)

	fault = errors.New("the database is away")
	before := leftOut()
	take(4, "192.0.2.1")
	require.Equal(t, before+1, leftOut())
}
