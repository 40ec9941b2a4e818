package main

import (
	"context"
	"encoding/json"
	"flag"
	"os"
	"sync"
	"time"

	executor "github.com/carillon-sched/carillon/executor-sdk"
)

// sighting is what a handler writes down about its own start: one line of
// JSON, appended with a single write before anything else happens.
type sighting struct {
	Job   int64 `json:"job"`
	Run   int64 `json:"run"`
	Fence int64 `json:"fence"`
	Fire  int64 `json:"fire"`  // Unix ms
	Start int64 `json:"start"` // Unix µs
}

// witness is an executor whose only handler records that it was started.
func witness(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("executor", flag.ContinueOnError)
	name := flags.String("name", "witness", "executor name")
	addresses := flags.String("addr", "", "admin address")
	journal := flags.String("journal", "", "journal directory")
	file := flags.String("file", "", "witness file")
	slots := flags.Int("slots", 400, "handlers at once")
	if err := flags.Parse(args); err != nil {
		return err
	}
	out, err := os.OpenFile(*file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer out.Close()
	var mu sync.Mutex
	ex, err := executor.New(executor.Config{
		Name: *name, Addresses: []string{*addresses}, Token: executor.Secret(os.Getenv("CARILLON_EXECUTOR_TOKEN")),
		JournalDir: *journal, Slots: *slots,
	})
	if err != nil {
		return err
	}
	executor.HandleFunc(ex, "tick", func(ctx context.Context) error {
		now := time.Now()
		t := executor.TaskFrom(ctx)
		line, err := json.Marshal(sighting{
			Job: t.JobID, Run: t.ExecutionID, Fence: t.Fence, Fire: t.FireTime.UnixMilli(), Start: now.UnixMicro(),
		})
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		_, err = out.Write(append(line, '\n'))
		return err
	})
	return ex.Run(ctx)
}
