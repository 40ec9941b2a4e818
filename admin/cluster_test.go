package admin_test

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin"
	executor "github.com/carillon-sched/carillon/executor-sdk"
	"github.com/carillon-sched/carillon/internal/testenv"
)

// line is the way of one node to the database, which can be cut.
type line struct {
	listener net.Listener
	upstream string
	mu       sync.Mutex
	cut      bool                  // guarded by mu
	conns    map[net.Conn]struct{} // guarded by mu
}

func newLine(t *testing.T, upstream string) *line {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	l := &line{listener: listener, upstream: upstream, conns: map[net.Conn]struct{}{}}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return
			}
			all.Go(func() { l.serve(from) })
		}
	})
	t.Cleanup(func() { listener.Close(); l.set(true); all.Wait() })
	return l
}

func (l *line) serve(from net.Conn) {
	defer from.Close()
	to, err := net.Dial("tcp", l.upstream)
	if err != nil {
		return
	}
	defer to.Close()
	if !l.enter(from, to) {
		return
	}
	done := make(chan struct{})
	go func() { defer close(done); _, _ = io.Copy(from, to); from.Close() }()
	_, _ = io.Copy(to, from)
	to.Close()
	<-done
}

func (l *line) enter(conns ...net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range conns {
		l.conns[c] = struct{}{}
	}
	return !l.cut
}

// set cuts the line, which resets all connections, or mends it.
func (l *line) set(cut bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = cut
	for c := range l.conns {
		c.Close()
	}
	clear(l.conns)
}

// cluster is what the tests look at in the engine's state.
type cluster struct {
	Nodes []struct {
		Name, State string
		Partitions  int
	}
	Partitions []struct {
		ID          int
		State, Term string
	}
}

// shares returns how many partitions each node holds.
func (n *node) shares() map[string]int {
	n.t.Helper()
	var c cluster
	n.do(http.MethodGet, "/api/v1/cluster", nil, &c, 200)
	out := map[string]int{}
	for _, m := range c.Nodes {
		if m.Partitions > 0 {
			out[m.Name] = m.Partitions
		}
	}
	return out
}

func (n *node) untilShared(want map[string]int) {
	n.t.Helper()
	var got map[string]int
	n.eventually(func() bool {
		got = n.shares()
		for name, share := range want { // one more or less is a fair share
			if d := got[name] - share; d < -1 || d > 1 {
				return false
			}
		}
		return len(got) == len(want)
	}, func() string { return fmt.Sprintf("shares are %v, want %v", got, want) })
}

// countRuns counts the runs of each job, and shows those that did not succeed.
func (n *node) countRuns(jobs []string) (out []string) {
	n.t.Helper()
	for _, job := range jobs {
		var list struct{ Items []map[string]any }
		n.do(http.MethodGet, "/api/v1/runs?limit=100&jobId="+job, nil, &list, 200)
		first := ""
		for _, r := range list.Items {
			if at := fmt.Sprint(r["fireAt"]); first == "" || at < first {
				first = at
			}
			if r["state"] != "succeeded" {
				out = append(out, fmt.Sprint(r))
			}
		}
		out = append(out, fmt.Sprintf("job %s has %d runs from %s on", job, len(list.Items), first))
	}
	return out
}

// TestNodesComeAndGoWhileJobsFire: a node joins, one hands over and leaves,
// one is cut off from the database and comes back. Each fire time runs once.
func TestNodesComeAndGoWhileJobsFire(t *testing.T) {
	t.Parallel()
	dsn := testenv.Database(t)
	key := filepath.Join(t.TempDir(), "sealing.key")
	start := func(name, dsn string) *node {
		return startNode(t, func(c *admin.Config) { c.Database, c.SealingKeyFile, c.NodeName = "mysql:"+dsn, key, name })
	}
	one, two := start("one", dsn), start("two", dsn)
	one.untilShared(map[string]int{"one": 32, "two": 32})

	var mu sync.Mutex
	type fire struct {
		job int64
		at  time.Time
	}
	wanted := map[int64]bool{} // jobs
	seen := map[fire]int{}
	count := func() int { mu.Lock(); defer mu.Unlock(); return len(seen) }
	one.startExecutor("shop", func(c *executor.Config) {
		c.Addresses = append(c.Addresses, two.admin.ExecutorAddress())
	}, func(ex *executor.Executor) {
		executor.HandleFunc(ex, "tick", func(ctx context.Context) error {
			task := executor.TaskFrom(ctx)
			mu.Lock()
			defer mu.Unlock()
			if wanted[task.JobID] {
				seen[fire{task.JobID, task.FireTime}]++
			}
			return nil
		})
	})
	const jobs, fires = 12, 16
	_, ids := one.eachSecond("shop", slices.Repeat([]string{"tick"}, jobs), fires, map[string]any{
		"onLost": "fail",
		// On a slow machine a fire time may wait for longer than the usual 5 s until another node has it.
		"misfire": map[string]any{"policy": "skip", "threshold": "2m"},
	})
	mu.Lock()
	for _, id := range ids {
		wanted[number(t, id)] = true
	}
	mu.Unlock()
	reached := func(n int) {
		t.Helper()
		one.eventually(func() bool { return count() >= n*jobs }, func() string {
			return fmt.Sprintf("%d fires, want %d; %v", count(), n*jobs, one.countRuns(ids))
		})
	}
	reached(2)
	before, rest, _ := strings.Cut(dsn, "tcp(")
	address, after, _ := strings.Cut(rest, ")")
	way := newLine(t, address)
	three := start("three", before+"tcp("+way.listener.Addr().String()+")"+after)
	one.untilShared(map[string]int{"one": 21, "two": 21, "three": 21})
	reached(4)
	two.stop()
	one.untilShared(map[string]int{"one": 32, "three": 32})
	reached(6)
	way.set(true)
	one.untilShared(map[string]int{"one": 64})
	way.set(false)
	one.untilShared(map[string]int{"one": 32, "three": 32})
	three.untilShared(map[string]int{"one": 32, "three": 32})
	reached(fires)

	for _, job := range ids {
		var list struct{ Items []run }
		one.eventually(func() bool {
			list.Items = nil
			one.do(http.MethodGet, "/api/v1/runs?limit=100&jobId="+job, nil, &list, 200)
			done := 0
			for _, r := range list.Items {
				if r.State == "succeeded" {
					done++
				}
			}
			return done >= fires
		}, func() string { return fmt.Sprintf("runs of %s: %+v", job, list.Items) })
		require.Len(t, list.Items, fires)
	}
	mu.Lock()
	defer mu.Unlock()
	require.Len(t, seen, jobs*fires)
	for f, times := range seen {
		require.Equal(t, 1, times, "job %d at %s", f.job, f.at)
	}
}

// TestADatabaseThatBreaksPromisesIsRefused before anything is served.
func TestADatabaseThatBreaksPromisesIsRefused(t *testing.T) {
	t.Parallel()
	server := testenv.PrivateServer(t)
	dsn := server.Database(t)
	config := admin.Config{DataDir: t.TempDir(), HTTPAddress: "127.0.0.1:0", ExecutorAddress: "127.0.0.1:0", Database: "mysql:" + dsn}
	require.NoError(t, admin.Migrate(t.Context(), config))
	db, err := sql.Open("mysql", dsn)
	require.NoError(t, err)
	defer db.Close()
	_, err = db.ExecContext(t.Context(), "ALTER TABLE executions DROP KEY uq_executions_occurrence")
	require.NoError(t, err)
	_, err = admin.New(t.Context(), config)
	require.ErrorContains(t, err, "uq_executions_occurrence")
}
