package gormstore

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// BenchmarkReconnect measures what 2,000 instances with a run each cost the database
// when they come back from a node that is gone, and when they leave: in
// transactions of one, four at once, and together. Figures are ms until the last
// one has its answer.
func BenchmarkReconnect(b *testing.B) {
	for name, options := range bothDatabases {
		for _, together := range []int{1, 200} {
			b.Run(fmt.Sprintf("%s/%d", name, together), func(b *testing.B) {
				for range b.N {
					benchmarkReconnect(b, openStore(b, options(b)), together)
				}
			})
		}
	}
}

func benchmarkReconnect(b *testing.B, s *Store, together int) {
	const instances = 2000
	w := newWorld(b, s, instances, domain.BlockParallel)
	var register []store.RegisterInstanceParams
	for i := range instances {
		register = append(register, store.RegisterInstanceParams{Instance: domain.Instance{
			ID: domain.InstanceID(w.ids.Next()), TenantID: w.tenant, Executor: w.executor, BootID: fmt.Sprint("boot ", i),
		}, TTL: time.Hour})
	}
	registered, err := s.RegisterInstances(b.Context(), register)
	require.NoError(b, err)
	var inventories []store.SettleInventoryParams
	var leaves []store.InstanceLeave
	offers := w.offers(w.plan(1))
	for i := range offers {
		offers[i].Instance = registered[i].Instance.ID
	}
	offered, err := s.OfferExecutions(b.Context(), offers)
	require.NoError(b, err)
	for i, o := range offered {
		inventories = append(inventories, store.SettleInventoryParams{
			Tenant: w.tenant, Executor: w.executor, Instance: registered[i].Instance.ID,
			Items: []domain.Held{{ID: o.Execution.ID, Fence: o.Execution.Fence, Phase: domain.HeldAccepted}},
		})
		leaves = append(leaves, store.InstanceLeave{Tenant: w.tenant, ID: registered[i].Instance.ID, Reason: "stopped"})
	}
	require.Len(b, inventories, instances)
	b.ReportMetric(parallel(inventories, together, func(list []store.SettleInventoryParams) {
		for _, one := range s.SettleInventories(b.Context(), list) {
			require.NoError(b, one.Err)
			require.Equal(b, domain.VerdictGrant, one.Items[0].Verdict)
		}
	}), "settle-ms")
	b.ReportMetric(parallel(leaves, min(together, 50), func(list []store.InstanceLeave) {
		for _, err := range s.LeaveInstances(b.Context(), list) {
			require.NoError(b, err)
		}
	}), "leave-ms")
}

// parallel is a gateway: four at once who ask for one, or one who asks for many.
func parallel[P any](list []P, together int, do func([]P)) (ms float64) {
	var wg sync.WaitGroup
	parts := make(chan []P)
	workers := 4
	if together > 1 {
		workers = 1
	}
	began := time.Now()
	for range workers {
		wg.Go(func() {
			for part := range parts {
				do(part)
			}
		})
	}
	for from := 0; from < len(list); from += together {
		parts <- list[from:min(from+together, len(list))]
	}
	close(parts)
	wg.Wait()
	return float64(time.Since(began).Microseconds()) / 1000
}
