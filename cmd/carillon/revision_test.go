package main

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

func init() { addOnRoutes = append(addOnRoutes, (*fakeServer).revisionRoutes) }

func (s *fakeServer) revisionRoutes(mux *http.ServeMux) {
	s.route(mux, "GET /jobs/{id}/revisions", func(w http.ResponseWriter, _ *http.Request, _ map[string]any) {
		one := func(number int, by, spec string) string {
			return fmt.Sprintf(`{"revision":%d,"createdAt":"2026-11-2%dT00:00:00.000Z","createdBy":%q,"spec":%s}`, number, number, by, spec)
		}
		fmt.Fprintf(w, `{"items":[%s,%s,%s],"nextCursor":null}`,
			one(3, "anna, because calendar cn changed", `{"name":"close-day","timeout":"5m","labels":{"team":"pay"},"schedule":{"expr":"0 3 * * *"}}`),
			one(2, "bob", `{"name":"close-day","timeout":"1m","labels":{"team":"pay"},"schedule":{"expr":"0 3 * * *"}}`),
			one(1, "anna", `{"name":"close-day","timeout":"1m","labels":{"old":"x"},"schedule":{"expr":"0 2 * * *"}}`))
	})
}

// The values of a job before and after its changes are shown.
func TestJobRevisions(t *testing.T) {
	term := keyed(t, newFakeServer(t))
	r := term.run("job", "revisions", "close-day")
	require.Equal(t, 0, r.code, r.stderr)
	require.Contains(t, spaced(r.stdout), "3 2026-11-23T00:00:00.000Z anna, because calendar cn changed timeout 2 2026-11-22T00:00:00.000Z bob labels.old, labels.team, schedule.expr 1 ")
	r = term.run("job", "revisions", "close-day", "2", "--diff")
	require.Equal(t, "Revision 2, 2026-11-22T00:00:00.000Z by bob:\n  labels.old: \"x\" → nothing\n  labels.team: nothing → \"pay\"\n  schedule.expr: \"0 2 * * *\" → \"0 3 * * *\"\n", r.stdout, r.stderr)
	r = term.run("job", "revisions", "close-day", "--diff", "-o", "json")
	require.JSONEq(t, `{"from":2,"to":3,"changes":[{"path":"timeout","before":"1m","after":"5m"}]}`, r.stdout)
	r = term.run("job", "revisions", "close-day", "1")
	require.Contains(t, r.stdout, "expr: 0 2 * * *\n")
	for args, want := range map[string]string{"9": "it has 1 to 3", "x": "a version is a number"} {
		r = term.run("job", "revisions", "close-day", args)
		require.Equal(t, 2, r.code)
		require.Contains(t, r.stderr, want)
	}
	require.Equal(t, 2, term.run("job", "revisions", "close-day", "1", "--diff").code)
}

// The newest change of a document is shown as well.
func TestVersionsOfADocument(t *testing.T) {
	term := serverWithShop(t)
	require.Equal(t, 0, term.pipe("{kind: Calendar, name: cn, spec: {zone: UTC}}", "apply", "-f", "-", "--yes").code)
	require.Equal(t, 0, term.pipe("{kind: Calendar, name: cn, spec: {zone: UTC, holidays: [{date: 2026-10-01}]}}", "apply", "-f", "-", "--yes").code)
	r := term.run("calendar", "versions", "cn", "--diff")
	require.Equal(t, 0, r.code, r.stderr)
	require.Regexp(t, `(?s)^Version 2, .* by admin:\n  holidays: nothing → \[\{"date":"2026-10-01"\}\]\n$`, r.stdout)
	require.Contains(t, term.run("calendar", "versions", "cn", "1").stdout, "cn")
	require.Equal(t, 2, term.run("calendar", "versions", "cn", "1", "--diff").code)
}

// A mistake is told with file, line and document, and an unknown field hides no other one.
func TestMistakesHavePlaces(t *testing.T) {
	term := serverWithShop(t)
	text := "kind: Calendar\nname: cn\nspec:\n  zoen: UTC\n  zone: Mars/Base\n---\nkind: Job\nname: nightly\nspec:\n  executor: {name: shop}\n  handler: x\n  schedule: {kind: cron, expr: \"0 2 * * *\"}\n  timeout: banana\n"
	for _, command := range []string{"plan", "apply"} {
		r := term.pipe(text, command, "-f", "-")
		require.NotZero(t, r.code)
		require.Contains(t, r.stderr, "standard input:4 Calendar cn: spec.zoen: there is no such field\n  hint: did you mean \"zone\"?")
		require.Contains(t, r.stderr, "standard input:5 Calendar cn: spec.zone: ")
		require.Contains(t, r.stderr, "standard input:13 Job nightly: spec.timeout: ")
		require.NotContains(t, r.stderr, "body.documents")
	}
	r := term.pipe("kind: Job\nname: a\nspec: {handler: \"${{ none }}\"}\n---\nkind: Job\nname: b\nspec: {handler: \"${{ also }}\"}\n", "plan", "-f", "-")
	require.Equal(t, 2, r.code)
	require.Contains(t, r.stderr, "standard input:3 Job a: spec.handler: ${{ none }} has no value")
	require.Contains(t, r.stderr, "standard input:7 Job b: spec.handler: ${{ also }} has no value")
}

// Runs of one error are the newest ones only, and the command says so.
func TestRunsOfAnErrorAreNotAll(t *testing.T) {
	server := newFakeServer(t)
	term := keyed(t, server)
	r := term.run("run", "list", "--fingerprint", "00000000000000a7")
	require.Equal(t, 0, r.code, r.stderr)
	require.Contains(t, r.stderr, "this is the newest run with the error. All runs with a part of it: carillon run list --error TEXT")
	require.Equal(t, 0, term.run("run", "list", "--error", "ledger").code)
	require.Contains(t, server.lastQuery("GET /runs"), "error=ledger")
}
