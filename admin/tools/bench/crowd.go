package main

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"

	"golang.org/x/sync/errgroup"

	executor "github.com/carillon-sched/carillon/executor-sdk"
)

// startsAtOnce bounds how many instances of a crowd open their journals at once.
const startsAtOnce = 64

// runCrowd runs many instances in one process. No job names their handler.
func runCrowd(ctx context.Context, o ExecutorOptions) error {
	group, ctx := errgroup.WithContext(ctx)
	turn := make(chan struct{}, startsAtOnce)
	for i := range o.Crowd {
		turn <- struct{}{}
		ex, err := executor.New(executor.Config{
			Name: o.Name, Addresses: strings.Split(o.Addresses, ","), Token: executor.Secret(o.Token), Slots: 1,
			JournalDir: filepath.Join(o.Journal, number("instance", i)), InstanceName: number("crowd", i),
			DrainTimeout: -1, Logger: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			return fmt.Errorf("instance %d: %w", i, err)
		}
		executor.HandleFunc(ex, "idle", func(context.Context) error { return nil })
		group.Go(func() error { return ex.Run(ctx) })
		group.Go(func() error {
			defer func() { <-turn }()
			select {
			case <-ex.Ready():
			case <-ctx.Done():
			}
			return nil
		})
	}
	return group.Wait()
}
