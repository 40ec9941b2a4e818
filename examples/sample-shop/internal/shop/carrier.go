package shop

import (
	"fmt"
	"sync"

	executor "github.com/carillon-sched/carillon/executor-sdk"
)

// Carrier is the other company's system: it sells labels. It is safe for
// concurrent use.
type Carrier struct {
	mu     sync.Mutex
	fences map[string]int64 // guarded by mu: run → the newest attempt that asked
}

// BuyLabel sells one label per key, however often it is asked. It remembers the
// highest fence of each, so that an attempt which was given up, and does not
// know yet, buys nothing any more.
func (c *Carrier) BuyLabel(task executor.Task) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if task.Fence < c.fences[task.Key()] {
		return "", fmt.Errorf("attempt %d of run %s was given up", task.Fence, task.Key())
	}
	if c.fences == nil {
		c.fences = map[string]int64{}
	}
	c.fences[task.Key()] = task.Fence
	return "PX-" + task.Key(), nil
}
