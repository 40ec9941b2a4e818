package runner

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/proto"
)

func TestOutcome(t *testing.T) {
	const (
		succeeded = proto.Outcome_OUTCOME_SUCCEEDED
		failed    = proto.Outcome_OUTCOME_FAILED
		timedOut  = proto.Outcome_OUTCOME_TIMED_OUT
		cancelled = proto.Outcome_OUTCOME_CANCELLED
	)
	told := &causeError{ErrKilled, "by ann"}
	for name, c := range map[string]struct {
		back    Return
		cause   error
		outcome proto.Outcome
		kind    string
		text    string
	}{
		"success":                    {Return{}, nil, succeeded, "", ""},
		"success in spite of a kill": {Return{}, ErrKilled, succeeded, "", ""},
		"failure":                    {Return{Kind: KindRetryable, Error: "x"}, nil, failed, KindRetryable, "x"},
		"permanent":                  {Return{Kind: KindPermanent, Error: "x"}, nil, failed, KindPermanent, "x"},
		"killed":                     {Return{Kind: KindRetryable, Error: "context canceled"}, told, cancelled, KindCancelled, "killed: by ann"},
		"killed, cause passed on":    {Return{Kind: KindRetryable, Error: "stop: killed: by ann"}, told, cancelled, KindCancelled, "stop: killed: by ann"},
		"killed, own words":          {Return{Kind: KindPermanent, Error: "x"}, told, cancelled, KindCancelled, "killed: by ann: x"},
		"timed out":                  {Return{Kind: KindRetryable, Error: "context deadline exceeded"}, ErrTimeout, timedOut, KindTimeout, "timed out"},
		"lease lost is no kill":      {Return{Kind: KindRetryable, Error: "context canceled"}, ErrLeaseLost, failed, KindLeaseLost, "lease lost"},
		"permanent without a lease":  {Return{Kind: KindPermanent, Error: "x"}, ErrLeaseLost, failed, KindPermanent, "lease lost: x"},
		"stood still":                {Return{Kind: KindRetryable, Error: "context canceled"}, errStalled, failed, KindStalled, "lease lost: its process stood still"},
		"given away":                 {Return{Kind: KindRetryable, Error: "broken pipe"}, &causeError{ErrLeaseLost, "the run was given away"}, failed, KindLeaseLost, "lease lost: the run was given away: broken pipe"},
		"permanent while stopping":   {Return{Kind: KindPermanent, Error: "x"}, ErrStopping, failed, KindPermanent, "executor is stopping: x"},
		"gave up for the stop":       {Return{Kind: KindRetryable, Error: "context canceled", Interrupted: true}, ErrStopping, failed, KindStopping, "executor is stopping"},
		"and wraps it":               {Return{Kind: KindRetryable, Error: "copy: context canceled", Interrupted: true}, ErrStopping, failed, KindStopping, "executor is stopping: copy: context canceled"},
		"own failure while stopping": {Return{Kind: KindRetryable, Error: "disk full"}, ErrStopping, failed, KindRetryable, "executor is stopping: disk full"},
		"final while stopping":       {Return{Kind: KindPermanent, Error: "context canceled", Interrupted: true}, ErrStopping, failed, KindPermanent, "executor is stopping"},
		"snoozed while stopping":     {Return{Kind: KindSnoozed, Error: "snoozed for 1m"}, ErrStopping, failed, KindSnoozed, "executor is stopping: snoozed for 1m"},
		"withdrawn while stopping":   {Return{Kind: KindCancelled, Error: "the order is gone"}, ErrStopping, cancelled, KindCancelled, "the order is gone"},
		"gave up, and nobody stops":  {Return{Kind: KindRetryable, Error: "context canceled", Interrupted: true}, nil, failed, KindRetryable, "context canceled"},
		"gave up for the lease":      {Return{Kind: KindRetryable, Error: "context canceled", Interrupted: true}, ErrLeaseLost, failed, KindLeaseLost, "lease lost"},
		"panic is a panic":           {Return{Kind: KindPanic, Error: "panic: x"}, ErrKilled, failed, KindPanic, "panic: x"},
		"bad input never ran":        {Return{Kind: KindBadInput, Error: "x"}, ErrKilled, failed, KindBadInput, "x"},
		"output over the limit":      {Return{Output: make([]byte, proto.MaxOutput+1)}, nil, failed, KindOutputTooLarge, "output has 262145 bytes, the limit is 262144"},
	} {
		o, r := outcome(c.back, c.cause)
		require.Equal(t, c.outcome, o, name)
		require.Equal(t, c.kind, r.Kind, name)
		require.Equal(t, c.text, r.Error, name)
		if o != succeeded {
			require.Empty(t, r.Output, name)
		}
	}
}

func TestClip(t *testing.T) {
	require.Equal(t, "short", clip("short"))
	require.Equal(t, "a\uFFFDb", clip("a\xffb"))
	long := clip(strings.Repeat("é", proto.MaxErrorText))
	require.LessOrEqual(t, len(long), proto.MaxErrorText)
	require.True(t, utf8.ValidString(long))
	require.True(t, strings.HasSuffix(long, "é… (32768 bytes in all)"))
}

func TestCauseOf(t *testing.T) {
	for reason, want := range map[string]error{
		"killed": ErrKilled, "timeout": ErrTimeout, "lease_lost": ErrLeaseLost,
		"superseded": ErrKilled, "a new reason": ErrKilled,
	} {
		require.ErrorIs(t, causeOf(&proto.Cancel{Reason: reason}), want, reason)
	}
	require.EqualError(t, causeOf(&proto.Cancel{Reason: "superseded"}), "killed: a newer run replaces it")
	require.EqualError(t, causeOf(&proto.Cancel{Reason: "killed", Message: "by ann"}), "killed: by ann")
}

// The wall clock counts what the monotonic clock misses in a suspend, and the
// monotonic clock counts when the wall clock is set back.
func TestElapsed(t *testing.T) {
	start := time.Now()
	require.Equal(t, time.Hour, Elapsed(start, start.Add(time.Hour)))
	wall := start.Round(0)
	require.Equal(t, time.Hour, Elapsed(wall, wall.Add(time.Hour)))
	require.GreaterOrEqual(t, Elapsed(start, time.Now()), time.Duration(0))

	// A machine that was suspended for an hour, and one whose clock was set back.
	behind := start
	(*struct { // as package time has it: the second word is the monotonic clock's
		wall uint64
		ext  int64
	})(unsafe.Pointer(&behind)).ext -= int64(time.Hour)
	require.Equal(t, -time.Hour, behind.Sub(start))
	require.True(t, behind.Round(0).Equal(start.Round(0)))
	require.Equal(t, time.Minute, Elapsed(start, behind.Add(time.Minute)), "the monotonic clock stood still")
	require.Equal(t, time.Hour, Elapsed(behind, start), "the wall clock stood still")
}
