package scheduler

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
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

// These are tests of docs/dev/timer-faults.md: planner and timer of a node on a
// real database, in virtual time.

// clockwork is a database with jobs and timers of one tenant, and what its nodes
// have fired.
type clockwork struct {
	t     *testing.T
	s     *gormstore.Store
	w     *storetest.World
	asked atomic.Int64 // claims of timers
	// partitions that nodes want; nil: all.
	partitions []int

	mu    sync.Mutex
	fired []firedRun // guarded by mu
}

type firedRun struct {
	domain.Execution
	at time.Time
}

// inClockwork runs f in a bubble of virtual time.
func inClockwork(t *testing.T, f func(c *clockwork)) {
	synctest.Test(t, func(t *testing.T) {
		s, err := gormstore.Open(t.Context(), gormstore.Options{
			Driver: "sqlite", DSN: gormtest.SQLite(t), NewID: storetest.NewID, Logger: slog.New(slog.DiscardHandler),
		})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		f(&clockwork{t: t, s: s, w: storetest.NewWorld(t, s)})
	})
}

// setTimers sets a timer for each instant, in no order; those that are overdue in
// two partitions.
func (c *clockwork) setTimers(at []time.Time) {
	c.t.Helper()
	view, err := c.s.CreateJob(c.t.Context(), domain.Job{
		ID: domain.JobID(storetest.NewID()), TenantID: c.w.Tenant, Executor: c.w.Executor, State: domain.JobEnabled, Kind: domain.JobTimer, Source: domain.SourceConsole,
		Spec: domain.JobSpec{Name: "timer:shop/cancel-order", Handler: "cancel-order", Blocking: domain.BlockParallel, Schedule: domain.ScheduleSpec{Kind: domain.ScheduleNone}},
	}, func(time.Time, *domain.JobSpec) time.Time { return domain.Never })
	require.NoError(c.t, err)
	p := store.SetTimersParams{Held: []int{5, 9}}
	for i, n := range rand.New(rand.NewPCG(1, 2)).Perm(len(at)) {
		p.Timers = append(p.Timers, store.SetTimer{Timer: domain.Timer{
			ID: domain.TimerID(storetest.NewID()), TenantID: c.w.Tenant, JobID: view.ID, FireAt: at[n], Key: fmt.Sprint("order ", i),
		}})
	}
	for _, r := range c.s.SetTimers(c.t.Context(), p) {
		require.NoError(c.t, r.Err)
	}
}

// counted counts claims of timers.
type counted struct {
	*switched
	asked *atomic.Int64
}

func (s counted) ClaimDueTimers(ctx context.Context, p store.ClaimDueTimersParams) (store.ClaimedTimers, error) {
	s.asked.Add(1)
	if s.down.Load() {
		return store.ClaimedTimers{}, domain.Errorf(domain.CodeUnavailable, "the database is down")
	}
	return s.Store.ClaimDueTimers(ctx, p)
}

// node starts planner and timer of a node. stop ends it with all that it has in
// memory. change may bound what it takes into memory.
func (c *clockwork) node(boot string, change func(*PlannerOptions)) (stop func(), link *switched) {
	c.t.Helper()
	schedules, err := timing.NewCache(100)
	require.NoError(c.t, err)
	partitions := c.partitions
	for i := 0; c.partitions == nil && i < domain.Partitions; i++ {
		partitions = append(partitions, i)
	}
	link = &switched{Store: c.s, boot: boot}
	timer := NewTimer(new(runtable.Table), time.Now, 0, func(due []*domain.Execution) {
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, e := range due {
			c.fired = append(c.fired, firedRun{*e, time.Now()})
		}
	})
	o := PlannerOptions{
		Store: link, Timers: counted{link, &c.asked}, Held: func() []domain.PartitionTerm { return link.hold(c.t, partitions) }, NewID: storetest.NewID, Plan: schedules.Plan,
		Out: func(e []domain.Execution) { timer.Add(e...) }, Logger: slog.New(slog.DiscardHandler),
	}
	if change != nil {
		change(&o)
	}
	planner := NewPlanner(o)
	ctx, cancel := context.WithCancel(c.t.Context())
	var both sync.WaitGroup
	both.Go(func() { planner.Run(ctx) })
	both.Go(func() { timer.Run(ctx) })
	return func() { cancel(); both.Wait() }, link
}

