package scheduler

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
	"github.com/carillon-sched/carillon/admin/internal/runtable"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/gormtest"
	"github.com/carillon-sched/carillon/admin/internal/store/storetest"
	"github.com/carillon-sched/carillon/admin/internal/timing"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// switched is a store that can be cut off.
type switched struct {
	store.Store
	down atomic.Bool
	boot string
	held []domain.PartitionTerm // owned by the planner's goroutine
}

// hold takes and keeps what is free, for a second.
func (s *switched) hold(t *testing.T, partitions []int) []domain.PartitionTerm {
	if s.down.Load() {
		return s.held
	}
	ctx := context.WithoutCancel(t.Context())
	table, err := s.RenewPartitions(ctx, store.RenewPartitionsParams{BootID: s.boot, Held: s.held, TTL: time.Second, Wall: time.Now()})
	if err != nil {
		t.Errorf("renew: %v", err)
	}
	var want []domain.PartitionTerm
	s.held = nil
	for _, p := range partitions {
		l := table.Leases[p]
		switch {
		case l.BootID != s.boot:
			want = append(want, l.PartitionTerm)
		case l.Until.After(table.Now):
			s.held = append(s.held, l.PartitionTerm)
		}
	}
	got, err := s.AcquirePartitions(ctx, store.AcquirePartitionsParams{BootID: s.boot, Want: want, TTL: time.Second})
	if err != nil {
		t.Errorf("acquire: %v", err)
	}
	s.held = append(s.held, storetest.TermsOf(got)...)
	return s.held
}

func (s *switched) ClaimDueTriggers(ctx context.Context, p store.ClaimDueTriggersParams) (store.ClaimedTriggers, error) {
	if s.down.Load() {
		return store.ClaimedTriggers{}, errors.New("the database is down")
	}
	return s.Store.ClaimDueTriggers(ctx, p)
}

// TestTwoNodesFireEachTimeOnceToTheMillisecond runs planner and timer of two
// nodes on one real database. First the node that holds the partitions is cut
// off from it, then both for less than the planner looks ahead.
func TestTwoNodesFireEachTimeOnceToTheMillisecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := gormstore.Options{
			Driver: "sqlite", DSN: gormtest.SQLite(t),
			NewID: storetest.NewID, Logger: slog.New(slog.DiscardHandler),
		}
		s, err := gormstore.Open(t.Context(), o)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		w := storetest.NewWorld(t, s)

		var mu sync.Mutex
		fired := map[domain.JobID]map[time.Time]int{}
		ctx, cancel := context.WithCancel(t.Context())
		var nodes sync.WaitGroup
		stores := []*switched{{Store: s, boot: "one"}, {Store: s, boot: "two"}}
		start := time.Now().Truncate(time.Second).Add(10 * time.Second).UTC()
		var partitions []int
		for i := range 6 {
			first := start.Add(time.Duration(i) * 37 * time.Millisecond)
			job := w.JobFiring(first, func(s *domain.JobSpec) {
				s.Schedule = domain.ScheduleSpec{Kind: domain.ScheduleFixedRate, Every: time.Second, Anchor: first}
			})
			partitions = append(partitions, job.Partition)
			fired[job.ID] = map[time.Time]int{}
		}
		schedules, err := timing.NewCache(100)
		require.NoError(t, err)
		for _, mine := range stores {
			timer := NewTimer(new(runtable.Table), time.Now, 0, func(due []*domain.Execution) {
				mu.Lock()
				defer mu.Unlock()
				for _, e := range due {
					fired[e.JobID][e.FireAt]++
					if late := time.Since(e.FireAt); late < 0 || late >= time.Millisecond {
						t.Errorf("job %s fired %s after its time", e.JobID, late)
					}
				}
			})
			planner := NewPlanner(PlannerOptions{
				Store: mine, Held: func() []domain.PartitionTerm { return mine.hold(t, partitions) }, NewID: storetest.NewID, Plan: schedules.Plan,
				Out: func(e []domain.Execution) { timer.Add(e...) }, Logger: slog.New(slog.DiscardHandler),
			})
			nodes.Go(func() { planner.Run(ctx) })
			nodes.Go(func() { timer.Run(ctx) })
		}
		time.Sleep(time.Until(start.Add(5 * time.Second)))
		stores[0].down.Store(true)
		time.Sleep(5 * time.Second)
		stores[1].down.Store(true)
		time.Sleep(LookAhead - PollEvery)
		stores[0].down.Store(false)
		stores[1].down.Store(false)
		end := start.Add(20*time.Second + 500*time.Millisecond)
		time.Sleep(time.Until(end))
		cancel()
		nodes.Wait()

		for job, times := range fired {
			require.Len(t, times, 21, "job %s", job)
			for at, n := range times {
				require.Equal(t, 1, n, "job %s at %s", job, at)
			}
		}
		runs, err := s.ListExecutions(context.WithoutCancel(ctx), store.ListExecutionsParams{Tenant: w.Tenant, Limit: 1000})
		require.NoError(t, err)
		rows := map[domain.JobID]int{}
		for _, r := range runs {
			if !r.FireAt.After(end) {
				rows[r.JobID]++
			}
		}
		for job := range fired {
			require.Equal(t, 21, rows[job], "each fire has its row")
		}
	})
}
