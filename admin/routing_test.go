package admin_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin"
	executor "github.com/carillon-sched/carillon/executor-sdk"
)

// errand is the input of the routing tests' handler.
type errand struct {
	Customer string `json:"customer,omitempty"`
	Stay     bool   `json:"stay,omitempty"` // until released
}

// waiters are instances of one executor in this process, in the order in which
// they registered.
type waiters struct {
	n       *node
	names   []string
	entered chan string   // the instances of handlers that stay
	release chan struct{} // lets one of them go
}

func startWaiters(n *node, slots int, labels map[string]map[string]string, addresses ...string) *waiters {
	w := &waiters{n: n, names: []string{"anna", "bert", "carl"}, entered: make(chan string, 9), release: make(chan struct{})}
	for _, name := range w.names {
		n.startExecutor("tables", func(c *executor.Config) {
			c.InstanceName, c.Slots, c.Labels = name, slots, labels[name]
			c.Addresses = append(c.Addresses, addresses...)
		}, func(ex *executor.Executor) {
			executor.Handle(ex, "serve", func(ctx context.Context, in errand) (reply, error) {
				if in.Stay {
					w.entered <- name
					select {
					case <-w.release:
					case <-ctx.Done():
						return reply{}, ctx.Err()
					}
				}
				return reply{name}, nil
			})
		})
	}
	return w
}

func (w *waiters) job(name string, settings map[string]any) string {
	w.n.t.Helper()
	job := map[string]any{"name": w.n.t.Name() + "/" + name, "blocking": "parallel"}
	for k, v := range settings {
		job[k] = v
	}
	return w.n.newJob("tables", "serve", job)
}

// served runs a job several times on a node, one after the other, and returns
// who served.
func served(n *node, job string, times int) (who []string) {
	n.t.Helper()
	for range times {
		who = append(who, servedFor(n, job, errand{}))
	}
	return who
}

func servedFor(n *node, job string, in errand) string {
	n.t.Helper()
	var out reply
	r := n.until(n.runNow(job, in), "succeeded")
	decode(n.t, r.Output, &out)
	return out.Text
}

// stay lets runs stay in their handlers, and returns who has them.
func (w *waiters) stay(job string, runs int) (who []string) {
	w.n.t.Helper()
	for range runs {
		w.n.runNow(job, errand{Stay: true})
		who = append(who, <-w.entered)
	}
	return who
}

// letGo ends what stays.
func (w *waiters) letGo(runs int) {
	for range runs {
		w.release <- struct{}{}
	}
}

func decode(t *testing.T, raw []byte, into any) {
	t.Helper()
	require.NoError(t, json.Unmarshal(raw, into), "%s", raw)
}

// verdicts are what explain says of the instances of a run, by name.
func verdicts(n *node, id string) (verdict, english map[string]string) {
	n.t.Helper()
	var e struct {
		Instances []struct {
			Instance struct{ Name string }
			Verdict  string
			Text     struct{ En, Zh string }
		}
	}
	n.do(http.MethodGet, "/api/v1/runs/"+id+"/explain", nil, &e, 200)
	verdict, english = map[string]string{}, map[string]string{}
	for _, i := range e.Instances {
		require.NotEmpty(n.t, i.Text.Zh)
		verdict[i.Instance.Name], english[i.Instance.Name] = i.Verdict, i.Text.En
	}
	return verdict, english
}

