package calling

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
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

// A job whose settings are as they were written is followed: by its digest, which
// must be what nodes wrote that knew no dispatch timeout.
func TestDigestsOfBefore(t *testing.T) {
	before := func(s *domain.JobSpec) string {
		sum := sha256.Sum256(fmt.Append(nil, s.Timeout, s.Retry, s.OnLost, s.SendRetry, s.Blocking, s.Parallelism, s.Priority, s.Routing,
			fmt.Sprintf(" %q %q %q %q %q", s.RoutingKey, s.Require.Text, s.Prefer.Text, s.OnSuccess, s.OnFailure)))
		return hex.EncodeToString(sum[:16])
	}
	for _, kind := range []Kind{Call, Callback} {
		s := specOf("shop", domain.Handler{Name: "close-day"}, kind)
		require.Equal(t, before(&s), digest(&s, kind))
		if s.DispatchTimeout == 0 { // which an edit of its labels writes as what it means
			s.DispatchTimeout = domain.DefaultDispatchTimeout
			require.Equal(t, before(&s), digest(&s, kind))
		}
		s.DispatchTimeout = time.Minute
		require.NotEqual(t, before(&s), digest(&s, kind), "somebody has edited it")
	}
}

func ptr[T any](v T) *T { return &v }
