package admin_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin"
	executor "github.com/carillon-sched/carillon/executor-sdk"
	"github.com/carillon-sched/carillon/internal/httpcall"
)

// shopAndBilling are two applications. work succeeds unless its input says otherwise, and billing
// tells what it hears of.
func (n *node) shopAndBilling() <-chan executor.Ended {
	n.t.Helper()
	heard := make(chan executor.Ended, 100)
	n.startExecutor("shop", nil, func(ex *executor.Executor) {
		executor.Handle(ex, "work", func(_ context.Context, in greeting) (reply, error) {
			if in.Name == "" {
				return reply{}, executor.Permanent(errors.New("no name"))
			}
			return reply{"hello " + in.Name}, nil
		})
	})
	n.startExecutor("billing", nil, func(ex *executor.Executor) {
		executor.HandleEnd(ex, "booked", func(_ context.Context, run executor.Ended) error {
			heard <- run
			return nil
		})
	})
	return heard
}

// callbackRuns are the runs of a handler of the built-in executor as a callback.
func (n *node) callbackRuns(name string) []run {
	n.t.Helper()
	var jobs struct{ Items []struct{ ID, Name string } }
	n.do(http.MethodGet, "/api/v1/jobs?kind=callback", nil, &jobs, 200)
	for _, j := range jobs.Items {
		if j.Name == name {
			return n.runsOf(j.ID)
		}
	}
	return nil
}

func (n *node) untilCallback(name, state string) run {
	n.t.Helper()
	var last []run
	n.eventually(func() bool {
		last = n.callbackRuns(name)
		return len(last) > 0 && last[0].State == state
	}, func() string { return fmt.Sprintf("callbacks of %s: %+v", name, last) })
	var r run
	n.do(http.MethodGet, "/api/v1/runs/"+last[0].ID, nil, &r, 200)
	return r
}

func TestCallbackKinds(t *testing.T) {
	t.Parallel()
	for database := range databases {
		t.Run(database, func(t *testing.T) {
			n := startNode(t, func(c *admin.Config) {
				c.Database = databases[database](t, c.DataDir)
			})
			heard := n.shopAndBilling()
			to := newReceiver(t, func(w http.ResponseWriter, r *http.Request, nth int) {
				if r.URL.Path == "/flaky" && nth == 1 {
					w.WriteHeader(http.StatusServiceUnavailable)
				}
			})
			n.allowCallbacks(nil, "127.0.0.1")

			// A handler of another executor, and an address.
			job := n.newJob("shop", "work", map[string]any{
				"name":      "close",
				"onSuccess": map[string]any{"handler": "booked", "executor": map[string]any{"name": "billing"}},
				"onFailure": map[string]any{"url": to.url(1, "/flaky"), "timeout": "5s", "headers": map[string]string{"X-Job": "{{input.job}}"}},
			})
			var shown struct{ OnSuccess, OnFailure map[string]any }
			n.do(http.MethodGet, "/api/v1/jobs/"+job, nil, &shown, 200)
			require.Equal(t, map[string]any{"id": n.executorID("billing"), "name": "billing"}, shown.OnSuccess["executor"])
			require.Equal(t, map[string]any{"url": to.url(1, "/flaky"), "timeout": "5s", "headers": map[string]any{"X-Job": "{{input.job}}"}}, shown.OnFailure)
			good := n.until(n.runNow(job, greeting{"Mei"}), "succeeded")
			e := <-heard
			require.Equal(t, []string{good.ID, "close", "succeeded"}, []string{fmt.Sprint(e.RunID), e.Job, e.State})
			require.Equal(t, "parent", n.untilCallback("callback:billing/booked", "succeeded").Cause)
			bad := n.until(n.runNow(job, greeting{}), "failed")
			r := n.untilCallback("callback:carillon/http", "succeeded")
			require.Len(t, r.Attempts, 2, "the receiver answered 503 first")
			got := to.all()[len(to.all())-1]
			var end struct{ RunID, Job, State, Error string }
			require.NoError(t, json.Unmarshal([]byte(got.body), &end))
			require.Equal(t, []string{bad.ID, "close", "failed", "no name"}, []string{end.RunID, end.Job, end.State, end.Error})
			require.Equal(t, []string{"application/json", "close", r.ID}, []string{got.header.Get("Content-Type"), got.header.Get("X-Job"), got.header.Get("Idempotency-Key")})
			require.NotEmpty(t, got.header.Get(httpcall.HeaderSignature))
			require.Empty(t, got.header.Get("Carillon-Trial"))

			// What callbacks need is not deleted, and has its name after a change.
			var refused struct{ Detail string }
			n.do(http.MethodDelete, "/api/v1/executors/"+n.executorID("billing")+"?jobs=delete&instances=end", nil, &refused, 409)
			require.Contains(t, refused.Detail, "jobs of other executors have callbacks to the executor \"billing\" (1)")
			n.patch("/api/v1/executors/"+n.executorID("billing"), map[string]any{"name": "accounts"})
			n.do(http.MethodGet, "/api/v1/jobs/by-name/close", nil, &shown, 200)
			require.Equal(t, "accounts", shown.OnSuccess["executor"].(map[string]any)["name"])

			// As documents: what export writes, apply takes without a change.
			var page struct{ Items []map[string]any }
			n.do(http.MethodGet, "/api/v1/job-documents", nil, &page, 200)
			documents := []any{}
			for _, d := range page.Items {
				documents = append(documents, map[string]any{"apiVersion": d["apiVersion"], "kind": d["kind"], "name": d["name"], "spec": d["spec"]})
				require.Equal(t, map[string]any{"handler": "booked", "executor": map[string]any{"name": "accounts"}}, d["spec"].(map[string]any)["onSuccess"])
			}
			var plan struct{ Items []struct{ Action string } }
			n.do(http.MethodPost, "/api/v1/plan", map[string]any{"documents": documents}, &plan, 200)
			for _, item := range plan.Items {
				require.Equal(t, "same", item.Action)
			}
		})
	}
}

