package timerheap

import (
	"context"
	"time"
)

// Loop calls round again and again until ctx ends: when the wait is over that it
// returned, or sooner when wake has something.
func Loop(ctx context.Context, wake <-chan struct{}, round func() (wait time.Duration)) {
	sleep := time.NewTimer(0)
	defer sleep.Stop()
	for {
		sleep.Reset(round())
		select {
		case <-ctx.Done():
			return
		case <-wake:
		case <-sleep.C:
		}
	}
}
