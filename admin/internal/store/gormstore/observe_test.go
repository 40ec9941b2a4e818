package gormstore

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
)

// Every transaction is seen once, with its name, its repetitions and its end.
func TestObserve(t *testing.T) {
	for name, options := range bothDatabases {
		t.Run(name, func(t *testing.T) {
			s := openStore(t, options(t))
			var mu sync.Mutex
			var seen []db.Transaction
			s.Observe = func(tx db.Transaction) {
				mu.Lock()
				defer mu.Unlock()
				seen = append(seen, tx)
			}
			broken := errors.New("not today")
			require.NoError(t, s.Run(t.Context(), "good", func(*db.Tx) error { return nil }))
			require.ErrorIs(t, s.Run(t.Context(), "bad", func(*db.Tx) error { return broken }), broken)
			tries := 0
			require.NoError(t, s.Run(t.Context(), "again", func(*db.Tx) error {
				if tries++; tries < 3 {
					return db.ErrStale
				}
				return nil
			}))
			require.Len(t, seen, 3)
			require.Equal(t, []string{"good", "bad", "again"}, []string{seen[0].Step, seen[1].Step, seen[2].Step})
			require.Equal(t, []int{0, 0, 2}, []int{seen[0].Repeats, seen[1].Repeats, seen[2].Repeats})
			require.NoError(t, seen[0].Err)
			require.ErrorIs(t, seen[1].Err, broken)
			require.Positive(t, seen[0].Took)
		})
	}
}

func TestPools(t *testing.T) {
	for name, options := range bothDatabases {
		t.Run(name, func(t *testing.T) {
			s := openStore(t, options(t))
			require.NoError(t, s.Ping(context.Background()))
			var names []string
			open := 0
			for _, p := range s.Pools() {
				names = append(names, p.Name)
				open += p.OpenConnections
				require.Positive(t, p.MaxOpenConnections, p.Name)
			}
			require.Equal(t, map[string][]string{"mysql": {"main", "transactions", "leases"}, "sqlite": {"write", "read"}}[name], names)
			require.Positive(t, open)
		})
	}
}
