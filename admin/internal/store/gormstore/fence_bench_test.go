package gormstore

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/engine"
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
					require.NoError(b, s.Run(b.Context(), "bench", func(t *db.Tx) error {
						if _, err := t.Clock(); err != nil || !fence {
							return err
						}
						return engine.VerifyTerms(t, w.held)
					}))
				}
			})
		}
	}
}
