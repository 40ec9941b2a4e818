package gormstore

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// Sums that a node of an older version has made wrong are right after a recount, and
// are counted again only when they are old, or when rows were deleted.
func TestWrongSumsOfStoredBytesAreCorrected(t *testing.T) {
	for name, options := range bothDatabases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openStore(t, options(t))
			w := newWorld(t, s, 1, domain.BlockParallel)
			w.timers(20, time.Now().Add(time.Hour))
			used := func() (timers, bytes int64) {
				list, err := s.ListQuotas(t.Context(), w.tenant)
				require.NoError(t, err)
				for _, q := range list {
					switch q.Kind {
					case domain.QuotaTimers:
						timers = q.Used
					case domain.QuotaStoredBytes:
						bytes = q.Used
					}
				}
				return timers, bytes
			}
			recount := func(since time.Time) int {
				wrong, err := s.RecountStored(t.Context(), since)
				require.NoError(t, err)
				return wrong
			}
			exec := func(statement string) {
				_, err := s.Write.ExecContext(t.Context(), statement)
				require.NoError(t, err)
			}
			recount(time.Now())
			timers, bytes := used()
			require.EqualValues(t, 20, timers)
			require.Zero(t, recount(time.Now().Add(-time.Hour)))

			exec("UPDATE timer_counts SET pending = pending + 7, bytes = 0")
			exec("UPDATE stored_bytes SET bytes = bytes - 1000000")
			require.Zero(t, recount(time.Now().Add(-time.Hour)), "they were counted a moment ago")
			require.Equal(t, 1, recount(time.Now().Add(time.Hour)))
			gotTimers, gotBytes := used()
			require.Equal(t, []int64{timers, bytes}, []int64{gotTimers, gotBytes})

			exec("UPDATE stored_bytes SET bytes = bytes + 1000000")
			_, err := s.SetJobState(t.Context(), store.SetJobStateParams{
				Tenant: w.tenant, ID: w.jobs[0], State: domain.JobDeleted, By: "anna",
			})
			require.NoError(t, err)
			_, err = s.DeleteJobsBefore(t.Context(), time.Now().Add(time.Hour), 1000)
			require.NoError(t, err)
			require.Equal(t, 1, recount(time.Now().Add(-time.Hour)), "deletions ask for it")
			_, gotBytes = used()
			require.Less(t, gotBytes, bytes)
		})
	}
}
