package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func init() {
	addOnRoutes = append(addOnRoutes, (*fakeServer).alertRoutes, (*fakeServer).alertRuleRoutes, (*fakeServer).alertChannelRoutes)
}

// alertRoutes know one incident, 7, of three jobs, and one delivery of it.
func (s *fakeServer) alertRoutes(mux *http.ServeMux) {
	incident := func(state string) string {
		return fmt.Sprintf(`{"id":"7","kind":"run_lost","severity":"warning","state":%q,"executorId":"9","jobId":null,"partOf":null,"openedAt":"2026-11-01T00:00:00.000Z",
			"lastAt":"2026-11-01T00:00:00.000Z","resolvedAt":null,"resolvedBy":"","acknowledgedAt":null,"acknowledgedBy":"ann","events":12,"reopened":0,
			"jobCount":3,"jobs":[{"id":"1","name":"close-day","events":4}],"detail":"","messages":2,"toldAt":null}`, state)
	}
	s.route(mux, "GET /alert-incidents", func(w http.ResponseWriter, r *http.Request, _ map[string]any) {
		if r.URL.Query().Get("state") == "resolved" {
			fmt.Fprint(w, `{"items":[],"nextCursor":null}`)
			return
		}
		fmt.Fprintf(w, `{"items":[%s],"nextCursor":null}`, incident("open"))
	})
	s.route(mux, "GET /alert-incidents/{id}", func(w http.ResponseWriter, _ *http.Request, _ map[string]any) { fmt.Fprint(w, incident("open")) })
	s.route(mux, "GET /alert-incidents/{id}/events", func(w http.ResponseWriter, _ *http.Request, _ map[string]any) {
		fmt.Fprint(w, `{"items":[{"id":"70","kind":"run_lost","jobId":"1","runId":"700","reason":"process_died","missed":0,"detail":"","createdAt":"2026-11-01T00:00:00.000Z"}],"nextCursor":null}`)
	})
	s.route(mux, "POST /alert-incidents/{id}/acknowledge", func(w http.ResponseWriter, _ *http.Request, _ map[string]any) {
		fmt.Fprint(w, incident("acknowledged"))
	})
	s.route(mux, "POST /alert-incidents/{id}/resolve", func(w http.ResponseWriter, _ *http.Request, _ map[string]any) {
		refuse(w, 404, "not_found", "there is no such incident")
	})
	s.route(mux, "GET /deliveries", func(w http.ResponseWriter, r *http.Request, _ map[string]any) {
		fmt.Fprintf(w, `{"items":[{"id":"71","kind":"run_lost","incidentId":"7","jobId":"1","runId":"700","channel":"email","target":"ann@example.com","state":%q,
			"attempts":3,"lastError":"550 no such user","createdAt":"2026-11-01T00:00:00.000Z","deliveredAt":null}],"nextCursor":null}`, r.URL.Query().Get("state"))
	})
}

func TestAlertIncidents(t *testing.T) {
	term := keyed(t, newFakeServer(t))
	line := func(args ...string) string {
		r := term.run(append([]string{"alert"}, args...)...)
		require.Equal(t, 0, r.code, r.stderr)
		lines := strings.Split(strings.TrimSpace(r.stdout), "\n")
		return spaced(lines[len(lines)-1])
	}
	require.True(t, strings.HasPrefix(line("incident", "list"), "7 open run_lost warning close-day and 2 more jobs 12"))
	require.Contains(t, term.run("alert", "incident", "list", "--state", "resolved").stderr, "There are no incidents.")
	require.Contains(t, line("incident", "show", "7"), "ann")
	require.Contains(t, line("incident", "events", "7"), "run_lost process_died 1 700")
	r := term.run("alert", "incident", "acknowledge", "7")
	require.Equal(t, 0, r.code, r.stderr)
	require.Contains(t, r.stderr, "Incident 7 is taken on.")
	require.Equal(t, 3, term.run("alert", "incident", "resolve", "8").code)
	require.Contains(t, line("delivery", "list", "--state", "failed"), "failed run_lost email ann@example.com 3")
}

