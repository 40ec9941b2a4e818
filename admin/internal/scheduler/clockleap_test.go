package scheduler

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/runtable"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// steered is a database whose clock can be set.
type steered struct {
	store.Nodes
	mu    sync.Mutex
	ahead time.Duration
	back  time.Duration // what an answer is on its way
}

func (s *steered) Now(context.Context) (time.Time, error) {
	s.mu.Lock()
	now, back := time.Now().Add(s.ahead).UTC(), s.back
	s.mu.Unlock()
	time.Sleep(back)
	return now, nil
}

func (s *steered) set(ahead time.Duration) { s.mu.Lock(); s.ahead = ahead; s.mu.Unlock() }

// clockRig is a running clock on a steered database.
type clockRig struct {
	db    *steered
	clock *Clock
	mu    sync.Mutex
	right bool   // what Confirmed says
	told  []bool // what Changed was told
}

func withClock(t *testing.T, doubt time.Duration, test func(r *clockRig)) {
	synctest.Test(t, func(t *testing.T) {
		r := &clockRig{db: &steered{ahead: doubt}}
		var err error
		r.clock, err = NewClock(t.Context(), ClockOptions{
			Source: r.db, Doubt: doubt,
			Confirmed: func(time.Time, Hold) bool { r.mu.Lock(); defer r.mu.Unlock(); return r.right },
			Changed:   func(_ Hold, held bool) { r.mu.Lock(); defer r.mu.Unlock(); r.told = append(r.told, held) },
		})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); r.clock.Run(ctx) }()
		defer func() { cancel(); <-done }()
		test(r)
	})
}

func (r *clockRig) after(d time.Duration) { time.Sleep(d); synctest.Wait() }

// error is how far the clock is ahead of the true time.
func (r *clockRig) error() time.Duration { return time.Until(r.clock.Now()) }

func TestALeapForwardHoldsTheClock(t *testing.T) {
	withClock(t, 0, func(r *clockRig) {
		r.after(time.Minute)
		require.Zero(t, r.error())
		r.db.set(MaxJump)
		r.after(2 * ClockEvery)
		require.Equal(t, MaxJump, r.error(), "what is below the threshold is followed")
		_, held := r.clock.Held()
		require.False(t, held)

		r.db.set(5 * time.Minute)
		require.Equal(t, 2*MaxJump, time.Until(r.clock.Latest()), "and before it is noticed, what lies beyond is refused")
		r.after(ClockEvery)
		h, held := r.clock.Held()
		require.True(t, held)
		require.Equal(t, 5*time.Minute-MaxJump, h.Jump)
		stands := r.clock.Now()
		require.False(t, stands.After(time.Now().Add(MaxJump)))
		r.after(time.Hour)
		require.Equal(t, stands, r.clock.Now(), "it stands while nobody confirms")
		require.Equal(t, []bool{true}, r.told)

		r.mu.Lock()
		r.right = true
		r.mu.Unlock()
		r.after(ClockEvery)
		require.Equal(t, 5*time.Minute, r.error())
		require.Equal(t, []bool{true, false}, r.told)
		r.after(time.Hour)
		require.Equal(t, 5*time.Minute, r.error(), "the new time is the known one")
	})
}

// TestASlowDatabaseIsNoLeap: answers that were on their way for long when the
// node started say less of the time than later ones.
func TestASlowDatabaseIsNoLeap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := &steered{back: 1900 * time.Millisecond}
		c, err := NewClock(t.Context(), ClockOptions{Source: db})
		require.NoError(t, err)
		db.back = 0
		require.False(t, time.Now().Add(MaxJump).After(c.Latest()), "what is true is believed meanwhile")
		c.Sample(t.Context())
		_, held := c.Held()
		require.False(t, held)
		require.Equal(t, time.Now().UTC(), c.Now())
		require.Equal(t, MaxJump, time.Until(c.Latest()))
		db.ahead = 3 * time.Second
		c.Sample(t.Context())
		_, held = c.Held()
		require.True(t, held, "3 s early is too early")
	})
}

func TestAConfirmedLeapIsHeldForAWhile(t *testing.T) {
	withClock(t, 0, func(r *clockRig) {
		r.right = true
		r.db.set(time.Hour)
		r.after(holdAtLeast)
		_, held := r.clock.Held()
		require.True(t, held, "everybody has to renew first")
		r.after(2 * ClockEvery)
		require.Equal(t, time.Hour, r.error())
	})
}

