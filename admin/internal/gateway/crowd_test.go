package gateway

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestACrowdIsSpread: of 5,000 who come again and again, few come in any second,
// and a small one need not wait for long.
func TestACrowdIsSpread(t *testing.T) {
	var c crowd
	now := time.Unix(1_800_000_000, 0)
	random := 0.0
	next := func() float64 { random += 0.618034; random -= float64(int(random)); return random }
	due := map[int][]int{} // second → who comes then
	for who := range 5000 {
		due[0] = append(due[0], who)
	}
	for second := range 60 {
		came := len(due[second])
		if second > 20 {
			require.Less(t, came, 3*crowdPace, "second %d", second)
		}
		for i, who := range due[second] {
			at := now.Add(time.Duration(second)*time.Second + time.Duration(i)*time.Second/time.Duration(came))
			back := at.Add(c.again(at, next()))
			due[int(back.Sub(now)/time.Second)] = append(due[int(back.Sub(now)/time.Second)], who)
		}
	}
	later := now.Add(time.Hour)
	require.LessOrEqual(t, c.again(later, 1), crowdMin+crowdMin/10, "that one is forgotten")
}
