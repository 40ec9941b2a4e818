package api

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
)

func with(path string, value any) func(map[string]any) {
	return func(body map[string]any) {
		parts := strings.Split(path, ".")
		for _, p := range parts[:len(parts)-1] {
			next, ok := body[p].(map[string]any)
			if !ok {
				next = map[string]any{}
				body[p] = next
			}
			body = next
		}
		body[parts[len(parts)-1]] = value
	}
}

func TestInvalidCronHasItsPosition(t *testing.T) {
	w := newWorld(t)
	e := w.executor("acme", "shop")
	tests := []struct {
		name, expr string
		position   int
		length     int
	}{
		{"hour out of range", "0 25 * * *", 2, 2},
		{"unknown name", "0 0 * * FOO", 8, 3},
		{"missing field", "0 0 * *", 7, 1},
		{"step of zero", "*/0 * * * *", 2, 1},
		{"empty", "", 0, 1},
		{"hostile", "0 0 * * <script>", 8, 1},
		{"beyond ASCII", "０ 0 * * *", 0, 3},
	}
	for _, tt := range tests {
		w.run(t, tt.name, func(t *testing.T) {
			for _, path := range []string{"/jobs", "/schedules/preview"} {
				var body any = jobBody("x", e, with("schedule.expr", tt.expr))
				if path != "/jobs" {
					body = map[string]any{"schedule": map[string]any{"kind": "cron", "expr": tt.expr}}
				}
				p := w.call("acme/editor", "POST", path, body).problem(422, "invalid_cron")
				require.Len(t, p.Errors, 1)
				item := p.Errors[0]
				require.Equal(t, "body.schedule.expr", item.Location)
				require.NotNil(t, item.Position, "%s", item.Message)
				require.Equal(t, tt.position, *item.Position, item.Message)
				require.Equal(t, tt.length, *item.Length, item.Message)
			}
		})
	}
	w.call("acme/editor", "POST", "/jobs", jobBody("x", e, with("schedule.expr", "0 25 * * *"))).golden("invalid_cron")
}

func TestAllWrongFieldsAreToldAtOnce(t *testing.T) {
	w := newWorld(t)
	e := w.executor("acme", "shop")
	body := jobBody("x", e,
		with("schedule.expr", "nonsense"), with("schedule.zone", "Mars/Olympus"), with("timeout", "soon"),
		with("retry.delay", "-x"), with("owner.email", "not an address"), with("alert.emails", []string{"ok@example.com", "a b"}),
		with("alert.webhookUrl", "ftp://example.com"), with("labels", map[string]any{"a:b": "c"}), with("name", "line\nbreak"))
	p := w.call("acme/editor", "POST", "/jobs", body).problem(422, "validation_failed")
	var at []string
	for _, item := range p.Errors {
		at = append(at, item.Location)
	}
	require.ElementsMatch(t, []string{
		"body.schedule.expr", "body.schedule.zone", "body.timeout", "body.retry.delay", "body.owner.email", "body.alert.emails",
		"body.alert.webhookUrl", "body.labels", "body.name",
	}, at)
}

