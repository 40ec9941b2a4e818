package api

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

func TestRefusalsAreForPlatformAdmins(t *testing.T) {
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	w := newWorld(t)
	require.NoError(t, w.store.NoteRefusals(t.Context(), []domain.Refusal{
		{Code: "bad_token", Message: "no", Remote: "192.0.2.7", Executor: "shop", Instance: "a", Node: "one", Times: 3, FirstAt: at, LastAt: at.Add(time.Minute)},
		{Code: domain.RefusalUnheard, Node: "two", Times: 2, FirstAt: at, LastAt: at},
	}, 10))
	w.call("acme/admin", "GET", "/cluster/refusals", nil).problem(403, "permission_denied")
	got := into[Refusals](w.call("platform", "GET", "/cluster/refusals", nil).is(200))
	require.Equal(t, 2, got.Unheard)
	require.Equal(t, []Refusal{{
		Code: "bad_token", Message: "no", Remote: "192.0.2.7", Executor: "shop", Instance: "a", Node: "one", Times: 3,
		FirstAt: "2026-11-21T12:00:00.000Z", LastAt: "2026-11-21T12:01:00.000Z",
	}}, got.Items)
}
