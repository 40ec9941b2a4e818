package gormstore

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/notify"
	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/noun"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
)

// The oldest thing that could be told decides, be it an event or a delivery.
func TestOutboxLag(t *testing.T) {
	for name, options := range bothDatabases {
		t.Run(name, func(t *testing.T) {
			s := newAging(openStore(t, options(t)))
			ctx := t.Context()
			tenant := domain.TenantID(7)
			require.NoError(t, s.CreateTenant(ctx, domain.Tenant{ID: tenant, Name: "acme"}))
			lag := func() time.Duration {
				got, err := s.OutboxLag(ctx)
				require.NoError(t, err)
				return got
			}
			require.Zero(t, lag(), "nothing to tell")
			now, err := s.Now(ctx)
			require.NoError(t, err)
			require.NoError(t, s.RecordAlerts(ctx, []domain.AlertEvent{{
				ID: 1, TenantID: tenant, Kind: domain.AlertNoExecutor, DedupeKey: "k", CreatedAt: now.Add(-time.Hour),
			}}))
			require.GreaterOrEqual(t, lag(), time.Hour)
			_, err = s.ExpandAlertEvents(ctx, 10, func(b *notify.AlertBatch) {
				b.Direct = []noun.Delivery{{ID: 2, TenantID: tenant, EventID: 1, Channel: "webhook", Target: "https://example.test", NextAt: now.Add(-time.Minute)}}
			})
			require.NoError(t, err)
			require.GreaterOrEqual(t, lag(), time.Minute)
			require.Less(t, lag(), time.Hour)
			require.NoError(t, s.FinishDelivery(ctx, 2, noun.DeliveryPending, time.Hour, "not now"))
			require.Zero(t, lag(), "it waits for its next time, and for nobody")
			require.NoError(t, s.FinishDelivery(ctx, 2, noun.DeliveryDelivered, 0, ""))
			require.Zero(t, lag())
		})
	}
}

// Every transaction is seen once, with its name, its repetitions and its end.
func TestObserve(t *testing.T) {
	for name, options := range bothDatabases {
		t.Run(name, func(t *testing.T) {
			s := openStore(t, options(t))
			var mu sync.Mutex
			var seen []db.Transaction
			s.Observe = func(tx db.Transaction) {
				mu.Lock()
				defer mu.Unlock()
				seen = append(seen, tx)
			}
			broken := errors.New("not today")
			require.NoError(t, s.Run(t.Context(), "good", func(*db.Tx) error { return nil }))
			require.ErrorIs(t, s.Run(t.Context(), "bad", func(*db.Tx) error { return broken }), broken)
			tries := 0
			require.NoError(t, s.Run(t.Context(), "again", func(*db.Tx) error {
				if tries++; tries < 3 {
					return db.ErrStale
				}
				return nil
			}))
			require.Len(t, seen, 3)
			require.Equal(t, []string{"good", "bad", "again"}, []string{seen[0].Step, seen[1].Step, seen[2].Step})
			require.Equal(t, []int{0, 0, 2}, []int{seen[0].Repeats, seen[1].Repeats, seen[2].Repeats})
			require.NoError(t, seen[0].Err)
			require.ErrorIs(t, seen[1].Err, broken)
			require.Positive(t, seen[0].Took)
		})
	}
}

func TestPools(t *testing.T) {
	for name, options := range bothDatabases {
		t.Run(name, func(t *testing.T) {
			s := openStore(t, options(t))
			require.NoError(t, s.Ping(context.Background()))
			var names []string
			open := 0
			for _, p := range s.Pools() {
				names = append(names, p.Name)
				open += p.OpenConnections
				require.Positive(t, p.MaxOpenConnections, p.Name)
			}
			require.Equal(t, map[string][]string{"mysql": {"main", "transactions", "leases"}, "sqlite": {"write", "read"}}[name], names)
			require.Positive(t, open)
		})
	}
}
