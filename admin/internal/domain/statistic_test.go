package domain

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A quantile of added spreads is off by 5 % at most, whatever was measured.
func TestQuantileOfAddedSpreads(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		var all []int64
		var sum Spread
		for range 1 + random.IntN(5) {
			var part Spread
			scale := int64(1) << random.IntN(36)
			for range 1 + random.IntN(300) {
				ms := random.Int64N(scale) + 1
				all = append(all, ms)
				part.count(ms, 1)
			}
			var stored Spread
			require.NoError(t, stored.Decode(part.Encode()))
			require.Equal(t, part.buckets, stored.buckets)
			stored.N, stored.SumMS, stored.MaxMS = part.N, part.SumMS, part.MaxMS
			sum.Add(&stored)
		}
		slices.Sort(all)
		for _, q := range []float64{0.01, 0.5, 0.95, 0.99, 1} {
			exact := all[max(0, int(float64(len(all))*q+0.999999)-1)]
			got, ok := sum.Quantile(q)
			require.True(t, ok)
			require.InEpsilon(t, exact, got.Milliseconds(), 0.051+0.5/float64(exact), "quantile %g of %d", q, len(all))
		}
		require.Equal(t, all[len(all)-1], sum.MaxMS)
	}
}

// TestSharesOfOneBucket: p50 and p95 of durations that differ by less than a bucket are equal.
// So are those of one run, and those of runs that take at most a millisecond.
func TestSharesOfOneBucket(t *testing.T) {
	shares := func(all ...int64) (p50, p95 time.Duration) {
		var s Spread
		for _, ms := range all {
			s.count(ms, 1)
		}
		p50, _ = s.Quantile(0.5)
		p95, _ = s.Quantile(0.95)
		return p50, p95
	}
	for _, same := range [][]int64{{100, 102, 104, 109}, {250}, {0, 0, 1, 1}} {
		p50, p95 := shares(same...)
		require.Equal(t, p50, p95, same)
	}
	p50, p95 := shares(100, 102, 104, 125)
	require.Less(t, p50, p95)
}

func TestSpreadTakesBack(t *testing.T) {
	var s Spread
	_, ok := s.Quantile(0.5)
	require.False(t, ok)
	_, ok = s.Mean()
	require.False(t, ok)
	s.count(-1, 1)
	require.Zero(t, s.N)
	for _, ms := range []int64{0, 10, 10_000, 1 << 60} {
		s.count(ms, 1)
	}
	s.count(1<<60, -1)
	s.count(10_000, -1)
	median, _ := s.Quantile(0.5)
	require.LessOrEqual(t, median, time.Millisecond)
	mean, _ := s.Mean()
	require.Equal(t, 5*time.Millisecond, mean)
	require.Len(t, s.buckets, 2)
	require.Error(t, s.Decode([]byte{7}))
}

func TestEndOf(t *testing.T) {
	at := time.UnixMilli(600_000).UTC()
	e := Execution{TenantID: 1, JobID: 2, Executor: 3, FireAt: at, StartedAt: at.Add(time.Second), FinishedAt: at.Add(3 * time.Second), State: Succeeded, Attempt: 1}
	end, ok := EndOf(&e)
	require.True(t, ok)
	require.Equal(t, RunEnd{Tenant: 1, Job: 2, Executor: 3, Minute: 10, State: Succeeded, Late: 1000, Took: 2000}, end)
	again := e
	again.Attempt = 2
	end, _ = EndOf(&again)
	require.Equal(t, int64(-1), end.Late, "a retry is not late")
	backfill := e
	backfill.Cause = CauseBackfill
	end, _ = EndOf(&backfill)
	require.Equal(t, []int64{-1, 2000}, []int64{end.Late, end.Took}, "its fire time is a logical date")
	spread := e
	spread.Cause, spread.NotBefore = CauseSchedule, at.Add(900*time.Millisecond)
	end, _ = EndOf(&spread)
	require.Equal(t, int64(100), end.Late, "jitter was wanted")
	never := Execution{State: Missed, PlannedAt: at}
	end, ok = EndOf(&never)
	require.True(t, ok)
	require.Equal(t, RunEnd{Minute: 10, State: Missed, Late: -1, Took: -1}, end)
	for name, change := range map[string]func(*Execution){
		"alive": func(e *Execution) { e.State = Running }, "a part": func(e *Execution) { e.Parent = 9 }, "a moved timer": func(e *Execution) { e.State, e.Reason = Cancelled, ReasonRescheduled },
	} {
		other := e
		change(&other)
		_, ok := EndOf(&other)
		require.False(t, ok, name)
	}
}