// TestEveryStrategyWithRealExecutors on both databases. It is not parallel: an instance
// that answers late is passed over, whatever the strategy says.
func TestEveryStrategyWithRealExecutors(t *testing.T) {
	for name, database := range databases {
		t.Run(name, func(t *testing.T) {
			n := startNode(t, func(c *admin.Config) { c.Database = database(t, c.DataDir) })
			w := startWaiters(n, 1, map[string]map[string]string{
				"anna": {"zone": "us"}, "bert": {"zone": "eu", "spot": "yes"}, "carl": {"zone": "eu"},
			})
			job := func(routing string, more ...string) string {
				settings := map[string]any{"routing": routing}
				for i := 0; i < len(more); i += 2 {
					settings[more[i]] = more[i+1]
				}
				return w.job(fmt.Sprint(routing, more), settings)
			}
			for routing, want := range map[string][]string{
				"first": {"anna", "anna"}, "last": {"carl", "carl"}, "failover": {"anna", "anna"}, "busy_over": {"anna", "anna"},
			} {
				require.Equal(t, want, served(n, job(routing), len(want)), routing)
			}
			for _, routing := range []string{"round_robin", "least_recently_used", "least_frequently_used"} {
				turns := served(n, job(routing), 7)
				for i := range 4 {
					require.NotEqual(t, turns[i], turns[i+1])
					require.Equal(t, turns[i], turns[i+3], "%s goes %v", routing, turns)
				}
			}
			require.Subset(t, w.names, served(n, job("random"), 3))

			hashed := job("consistent_hash", "routingKey", "/customer")
			owners := map[string]string{}
			for i := range 12 {
				c := fmt.Sprint("customer-", i)
				owners[c] = servedFor(n, hashed, errand{Customer: c})
			}
			all := slices.Sorted(func(yield func(string) bool) {
				for _, o := range owners {
					if !yield(o) {
						return
					}
				}
			})
			require.Equal(t, w.names, slices.Compact(all), "each has keys")
			for c, o := range owners {
				require.Equal(t, o, servedFor(n, hashed, errand{Customer: c}), c)
			}

			require.Equal(t, []string{"carl", "carl"}, served(n, job("busy_over", "requireLabels", "zone in (eu, cn), !spot"), 2))
			preferring := job("busy_over", "preferLabels", "spot")
			require.Equal(t, []string{"bert", "anna", "carl"}, w.stay(preferring, 3), "those without the label when it is full")
			w.letGo(3)
			over := job("busy_over", "description", "keeps two")
			require.Equal(t, []string{"anna", "bert"}, w.stay(over, 2))
			require.Equal(t, "carl", servedFor(n, job("least_loaded"), errand{}))
			w.letGo(2)

			waits := n.runNow(job("first", "requireLabels", "zone=mars"), errand{})
			n.eventually(func() bool { return n.run(waits).Reason == "waiting_for_instance" }, func() string { return "it does not wait" })
			require.Contains(t, n.run(waits).Message, "zone=mars")
			verdict, english := verdicts(n, waits)
			require.Equal(t, map[string]string{"anna": "label_mismatch", "bert": "label_mismatch", "carl": "label_mismatch"}, verdict)
			require.Contains(t, english["anna"], "zone=mars")
		})
	}
}

// TestThePinnedWaitWhileOthersHaveRoom: first waits for its instance, and moves
// on when that one is gone.
func TestThePinnedWaitWhileOthersHaveRoom(t *testing.T) {
	t.Parallel()
	n := startNode(t, nil)
	w := startWaiters(n, 1, nil)
	job := w.job("first", map[string]any{"routing": "first"})
	require.Equal(t, []string{"anna"}, w.stay(job, 1))
	second := n.runNow(job, errand{})
	n.eventually(func() bool { return n.run(second).Reason == "waiting_for_instance" }, func() string { return "it does not wait" })
	n.eventually(func() bool { // when the instance has said that it is full
		verdict, _ := verdicts(n, second)
		return verdict["anna"] == "full" && verdict["bert"] == "not_chosen" && verdict["carl"] == "not_chosen"
	}, func() string { v, _ := verdicts(n, second); return fmt.Sprint(v) })
	w.letGo(1)
	var out reply
	decode(t, n.until(second, "succeeded").Output, &out)
	require.Equal(t, "anna", out.Text)
}

