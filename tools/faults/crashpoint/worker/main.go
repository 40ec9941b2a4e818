// Command worker is the executor of package crashpoint: its handlers write
// down each call before they do anything else, and again before they return.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	executor "github.com/carillon-sched/carillon/executor-sdk"
)

// input says what a handler does.
type input struct {
	Ms       int64 `json:"ms"`                 // how long it works
	First    int64 `json:"first,omitempty"`    // how long its first attempt works, if it differs
	Fail     int   `json:"fail,omitempty"`     // how many attempts fail
	Stubborn bool  `json:"stubborn,omitempty"` // it does not listen to its context
}

// sighting is one line of the witness file.
type sighting struct {
	Run     int64 `json:"run"`
	Fence   int64 `json:"fence"`
	Attempt int   `json:"attempt"`
	At      int64 `json:"at"` // Unix µs
	End     bool  `json:"end,omitempty"`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "worker:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	addresses := flag.String("addr", "", "admin addresses, comma-separated")
	journal := flag.String("journal", "", "journal folder")
	witness := flag.String("witness", "", "witness file")
	flag.Parse()
	out, err := os.OpenFile(*witness, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer out.Close()
	ex, err := executor.New(executor.Config{
		Name: "worker", Addresses: strings.Split(*addresses, ","), Token: executor.Secret(os.Getenv("CARILLON_EXECUTOR_TOKEN")),
		JournalDir: *journal, Slots: 20, DrainTimeout: time.Second, KillGrace: 10 * time.Second,
	})
	if err != nil {
		return err
	}
	work := func(ctx context.Context, in input) error {
		t := executor.TaskFrom(ctx)
		s := sighting{Run: t.ExecutionID, Fence: t.Fence, Attempt: t.Attempt, At: time.Now().UnixMicro()}
		if err := s.write(out); err != nil {
			return err
		}
		err := in.do(ctx, t.Attempt)
		s.At, s.End = time.Now().UnixMicro(), true
		return errors.Join(err, s.write(out))
	}
	executor.HandleIn(ex, "work", work)
	executor.HandleIn(ex, "work-idempotent", work, executor.Idempotent())
	return ex.Run(ctx)
}

func (in input) do(ctx context.Context, attempt int) error {
	cancelled := ctx.Done()
	if in.Stubborn {
		cancelled = nil
	}
	ms := in.Ms
	if attempt == 1 && in.First > 0 {
		ms = in.First
	}
	select {
	case <-time.After(time.Duration(ms) * time.Millisecond):
	case <-cancelled:
		return context.Cause(ctx)
	}
	if attempt <= in.Fail {
		return errors.New("as it was told to")
	}
	return nil
}

// write appends one line with one write: lines of a process that is killed are
// whole or missing.
func (s sighting) write(out *os.File) error {
	line, err := json.Marshal(s)
	if err != nil {
		return err
	}
	_, err = out.Write(append(line, '\n'))
	return err
}
