package admin_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	executor "github.com/carillon-sched/carillon/executor-sdk"
	"github.com/carillon-sched/carillon/executor-sdk/jobs"
	sdkproxy "github.com/carillon-sched/carillon/executor-sdk/proxy"
)

// Package jobs manages the jobs of one executor with an admin node, by a key that is bound to it.
func TestTheSDKManagesJobs(t *testing.T) {
	t.Parallel()
	n := startNode(t, nil)
	n.startExecutor("shop", nil, func(ex *executor.Executor) {
		executor.Handle(ex, "greet", func(_ context.Context, in greeting) (reply, error) { return reply{"hello " + in.Name}, nil })
	})
	n.startExecutor("bank", nil, func(ex *executor.Executor) {
		executor.HandleFunc(ex, "close", func(context.Context) error { return nil })
	})
	client := func(body map[string]any) *sdkproxy.Client {
		var key struct{ Secret string }
		n.do(http.MethodPost, "/api/v1/api-keys", body, &key, 201)
		c, err := sdkproxy.New(sdkproxy.Config{URL: n.admin.URL(), Key: key.Secret})
		require.NoError(t, err)
		return c
	}
	ctx := t.Context()
	app := client(map[string]any{"name": "shop", "role": "caller+timer+manager", "executors": []string{"shop"}})
	shop := jobs.New(app, "shop")
	spec := jobs.Spec{Handler: "greet", Input: greeting{"Mei"}, Schedule: jobs.Cron("0 8 * * MON", "Europe/Berlin"), Labels: map[string]string{"customer": "77"}, Timeout: time.Minute, Attempts: 2}
	const name = "report/77 ä"
	made, err := shop.Put(ctx, name, spec)
	require.NoError(t, err)
	require.Equal(t, "shop", made.Executor)
	require.False(t, made.NextFireAt.IsZero())
	same, err := shop.Put(ctx, name, spec)
	require.NoError(t, err)
	require.Equal(t, made.Revision, same.Revision, "nothing differs")
	spec.Schedule = jobs.Every(time.Hour)
	changed, err := shop.Put(ctx, name, spec)
	require.NoError(t, err)
	require.Equal(t, made.ID, changed.ID)
	require.Greater(t, changed.Revision, made.Revision)
	same, err = shop.Put(ctx, name, spec)
	require.NoError(t, err)
	require.Equal(t, changed.Revision, same.Revision, "a fixed rate keeps its anchor")

	require.NoError(t, shop.Pause(ctx, name, "the customer asked for it"))
	paused, err := shop.Get(ctx, name)
	require.NoError(t, err)
	require.True(t, paused.Paused)
	require.Equal(t, "the customer asked for it", paused.PauseNote)
	require.NoError(t, shop.Resume(ctx, name))

	run, err := shop.Run(ctx, name, jobs.Input(greeting{"Bo"}), jobs.Key("once"))
	require.NoError(t, err)
	again, err := shop.Run(ctx, name, jobs.Input(greeting{"Bo"}), jobs.Key("once"))
	require.NoError(t, err)
	require.Equal(t, run.ID, again.ID)
	var result *jobs.Result
	n.eventually(func() bool {
		result, err = shop.Result(ctx, run.ID)
		return err == nil && result.Ended()
	}, func() string { return "the run does not end" })
	require.Equal(t, "succeeded", result.State)
	require.JSONEq(t, `{"text":"hello Bo"}`, string(result.Output))
	var results []string
	for r, err := range shop.Results(ctx, name) {
		require.NoError(t, err)
		results = append(results, r.ID)
	}
	require.Equal(t, []string{run.ID}, results)

	// Nothing of another executor is seen, changed or taken.
	all := client(map[string]any{"name": "all", "role": "manager"})
	bank := jobs.New(all, "bank")
	_, err = bank.Put(ctx, "secret", jobs.Spec{Handler: "close"})
	require.NoError(t, err)
	theirs, err := bank.Run(ctx, "secret")
	require.NoError(t, err)
	for what, ask := range map[string]func() error{
		"get": func() error { _, err := shop.Get(ctx, "secret"); return err }, "pause": func() error { return shop.Pause(ctx, "secret", "") },
		"run":    func() error { _, err := shop.Run(ctx, "secret"); return err },
		"result": func() error { _, err := shop.Result(ctx, theirs.ID); return err },
		"put there": func() error {
			_, err := jobs.New(app, "bank").Put(ctx, "mine", jobs.Spec{Handler: "close"})
			return err
		},
		"by another executor's name": func() error { _, err := jobs.New(all, "shop").Get(ctx, "secret"); return err },
	} {
		require.ErrorIs(t, ask(), jobs.ErrNotFound, what)
	}
	_, err = shop.Put(ctx, "secret", jobs.Spec{Handler: "greet"})
	require.ErrorIs(t, err, jobs.ErrTaken)
	refused, ok := errors.AsType[*jobs.RefusedError](jobs.New(client(map[string]any{"name": "reader", "role": "viewer", "executors": []string{"shop"}}), "shop").Pause(ctx, name, ""))
	require.True(t, ok)
	require.ErrorIs(t, refused, jobs.ErrDenied)
	require.Contains(t, refused.Detail, `it needs "operate"`)

	list := func(f jobs.Filter) (names []string) {
		for j, err := range shop.List(ctx, f) {
			require.NoError(t, err)
			names = append(names, j.Name)
		}
		return names
	}
	require.Equal(t, []string{name}, list(jobs.Filter{}))
	require.Equal(t, []string{name}, list(jobs.Filter{Label: "customer=77"}))
	require.Empty(t, list(jobs.Filter{Name: "other*"}))
	require.NoError(t, shop.Delete(ctx, name))
	require.NoError(t, shop.Delete(ctx, name), "it is deleted already")
	require.Empty(t, list(jobs.Filter{}))
}
