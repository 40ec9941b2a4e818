package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// timerRoutes know one pending timer of shop/mail/send, "a/b c", and one that was
// cancelled, "gone".
func (s *fakeServer) timerRoutes(mux *http.ServeMux) {
	timer := func(key, state, run, message, outcome string) string {
		return fmt.Sprintf(`{"executor":"shop","handler":"mail/send","key":%q,"state":%q,"fireAt":"2027-01-01T08:00:00.000Z","input":{"order":77},"labels":[],
			"note":"","createdAt":"2026-11-01T00:00:00.000Z","createdBy":"key:orders","run":%s,"finishedAt":null,"reason":"","message":%q%s}`, key, state, run, message, outcome)
	}
	pending := timer("a/b c", "pending", "null", "", "")
	found := func(w http.ResponseWriter, r *http.Request, answer string) {
		if r.PathValue("executor")+"/"+r.PathValue("handler")+" "+r.PathValue("key") != "shop/mail/send a/b c" {
			refuse(w, 404, "not_found", "there is no timer "+r.PathValue("key"))
			return
		}
		fmt.Fprint(w, answer)
	}
	s.route(mux, "POST /timers", func(w http.ResponseWriter, _ *http.Request, body map[string]any) {
		if body["policy"] == "reject" {
			refuse(w, 409, "timer_exists", "there is one")
			return
		}
		if code := fmt.Sprint(body["note"]); code == "unfit_input" || code == "unknown_handler" {
			refuse(w, 422, code, "it is not")
			return
		}
		switch body["key"] {
		case "over":
			fmt.Fprint(w, strings.Replace(timer("over", "timed_out", `"7303"`, "", `,"outcome":"kept"`), `"finishedAt":null`, `"finishedAt":"2026-11-02T00:00:00.000Z"`, 1))
			return
		case "there":
			fmt.Fprint(w, timer("there", "pending", "null", "", `,"outcome":"kept"`))
			return
		}
		if body["after"] == "nonsense" {
			refuseField(w, "body.after", "is no duration", "")
			return
		}
		w.WriteHeader(201)
		fmt.Fprint(w, timer(fmt.Sprint(body["key"]), "pending", "null", "", `,"outcome":"created"`))
	})
	s.route(mux, "GET /timers", func(w http.ResponseWriter, r *http.Request, _ map[string]any) {
		if r.URL.Query().Get("cursor") == "" { // a page may have none, and yet a next one
			fmt.Fprint(w, `{"items":[],"nextCursor":"more"}`)
			return
		}
		if to := r.URL.Query().Get("to"); to != "" && to < "2027" { // the pending one is set for later
			waits := ""
			if r.URL.Query().Get("state") == "claimed" {
				waits = timer("waits", "due", `"7304"`, "", "") + "," + timer("runs", "running", `"7305"`, "", "")
			}
			fmt.Fprintf(w, `{"items":[%s],"nextCursor":null}`, waits)
			return
		}
		fmt.Fprintf(w, `{"items":[%s,%s],"nextCursor":null}`, pending, timer("gone", "cancelled", `"7301"`, "cancelled by anna", ""))
	})
	s.route(mux, "GET /jobs/overdue", func(w http.ResponseWriter, r *http.Request, _ map[string]any) {
		item := ""
		if r.URL.Query().Get("by") != "" {
			item = `{"executor":{"id":"5","name":"shop"},"fireAt":"2026-11-01T00:00:00.000Z","jobId":"1","jobName":"close-day","overdueMs":60000,"reason":"","runId":null}`
		}
		fmt.Fprintf(w, `{"items":[%s],"more":false}`, item)
	})
	s.route(mux, "GET /timers/count", func(w http.ResponseWriter, _ *http.Request, _ map[string]any) {
		fmt.Fprint(w, `{"pending":3,"byHandler":[{"executor":"shop","handler":"mail/send","pending":3}]}`)
	})
	s.route(mux, "GET /timers/statistics", func(w http.ResponseWriter, r *http.Request, _ map[string]any) {
		const none = `{"at":"2026-11-01T00:00:00.000Z","runs":0,"succeeded":0,"failed":0,"timedOut":0,"lost":0,"cancelled":0,"missed":0,"discarded":0,"excluded":0,"lateness":null,"duration":null}`
		day := fmt.Sprintf(`{"at":"2026-11-01T00:00:00.000Z","runs":9,"succeeded":%d,"failed":2,"timedOut":0,"lost":0,"cancelled":3,"missed":0,"discarded":0,"excluded":0,`+
			`"lateness":{"count":9,"meanMs":7,"p50Ms":5,"p95Ms":1700,"p99Ms":1800,"maxMs":1900},"duration":null}`, len(r.URL.Query().Get("handler")))
		if r.URL.Query().Get("step") != "day" || r.URL.Query().Get("from") == "" {
			day = ""
		}
		fmt.Fprintf(w, `{"from":"2026-11-01T00:00:00.000Z","to":"2026-11-02T00:00:00.000Z","step":"day","keptFrom":"2026-10-01T00:00:00.000Z","items":[%s],"total":%s}`, day, none)
	})
	s.route(mux, "GET /timers/{executor}/{handler}/{key}", func(w http.ResponseWriter, r *http.Request, _ map[string]any) {
		found(w, r, pending)
	})
	s.route(mux, "POST /timers/{executor}/{handler}/{key}/cancel", func(w http.ResponseWriter, r *http.Request, _ map[string]any) {
		found(w, r, timer("a/b c", "cancelled", `"7302"`, "cancelled by anna", ""))
	})
	s.route(mux, "POST /timers/{executor}/{handler}/{key}/reschedule", func(w http.ResponseWriter, r *http.Request, _ map[string]any) {
		found(w, r, pending)
	})
	s.route(mux, "POST /timers/cancel", func(w http.ResponseWriter, _ *http.Request, body map[string]any) {
		if keys, _ := body["keys"].([]any); len(keys) > 0 && keys[0] == "none" {
			fmt.Fprint(w, `{"executor":"shop","handler":"mail/send","found":0,"cancelled":0,"done":true,"finishedAt":null,"items":[{"key":"none","outcome":"not_found"},{"key":"nil","outcome":"not_found"}]}`)
			return
		}
		if body["keys"] != nil {
			fmt.Fprint(w, `{"executor":"shop","handler":"mail/send","found":1,"cancelled":1,"done":true,"finishedAt":null,"items":[{"key":"a","outcome":"cancelled"},{"key":"b","outcome":"not_found"},
				{"key":" c","outcome":"invalid","problem":{"code":"validation_failed","title":"Unprocessable Entity","detail":"body.keys: must not begin or end with a blank"}}]}`)
			return
		}
		w.WriteHeader(202)
		fmt.Fprint(w, `{"id":"950","executor":"shop","handler":"mail/send","found":0,"cancelled":0,"done":false,"finishedAt":null}`)
	})
	s.route(mux, "GET /timer-cancellations/{id}", func(w http.ResponseWriter, _ *http.Request, _ map[string]any) {
		fmt.Fprint(w, `{"id":"950","executor":"shop","handler":"mail/send","found":8,"cancelled":7,"done":true,"finishedAt":"2026-11-01T00:00:00.000Z"}`)
	})
}