func TestRefusedJobs(t *testing.T) {
	w := newWorld(t)
	e := w.executor("acme", "shop")
	tests := []struct {
		name     string
		change   func(map[string]any)
		location string
	}{
		{"unknown field", with("nmae", "x"), "body.nmae"},
		{"unknown nested field", with("schedule.cron", "x"), "body.schedule.cron"},
		{"field in another case", with("Handler", "x"), "body.Handler"},
		{"empty name", with("name", ""), "body.name"},
		{"blank name", with("name", "   "), "body.name"},
		{"long name", with("name", strings.Repeat("x", 129)), "body.name"},
		{"control character", with("name", "a\x1b[31mb"), "body.name"},
		{"turned reading direction", with("name", "a\u202eb"), "body.name"},
		{"end of a paragraph", with("name", "a\u2029b"), "body.name"},
		{"name of the job of calls", with("name", "call:shop/reconcile"), "body.name"},
		{"name of the job of callbacks", with("name", "callback:shop/reconcile"), "body.name"},
		{"name of the job of timers", with("name", " timer:anything"), "body.name"},
		{"name is a number", with("name", 7), "body.name"},
		{"name is null", with("name", nil), "body.name"},
		{"unknown kind", with("schedule.kind", "daily"), "body.schedule.kind"},
		{"unknown routing", with("routing", "nearest"), "body.routing"},
		{"unknown blocking", with("blocking", "none"), "body.blocking"},
		{"too many attempts", with("retry.maxAttempts", 101), "body.retry.maxAttempts"},
		{"attempts as a fraction", with("retry.maxAttempts", 1.5), "body.retry.maxAttempts"},
		{"backoff below one", with("retry.backoff", 0.5), "body.retry.backoff"},
		{"negative timeout", with("timeout", "-5s"), "body.timeout"},
		{"long timeout", with("timeout", "1000h"), "body.timeout"},
		{"duration without unit", with("timeout", "30"), "body.timeout"},
		{"priority", with("priority", 1000), "body.priority"},
		{"every too short", func(b map[string]any) {
			b["schedule"] = map[string]any{"kind": "fixed_rate", "every": "1ms"}
		}, "body.schedule.every"},
		{"every missing", func(b map[string]any) { b["schedule"] = map[string]any{"kind": "fixed_rate"} }, "body.schedule.every"},
		{"once without instant", func(b map[string]any) { b["schedule"] = map[string]any{"kind": "once"} }, "body.schedule.at"},
		{"once with nonsense", func(b map[string]any) {
			b["schedule"] = map[string]any{"kind": "once", "at": "tomorrow"}
		}, "body.schedule.at"},
		{"end before start", func(b map[string]any) {
			with("schedule.startAt", "2027-01-02T00:00:00Z")(b)
			with("schedule.endAt", "2027-01-01T00:00:00Z")(b)
		}, "body.schedule.endAt"},
		{"local zone", with("schedule.zone", "Local"), "body.schedule.zone"},
		{"zone is a path", with("schedule.zone", "../../etc/passwd"), "body.schedule.zone"},
		{"no executor", with("executor", map[string]any{}), "body.executor"},
		{"mail with a line break", with("owner.email", "a@example.com\r\nBcc: b@example.com"), "body.owner.email"},
		{"mail with a name", with("owner.email", "Ann <a@example.com>"), "body.owner.email"},
		{"webhook with a password", with("alert.webhookUrl", "https://u:p@example.com/"), "body.alert.webhookUrl"},
		{"webhook without host", with("alert.webhookUrl", "https:///x"), "body.alert.webhookUrl"},
		{"webhook to a file", with("alert.webhookUrl", "file:///etc/passwd"), "body.alert.webhookUrl"},
		{"large input", with("input", strings.Repeat("x", web.MaxInput)), "body.input"},
	}
	for _, tt := range tests {
		w.run(t, tt.name, func(t *testing.T) {
			p := w.call("acme/editor", "POST", "/jobs", jobBody("x", e, tt.change)).problem(422, "validation_failed")
			require.Equal(t, tt.location, p.Errors[0].Location, "%+v", p.Errors)
		})
	}
	require.Empty(t, into[web.Page[Job]](w.call("acme/viewer", "GET", "/jobs", nil).is(200)).Items)
}

func TestUnknownHandler(t *testing.T) {
	w := newWorld(t)
	e := w.executor("acme", "shop")
	w.run(t, "an executor without a catalogue is believed", func(t *testing.T) {
		w.job("acme", "early", e, with("handler", "anything"))
	})
	w.instance(e, "one", "reconcile", "refund-order", "daily-report")
	tests := []struct{ name, handler, hint string }{
		{"a typing error", "recnocile", `did you mean "reconcile"?`},
		{"another case", "Refund-Order", `did you mean "refund-order"?`},
		{"a part", "report", `did you mean "daily-report"?`},
		{"nothing near", "xyzzy", "save with allowUnknownHandler=true if it comes later"},
	}
	for _, tt := range tests {
		w.run(t, tt.name, func(t *testing.T) {
			p := w.call("acme/editor", "POST", "/jobs", jobBody("late", e, with("handler", tt.handler))).problem(422, "unknown_handler")
			require.Equal(t, "body.handler", p.Errors[0].Location)
			require.Equal(t, tt.hint, p.Errors[0].Hint)
			require.Contains(t, p.Detail, tt.handler)
		})
	}
	w.run(t, "on purpose", func(t *testing.T) {
		w.call("acme/editor", "POST", "/jobs?allowUnknownHandler=true", jobBody("late", e, with("handler", "xyzzy"))).is(201)
	})
	w.call("acme/editor", "POST", "/jobs", jobBody("late2", e, with("handler", "recnocile"))).golden("unknown_handler")
}

