package timer

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// cancels notes its calls. It finds no timer with a key that begins with "no".
type cancels struct {
	Store
	mu  sync.Mutex
	all []store.CancelTimersParams // guarded by mu
}

func (c *cancels) CancelTimers(_ context.Context, p store.CancelTimersParams) []store.CancelTimerResult {
	c.mu.Lock()
	c.all = append(c.all, p)
	c.mu.Unlock()
	out := make([]store.CancelTimerResult, len(p.Keys))
	for i, key := range p.Keys {
		out[i].Key = p.By + "/" + key
		if key[:2] == "no" {
			out[i].Err = domain.Errorf(domain.CodeNotFound, "there is no timer %q", key)
		}
	}
	return out
}

// Cancels of one job and one caller share a transaction, and each request gets its own
// answer.
func TestCancelsAtOnceShareATransaction(t *testing.T) {
	shop, mail, other := cancelsOf{1, 10, "shop"}, cancelsOf{1, 10, "mail"}, cancelsOf{2, 20, "shop"}
	c := &cancels{}
	results, err := newTimers(Deps{Store: c}).cancelTogether(t.Context(), []cancelOne{{shop, "a1"}, {mail, "b1"}, {shop, "no"}, {other, "c1"}, {shop, "a2"}})
	require.NoError(t, err)
	var keys []string
	for _, r := range results {
		keys = append(keys, r.Key)
		require.Equal(t, r.Key == "shop/no", domain.Is(r.Err, domain.CodeNotFound))
	}
	require.Equal(t, []string{"shop/a1", "mail/b1", "shop/no", "shop/c1", "shop/a2"}, keys)
	slices.SortFunc(c.all, func(a, b store.CancelTimersParams) int { return len(b.Keys) - len(a.Keys) })
	require.Len(t, c.all, 3)
	require.Equal(t, store.CancelTimersParams{Tenant: 1, Job: 10, By: "shop", Keys: []string{"a1", "no", "a2"}}, c.all[0])
}
