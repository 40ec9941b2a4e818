package main

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

func (s *fakeServer) retentionRoutes(mux *http.ServeMux) {
	const rule = `{"runDays":30,"logDays":7,"runCount":0,%s"effective":{"runs":"720h","logs":"168h","runCount":0},"runsFrom":null,"version":4,"updatedAt":null,"updatedBy":"alice"}`
	of := func(job string) func(http.ResponseWriter, *http.Request, map[string]any) {
		return func(w http.ResponseWriter, _ *http.Request, _ map[string]any) { fmt.Fprintf(w, rule, job) }
	}
	s.route(mux, "GET /retention", of(""))
	s.route(mux, "PUT /retention", of(""))
	s.route(mux, "GET /jobs/{id}/retention", of(`"jobId":"11","jobName":"close-day",`))
	s.route(mux, "PUT /jobs/{id}/retention", of(`"jobId":"11","jobName":"close-day",`))
	s.route(mux, "GET /retention/rules", func(w http.ResponseWriter, _ *http.Request, _ map[string]any) {
		fmt.Fprintf(w, `{"items":[`+rule+`],"nextCursor":null}`, "")
	})
	purge := func(state string, deleted int) string {
		return fmt.Sprintf(`{"id":"9","jobId":"11","before":"2026-11-01T00:00:00.000Z","state":%q,"found":7,"foundMore":false,"deleted":%d,"createdAt":"2026-11-21T03:00:00.000Z","createdBy":"alice","finishedAt":null}`, state, deleted)
	}
	s.route(mux, "POST /run-purges", func(w http.ResponseWriter, _ *http.Request, body map[string]any) {
		if body["dryRun"] == true {
			fmt.Fprint(w, purge("dry_run", 0))
			return
		}
		w.WriteHeader(http.StatusAccepted)
		fmt.Fprint(w, purge("running", 0))
	})
	s.route(mux, "GET /run-purges/9", func(w http.ResponseWriter, _ *http.Request, _ map[string]any) { fmt.Fprint(w, purge("done", 7)) })
	s.route(mux, "POST /run-purges/9/cancel", func(w http.ResponseWriter, _ *http.Request, _ map[string]any) {
		fmt.Fprint(w, purge("cancelled", 3))
	})
	s.route(mux, "GET /run-purges", func(w http.ResponseWriter, _ *http.Request, _ map[string]any) {
		fmt.Fprintf(w, `{"items":[%s],"nextCursor":null}`, purge("done", 7))
	})
}

func TestRetentionCommands(t *testing.T) {
	server := newFakeServer(t)
	term := keyed(t, server)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"show"}, "tenant 30 7 - runs 720h, logs 168h"}, {[]string{"show", "--job", "close-day"}, "job close-day 30 7"},
		{[]string{"set", "--run-count", "5"}, "tenant 30"}, {[]string{"set", "--job", "close-day", "--log-days", "2"}, "job close-day"},
		{[]string{"clear", "--job", "close-day"}, "job close-day"},
	} {
		r := term.run(append([]string{"retention"}, c.args...)...)
		require.Equal(t, 0, r.code, "%v: %s", c.args, r.stderr)
		require.Contains(t, spaced(r.stdout), c.want, c.args)
	}
	body := server.lastBody("PUT /retention")
	require.EqualValues(t, 30, body["runDays"], "what is left out stays")
	require.EqualValues(t, 5, body["runCount"])
	require.Empty(t, server.lastBody("PUT /jobs/{id}/retention"), "cleared")
	require.Equal(t, 2, term.run("retention", "set").code)
}

func TestRunPurgeCommand(t *testing.T) {
	server := newFakeServer(t)
	term := keyed(t, server)
	r := term.run("run", "purge", "--job", "close-day", "--before", "2026-11-01T00:00:00Z", "--dry-run")
	require.Equal(t, 0, r.code, r.stderr)
	require.Equal(t, "7 runs would be deleted.\n", r.stdout)
	require.Equal(t, true, server.lastBody("POST /run-purges")["dryRun"])
	r = term.run("run", "purge", "--all", "--before", "720h")
	require.Equal(t, 2, r.code, "nobody answered")
	require.Equal(t, true, server.lastBody("POST /run-purges")["dryRun"], "nothing was deleted")
	r = term.run("run", "purge", "--all", "--before", "720h", "--yes", "--wait")
	require.Equal(t, 0, r.code, r.stderr)
	require.Contains(t, spaced(r.stdout), "done")
	require.Nil(t, server.lastBody("POST /run-purges")["dryRun"])
	require.Contains(t, term.run("run", "purge", "--list").stdout, "alice")
	require.Contains(t, term.run("run", "purge", "--cancel", "9").stdout, "cancelled")
	for _, wrong := range [][]string{{"--before", "1h"}, {"--all", "--job", "close-day", "--before", "1h"}, {"--all"}, {"--all", "--before", "soon"}} {
		require.Equal(t, 2, term.run(append([]string{"run", "purge"}, wrong...)...).code, "%v", wrong)
	}
}
