package admin

// The chores of this file work off what people ask for in sets: backfills, cancellations of
// timers and clean-ups of runs.

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
	driven, err := a.steps.DriveBackfills(ctx, store.DriveBackfillsParams{
		Limit: backfillLimit, Pause: backfillEvery, Fires: timing.FiresBetween, NewID: a.ids.Next,
	})
	a.timer.Add(driven.Runs...)
	return err
}

// timerCancelEvery is the pace at which cancellations of many timers are looked at,
// by whichever node comes first; timerCancelLimit bounds how many in one go.
const (
	timerCancelEvery = 500 * time.Millisecond
	timerCancelLimit = 20
)

// purgeEvery and purgeLimit are the same of clean-ups of runs.
const (
	purgeEvery = time.Second
	purgeLimit = 20
)

// driveTimerCancellations cancels the next timers, and lets running ones hear of it.
func (a *Admin) driveTimerCancellations(ctx context.Context) error {
	driven, err := a.store.DriveTimerCancellations(ctx, timerCancelLimit)
	for _, e := range driven.Cancel {
		a.dispatcher.SendCancel(e)
	}
	return err
}
