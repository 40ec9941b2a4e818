package scheduler

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/runtable"
)

type fired struct {
	id domain.ExecutionID
	at time.Time
}

// inTimer runs f with a running timer inside a bubble of virtual time.
func inTimer(t *testing.T, f func(timer *Timer, fires func() []fired)) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var got []fired
		timer := NewTimer(new(runtable.Table), time.Now, 0, func(due []*domain.Execution) {
			mu.Lock()
			defer mu.Unlock()
			for _, e := range due {
				got = append(got, fired{e.ID, time.Now()})
			}
		})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { timer.Run(ctx); close(done) }()
		f(timer, func() []fired { mu.Lock(); defer mu.Unlock(); return append([]fired(nil), got...) })
		cancel()
		<-done
	})
}

func run(id int64, at time.Time) domain.Execution {
	return domain.Execution{ID: domain.ExecutionID(id), NotBefore: at}
}

func TestTimerFiresAtTheInstantAndNeverEarly(t *testing.T) {
	inTimer(t, func(timer *Timer, fires func() []fired) {
		start := time.Now()
		timer.Add(run(1, start.Add(3*time.Second)), run(2, start.Add(1500*time.Millisecond)), run(3, start))
		synctest.Wait()
		require.Equal(t, []fired{{3, start}}, fires(), "a past instant fires at once")
		time.Sleep(5 * time.Second)
		require.Equal(t, []fired{
			{3, start}, {2, start.Add(1500 * time.Millisecond)}, {1, start.Add(3 * time.Second)},
		}, fires())
	})
}

func TestTimerWakesForAnEarlierOne(t *testing.T) {
	inTimer(t, func(timer *Timer, fires func() []fired) {
		start := time.Now()
		timer.Add(run(1, start.Add(time.Minute)))
		synctest.Wait()
		timer.Add(run(2, start.Add(100*time.Millisecond)))
		time.Sleep(101 * time.Millisecond)
		require.Equal(t, []fired{{2, start.Add(100 * time.Millisecond)}}, fires())
	})
}

func TestTimerHoldsAnExecutionOnce(t *testing.T) {
	inTimer(t, func(timer *Timer, fires func() []fired) {
		start := time.Now()
		timer.Add(run(1, start.Add(2*time.Second)))
		timer.Add(run(1, start.Add(2*time.Second))) // swept and planned
		timer.Add(run(1, start.Add(time.Second)))   // earlier: it moves
		timer.Add(run(1, start.Add(9*time.Second))) // later: the first copy decides
		time.Sleep(20 * time.Second)
		require.Equal(t, []fired{{1, start.Add(time.Second)}}, fires())
		timer.Add(run(1, start.Add(30*time.Second))) // a retry
		time.Sleep(20 * time.Second)
		require.Len(t, fires(), 2)
	})
}

func TestWhatTheTimerHoldsIsAttendedTo(t *testing.T) {
	inTimer(t, func(timer *Timer, _ func() []fired) {
		timer.Add(run(1, time.Now().Add(time.Second)), run(3, time.Now().Add(time.Minute)))
		unattended := func() []domain.ExecutionID {
			return timer.table.Unattended([]domain.ExecutionID{1, 2, 3, 4}, time.Now())
		}
		require.Equal(t, []domain.ExecutionID{2, 4}, unattended())
		shard := run(4, time.Now().Add(time.Minute))
		shard.Bound = 9
		timer.Add(shard)
		require.Equal(t, []domain.ExecutionID{2, 4}, unattended(), "its instance may go")
		time.Sleep(2 * time.Second)
		require.Equal(t, []domain.ExecutionID{1, 2, 4}, unattended())
	})
}

func TestClockIsNeverAheadOfTheDatabase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := time.Now()
		c := &Clock{opt: ClockOptions{Elapsed: func() time.Duration { return time.Since(base) }}}
		database := func() time.Time { return time.Now().Add(42 * time.Minute) } // far off
		for _, roundTrip := range []time.Duration{80, 3, 40, 9} {
			asked := database().Truncate(time.Millisecond)
			time.Sleep(roundTrip * time.Millisecond)
			c.learnLocked(asked, c.opt.Elapsed(), time.Since(asked))
			require.False(t, c.Now().After(database()))
		}
		behind := database().Sub(c.Now())
		require.LessOrEqual(t, behind, 4*time.Millisecond, "the quickest round trip counts")
		time.Sleep(time.Minute)
		require.Equal(t, behind, database().Sub(c.Now()))
	})
}

func TestClockFollowsADatabaseThatWasSetBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := time.Now()
		c := &Clock{opt: ClockOptions{Elapsed: func() time.Duration { return time.Since(base) }}}
		c.learnLocked(time.Now(), c.opt.Elapsed(), 0)
		for range clockSamples {
			time.Sleep(time.Second)
			c.learnLocked(time.Now().Add(-5*time.Minute), c.opt.Elapsed(), 0)
		}
		require.Equal(t, time.Now().Add(-5*time.Minute).UnixNano(), c.Now().UnixNano())
	})
}

// TestTimerFiresAheadByTheStep: what is offered ahead of its time leaves together,
// what has to wait for its time does not.
func TestTimerFiresAheadByTheStep(t *testing.T) {
	require.LessOrEqual(t, Lead+leadStep, domain.OfferAhead, "an offer that comes sooner is refused")
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		got := map[domain.ExecutionID]time.Duration{}
		timer := NewTimer(new(runtable.Table), time.Now, Lead, func(due []*domain.Execution) {
			mu.Lock()
			defer mu.Unlock()
			for _, e := range due {
				got[e.ID] = time.Until(e.NotBefore)
			}
		})
		ahead := func(id domain.ExecutionID) time.Duration {
			mu.Lock()
			defer mu.Unlock()
			return got[id]
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { timer.Run(ctx); close(done) }()
		due := time.Now().Add(time.Minute).Truncate(leadStep).Add(Lead)
		for i := range domain.ExecutionID(15) {
			timer.Add(domain.Execution{ID: 1 + i, NotBefore: due.Add(time.Duration(i) * time.Millisecond)})
		}
		punctual := domain.Execution{ID: 99, NotBefore: due}
		timer.AddOnTime(punctual)
		timer.Add(domain.Execution{ID: 100, NotBefore: time.Now().Add(Lead)})
		synctest.Wait()
		require.Equal(t, Lead, ahead(100), "at once")
		time.Sleep(time.Hour)
		synctest.Wait()
		for i := range domain.ExecutionID(15) {
			require.Equal(t, Lead+time.Duration(i)*time.Millisecond, ahead(1+i))
		}
		require.Zero(t, ahead(99))
		cancel()
		<-done
	})
}

// TestABurstIsHandedOverLast: what others have due at the same instant does not
// wait until thousands of one tenant's runs are taken.
func TestABurstIsHandedOverLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls [][]domain.TenantID
		timer := NewTimer(new(runtable.Table), time.Now, 0, func(due []*domain.Execution) {
			var of []domain.TenantID
			for _, e := range due {
				of = append(of, e.TenantID)
			}
			calls = append(calls, of)
		})
		at := time.Now().Add(time.Second)
		var id domain.ExecutionID
		add := func(at time.Time, tenants ...domain.TenantID) {
			for _, tenant := range tenants {
				id++
				timer.Add(domain.Execution{ID: id, TenantID: tenant, NotBefore: at})
			}
		}
		same := func(tenant domain.TenantID, n int) []domain.TenantID {
			return slices.Repeat([]domain.TenantID{tenant}, n)
		}
		add(at, same(1, 2*many)...)
		add(at, 2, 3)
		add(at, same(4, many)...)
		add(at, 2, 1)
		add(at.Add(time.Second), 1, 2, 1)
		add(at.Add(2*time.Second), same(1, 2*many)...)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { timer.Run(ctx); close(done) }()
		time.Sleep(10 * time.Second)
		cancel()
		<-done
		require.Equal(t, [][]domain.TenantID{
			{2, 3, 2}, same(1, 2*many+1), same(4, many),
			{1, 2, 1}, // few are taken together
			same(1, 2*many),
		}, calls)
	})
}
