package gateway

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/proto"
)

func TestFlapsAreHeld(t *testing.T) {
	f := newFlaps()
	shop := flapKeyOf(&proto.ClientHello{JoinToken: "t", Executor: "shop"}, "web-1")
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	came, told := 0, 0
	// Five times a second, for ten minutes.
	for range 3000 {
		now = now.Add(200 * time.Millisecond)
		boot := fmt.Sprint("boot ", came)
		if f.hold(shop, boot, now) > 0 {
			continue
		}
		came++
		if f.ended(shop, boot, 150*time.Millisecond, now) {
			told++
		}
	}
	require.Equal(t, 200, came, "%d a minute", flapStrikes)
	require.Equal(t, 1, told)

	// Others are not concerned: another name, another token, who lives longer.
	for _, other := range []flapKey{
		flapKeyOf(&proto.ClientHello{JoinToken: "t", Executor: "shop"}, "web-2"),
		flapKeyOf(&proto.ClientHello{JoinToken: "u", Executor: "shop"}, "web-1"),
		flapKeyOf(&proto.ClientHello{JoinToken: "t", Executor: "shop\" \"web"}, "1"),
	} {
		require.Zero(t, f.hold(other, "b", now))
	}
	require.Positive(t, f.hold(shop, "a twin", now))
	require.False(t, f.ended(shop, "a twin", flapLife, now))
	require.Zero(t, f.hold(shop, "a twin", now), "it has been in: it may connect anew")
	network := flapKeyOf(&proto.ClientHello{JoinToken: "t", Executor: "shop"}, "web-9")
	for range 3 * flapStrikes {
		require.False(t, f.ended(network, "one process", time.Second, now), "a process on a bad network counts once")
		require.Zero(t, f.hold(network, "one process", now))
	}
	require.Zero(t, f.hold(network, "its successor", now))

	// It ends, and begins again.
	now = now.Add(flapWindow)
	require.Zero(t, f.hold(shop, "boot", now))
	for i := range flapStrikes {
		require.False(t, f.ended(shop, fmt.Sprint("again ", i), 0, now), "it was told of within the hour")
	}
	require.Positive(t, f.hold(shop, "boot", now))
	now = now.Add(flapSilence)
	for i := range flapStrikes {
		require.Equal(t, i == flapStrikes-1, f.ended(shop, fmt.Sprint("later ", i), 0, now))
	}
}
