package admin_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin"
	"github.com/carillon-sched/carillon/internal/httpcall"
)

// receiver is an HTTP server that callbacks go to. It listens on all of
// 127.0.0.0/8, so that it is as many hosts as a test needs.
type receiver struct {
	t    *testing.T
	port string

	mu   sync.Mutex
	got  []received     // guarded by mu
	open map[string]int // guarded by mu: requests under way, by host
	most map[string]int // guarded by mu: the most of them at a time
}

type received struct {
	host, path, body string
	header           http.Header
	at               time.Time
}

// planned is the instant that the call was to be made at.
func (g received) planned(t *testing.T) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339Nano, g.header.Get("Carillon-Planned-At"))
	require.NoError(t, err)
	return at
}

func newReceiver(t *testing.T, answer func(w http.ResponseWriter, r *http.Request, nth int)) *receiver {
	t.Helper()
	c := &receiver{t: t, open: map[string]int{}, most: map[string]int{}}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		at := time.Now()
		body, _ := io.ReadAll(r.Body)
		host, _, _ := net.SplitHostPort(r.Host)
		c.mu.Lock()
		nth := 1
		for _, g := range c.got {
			if g.header.Get("Idempotency-Key") == r.Header.Get("Idempotency-Key") {
				nth++
			}
		}
		c.got = append(c.got, received{host, r.URL.Path, string(body), r.Header, at})
		c.open[host]++
		c.most[host] = max(c.most[host], c.open[host])
		c.mu.Unlock()
		answer(w, r, nth)
		c.mu.Lock()
		c.open[host]--
		c.mu.Unlock()
	}))
	listener, err := net.Listen("tcp4", "0.0.0.0:0")
	require.NoError(t, err)
	server.Listener.Close()
	server.Listener = listener
	_, c.port, err = net.SplitHostPort(listener.Addr().String())
	require.NoError(t, err)
	server.Start()
	t.Cleanup(server.Close)
	return c
}

// url is the receiver as the nth host.
func (c *receiver) url(n int, path string) string {
	return fmt.Sprintf("http://127.0.0.%d:%s%s", n, c.port, path)
}

func (c *receiver) all() []received {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.got)
}

func (c *receiver) of(host string) (n, most int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, g := range c.got {
		if g.host == host {
			n++
		}
	}
	return n, c.most[host]
}

// allowCallbacks lets the tenant call the hosts.
func (n *node) allowCallbacks(change map[string]any, hosts ...string) {
	n.t.Helper()
	policy := map[string]any{"hosts": append([]string{}, hosts...)}
	for k, v := range change {
		policy[k] = v
	}
	n.do(http.MethodPut, "/api/v1/script-policy", map[string]any{"callbacks": policy}, nil, 200)
}

func (n *node) callback(name string, in any, change map[string]any) string {
	n.t.Helper()
	job := map[string]any{"name": name, "input": in}
	for k, v := range change {
		job[k] = v
	}
	return n.newJob("carillon", "http", job)
}

var onceMore = map[string]any{"retry": map[string]any{"maxAttempts": 2, "delay": "1ms"}}

