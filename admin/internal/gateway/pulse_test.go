package gateway

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestPulse(t *testing.T) {
	began := time.Unix(1_800_000_000, 0)
	// run judges whenever the pulse asks for it until end; hears are the
	// instants of bytes, offers those of offers.
	type seen struct{ asked, doubted, dead time.Duration }
	rest := time.Duration(0)
	run := func(end time.Duration, hears, offers []time.Duration) (s seen) {
		p := &pulse{heard: began, every: rest}
		next := time.Duration(0)
		for at := time.Duration(0); at < end && s.dead == 0; at += 10 * time.Millisecond {
			now := began.Add(at)
			for _, h := range hears {
				if h == at {
					p.hear(now)
				}
			}
			for _, o := range offers {
				if o == at && p.offered(now, 1) {
					next = min(next, at+answerAfter)
				}
			}
			if at < next {
				continue
			}
			ask, again, err := p.judge(now)
			if ask && s.asked == 0 {
				s.asked = at
			}
			if p.doubted(now) && s.doubted == 0 {
				s.doubted = at
			}
			if err != nil {
				s.dead = at
			}
			next = at + again
		}
		return s
	}
	const ms = time.Millisecond
	every := func(pace, end time.Duration) (out []time.Duration) {
		for at := pace; at < end; at += pace {
			out = append(out, at)
		}
		return out
	}
	t.Run("heartbeats on time need no ping", func(t *testing.T) {
		require.Equal(t, seen{}, run(time.Minute, every(3*time.Second, time.Minute), nil))
	})
	t.Run("silence alone", func(t *testing.T) {
		require.Equal(t, seen{asked: quietAfter, doubted: quietAfter + doubtAfter, dead: deadAfter}, run(time.Minute, nil, nil))
	})
	t.Run("an offer without an answer", func(t *testing.T) {
		require.Equal(t, seen{asked: 400 * ms, doubted: 400*ms + doubtAfter, dead: deadAfter}, run(time.Minute, nil, []time.Duration{100 * ms}))
	})
	t.Run("an answer that takes long after a ping was heard", func(t *testing.T) {
		s := run(3*time.Second, []time.Duration{410 * ms, 900 * ms, 1300 * ms, 1800 * ms, 2600 * ms}, []time.Duration{100 * ms})
		require.Equal(t, seen{asked: 400 * ms}, s)
	})
	t.Run("an instance that rests", func(t *testing.T) {
		rest = 10 * time.Second
		defer func() { rest = 0 }()
		require.Equal(t, seen{}, run(time.Minute, every(rest, time.Minute), nil))
		late := rest + restLate
		require.Equal(t, seen{asked: late, doubted: late + doubtAfter, dead: late + pingFor}, run(time.Minute, nil, nil), "silence alone")
		offered := 9 * time.Second // what came before has nothing to do with it
		asked := offered + answerAfter
		require.Equal(t, seen{asked: asked, doubted: asked + doubtAfter, dead: asked + pingFor}, run(time.Minute, nil, []time.Duration{offered}))
		require.Equal(t, seen{asked: asked}, run(offered+time.Second, []time.Duration{asked + 50*ms}, []time.Duration{offered}), "the ping is answered, the offer not yet")
	})
	t.Run("a byte that was under way when the path broke", func(t *testing.T) {
		s := run(time.Minute, []time.Duration{110 * ms}, []time.Duration{100 * ms})
		require.Equal(t, seen{asked: 410 * ms, doubted: 410*ms + doubtAfter, dead: 110*ms + deadAfter}, s)
	})
}

func TestPulseForgetsWhatWasAnswered(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	p := &pulse{heard: now}
	require.True(t, p.offered(now, 2))
	require.False(t, p.offered(now, 1))
	p.answered(now, 2)
	_, again, err := p.judge(now)
	require.NoError(t, err)
	require.Equal(t, answerAfter, again, "one is open")
	p.answered(now, 5)
	_, again, _ = p.judge(now)
	require.Equal(t, quietAfter, again)
	require.True(t, p.offered(now, 1))
	p.pinged()
	_, again, _ = p.judge(now)
	require.Equal(t, quietAfter, again, "it is there; the answer comes when it comes")
}
