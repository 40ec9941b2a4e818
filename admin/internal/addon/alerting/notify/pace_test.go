package notify

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/noun"
	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// No channel gets more in any minute than its product takes, however many there
// are to send and on however many nodes, and none is put off for long.
func TestPace(t *testing.T) {
	most := map[noun.ChannelKind]int{
		noun.ChannelDingTalk: 20, noun.ChannelFeishu: 100, noun.ChannelWeCom: 20, noun.ChannelSlack: 60, noun.ChannelTelegram: 20,
		noun.ChannelPagerDuty: 120, noun.ChannelTeams: 60, noun.ChannelOpsgenie: 70, noun.ChannelEmail: 80, noun.ChannelWebhook: 650,
	}
	for _, kind := range noun.ChannelKinds {
		for _, nodes := range []int{1, 2} {
			start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
			type waiting struct {
				node int
				at   time.Time
			}
			var queue []waiting
			for i := range 300 {
				queue = append(queue, waiting{i % nodes, start})
			}
			all := make([]*paces, nodes)
			for i := range all {
				all[i] = newPaces()
			}
			var sent []time.Time
			for len(queue) > 0 {
				first := 0
				for i := range queue {
					if queue[i].at.Before(queue[first].at) {
						first = i
					}
				}
				w := queue[first]
				queue = append(queue[:first], queue[first+1:]...)
				if wait := all[w.node].take(7, limits[kind], nodes, w.at); wait > 0 {
					require.LessOrEqual(t, wait, maxPaceWait)
					queue = append(queue, waiting{w.node, w.at.Add(wait)})
					continue
				}
				sent = append(sent, w.at)
			}
			burst := limits[kind].burst * (nodes - 1) // each node has its own
			for i := range sent {
				n := 0
				for _, at := range sent[i:] {
					if at.Sub(sent[i]) < time.Minute {
						n++
					}
				}
				require.LessOrEqual(t, n, most[kind]+burst+1, "%s on %d nodes", kind, nodes)
			}
			ideal := time.Duration(300/limits[kind].perMinute*60) * time.Second
			require.Less(t, sent[len(sent)-1].Sub(start), 2*ideal+maxPaceWait, "%s on %d nodes", kind, nodes)
		}
	}
}

func TestPauseOfAChannel(t *testing.T) {
	p, now := newPaces(), time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	p.pause(1, now, time.Hour) // nothing was sent: there is nobody who could have asked
	require.Zero(t, p.take(1, limits[noun.ChannelSlack], 1, now))
	p.pause(1, now, 10*time.Minute)
	p.pause(1, now, time.Minute)
	p.pause(1, now, 0)
	require.Equal(t, 10*time.Minute, p.paused(1, now), "the longest wish counts")
	require.Equal(t, 10*time.Minute, p.take(1, limits[noun.ChannelSlack], 1, now))
	require.Greater(t, p.take(1, limits[noun.ChannelSlack], 1, now), 10*time.Minute, "one after the other")
	require.Zero(t, p.take(2, limits[noun.ChannelSlack], 1, now), "another channel")
	now = now.Add(10 * time.Minute)
	require.Zero(t, p.paused(1, now))
	require.Zero(t, p.take(1, limits[noun.ChannelSlack], 1, now))
}

func TestPacesAreForgotten(t *testing.T) {
	p, now := newPaces(), time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for id := range domain.ChannelID(1000) {
		now = now.Add(time.Minute)
		require.Zero(t, p.take(int64(id), limits[noun.ChannelDingTalk], 1, now))
	}
	require.Less(t, len(p.of), 4, "those whose bucket is full again")
}

// TestRefusedTestsTakeNoTurn: tests of a channel do not change the turns of its deliveries.
func TestRefusedTestsTakeNoTurn(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	waits := func(tests int) (out []time.Duration, sent int) {
		p := newPaces()
		for range limits[noun.ChannelDingTalk].burst {
			require.Zero(t, p.take(1, limits[noun.ChannelDingTalk], 1, start))
		}
		for second := range 60 {
			now := start.Add(time.Duration(second) * time.Second)
			if second < 10 {
				out = append(out, p.take(1, limits[noun.ChannelDingTalk], 1, now))
			}
			for range tests {
				if p.try(1, limits[noun.ChannelDingTalk], 1, 1, now) == 0 {
					sent++
				}
			}
		}
		return out, sent
	}
	without, _ := waits(0)
	with, sent := waits(100)
	require.Equal(t, without, with)
	require.Positive(t, sent, "when no delivery waits any more, tests go through")

	p := newPaces()
	for range limits[noun.ChannelDingTalk].burst {
		require.Zero(t, p.try(1, limits[noun.ChannelDingTalk], 1, 1, start))
	}
	for range 1000 {
		require.Equal(t, 4*time.Second, p.try(1, limits[noun.ChannelDingTalk], 1, 1, start))
	}
	require.Equal(t, 4*time.Second, p.take(1, limits[noun.ChannelDingTalk], 1, start), "the next turn is free")
	p.pause(1, start, time.Minute)
	require.Equal(t, time.Minute, p.try(1, limits[noun.ChannelDingTalk], 1, 1, start))
}

// A tenant gets no more mails in an hour than it may, on one node and on several.
func TestMailsOfAnHour(t *testing.T) {
	const perHour = 600
	for nodes := 1; nodes <= 4; nodes++ {
		start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		all := make([]*paces, nodes)
		for i := range all {
			all[i] = newPaces()
		}
		sent := 0
		for second := range 3600 {
			for n := range 100 {
				now := start.Add(time.Duration(second) * time.Second)
				if all[n%nodes].try(1, mailLimit(perHour, nodes), nodes, 1, now) == 0 {
					sent++
				}
			}
		}
		require.LessOrEqual(t, sent, perHour, "%d nodes", nodes)
		require.Greater(t, sent, perHour*9/10, "%d nodes", nodes)
	}
	require.Zero(t, newPaces().try(1, mailLimit(10, 1), 1, 16, time.Now()), "a channel of more addresses than there are mails at once")
}
