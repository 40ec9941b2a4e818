package admin_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin"
	executor "github.com/carillon-sched/carillon/executor-sdk"
	"github.com/carillon-sched/carillon/executor-sdk/callback"
	"github.com/carillon-sched/carillon/executor-sdk/jobs"
	sdkproxy "github.com/carillon-sched/carillon/executor-sdk/proxy"
)

// refusals are the reasons why jobs of an application are not taken, by their names.
func refusals(ex *executor.Executor) map[string]string {
	out := map[string]string{}
	if refused, is := errors.AsType[*executor.RefusedError](ex.Health()); is {
		for _, d := range refused.Declarations {
			out[d.Job] = d.Code + ": " + d.Reason
		}
	}
	return out
}

// Code names a handler of another executor, and an address, within the permission of its executor
// and the policy of the tenant.
func TestDeclaredCallbackKinds(t *testing.T) {
	t.Parallel()
	for database := range databases {
		t.Run(database, func(t *testing.T) {
			n := startNode(t, func(c *admin.Config) { c.Database = databases[database](t, c.DataDir) })
			heard := make(chan executor.Ended, 100)
			n.startExecutor("billing", nil, func(ex *executor.Executor) {
				executor.HandleEnd(ex, "booked", func(_ context.Context, run executor.Ended) error {
					heard <- run
					return nil
				})
			})
			to := newReceiver(t, func(http.ResponseWriter, *http.Request, int) {})
			n.allowCallbacks(nil, "127.0.0.1")
			declare := func(version string, more ...executor.HandlerOption) *executor.Executor {
				return n.startExecutor("shop", func(c *executor.Config) { c.Version = version }, func(ex *executor.Executor) {
					executor.Handle(ex, "work", func(_ context.Context, in greeting) (reply, error) {
						if in.Name == "" {
							return reply{}, executor.Permanent(errors.New("no name"))
						}
						return reply{"hello " + in.Name}, nil
					}, append(more, executor.OwnedBy(executor.ByCode),
						executor.OnSuccess(callback.HandlerOf("billing", "booked")),
						executor.OnFailure(callback.URL(to.url(1, "/failed")).Within(5*time.Second).Header("X-Job", "{{input.job}}")))...)
				})
			}

			// The code reaches its own executor alone until a person allows more.
			ex := declare("1.0.0")
			n.eventually(func() bool { return len(refusals(ex)) > 0 }, func() string { return fmt.Sprint(ex.Health()) })
			require.Contains(t, refusals(ex)["work"], `permission_denied: job.onSuccess: the code of the executor shop may not use the executor billing for callbacks; `+
				`allow it with: carillon executor callbacks shop billing`)
			n.patch("/api/v1/executors/"+n.executorID("shop"), map[string]any{"callbacksTo": []string{"billing"}})
			var shown struct {
				CallbacksTo         []string
				RefusedDeclarations []struct{ Job, Message string }
			}
			get := func() { n.do(http.MethodGet, "/api/v1/executors/"+n.executorID("shop"), nil, &shown, 200) }
			get()
			require.Equal(t, []string{"billing"}, shown.CallbacksTo)
			require.Contains(t, shown.RefusedDeclarations[0].Message, "job.onFailure: the code of the executor shop may not use the executor carillon")
			n.patch("/api/v1/executors/"+n.executorID("shop"), map[string]any{"callbacksTo": []string{"carillon", "billing"}})
			get()
			require.Empty(t, shown.RefusedDeclarations, "the job is taken at once")

			job := n.jobNamed("work")
			var spec struct{ OnSuccess, OnFailure map[string]any }
			n.do(http.MethodGet, "/api/v1/jobs/"+job, nil, &spec, 200)
			require.Equal(t, "billing", spec.OnSuccess["executor"].(map[string]any)["name"])
			require.Equal(t, map[string]any{"url": to.url(1, "/failed"), "timeout": "5s", "headers": map[string]any{"X-Job": "{{input.job}}"}}, spec.OnFailure)
			good := n.until(n.runNow(job, greeting{"Mei"}), "succeeded")
			require.Equal(t, good.ID, fmt.Sprint((<-heard).RunID))
			bad := n.until(n.runNow(job, greeting{}), "failed")
			n.untilCallback("callback:carillon/http", "succeeded")
			var end struct{ RunID string }
			require.NoError(t, json.Unmarshal([]byte(to.all()[0].body), &end))
			require.Equal(t, []string{bad.ID, "work"}, []string{end.RunID, to.all()[0].header.Get("X-Job")})

			// Without its permission a stored callback stays, and a new one is refused.
			n.patch("/api/v1/executors/"+n.executorID("shop"), map[string]any{"callbacksTo": []string{}})
			ex = declare("2.0.0", executor.Timeout(time.Minute))
			require.Empty(t, refusals(ex))
			n.eventually(func() bool {
				var now struct{ Timeout string }
				n.do(http.MethodGet, "/api/v1/jobs/"+job, nil, &now, 200)
				return now.Timeout == "1m0s" || now.Timeout == "1m"
			}, func() string { return fmt.Sprint(ex.Health()) })
		})
	}
}

