package scheduler

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Clock follows the database's clock from the local monotonic one.
//
// Each sample compares the database's time with the local time at which the
// answer had arrived, so it can only be behind the truth, by at most one round
// trip. The best (greatest) difference of the recent samples is used: the clock
// is never ahead of the database, hence nothing fires early, and it is late by
// about the quickest round trip.
//
// A database clock that leaps forward is not followed: then the clock stands
// still until it is clear who is right (clockleap.go). So it takes no samples of
// statements that decide (docs/adr/0067). Safe for concurrent use.
type Clock struct {
	opt    ClockOptions
	offset atomic.Int64 // nanoseconds to add to the elapsed time, as Unix nanoseconds

	// open is how far the database may be ahead of it all the same: what the best
	// sample took.
	open atomic.Int64

	mu      sync.Mutex
	samples [clockSamples]sample // guarded by mu
	next    int                  // guarded by mu
	filled  int                  // guarded by mu
	held    *holding             // guarded by mu; nil while the database is trusted
	// stands is the instant at which a held clock stands, 0 while it goes.
	stands atomic.Int64
}

// sample is what one answer of the database told.
type sample struct {
	offset int64 // see Clock.offset; at most took below the truth
	took   time.Duration
}

// ClockOptions configures a Clock.
type ClockOptions struct {
	// Source tells the database's time.
	Source interface {
		Now(ctx context.Context) (time.Time, error)
	}
	// Doubt is how far the database's clock was ahead of what was trusted
	// when the nodes were last asked and did not trust it; 0 = they did.
	Doubt time.Duration
	// HeldAt is the last time that they trusted; zero = nobody has said. This
	// clock goes on from there, however far the database's has leapt while no
	// node was there to see it: it may be late until somebody confirms the
	// time, but not early.
	HeldAt time.Time
	// Confirmed says whether the database's clock, which says now, is right
	// though it leapt: most nodes' own clocks agree with it, or an operator
	// does. nil: never.
	Confirmed func(now time.Time, h Hold) bool
	// Changed is told of each hold and of its end; may be nil.
	Changed func(h Hold, held bool)
	// Elapsed is the time that has passed on this node since any fixed
	// instant, monotonic; nil: since the construction.
	Elapsed func() time.Duration
}

const (
	clockSamples = 30
	// ClockEvery is the pace of samples.
	ClockEvery = time.Second
)

// NewClock returns a clock that has taken its first samples.
func NewClock(ctx context.Context, opt ClockOptions) (*Clock, error) {
	if opt.Confirmed == nil {
		opt.Confirmed = func(time.Time, Hold) bool { return false }
	}
	if opt.Changed == nil {
		opt.Changed = func(Hold, bool) {}
	}
	if opt.Elapsed == nil {
		base := time.Now() // with monotonic reading
		opt.Elapsed = func() time.Duration { return time.Since(base) }
	}
	c := &Clock{opt: opt}
	doubt := opt.Doubt
	for i := range 3 {
		now, local, took, err := c.ask(ctx)
		if err != nil {
			return nil, err
		}
		if i == 0 && doubt != 0 && !opt.HeldAt.IsZero() {
			doubt = max(now.Sub(opt.HeldAt), 0)
		}
		c.mu.Lock()
		c.learnLocked(now.Add(-doubt), local, took)
		c.mu.Unlock()
	}
	return c, nil
}

// Now returns the database's time as far as it is known and trusted here.
func (c *Clock) Now() time.Time {
	if at := c.stands.Load(); at != 0 {
		return time.Unix(0, at).UTC()
	}
	return time.Unix(0, c.offset.Load()+int64(c.opt.Elapsed())).UTC()
}

// Run keeps the clock in step until ctx ends.
func (c *Clock) Run(ctx context.Context) {
	tick := time.NewTicker(ClockEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			c.Sample(ctx)
		}
	}
}

// Sample is one round of Run. A missed one does no harm: the local clock drifts
// by microseconds in a second.
func (c *Clock) Sample(ctx context.Context) {
	if now, local, took, err := c.ask(ctx); err == nil {
		c.judge(now, local, took)
	}
}

// ask returns the database's time, the local one when the answer was here, and
// what it took.
func (c *Clock) ask(ctx context.Context) (now time.Time, local, took time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	began := c.opt.Elapsed()
	now, err = c.opt.Source.Now(ctx)
	local = c.opt.Elapsed()
	return now, local, local - began, err
}

// learnLocked takes one sample: the database said now, and local had passed
// when the answer was here, which took so long.
func (c *Clock) learnLocked(now time.Time, local, took time.Duration) {
	c.samples[c.next] = sample{now.UnixNano() - int64(local), took}
	c.next = (c.next + 1) % clockSamples
	c.filled = min(c.filled+1, clockSamples)
	best := c.samples[0]
	for _, s := range c.samples[1:c.filled] {
		if s.offset > best.offset {
			best = s
		}
	}
	c.open.Store(int64(best.took))
	c.offset.Store(best.offset)
}
