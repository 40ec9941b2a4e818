// Package load answers one question: how much of the machine does this
// process use?
package load

import (
	"math"
	"runtime"
	"runtime/debug"
	"sync"
	"time"
)

// Meter measures between two calls. The zero value is ready; it may be used
// from many goroutines.
type Meter struct {
	mu      sync.Mutex // guards what follows
	at      time.Time
	used    time.Duration
	cpu     int32
	started bool
}

// minSpan is the least time between two measurements of the CPU; callers in
// between get the last figure.
const minSpan = 500 * time.Millisecond

// Read returns the CPU used since the last measurement, in thousandths of one
// core (0 where the system does not tell), and the resident memory in bytes.
func (m *Meter) Read() (cpuMilli int32, memory int64) {
	now, used := time.Now(), cpuTime()
	m.mu.Lock()
	defer m.mu.Unlock()
	if span := now.Sub(m.at); !m.started || span >= minSpan {
		if m.started {
			m.cpu = int32((used - m.used) * 1000 / span)
		}
		m.at, m.used, m.started = now, used, true
	}
	return m.cpu, residentMemory()
}

// Limits returns what the process may use: the cores that Go runs on, in
// thousandths, and the memory limit that was set for Go (GOMEMLIMIT), 0 = none.
func Limits() (cpuMilli int32, memory int64) {
	if memory = debug.SetMemoryLimit(-1); memory == math.MaxInt64 {
		memory = 0
	}
	return int32(runtime.GOMAXPROCS(0)) * 1000, memory
}

// heapMemory is what Go took from the system, for systems that tell no more.
func heapMemory() int64 {
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return int64(s.Sys - s.HeapReleased)
}
