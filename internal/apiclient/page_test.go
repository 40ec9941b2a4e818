package apiclient

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPages(t *testing.T) {
	var asked []string
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		asked = append(asked, q.Get("state")+" "+q.Get("limit"))
		limit, _ := strconv.Atoi(q.Get("limit"))
		start, _ := strconv.Atoi(q.Get("cursor"))
		var items []string
		for i := start; i < min(start+limit, 450); i++ {
			items = append(items, fmt.Sprintf(`{"id":"%d","unknown":true}`, i))
		}
		next := "null"
		if start+limit < 450 {
			next = strconv.Quote(strconv.Itoa(start + limit))
		}
		fmt.Fprintf(w, `{"items":[%s],"nextCursor":%s}`, strings.Join(items, ","), next)
	})
	runs, err := List[Run](t.Context(), 0, c.ListRuns, ListRunsParams{})
	require.NoError(t, err)
	require.Len(t, runs, 450)
	require.Equal(t, "449", runs[449].Value.ID)
	require.JSONEq(t, `{"id":"449","unknown":true}`, string(runs[449].Raw), "the server's bytes are kept")

	asked = nil
	runs, err = List[Run](t.Context(), 250, c.ListRuns, ListRunsParams{State: "failed"})
	require.NoError(t, err)
	require.Len(t, runs, 250)
	require.Equal(t, []string{"failed 200", "failed 50"}, asked)

	handlers, err := ListOf[Ref](t.Context(), 1, c.ListHandlers, "7", ListHandlersParams{})
	require.NoError(t, err)
	require.Equal(t, "0", handlers[0].Value.ID)
}