// A declared callback has the rules of the API: the policy of the tenant, and executors,
// handlers and connections that exist.
func TestDeclaredCallbacksThatAreRefused(t *testing.T) {
	t.Parallel()
	n := startNode(t, nil)
	n.startExecutor("billing", nil, func(ex *executor.Executor) {
		executor.HandleEnd(ex, "booked", func(context.Context, executor.Ended) error { return nil })
	})
	n.allowCallbacks(map[string]any{"maxTimeout": "5s"}, "api.example.com")
	n.startExecutor("shop", nil, func(ex *executor.Executor) {
		executor.HandleFunc(ex, "fine", func(context.Context) error { return nil })
	})
	n.patch("/api/v1/executors/"+n.executorID("shop"), map[string]any{"callbacksTo": []string{"billing", "carillon", "later"}})
	wrong := map[string]struct {
		to   callback.Callback
		want string
	}{
		"host":       {callback.URL("https://other.example.com/x"), "job.onSuccess: "},
		"timeout":    {callback.URL("https://api.example.com/x").Within(time.Minute), "job.onSuccess: "},
		"template":   {callback.URL("https://api.example.com/{{input.nothing}}"), "job.onSuccess: "},
		"header":     {callback.URL("https://api.example.com/x").Header("Host", "a"), "job.onSuccess: "},
		"connection": {callback.Message("nowhere", callback.Target{Topic: "t"}), "not_found: job.onSuccess.connection: there is no such connection"},
		"executor":   {callback.HandlerOf("later", "booked"), "not_found: job.onSuccess.executor.name: there is no such executor"},
		"hidden":     {callback.HandlerOf("secret", "booked"), "permission_denied: job.onSuccess: the code of the executor shop may not use the executor secret"},
		"handler":    {callback.HandlerOf("billing", "bookd"), `unknown_handler: job.onSuccess.handler: no instance of the executor "billing" has registered a handler "bookd"`},
		"built-in":   {callback.HandlerOf("carillon", "http"), "use url or connection"},
		"own":        {callback.HandlerOf("shop", "missing"), `unknown_handler: job.onSuccess: the executor has no handler "missing"`},
	}
	ex := n.startExecutor("shop", func(c *executor.Config) { c.Version = "2.0.0" }, func(ex *executor.Executor) {
		for name, c := range wrong {
			executor.HandleFunc(ex, "on-"+name, func(context.Context) error { return nil }, executor.Job(name, executor.OnSuccess(c.to)))
		}
		executor.HandleEnd(ex, "told", func(context.Context, executor.Ended) error { return nil })
		executor.HandleFunc(ex, "fine", func(context.Context) error { return nil }, executor.Job("fine", executor.OnSuccess(callback.HandlerOf("shop", "told"))))
		executor.HandleFunc(ex, "asked", func(context.Context) error { return nil },
			executor.Job("asked", executor.OwnedBy(executor.ProposeOnly), executor.OnSuccess(callback.HandlerOf("billing", "booked"))))
	})
	n.eventually(func() bool { return len(refusals(ex)) == len(wrong) }, func() string { return fmt.Sprint(ex.Health()) })
	for name, c := range wrong {
		require.Contains(t, refusals(ex)[name], c.want, name)
	}
	var fine struct{ OnSuccess string }
	n.do(http.MethodGet, "/api/v1/jobs/"+n.jobNamed("fine"), nil, &fine, 200)
	require.Equal(t, "told", fine.OnSuccess, "a handler of the own executor by its name")

	// A person sees the name of the executor in a proposal, and accepts it.
	type proposal struct {
		ID       string
		Proposed struct{ OnSuccess callbackShown }
	}
	var list struct{ Items []proposal }
	n.do(http.MethodGet, "/api/v1/job-proposals", nil, &list, 200)
	require.Equal(t, callbackShown{"booked", struct{ Name string }{"billing"}}, list.Items[0].Proposed.OnSuccess)
	var one proposal
	n.do(http.MethodGet, "/api/v1/job-proposals/"+list.Items[0].ID, nil, &one, 200)
	require.Equal(t, list.Items[0], one)
	var asked struct{ OnSuccess callbackShown }
	n.do(http.MethodPost, "/api/v1/job-proposals/"+one.ID+"/accept", nil, &asked, 200)
	require.Equal(t, one.Proposed.OnSuccess, asked.OnSuccess)
}

