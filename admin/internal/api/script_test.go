package api

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/api/apply"
	"github.com/carillon-sched/carillon/admin/internal/api/builtin"
	"github.com/carillon-sched/carillon/admin/internal/api/document"
	"github.com/carillon-sched/carillon/admin/internal/api/script"
	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	resourcescript "github.com/carillon-sched/carillon/admin/internal/resource/script"
)

// allow sets a tenant's policy as a platform administrator does.
func (w *world) allow(tenant string, languages []string, calls bool) {
	w.t.Helper()
	s, err := w.auth.SwitchTenant(w.t.Context(), auth.Identity{Kind: auth.KindUser, User: w.users["admin"]}, tenant)
	require.NoError(w.t, err)
	w.bearers["platform in "+tenant] = s.AccessToken
	w.call("platform in "+tenant, "PUT", "/script-policy", map[string]any{"languages": languages, "http": calls, "note": "agreed"}).is(200)
}

type scriptAnswer struct {
	document.Answer
	Spec   resourcescript.ScriptSpec   `json:"spec"`
	Status resourcescript.ScriptStatus `json:"status"`
}

func scriptBody(name, language, content, note string) map[string]any {
	return map[string]any{"kind": "Script", "name": name, "spec": map[string]any{"language": language, "content": content, "note": note}}
}

func TestScripts(t *testing.T) {
	w := newWorld(t)
	body := scriptBody("report", "shell", "echo 1\n", "first")
	p := w.call("acme/scripter", "POST", "/scripts", body).problem(403, "policy_refused")
	require.Contains(t, p.Detail, "scripts in shell are off for this tenant")
	w.allow("acme", []string{"shell"}, false)
	w.call("acme/editor", "POST", "/scripts", body).problem(403, "permission_denied")
	made := w.call("acme/scripter", "POST", "/scripts", body).is(201)
	require.Equal(t, `"1"`, made.header.Get("ETag"))
	s := into[scriptAnswer](made)
	sum := sha256.Sum256([]byte("echo 1\n"))
	require.Equal(t, hex.EncodeToString(sum[:]), s.Status.SHA256)
	w.call("acme/scripter", "POST", "/scripts", scriptBody("p", "python", "pass", "")).problem(403, "policy_refused")

	path := "/scripts/" + s.ID
	python := w.call("acme/scripter", "PUT", path, scriptBody("report", "python", "pass", ""), header{"If-Match": `"1"`}).problem(422, "validation_failed")
	require.Equal(t, []string{"body.spec.language"}, locations(python.Errors))
	s = into[scriptAnswer](w.call("acme/admin", "PUT", path, scriptBody("report", "shell", "echo 2\n# end\n", "more"), header{"If-Match": `"1"`}).is(200))
	require.Equal(t, int64(2), s.Version)

	list := into[web.Page[scriptAnswer]](w.call("acme/viewer", "GET", path+"/versions", nil).is(200)).Items
	require.Equal(t, []string{"more", "first"}, []string{list[0].Spec.Note, list[1].Spec.Note})
	require.Equal(t, "echo 1\n", into[scriptAnswer](w.call("acme/viewer", "GET", "/scripts/report/versions/1", nil).is(200)).Spec.Content)
	d := into[script.ScriptDiff](w.call("acme/viewer", "GET", "/scripts/report/diff?from=1&to=2", nil).is(200))
	require.Equal(t, script.ScriptDiff{From: 1, To: 2, Added: 2, Removed: 1, Lines: []script.DiffLine{{Op: "removed", Text: "echo 1"}, {Op: "added", Text: "echo 2"}, {Op: "added", Text: "# end"}}}, d)
	w.call("acme/viewer", "GET", path+"/diff?from=1&to=4", nil).problem(404, "not_found")

	key := into[script.ScriptKey](w.call("acme/viewer", "GET", "/script-key", nil).is(200))
	public, err := base64.StdEncoding.DecodeString(key.PublicKey)
	require.NoError(t, err)
	second, err := w.store.FindScript(t.Context(), w.tenants["acme"], domain.ScriptUse{ID: mustID[domain.ScriptID](t, s.ID)})
	require.NoError(t, err)
	require.True(t, ed25519.Verify(public, fmt.Appendf(nil, "%s/2/%s", s.ID, s.Status.SHA256), second.Signature))

	for at, bad := range map[string]map[string]any{
		"body.spec.content": scriptBody("x", "shell", strings.Repeat("x", domain.MaxScript+1), ""), "body.spec.content ": scriptBody("x", "shell", "a\x00", ""),
		"body.spec.language": scriptBody("x", "cobol", "x", ""), "body.spec.content  ": scriptBody("x", "shell", "", ""), "body.name": scriptBody("\u202e", "shell", "x", ""),
		"body.spec.note": scriptBody("x", "shell", "x", "a\x00"),
	} {
		p := w.call("acme/scripter", "POST", "/scripts", bad).problem(422, "validation_failed")
		require.Contains(t, locations(p.Errors), strings.TrimSpace(at))
	}
	items := into[web.Page[scriptAnswer]](w.call("acme/viewer", "GET", "/scripts", nil).is(200)).Items
	require.Len(t, items, 1)
	require.Equal(t, []any{"", s.Status}, []any{items[0].Spec.Content, items[0].Status}, "lists have no contents")
}

