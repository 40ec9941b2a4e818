package timerheap

import (
	"context"
	"time"
)

// Loop calls round again and again until ctx ends: when the wait is over that it
// returned, or sooner when wake has something. After a round that found something
// due it waits for the pace alone: what comes due meanwhile is found together,
// while what comes due after a longer silence is found at once.
func Loop(ctx context.Context, wake <-chan struct{}, pace time.Duration, round func() (found bool, wait time.Duration)) {
	sleep := time.NewTimer(0)
	defer sleep.Stop()
	for {
		found, wait := round()
		woken := wake
		if found {
			wait, woken = pace, nil
		}
		sleep.Reset(wait)
		select {
		case <-ctx.Done():
			return
		case <-woken:
		case <-sleep.C:
		}
	}
}
