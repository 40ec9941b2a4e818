package lease

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestLiving(t *testing.T) {
	w := newWorld()
	one, two, three := w.join(), w.join(), w.join()
	require.Empty(t, one.machine.Living(w.now), "it has not seen anything yet")
	w.calm(Grace + TTL)
	require.ElementsMatch(t, []string{one.boot, two.boot, three.boot}, one.machine.Living(w.now))

	w.kill(two)
	three.frozen = true
	w.calm(TTL - RenewEvery)
	require.ElementsMatch(t, []string{one.boot, two.boot, three.boot}, one.machine.Living(w.now), "their leases last")
	w.calm(RenewEvery + LookEvery)
	require.Equal(t, []string{one.boot}, one.machine.Living(w.now))

	// The frozen one awakes: it may say nothing before it has been seen, and
	// what it did before it froze may be another's by now.
	awake := w.now
	require.Empty(t, three.machine.Living(w.now))
	_, ok := three.machine.Shown(w.now)
	require.False(t, ok)
	three.frozen = false
	w.calm(RenewEvery + LookEvery)
	since, ok := three.machine.Shown(w.now)
	require.True(t, ok)
	require.GreaterOrEqual(t, since, awake)
	w.calm(10 * TTL)
	later, ok := three.machine.Shown(w.now)
	require.True(t, ok)
	require.Equal(t, since, later, "without a gap")
}

// TestAStandstillKillsNobody: after it, nobody says who is dead before all had
// the time to give a sign of life.
func TestAStandstillKillsNobody(t *testing.T) {
	w := newWorld()
	one, two := w.join(), w.join()
	w.calm(Grace + TTL)
	w.down = true
	for end := w.now + 5*TTL; w.now < end; w.now += 10 * time.Millisecond {
		w.step(one)
		w.step(two)
	}
	require.Empty(t, one.machine.Living(w.now))
	w.down = false
	for range 200 { // the other one is slow to come back
		w.step(one)
		w.now += time.Millisecond
		require.NotEqual(t, []string{one.boot}, one.machine.Living(w.now))
	}
	w.calm(Grace + RenewEvery)
	require.ElementsMatch(t, []string{one.boot, two.boot}, one.machine.Living(w.now))
}