// A tenant's exported scripts are the same when they are applied, in whatever language of
// templates they are. Contents that are there need no policy.
func TestExportedScriptsAreTheSame(t *testing.T) {
	w := newWorld(t)
	w.allow("acme", []string{"shell", "node"}, false)
	body := documentsBody(scriptBody("clean", "shell", "echo ${{ secrets.X }} \r\n\t\u00fc\\", "n"), scriptBody("report", "node", "${{", ""))
	done := into[apply.Plan](w.call("acme/scripter", "POST", "/apply", body).is(200))
	require.Equal(t, []int{2, 0}, []int{done.Create, done.Failed})
	w.call("acme/editor", "POST", "/apply", body).problem(403, "permission_denied")
	w.allow("acme", nil, false)
	exported := []map[string]any{into[map[string]any](w.call("acme/viewer", "GET", "/scripts/clean", nil).is(200)), into[map[string]any](w.call("acme/viewer", "GET", "/scripts/report", nil).is(200))}
	plan := into[apply.Plan](w.call("acme/scripter", "POST", "/plan", documentsBody(exported...)).is(200))
	require.Equal(t, []int{0, 0, 2}, []int{plan.Create, plan.Update, plan.Same})
	exported[0]["spec"].(map[string]any)["content"] = "echo 2"
	w.call("acme/scripter", "POST", "/plan", documentsBody(exported...)).problem(403, "policy_refused")
	kinds := into[web.Page[apply.DocumentKind]](w.call("acme/viewer", "GET", "/kinds", nil).is(200))
	require.Contains(t, kinds.Items, apply.DocumentKind{Name: "Script", Path: "scripts", APIVersion: "carillon/v1", Brief: true, Literal: []string{"spec.content"}})

	id := exported[1]["id"].(string)
	w.call("acme/scripter", "DELETE", "/scripts/report", nil).is(204)
	w.call("acme/viewer", "GET", "/scripts/report", nil).problem(404, "not_found")
	back := into[scriptAnswer](w.call("acme/scripter", "POST", "/scripts/"+id+"/restore", nil).is(200))
	require.Equal(t, []any{id, int64(2), "${{"}, []any{back.ID, back.Version, back.Spec.Content})
}

func TestScriptPolicy(t *testing.T) {
	w := newWorld(t)
	p := into[script.ScriptPolicy](w.call("acme/viewer", "GET", "/script-policy", nil).is(200))
	require.Equal(t, script.ScriptPolicy{Languages: []string{}}, p, "by default nothing is allowed")
	w.call("acme/admin", "PUT", "/script-policy", map[string]any{"languages": []string{"shell"}}).problem(403, "permission_denied")
	w.allow("acme", []string{"node", "shell", "node"}, true)
	p = into[script.ScriptPolicy](w.call("acme/viewer", "GET", "/script-policy", nil).is(200))
	require.Equal(t, []string{"shell", "node"}, p.Languages)
	require.True(t, p.HTTP)
	require.Equal(t, "admin", p.CreatedBy)
	w.allow("acme", nil, false)
	list := into[web.Page[script.ScriptPolicy]](w.call("acme/viewer", "GET", "/script-policy/history", nil).is(200)).Items
	require.Len(t, list, 2)
	require.Equal(t, "agreed", list[1].Note)
	require.Equal(t, script.ScriptPolicy{Languages: []string{}}, into[script.ScriptPolicy](w.call("beta/viewer", "GET", "/script-policy", nil).is(200)))
	require.Contains(t, w.logText(), "script policy changed")
}

