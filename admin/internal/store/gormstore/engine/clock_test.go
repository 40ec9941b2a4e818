package engine

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/run"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
)

// An estimate that is behind by its usual error goes on to the instant that the
// caller's timer says has come; the statement demands that it has.
func TestTheEstimateGoesOnToWhatIsDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := db.NewClockEstimate()
		clock.Learn(1_000_000)
		tx := &db.Tx{Dialect: db.MySQLDialect{}, DB: &db.DB{Clock: clock}}
		time.Sleep(250 * time.Millisecond)
		now := func(due ...int64) int64 {
			b := Batch{Batch: run.Batch{Moves: map[domain.ExecutionID]*run.Move{}}}
			for i, at := range due {
				b.Moves[domain.ExecutionID(i)] = &run.Move{E: domain.Execution{NotBefore: db.Instant(at)}}
			}
			at, err := tx.EstimatedClock(b.latestDue)
			require.NoError(t, err)
			return db.Millis(at)
		}
		require.EqualValues(t, 1_000_250, now())
		require.EqualValues(t, 1_000_250, now(1_000_250))
		require.EqualValues(t, 1_000_255, now(1_000_255))
		require.EqualValues(t, 1_000_250, now(1_000_256), "that is no error of the estimate: it is not due")
		require.EqualValues(t, 1_000_253, now(1_000_253, 1_000_290, 1_000_251), "one of them is offered ahead")
	})
}
