package web

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

func TestABudgetSharesBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(12, 8, "bytes")
		acme, beta, stranger := owner{tenant: 1}, owner{tenant: 2}, owner{ip: "192.0.2.1"}
		first, err := b.take(t.Context(), acme, 8)
		require.NoError(t, err)

		// Another one of the tenant waits, and hears after a while that it is too much.
		began := time.Now()
		_, err = b.take(t.Context(), acme, 1)
		require.Equal(t, domain.CodeRateLimited, domain.CodeOf(err))
		require.Equal(t, budgetPatience, time.Since(began))

		// Others have the rest of the node.
		second, err := b.take(t.Context(), beta, 4)
		require.NoError(t, err)
		_, err = b.take(t.Context(), stranger, 1)
		require.Equal(t, domain.CodeUnavailable, domain.CodeOf(err))

		// A request that waits goes on when there is room. A body longer than a share takes the share.
		go func() {
			<-time.After(time.Second)
			first()
			first() // of no effect
		}()
		began = time.Now()
		third, err := b.take(t.Context(), acme, 100)
		require.NoError(t, err)
		require.Equal(t, time.Second, time.Since(began))

		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = b.take(ctx, acme, 1)
		require.Error(t, err)
		second()
		third()
		require.Zero(t, b.Owners(), "nothing is kept of those that are done")
		all, err := b.take(t.Context(), acme, 8)
		require.NoError(t, err)
		all()
	})
}
