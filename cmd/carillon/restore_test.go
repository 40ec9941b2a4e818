package main

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

func init() { addOnRoutes = append(addOnRoutes, (*fakeServer).restoreRoutes) }

func (s *fakeServer) restoreRoutes(mux *http.ServeMux) {
	s.route(mux, "GET /deleted-jobs", func(w http.ResponseWriter, _ *http.Request, _ map[string]any) {
		fmt.Fprint(w, `{"items":[{"id":"9","name":"close-day","executor":"shop","version":4,"deletedAt":"2026-11-02T00:00:00.000Z","deletedBy":"ann"},
			{"id":"8","name":"close-day","executor":"shop","version":2,"deletedAt":"2026-11-01T00:00:00.000Z","deletedBy":"bob"},
			{"id":"7","name":"report","executor":"shop","version":1,"deletedAt":"2026-11-01T00:00:00.000Z","deletedBy":"bob"},
			{"id":"6","name":"other","executor":"mail","version":1,"deletedAt":"2026-11-01T00:00:00.000Z","deletedBy":"bob"}],"nextCursor":null}`)
	})
	s.route(mux, "POST /jobs/{id}/restore", func(w http.ResponseWriter, r *http.Request, _ map[string]any) {
		s.removed = append(s.removed, "restored "+r.PathValue("id"))
		if r.PathValue("id") == "7" {
			refuse(w, 409, "conflict", "the job \"report\" cannot be restored as it was")
			return
		}
		fmt.Fprint(w, s.job("1"))
	})
	s.route(mux, "GET /deleted-executors", func(w http.ResponseWriter, _ *http.Request, _ map[string]any) {
		fmt.Fprint(w, `{"items":[{"id":"5","name":"old-shop","version":2,"deletedAt":"2026-11-02T00:00:00.000Z"}],"nextCursor":null}`)
	})
	s.route(mux, "POST /executors/{id}/restore", func(w http.ResponseWriter, _ *http.Request, _ map[string]any) {
		fmt.Fprint(w, `{"id":"5","name":"old-shop","description":"","kind":"application","state":"enabled","version":3,"createdAt":"2026-11-02T00:00:00.000Z"}`)
	})
}

// Of several deleted jobs of one name, the last deleted comes back. All jobs of an executor come
// back together, and one that is refused keeps no other one from it.
func TestJobRestore(t *testing.T) {
	s := newFakeServer(t)
	term := keyed(t, s)
	r := term.run("job", "list", "--deleted")
	require.Equal(t, 0, r.code, r.stderr)
	require.Contains(t, spaced(r.stdout), "9 close-day 4")
	require.Contains(t, spaced(r.stdout), "6 other 1")
	r = term.run("job", "restore", "close-day")
	require.Equal(t, 0, r.code, r.stderr)
	require.Contains(t, r.stderr, "Job close-day is back, enabled.")
	s.locked(func() { require.Equal(t, []string{"restored 9"}, s.removed, "the last deleted") })
	r = term.run("job", "restore", "gone")
	require.Equal(t, 3, r.code)
	require.Contains(t, r.stderr, `there is no deleted job "gone"`)
	for _, wrong := range [][]string{{"job", "restore"}, {"job", "restore", "close-day", "--executor", "shop"}} {
		require.Equal(t, 2, term.run(wrong...).code)
	}
	r = term.run("job", "restore", "--executor", "shop")
	require.NotZero(t, r.code)
	require.Contains(t, r.stderr, "1 of 2 deleted jobs of the executor shop are back.")
	require.Contains(t, r.stderr, "report: ")
}

func TestExecutorRestore(t *testing.T) {
	term := keyed(t, newFakeServer(t))
	r := term.run("executor", "list", "--deleted")
	require.Equal(t, 0, r.code, r.stderr)
	require.Contains(t, spaced(r.stdout), "5 old-shop 2")
	r = term.run("executor", "restore", "old-shop")
	require.Equal(t, 0, r.code, r.stderr)
	require.Contains(t, r.stderr, "carillon job restore --executor old-shop")
	require.Contains(t, r.stderr, "carillon executor token create old-shop")
	require.Equal(t, 3, term.run("executor", "restore", "shop").code)
}
