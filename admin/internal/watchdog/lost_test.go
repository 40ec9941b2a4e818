package watchdog

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

func TestTheEventOfLostInstances(t *testing.T) {
	x := store.LostInstances{Tenant: 7, Executor: 8, Name: "shop", Lost: []string{"shop-2 on web-2"}, LostSlots: 10, Newest: 9,
		Since: time.Date(2026, 11, 28, 3, 0, 0, 0, time.UTC), Living: 2, LivingSlots: 20}
	e := lostEvent(&x)
	require.Equal(t, `executor "shop": 1 of 3 instances gone since 2026-11-28T03:00:00Z, capacity 66 %: shop-2 on web-2`, e.Detail)
	require.Equal(t, []any{domain.AlertInstanceGone, domain.TenantID(7), domain.ExecutorID(8)}, []any{e.Kind, e.TenantID, e.Executor})
	require.Equal(t, e.DedupeKey, lostEvent(&x).DedupeKey, "each node writes the same")
	x.Newest++
	require.NotEqual(t, e.DedupeKey, lostEvent(&x).DedupeKey)
	x = store.LostInstances{Lost: slices.Repeat([]string{"a"}, 12)}
	require.True(t, strings.HasSuffix(lostEvent(&x).Detail, "12 of 12 instances gone since 0001-01-01T00:00:00Z, capacity 0 %: "+strings.Repeat("a, ", 9)+"a and 2 more"))
}
