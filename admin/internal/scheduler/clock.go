package scheduler

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/store"
)

// Clock follows the database's clock from the local monotonic one.
//
// Each sample compares the database's time with the local time at which the
// answer had arrived, so it can only be behind the truth, by at most one round
// trip. The best (greatest) difference of the recent samples is used: the clock
// is never ahead of the database, hence nothing fires early, and it is late by
// about the quickest round trip. Safe for concurrent use.
type Clock struct {
	source store.Cluster
	base   time.Time    // local, with monotonic reading
	offset atomic.Int64 // nanoseconds to add to the time since base, as Unix nanoseconds

	mu      sync.Mutex
	samples [clockSamples]int64 // guarded by mu
	next    int                 // guarded by mu
	filled  int                 // guarded by mu
}

const (
	clockSamples = 30
	clockEvery   = time.Second
)

// NewClock returns a clock that has taken its first samples.
func NewClock(ctx context.Context, source store.Cluster) (*Clock, error) {
	c := &Clock{source: source, base: time.Now()}
	for range 3 {
		if err := c.sample(ctx); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// Now returns the database's time as far as it is known here.
func (c *Clock) Now() time.Time {
	return time.Unix(0, c.offset.Load()+int64(time.Since(c.base))).UTC()
}

// Run keeps the clock in step until ctx ends.
func (c *Clock) Run(ctx context.Context) {
	tick := time.NewTicker(clockEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			// A missed sample does no harm: the local clock drifts by
			// microseconds in a second.
			_ = c.sample(ctx)
		}
	}
}

func (c *Clock) sample(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	now, err := c.source.Now(ctx)
	if err != nil {
		return err
	}
	c.learn(now, time.Since(c.base))
	return nil
}

// learn takes one sample: the database said now, and local had passed since
// base when the answer was here.
func (c *Clock) learn(now time.Time, local time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.samples[c.next] = now.UnixNano() - int64(local)
	c.next = (c.next + 1) % clockSamples
	c.filled = min(c.filled+1, clockSamples)
	best := c.samples[0]
	for _, s := range c.samples[1:c.filled] {
		best = max(best, s)
	}
	c.offset.Store(best)
}