func TestCallbacks(t *testing.T) {
	t.Parallel()
	for database := range databases {
		t.Run(database, func(t *testing.T) {
			n := startNode(t, func(c *admin.Config) { c.Database = databases[database](t, c.DataDir) })
			to := newReceiver(t, func(w http.ResponseWriter, r *http.Request, nth int) {
				switch {
				case r.URL.Path == "/large":
					_, _ = w.Write(bytes.Repeat([]byte("large "), 200_000))
				case r.URL.Path == "/fails", r.URL.Path == "/once" && nth == 1:
					w.Header().Set("Content-Type", "application/json")
					w.Header().Set("Retry-After", "1")
					w.WriteHeader(http.StatusInternalServerError)
				}
				_, _ = w.Write([]byte(`{"code":0}`))
			})
			n.allowCallbacks(nil, "127.0.0.1")

			good := n.callback("good", map[string]any{
				"url": to.url(1, "/good"), "headers": map[string]string{"X-Run": "{{run.id}}"}, "input": map[string]any{"order": 77},
				"body": map[string]any{"cancel": "{{input.order}}"}, "match": map[string]any{"path": "code", "equals": 0},
			}, nil)
			r := n.until(n.runNow(good, nil), "succeeded")
			var out httpcall.Response
			require.NoError(t, json.Unmarshal(r.Output, &out))
			require.Equal(t, []any{200, `{"code":0}`}, []any{out.Status, string(out.JSON)})
			got := to.all()[0]
			require.JSONEq(t, `{"cancel":77}`, got.body)
			require.Equal(t, []string{r.ID, r.ID, "1"}, []string{got.header.Get("Idempotency-Key"), got.header.Get("X-Run"), got.header.Get("Carillon-Attempt")})
			require.True(t, got.planned(t).Equal(r.FireAt))

			var secret struct{ Secret, KeyID string }
			n.do(http.MethodGet, "/api/v1/callback-secret", nil, &secret, 200)
			require.Equal(t, secret.KeyID, got.header.Get(httpcall.HeaderKeyID))
			stamp, _, _ := strings.Cut(strings.TrimPrefix(got.header.Get(httpcall.HeaderSignature), "t="), ",")
			seconds, err := strconv.ParseInt(stamp, 10, 64)
			require.NoError(t, err)
			require.Equal(t, httpcall.Signature([]byte(secret.Secret), []byte(got.body), time.Unix(seconds, 0)), got.header.Get(httpcall.HeaderSignature))

			// A 500 is a failure whatever its body says; the receiver says when to come again.
			r = n.until(n.runNow(n.callback("fails", map[string]any{"url": to.url(1, "/fails"), "match": map[string]any{"contains": "code"}}, onceMore), nil), "failed")
			require.Contains(t, r.Error, `the answer is 500 Internal Server Error: {"code":0}`)
			require.Len(t, r.Attempts, 2)
			r = n.until(n.runNow(n.callback("once", map[string]any{"url": to.url(1, "/once")}, onceMore), nil), "succeeded")
			require.Len(t, r.Attempts, 2)

			// What is too large of an answer is cut off.
			r = n.until(n.runNow(n.callback("large", map[string]any{"url": to.url(1, "/large")}, nil), nil), "succeeded")
			out = httpcall.Response{}
			require.NoError(t, json.Unmarshal(r.Output, &out))
			require.True(t, out.Truncated)
			require.Len(t, out.Body, 64<<10)

			// By a call and by a timer.
			target := map[string]any{"executor": "carillon", "handler": "http", "input": map[string]any{"url": to.url(1, "/called")}}
			var call struct{ State string }
			n.do(http.MethodPost, "/api/v1/calls?wait=1m", target, &call, 201)
			require.Equal(t, "succeeded", call.State)
			target["after"], target["input"] = "1ms", map[string]any{"url": to.url(1, "/timer")}
			n.do(http.MethodPost, "/api/v1/timers", target, nil, 201)
			n.eventually(func() bool {
				return slices.ContainsFunc(to.all(), func(g received) bool { return g.path == "/timer" })
			}, func() string { return "the timer has not fired" })

			// What the policy does not allow is refused where it is written, and where it
			// comes with a run.
			base := map[string]any{"name": "x", "executor": map[string]string{"name": "carillon"}, "handler": "http", "schedule": map[string]any{"kind": "none", "zone": "UTC"}}
			var refused struct{ Errors []struct{ Location string } }
			for _, in := range []map[string]any{
				{"url": to.url(2, "/")}, {"url": to.url(1, "/"), "timeout": "31s"}, {"url": "ftp://127.0.0.1/"}, {"url": to.url(1, "/{{run.nope}}")},
				{"url": to.url(1, "/"), "headers": map[string]string{"Idempotency-Key": "mine"}},
			} {
				base["input"], target["input"] = in, in
				n.do(http.MethodPost, "/api/v1/jobs", base, nil, 422)
				n.do(http.MethodPost, "/api/v1/timers", target, &refused, 422)
				require.Equal(t, "body.input", refused.Errors[0].Location)
			}
			var batch struct{ Created, Invalid int }
			more := maps.Clone(target)
			more["input"] = map[string]any{"url": to.url(1, "/timer")}
			n.do(http.MethodPost, "/api/v1/timers/batch", map[string]any{"timers": []any{target, more}}, &batch, 200)
			require.Equal(t, []int{1, 1}, []int{batch.Created, batch.Invalid})
			r = n.until(n.runNow(n.callback("with each run", map[string]any{"url": to.url(1, "/")}, onceMore), map[string]any{"url": to.url(2, "/")}), "failed")
			require.Contains(t, r.Error, "a callback may not call 127.0.0.2")
			require.Len(t, r.Attempts, 1, "another try would end the same way")
			calls, _ := to.of("127.0.0.2")
			require.Zero(t, calls)

			// Off again: what is left fails and says so.
			n.allowCallbacks(nil)
			base["input"] = map[string]any{"url": to.url(1, "/")}
			n.do(http.MethodPost, "/api/v1/jobs", base, nil, 403)
			n.do(http.MethodPost, "/api/v1/timers", more, nil, 403)
			r = n.until(n.runNow(good, nil), "failed")
			require.Contains(t, r.Error, "callbacks are off")
		})
	}
}