// TestCallbackAttacks: addresses that callbacks must not reach, and receivers that harm.
func TestCallbackAttacks(t *testing.T) {
	t.Parallel()
	n := startNode(t, nil)
	n.shopAndBilling()
	hang := make(chan struct{})
	t.Cleanup(func() { close(hang) })
	to := newReceiver(t, func(w http.ResponseWriter, r *http.Request, _ int) {
		switch r.URL.Path {
		case "/away":
			http.Redirect(w, r, "http://169.254.169.254/latest/meta-data", http.StatusTemporaryRedirect)
		case "/large":
			_, _ = w.Write([]byte(strings.Repeat("x", 5<<20)))
		case "/never":
			select {
			case <-hang:
			case <-r.Context().Done():
			}
		}
	})
	n.allowCallbacks(map[string]any{"maxTimeout": "1s"}, "*")
	ends := func(url string, state string) run {
		t.Helper()
		job := n.newJob("shop", "work", map[string]any{"name": url, "onSuccess": map[string]any{"url": url}})
		before := len(n.callbackRuns("callback:carillon/http"))
		n.until(n.runNow(job, greeting{"Mei"}), "succeeded")
		n.eventually(func() bool { return len(n.callbackRuns("callback:carillon/http")) > before }, func() string { return "no callback of " + url })
		return n.until(n.callbackRuns("callback:carillon/http")[0].ID, state)
	}
	r := ends("http://10.0.0.1/", "failed")
	require.Contains(t, r.Error, "the host leads to a network that may not be reached")
	require.Len(t, r.Attempts, 1)
	r = ends(to.url(1, "/away"), "failed")
	require.Contains(t, r.Error, "the answer is 307")
	r = ends(to.url(1, "/large"), "succeeded")
	require.Less(t, len(r.Output), 70_000)
	r = ends(to.url(1, "/never"), "retry_wait")
	n.do(http.MethodPost, "/api/v1/runs/"+r.ID+"/cancel", map[string]any{}, nil, 202)

	// A callback's job takes no callback, so that nothing follows itself.
	var looped struct {
		Errors []struct{ Location, Message string }
	}
	own := n.jobNamed("callback:carillon/http")
	var spec map[string]any
	n.do(http.MethodGet, "/api/v1/jobs/"+own, nil, &spec, 200)
	body := map[string]any{"onSuccess": map[string]any{"url": to.url(1, "/again")}}
	for _, field := range []string{"name", "executor", "handler", "schedule"} {
		body[field] = spec[field]
	}
	require.Equal(t, 422, n.put("/api/v1/jobs/"+own, body, &looped))
	require.Contains(t, looped.Errors[0].Message, "no callback follows a callback")
	require.False(t, slices.ContainsFunc(to.all(), func(g received) bool { return g.path == "/again" }))
}

