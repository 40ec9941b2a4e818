package gateway

import (
	"math/rand/v2"
	"sync"
	"time"
)

// When a node comes back, all of its executors do. Those who cannot be let in
// at once are told when to come again, each at a moment of its own, in a window
// that grows while too many come: then they cost little, and no place stays empty.
const (
	// crowdPace is how many are asked to come again in a second, about.
	crowdPace = 400
	crowdMin  = time.Second
	crowdMax  = 15 * time.Second
)

// crowd says when to come again. The zero value is ready. It is safe for
// concurrent use.
type crowd struct {
	mu     sync.Mutex
	window time.Duration // guarded by mu
	since  time.Time     // guarded by mu: when asked was 0
	asked  int           // guarded by mu
}

// again returns the pause for one more, random in full beyond a tenth.
func (c *crowd) again(now time.Time, random float64) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if passed := now.Sub(c.since); passed >= time.Second {
		if passed > crowdMax {
			c.window = 0
		}
		switch rate := float64(c.asked) / passed.Seconds(); {
		case rate > crowdPace:
			c.window = c.window * 3 / 2
		case rate < crowdPace/2:
			c.window = c.window * 2 / 3
		}
		c.since, c.asked = now, 0
	}
	c.window = min(max(c.window, crowdMin), crowdMax)
	c.asked++ // within the second already, if there are many
	c.window = min(max(c.window, time.Duration(c.asked)*time.Second/crowdPace), crowdMax)
	return c.window/10 + time.Duration(random*float64(c.window))
}

// comeAgain is the answer to one of a crowd, in milliseconds.
func (g *Gateway) comeAgain() int64 { return g.crowd.again(time.Now(), rand.Float64()).Milliseconds() }
