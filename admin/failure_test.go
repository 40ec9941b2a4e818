package admin_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin"
	executor "github.com/carillon-sched/carillon/executor-sdk"
	"github.com/carillon-sched/carillon/internal/testenv"
)

// behindProxy starts a node that executors reach through a proxy only.
func behindProxy(t *testing.T) (*node, *proxy) {
	t.Helper()
	address := freeAddress(t)
	p := newProxy(t, address)
	n := startNode(t, func(c *admin.Config) { c.ExecutorAddress, c.AdvertiseAddress = address, p.address() })
	return n, p
}

// deliveries returns the kinds of what owners of a job were told.
func (n *node) deliveries(job string) []string {
	n.t.Helper()
	var list struct{ Items []struct{ Kind string } }
	n.do(http.MethodGet, "/api/v1/deliveries?jobId="+job, nil, &list, 200)
	var kinds []string
	for _, d := range list.Items {
		kinds = append(kinds, d.Kind)
	}
	return kinds
}

// TestAResultSurvivesItsProcess: the handler has ended and its result is on
// disk, but no admin heard of it when the process is killed.
func TestAResultSurvivesItsProcess(t *testing.T) {
	t.Parallel()
	n, p := behindProxy(t)
	w := newWorker(t, n, p.address())
	n.registered()
	id := n.runNow(n.newJob("shop", "count", nil), struct{}{})
	w.entered()
	p.hold()
	const word = "seventeen-coins"
	w.say(word)
	p.waitKept(word) // it is sent after it was made durable
	require.Equal(t, "running", n.run(id).State)
	w.kill()
	p.pass()
	w.start()
	r := n.until(id, "succeeded")
	require.JSONEq(t, `{"text":"`+word+`"}`, string(r.Output))
	require.Equal(t, 1, r.Attempt)
	require.Equal(t, []string{id + "/1"}, w.witness(), "the handler ran once")
	require.Empty(t, n.deliveries(r.JobID))
}

// TestAProcessThatDiesInAHandler: its successor with the same journal settles
// the run at once, long before the lease is over. A stop of a process
// with a handler that does not listen costs no more than a kill.
func TestAProcessThatDiesInAHandler(t *testing.T) {
	t.Parallel()
	fail := map[string]any{"onLost": "fail", "retry": map[string]any{"maxAttempts": 3, "delay": "1ms"}}
	retry := map[string]any{"onLost": "retry"}
	for name, c := range map[string]struct {
		end      func(*worker)
		job      map[string]any
		state    string
		attempts []string
		told     []string
	}{
		"killed, fail":   {(*worker).kill, fail, "lost", []string{"1"}, []string{"run_lost"}},
		"killed, retry":  {(*worker).kill, retry, "succeeded", []string{"1", "2"}, nil},
		"stopped, fail":  {(*worker).stop, fail, "lost", []string{"1"}, []string{"run_lost"}},
		"stopped, retry": {(*worker).stop, retry, "succeeded", []string{"1", "2"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hook := testenv.HTTPSink(t)
			n := startNode(t, nil)
			w := newWorker(t, n, n.admin.ExecutorAddress())
			n.registered()
			job := maps.Clone(c.job)
			job["alert"] = map[string]any{"onFailure": true, "webhookUrl": hook.URL, "webhookSecret": "whsec-0123456789abcdef"}
			id := n.runNow(n.newJob("shop", "till", job), nil)
			w.entered()
			c.end(w)
			w.start()
			r := n.until(id, c.state)
			require.Equal(t, len(c.attempts), r.Attempt)
			var want []string
			for _, attempt := range c.attempts {
				want = append(want, id+"/"+attempt)
			}
			require.Equal(t, want, w.witness())
			if c.state == "lost" {
				require.Equal(t, "process_died", r.Reason)
				hook.Wait(t, 1)
			} else {
				require.Equal(t, "lost", r.Attempts[0].State)
			}
			require.Equal(t, c.told, n.deliveries(r.JobID))
		})
	}
}

// TestHandlersOutliveTheAdmin: a handler that runs while the only node is
// restarted ends as if nothing had happened, also if it ends in between.
func TestHandlersOutliveTheAdmin(t *testing.T) {
	t.Parallel()
	address := freeAddress(t)
	n := startNode(t, func(c *admin.Config) { c.ExecutorAddress = address })
	entered := make(chan struct{}, 2)
	gates := map[string]chan struct{}{"during": make(chan struct{}), "after": make(chan struct{})}
	var calls atomic.Int32
	ended := make(chan struct{})
	n.startExecutor("shop", nil, func(ex *executor.Executor) {
		executor.Handle(ex, "long", func(_ context.Context, in greeting) (reply, error) {
			calls.Add(1)
			entered <- struct{}{}
			<-gates[in.Name]
			if in.Name == "during" {
				defer close(ended)
			}
			return reply{in.Name}, nil
		})
	})
	job := n.newJob("shop", "long", map[string]any{"onLost": "fail", "blocking": "parallel"})
	ids := map[string]string{}
	for name := range gates {
		ids[name] = n.runNow(job, greeting{name})
		<-entered
	}
	n.stop()
	close(gates["during"])
	<-ended
	n = startNode(t, func(c *admin.Config) { c.DataDir, c.ExecutorAddress = n.dir, address })
	r := n.until(ids["during"], "succeeded")
	require.Equal(t, 1, r.Attempt)
	require.Equal(t, "running", n.run(ids["after"]).State)
	close(gates["after"])
	r = n.until(ids["after"], "succeeded")
	require.Equal(t, 1, r.Attempt)
	require.EqualValues(t, 2, calls.Load())
	require.Empty(t, n.deliveries(job))
}

