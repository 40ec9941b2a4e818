package db

import (
	"context"
	"sync"
	"time"

	"gorm.io/gorm"
)

// maxStaleness is how far behind the database's clock a decision may lie when
// its statement is executed: the node may have been frozen in between.
const maxStaleness = time.Second

// estimateError is how far the estimate may be behind: a trip, the milliseconds
// that the database counts in, and what clocks drift apart in maxSampleAge.
const estimateError = 5 * time.Millisecond

// ClockEstimate follows the database's clock between the statements that read it.
// Each sample is taken when the answer is here, so it can only be behind; the
// best of the recent ones is used. It is never trusted: every statement that
// relies on it demands that it is right (Dialect.Fresh). So it follows a leap at
// once, which scheduler.Clock must not (docs/adr/0067).
type ClockEstimate struct {
	base time.Time // local, with monotonic reading; fixed after construction

	mu      sync.Mutex
	samples [8]sample // guarded by mu: a ring
	next    int       // guarded by mu
}

// sample says that the database's clock minus the time since base was offset,
// in milliseconds, at the instant at.
type sample struct {
	offset float64
	at     time.Duration
}

// maxSampleAge is how long a sample is used: clocks drift apart by less than
// a millisecond in that time.
const maxSampleAge = 5 * time.Second

// NewClockEstimate knows nothing yet.
func NewClockEstimate() *ClockEstimate { return &ClockEstimate{base: time.Now()} }

// Learn takes the database's time, in Unix milliseconds, from an answer that
// has just arrived.
func (c *ClockEstimate) Learn(ms int64) {
	since := time.Since(c.base)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.samples[c.next] = sample{float64(ms) - float64(since)/float64(time.Millisecond), max(since, 1)}
	c.next = (c.next + 1) % len(c.samples)
}

// Forget drops all samples: the clock was set back, or does not tell.
func (c *ClockEstimate) Forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.samples = [8]sample{}
}

// now returns the database's time in Unix milliseconds; ok is false when no
// sample is young enough.
func (c *ClockEstimate) now() (ms int64, ok bool) {
	since := time.Since(c.base)
	c.mu.Lock()
	defer c.mu.Unlock()
	best := 0.0
	for _, s := range c.samples {
		if s.at > 0 && since-s.at < maxSampleAge && (!ok || s.offset > best) {
			best, ok = s.offset, true
		}
	}
	return int64(best + float64(since)/float64(time.Millisecond)), ok
}

func (s *DB) Now(ctx context.Context) (now time.Time, err error) {
	err = s.Look(ctx, "read database clock", func(ctx context.Context, _ Querier, _ *gorm.DB) error {
		var ms int64
		err := s.Read.QueryRowContext(ctx, "SELECT "+s.Dialect.Clock()).Scan(&ms)
		if err == nil {
			s.Clock.Learn(ms)
		}
		now = Instant(ms)
		return err
	})
	return now, err
}