// What the admin nodes may call is said by platform administrators, and judged
// where a job is saved.
func TestCallbackPolicy(t *testing.T) {
	w := newWorld(t)
	set := func(callbacks map[string]any) answer {
		return w.call("platform in acme", "PUT", "/script-policy", map[string]any{"http": true, "callbacks": callbacks})
	}
	w.allow("acme", nil, true)
	w.call("acme/admin", "GET", "/callback-secret", nil).problem(404, "not_found")
	for location, bad := range map[string]map[string]any{
		"body.callbacks.hosts":      {"hosts": []string{"http://api.example.com"}},
		"body.callbacks.maxTimeout": {"hosts": []string{"*"}, "maxTimeout": "11m"},
		"body.callbacks.perHost":    {"hosts": []string{"*"}, "perHost": 513},
	} {
		require.Contains(t, locations(set(bad).problem(422, "validation_failed").Errors), location)
	}
	p := into[script.ScriptPolicy](set(map[string]any{"hosts": []string{"api.example.com"}}).is(200))
	require.Equal(t, &builtin.CallbackPolicy{Hosts: []string{"api.example.com"}, MaxTimeout: "30s", PerHost: 32}, p.Callbacks)
	w.allow("acme", []string{"shell"}, false)
	p = into[script.ScriptPolicy](w.call("acme/viewer", "GET", "/script-policy", nil).is(200))
	require.NotNil(t, p.Callbacks, "who does not name them leaves them as they are")

	secret := into[builtin.CallbackSecret](w.call("acme/admin", "GET", "/callback-secret", nil).is(200))
	require.Len(t, secret.Secret, 64)
	w.call("acme/editor", "GET", "/callback-secret", nil).problem(403, "permission_denied")
	set(map[string]any{"hosts": []string{"api.example.com"}, "maxTimeout": "10s"}).is(200)
	require.Equal(t, secret, into[builtin.CallbackSecret](w.call("acme/admin", "GET", "/callback-secret", nil).is(200)))
	set(map[string]any{"hosts": []string{"api.example.com"}, "maxTimeout": "10s", "newSecret": true}).is(200)
	require.NotEqual(t, secret, into[builtin.CallbackSecret](w.call("acme/admin", "GET", "/callback-secret", nil).is(200)))

	executors := into[web.Page[Executor]](w.call("acme/viewer", "GET", "/executors", nil).is(200)).Items
	require.Equal(t, []string{"carillon", "built_in"}, []string{executors[0].Name, executors[0].Kind})
	w.call("acme/editor", "POST", "/executors", map[string]any{"name": "carillon"}).problem(422, "validation_failed")
	w.call("acme/admin", "POST", "/executors/"+executors[0].ID+"/join-tokens", map[string]any{}).problem(409, "conflict")

	job := func(input map[string]any) map[string]any {
		body := jobBody("remind", domain.Executor{})
		body["executor"] = map[string]any{"name": "carillon"}
		body["handler"], body["input"] = "http", input
		return body
	}
	for want, input := range map[string]map[string]any{
		"may not call other.example.com": {"url": "https://other.example.com/"}, "timeout: must be from 0s to 10s": {"url": "https://api.example.com/", "timeout": "11s"},
		"names no host": {"url": "https://"}, "is no status": {"url": "https://api.example.com/", "expect": []string{"ok"}},
	} {
		require.Contains(t, w.call("acme/editor", "POST", "/jobs", job(input)).problem(422, "validation_failed").Detail, want)
	}
	w.call("acme/editor", "POST", "/jobs", job(map[string]any{"url": "https://api.example.com/{{run.id}}", "timeout": "10s"})).is(201)
	before := into[builtin.CallbackSecret](w.call("acme/admin", "GET", "/callback-secret", nil).is(200))
	set(map[string]any{"hosts": []string{}}).is(200)
	require.Equal(t, before, into[builtin.CallbackSecret](w.call("acme/admin", "GET", "/callback-secret", nil).is(200)))
	set(map[string]any{"hosts": []string{}, "newSecret": true}).is(200)
	require.NotEqual(t, before, into[builtin.CallbackSecret](w.call("acme/admin", "GET", "/callback-secret", nil).is(200)), "also while callbacks are off")
	w.call("acme/editor", "POST", "/jobs", job(map[string]any{"url": "https://api.example.com/"})).problem(403, "policy_refused")
}