// TestUsesOutliveTheNode: another node goes on where the first one stopped, for
// what it knows stands in the rows of the runs. Only heartbeats tell a node which
// slots the other one's runs have left, so there are more than are needed.
func TestUsesOutliveTheNode(t *testing.T) { // not parallel: an instance that answers late is passed over
	start := limitedCluster(t)
	one, two := start(), start()
	w := startWaiters(one, 9, nil, two.admin.ExecutorAddress())
	for _, routing := range []string{"round_robin", "least_recently_used", "least_frequently_used"} {
		job := w.job(routing, map[string]any{"routing": routing})
		who := served(one, job, 4)
		who = append(who, served(two, job, 3)...)
		for i := range 4 {
			require.Equal(t, who[i], who[i+3], "%s goes %v, from the fifth on through the other node", routing, who)
		}
	}
	hashed := w.job("hash", map[string]any{"routing": "consistent_hash", "routingKey": "/customer"})
	for i := range 6 {
		in := errand{Customer: fmt.Sprint("customer-", i)}
		require.Equal(t, servedFor(one, hashed, in), servedFor(two, hashed, in), "both nodes give a key to the same instance")
	}
	pinned := w.job("last", map[string]any{"routing": "last"})
	require.Equal(t, served(one, pinned, 1), served(two, pinned, 1), "the order is the same on both")
}

// TestASendThatIsNotAnsweredGoesToTheNext: the first instance is frozen. That
// costs no attempt, and explain tells.
func TestASendThatIsNotAnsweredGoesToTheNext(t *testing.T) {
	t.Parallel()
	n := startNode(t, nil)
	w := newWorker(t, n, n.admin.ExecutorAddress())
	n.registered()
	n.startExecutor("shop", func(c *executor.Config) { c.InstanceName = "second" }, func(ex *executor.Executor) {
		executor.Handle(ex, "count", func(context.Context, struct{}) (reply, error) { return reply{"second"}, nil })
	})
	require.NoError(t, w.cmd.Process.Signal(syscall.SIGSTOP))
	id := n.runNow(n.newJob("shop", "count", map[string]any{"routing": "failover", "retry": map[string]any{"maxAttempts": 1}}), nil)
	r := n.until(id, "succeeded")
	require.JSONEq(t, `{"text":"second"}`, string(r.Output))
	require.Equal(t, 1, r.Attempt)
	var sent struct{ Fence, FailedSends int }
	n.do(http.MethodGet, "/api/v1/runs/"+id, nil, &sent, 200)
	require.Equal(t, 1, sent.FailedSends)
	require.Equal(t, 2, sent.Fence)
	verdict, _ := verdicts(n, id)
	require.Equal(t, "chosen", verdict["second"])
	delete(verdict, "second")
	for _, v := range verdict {
		require.Equal(t, "refused", v)
	}
	require.NoFileExists(t, w.setup.Witness)
}

// TestSendsAreSpent: the only instance is frozen, and the job allows one send.
func TestSendsAreSpent(t *testing.T) {
	t.Parallel()
	for name, database := range databases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := startNode(t, func(c *admin.Config) { c.Database = database(t, c.DataDir) })
			w := newWorker(t, n, n.admin.ExecutorAddress())
			n.registered()
			require.NoError(t, w.cmd.Process.Signal(syscall.SIGSTOP))
			job := n.newJob("shop", "count", map[string]any{
				"sendRetry": map[string]any{"maxSends": 1}, "retry": map[string]any{"maxAttempts": 5, "delay": "1ms"},
				"owner": map[string]any{"name": "Ann", "email": "ann@example.com"},
			})
			r := n.until(n.runNow(job, nil), "failed")
			require.Equal(t, "send_failed", r.Reason)
			require.Equal(t, "it was sent once, and no instance took it", r.Message)
			require.Zero(t, r.Attempt)
			n.eventually(func() bool { return slices.Contains(n.deliveries(job), "run_failed") }, func() string { return "its owner was not told" })
		})
	}
}

// TestADeadInstanceGetsNothing: its process is killed, and runs go on elsewhere.
func TestADeadInstanceGetsNothing(t *testing.T) {
	t.Parallel()
	n := startNode(t, nil)
	w := newWorker(t, n, n.admin.ExecutorAddress())
	n.registered()
	n.startExecutor("shop", nil, func(ex *executor.Executor) {
		executor.Handle(ex, "count", func(context.Context, struct{}) (reply, error) { return reply{"second"}, nil })
	})
	w.kill()
	job := n.newJob("shop", "count", map[string]any{"routing": "failover"})
	for range 5 {
		r := n.until(n.runNow(job, nil), "succeeded")
		require.Equal(t, 1, r.Attempt)
		require.JSONEq(t, `{"text":"second"}`, string(r.Output))
	}
	require.NoFileExists(t, w.setup.Witness)
}