func TestBodyLimits(t *testing.T) {
	w := newWorld(t)
	server := httptest.NewServer(w.handler)
	defer server.Close()
	client := server.Client()
	defer client.CloseIdleConnections()
	send := func(body []byte, chunked bool) (int, web.Problem) {
		req, err := http.NewRequestWithContext(t.Context(), "POST", server.URL+web.Base+"/schedules/preview", bytes.NewReader(body))
		require.NoError(t, err)
		req.Header.Set("Authorization", "Bearer "+w.as("acme/viewer"))
		req.Header.Set("Content-Type", "application/json")
		if chunked {
			req.ContentLength = -1
		}
		res, err := client.Do(req)
		require.NoError(t, err)
		defer res.Body.Close()
		var p web.Problem
		require.NoError(t, json.NewDecoder(res.Body).Decode(&p))
		return res.StatusCode, p
	}
	small := []byte(`{"schedule":{"kind":"none"}}`)
	padded := func(n int) []byte { return append(bytes.Repeat([]byte(" "), n-len(small)), small...) }
	for _, chunked := range []bool{false, true} {
		status, _ := send(padded(web.MaxBody), chunked)
		require.Equal(t, 200, status, "exactly 1 MiB, chunked %v", chunked)
		for _, n := range []int{web.MaxBody + 1, web.MaxBody + 2, 8 << 20} {
			status, p := send(padded(n), chunked)
			require.Equal(t, http.StatusRequestEntityTooLarge, status, "%d bytes, chunked %v", n, chunked)
			require.Equal(t, "body_too_large", p.Code)
			require.NotEmpty(t, p.Instance)
		}
	}
}

func TestBodyIsNotReadBeforeThePolicy(t *testing.T) {
	w := newWorld(t)
	w.call("", "POST", "/jobs", "{not json").problem(401, "unauthenticated")
	w.call("acme/viewer", "POST", "/jobs", "{not json").problem(403, "permission_denied")
}

func TestMalformedJSON(t *testing.T) {
	w := newWorld(t)
	tests := []struct {
		name, body string
		position   int
		detail     string
	}{
		{"cut off", `{"name": "x"`, 11, "line 1, column 12"},
		{"comma at the end", `{"name": "x",}`, 13, "line 1, column 14"},
		{"second line", "{\n  \"name\": x}", 12, "line 2, column 11"},
		{"not JSON", "name=x", 1, "line 1, column 2"},
		{"two values", `{} {}`, 3, "line 1, column 4"},
		{"single quotes", `{'name': 'x'}`, 1, "line 1, column 2"},
		{"NaN", `{"priority": NaN}`, 13, "line 1, column 14"},
	}
	for _, tt := range tests {
		w.run(t, tt.name, func(t *testing.T) {
			p := w.call("acme/editor", "POST", "/jobs", tt.body).problem(400, "malformed_json")
			require.Equal(t, "body", p.Errors[0].Location)
			require.NotNil(t, p.Errors[0].Position)
			require.Equal(t, tt.position, *p.Errors[0].Position)
			require.Contains(t, p.Detail, tt.detail)
			require.Nil(t, p.Errors[0].Value, "the text is not sent back")
		})
	}
	w.call("acme/editor", "POST", "/jobs", "").problem(400, "malformed_json")
	w.call("acme/editor", "POST", "/jobs", "[1,2]").problem(422, "validation_failed")
	w.call("acme/editor", "POST", "/jobs", strings.Repeat("[", 100_000)).problem(400, "malformed_json")
	w.call("acme/editor", "POST", "/jobs", "{}", header{"Content-Type": "text/plain"}).problem(415, "validation_failed")
	w.call("acme/editor", "POST", "/jobs", `{"name": "x",}`).golden("malformed_json")
}

