package sweeper

import (
	"context"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// How often the sets are looked at, by whichever node comes first, and how many in one go.
const (
	backfillEvery    = 500 * time.Millisecond
	backfillLimit    = 50
	timerCancelEvery = 500 * time.Millisecond
	timerCancelLimit = 20
	purgeEvery       = time.Second
	purgeLimit       = 20
)

// Bulk works off what people ask for in sets: backfills, cancellations of timers and
// clean-ups of runs.
type Bulk struct {
	Store interface {
		DriveBackfills(ctx context.Context, p store.DriveBackfillsParams) (store.DrivenBackfills, error)
		DriveTimerCancellations(ctx context.Context, limit int) (store.DrivenTimerCancellations, error)
		DriveRunPurges(ctx context.Context, limit int) error
	}
	Fires  func(spec *domain.JobSpec, from, to time.Time, limit int) []time.Time // as of store.DriveBackfillsParams
	NewID  func() int64
	Later  func(...domain.Execution) // takes runs that were made
	Cancel func(domain.Execution)    // takes runs whose timers were cancelled
}

// Chores drive the sets.
func (b *Bulk) Chores() []Chore {
	return []Chore{
		{Name: "drive backfills", Every: backfillEvery, Do: b.backfill},
		{Name: "drive cancellations of timers", Every: timerCancelEvery, Do: b.cancelTimers},
		{Name: "drive clean-ups of runs", Every: purgeEvery, Do: func(ctx context.Context) error { return b.Store.DriveRunPurges(ctx, purgeLimit) }},
	}
}

// backfill writes the next runs of backfills and sends them on their way.
func (b *Bulk) backfill(ctx context.Context) error {
	driven, err := b.Store.DriveBackfills(ctx, store.DriveBackfillsParams{
		Limit: backfillLimit, Pause: backfillEvery, Fires: b.Fires, NewID: b.NewID,
	})
	b.Later(driven.Runs...)
	return err
}

// cancelTimers cancels the next timers, and lets running ones hear of it.
func (b *Bulk) cancelTimers(ctx context.Context) error {
	driven, err := b.Store.DriveTimerCancellations(ctx, timerCancelLimit)
	for _, e := range driven.Cancel {
		b.Cancel(e)
	}
	return err
}
