package admin_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin"
	executor "github.com/carillon-sched/carillon/executor-sdk"
)

// executorID returns the id of an executor by its name.
func (n *node) executorID(name string) string {
	n.t.Helper()
	var list struct {
		Items []struct{ ID, Name string }
	}
	n.do(http.MethodGet, "/api/v1/executors", nil, &list, 200)
	for _, e := range list.Items {
		if e.Name == name {
			return e.ID
		}
	}
	n.t.Fatalf("there is no executor %s", name)
	return ""
}

// patch edits an object, whatever its version.
func (n *node) patch(path string, body any) {
	n.t.Helper()
	raw, err := json.Marshal(body)
	require.NoError(n.t, err)
	req, err := http.NewRequestWithContext(n.t.Context(), http.MethodPatch, n.url+path, bytes.NewReader(raw))
	require.NoError(n.t, err)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+n.token)
	req.Header.Set("If-Match", "*")
	res, err := http.DefaultClient.Do(req)
	require.NoError(n.t, err)
	require.NoError(n.t, res.Body.Close())
	require.Equal(n.t, 200, res.StatusCode)
}

// A disabled executor starts nothing and keeps what runs; enabled, it goes on by itself,
// its processes under the name that they know too.
func TestDisabledExecutor(t *testing.T) {
	t.Parallel()
	for name, database := range databases {
		t.Run(name, func(t *testing.T) { testDisabledExecutor(t, database) })
	}
}

// An executor is enabled and disabled again at once. Each job is resumed between the two, so
// that its fire times have rows. Runs that are due at the disabling are not missed.
func TestEnabledForAMoment(t *testing.T) {
	t.Parallel()
	n := startNode(t, nil)
	n.startExecutor("shop", nil, func(ex *executor.Executor) {
		executor.HandleFunc(ex, "tick", func(context.Context) error { return nil })
	})
	path := "/api/v1/executors/" + n.executorID("shop")
	jobs := make([]string, 20)
	for i := range jobs {
		jobs[i] = n.newJob("shop", "tick", map[string]any{"name": fmt.Sprint("tick-", i), "schedule": map[string]any{"kind": "fixed_rate", "every": "1s", "zone": "UTC"}})
	}
	states := func(job string) (out []string) {
		var list struct{ Items []struct{ State string } }
		n.do(http.MethodGet, "/api/v1/jobs/"+job+"/events", nil, &list, 200)
		for _, e := range list.Items {
			out = append(out, e.State)
		}
		return out
	}
	come := func(want int, state string) {
		t.Helper()
		for _, job := range jobs {
			n.eventually(func() bool { s := states(job); return len(s) >= want && s[0] == state }, func() string { return fmt.Sprint(states(job)) })
		}
	}
	n.do(http.MethodPost, path+"/disable", nil, nil, 200)
	come(2, "paused")
	n.do(http.MethodPost, path+"/enable", nil, nil, 200)
	n.do(http.MethodPost, path+"/disable", nil, nil, 200)
	come(4, "paused")
	for _, job := range jobs {
		require.Equal(t, []string{"paused", "enabled", "paused", "enabled"}, states(job))
	}
	n.do(http.MethodPost, path+"/enable", nil, nil, 200)
	come(5, "enabled")
	var missed struct{ Items []struct{ Reason string } }
	n.do(http.MethodGet, "/api/v1/runs?state=missed", nil, &missed, 200)
	for _, r := range missed.Items {
		require.NotEqual(t, "paused", r.Reason)
	}
}

func testDisabledExecutor(t *testing.T, database func(*testing.T, string) string) {
	n := startNode(t, func(c *admin.Config) { c.Database = database(t, c.DataDir) })
	started, release := make(chan struct{}, 1), make(chan struct{})
	n.startExecutor("shop", nil, func(ex *executor.Executor) {
		executor.HandleFunc(ex, "long", func(context.Context) error { started <- struct{}{}; <-release; return nil })
		executor.HandleFunc(ex, "tick", func(context.Context) error { return nil })
	})
	id := n.executorID("shop")
	path := "/api/v1/executors/" + id
	long, tick := n.newJob("shop", "long", nil), n.newJob("shop", "tick", map[string]any{"schedule": map[string]any{"kind": "fixed_rate", "every": "1s", "zone": "UTC"}})
	running := n.runNow(long, nil)
	<-started

	n.do(http.MethodPost, path+"/disable", map[string]any{"note": "moving"}, nil, 200)
	var problem struct{ Code, Detail string }
	n.do(http.MethodPost, "/api/v1/jobs/"+long+"/run", map[string]any{}, &problem, 409)
	require.Equal(t, "executor_disabled", problem.Code)
	var job struct{ State, PauseNote string }
	jobIs := func(state string) func() bool {
		return func() bool {
			n.do(http.MethodGet, "/api/v1/jobs/"+tick, nil, &job, 200)
			return job.State == state
		}
	}
	n.eventually(jobIs("paused"), func() string { return "the job is " + job.State })
	require.Equal(t, "the executor is disabled: moving", job.PauseNote)
	n.do(http.MethodPost, "/api/v1/jobs/"+tick+"/resume", nil, &problem, 409)
	require.Equal(t, "executor_disabled", problem.Code)
	var e struct {
		State           string
		InstancesOnline int
		Name            string
	}
	n.do(http.MethodGet, path, nil, &e, 200)
	require.Equal(t, []any{"disabled", 1}, []any{e.State, e.InstancesOnline}, "it runs something")
	close(release)
	n.until(running, "succeeded")
	online := func(want int) func() bool {
		return func() bool {
			n.do(http.MethodGet, path, nil, &e, 200)
			return e.InstancesOnline == want
		}
	}
	n.eventually(online(0), func() string { return "the session of the idle process does not end" })

	// It comes back by its former name.
	n.patch(path, map[string]any{"name": "store"})
	n.do(http.MethodPost, path+"/enable", nil, nil, 200)
	n.eventually(online(1), func() string { return "the process does not come back" })
	n.eventually(jobIs("enabled"), func() string { return "the job is " + job.State })
	require.Empty(t, job.PauseNote)
	n.until(n.runNow(tick, nil), "succeeded")
	require.Equal(t, "store", e.Name)
}