func TestTimers(t *testing.T) {
	server := newFakeServer(t)
	term := keyed(t, server)
	const target, key = "shop/mail/send", "a/b c"
	r := term.run("timer", "set", target, "--key", "order-77", "--after", "30m", "--input", `{"order":77}`, "--label", "eu,vip", "--max-attempts", "3",
		"--timeout", "5s", "--start-within", "1h", "--note", "unpaid", "--policy", "replace")
	require.Equal(t, 0, r.code, r.stderr)
	require.Contains(t, r.stderr, "The timer order-77 was created.")
	require.Equal(t, map[string]any{
		"executor": "shop", "handler": "mail/send", "key": "order-77", "after": "30m", "input": map[string]any{"order": 77.0}, "labels": []any{"eu", "vip"},
		"maxAttempts": 3.0, "timeout": "5s", "startWithin": "1h", "note": "unpaid", "policy": "replace",
	}, server.lastBody("POST /timers"))
	require.Equal(t, "order-78\n", term.run("timer", "set", target, "--key", "order-78", "--at", "2027-01-01T08:00:00Z", "-o", "name").stdout)
	require.Equal(t, 5, term.run("timer", "set", target, "--key", "x", "--after", "1s", "--policy", "reject").code)

	r = term.run("timer", "set", target, "--key", "there", "--after", "1s")
	require.Contains(t, r.stderr, "The timer there was kept.\n")
	r = term.run("timer", "set", target, "--key", "over", "--after", "1s")
	require.Equal(t, 0, r.code, r.stderr)
	require.Contains(t, r.stderr, "The timer over was kept, and it has ended already: timed out at 2026-11-02T00:00:00.000Z. Nothing will run. To set it anew: --policy replace")
	r = term.run("timer", "set", target, "--after", "nonsense")
	require.Equal(t, 2, r.code)
	require.Contains(t, r.stderr, `Error: --after: "nonsense" is no span of time`)

	for _, code := range []string{"unfit_input", "unknown_handler"} {
		r = term.run("timer", "set", target, "--after", "1s", "--note", code)
		require.Contains(t, r.stderr, "with: carillon executor handlers EXECUTOR")
		require.NotContains(t, r.stderr, "--allow", "it has no such flag")
	}

	r = term.run("timer", "get", target, key)
	require.Equal(t, 0, r.code, r.stderr)
	require.Contains(t, spaced(r.stdout), "shop/mail/send a/b c pending")
	require.Equal(t, 3, term.run("timer", "get", target, "none").code)

	r = term.run("timer", "list", target, "--state", "ended", "--prefix", "a", "--label", "eu", "--from", "2026-01-01T00:00:00Z", "--to", "2028-01-01T00:00:00Z")
	require.Equal(t, 0, r.code, r.stderr)
	lines := strings.Split(strings.TrimSpace(r.stdout), "\n")
	require.Len(t, lines, 3)
	require.Equal(t, "HANDLER KEY STATE FIRES AT RUN WHY BY SET AT", spaced(lines[0]))
	require.Contains(t, spaced(lines[2]), "gone cancelled 2027-01-01T08:00:00.000Z 7301 cancelled by anna key:orders")
	for _, part := range []string{"executor=shop", "handler=mail%2Fsend", "state=ended", "keyPrefix=a", "label=eu", "from=2026-01-01", "to=2028-01-01"} {
		require.Contains(t, server.lastQuery("GET /timers"), part)
	}

	r = term.run("timer", "count")
	require.Equal(t, 0, r.code, r.stderr)
	require.Contains(t, r.stderr, "3 timers are pending.")
	require.Contains(t, spaced(r.stdout), "shop/mail/send 3")
	require.Contains(t, term.run("timer", "count", target, "-o", "json").stdout, `"pending": 3`)

	r = term.run("timer", "statistics", target, "--step", "day", "--since", "2160h")
	require.Equal(t, 0, r.code, r.stderr)
	require.Contains(t, spaced(r.stdout), "9 9 2 0 0 0 3 0 5ms 1.7s - -") // len("mail/send") succeeded
	r = term.run("timer", "statistics")
	require.Equal(t, 0, r.code, r.stderr)
	require.Contains(t, r.stderr, "Nothing has ended since")
	require.Contains(t, term.run("timer", "statistics", "-o", "json").stdout, `"step": "day"`)

	r = term.run("timer", "reschedule", target, key, "--after", "2h")
	require.Equal(t, 0, r.code, r.stderr)
	require.Equal(t, 3, term.run("timer", "reschedule", target, "none", "--after", "2h").code)

	r = term.run("timer", "cancel", target, key)
	require.Equal(t, 0, r.code, r.stderr)
	require.Contains(t, r.stdout, "cancelled by anna")
	r = term.run("timer", "cancel", target, "a", "b", " c")
	require.Equal(t, 1, r.code)
	require.Contains(t, r.stderr, `There is no timer "b" of shop/mail/send.`)
	require.Contains(t, r.stderr, `" c" cannot be the key of a timer: must not begin or end with a blank`)
	require.Contains(t, r.stderr, "2 of 3 timers were not cancelled")
	require.Equal(t, []any{"a", "b", " c"}, server.lastBody("POST /timers/cancel")["keys"])
	r = term.run("timer", "cancel", target, "none", "nil")
	require.Equal(t, 3, r.code, "there is none of them")
	require.Contains(t, r.stderr, `There is no timer "nil" of shop/mail/send.`)
	require.Contains(t, term.run("timer", "cancel", target, "none").stderr, "there is no timer none")
	r = term.run("timer", "cancel", target, "--prefix", "order-", "--yes")
	require.Equal(t, 0, r.code, r.stderr)
	require.Contains(t, spaced(r.stdout), "950 shop/mail/send 0 0 no")
	require.Equal(t, "order-", server.lastBody("POST /timers/cancel")["keyPrefix"])
	require.Contains(t, spaced(term.run("timer", "cancel", target, "--status", "950").stdout), "950 shop/mail/send 8 7 yes")
}

