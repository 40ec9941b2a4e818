package admin

import (
	"context"
	"time"
)

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
