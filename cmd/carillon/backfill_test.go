package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// backfillRoutes know one backfill, 900, of close-day.
func (s *fakeServer) backfillRoutes(mux *http.ServeMux) {
	backfill := func(state string, created int, fires string) string {
		return fmt.Sprintf(`{"id":"900","jobId":"1","state":%q,"scope":"missing","from":"2026-03-01T00:00:00.000Z","to":"2026-03-04T00:00:00.000Z",
			"planned":3,"created":%d,"skipped":1,"succeeded":1,"failed":0,"running":1,"fires":[%s]}`, state, created, fires)
	}
	s.route(mux, "POST /jobs/{id}/backfill", func(w http.ResponseWriter, _ *http.Request, body map[string]any) {
		switch {
		case body["from"] == "yesterday":
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(422)
			fmt.Fprint(w, `{"status":422,"code":"validation_failed","detail":"one field is wrong","errors":[
				{"location":"body.from","message":"is no instant","value":"yesterday"}]}`)
		case body["note"] == "all there":
			fmt.Fprint(w, backfill("done", 0, ""))
		case body["dryRun"] == true:
			fmt.Fprint(w, backfill("running", 2, `{"at":"2026-03-01T18:00:00.000Z","zoned":"2026-03-02T02:00:00+08:00"}`))
		default:
			w.WriteHeader(201)
			fmt.Fprint(w, backfill("running", 2, ""))
		}
	})
	s.route(mux, "GET /jobs/{id}/backfills", func(w http.ResponseWriter, _ *http.Request, _ map[string]any) {
		fmt.Fprintf(w, `{"items":[%s],"nextCursor":null}`, backfill("running", 2, ""))
	})
	s.route(mux, "POST /backfills/{id}/cancel", func(w http.ResponseWriter, r *http.Request, _ map[string]any) {
		if r.PathValue("id") != "900" {
			refuse(w, 404, "not_found", "there is no backfill "+r.PathValue("id"))
			return
		}
		fmt.Fprint(w, backfill("cancelled", 2, ""))
	})
}

func TestJobBackfill(t *testing.T) {
	server := newFakeServer(t)
	term := keyed(t, server)
	span := []string{"--from", "2026-03-01T00:00:00Z", "--to", "2026-03-04T00:00:00Z"}
	backfill := func(more ...string) []string {
		return append(append([]string{"job", "backfill", "close-day"}, span...), more...)
	}

	r := term.run(backfill("--scope", "all", "--concurrency", "2", "--note", "lost week")...)
	require.Equal(t, 0, r.code, r.stderr)
	lines := strings.Split(strings.TrimSpace(r.stdout), "\n")
	require.Len(t, lines, 2)
	require.Equal(t, "ID STATE FROM TO FIRES CREATED SKIPPED SUCCEEDED FAILED", spaced(lines[0]))
	require.True(t, strings.HasPrefix(spaced(lines[1]), "900 running "), lines[1])
	require.True(t, strings.HasSuffix(spaced(lines[1]), " 3 2 1 1 0"), lines[1])
	require.Equal(t, map[string]any{"from": span[1], "to": span[3], "scope": "all", "concurrency": 2.0, "note": "lost week"}, server.lastBody("POST /jobs/{id}/backfill"))

	r = term.run(backfill("-o", "json")...)
	require.Equal(t, 0, r.code, r.stderr)
	var doc struct{ State string }
	require.NoError(t, json.Unmarshal([]byte(r.stdout), &doc), "standard output is JSON and nothing else")
	require.Equal(t, "running", doc.State)

	r = term.run(backfill("--dry-run")...)
	require.Equal(t, 0, r.code, r.stderr)
	require.Equal(t, "2026-03-02T02:00:00+08:00\n", r.stdout)
	require.Contains(t, r.stderr, "3 fire times in the range, 2 would run, 1 need not")
	require.Contains(t, r.stderr, "and 1 more")
	r = term.run(backfill("--dry-run", "--note", "all there")...)
	require.Equal(t, "none\n", r.stdout)
	r = term.run(backfill("--dry-run", "-o", "json")...)
	require.NoError(t, json.Unmarshal([]byte(r.stdout), &doc))
}

func TestJobBackfillMistakesAndOthers(t *testing.T) {
	term := keyed(t, newFakeServer(t))
	r := term.run("job", "backfill", "close-day", "--from", "yesterday", "--to", "2026-03-04T00:00:00Z")
	require.Equal(t, 2, r.code)
	require.Contains(t, r.stderr, "--from", "the place of the mistake")
	require.Contains(t, r.stderr, "is no instant")
	r = term.run("job", "backfill", "close-day", "--from", "2026-03-01T00:00:00Z")
	require.Equal(t, 2, r.code)
	require.Contains(t, r.stderr, "--from and --to")
	require.Equal(t, 3, term.run("job", "backfill", "nope", "--list").code)

	r = term.run("job", "backfill", "close-day", "--list", "-o", "name")
	require.Equal(t, 0, r.code, r.stderr)
	require.Equal(t, "900\n", r.stdout)
	r = term.run("job", "backfill", "close-day", "--cancel", "900")
	require.Equal(t, 0, r.code, r.stderr)
	require.Contains(t, r.stdout, "cancelled")
	require.Equal(t, 3, term.run("job", "backfill", "close-day", "--cancel", "901").code)
}
