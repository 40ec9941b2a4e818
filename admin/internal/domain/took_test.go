package domain

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The executor measures the duration of a run. It leaves out the time until the end could
// be stored, for example during an outage of the database.
func TestTheDurationIsWithoutTheTimeOfStoring(t *testing.T) {
	for name, c := range map[string]struct {
		startedAfter, took, storedAfter, want time.Duration
		startAt                               time.Duration // that is kept
	}{
		"stored at once":               {0, 2 * time.Second, 2 * time.Second, 2 * time.Second, 0},
		"the database was away":        {time.Second, 2 * time.Second, time.Minute, 2 * time.Second, time.Second},
		"an executor that is ahead":    {time.Hour, 2 * time.Second, 10 * time.Second, 2 * time.Second, 8 * time.Second},
		"an executor that is behind":   {-time.Hour, 2 * time.Second, 10 * time.Second, 2 * time.Second, 0},
		"more than there was time":     {0, time.Hour, 10 * time.Second, 10*time.Second + time.Millisecond, 0},
		"an executor that says none":   {time.Second, 0, 10 * time.Second, 9 * time.Second, time.Second},
		"an executor that says less":   {time.Second, -1, 10 * time.Second, 9 * time.Second, time.Second},
		"within less than a clock":     {0, time.Microsecond, time.Second, time.Microsecond, 0},
		"within one tick of the clock": {0, time.Microsecond, 0, time.Microsecond, 0},
	} {
		t.Run(name, func(t *testing.T) {
			e := newExecution(1)
			run(t, e, t0, noRetry)
			granted := e.GrantedAt
			_, err := e.Finish(granted.Add(c.storedAfter), Report{
				Fence: e.Fence, Outcome: OutcomeSucceeded, StartedAt: granted.Add(c.startedAfter), Took: c.took,
			}, noRetry)
			require.NoError(t, err)
			took, ok := e.Duration()
			require.True(t, ok)
			require.Equal(t, c.want, took)
			require.Equal(t, granted.Add(c.startAt), e.StartedAt)
			require.Equal(t, granted.Add(c.storedAfter), e.FinishedAt)
			end, counts := EndOf(e)
			require.True(t, counts)
			require.Equal(t, c.want.Milliseconds(), end.Took)
		})
	}
}

// The next attempt begins without the duration of the one before.
func TestANewAttemptHasNoDurationYet(t *testing.T) {
	p := retryPolicy(2, false)
	e := newExecution(2)
	run(t, e, t0, p)
	_, err := e.Finish(t0.Add(time.Minute), Report{Fence: e.Fence, Outcome: OutcomeFailed, StartedAt: e.GrantedAt, Took: time.Second}, p)
	require.NoError(t, err)
	require.Equal(t, time.Second, e.Took)
	run(t, e, e.NotBefore, p)
	require.Zero(t, e.Took)
}
