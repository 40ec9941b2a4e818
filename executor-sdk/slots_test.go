package executor

import (
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDefaultSlots(t *testing.T) {
	for cores, want := range map[int][2]int{1: {512, 32}, 2: {512, 32}, 64: {2048, 256}, 256: {4096, 1024}} {
		slots, busy := defaultSlots(cores)
		require.Equal(t, want, [2]int{slots, busy}, "%d cores", cores)
	}
}

// With default settings, handlers that compute get fewer slots than those that
// wait, and the figure does not swing at one bound.
func TestSlotsFollowTheCPU(t *testing.T) {
	p := &process{config: Config{Slots: 256, busySlots: 32}, logger: slog.New(slog.DiscardHandler)}
	for _, step := range []struct {
		cpu  int32
		want int
	}{{0, 256}, {1799, 256}, {1800, 32}, {1500, 32}, {1399, 256}, {1500, 256}, {2100, 32}} {
		require.Equal(t, step.want, p.slotsAt(step.cpu, 2000), "CPU %d", step.cpu)
	}
	require.Equal(t, 256, p.slotsAt(2000, 0), "a system that does not tell")
	p.config.busySlots = 0
	require.Equal(t, 256, p.slotsAt(2000, 2000), "what its owner has set stays")
}
