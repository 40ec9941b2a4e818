package gateway

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// TestRetriesAreSpread: of 5,000 who come again and again, few come in any second,
// and a small one need not wait for long.
func TestRetriesAreSpread(t *testing.T) {
	a := newAdmission(Limits{}, "")
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
			require.Less(t, came, 2*retryRate, "second %d", second)
		}
		for i, who := range due[second] {
			at := now.Add(time.Duration(second)*time.Second + time.Duration(i)*time.Second/time.Duration(came))
			back := at.Add(a.retryAfter(at, next()))
			due[int(back.Sub(now)/time.Second)] = append(due[int(back.Sub(now)/time.Second)], who)
		}
	}
	later := now.Add(time.Hour)
	require.LessOrEqual(t, a.retryAfter(later, 1), retryMin+retryMin/10, "that one is forgotten")
}

// TestSessionsWaitForAPlaceToRegister, and is asked to come again before it has waited
// for longer than it would wait for an answer; one tenant leaves places for others.
func TestSessionsWaitForAPlaceToRegister(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newAdmission(Limits{}, "")
		type answer struct {
			tenant domain.TenantID
			seat   *seat
			err    error
		}
		answers := make(chan answer, 4*minRegistering)
		come := func(ctx context.Context, tenant domain.TenantID, n int) {
			for range n {
				go func() {
					seat, err := d.seat(ctx, tenant)
					answers <- answer{tenant, seat, err}
				}()
				synctest.Wait()
			}
		}
		all, ofTenant := d.concurrency.places()
		require.Equal(t, []int{minRegistering, minRegistering * 3 / 4}, []int{all, ofTenant})
		come(t.Context(), 1, ofTenant+2)
		come(t.Context(), 2, all-ofTenant+1)
		leaving, leave := context.WithCancel(t.Context())
		come(leaving, 2, 1)
		require.Len(t, answers, all, "one too many of the first tenant waits, and two of the second, for whom there is no place")
		var in []*seat
		for range all {
			a := <-answers
			require.NoError(t, a.err)
			in = append(in, a.seat)
		}
		leave()
		require.Error(t, (<-answers).err)
		time.Sleep(2 * quickRegistration)
		in[0].registered() // one of the first tenant
		in[0].registered()
		synctest.Wait()
		next := <-answers
		require.NoError(t, next.err)
		require.Equal(t, domain.TenantID(1), next.tenant, "who has waited longest")
		require.Empty(t, answers, "a place is given back once")
		time.Sleep(seatPatience)
		for range 2 {
			code, retry := helloCode((<-answers).err)
			require.Equal(t, "limit_reached", code)
			require.Positive(t, retry)
		}
		for _, s := range append(in, next.seat) {
			s.leave()
		}
		require.Zero(t, d.registering+d.sessions)
		require.Empty(t, d.tenants)
		require.Empty(t, d.queue)
	})
}

// TestPlacesFollowHowLongItTakes: a quick node lets many in at once, a slow one
// few.
func TestPlacesFollowHowLongItTakes(t *testing.T) {
	var p concurrencyLimit
	for range 2 * maxRegistering {
		p.took(quickRegistration / 10)
	}
	all, ofTenant := p.places()
	require.Equal(t, []int{maxRegistering, maxRegistering * 3 / 4}, []int{all, ofTenant})
	for range maxRegistering {
		p.took(2 * quickRegistration)
	}
	all, _ = p.places()
	require.Equal(t, minRegistering, all)
	p.took(quickRegistration)
	all, _ = p.places()
	require.Equal(t, minRegistering+1, all)
}
