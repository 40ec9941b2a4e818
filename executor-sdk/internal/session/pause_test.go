package session

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/proto"
)

// TestNewsEndThePause: a node that restarts is on the next list of any other
// node; the pause that has grown meanwhile is no reason to wait.
func TestNewsEndThePause(t *testing.T) {
	broken := errors.New("connect: refused")
	for name, c := range map[string]struct {
		err  error
		news func(*Fleet)
		ends bool
	}{
		"nothing":                     {broken, func(*Fleet) {}, false},
		"a list that names it":        {broken, list("n1", "n2"), true},
		"a list without it":           {broken, list("n1"), false},
		"the last session ends":       {broken, func(f *Fleet) { f.forget(f.ready[0]) }, true},
		"the admin asked for peace":   {&RefusedError{RetryAfter: time.Hour}, list("n1", "n2"), false},
		"the admin's database is off": {&RefusedError{Code: "unavailable"}, list("n1", "n2"), true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := NewFleet(Options{})
				f.ctx = t.Context()
				link := &Link{node: "n1"}
				f.nodes["n1"], f.nodes["n2"] = newTarget("n1", "a"), newTarget("n2", "b")
				f.claimed["n1"], f.ready = link, []*Link{link}
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan bool, 1)
				b := &backoff{failures: 9}
				go func() { ended <- f.pause(ctx, f.nodes["n2"], b, time.Hour, retriesOnNews(c.err)) }()
				synctest.Wait()
				c.news(f)
				time.Sleep(newsSpread)
				synctest.Wait()
				cancel()
				require.Equal(t, c.ends, <-ended)
				if c.ends {
					require.Zero(t, b.failures, "the next pauses are short")
				}
			})
		})
	}
}

func list(nodes ...string) func(*Fleet) {
	var all []*proto.Node
	for _, id := range nodes {
		all = append(all, &proto.Node{Id: id, Address: id})
	}
	return func(f *Fleet) { f.setNodes(all) }
}
