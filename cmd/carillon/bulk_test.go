package main

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

func init() { addOnRoutes = append(addOnRoutes, (*fakeServer).bulkRoutes) }

// bulkRoutes know operations with three items, of which one fails for the action delete.
func (s *fakeServer) bulkRoutes(mux *http.ServeMux) {
	action, looks := "pause", 0
	operation := func(state string) string {
		done, failed := 0, 0
		if state == "done" {
			done = 3
		}
		if state == "done" && action == "delete" {
			done, failed = 2, 1
		}
		return fmt.Sprintf(`{"id":"9","action":%q,"filter":{},"state":%q,"total":3,"done":%d,"skipped":0,"failed":%d,"note":"","message":"","createdAt":"2026-11-21T03:00:00.000Z","createdBy":"alice","finishedAt":null,
			"items":[{"id":"11","name":"close-day"},{"id":"12","name":"close-week"},{"id":"13","name":"report"}]}`, action, state, done, failed)
	}
	s.route(mux, "POST /bulk", func(w http.ResponseWriter, _ *http.Request, body map[string]any) {
		action, looks = body["action"].(string), 0
		switch {
		case body["dryRun"] == true:
			fmt.Fprint(w, operation("dry_run"))
		case body["expected"] != 3.0:
			refuse(w, 409, "count_mismatch", "3 items match now")
		default:
			w.WriteHeader(202)
			fmt.Fprint(w, operation("running"))
		}
	})
	s.route(mux, "GET /bulk", func(w http.ResponseWriter, _ *http.Request, _ map[string]any) {
		fmt.Fprintf(w, `{"items":[%s],"nextCursor":null}`, operation("done"))
	})
	s.route(mux, "GET /bulk/9", func(w http.ResponseWriter, _ *http.Request, _ map[string]any) {
		if looks++; looks > 1 {
			fmt.Fprint(w, operation("done"))
			return
		}
		fmt.Fprint(w, operation("running"))
	})
	s.route(mux, "GET /bulk/9/items", func(w http.ResponseWriter, _ *http.Request, _ map[string]any) {
		fmt.Fprint(w, `{"items":[{"id":"13","name":"report","outcome":"failed","code":"owned_by_code","message":"the code declares it"}],"nextCursor":null}`)
	})
	s.route(mux, "POST /bulk/9/cancel", func(w http.ResponseWriter, _ *http.Request, _ map[string]any) { fmt.Fprint(w, operation("cancelled")) })
	s.route(mux, "POST /bulk/9/retry", func(w http.ResponseWriter, _ *http.Request, _ map[string]any) {
		w.WriteHeader(202)
		fmt.Fprint(w, operation("running"))
	})
}