// put replaces an object, whatever its version, and returns the status.
func (n *node) put(path string, in, out any) int {
	n.t.Helper()
	raw, err := json.Marshal(in)
	require.NoError(n.t, err)
	req, err := http.NewRequestWithContext(n.t.Context(), http.MethodPut, n.url+path, strings.NewReader(string(raw)))
	require.NoError(n.t, err)
	for name, value := range map[string]string{"Content-Type": "application/json", "Authorization": "Bearer " + n.token, "If-Match": "*"} {
		req.Header.Set(name, value)
	}
	res, err := http.DefaultClient.Do(req)
	require.NoError(n.t, err)
	defer res.Body.Close()
	require.NoError(n.t, json.NewDecoder(res.Body).Decode(out))
	return res.StatusCode
}

// TestTryCallback tries each kind of callback before a job has it.
func TestTryCallback(t *testing.T) {
	t.Parallel()
	n := startNode(t, nil)
	n.shopAndBilling()
	hang := make(chan struct{})
	t.Cleanup(func() { close(hang) })
	to := newReceiver(t, func(w http.ResponseWriter, r *http.Request, _ int) {
		switch r.URL.Path {
		case "/large":
			_, _ = w.Write([]byte(strings.Repeat("x", 5<<20)))
		case "/away":
			http.Redirect(w, r, "http://10.0.0.1/", http.StatusFound)
		case "/never":
			select {
			case <-hang:
			case <-r.Context().Done():
			}
		default:
			_, _ = w.Write([]byte("welcome"))
		}
	})
	type trial struct {
		OK                  bool
		Kind, Message, Body string
		Timeout             string
		Status, Used        int
		Truncated           bool
		DurationMs          int64
	}
	try := func(callback any, more ...map[string]any) (out trial) {
		t.Helper()
		body := map[string]any{"callback": callback}
		for _, m := range more {
			maps.Copy(body, m)
		}
		n.do(http.MethodPost, "/api/v1/callbacks/try", body, &out, 200)
		return out
	}
	at := func(path string) map[string]any { return map[string]any{"url": to.url(1, path), "timeout": "1s"} }
	n.do(http.MethodPost, "/api/v1/callbacks/try", map[string]any{"callback": at("/")}, nil, 403)
	n.allowCallbacks(nil, "127.0.0.1")
	got := try(at("/"))
	require.Equal(t, []any{true, "url", 200, "welcome", "1s"}, []any{got.OK, got.Kind, got.Status, got.Body, got.Timeout})
	call := to.all()[0]
	require.Equal(t, "true", call.header.Get("Carillon-Trial"))
	require.NotEmpty(t, call.header.Get(httpcall.HeaderSignature))
	require.Contains(t, call.body, `"trial":true`)
	n.do(http.MethodPost, "/api/v1/callbacks/try", map[string]any{"callback": map[string]any{"url": to.url(2, "/")}}, nil, 422)
	got = try(at("/large"))
	require.Equal(t, []any{true, true, 1023}, []any{got.OK, got.Truncated, len(got.Body)})
	got = try(at("/away"))
	require.Equal(t, []any{false, 302}, []any{got.OK, got.Status})
	got = try(at("/never"))
	require.Equal(t, []any{false, 0, 100, "no answer within 1s"}, []any{got.OK, got.Status, got.Used, got.Message})
	require.Empty(t, n.callbackRuns("callback:carillon/http"), "a trial is no run")

	shop := map[string]any{"executor": map[string]any{"name": "shop"}}
	require.True(t, try("work", shop).OK)
	require.Contains(t, try("wrok", shop).Message, `did you mean "work"`)
	require.True(t, try(map[string]any{"handler": "booked", "executor": map[string]any{"name": "billing"}}).OK)
	n.do(http.MethodPost, "/api/v1/callbacks/try", map[string]any{"callback": "work"}, nil, 422)
}