// each wants every instant fired once and not before its time, and returns how late
// the latest was.
func (c *clockwork) each(want []time.Time) (latest time.Duration) {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	left := map[int64]int{}
	for _, at := range want {
		left[at.UnixMilli()]++
	}
	for _, r := range c.fired {
		left[r.FireAt.UnixMilli()]--
		late := r.at.Sub(r.FireAt)
		require.GreaterOrEqual(c.t, late, time.Duration(0), "%s is early", r.FireAt)
		latest = max(latest, late)
	}
	for at, n := range left {
		require.Zero(c.t, n, "%s: so many are missing", time.UnixMilli(at).UTC())
	}
	return latest
}

func instants(n int, from time.Time, within time.Duration) []time.Time {
	r := rand.New(rand.NewPCG(3, 4))
	out := make([]time.Time, n)
	for i := range out {
		out[i] = from.Add(time.Duration(r.Int64N(int64(within)))).Truncate(time.Millisecond).UTC()
	}
	return out
}

// Crons whose fire times fit no step of the planner, no minute and no hour: of each
// every fire time has its run, also of those that passed while no node was there,
// over the edge of an hour and for longer than a node looks ahead.
func TestUnalignedCronsLoseNothing(t *testing.T) {
	inClockwork(t, func(c *clockwork) {
		hour := time.Now().UTC().Truncate(time.Hour).Add(2 * time.Hour)
		start, end := hour.Add(-2*time.Minute), hour.Add(2*time.Minute)
		time.Sleep(time.Until(start.Add(-10 * time.Second)))
		matches := map[string]func(at time.Time) bool{
			"*/7 * * * * *":     func(at time.Time) bool { return at.Second()%7 == 0 },
			"3/11 * * * * *":    func(at time.Time) bool { return at.Second() >= 3 && (at.Second()-3)%11 == 0 },
			"59 1/3 * * * *":    func(at time.Time) bool { return at.Second() == 59 && at.Minute()%3 == 1 },
			"0,59 0,59 * * * *": func(at time.Time) bool { return at.Second()%59 == 0 && at.Minute()%59 == 0 },
		}
		want := map[domain.JobID][]time.Time{}
		for expr, match := range matches {
			var times []time.Time
			for at := start; !at.After(end); at = at.Add(time.Second) {
				if match(at) {
					times = append(times, at)
				}
			}
			require.NotEmpty(t, times, expr)
			job := c.w.JobFiring(times[0], func(s *domain.JobSpec) {
				s.Schedule = domain.ScheduleSpec{Kind: domain.ScheduleCron, Expr: expr, Dialect: "seconds", Zone: "UTC", EndAt: end}
				s.Misfire = domain.Misfire{Policy: domain.MisfireAll, Threshold: time.Hour}
			})
			want[job.ID] = times
			if !slices.Contains(c.partitions, job.Partition) {
				c.partitions = append(c.partitions, job.Partition)
			}
		}
		for _, life := range []struct {
			boot     string
			from, to time.Time
		}{
			{"one", start.Add(-10 * time.Second), hour.Add(-50 * time.Second)},
			{"two", hour.Add(-50 * time.Second), hour.Add(-40 * time.Second)}, // a restart in the midst of an hour
			{"three", hour.Add(30 * time.Second), end.Add(time.Second)},       // after an outage over its edge
		} {
			time.Sleep(time.Until(life.from))
			stop, _ := c.node(life.boot, nil)
			time.Sleep(time.Until(life.to))
			stop()
		}
		got := map[domain.JobID][]time.Time{}
		for _, r := range runsOf(t, c.s, c.w.Tenant) {
			require.Equal(t, domain.Due, r.State, "%s: %s", r.FireAt, r.Message)
			got[r.JobID] = append(got[r.JobID], r.FireAt)
		}
		for job, times := range got {
			slices.SortFunc(times, time.Time.Compare)
			require.Equal(t, want[job], times)
		}
		require.Len(t, got, len(want))
	})
}