// alertRuleRoutes know one rule, finance (5), at version 2, and no silence.
func (s *fakeServer) alertRuleRoutes(mux *http.ServeMux) {
	rule := func(id, name string, version int) string {
		return fmt.Sprintf(`{"apiVersion":"carillon/v1","kind":"AlertRule","id":%q,"name":%q,"spec":{"enabled":true,"position":3,"match":{"kinds":["run_succeeded"],"labels":"team=finance"},
			"condition":{"kind":"events"},"severity":"critical","channels":["on-call"]},"version":%d,"createdAt":"2026-11-01T00:00:00.000Z","updatedAt":"2026-11-01T00:00:00.000Z","createdBy":"ann","updatedBy":"ann"}`, id, name, version)
	}
	s.route(mux, "GET /alert-rules", func(w http.ResponseWriter, _ *http.Request, _ map[string]any) {
		fmt.Fprintf(w, `{"items":[%s],"nextCursor":null}`, rule("5", "finance", 2))
	})
	s.route(mux, "GET /alert-rules/{id}", func(w http.ResponseWriter, r *http.Request, _ map[string]any) {
		if word := r.PathValue("id"); word != "5" && word != "finance" {
			refuse(w, 404, "not_found", "there is no alert rule")
			return
		}
		fmt.Fprint(w, rule("5", "finance", 2))
	})
	s.route(mux, "POST /alert-rules", func(w http.ResponseWriter, _ *http.Request, body map[string]any) {
		w.WriteHeader(201)
		fmt.Fprint(w, rule("6", body["name"].(string), 1))
	})
	s.route(mux, "PUT /alert-rules/{id}", func(w http.ResponseWriter, r *http.Request, _ map[string]any) {
		if r.Header.Get("If-Match") != `"2"` {
			refuse(w, 412, "revision_mismatch", "the rule was changed meanwhile")
			return
		}
		fmt.Fprint(w, rule("5", "finance", 3))
	})
	s.route(mux, "DELETE /alert-rules/{id}", func(w http.ResponseWriter, r *http.Request, _ map[string]any) {
		s.removed = append(s.removed, "alert rule "+r.PathValue("id"))
		w.WriteHeader(204)
	})
	silence := func(match any) string {
		return fmt.Sprintf(`{"id":"9","match":{"labels":%q},"reason":"deploy","startsAt":"2026-11-01T00:00:00.000Z","endsAt":"2026-11-01T02:00:00.000Z","createdAt":"2026-11-01T00:00:00.000Z","createdBy":"ann","endedBy":""}`, match)
	}
	s.route(mux, "GET /alert-silences", func(w http.ResponseWriter, _ *http.Request, _ map[string]any) {
		fmt.Fprint(w, `{"items":[],"nextCursor":null}`)
	})
	s.route(mux, "POST /alert-silences", func(w http.ResponseWriter, _ *http.Request, body map[string]any) {
		if body["duration"] != "2h0m0s" {
			refuse(w, 422, "validation_failed", "duration")
			return
		}
		w.WriteHeader(201)
		fmt.Fprint(w, silence(body["match"].(map[string]any)["labels"]))
	})
	s.route(mux, "POST /alert-silences/{id}/end", func(w http.ResponseWriter, _ *http.Request, _ map[string]any) { fmt.Fprint(w, silence("")) })
	s.route(mux, "GET /alert-settings", func(w http.ResponseWriter, _ *http.Request, _ map[string]any) {
		fmt.Fprint(w, `{"version":4,"defaultChannelIds":[],"quietHours":null,"updatedAt":null,"updatedBy":""}`)
	})
	s.route(mux, "PUT /alert-settings", func(w http.ResponseWriter, r *http.Request, _ map[string]any) {
		if r.Header.Get("If-Match") != `"4"` {
			refuse(w, 412, "revision_mismatch", "changed meanwhile")
			return
		}
		fmt.Fprint(w, `{"version":5,"defaultChannelIds":["8"],"quietHours":null,"updatedAt":null,"updatedBy":"ann"}`)
	})
}

func TestAlertRules(t *testing.T) {
	server := newFakeServer(t)
	term := keyed(t, server)
	r := term.run("alert", "rule", "list")
	require.Equal(t, 0, r.code, r.stderr)
	require.Contains(t, spaced(r.stdout), "finance 3 events run_succeeded critical on-call yes")
	got := term.run("alert", "rule", "get", "finance", "-o", "yaml")
	require.Equal(t, 0, got.code, got.stderr)
	r = term.pipe(got.stdout, "alert", "rule", "apply", "-f", "-")
	require.Equal(t, 0, r.code, r.stderr)
	require.Contains(t, r.stderr, "Rule finance is at version 3.")
	r = term.pipe("name: other\nspec:\n  condition: {kind: events}\n", "alert", "rule", "apply", "-f", "-")
	require.Contains(t, r.stderr, "Rule other is at version 1.")
	require.Equal(t, 0, term.run("alert", "rule", "delete", "finance", "--yes").code)
	require.Contains(t, server.removed, "alert rule 5")
	require.Equal(t, 3, term.run("alert", "rule", "get", "nothing").code)
}

func TestAlertSilences(t *testing.T) {
	term := keyed(t, newFakeServer(t))
	require.Contains(t, term.run("alert", "silence", "list").stderr, "There are no silences.")
	r := term.run("alert", "silence", "create", "--for", "2h", "--reason", "deploy", "--labels", "app=billing")
	require.Equal(t, 0, r.code, r.stderr)
	require.Contains(t, r.stdout, "app=billing")
	require.NotEqual(t, 0, term.run("alert", "silence", "create", "--for", "2h").code, "why?")
	require.Contains(t, term.run("alert", "silence", "end", "9").stderr, "Silence 9 is over.")
	require.Contains(t, term.run("alert", "default").stderr, "There are no default channels.")
	require.Contains(t, term.run("alert", "default", "8").stderr, "Default channels: 8.")
}