// A job of an agent is refused with its reason when it is saved.
func TestJobsOfAgents(t *testing.T) {
	w := newWorld(t)
	e := w.executor("acme", "agents")
	w.instance(e, "one", "script.shell", "http.request")
	job := func(change map[string]any) map[string]any {
		body := jobBody("nightly", e)
		for k, v := range change {
			body[k] = v
		}
		return body
	}
	shell := func(script any) map[string]any {
		return job(map[string]any{"handler": "script.shell", "script": script})
	}
	for _, body := range []map[string]any{job(map[string]any{"handler": "http.request"}), shell(map[string]any{"name": "report"}), shell(nil)} {
		p := w.call("acme/editor", "POST", "/jobs", body).problem(403, "policy_refused")
		require.Contains(t, p.Detail, "off for this tenant; a platform administrator switches them on")
	}
	w.allow("acme", []string{"shell", "python"}, true)
	s := into[scriptAnswer](w.call("acme/scripter", "POST", "/scripts", scriptBody("report", "shell", "true", "")).is(201))
	for location, body := range map[string]map[string]any{
		"body.script":          shell(nil),
		"body.script.name":     shell(map[string]any{"name": "nothing"}),
		"body.script.revision": shell(map[string]any{"name": "report", "revision": 2}),
		"body.handler":         job(map[string]any{"handler": "script.python", "script": map[string]any{"name": "report"}}),
		"body.script.args":     shell(map[string]any{"name": "report", "args": []string{"a\x00b"}}),
	} {
		p := w.call("acme/editor", "POST", "/jobs", body).problem(422, "validation_failed")
		require.Contains(t, locations(p.Errors), location)
	}
	p := w.call("acme/editor", "POST", "/jobs", job(map[string]any{"handler": "reconcile", "script": map[string]any{"name": "report"}})).problem(422, "validation_failed")
	require.Contains(t, p.Detail, "only handlers script.LANGUAGE run scripts")

	made := into[Job](w.call("acme/editor", "POST", "/jobs", shell(map[string]any{"name": "report", "args": []string{"-v"}})).is(201))
	require.Equal(t, &script.ScriptUse{ID: s.ID, Args: []string{"-v"}}, made.Script)
	body := shell(map[string]any{"id": s.ID, "revision": 1})
	made = into[Job](w.call("acme/editor", "PUT", "/jobs/"+made.ID, body, header{"If-Match": "*"}).is(200))
	require.Equal(t, int64(1), *made.Script.Revision)
	jobs := into[web.Page[web.Ref]](w.call("acme/viewer", "GET", "/scripts/"+s.ID+"/jobs", nil).is(200)).Items
	require.Equal(t, []web.Ref{{ID: made.ID, Name: "nightly"}}, jobs)
	w.call("acme/scripter", "DELETE", "/scripts/"+s.ID, nil).problem(409, "conflict")
	w.allow("acme", nil, false)
	w.call("acme/editor", "PUT", "/jobs/"+made.ID, body, header{"If-Match": "*"}).problem(403, "policy_refused")
	w.call("acme/operator", "POST", "/jobs/"+made.ID+"/pause", nil).is(200)
}

func locations(fields []web.ProblemItem) (out []string) {
	for _, f := range fields {
		out = append(out, f.Location)
	}
	return out
}
