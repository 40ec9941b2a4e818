package domain

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestDelaysAreCountedAndBounded(t *testing.T) {
	e := newExecution(1)
	for i := range 3 {
		require.NoError(t, e.Wait(t0.Add(time.Duration(i)*time.Second), ReasonWaitInstance, "none online", t0.Add(time.Minute)))
	}
	require.Equal(t, Delays{{At: t0, LastAt: t0.Add(2 * time.Second), Count: 3, Reason: ReasonWaitInstance, Message: "none online"}}, e.Delays)

	require.NoError(t, e.Offer(t0, testNode, testInstance, false, false, noRetry))
	require.NoError(t, e.GiveBack(t0, 1, ReasonOfferRefused, strings.Repeat("忙", 1000), 0))
	require.Len(t, e.Delays, 2)
	require.Equal(t, testInstance, e.Delays[1].Instance)
	require.Len(t, []rune(e.Delays[1].Message), maxDelayMessage)

	copied := *e
	for i := range 3 * MaxDelays {
		reason := []Reason{ReasonWaitInstance, ReasonWaitSlot}[i%2]
		require.NoError(t, e.Wait(t0.Add(time.Duration(i)*time.Second), reason, "", t0.Add(time.Minute)))
	}
	require.Len(t, e.Delays, MaxDelays)
	require.Equal(t, "none online", e.Delays[0].Message, "the first ones stay")
	require.Equal(t, ReasonWaitSlot, e.Delays[MaxDelays-1].Reason, "the newest takes the last place")
	require.Len(t, copied.Delays, 2, "copies do not share them")
}

func TestPunctualRunsHaveNoDelays(t *testing.T) {
	e := newExecution(1)
	require.NoError(t, e.Offer(t0, testNode, testInstance, false, false, noRetry))
	require.NoError(t, e.Grant(t0, 1, testInstance, noRetry))
	require.Nil(t, e.Delays)
}

// TestWhenAStopWasAskedFor: it is known, once, and it is nothing that kept the
// run from starting.
func TestWhenAStopWasAskedFor(t *testing.T) {
	for name, ask := range map[string]func(e *Execution, at time.Time) error{
		"killed": func(e *Execution, at time.Time) error {
			_, err := e.RequestCancel(at, ReasonKilled, "by anna")
			return err
		},
		"covered": func(e *Execution, at time.Time) error { _, err := e.Cover(at, "by anna"); return err },
	} {
		t.Run(name, func(t *testing.T) {
			e := inState(t, Running)
			asked := t0.Add(time.Minute)
			require.NoError(t, ask(e, asked))
			want := Delay{At: asked, LastAt: asked, Count: 1, Reason: e.Reason, Message: "by anna", Stop: true}
			require.Equal(t, want, e.Delays[len(e.Delays)-1])
			n := len(e.Delays)
			require.NoError(t, ask(e, asked.Add(time.Minute)))
			require.Len(t, e.Delays, n, "it had been asked already")
			require.False(t, e.Sends().TriedOn(0))
		})
	}
}
