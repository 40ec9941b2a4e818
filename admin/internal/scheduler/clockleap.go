package scheduler

import "time"

const (
	// MaxJump is how far the database's clock may leap ahead of the time that
	// has passed here without being doubted, beyond what the way of the samples
	// leaves open: runs start earlier by as much. Most nodes' own clocks have to
	// be as close to it to agree with it.
	MaxJump = time.Second
	// holdAtLeast gives everybody whose lease the leap has ended the time to
	// renew it, before anybody is declared dead.
	holdAtLeast = 10 * time.Second
)

// Hold says that the database's clock leapt, and where this one stands since.
type Hold struct {
	At   time.Time
	Jump time.Duration
}

// holding is a hold with its beginning on the local clock.
type holding struct {
	Hold
	since time.Duration
}

// Held returns the hold, if there is one.
func (c *Clock) Held() (Hold, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held == nil {
		return Hold{}, false
	}
	return c.held.Hold, true
}

// Latest is the latest time that is trusted of the database's clock: what it
// decides beyond that is refused, also in the moment before the leap is noticed.
func (c *Clock) Latest() time.Time { return c.Now().Add(MaxJump + time.Duration(c.open.Load())) }

// judge takes a sample of the running clock. A leap forward makes it stand;
// it goes on when the database is back where it was expected, or confirmed. A
// further leap, either way, is told as the hold was: who starts now counts on it.
func (c *Clock) judge(now time.Time, local, took time.Duration) {
	c.mu.Lock()
	expected := time.Unix(0, c.offset.Load()+int64(local)).UTC()
	leap := now.Sub(expected)
	was := c.held
	switch {
	case leap <= MaxJump+time.Duration(c.open.Load()):
		c.learnLocked(now, local, took)
		c.goOnLocked()
	case was == nil:
		c.held = &holding{Hold{At: expected, Jump: leap}, local}
		c.stands.Store(expected.UnixNano())
	case local-was.since >= holdAtLeast && c.opt.Confirmed(now, was.Hold):
		c.filled, c.next = 0, 0
		c.learnLocked(now, local, took)
		c.goOnLocked()
	case (leap - was.Jump).Abs() > MaxJump:
		c.held = &holding{Hold{At: was.At, Jump: leap}, local}
	}
	is := c.held
	c.mu.Unlock()
	switch {
	case is != nil && is != was:
		c.opt.Changed(is.Hold, true)
	case was != nil && is == nil:
		c.opt.Changed(was.Hold, false)
	}
}

func (c *Clock) goOnLocked() {
	c.held = nil
	c.stands.Store(0)
}
