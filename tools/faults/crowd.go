package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	executor "github.com/carillon-sched/carillon/executor-sdk"
)

// crowd is many executors in one process, each of which lives for a moment,
// ends without a word, and comes again under another boot.
func crowd(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("crowd", flag.ContinueOnError)
	addresses := flags.String("addr", "", "admin addresses, comma-separated")
	journal := flags.String("journal", "", "journal directory")
	n := flags.Int("n", 10, "executors")
	life := flags.Duration("life", 200*time.Millisecond, "how long one lives")
	if err := flags.Parse(args); err != nil {
		return err
	}
	return everyOne(*n, func(i int) error {
		dir := filepath.Join(*journal, fmt.Sprint(i))
		for ctx.Err() == nil {
			if err := flap(ctx, fmt.Sprintf("crowd-%03d", i), dir, *addresses, *life); err != nil {
				return err
			}
		}
		return nil
	})
}

// everyOne runs do n times at once and joins their errors.
func everyOne(n int, do func(i int) error) error {
	errs := make([]error, n)
	var wait sync.WaitGroup
	for i := range n {
		wait.Go(func() { errs[i] = do(i) })
	}
	wait.Wait()
	return errors.Join(errs...)
}

func flap(ctx context.Context, name, dir, addresses string, life time.Duration) error {
	ex, err := executor.New(executor.Config{
		Name: "witness", Addresses: strings.Split(addresses, ","), Token: executor.Secret(os.Getenv("CARILLON_EXECUTOR_TOKEN")),
		JournalDir: dir, InstanceName: name, Slots: 1, DrainTimeout: -1, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return err
	}
	// A handler that no job names: the crowd makes noise and takes no work.
	executor.HandleFunc(ex, "noise", func(context.Context) error { return nil })
	ctx, cancel := context.WithTimeout(ctx, life/2+time.Duration(rand.Int64N(int64(life))))
	defer cancel()
	return ex.Run(ctx)
}
