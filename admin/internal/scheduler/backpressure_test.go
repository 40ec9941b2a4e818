package scheduler

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/runtable"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/gormtest"
	"github.com/carillon-sched/carillon/admin/internal/store/storetest"
	"github.com/carillon-sched/carillon/admin/internal/timing"
)

func TestWhoIsHeldBack(t *testing.T) {
	type waiting = map[domain.TenantID]int
	tests := []struct {
		name    string
		looks   []waiting
		held    []domain.TenantID
		all     bool
		letGo   bool // by the last look
		episode []domain.TenantID
	}{
		{"nobody below the bound", []waiting{{1: 29, 2: 29}}, nil, false, false, nil},
		{"who reaches it", []waiting{{1: 30, 2: 5}}, []domain.TenantID{1}, false, false, []domain.TenantID{1}},
		{"until two thirds", []waiting{{1: 30}, {1: 21}}, []domain.TenantID{1}, false, false, []domain.TenantID{1}},
		{"then let go", []waiting{{1: 30}, {1: 20}}, nil, false, true, []domain.TenantID{1}},
		{"who has nothing any more", []waiting{{1: 40}, {}}, nil, false, true, []domain.TenantID{1}},
		{"two of them", []waiting{{2: 30}, {1: 31, 2: 25}}, []domain.TenantID{1, 2}, false, false, []domain.TenantID{1, 2}},
		{"all together", []waiting{{1: 25, 2: 25, 3: 25}}, nil, true, false, []domain.TenantID{1, 9}},
		{"all until two thirds", []waiting{{1: 25, 2: 25, 3: 25}, {1: 25, 2: 26}}, nil, true, false, []domain.TenantID{9}},
		{"all let go", []waiting{{1: 25, 2: 25, 3: 25}, {1: 25, 2: 25}}, nil, false, true, []domain.TenantID{9}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := newBackpressure(30, 75, slog.New(slog.DiscardHandler))
			letGo := false
			for _, w := range tt.looks {
				letGo = p.update(runtable.Load{Pending: w}, time.UnixMilli(1))
			}
			require.Equal(t, tt.held, p.heldTenants())
			require.Equal(t, tt.all, p.all)
			require.Equal(t, tt.letGo, letGo)
			for _, tenant := range tt.episode {
				was, memory := p.heldBack(tenant)
				require.True(t, was && memory, "tenant %d", tenant)
			}
			if !tt.all && len(tt.episode) == 0 {
				was, _ := p.heldBack(1)
				require.False(t, was)
			}
		})
	}
}

// TestOffersThatAreBehindHoldPlanningBack: a tenant is held back while more of its runs are due
// than the node offers in a second. The last looks at many runs give this rate. A few runs hold
// nothing back at any rate.
func TestOffersThatAreBehindHoldPlanningBack(t *testing.T) {
	b := newBackpressure(0, 0, slog.New(slog.DiscardHandler))
	now, offered := time.UnixMilli(1), 0
	look := func(rate int, queued map[domain.TenantID]int) (letGo bool) {
		now, offered = now.Add(time.Second), offered+rate
		return b.update(runtable.Load{Queued: queued, Offered: offered}, now)
	}
	const loud, quiet = domain.TenantID(1), domain.TenantID(2)
	look(10_000, map[domain.TenantID]int{loud: 12_000, quiet: 400})
	require.Empty(t, b.heldTenants(), "the rate is not known yet")
	for range 10 {
		look(10_000, map[domain.TenantID]int{loud: 9_000, quiet: 400})
	}
	require.Empty(t, b.heldTenants(), "less than a second of work")
	for range 10 {
		look(1_000, map[domain.TenantID]int{loud: 9_000, quiet: 400})
	}
	require.Equal(t, []domain.TenantID{loud}, b.heldTenants())
	was, memory := b.heldBack(loud)
	require.True(t, was && !memory)
	require.False(t, look(1_000, map[domain.TenantID]int{loud: 600, quiet: 400}))
	require.True(t, look(1_000, map[domain.TenantID]int{loud: 499, quiet: 400}))
	require.Empty(t, b.heldTenants())
	for range 10 {
		look(1, map[domain.TenantID]int{loud: 50, quiet: 400}) // few are due, so few are offered
	}
	require.Empty(t, b.heldTenants())
	require.InDelta(t, 1_000, b.rate, 10)
}

// sender is what comes after the timer: it sends out one run at a time, and
// takes a while for each.
type sender struct {
	each time.Duration

	mu    sync.Mutex
	line  []domain.Execution         // guarded by mu
	sent  map[domain.ExecutionID]int // guarded by mu
	peaks map[domain.TenantID]int    // guarded by mu
	late  map[domain.TenantID]time.Duration
}

func (s *sender) load(timer *Timer) runtable.Load {
	l := timer.table.Load()
	n := l.Pending
	s.mu.Lock()
	defer s.mu.Unlock()
	if n == nil {
		n = map[domain.TenantID]int{}
	}
	for i := range s.line {
		n[s.line[i].TenantID]++
	}
	for tenant, of := range n {
		s.peaks[tenant] = max(s.peaks[tenant], of)
	}
	l.Pending = n
	return l
}

