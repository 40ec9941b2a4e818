package load

import (
	"math"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestMeter(t *testing.T) {
	var m Meter
	cpu, memory := m.Read()
	require.Zero(t, cpu, "nothing to compare with")
	require.Greater(t, memory, int64(1<<20))
	require.Greater(t, heapMemory(), int64(1<<20))

	spun := 0
	for end := time.Now().Add(minSpan + 50*time.Millisecond); time.Now().Before(end); {
		spun++
	}
	cpu, _ = m.Read()
	require.Greater(t, cpu, int32(50), "a busy loop of %d rounds", spun)
	again, _ := m.Read()
	require.Equal(t, cpu, again, "too soon to measure again")
}

func TestLimits(t *testing.T) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(-1))
	debug.SetMemoryLimit(math.MaxInt64)
	cpu, memory := Limits()
	require.Equal(t, int32(runtime.GOMAXPROCS(0))*1000, cpu)
	require.Zero(t, memory, "none is set")
	debug.SetMemoryLimit(8 << 30)
	_, memory = Limits()
	require.Equal(t, int64(8<<30), memory)
}
