package cli

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/internal/apiclient"
)

type named struct{ id, name string }

// The id of one job can be the name of another. The id wins, and a name cannot take over
// the commands for another job.
func TestIDWinsOverName(t *testing.T) {
	var all []apiclient.Doc[named]
	for _, n := range []named{{"7", "9007199254740993"}, {"8", "2026"}, {"9007199254740993", "nightly"}, {"9", "-1"}} {
		all = append(all, apiclient.Doc[named]{Value: n})
	}
	of := func(n named) (id, name string) { return n.id, n.name }
	get := func(_ context.Context, id string, _ ...apiclient.Edit) (apiclient.Doc[named], error) {
		for _, d := range all {
			if d.Value.id == id {
				return d, nil
			}
		}
		return apiclient.Doc[named]{}, &apiclient.Problem{Status: 404, Code: "not_found"}
	}
	for word, want := range map[string]string{"9007199254740993": "9007199254740993", "nightly": "9007199254740993", "2026": "8", "7": "7", "-1": "9"} {
		// The server lists things by their names. The thing with that id is not in the list.
		found, err := Find(t.Context(), "job", "job list", word, get, func() ([]apiclient.Doc[named], error) { return all[:2:2], nil }, of)
		if word == "nightly" || word == "-1" {
			require.Equal(t, ExitNotFound, CodeOf(err))
		} else {
			require.NoError(t, err)
			require.Equal(t, want, found.Value.id, word)
		}
		found, err = Listed("job", "job list", word, all, nil, of)
		require.NoError(t, err)
		require.Equal(t, want, found.Value.id, word)
	}
	for _, word := range []string{"5", "none"} {
		_, err := Find(t.Context(), "job", "job list", word, get, func() ([]apiclient.Doc[named], error) { return nil, nil }, of)
		require.ErrorContains(t, err, `there is no job "`+word+`"; see: carillon job list`)
		_, err = Listed("job", "job list", word, nil, nil, of)
		require.Equal(t, ExitNotFound, CodeOf(err))
	}
	gone := errors.New("the server is away")
	_, err := Find(t.Context(), "job", "job list", "7", func(context.Context, string, ...apiclient.Edit) (apiclient.Doc[named], error) {
		return apiclient.Doc[named]{}, gone
	}, nil, of)
	require.ErrorIs(t, err, gone, "what cannot be asked is not looked for by its name")
}
