package session

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/proto"
)

func TestBackoff(t *testing.T) {
	const s, ms = time.Second, time.Millisecond
	broken := errors.New("connect: refused")
	var b backoff
	// The ceiling doubles up to the bound; the pause is random below it.
	for _, ceiling := range []time.Duration{100 * ms, 200 * ms, 400 * ms, 800 * ms, 1600 * ms, 3200 * ms, 6400 * ms, 12800 * ms, 15 * s, 15 * s, 15 * s, 15 * s} {
		require.Equal(t, ceiling/2, b.next(broken, 0, false, 0.5))
	}
	require.Equal(t, time.Duration(0), b.next(broken, 0, false, 0))
	require.Equal(t, 15*s/2, b.next(broken, healthyAfter-1, false, 0.5), "a short session changes nothing")
	require.Equal(t, 50*ms, b.next(broken, healthyAfter, false, 0.5), "a healthy session begins anew")
	require.Equal(t, 100*ms, b.next(broken, 0, false, 0.5))

	require.Equal(t, 60*s, b.next(&RefusedError{RetryAfter: -1}, 0, false, 0))
	require.Equal(t, 63*s, b.next(&RefusedError{RetryAfter: -1}, 0, false, 0.5))
	require.Equal(t, 2*s, b.next(&RefusedError{RetryAfter: 2 * s}, 0, false, 0))
	require.Equal(t, 200*ms, b.next(&RefusedError{Code: "unavailable"}, 0, false, 0.5), "as the backoff says")

	// Without any session the pause is short, unless a node asks for patience.
	b = backoff{failures: 20}
	require.Equal(t, 3*s/2, b.next(broken, 0, true, 0.5))
	require.Equal(t, 15*s/2, b.next(&RefusedError{Code: "unavailable"}, 0, true, 0.5))
}

func TestVerdict(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	seed, n1, n2 := &target{address: "seed"}, &target{node: "n1"}, &target{node: "n2"}
	knownSeed := &target{address: "seed", answered: "n1"}
	strayed := &target{node: "n2", answered: "n1"}
	link := map[string]*Link{"n1": {}}
	list := map[string]*target{"n1": n1, "n2": n2}
	for name, c := range map[string]struct {
		fleet  *Fleet
		target *target
		wait   time.Duration
		over   bool
	}{
		"first try of a seed":                    {&Fleet{}, seed, 0, false},
		"seed while another node stands":         {&Fleet{claimed: link}, seed, 0, false},
		"seed whose node stands":                 {&Fleet{claimed: link}, knownSeed, -1, false},
		"seed with a list and a session":         {&Fleet{nodes: list, claimed: link}, seed, -1, false},
		"seed with a list, alone for a while":    {&Fleet{nodes: list, aloneAt: now.Add(-time.Minute)}, knownSeed, 0, false},
		"seed with a list, alone since a second": {&Fleet{nodes: list, aloneAt: now.Add(-time.Second)}, seed, seedPatience - time.Second, false},
		"listed node":                            {&Fleet{nodes: list, claimed: link}, n2, 0, false},
		"listed node that stands":                {&Fleet{nodes: list, claimed: link}, n1, -1, false},
		"listed node answered by another":        {&Fleet{nodes: list, claimed: link}, strayed, -1, false},
		"node that is no longer listed":          {&Fleet{}, &target{node: "n3", removed: true}, 0, true},
		"after leaving":                          {&Fleet{left: true}, seed, 0, true},
	} {
		wait, over := c.fleet.verdict(c.target, now)
		require.Equal(t, c.wait, wait, name)
		require.Equal(t, c.over, over, name)
	}
}

func TestOutboxCutsFrames(t *testing.T) {
	o := newOutbox()
	for i := range int64(1201) {
		o.put([]*proto.Answer{{ExecutionId: i}}, []*proto.Started{{ExecutionId: i}}, nil)
	}
	for i := range int64(3) {
		o.put(nil, nil, []*proto.Result{{ExecutionId: i, Output: make([]byte, proto.MaxOutput)}})
	}
	var long []*proto.Progress
	for range 3 {
		long = append(long, &proto.Progress{Message: strings.Repeat("x", 400<<10)})
	}
	o.putProgress(long, nil) // two fit into a frame
	var kinds [][4]int
	for range 4 {
		buf, err := o.drain(nil)
		require.NoError(t, err)
		r := proto.NewReader(bytes.NewReader(buf), proto.MaxFrame)
		for {
			var m proto.CommandToAdmin
			if r.Next(&m) != nil {
				break
			}
			kinds = append(kinds, [4]int{
				len(m.GetAnswers().GetAnswers()), len(m.GetStarted().GetStarted()),
				len(m.GetProgress().GetProgress()), len(m.GetResults().GetResults()),
			})
		}
	}
	require.Equal(t, [][4]int{
		{500}, {500}, {201}, {0, 500}, {0, 500}, {0, 201}, {0, 0, 2}, {0, 0, 1}, {0, 0, 0, 1}, {0, 0, 0, 1}, {0, 0, 0, 1},
	}, kinds)
}

func TestOutboxIsBounded(t *testing.T) {
	o := newOutbox()
	o.put(make([]*proto.Answer, maxQueued), nil, nil)
	o.put([]*proto.Answer{{}}, nil, nil)
	_, err := o.drain(nil)
	require.ErrorIs(t, err, errNotReading)
	o.close()
	o.put([]*proto.Answer{{}}, nil, nil)
	require.Empty(t, o.answers)
}

func TestAdviceForEveryLastingRefusal(t *testing.T) {
	for _, code := range []string{"bad_token", "token_expired", "wrong_executor", "version_unsupported", "limit_reached"} {
		require.NotEmpty(t, (&RefusedError{Code: code}).advice(), code)
	}
	require.EqualError(t, &RefusedError{Code: "draining"}, "refused: draining")
}
