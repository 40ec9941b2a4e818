package callback

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

const tenant, host = 1, "api.example.com:443"

// begin returns those of n calls at once that may begin without waiting.
func begin(t *testing.T, l *limits, of domain.TenantID, name string, n, most int) (calls []*call) {
	t.Helper()
	gone, cancel := context.WithCancel(t.Context())
	cancel() // nobody waits
	for range n {
		if c, _, later := l.enter(gone, of, name, most); c != nil {
			calls = append(calls, c)
		} else {
			require.GreaterOrEqual(t, later, putOff)
		}
	}
	return calls
}

func leave(l *limits, o outcome, calls ...*call) {
	for _, c := range calls {
		l.leave(c, o)
	}
}

// fail makes n calls, one after the other, that have no answer.
func fail(t *testing.T, l *limits, name string, n int) {
	t.Helper()
	for range n {
		calls := begin(t, l, tenant, name, 1, 20)
		require.Len(t, calls, 1)
		leave(l, unanswered, calls...)
	}
}

func TestCallsToAReceiverAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimits()
		calls := begin(t, l, tenant, host, 10, 3)
		require.Len(t, calls, 3)
		others := begin(t, l, tenant, "other:443", 10, 3)
		require.Len(t, others, 3, "others are not concerned")
		stranger := begin(t, l, 2, host, 1, 3)
		require.Len(t, stranger, 1, "nor is another tenant")
		leave(l, answered, append(others, stranger...)...)
		leave(l, answered, calls[0])
		more := begin(t, l, tenant, host, 10, 3)
		require.Len(t, more, 1)
		leave(l, answered, append(calls[1:], more...)...)
		require.Empty(t, l.receivers, "nothing is remembered of who answers")
		require.Empty(t, l.callsOf)
		require.Zero(t, l.calls)
	})
}

// Tenants whose receivers hang leave others what these need.
func TestATenantHasNoMoreThanWhatIsFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimits()
		held := map[domain.TenantID][]*call{}
		for range slots { // side by side, with as many runs as a node takes of each
			for of := domain.TenantID(1); of <= 4; of++ {
				held[of] = append(held[of], begin(t, l, of, host, 1, slots)...)
			}
		}
		for of, calls := range held {
			require.InDelta(t, maxCalls/5, len(calls), 1, of)
		}
		fifth := begin(t, l, 5, host, slots, slots)
		require.Greater(t, len(fifth), maxCalls/10-2, "half of what is free")
		got := make(chan *call, 1)
		go func() {
			c, _, _ := l.enter(t.Context(), 1, host, slots)
			got <- c
		}()
		synctest.Wait()
		l.leave(held[1][0], answered)
		require.Nil(t, <-got, "its free place is not handed on while it has more than is free")
		leave(l, answered, fifth...)
		for of, calls := range held {
			if of == 1 {
				calls = calls[1:]
			}
			leave(l, answered, calls...)
		}
		require.Zero(t, l.calls)
		require.Empty(t, l.callsOf)
		require.Empty(t, l.receivers)
	})
}

// A run waits for a receiver that answers, and not for one that does not.
func TestWhoWaitsForAReceiver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimits()
		c := begin(t, l, tenant, host, 1, 1)[0]
		got := make(chan *call)
		wait := func() {
			go func() {
				c, broken, _ := l.enter(t.Context(), tenant, host, 1)
				require.False(t, broken)
				got <- c
			}()
			synctest.Wait()
		}
		for range waitersPerCall {
			wait()
		}
		require.Empty(t, begin(t, l, tenant, host, 1, 1), "and only so many")
		for range waitersPerCall {
			l.leave(c, answered)
			c = <-got
			require.NotNil(t, c)
		}
		wait()
		require.Nil(t, <-got, "after a second it is put off")
		require.Empty(t, begin(t, l, tenant, host, 1, 1))
		began := time.Now()
		none, broken, _ := l.enter(t.Context(), tenant, host, 1)
		require.True(t, none == nil && !broken)
		require.Equal(t, began, time.Now(), "and from then on nobody waits, until there is an answer")
		for _, silent := range []time.Duration{waitTime, 2 * time.Second, openFor, time.Minute} {
			time.Sleep(time.Until(began.Add(silent - waitTime)))
			_, _, later := l.enter(t.Context(), tenant, host, 1)
			least := min(silent, openFor)
			require.True(t, later >= least && later < least*3/2, "put off for %s after %s without an answer", later, silent)
		}
		l.leave(c, answered)
		require.Empty(t, l.receivers)
	})
}