// TestACallThatWasNotTakenIsMadeAgain: a job with one attempt and a timer call
// once more when the receiver has not taken the call, and not when it may have.
func TestACallThatWasNotTakenIsMadeAgain(t *testing.T) {
	t.Parallel()
	n := startNode(t, nil)
	to := newReceiver(t, func(w http.ResponseWriter, r *http.Request, nth int) {
		if r.URL.Path == "/breaks" {
			w.WriteHeader(http.StatusInternalServerError)
		} else if nth == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	n.allowCallbacks(nil, "127.0.0.1")
	busy := n.runNow(n.callback("busy", map[string]any{"url": to.url(1, "/busy")}, nil), nil)
	broken := n.runNow(n.callback("breaks", map[string]any{"url": to.url(1, "/breaks")}, nil), nil)
	target := map[string]any{"executor": "carillon", "handler": "http", "input": map[string]any{"url": to.url(1, "/timer")}, "after": "1ms"}
	n.do(http.MethodPost, "/api/v1/timers", target, nil, 201)

	r := n.until(busy, "succeeded")
	require.Len(t, r.Attempts, 2)
	require.Contains(t, r.Attempts[0].Error, "the answer is 503")
	require.Equal(t, "cancelled", r.Attempts[0].State, "put off")
	require.Len(t, n.until(broken, "failed").Attempts, 1)
	n.eventually(func() bool {
		calls := 0
		for _, g := range to.all() {
			if g.path == "/timer" {
				calls++
			}
		}
		return calls == 2
	}, func() string { return "the timer's call was not made again" })
}

// TestNothingFollowsARunOfTheBuiltInExecutor: its handlers take no end of another
// run as their input.
func TestNothingFollowsARunOfTheBuiltInExecutor(t *testing.T) {
	t.Parallel()
	n := startNode(t, nil)
	n.allowCallbacks(nil, "*")
	for _, field := range []string{"onSuccess", "onFailure"} {
		for _, handler := range []string{"publish", "http"} {
			job := map[string]any{
				"name": "x", "executor": map[string]string{"name": "carillon"}, "handler": "http", "schedule": map[string]any{"kind": "none", "zone": "UTC"},
				"input": map[string]any{"url": "https://api.example.com/"}, field: handler,
			}
			var refused struct {
				Errors []struct{ Location, Message string }
			}
			n.do(http.MethodPost, "/api/v1/jobs", job, &refused, 422)
			require.Equal(t, "body."+field, refused.Errors[0].Location)
			require.Contains(t, refused.Errors[0].Message, "leave it out")
		}
	}
}

// TestCallbacksReachNoPrivateNetwork: a name that the policy allows may lead anywhere.
func TestCallbacksReachNoPrivateNetwork(t *testing.T) {
	t.Parallel()
	n := startNode(t, func(c *admin.Config) { c.Webhook.AllowPrefixes = nil })
	to := newReceiver(t, func(http.ResponseWriter, *http.Request, int) {})
	n.allowCallbacks(nil, "*")
	for i, host := range []string{"127.0.0.1:" + to.port, "localhost:" + to.port, "[::ffff:127.0.0.1]:" + to.port, "10.0.0.1", "169.254.169.254"} {
		r := n.until(n.runNow(n.callback(fmt.Sprint(i), map[string]any{"url": "http://" + host + "/"}, onceMore), nil), "failed")
		require.Contains(t, r.Error, "the host leads to a network that may not be reached (--webhook-allow)", host)
		require.NotRegexp(t, `\d+\.\d+\.\d+\.\d+|::`, r.Error, "the run's error is read by whoever called")
		require.Len(t, r.Attempts, 1)
	}
	require.Empty(t, to.all())
}

// TestBuiltInExecutor: it is shown as what it is, and is nobody's to make or join.
func TestBuiltInExecutor(t *testing.T) {
	t.Parallel()
	n := startNode(t, nil)
	n.do(http.MethodPost, "/api/v1/executors", map[string]any{"name": "carillon"}, nil, 422)
	n.allowCallbacks(nil, "*")
	var list struct {
		Items []struct {
			ID, Name, Kind  string
			InstancesOnline int
		}
	}
	n.do(http.MethodGet, "/api/v1/executors", nil, &list, 200)
	require.Len(t, list.Items, 1)
	require.Equal(t, []any{"carillon", "built_in", 1}, []any{list.Items[0].Name, list.Items[0].Kind, list.Items[0].InstancesOnline})
	n.do(http.MethodPost, "/api/v1/executors/"+list.Items[0].ID+"/join-tokens", map[string]any{}, nil, 409)
}

// TestAReceiverThatHangsDelaysNobody: of 100 hosts one never answers. All runs for
// the others end while it holds no more than its own calls, and its runs are put
// off without an attempt.
func TestAReceiverThatHangsDelaysNobody(t *testing.T) {
	t.Parallel()
	const hosts, each, hanging, perHost = 100, 5, 100, 3
	n := startNode(t, nil)
	done := make(chan struct{})
	to := newReceiver(t, func(_ http.ResponseWriter, r *http.Request, _ int) {
		if strings.HasPrefix(r.Host, fmt.Sprintf("127.0.0.%d:", hanging)) {
			<-done
		}
	})
	defer close(done)
	n.allowCallbacks(map[string]any{"perHost": perHost, "maxTimeout": "10m"}, "*")
	job := n.callback("any host", map[string]any{"url": to.url(1, "/")}, map[string]any{"blocking": "parallel"})
	var stuck, others []string
	for range each * 4 {
		stuck = append(stuck, n.runNow(job, map[string]any{"url": to.url(hanging, "/"), "timeout": "10m"}))
	}
	for range each {
		for h := 1; h < hosts; h++ {
			others = append(others, n.runNow(job, map[string]any{"url": to.url(h, "/")}))
		}
	}
	for _, id := range others {
		n.until(id, "succeeded")
	}
	for h := 1; h < hosts; h++ {
		calls, most := to.of(fmt.Sprintf("127.0.0.%d", h))
		require.Equal(t, each, calls)
		require.LessOrEqual(t, most, perHost)
	}
	calls, most := to.of(fmt.Sprintf("127.0.0.%d", hanging))
	require.Equal(t, []int{perHost, perHost}, []int{calls, most})
	states := map[string]int{}
	n.eventually(func() bool { // the last of them may be on their way
		clear(states)
		for _, id := range stuck {
			var r run
			n.do(http.MethodGet, "/api/v1/runs/"+id, nil, &r, 200)
			if r.State == "running" {
				states["running"]++
			} else {
				states[r.State+" "+r.Reason]++
			}
		}
		return states["running"] == perHost && states["retry_wait snoozed"] > 0
	}, func() string { return fmt.Sprint(states) })
}

// TestCronWithCallback is a cron definition with a callback: it is made, updated,
// disabled and enabled with effect within a second, and deleted, and then another one
// has its name. No call comes before its time.
func TestCronWithCallback(t *testing.T) {
	t.Parallel()
	n := startNode(t, nil)
	to := newReceiver(t, func(http.ResponseWriter, *http.Request, int) {})
	n.allowCallbacks(nil, "127.0.0.1")
	// fires counts those of a path that were planned for later than so.
	fires := func(path string, after time.Time) (count int) {
		for _, g := range to.all() {
			if g.path == path && g.planned(t).After(after) {
				count++
			}
		}
		return count
	}
	more := func(path string, after time.Time) {
		t.Helper()
		n.eventually(func() bool { return fires(path, after) >= 3 }, func() string { return path + " does not fire" })
	}
	everySecond := map[string]any{"kind": "cron", "expr": "* * * * * *", "dialect": "seconds", "zone": "UTC"}
	define := func(name, path string) string {
		return n.callback(name, map[string]any{"url": to.url(1, path)}, map[string]any{"schedule": everySecond})
	}
	define("control", "/control")
	job := define("bill the customers", "/bill")
	more("/bill", time.Time{})
	endedOf := func(path string) time.Time {
		t.Helper()
		second := time.Now().Add(time.Second)
		more("/control", second)
		require.Zero(t, fires(path, second))
		return second
	}
	ended := func() time.Time { t.Helper(); return endedOf("/bill") }
	n.do(http.MethodPost, "/api/v1/jobs/"+job+"/pause", map[string]any{}, nil, 200)
	disabled := ended()
	n.do(http.MethodPost, "/api/v1/jobs/"+job+"/resume", map[string]any{}, nil, 200)
	more("/bill", disabled)
	definition, err := json.Marshal(map[string]any{
		"name": "bill the customers", "executor": map[string]any{"name": "carillon"}, "handler": "http", "schedule": everySecond,
		"input": map[string]any{"url": to.url(1, "/bill-updated")},
	})
	require.NoError(t, err)
	n.replace("/api/v1/jobs/"+job, string(definition))
	more("/bill-updated", ended())
	n.do(http.MethodDelete, "/api/v1/jobs/"+job, nil, nil, 204)
	endedOf("/bill-updated")
	define("bill the customers", "/bill-again")
	more("/bill-again", time.Time{})
	for _, g := range to.all() {
		require.False(t, g.at.Before(g.planned(t)), "planned for %s, came at %s", g.planned(t), g.at)
	}
}

// startProcess is startNode in a process of its own, which kill ends without warning.
func startProcess(t *testing.T, dir string) (n *node, kill func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env, cmd.Stderr = append(os.Environ(), victimEnv+"="+dir), os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	says, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	kill = sync.OnceFunc(func() { _ = cmd.Process.Kill(); _ = cmd.Wait(); _ = in.Close() })
	t.Cleanup(kill)
	var said victimSays
	require.NoError(t, json.NewDecoder(bufio.NewReader(says)).Decode(&said))
	n = &node{t: t, url: said.URL, dir: dir}
	n.login()
	return n, kill
}

// TestANodeGoesWhileItCalls: the node that comes after it knows that the call was
// out, whether the node before it was killed or stopped, and repeats it with the
// same key, unless the job says otherwise.
func TestANodeGoesWhileItCalls(t *testing.T) {
	t.Parallel()
	arrived, done := make(chan struct{}, 8), make(chan struct{})
	to := newReceiver(t, func(_ http.ResponseWriter, _ *http.Request, nth int) {
		if nth == 1 {
			arrived <- struct{}{}
			<-done
		}
	})
	defer close(done)
	dir := t.TempDir()
	first, kill := startProcess(t, dir)
	first.allowCallbacks(nil, "127.0.0.1")
	ids, want := map[string]string{}, map[string]int{}
	for onLost, calls := range map[string]int{"fail": 1, "retry": 2, "auto": 2} {
		job := first.callback(onLost, map[string]any{"url": to.url(1, "/")}, map[string]any{"onLost": onLost})
		ids[onLost] = first.runNow(job, nil)
		<-arrived
		want[ids[onLost]] = calls
	}
	timer := func(n *node, key string) {
		n.do(http.MethodPost, "/api/v1/timers", map[string]any{
			"executor": "carillon", "handler": "http", "key": key, "after": "1ms", "input": map[string]any{"url": to.url(1, "/"), "timeout": "30s"},
		}, nil, 201)
		<-arrived
	}
	timer(first, "killed")
	kill()

	again := func(c *admin.Config) { c.DataDir = dir }
	second := startNode(t, again)
	second.until(ids["fail"], "lost")
	second.until(ids["retry"], "succeeded")
	second.until(ids["auto"], "succeeded")
	timer(second, "stopped")
	second.stop()

	third := startNode(t, again)
	for _, key := range []string{"killed", "stopped"} {
		var r struct{ State, Reason, Run string }
		third.eventually(func() bool {
			third.do(http.MethodGet, "/api/v1/timers/carillon/http/"+key, nil, &r, 200)
			return r.State == "succeeded"
		}, func() string { return fmt.Sprintf("the timer %q is %s (%s)", key, r.State, r.Reason) })
		want[r.Run] = 2
	}
	keys := map[string]int{}
	for _, g := range to.all() {
		keys[g.header.Get("Idempotency-Key")]++
	}
	require.Equal(t, want, keys)
}