// TestAFurtherLeapIsToldToo: a node that starts now is given the whole of it.
func TestAFurtherLeapIsToldToo(t *testing.T) {
	withClock(t, 0, func(r *clockRig) {
		r.db.set(time.Minute)
		r.after(2 * ClockEvery)
		first, _ := r.clock.Held()
		r.db.set(time.Hour)
		r.after(2 * ClockEvery)
		second, held := r.clock.Held()
		require.True(t, held)
		require.Equal(t, first.At, second.At, "it stands where it stood")
		require.Equal(t, time.Hour, second.Jump.Round(time.Minute))
		require.Equal(t, []bool{true, true}, r.told)
	})
}

func TestALeapThatIsTakenBackIsForgotten(t *testing.T) {
	withClock(t, 0, func(r *clockRig) {
		r.db.set(24 * time.Hour)
		r.after(20 * time.Second)
		_, held := r.clock.Held()
		require.True(t, held)
		r.db.set(0)
		r.after(ClockEvery)
		_, held = r.clock.Held()
		require.False(t, held)
		require.Zero(t, r.error())
	})
}

func TestAClockThatWasDoubtedIsDoubtedAfterARestart(t *testing.T) {
	withClock(t, time.Hour, func(r *clockRig) {
		require.Zero(t, r.error())
		r.after(2 * ClockEvery)
		_, held := r.clock.Held()
		require.True(t, held)
		require.LessOrEqual(t, r.error(), time.Duration(0))
	})
}

// TestALeapThatNobodySawIsDoubtedToo: it leapt further while no node was there.
func TestALeapThatNobodySawIsDoubtedToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		right := false
		believed := time.Now()
		time.Sleep(time.Minute)
		db := &steered{ahead: 2 * time.Hour}
		clock, err := NewClock(t.Context(), ClockOptions{
			Source: db, Doubt: time.Hour, HeldAt: believed, Confirmed: func(time.Time, Hold) bool { return right },
		})
		require.NoError(t, err)
		require.Equal(t, believed.UTC(), clock.Now())
		clock.Sample(t.Context())
		h, held := clock.Held()
		require.True(t, held)
		require.Equal(t, 2*time.Hour+time.Minute, h.Jump)
		db.set(0)
		clock.Sample(t.Context())
		time.Sleep(holdAtLeast)
		clock.Sample(t.Context())
		require.Equal(t, believed.UTC(), clock.Now(), "nobody says that this is the time")
		right = true
		clock.Sample(t.Context())
		require.Equal(t, time.Now().UTC(), clock.Now())
	})
}

// TestAClockBehindWhatWasBelievedIsFollowed: nothing is early by it.
func TestAClockBehindWhatWasBelievedIsFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock, err := NewClock(t.Context(), ClockOptions{Source: &steered{ahead: -time.Hour}, Doubt: time.Hour, HeldAt: time.Now()})
		require.NoError(t, err)
		clock.Sample(t.Context())
		_, held := clock.Held()
		require.False(t, held)
		require.Equal(t, time.Now().Add(-time.Hour).UTC(), clock.Now())
	})
}

func TestAClockSetBackIsFollowedLater(t *testing.T) {
	withClock(t, 0, func(r *clockRig) {
		r.db.set(-5 * time.Minute)
		r.after(clockSamples * ClockEvery / 2)
		require.Zero(t, r.error())
		r.after(clockSamples * ClockEvery)
		require.Equal(t, -5*time.Minute, r.error())
	})
}

// TestTheTimerStandsWithTheClock: nothing fires before its true time.
func TestTheTimerStandsWithTheClock(t *testing.T) {
	withClock(t, 0, func(r *clockRig) {
		var mu sync.Mutex
		var fired []time.Time
		timer := NewTimer(new(runtable.Table), r.clock.Now, 0, func([]*domain.Execution) {
			mu.Lock()
			defer mu.Unlock()
			fired = append(fired, time.Now())
		})
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() { defer close(done); timer.Run(ctx) }()
		defer func() { cancel(); <-done }()
		at := time.Now().Add(time.Minute)
		timer.Add(domain.Execution{ID: 1, NotBefore: at})
		r.db.set(time.Hour)
		r.after(50 * time.Second)
		require.Empty(t, fired)
		r.db.set(0)
		r.after(20 * time.Second)
		require.Len(t, fired, 1)
		require.False(t, fired[0].Before(at))
	})
}
