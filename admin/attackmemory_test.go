//go:build proof

package admin_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/internal/testenv/lab"
)

// TestAttacks lets each attack go on for a while (-attack) against a node in a
// process of its own. The node's memory grows by 64 MiB at most, and another
// executor keeps its session and its runs.
func TestAttacks(t *testing.T) {
	if testing.Short() {
		*attackFor = 300 * time.Millisecond
	}
	v := startVictim(t)
	require.NoError(t, v.sell(t.Context()))
	for _, a := range attacks {
		t.Run(a.name, func(t *testing.T) {
			t.Cleanup(func() {
				if t.Failed() {
					v.lines.show(t)
				}
			})
			sessions := v.lines.count(connected)
			before := lab.UsageOf(v.pid).RSS
			peak := before
			ctx, cancel := context.WithTimeout(t.Context(), *attackFor)
			defer cancel()
			var all sync.WaitGroup
			hits := make([]int, a.attackers)
			for i := range a.attackers {
				all.Go(func() {
					for ctx.Err() == nil {
						a.do(ctx, v)
						hits[i]++
					}
				})
			}
			sold := 0
			for ctx.Err() == nil || sold == 0 {
				peak = max(peak, lab.UsageOf(v.pid).RSS)
				require.NoError(t, v.sell(t.Context()))
				sold++
			}
			all.Wait()
			peak = max(peak, lab.UsageOf(v.pid).RSS)
			total := 0
			for _, n := range hits {
				total += n
			}
			t.Logf("%d attempts in %s; memory %d → at most %d MiB; %d runs of another executor", total, *attackFor, before>>20, peak>>20, sold)
			require.LessOrEqual(t, peak-before, int64(maxGrowth))
			require.NoError(t, v.shop.Health())
			require.Equal(t, sessions, v.lines.count(connected), "it has the session that it had before")
		})
	}
}
