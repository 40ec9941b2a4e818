package api

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/api/apply"
	"github.com/carillon-sched/carillon/admin/internal/api/web"
)

// fits holds a document against the schema of its kind, as an editor does.
func (w *world) fits(document any) error {
	w.t.Helper()
	raw, err := json.Marshal(document)
	require.NoError(w.t, err)
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	require.NoError(w.t, err)
	kind, _ := value.(map[string]any)["kind"].(string)
	text, err := jsonschema.UnmarshalJSON(bytes.NewReader(w.call("acme/viewer", "GET", "/kinds/"+kind+"/schema", nil).is(200).body))
	require.NoError(w.t, err)
	c := jsonschema.NewCompiler()
	require.NoError(w.t, c.AddResource("kind.json", text))
	schema, err := c.Compile("kind.json")
	require.NoError(w.t, err)
	return schema.Validate(value)
}

// Exported documents fit the schemas of their kinds.
func TestDocumentsFitTheirSchemas(t *testing.T) {
	w := newWorld(t)
	quotas := tenantDocumentBody("acme", map[string]any{"quotas": map[string]any{"jobs": 7}, "retention": map[string]any{"runDays": 3}})
	cron := jobDocument("cron", "shop", with("schedule.calendars", []any{map[string]any{"name": "cn"}}), with("input", []any{1, "a"}))
	hook := jobDocument("hook", "shop", with("alert", map[string]any{"webhookUrl": "https://hooks.example/x", "webhookSecret": "s3cret"}), with("owner", map[string]any{"email": "a@b.example"}))
	w.applied("platform", documentsBody(quotas))
	w.applied("acme/editor", documentsBody(cron, hook, executorDocumentBody("shop", map[string]any{"maxRunning": 2}), calendarDocument("cn", chinaSpec()),
		jobDocument("none", "shop", with("schedule", map[string]any{"kind": "none"}), with("state", "paused"), with("retry", map[string]any{"maxAttempts": 3}))))
	seen := 0
	for _, k := range into[web.Page[apply.DocumentKind]](w.call("acme/viewer", "GET", "/kinds", nil).is(200)).Items {
		for _, d := range into[web.Page[map[string]any]](w.call("acme/admin", "GET", "/"+k.Path, nil).is(200)).Items {
			if k.Name == "Tenant" || k.Name == "Job" || k.Name == "Executor" || k.Name == "Calendar" {
				require.NoError(t, w.fits(d), "%v", d)
				seen++
			}
		}
		require.Error(t, w.fits(map[string]any{"kind": k.Name, "name": "x", "spec": map[string]any{"colour": "red"}}), "%s: a field that is not known", k.Name)
	}
	require.Equal(t, 6, seen)
	require.ErrorContains(t, w.fits(jobDocument("job", "shop", with("priority", 101))), "maximum")
	require.ErrorContains(t, w.fits(jobDocument("job", "shop", with("blocking", "never"))), "one of")
	require.Error(t, w.fits(jobDocument("job", "shop", with("prioriti", 1))))
	require.Error(t, w.fits(jobDocument("job", "shop", with("schedule", "daily"))))
	w.call("acme/viewer", "GET", "/kinds/Siren/schema", nil).problem(404, "not_found")
}