// Timers of two nodes, of which first one and then both cannot reach the database
// for a moment: each fires once, in the millisecond of its instant.
func TestTimersFireOnceToTheMillisecond(t *testing.T) {
	inClockwork(t, func(c *clockwork) {
		start := time.Now().UTC().Add(10 * time.Second)
		want := instants(300, start, 20*time.Second)
		c.setTimers(want)
		var stops []func()
		var links []*switched
		for _, boot := range []string{"one", "two"} {
			stop, link := c.node(boot, nil)
			stops, links = append(stops, stop), append(links, link)
		}
		time.Sleep(time.Until(start.Add(5 * time.Second)))
		links[0].down.Store(true) // the other one takes its partitions over
		time.Sleep(5 * time.Second)
		links[1].down.Store(true)
		time.Sleep(LookAhead / 2)
		links[0].down.Store(false)
		links[1].down.Store(false)
		time.Sleep(time.Until(start.Add(21 * time.Second)))
		for _, stop := range stops {
			stop()
		}
		require.Less(t, c.each(want), time.Millisecond)
	})
}

// A node takes 3,000 timers over that came due in the two hours before: all fire at
// once, without a pause between the claims, the oldest claim first.
func TestOverdueTimersFireAtOnceInOrder(t *testing.T) {
	inClockwork(t, func(c *clockwork) {
		now := time.Now().UTC()
		want := instants(3000, now.Add(-2*time.Hour), 2*time.Hour)
		c.setTimers(want)
		stop, _ := c.node("successor", nil)
		time.Sleep(PollEvery / 2)
		stop()
		c.each(want)
		slices.SortFunc(want, time.Time.Compare)
		for i, r := range c.fired {
			require.Less(t, r.at.Sub(now), PollEvery/2, "at once")
			require.False(t, r.FireAt.After(want[min(i+claimLimit, len(want)-1)]), "run %d, of %s, before older ones", i, r.FireAt)
		}
	})
}

// What a node takes into memory is bounded, and so is how fast it launches: as fast
// as its runs go out. The others wait in the database, and lose nothing but time.
func TestOverdueTimersAreLaunchedAtABoundedRate(t *testing.T) {
	const limit, each = 600, 2 * time.Millisecond
	inClockwork(t, func(c *clockwork) {
		want := instants(3000, time.Now().UTC().Add(-2*time.Hour), 2*time.Hour)
		c.setTimers(want)
		began := time.Now()
		claimed, most := 0, 0 // owned by the planner's goroutine
		stop, _ := c.node("successor", func(o *PlannerOptions) {
			out := o.Out
			o.Out = func(e []domain.Execution) { claimed += len(e); out(e) }
			o.MaxWaiting = limit
			o.Load = func() runtable.Load {
				waiting := max(0, claimed-int(time.Since(began)/each)) // one goes out after the other
				most = max(most, waiting)
				return runtable.Load{Pending: map[domain.TenantID]int{c.w.Tenant: waiting}}
			}
		})
		time.Sleep(3000*each + time.Second)
		stop()
		c.each(want)
		require.LessOrEqual(t, most, limit+claimLimit, "the bound, and one claim")
		for i, r := range c.fired {
			require.LessOrEqual(t, i, limit+claimLimit+int(r.at.Sub(began)/each), "so many have been launched after %s", r.at.Sub(began))
		}
	})
}

// A node that has nothing to do asks for due timers twice a second, however many
// wait for later.
func TestAnIdleNodeAsksTwiceASecond(t *testing.T) {
	inClockwork(t, func(c *clockwork) {
		c.setTimers(instants(2000, time.Now().UTC().Add(time.Hour), time.Hour))
		stop, _ := c.node("idle", nil)
		time.Sleep(time.Minute)
		stop()
		require.Empty(t, c.fired)
		require.InDelta(t, time.Minute/PollEvery, c.asked.Load(), 2)
	})
}
