package calljob

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// Calls take from their handler what becomes of lost ones and how long they wait;
// callbacks wait as it says, and run at least once.
func TestSettingsOfTheHandler(t *testing.T) {
	h := domain.Handler{Name: "close-day", Calls: &domain.JobSpec{OnLost: domain.OnLostFail, DispatchTimeout: time.Hour}}
	call, callback := specOf("shop", h, Call), specOf("shop", h, Callback)
	require.Equal(t, []any{domain.OnLostFail, time.Hour}, []any{call.OnLost, call.DispatchTimeout})
	require.Equal(t, []any{domain.OnLostRetry, time.Hour}, []any{callback.OnLost, callback.DispatchTimeout})
	h.Calls.DispatchTimeout = 0
	require.Equal(t, 24*time.Hour, ptr(specOf("shop", h, Callback)).DispatchTimeout)
}

// A job whose settings are as they were written is followed, by their digest.
func TestTheDigestTellsEdits(t *testing.T) {
	for _, kind := range []Kind{Call, Callback} {
		s := specOf("shop", domain.Handler{Name: "close-day"}, kind)
		written := digest(&s)
		if s.DispatchTimeout == 0 { // which an edit of its labels writes as what it means
			s.DispatchTimeout = domain.DefaultDispatchTimeout
		}
		s.Labels = map[string]string{"team": "shop"}
		require.Equal(t, written, digest(&s), "its labels are not the handler's")
		s.DispatchTimeout = time.Minute
		require.NotEqual(t, written, digest(&s), "somebody has edited it")
	}
}

func ptr[T any](v T) *T { return &v }
