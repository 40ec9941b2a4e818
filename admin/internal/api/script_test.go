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

	"github.com/carillon-sched/carillon/admin/internal/api/builtin"
	"github.com/carillon-sched/carillon/admin/internal/api/script"
	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// allow sets a tenant's policy as a platform administrator does.
func (w *world) allow(tenant string, languages []string, calls bool) {
	w.t.Helper()
	s, err := w.auth.SwitchTenant(w.t.Context(), auth.Identity{Kind: auth.KindUser, User: w.users["admin"]}, tenant)
	require.NoError(w.t, err)
	w.bearers["platform in "+tenant] = s.AccessToken
	w.call("platform in "+tenant, "PUT", "/script-policy", map[string]any{"languages": languages, "http": calls, "note": "agreed"}).is(200)
}

func TestScripts(t *testing.T) {
	w := newWorld(t)
	body := map[string]any{"name": "report", "language": "shell", "content": "echo 1\n", "note": "first"}
	p := w.call("acme/scripter", "POST", "/scripts", body).problem(403, "policy_refused")
	require.Contains(t, p.Detail, "scripts in shell are off for this tenant")
	w.allow("acme", []string{"shell"}, false)
	w.call("acme/editor", "POST", "/scripts", body).problem(403, "permission_denied")
	made := w.call("acme/scripter", "POST", "/scripts", body).is(201)
	require.Equal(t, `"1"`, made.header.Get("ETag"))
	s := into[script.Script](made)
	sum := sha256.Sum256([]byte("echo 1\n"))
	require.Equal(t, hex.EncodeToString(sum[:]), s.SHA256)
	w.call("acme/scripter", "POST", "/scripts", body).problem(409, "conflict")
	w.call("acme/scripter", "POST", "/scripts", map[string]any{"name": "p", "language": "python", "content": "pass"}).problem(403, "policy_refused")

	path := "/scripts/" + s.ID
	w.call("acme/scripter", "PUT", path, map[string]any{"content": "echo 2\n"}).problem(428, "validation_failed")
	w.call("acme/scripter", "PUT", path, map[string]any{"content": "echo 2\n"}, header{"If-Match": `"7"`}).problem(412, "revision_mismatch")
	same := into[script.Script](w.call("acme/scripter", "PUT", path, map[string]any{"content": "echo 1\n"}, header{"If-Match": `"1"`}).is(200))
	require.Equal(t, int64(1), same.Revision, "a deploy may push what is there")
	s = into[script.Script](w.call("acme/admin", "PUT", path, map[string]any{"content": "echo 2\n# end\n", "note": "more", "description": "d"}, header{"If-Match": `"1"`}).is(200))
	require.Equal(t, int64(2), s.Revision)
	require.Equal(t, "d", s.Description)
	s = into[script.Script](w.call("acme/scripter", "POST", path+"/restore", map[string]any{"revision": 1, "note": "back"}).is(200))
	require.Equal(t, int64(3), s.Revision)
	require.Equal(t, "echo 1\n", *s.Content)

	list := into[web.Page[script.ScriptRevision]](w.call("acme/viewer", "GET", path+"/revisions", nil).is(200)).Items
	require.Len(t, list, 3)
	require.Equal(t, []string{"back", "more", "first"}, []string{list[0].Note, list[1].Note, list[2].Note})
	require.Equal(t, []string{"acme-scripter", "acme-admin"}, []string{list[0].CreatedBy, list[1].CreatedBy})
	r := into[script.ScriptRevision](w.call("acme/viewer", "GET", path+"/revisions/2", nil).is(200))
	require.Equal(t, "echo 2\n# end\n", *r.Content)
	w.call("acme/viewer", "GET", path+"/revisions/4", nil).problem(404, "not_found")
	d := into[script.ScriptDiff](w.call("acme/viewer", "GET", path+"/diff?from=1&to=2", nil).is(200))
	require.Equal(t, script.ScriptDiff{From: 1, To: 2, Added: 2, Removed: 1, Lines: []script.DiffLine{{Op: "removed", Text: "echo 1"}, {Op: "added", Text: "echo 2"}, {Op: "added", Text: "# end"}}}, d)

	key := into[script.ScriptKey](w.call("acme/viewer", "GET", "/script-key", nil).is(200))
	public, err := base64.StdEncoding.DecodeString(key.PublicKey)
	require.NoError(t, err)
	signature, err := base64.StdEncoding.DecodeString(r.Signature)
	require.NoError(t, err)
	require.True(t, ed25519.Verify(public, fmt.Appendf(nil, "%s/2/%s", s.ID, r.SHA256), signature))

	for _, bad := range []map[string]any{
		{"name": "x", "language": "shell", "content": strings.Repeat("x", domain.MaxScript+1)}, {"name": "x", "language": "shell", "content": "a\x00"},
		{"name": "x", "language": "cobol", "content": "x"}, {"name": "x", "language": "shell", "content": ""}, {"name": "\u202e", "language": "shell", "content": "x"},
	} {
		w.call("acme/scripter", "POST", "/scripts", bad).problem(422, "validation_failed")
	}
	require.Len(t, into[web.Page[script.Script]](w.call("acme/viewer", "GET", "/scripts", nil).is(200)).Items, 1)
	w.call("acme/scripter", "DELETE", path, nil).is(204)
	require.Empty(t, into[web.Page[script.Script]](w.call("acme/viewer", "GET", "/scripts", nil).is(200)).Items)
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
	s := into[script.Script](w.call("acme/scripter", "POST", "/scripts", map[string]any{"name": "report", "language": "shell", "content": "true"}).is(201))
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