func TestSecretsAreNotRepeated(t *testing.T) {
	w := newWorld(t)
	const leak = "hunter2hunter2"
	e := w.executor("acme", "shop")
	answers := []answer{
		w.call("", "POST", "/auth/login", map[string]any{"username": "a", "password": leak, "x": leak}),
		w.call("", "POST", "/auth/login", map[string]any{"username": "a", "password": []string{leak}}),
		w.call("", "POST", "/auth/login", map[string]any{"password": leak}),
		w.call("acme/viewer", "POST", "/auth/password", map[string]any{"current": leak, "new": 1}),
		w.call("acme/viewer", "POST", "/auth/password", map[string]any{"current": leak, "new": "short"}),
		w.call("acme/admin", "POST", "/users", map[string]any{"username": "u", "role": "king", "password": leak}),
		w.call("acme/editor", "POST", "/jobs", jobBody("x", e, with("alert.webhookSecret", map[string]any{"a": leak}))),
		w.call("acme/editor", "POST", "/jobs", `{"alert":{"webhookSecret":"`+leak+`"}`),
		w.call("", "POST", "/auth/refresh", nil, header{"Cookie": refreshCookiePrefix + w.auth.Cluster() + "=" + leak}),
		w.call("", "GET", "/me", nil, header{"Authorization": "Bearer " + leak}),
	}
	for i, a := range answers {
		require.GreaterOrEqual(t, a.status, 400, "answer %d", i)
		require.NotContains(t, string(a.body), leak, "answer %d", i)
	}
	require.NotContains(t, w.logText(), leak)
}

func TestTokens(t *testing.T) {
	w := newWorld(t)
	get := func(authorization string) answer {
		return w.call("", "GET", "/jobs", nil, header{"Authorization": authorization})
	}
	good := w.as("acme/viewer")
	get("Bearer " + good).is(200)
	get("bearer " + good).is(200)
	// One character in the middle of the signature: each carries six of its bits.
	at := len(good) - 40
	other := "A"
	if good[at] == 'A' {
		other = "B"
	}
	changed := good[:at] + other + good[at+1:]
	for name, authorization := range map[string]string{
		"none": "", "no scheme": good, "basic": "Basic YTpi", "empty": "Bearer ", "garbage": "Bearer x.y.z",
		"changed":      "Bearer " + changed,
		"unknown key":  "Bearer ck_" + strings.Repeat("a", 43),
		"join token":   "Bearer cjt_" + strings.Repeat("a", 43),
		"a long token": "Bearer " + strings.Repeat("a", 8000),
	} {
		w.run(t, name, func(t *testing.T) {
			a := get(authorization)
			a.problem(401, "unauthenticated")
			require.Equal(t, `Bearer realm="carillon"`, a.header.Get("WWW-Authenticate"))
		})
	}
}

// TestExpiredToken has an API whose clock for keys has passed: the key was made
// to expire at once.
func TestExpiredToken(t *testing.T) {
	w := newWorld(t)
	id := auth.Identity{Kind: auth.KindUser, Tenant: w.tenants["acme"], Permissions: domain.RoleAdmin.Permissions()}
	_, secret, err := w.auth.CreateAPIKey(t.Context(), id, "short", domain.RoleViewer, time.Now().Add(-time.Millisecond), domain.Scope{})
	require.NoError(t, err)
	w.call("", "GET", "/jobs", nil, header{"Authorization": "Bearer " + secret}).problem(401, "token_expired")
}

