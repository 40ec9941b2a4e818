package web

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// flood is one caller under rates whose clock stands.
type flood struct {
	t   *testing.T
	r   *rates
	now time.Time
}

func newFlood(t *testing.T, limits map[domain.TenantID]int64) *flood {
	f := &flood{t: t, now: time.Date(2026, 11, 24, 0, 0, 0, 0, time.UTC)}
	f.r = newRates(func(_ context.Context, id domain.TenantID) (int64, error) {
		if limit, known := limits[id]; known {
			return limit, nil
		}
		return 0, errors.New("the database does not answer")
	})
	f.r.now = func() time.Time { return f.now }
	return f
}

// passes is how many of many calls go through now.
func (f *flood) passes(id auth.Identity, operates bool) (n int) {
	f.t.Helper()
	for range 10_000 {
		err := f.r.take(f.t.Context(), id, operates)
		if err == nil {
			n++
			continue
		}
		var de *domain.Error
		require.ErrorAs(f.t, err, &de)
		require.Equal(f.t, []any{domain.CodeRateLimited, time.Second}, []any{de.Code, de.RetryAfter})
	}
	return n
}

func TestRates(t *testing.T) {
	limits := map[domain.TenantID]int64{1: 100, 2: 100, 3: 0}
	f := newFlood(t, limits)
	key := auth.Identity{Kind: auth.KindAPIKey, Tenant: 1, APIKey: 7}
	user := auth.Identity{Kind: auth.KindUser, Tenant: 1, User: 8}
	require.Equal(t, 50, f.passes(key, false), "a key has half of what its tenant has")
	require.Equal(t, 10, f.passes(key, true), "and of its operators' reserve")
	require.Equal(t, 40, f.passes(user, false), "the others have the rest")
	require.Equal(t, 20, f.passes(user, true), "operators' calls have a reserve")
	require.Equal(t, 100, f.passes(auth.Identity{Kind: auth.KindUser, Tenant: 2, User: 9}, false), "another tenant does not notice")
	require.Equal(t, 10_000, f.passes(auth.Identity{Kind: auth.KindUser, Tenant: 3, User: 9}, false))
	require.Equal(t, 10_000, f.passes(auth.Identity{Kind: auth.KindUser, Tenant: 4, User: 9}, false), "without a database the rates are not known")

	f.now = f.now.Add(time.Second)
	require.Equal(t, 100, f.passes(user, false))
	limits[1] = 10
	f.now = f.now.Add(quotaAge)
	require.Equal(t, 10, f.passes(user, false), "the new quota, not later than that")
}