// The list of overdue jobs has no timers; it says how many there are, and where.
func TestOverdueTimersAreCounted(t *testing.T) {
	term := keyed(t, newFakeServer(t))
	const says = `Timers that are overdue: 1\. See: carillon timer list --state claimed --to 20\S+Z\n`
	r := term.run("job", "overdue")
	require.Equal(t, 0, r.code, r.stderr)
	require.Regexp(t, "^"+says+"$", r.stderr)
	r = term.run("job", "overdue", "--by", "10m")
	require.Contains(t, r.stdout, "close-day")
	require.Regexp(t, "^"+says+"$", r.stderr)
	require.Empty(t, term.run("job", "overdue", "-o", "json").stderr)
}

func TestTimersAreCompleted(t *testing.T) {
	term := keyed(t, newFakeServer(t))
	require.Contains(t, term.run("__complete", "timer", "get", "sh").stdout, "shop/\n")
	require.Contains(t, term.run("__complete", "timer", "set", "shop/").stdout, "shop/close-day\n")
	require.NotContains(t, term.run("__complete", "timer", "set", "shop/x").stdout, "shop/close-day\n")
	for _, command := range []string{"get", "cancel", "reschedule"} {
		require.Contains(t, term.run("__complete", "timer", command, "shop/mail/send", "a").stdout, "a/b c\n")
	}
	require.NotContains(t, term.run("__complete", "timer", "cancel", "shop/mail/send", "gone", "").stdout, "gone\n", "it is typed already")
	require.NotContains(t, term.run("__complete", "timer", "list", "shop/mail/send", "").stdout, "a/b c\n")
}

