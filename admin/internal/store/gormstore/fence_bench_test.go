package gormstore

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// BenchmarkFence measures what a claim pays for its fence: one statement over
// the partitions of its triggers, alone in a transaction.
//
//	go test ./admin/internal/store/gormstore -bench Fence -run ^$
func BenchmarkFence(b *testing.B) {
	for name, options := range bothDatabases {
		s := openStore(b, options(b))
		w := newWorld(b, s, 1, domain.BlockParallel)
		for what, fence := range map[string]bool{"bare": false, "fenced": true} {
			b.Run(name+"/"+what, func(b *testing.B) {
				for b.Loop() {
					require.NoError(b, s.run(b.Context(), "bench", func(t *txn) error {
						if _, err := t.clock(); err != nil || !fence {
							return err
						}
						return verifyTerms(t, w.held)
					}))
				}
			})
		}
	}
}
