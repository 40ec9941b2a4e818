package gormstore

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// BenchmarkPlaces measures what each node of a cell asks twice a second, where so many
// tenants have moved to other cells, or to 300 of them (docs/dev/scale.md).
func BenchmarkPlaces(b *testing.B) {
	for name, options := range bothDatabases {
		for _, moved := range []int{0, 100, 1_000, 10_000} {
			b.Run(fmt.Sprintf("%s/%d", name, moved), func(b *testing.B) {
				s := openStore(b, options(b))
				for i := range 300 {
					_, err := s.Write.ExecContext(b.Context(), "INSERT INTO cells (name, url, executors, created_at, created_by) VALUES (?, 'https://cell.example.com', 'a.example.com:9000,b.example.com:9000', 1, 'admin')", fmt.Sprintf("cell-%d", i))
					require.NoError(b, err)
				}
				tx, err := s.Write.BeginTx(b.Context(), nil)
				require.NoError(b, err)
				for i := range moved {
					_, err := tx.ExecContext(b.Context(), "INSERT INTO tenants (id, name, state, cell, created_at) VALUES (?, ?, 5, ?, 1)", 1000+i, fmt.Sprintf("tenant-%d", i), fmt.Sprintf("cell-%d", i%300))
					require.NoError(b, err)
				}
				require.NoError(b, tx.Commit())
				for b.Loop() {
					list, err := s.ListDisabled(b.Context())
					require.NoError(b, err)
					require.Len(b, list.NotHere, moved)
				}
			})
		}
	}
}