func TestBadQueries(t *testing.T) {
	w := newWorld(t)
	e := w.executor("acme", "shop")
	for _, name := range []string{"a", "b"} {
		w.job("acme", name, e)
	}
	jobs := into[web.Page[Job]](w.call("acme/viewer", "GET", "/jobs?limit=1", nil).is(200))
	require.NotNil(t, jobs.NextCursor)
	for name, tt := range map[string]struct{ path, location string }{
		"unknown parameter":       {"/jobs?stat=paused", "query.stat"},
		"limit zero":              {"/jobs?limit=0", "query.limit"},
		"limit too high":          {"/jobs?limit=201", "query.limit"},
		"limit is no number":      {"/jobs?limit=many", "query.limit"},
		"sort by column":          {"/jobs?sort=id%3BDROP%20TABLE", "query.sort"},
		"semicolon":               {"/jobs?sort=name;limit=1", "query"},
		"bad escape":              {"/jobs?q=%zz", "query"},
		"twice":                   {"/jobs?q=a&q=b", "query.q"},
		"zero byte":               {"/jobs?q=a%00b", "query.q"},
		"not UTF-8":               {"/jobs?q=%ff", "query.q"},
		"cursor is garbage":       {"/jobs?cursor=%21%21", "query.cursor"},
		"cursor is JSON":          {"/jobs?cursor=eyJsIjoiam9icy9uYW1lIiwieCI6MX0", "query.cursor"},
		"cursor of another order": {"/jobs?sort=updatedAt&cursor=" + *jobs.NextCursor, "query.cursor"},
		"cursor of another list":  {"/runs?cursor=" + *jobs.NextCursor, "query.cursor"},
		"unknown state":           {"/runs?state=due,gone", "query.state"},
		"id is no number":         {"/runs?jobId=abc", "query.jobId"},
		"from is no instant":      {"/runs?from=yesterday", "query.from"},
		"wait too long":           {"/runs/1/log?wait=1h", "query.wait"},
	} {
		w.run(t, name, func(t *testing.T) {
			p := w.call("acme/viewer", "GET", tt.path, nil).problem(422, "validation_failed")
			require.Equal(t, tt.location, p.Errors[0].Location)
		})
	}
	for _, path := range []string{"/jobs/abc", "/jobs/-1", "/jobs/0", "/jobs/99999999999999999999", "/runs/1%27", "/jobs/" + strings.Repeat("9", 18)} {
		w.call("acme/viewer", "GET", path, nil).problem(404, "not_found")
	}
}

// TestHostileFilters puts the signs of SQL and of LIKE into every text filter.
func TestHostileFilters(t *testing.T) {
	w := newWorld(t)
	e := w.executor("acme", "shop")
	w.job("acme", "plain", e)
	for _, text := range []string{"%25", "_", "%27%20OR%201%3D1--", "%5C", "%22", "a%25b", strings.Repeat("%25", 40)} {
		for _, path := range []string{"/jobs?q=", "/jobs?owner=", "/jobs?label=", "/jobs?handler=", "/executors?q=", "/runs?q="} {
			a := w.call("acme/viewer", "GET", path+text, nil)
			if path == "/jobs?label=" && strings.Contains(text, "OR") { // it is no selector
				a.problem(422, "validation_failed")
				continue
			}
			a.is(200)
			require.Empty(t, into[web.Page[any]](a).Items, "%s%s", path, text)
		}
	}
}

func TestClientThatHasGone(t *testing.T) {
	w := newWorld(t)
	token := w.as("acme/viewer")
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	req := httptest.NewRequestWithContext(gone, "GET", web.Base+"/jobs", nil)
	req.Header.Set("Authorization", "Bearer "+token)
	a := w.send(req)
	require.Equal(t, 499, a.status, "the client has gone: %s", a.body)
	require.NotContains(t, w.logText(), "level=ERROR", "which is nobody's fault")
}

// Whoever writes a value that there is not gets told all that there are, and
// the one that was meant.
func TestWrongValuesNameTheRightOnes(t *testing.T) {
	w := newWorld(t)
	e := w.executor("acme", "shop")
	hint := func(a answer, location, said string) {
		t.Helper()
		p := a.problem(422, "validation_failed")
		require.Equal(t, location, p.Errors[0].Location)
		require.Equal(t, said, p.Errors[0].Hint)
	}
	states := w.call("acme/viewer", "GET", "/runs?state=failed,runing", nil)
	hint(states, "query.state", `did you mean "running"?`)
	for _, s := range domain.States {
		require.Contains(t, string(states.body), s.String())
	}
	hint(w.call("acme/viewer", "GET", "/runs?cause=shedule", nil), "query.cause", `did you mean "schedule"?`)
	hint(w.call("acme/viewer", "GET", "/jobs?state=pausd", nil), "query.state", `did you mean "paused"?`)
	hint(w.call("acme/viewer", "GET", "/jobs?state=xyzzy", nil), "query.state", "")
	hint(w.call("acme/editor", "POST", "/jobs", jobBody("j", e, with("blocking", "serail"))), "body.blocking", `did you mean "serial"?`)
}