// A policy that allows fewer calls counts for those who wait already.
func TestAFreePlaceIsHandedOnWithinTheBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimits()
		calls := begin(t, l, tenant, host, 3, 3)
		got := make(chan *call, 1)
		go func() {
			c, _, _ := l.enter(t.Context(), tenant, host, 3)
			got <- c
		}()
		synctest.Wait()
		require.Empty(t, begin(t, l, tenant, host, 1, 1))
		leave(l, answered, calls[:2]...)
		synctest.Wait()
		require.Empty(t, got, "one is under way, and one may be")
		leave(l, answered, calls[2])
		l.leave(<-got, answered)
	})
}

func TestTheCircuitOfAReceiver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimits()
		one := func(n int) *call {
			t.Helper()
			calls := begin(t, l, tenant, host, n, 20)
			require.Len(t, calls, 1)
			return calls[0]
		}
		fail(t, l, host, breakAfter-1)
		l.leave(one(1), answered) // one answer, and it counts anew
		fail(t, l, host, breakAfter-1)
		calls := begin(t, l, tenant, host, 3, 20)
		require.Len(t, calls, 3)
		l.leave(calls[0], unknown) // what was given up says nothing
		l.leave(calls[1], unanswered)
		none, broken, later := l.enter(t.Context(), tenant, host, 20)
		require.True(t, none == nil && broken)
		require.GreaterOrEqual(t, later, openFor)
		for open := openFor; open <= 2*maxOpen; open *= 2 {
			time.Sleep(min(open, maxOpen) - 1)
			require.Empty(t, begin(t, l, tenant, host, 5, 20))
			time.Sleep(time.Nanosecond)
			l.leave(one(5), unanswered) // one call tries
		}
		for range 100 {
			_, _, later := l.enter(t.Context(), tenant, host, 20)
			require.Less(t, later, time.Minute)
		}
		time.Sleep(maxOpen)
		l.leave(one(5), unknown)
		trial := one(5) // another one tries
		l.leave(calls[2], unknown)
		require.Empty(t, begin(t, l, tenant, host, 5, 20), "the trial is still under way when another call ends")
		l.leave(trial, answered)
		require.Len(t, begin(t, l, tenant, host, 25, 20), 20, "closed")
	})
}

// Those who wait when the circuit opens wait no longer.
func TestAnOpenCircuitSendsWaitersAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimits()
		calls := begin(t, l, tenant, host, breakAfter, breakAfter)
		require.Len(t, calls, breakAfter)
		began := time.Now()
		got := make(chan *call, breakAfter)
		for range breakAfter {
			go func() {
				c, _, _ := l.enter(t.Context(), tenant, host, breakAfter)
				got <- c
			}()
		}
		synctest.Wait()
		leave(l, unanswered, calls...)
		may := map[bool]int{}
		for range breakAfter {
			c := <-got
			may[c != nil]++
		}
		require.Equal(t, map[bool]int{true: breakAfter - 1, false: 1}, may, "the last end opens the circuit")
		require.Equal(t, began, time.Now())
	})
}

func TestWhatIsRememberedIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimits()
		for i := range maxFailing + 50 {
			fail(t, l, fmt.Sprintf("host-%d:443", i), 1)
			time.Sleep(time.Nanosecond)
		}
		require.Len(t, l.receivers[tenant], maxFailing)
		require.Nil(t, l.receivers[tenant]["host-49:443"])
		require.NotNil(t, l.receivers[tenant]["host-50:443"])
	})
}

// Receivers that are being called take no room from those that do not answer.
func TestManyCallsForgetNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimits()
		for i := range 300 {
			require.Len(t, begin(t, l, tenant, fmt.Sprintf("host-%d:443", i), 1, 1), 1)
		}
		fail(t, l, host, breakAfter)
		fail(t, l, "other:443", 1)
		_, broken, _ := l.enter(t.Context(), tenant, host, 20)
		require.True(t, broken)
	})
}

func TestFailuresAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimits()
		fail(t, l, host, breakAfter-1)
		time.Sleep(brokenFor + 1)
		fail(t, l, host, breakAfter-1)
		fail(t, l, host, 1)
		_, broken, _ := l.enter(t.Context(), tenant, host, 20)
		require.True(t, broken, "calls that fail one after the other count")

		busy := begin(t, l, tenant, "other:443", 1, 20)
		l.forget(tenant)
		require.Len(t, l.receivers[tenant], 1, "nor does it know that one any more")
		leave(l, answered, busy...)
		require.Empty(t, l.receivers)
		fail(t, l, host, breakAfter-1)
		l.forget(tenant)
		require.Empty(t, l.receivers)
	})
}
