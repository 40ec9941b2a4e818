package api

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/api/callback"
	"github.com/carillon-sched/carillon/admin/internal/domain"
)

func withCallback(c any) func(map[string]any) {
	return func(b map[string]any) { b["onFailure"] = c }
}

func TestCallbackMistakes(t *testing.T) {
	w := newWorld(t)
	shop := w.executor("acme", "shop")
	w.executor("acme", "bank")
	for name, test := range map[string]struct {
		callback any
		status   int
		code     string
		location string
	}{
		"two kinds":             {map[string]any{"handler": "a", "url": "https://a.example"}, 422, "validation_failed", "body.onFailure"},
		"nothing but a timeout": {map[string]any{"timeout": "1s"}, 422, "validation_failed", "body.onFailure"},
		"a field that is none":  {map[string]any{"handler": "a", "queue": "q"}, 422, "validation_failed", "body.onFailure.queue"},
		"a number":              {7, 422, "validation_failed", "body.onFailure"},
		"no such executor":      {map[string]any{"handler": "a", "executor": map[string]any{"name": "nobody"}}, 422, "validation_failed", "body.onFailure.executor.name"},
		"callbacks are off":     {map[string]any{"url": "https://a.example"}, 403, "policy_refused", ""},
		"no connections here":   {map[string]any{"connection": map[string]any{"name": "x"}}, 422, "validation_failed", "body.onFailure.connection"},
	} {
		p := w.call("acme/editor", "POST", "/jobs", jobBody("x", shop, withCallback(test.callback))).problem(test.status, test.code)
		if test.location != "" {
			require.Equal(t, test.location, p.Errors[0].Location, name)
		}
	}
	w.call("acme/editor", "POST", "/jobs", jobBody("own", shop, withCallback(map[string]any{"handler": "told", "executor": map[string]any{"name": "shop"}}))).is(201)
	require.Equal(t, callback.Callback{CallbackTarget: callback.CallbackTarget{Handler: "told"}}, into[Job](w.call("acme/editor", "GET", "/jobs/by-name/own", nil).is(200)).OnFailure)
}

// An editor who is bound to an executor makes no callback on a handler of another one. A
// callback that somebody else made stays when he edits the job.
func TestCallbacksOfBoundPeople(t *testing.T) {
	w := newWorld(t)
	shop, bank := w.executor("acme", "shop"), w.executor("acme", "bank")
	w.bound("anna", "editor", "shop")
	other := map[string]any{"handler": "booked", "executor": map[string]any{"name": "bank"}}
	url := map[string]any{"url": "https://a.example/x"}
	_, err := w.store.SetScriptPolicy(t.Context(), domain.ScriptPolicy{TenantID: w.tenants["acme"], Callbacks: &domain.CallbackPolicy{Hosts: []string{"a.example"}}})
	require.NoError(t, err)

	p := w.call("anna", "POST", "/jobs", jobBody("mine", shop, withCallback(other))).problem(422, "validation_failed")
	missing := w.call("anna", "POST", "/jobs", jobBody("mine", shop, withCallback(map[string]any{"handler": "booked", "executor": map[string]any{"name": "none"}}))).problem(422, "validation_failed")
	require.Equal(t, missing.Errors[0].Message, p.Errors[0].Message, "the answer does not tell that it exists")
	w.call("anna", "POST", "/jobs", jobBody("mine", shop, withCallback(url))).problem(403, "permission_denied")
	for _, c := range []any{other, url} {
		a := w.call("anna", "POST", "/callbacks/try", map[string]any{"callback": c})
		require.Contains(t, []int{403, 404}, a.status, "nor is it tried")
	}
	for name, c := range map[string]any{"theirs": other, "called": url} {
		job := into[Job](w.call("acme/editor", "POST", "/jobs", jobBody(name, shop, withCallback(c))).is(201))
		edit := jobBody(name, shop, withCallback(c))
		edit["timeout"] = "1m"
		w.call("anna", "PUT", "/jobs/"+job.ID, edit, header{"If-Match": "*"}).is(200)
	}
	changed := jobBody("theirs", shop, withCallback(map[string]any{"handler": "stolen", "executor": map[string]any{"id": bank.ID.String()}}))
	w.call("anna", "PUT", "/jobs/by-name/theirs", changed).problem(422, "validation_failed")

	w.bound("bert", "editor", "shop", "bank", "carillon")
	w.call("bert", "POST", "/jobs", jobBody("both", shop, withCallback(other))).is(201)
	w.call("bert", "POST", "/jobs", jobBody("called too", shop, withCallback(url))).is(201)
}
