package main

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// catalogueRoutes know one handler and one proposal.
func (s *fakeServer) catalogueRoutes(mux *http.ServeMux) {
	s.route(mux, "GET /kinds", func(w http.ResponseWriter, _ *http.Request, _ map[string]any) {
		fmt.Fprint(w, `{"items":[{"name":"Connection","path":"connections","apiVersion":"carillon/v1","brief":false,"literal":[]},{"name":"Script","path":"scripts","apiVersion":"carillon/v1","brief":true,"literal":["spec.content"]}],"nextCursor":null}`)
	})
	s.route(mux, "GET /executors/{id}/handlers", func(w http.ResponseWriter, _ *http.Request, _ map[string]any) {
		fmt.Fprint(w, `{"items":[{"name":"close-day","description":"Closes the day","inputSchema":{"type":"object"},"outputSchema":null,"idempotent":true,
			"instancesOnline":0,"firstSeenAt":"2026-11-01T00:00:00.000Z","lastSeenAt":"2026-11-02T00:00:00.000Z","versions":[
			{"version":"1.5.0","build":"b2","inForce":false,"instancesOnline":0},{"version":"1.4.0","build":"b1","inForce":false,"instancesOnline":0}]}],"nextCursor":null}`)
	})
	const proposal = `{"id":"40","name":"close-day","executor":{"id":"5","name":"shop"},"job":{"id":"1","name":"close-day"},"state":"pending","hash":"h2",
		"version":"1.5.0","proposedAt":"2026-11-02T00:00:00.000Z","proposed":{"name":"close-day"},"changes":[
		{"field":"schedule.expr","from":"0 0 2 * * *","to":"0 0 3 * * *"},{"field":"timeout","from":null,"to":"1m"}]}`
	s.route(mux, "GET /job-proposals", func(w http.ResponseWriter, _ *http.Request, _ map[string]any) {
		items := proposal
		if s.accepted {
			items = ""
		}
		fmt.Fprintf(w, `{"items":[%s],"nextCursor":null}`, items)
	})
	s.route(mux, "POST /job-proposals/{id}/accept", func(w http.ResponseWriter, _ *http.Request, body map[string]any) {
		if body["hash"] != "h2" {
			refuse(w, 409, "conflict", "the application proposes something else meanwhile")
			return
		}
		s.accepted, s.revision = true, s.revision+1
		fmt.Fprint(w, s.job("1"))
	})
	s.route(mux, "GET /jobs/{id}/declaration", func(w http.ResponseWriter, _ *http.Request, _ map[string]any) {
		fmt.Fprint(w, `{"hash":"d2","version":"1.5.0","editedAt":"2026-11-02T00:00:00.000Z","editedBy":"anna","giveBack":true,"changes":[
			{"field":"schedule.expr","from":"0 0 9 * * *","to":"0 0 3 * * *"}]}`)
	})
	s.route(mux, "POST /jobs/{id}/give-back", func(w http.ResponseWriter, _ *http.Request, body map[string]any) {
		if body["hash"] != "d2" {
			refuse(w, 409, "conflict", "the application declares something else meanwhile")
			return
		}
		s.revision++
		fmt.Fprint(w, s.job("1"))
	})
	s.route(mux, "POST /job-proposals/{id}/decline", func(w http.ResponseWriter, _ *http.Request, _ map[string]any) { w.WriteHeader(204) })
}

// The catalogue is there while nothing runs.
func TestExecutorHandlers(t *testing.T) {
	term := keyed(t, newFakeServer(t))
	r := term.run("executor", "handlers", "shop")
	require.Equal(t, 0, r.code, r.stderr)
	require.Contains(t, r.stdout, "last 1.5.0")
	require.Contains(t, r.stdout, "Closes the day")
	r = term.run("executor", "handlers", "shop", "-o", "json")
	require.Contains(t, r.stdout, `"inputSchema": {`)
}

func TestGiveBack(t *testing.T) {
	server := newFakeServer(t)
	term := keyed(t, server)
	revision := func() (n int) {
		server.locked(func() { n = server.revision })
		return n
	}
	before := revision()
	r := term.run("job", "give-back", "close-day") // nobody answers
	require.NotEqual(t, 0, r.code)
	require.Contains(t, r.stderr, "Edited in the console by anna")
	require.Contains(t, r.stderr, "- schedule.expr: \"0 0 9 * * *\"\n+ schedule.expr: \"0 0 3 * * *\"\n")
	require.Equal(t, before, revision())
	r = term.run("job", "give-back", "close-day", "--yes")
	require.Equal(t, 0, r.code, r.stderr)
	require.Contains(t, r.stderr, "Job close-day is the code's again, at revision")
	require.Equal(t, "d2", server.lastBody("POST /jobs/{id}/give-back")["hash"], "what was looked at")
	require.Equal(t, before+1, revision())
}

func TestProposals(t *testing.T) {
	server := newFakeServer(t)
	term := keyed(t, server)
	r := term.run("job", "proposal", "list")
	require.Equal(t, 0, r.code, r.stderr)
	require.Contains(t, r.stdout, "1.5.0")
	r = term.run("job", "proposal", "show", "close-day")
	require.Equal(t, "- schedule.expr: \"0 0 2 * * *\"\n+ schedule.expr: \"0 0 3 * * *\"\n+ timeout: \"1m\"\n", r.stdout)
	require.Equal(t, 3, term.run("job", "proposal", "accept", "other").code)
	require.Equal(t, 0, term.run("job", "proposal", "decline", "close-day").code)
	r = term.run("job", "proposal", "accept", "close-day")
	require.Equal(t, 0, r.code, r.stderr)
	require.Contains(t, r.stderr, "revision 4")
	require.Equal(t, "h2", server.lastBody("POST /job-proposals/{id}/accept")["hash"], "what was looked at")
	require.Contains(t, term.run("job", "proposal", "list").stderr, "Nothing is proposed")
}
