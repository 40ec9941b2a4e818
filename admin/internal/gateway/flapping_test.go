package gateway

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/proto"
)

func TestFlapsAreHeld(t *testing.T) {
	a := newAdmission(Limits{}, "")
	type name struct{ token, executor, instance string }
	helloOf := func(n name, boot string) *proto.ClientHello {
		return &proto.ClientHello{JoinToken: n.token, Executor: n.executor, BootId: boot}
	}
	hold := func(n name, boot string, now time.Time) (wait time.Duration) {
		var held *retryError
		if errors.As(a.hold(helloOf(n, boot), n.instance, now), &held) {
			wait = held.wait
		}
		return wait
	}
	ended := func(n name, boot string, life time.Duration, now time.Time) (tell bool) {
		return a.lived(1, helloOf(n, boot), n.instance, life, now)
	}
	shop := name{"t", "shop", "web-1"}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	came, told := 0, 0
	// Five times a second, for ten minutes.
	for range 3000 {
		now = now.Add(200 * time.Millisecond)
		boot := fmt.Sprint("boot ", came)
		if hold(shop, boot, now) > 0 {
			continue
		}
		came++
		if ended(shop, boot, 150*time.Millisecond, now) {
			told++
		}
	}
	require.Equal(t, 200, came, "%d a minute", flapStrikes)
	require.Equal(t, 1, told)

	// Others are not concerned: another name, another token, who lives longer.
	for _, other := range []name{
		name{"t", "shop", "web-2"},
		name{"u", "shop", "web-1"},
		name{"t", "shop\" \"web", "1"},
	} {
		require.Zero(t, hold(other, "b", now))
	}
	require.Positive(t, hold(shop, "a twin", now))
	require.False(t, ended(shop, "a twin", flapLife, now))
	require.Zero(t, hold(shop, "a twin", now), "it has been in: it may connect anew")
	network := name{"t", "shop", "web-9"}
	for range 3 * flapStrikes {
		require.False(t, ended(network, "one process", time.Second, now), "a process on a bad network counts once")
		require.Zero(t, hold(network, "one process", now))
	}
	require.Zero(t, hold(network, "its successor", now))

	// It ends, and begins again.
	now = now.Add(flapWindow)
	require.Zero(t, hold(shop, "boot", now))
	for i := range flapStrikes {
		require.False(t, ended(shop, fmt.Sprint("again ", i), 0, now), "it was told of within the hour")
	}
	require.Positive(t, hold(shop, "boot", now))
	now = now.Add(flapSilence)
	for i := range flapStrikes {
		require.Equal(t, i == flapStrikes-1, ended(shop, fmt.Sprint("later ", i), 0, now))
	}
}