func (s *sender) take(due []*domain.Execution) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range due {
		s.line = append(s.line, *e)
	}
	for i := range due {
		if due[i].PlannedAt.After(due[i].FireAt) {
			s.late[due[i].TenantID] = max(s.late[due[i].TenantID], due[i].PlannedAt.Sub(due[i].FireAt))
		}
	}
}

func (s *sender) run(ctx context.Context) {
	tick := time.NewTicker(s.each)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		s.mu.Lock()
		if len(s.line) > 0 {
			s.sent[s.line[0].ID]++
			s.line = s.line[1:]
		}
		s.mu.Unlock()
	}
}

// TestOverloadWaitsInTheDatabase offers three times what can be sent out, for a
// minute, on a real database: what waits in memory stays bounded, another tenant
// is planned ahead as ever, and afterwards every fire time has its one row and
// was sent out once.
func TestOverloadWaitsInTheDatabase(t *testing.T) {
	const jobs, fires, limit = 30, 60, 50
	synctest.Test(t, func(t *testing.T) {
		o := gormstore.Options{
			Driver: "sqlite", DSN: gormtest.SQLite(t),
			NewID: storetest.NewID, Logger: slog.New(slog.DiscardHandler),
		}
		s, err := gormstore.Open(t.Context(), o)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		loud, quiet := storetest.NewWorld(t, s), storetest.NewWorld(t, s)
		start := time.Now().Truncate(time.Second).Add(10 * time.Second).UTC()
		var partitions []int
		add := func(w *storetest.World, n, every int) {
			for range n {
				job := w.JobFiring(start, func(s *domain.JobSpec) {
					s.Schedule = domain.ScheduleSpec{
						Kind: domain.ScheduleFixedRate, Every: time.Duration(every) * time.Second, Anchor: start,
						EndAt: start.Add(fires * time.Second),
					}
					s.Misfire = domain.Misfire{Policy: "all", Threshold: time.Hour}
				})
				partitions = append(partitions, job.Partition)
			}
		}
		add(loud, jobs, 1)
		add(quiet, 1, 5)

		out := &sender{each: 100 * time.Millisecond, sent: map[domain.ExecutionID]int{}, peaks: map[domain.TenantID]int{}, late: map[domain.TenantID]time.Duration{}}
		timer := NewTimer(new(runtable.Table), time.Now, 0, out.take)
		schedules, err := timing.NewCache(100)
		require.NoError(t, err)
		var log bytes.Buffer
		held := &switched{Store: s, boot: "one"}
		planner := NewPlanner(PlannerOptions{
			Store: held, Held: func() []domain.PartitionTerm { return held.hold(t, partitions) }, NewID: storetest.NewID,
			Plan: schedules.Plan, Out: func(e []domain.Execution) { timer.Add(e...) }, Logger: slog.New(slog.NewTextHandler(&log, nil)),
			Load: func() runtable.Load { return out.load(timer) }, MaxWaiting: limit,
		})
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for _, run := range []func(context.Context){planner.Run, timer.Run, out.run} {
			wg.Go(func() { run(ctx) })
		}
		time.Sleep(time.Until(start.Add(30 * time.Second)))
		require.True(t, planner.HeldBack())
		require.Positive(t, planner.Lag(), "it shows as planned lateness")
		time.Sleep(4 * time.Minute)
		require.False(t, planner.HeldBack())
		require.Zero(t, planner.Lag())
		cancel()
		wg.Wait()

		require.LessOrEqual(t, out.peaks[loud.Tenant], limit+jobs, "the bound, and one claim")
		require.Greater(t, out.late[loud.Tenant], 30*time.Second, "it was an overload")
		require.Zero(t, out.late[quiet.Tenant], "the other tenant was planned ahead of time")
		rows := 0
		for _, w := range []*storetest.World{loud, quiet} {
			for _, r := range runsOf(t, s, w.Tenant) {
				rows++
				require.Equal(t, domain.Due, r.State, "no fire time was skipped")
				require.Equal(t, 1, out.sent[r.ID], "run of %s", r.FireAt)
			}
		}
		require.Equal(t, jobs*(fires+1)+fires/5+1, rows, "each fire time has its row")
		require.Len(t, out.sent, rows)
		require.Equal(t, 1, strings.Count(log.String(), "planning is held back:"), "told once: %s", log.String())
		require.Equal(t, 1, strings.Count(log.String(), "not held back any more"))
	})
}

// runsOf reads all runs of a tenant.
func runsOf(t *testing.T, s *gormstore.Store, tenant domain.TenantID) (all []domain.Execution) {
	p := store.ListExecutionsParams{Tenant: tenant, Limit: 200}
	for {
		page, err := s.ListExecutions(context.WithoutCancel(t.Context()), p)
		require.NoError(t, err)
		for _, r := range page {
			all = append(all, r.Execution)
		}
		if len(page) < p.Limit {
			return all
		}
		p.Before = page[len(page)-1].ID
	}
}
