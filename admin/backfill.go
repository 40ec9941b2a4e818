package admin

import (
	"context"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/timing"
)

// backfillEvery is the pace at which a backfill is looked at, by whichever node
// comes first; backfillLimit bounds how many in one go.
const (
	backfillEvery = 500 * time.Millisecond
	backfillLimit = 50
)

// driveBackfills writes the next runs of backfills and sends them on their way.
func (a *Admin) driveBackfills(ctx context.Context) error {
	driven, err := a.observed().DriveBackfills(ctx, store.DriveBackfillsParams{
		Limit: backfillLimit, Pause: backfillEvery, Fires: timing.FiresBetween, NewID: a.ids.Next,
	})
	a.timer.Add(driven.Runs...)
	return err
}