// TestTheDatabaseIsKilledWhileJobsFire: no fire time is lost, none runs twice.
func TestTheDatabaseIsKilledWhileJobsFire(t *testing.T) {
	t.Parallel()
	server := testenv.PrivateServer(t)
	dsn := server.Database(t)
	n := startNode(t, func(c *admin.Config) { c.Database = "mysql:" + dsn })
	type fire struct {
		job int64
		at  time.Time
	}
	var mu sync.Mutex
	wanted := map[int64]bool{} // jobs
	seen := map[fire]int{}
	count := func() int { mu.Lock(); defer mu.Unlock(); return len(seen) }
	n.startExecutor("shop", nil, func(ex *executor.Executor) {
		for _, c := range []struct {
			handler string
			options []executor.HandlerOption
		}{{"tick", nil}, {"tock", []executor.HandlerOption{executor.Idempotent()}}} {
			executor.HandleFunc(ex, c.handler, func(ctx context.Context) error {
				task := executor.TaskFrom(ctx)
				mu.Lock()
				defer mu.Unlock()
				if wanted[task.JobID] {
					seen[fire{task.JobID, task.FireTime}]++
				}
				return nil
			}, c.options...)
		}
	})
	const fires = 12
	start, jobs := n.eachSecond("shop", []string{"tick", "tick", "tock", "tock"}, fires, map[string]any{"onLost": "fail"})
	mu.Lock()
	for _, id := range jobs {
		wanted[number(t, id)] = true
	}
	mu.Unlock()
	for _, after := range []int{2 * len(jobs), 5 * len(jobs), 8 * len(jobs)} {
		n.eventually(func() bool { return count() >= after }, func() string { return fmt.Sprintf("%d fires, want %d", count(), after) })
		require.NoError(t, server.Kill())
		require.NoError(t, server.Start())
	}
	for _, job := range jobs {
		var list struct{ Items []run }
		n.eventually(func() bool {
			list.Items = nil
			n.do(http.MethodGet, "/api/v1/runs?limit=100&jobId="+job, nil, &list, 200)
			done := 0
			for _, r := range list.Items {
				if r.State == "succeeded" || r.State == "missed" {
					done++
				}
			}
			return done >= fires
		}, func() string { return fmt.Sprintf("runs of %s: %+v", job, list.Items) })
		rows := map[time.Time]string{}
		for _, r := range list.Items {
			require.NotContains(t, rows, r.FireAt)
			rows[r.FireAt] = r.State
		}
		require.Len(t, rows, fires)
		mu.Lock()
		for i := range fires {
			at := start.Add(time.Duration(i) * time.Second)
			require.Contains(t, rows, at)
			times := 0
			for f, n := range seen {
				if fmt.Sprint(f.job) == job && f.at.Equal(at) {
					times = n
				}
			}
			want := 1
			if rows[at] == "missed" { // the database took longer than the misfire threshold to come back
				want = 0
			}
			require.Equal(t, want, times, "job %s at %s is %s", job, at, rows[at])
		}
		mu.Unlock()
	}
}

// TestADueRunWaitsForAnExecutor, and its owner is told meanwhile.
func TestADueRunWaitsForAnExecutor(t *testing.T) {
	t.Parallel()
	hook := testenv.HTTPSink(t)
	n := startNode(t, nil)
	_, err := n.admin.Provision(t.Context(), "shop")
	require.NoError(t, err)
	job := n.newJob("shop", "open", map[string]any{
		"alert": map[string]any{"includeNoExecutor": true, "webhookUrl": hook.URL, "webhookSecret": "whsec-0123456789abcdef"},
	})
	asked := time.Now()
	id := n.runNow(job, nil)
	request := hook.Wait(t, 1)[0]
	require.Contains(t, string(request.Body), "no_executor")
	require.GreaterOrEqual(t, time.Since(asked), 9*time.Second, "a restarting application is no news")
	r := n.run(id)
	require.Equal(t, "due", r.State)
	require.Equal(t, "waiting_for_instance", r.Reason)
	n.startExecutor("shop", nil, func(ex *executor.Executor) {
		executor.HandleFunc(ex, "open", func(context.Context) error { return nil })
	})
	r = n.until(id, "succeeded")
	require.Equal(t, 1, r.Attempt)
	require.Equal(t, []string{"no_executor"}, n.deliveries(job))
}

// run reads a run as it is.
func (n *node) run(id string) run {
	n.t.Helper()
	var r run
	n.do(http.MethodGet, "/api/v1/runs/"+id, nil, &r, 200)
	return r
}

// registered waits until an executor is online.
func (n *node) registered() {
	n.t.Helper()
	n.eventually(func() bool {
		var list struct {
			Items []struct{ InstancesOnline int }
		}
		n.do(http.MethodGet, "/api/v1/executors", nil, &list, 200)
		return len(list.Items) == 1 && list.Items[0].InstancesOnline > 0
	}, func() string { return "no executor registered" })
}