func TestSelections(t *testing.T) {
	server := newFakeServer(t)
	term := keyed(t, server)
	for _, c := range []struct {
		args         []string
		action       string
		filter, more map[string]any
	}{
		{[]string{"job", "pause", "-l", "team=pay", "--executor", "shop", "--note", "audit"}, "pause", map[string]any{"label": "team=pay", "executorId": "5"}, map[string]any{"note": "audit"}},
		{[]string{"job", "resume", "--state", "paused", "--owner", "pay", "--all"}, "resume", map[string]any{"state": "paused", "owner": "pay"}, map[string]any{"all": true}},
		{[]string{"job", "resume", "--name", "close-*", "--paused-by", "9"}, "resume", map[string]any{"name": "close-*"}, map[string]any{"pausedBy": "9"}},
		{[]string{"job", "run", "--name", "close-*", "--during-maintenance"}, "run", map[string]any{"name": "close-*"}, map[string]any{"duringMaintenance": true}},
		{[]string{"job", "label", "tier=gold,old-", "--name", "close-*"}, "label", map[string]any{"name": "close-*"}, map[string]any{"labels": map[string]any{"tier": "gold"}, "removeLabels": []any{"old"}}},
		{[]string{"job", "set-owner", "Pay", "--email", "pay@example.com", "close-day"}, "set-owner", map[string]any{"ids": []any{"1"}}, map[string]any{"owner": map[string]any{"name": "Pay", "email": "pay@example.com"}}},
		{[]string{"run", "retry", "--since", "2026-11-21T00:00:00Z", "--state", "failed", "--error", "ledger"}, "retry", map[string]any{"from": "2026-11-21T00:00:00Z", "state": "failed", "error": "ledger"}, nil},
		{[]string{"run", "cancel", "--job", "close-day", "--reason", "late"}, "cancel", map[string]any{"jobId": "1"}, map[string]any{"note": "late"}},
	} {
		r := term.run(append(c.args, "--yes")...)
		require.Equal(t, 0, r.code, "%v: %s", c.args, r.stderr)
		require.Contains(t, spaced(r.stdout), "9 "+c.action+" done 3 3 0 0", c.args)
		sent := server.lastBody("POST /bulk")
		require.Equal(t, []any{c.action, 3.0}, []any{sent["action"], sent["expected"]}, c.args)
		require.Equal(t, c.filter, sent["filter"], c.args)
		for name, value := range c.more {
			require.Equal(t, value, sent[name], c.args)
		}
	}
	for _, args := range [][]string{{"job", "pause", "-l", "team=pay", "-l", "tier=gold", "--for", "2h", "--yes"}, {"job", "pause", "close-day", "--until", "2026-12-24T06:00:00Z"}} {
		require.Equal(t, 0, term.run(args...).code, "%v", args)
		require.NotEmpty(t, server.lastBody("POST /bulk")["until"], "%v", args)
	}
	require.Equal(t, []any{map[string]any{"ids": []any{"1"}}, "2026-12-24T06:00:00Z"}, []any{server.lastBody("POST /bulk")["filter"], server.lastBody("POST /bulk")["until"]})
	require.Equal(t, 2, term.run("job", "pause", "-l", "a", "--for", "2h", "--until", "06:00", "--yes").code)
	require.Equal(t, 0, term.run("job", "list", "-l", "a=b", "-l", "c").code)
	require.Contains(t, server.lastQuery("GET /jobs"), "label=a%3Db%2Cc&")
	r := term.run("job", "delete", "-l", "team=pay", "--yes")
	require.Equal(t, 1, r.code, "one has failed")
	require.Contains(t, r.stderr, "13 report: the code declares it")
	r = term.run("job", "pause", "-l", "team=pay")
	require.Equal(t, 2, r.code, "nobody can be asked")
	require.Equal(t, true, server.lastBody("POST /bulk")["dryRun"], "nothing was done")
	for _, wrong := range [][]string{
		{"job", "pause"}, {"job", "pause", "close-day", "-l", "a"}, {"job", "run", "-l", "a", "--input", "1", "--yes"}, {"run", "retry"}, {"job", "label", "-l", "a"}, {"job", "label", "nothing", "-l", "a"},
	} {
		require.Equal(t, 2, term.run(wrong...).code, "%v", wrong)
	}
}

func TestSeveralNames(t *testing.T) {
	server := newFakeServer(t)
	term := keyed(t, server)
	r := term.run("job", "run", "close-day", "nothing-like-it")
	require.Equal(t, 3, r.code)
	require.Contains(t, r.stderr, "nothing-like-it")
	require.Contains(t, r.stdout, "close-day", "the other one was done")
}

func TestBulkCommands(t *testing.T) {
	server := newFakeServer(t)
	term := keyed(t, server)
	require.Contains(t, spaced(term.run("bulk", "list").stdout), "9 pause done 3 3 0 0")
	require.Equal(t, 1, term.run("job", "delete", "--name", "*", "--yes").code)
	r := term.run("bulk", "get", "9")
	require.Contains(t, spaced(r.stdout), "13 report failed the code declares it")
	require.Contains(t, term.run("bulk", "get", "9", "-o", "json").stdout, `"failed"`)
	require.Contains(t, spaced(term.run("bulk", "cancel", "9").stdout), "cancelled")
	require.Equal(t, 1, term.run("bulk", "retry", "9").code)
}
