package main

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

func init() {
	addOnRoutes = append(addOnRoutes, func(s *fakeServer, mux *http.ServeMux) {
		s.route(mux, "GET /search", func(w http.ResponseWriter, r *http.Request, _ map[string]any) {
			if r.URL.Query().Get("q") != "team=pay" {
				fmt.Fprint(w, `{"items":[],"more":[]}`)
				return
			}
			fmt.Fprint(w, `{"items":[{"kind":"Job","id":"7","name":"nightly\u001b[31m","hint":"shop"},{"kind":"Timer","id":"8","name":"order-1","hint":"shop/send"}],"more":["Job"]}`)
		})
	})
}

func TestSearchCommand(t *testing.T) {
	term := keyed(t, newFakeServer(t))
	r := term.run("search", "team=pay")
	require.Equal(t, 0, r.code, r.stderr)
	require.Regexp(t, `(?m)^KIND +NAME +ID +HINT\nJob +nightly.* +7 +shop\nTimer +order-1 +8 +shop/send$`, r.stdout)
	require.NotContains(t, r.stdout, "\x1b")
	require.Contains(t, r.stderr, "There are more of: Job.")
	r = term.run("search", "team=pay", "-o", "json")
	require.Equal(t, 0, r.code, r.stderr)
	require.Contains(t, r.stdout, `"kind": "Timer"`)
	require.Contains(t, r.stdout, `"more"`)
	r = term.run("search", "team=pay", "-o", "name")
	require.Contains(t, r.stdout, "order-1\n")

	r = term.run("search", "nothing")
	require.Equal(t, 3, r.code)
	require.Empty(t, r.stdout)
	require.Contains(t, r.stderr, `"nothing"`)
	r = term.run("search", "nothing", "-o", "json")
	require.Equal(t, 3, r.code)
	require.Contains(t, r.stdout, `"items": []`)
	require.Equal(t, 2, term.run("search").code)
}