func TestTimerUsage(t *testing.T) {
	server := newFakeServer(t)
	term := keyed(t, server)
	for _, args := range [][]string{
		{"set", "shop", "--after", "1s"}, {"set", "/x", "--after", "1s"}, {"set", "shop/", "--after", "1s"}, {"set", "shop/x"},
		{"set", "shop/x", "--after", "1s", "--at", "2027-01-01T08:00:00Z"}, {"set", "shop/x", "--after", "1s", "--input", "{"}, {"set", "shop/x", "--after", "1s", "--policy", "kepe"},
		{"get", "shop/x"}, {"get", "shop", "a"}, {"list", "shop"}, {"list", "--state", "gone"}, {"count", "shop"}, {"reschedule", "shop/x", "a"}, {"reschedule", "shop", "a", "--after", "1s"},
		{"cancel", "shop/x"}, {"cancel", "shop", "a"}, {"cancel", "shop/x", "a", "--prefix", "b"}, {"cancel", "shop/x", "--prefix", "b", "--label", "c"}, {"cancel", "shop/x", "--label", "c"},
		{"cancel", "shop/x", "--status", "950", "a"}, {"cancel", "shop/x", "--status", "950", "--prefix", "b", "--yes"}, {"cancel", "shop/x", "--status", "950", "--label", "c", "--yes"},
	} {
		r := term.run(append([]string{"timer"}, args...)...)
		require.Equal(t, 2, r.code, "%q: %s", args, r.stderr)
	}
	require.Nil(t, server.lastBody("POST /timers"))
	require.Nil(t, server.lastBody("POST /timers/cancel"))
}
