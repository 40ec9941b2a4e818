package gateway

import (
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

func TestKnownAddressesAreRememberedForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("2001:db8::")
		a := newAdmission(Limits{}, "")
		a.seen(here, 1)
		a.seen(there, 2)
		time.Sleep(knownFor / 2)
		a.seen(here, 2)
		time.Sleep(knownFor / 2)
		require.True(t, a.history.knows(here, time.Now()))
		require.False(t, a.history.knows(there, time.Now()))
		require.False(t, a.history.knows(here.Next(), time.Now()))
		require.EqualValues(t, 1, a.history.records[addressSubject(here)].tenant, "it stays whose it was")
	})
}

// The tenant that has most of what is remembered loses the oldest of it.
func TestNoTenantFillsTheHistory(t *testing.T) {
	at := func(i int) subject {
		return addressSubject(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}))
	}
	h := newHistory()
	h.note(2, at(1_000_000))
	for i := range maxHistory + 100 {
		h.note(1, at(i))
	}
	require.Len(t, h.records, maxHistory)
	require.Contains(t, h.records, at(1_000_000), "the first of all is another tenant's")
	require.Contains(t, h.records, at(maxHistory+99))
	require.NotContains(t, h.records, at(0))
	h.note(1, at(101))
	h.note(1, at(200_000))
	require.Contains(t, h.records, at(101), "it was noted again")
	require.NotContains(t, h.records, at(102))
	const others = 100
	for i := range others {
		h.note(domain.TenantID(10+i), at(300_000+i))
	}
	require.Len(t, h.records, maxHistory)
	require.Equal(t, maxHistory-1-others, h.tenants[1].len(), "room is made for them")
	require.Len(t, h.tenants, 2+others)

	// Those who never authenticate take no tenant's.
	for i := range 2 * maxUnauthenticated {
		h.note(0, at(400_000+i))
	}
	require.Equal(t, maxUnauthenticated, h.tenants[0].len())
	h.note(1, at(400_000+2*maxUnauthenticated-1))
	require.Equal(t, maxUnauthenticated-1, h.tenants[0].len(), "it is the tenant's who comes in from there")
	require.Len(t, h.records, maxHistory)
}