type callbackShown struct {
	Handler  string
	Executor struct{ Name string }
}

// Package jobs writes and reads all kinds of callbacks, within the executors of its key.
func TestTheSDKManagesCallbacks(t *testing.T) {
	t.Parallel()
	n := startNode(t, nil)
	n.shopAndBilling()
	n.allowCallbacks(nil, "api.example.com")
	shop := func(executors ...string) jobs.Jobs {
		var key struct{ Secret string }
		n.do(http.MethodPost, "/api/v1/api-keys", map[string]any{"name": fmt.Sprint(executors), "role": "manager", "executors": executors}, &key, 201)
		c, err := sdkproxy.New(sdkproxy.Config{URL: n.admin.URL(), Key: key.Secret})
		require.NoError(t, err)
		return jobs.New(c, "shop")
	}
	kinds := map[string]jobs.Spec{
		"none":    {},
		"own":     {OnFailure: callback.Handler("work")},
		"another": {OnSuccess: callback.HandlerOf("billing", "booked")},
		"address": {OnSuccess: callback.URL("https://api.example.com/x").Within(3*time.Second).Header("X-Team", "pay"), OnFailure: callback.URL("https://api.example.com/y")},
	}
	all, bound := shop("shop", "billing", "carillon"), shop("shop")
	for name, spec := range kinds {
		spec.Handler = "work"
		made, err := all.Put(t.Context(), name, spec)
		require.NoError(t, err, name)
		again, err := all.Put(t.Context(), name, spec)
		require.NoError(t, err, name)
		require.Equal(t, made.Revision, again.Revision, name)
		got, err := all.Get(t.Context(), name)
		require.NoError(t, err)
		require.Equal(t, []callback.Callback{spec.OnSuccess, spec.OnFailure}, []callback.Callback{got.OnSuccess, got.OnFailure}, name)
	}
	for j, err := range all.List(t.Context(), jobs.Filter{}) {
		require.NoError(t, err)
		require.Equal(t, kinds[j.Name].OnSuccess, j.OnSuccess, j.Name)
	}
	_, err := bound.Put(t.Context(), "more", jobs.Spec{Handler: "work", OnSuccess: kinds["address"].OnSuccess})
	require.ErrorIs(t, err, jobs.ErrDenied)
	_, err = bound.Put(t.Context(), "more", jobs.Spec{Handler: "work", OnSuccess: kinds["another"].OnSuccess})
	require.ErrorContains(t, err, "body.onSuccess.executor.name: there is no such executor")
	_, err = bound.Put(t.Context(), "more", jobs.Spec{Handler: "work", OnSuccess: callback.Callback{Executor: "billing"}})
	require.ErrorContains(t, err, "OnSuccess: the callback needs a Handler")
}
