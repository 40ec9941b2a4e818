package lease

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/gormtest"
	"github.com/carillon-sched/carillon/admin/internal/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// flaky is a store that can be cut off.
type flaky struct {
	*gormstore.Store
	down atomic.Bool
}

func (f *flaky) RenewPartitions(ctx context.Context, p store.RenewPartitionsParams) (domain.PartitionTable, error) {
	if f.down.Load() {
		return domain.PartitionTable{}, errors.New("cut off")
	}
	return f.Store.RenewPartitions(ctx, p)
}

func (f *flaky) ReadPartitions(ctx context.Context) (domain.PartitionTable, error) {
	if f.down.Load() {
		return domain.PartitionTable{}, errors.New("cut off")
	}
	return f.Store.ReadPartitions(ctx)
}

func (f *flaky) ReleasePartitions(ctx context.Context, p store.ReleasePartitionsParams) ([]domain.PartitionTerm, error) {
	if f.down.Load() {
		return nil, errors.New("cut off")
	}
	return f.Store.ReleasePartitions(ctx, p)
}

// running is a keeper with what came out of it.
type running struct {
	*Keeper
	store  *flaky
	gained atomic.Int32
	mu     sync.Mutex
	adopts []domain.Execution // guarded by mu
	resent []domain.Execution // guarded by mu
	stop   func()
}

func (r *running) adopted() []domain.Execution {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.adopts
}

func inBubble(t *testing.T, test func(t *testing.T, s *gormstore.Store, start func(name string) *running)) {
	synctest.Test(t, func(t *testing.T) {
		o := gormstore.Options{
			Driver: "sqlite", DSN: gormtest.SQLite(t), NewID: storetest.NewID, Logger: slog.New(slog.DiscardHandler),
		}
		s, err := gormstore.Open(t.Context(), o)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		var stops []func()
		defer func() {
			for _, stop := range stops {
				stop()
			}
		}()
		test(t, s, func(name string) *running {
			self, err := s.RegisterNode(t.Context(), domain.Node{BootID: name, Name: name}, time.Hour)
			require.NoError(t, err)
			r := &running{store: &flaky{Store: s}}
			r.Keeper = NewKeeper(Options{
				Store: r.store, Node: self.ID, BootID: name, Horizon: 3 * time.Second, Logger: slog.New(slog.DiscardHandler),
				Gained:   func() { r.gained.Add(1) },
				GiveBack: s.GiveBackOffers,
				Resend: func(_ context.Context, list []domain.Execution) {
					r.mu.Lock()
					defer r.mu.Unlock()
					r.resent = append(r.resent, list...)
				},
				Adopt: func(list ...domain.Execution) {
					r.mu.Lock()
					defer r.mu.Unlock()
					r.adopts = append(r.adopts, list...)
				},
			})
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- r.Run(ctx) }()
			r.stop = sync.OnceFunc(func() { cancel(); require.NoError(t, <-done) })
			stops = append(stops, r.stop)
			synctest.Wait()
			return r
		})
	})
}

func TestKeepersShareAndHandOver(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *gormstore.Store, start func(string) *running) {
		one := start("one")
		require.Len(t, one.Held(), domain.Partitions, "alone, at once")
		require.EqualValues(t, 1, one.gained.Load())
		time.Sleep(10 * TTL)
		require.Len(t, one.Held(), domain.Partitions, "renewed")

		two := start("two")
		time.Sleep(2*LookEvery + RenewEvery)
		synctest.Wait()
		require.Len(t, one.Held(), domain.Partitions/2)
		require.Len(t, two.Held(), domain.Partitions/2)
		require.Empty(t, two.adopted(), "one still fires what it planned")
		require.Len(t, one.Table().Nodes, 2)

		one.stop()
		require.Empty(t, one.Held())
		time.Sleep(LookEvery)
		synctest.Wait()
		require.Len(t, two.Held(), domain.Partitions, "at its next look")
	})
}

func TestAKeeperWithoutItsDatabaseTrustsNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, s *gormstore.Store, start func(string) *running) {
		one, two := start("one"), start("two")
		time.Sleep(TTL)
		w := storetest.NewWorld(t, s)
		var planned []domain.Execution // by the one that is cut off
		for len(planned) < 3 {
			job := w.Job(nil)
			for _, h := range one.Held() {
				if h.Partition == job.Partition {
					planned = append(planned, w.Run(job, time.Now().Add(2*time.Second)))
				}
			}
		}
		offered, err := s.OfferExecutions(t.Context(), []store.Offer{{
			Tenant: w.Tenant, ID: w.Run(domain.Job{ID: planned[0].JobID, TenantID: w.Tenant, Executor: w.Executor, Revision: 1, Partition: planned[0].Partition}, time.Now()).ID,
			Node: one.opt.Node, Instance: w.Instance("boot", time.Minute),
		}})
		require.NoError(t, err)
		require.Equal(t, store.OfferMade, offered[0].Status)
		granted, err := s.OfferExecutions(t.Context(), []store.Offer{{
			Tenant: w.Tenant, ID: w.Run(domain.Job{ID: planned[0].JobID, TenantID: w.Tenant, Executor: w.Executor, Revision: 1, Partition: planned[0].Partition}, time.Now()).ID,
			Node: one.opt.Node, Instance: offered[0].Execution.Instance, Idempotent: true, Granted: true,
		}})
		require.NoError(t, err)
		require.LessOrEqual(t, one.Silent(), TTL)
		one.store.down.Store(true)
		time.Sleep(TTL - Margin)
		require.Empty(t, one.Held())
		time.Sleep(Margin + LookEvery)
		synctest.Wait()
		require.Len(t, two.Held(), domain.Partitions)
		adopted := two.adopted()
		require.Len(t, adopted, len(planned)+1)
		back := adopted[len(planned)]
		require.Equal(t, offered[0].Execution.ID, back.ID, "its offer is given back")
		require.Equal(t, domain.Due, w.Find(back.ID).State)
		require.Len(t, two.resent, 1, "what was offered in one step is sent again")
		require.Equal(t, granted[0].Execution.ID, two.resent[0].ID)

		require.Greater(t, one.Silent(), TTL)
		require.LessOrEqual(t, two.Silent(), TTL)
		one.store.down.Store(false)
		time.Sleep(RenewEvery + 2*LookEvery)
		synctest.Wait()
		require.Len(t, one.Held(), domain.Partitions/2)
		require.Len(t, two.Held(), domain.Partitions/2)

		one.store.down.Store(true)
		stopped := time.Now()
		one.stop()
		require.LessOrEqual(t, time.Since(stopped), handOver, "it does not wait for ever")
	})
}

func TestARefusedClaimMakesTheKeeperLook(t *testing.T) {
	inBubble(t, func(t *testing.T, s *gormstore.Store, start func(string) *running) {
		one := start("one")
		storetest.HoldAll(t, s) // somebody took them behind its back
		require.Len(t, one.Held(), domain.Partitions)
		one.Refused()
		synctest.Wait()
		require.Empty(t, one.Held())
	})
}
