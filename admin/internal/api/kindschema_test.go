package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/api/apply"
	"github.com/carillon-sched/carillon/admin/internal/api/web"
	texts "github.com/carillon-sched/carillon/internal/document"
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

// schemaFolder has the checked-in schemas, as carillon schema --dir writes them.
var schemaFolder = filepath.Join("..", "..", "..", "docs", "schemas")

func TestSchemasAreCheckedIn(t *testing.T) {
	kinds := New(describedDeps()).Kinds()
	names, files := []string{}, map[string][]byte{}
	for _, k := range kinds.List() {
		raw, err := kinds.JSONSchema(&k)
		require.NoError(t, err)
		files[k.Name+".json"], err = texts.SchemaFile(raw)
		require.NoError(t, err)
		names = append(names, k.Name)
	}
	any, err := texts.AnyKindSchema(names)
	require.NoError(t, err)
	files[texts.AnyKind] = any
	if *update {
		require.NoError(t, os.RemoveAll(schemaFolder))
		require.NoError(t, os.MkdirAll(schemaFolder, 0o755))
		for name, text := range files {
			require.NoError(t, os.WriteFile(filepath.Join(schemaFolder, name), text, 0o644))
		}
	}
	there, err := os.ReadDir(schemaFolder)
	require.NoError(t, err)
	require.Len(t, there, len(files))
	for name, text := range files {
		got, err := os.ReadFile(filepath.Join(schemaFolder, name))
		require.NoError(t, err)
		require.Equal(t, string(text), string(got), "%s: run make generate", name)
	}
}

// An exported document of each kind fits the schema of its kind.
func TestDocumentsFitTheirSchemas(t *testing.T) {
	w := newWorld(t)
	w.allow("acme", []string{"shell"}, false)
	named := func(kind string, body map[string]any) map[string]any {
		body["kind"] = kind
		return body
	}
	quotas := tenantDocumentBody("acme", map[string]any{"quotas": map[string]any{"jobs": 7}, "retention": map[string]any{"runDays": 3}})
	cell := map[string]any{"kind": "Cell", "name": "eu2", "spec": map[string]any{"url": "https://eu2.example", "executors": []any{"eu2.example:9999"}}}
	cron := jobDocument("cron", "shop", with("schedule.calendars", []any{map[string]any{"name": "cn"}}), with("input", []any{1, "a"}))
	hook := jobDocument("hook", "shop", with("alert", map[string]any{"webhookUrl": "https://hooks.example/x", "webhookSecret": "s3cret"}), with("owner", map[string]any{"email": "a@b.example"}))
	w.applied("platform", documentsBody(quotas, cell))
	w.applied("acme/editor", documentsBody(cron, hook, executorDocumentBody("shop", map[string]any{"maxRunning": 2}), calendarDocument("cn", chinaSpec()),
		jobDocument("none", "shop", with("schedule", map[string]any{"kind": "none"}), with("state", "paused"), with("retry", map[string]any{"maxAttempts": 3})),
		named("Connection", rabbit()), named("AlertChannel", dingTalk()), eventRule("failures", "channels", []any{"on call"}),
	))
	w.applied("acme/scripter", documentsBody(scriptBody("report", "shell", "echo 1\n", "first")))
	seen := map[string]int{}
	for _, k := range into[web.Page[apply.DocumentKind]](w.call("platform", "GET", "/kinds", nil).is(200)).Items {
		who := "acme/admin"
		if k.Name == "Cell" {
			who = "platform"
		}
		for _, listed := range into[web.Page[map[string]any]](w.call(who, "GET", "/"+k.Path, nil).is(200)).Items {
			if k.Brief { // the list leaves long parts out, which an export reads
				listed = into[map[string]any](w.call(who, "GET", fmt.Sprintf("/%s/%s", k.Path, listed["id"]), nil).is(200))
			}
			require.NoError(t, w.fits(listed), "%v", listed)
			seen[k.Name]++
		}
		require.Positive(t, seen[k.Name], "there is no document of the kind %s", k.Name)
		require.Error(t, w.fits(map[string]any{"kind": k.Name, "name": "x", "spec": map[string]any{"colour": "red"}}), "%s: a field that is not known", k.Name)
	}
	require.Equal(t, 3, seen["Job"])
	require.ErrorContains(t, w.fits(jobDocument("job", "shop", with("priority", 101))), "maximum")
	require.ErrorContains(t, w.fits(jobDocument("job", "shop", with("blocking", "never"))), "one of")
	require.Error(t, w.fits(jobDocument("job", "shop", with("prioriti", 1))))
	require.Error(t, w.fits(jobDocument("job", "shop", with("schedule", "daily"))))
	w.call("acme/viewer", "GET", "/kinds/Siren/schema", nil).problem(404, "not_found")
}
