package executor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Ended tells a callback what became of a run. More fields may come.
type Ended struct {
	// RunID is the run that ended; TaskFrom(ctx) tells of the callback's own run.
	RunID    int64     `json:"runId,string"`
	Job      string    `json:"job"`
	Handler  string    `json:"handler"`
	FireTime time.Time `json:"fireTime"`
	// Attempt is the number of the last one, 0 when none was started.
	Attempt int `json:"attempt"`
	// State is how it ended: succeeded, failed, timed_out, lost, cancelled, missed.
	State string `json:"state"`
	// Reason is a stable word for why, ErrorKind and Error are what the handler
	// said; all empty for a success.
	Reason    string `json:"reason,omitempty"`
	ErrorKind string `json:"errorKind,omitempty"`
	Error     string `json:"error,omitempty"`
	// Input is what the run was given, Output what it gave; empty = nothing.
	Input  json.RawMessage `json:"input,omitempty"`
	Output json.RawMessage `json:"output,omitempty"`
}

// DecodeOutput puts the run's output into the value that out points to. No
// output leaves it as it is.
func (e Ended) DecodeOutput(out any) error { return decodeEnded("output", e.Output, out) }

// DecodeInput puts the run's input into the value that in points to.
func (e Ended) DecodeInput(in any) error { return decodeEnded("input", e.Input, in) }

func decodeEnded(what string, raw json.RawMessage, into any) error {
	if len(raw) == 0 {
		return nil
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return Permanent(fmt.Errorf("decode %s of the run that ended: %w", what, err))
	}
	return nil
}

// Err is the failure of the run as an error, or nil for a success.
func (e Ended) Err() error {
	switch {
	case e.State == "succeeded":
		return nil
	case e.Error == "":
		return errors.New(e.State)
	}
	return errors.New(e.Error)
}

// HandleEnd registers fn as a callback: the handler that OnSuccess or
// OnFailure of a job names.
//
//	executor.HandleEnd(ex, "day-closed", func(ctx context.Context, run executor.Ended) error { … })
//	executor.HandleFunc(ex, "close-day", closeDay, executor.OnSuccess("day-closed"))
//
// The admin starts it after the run's end was stored, as a run of its own
// that people see in the UI, on any instance of the executor. It runs at least
// once: an error or a lost instance has it tried again, up to ten times. Options
// of how it runs (Timeout, Retries, RetryDelay, labels …) hold for these runs, but for OnSuccess
// and OnFailure: no callback follows a callback. fn can tell a repetition by Ended.RunID.
func HandleEnd(ex *Executor, name string, fn func(ctx context.Context, run Ended) error, opts ...HandlerOption) {
	HandleIn(ex, name, func(ctx context.Context, input json.RawMessage) error {
		var run Ended
		// Not strictly: a newer admin tells more.
		if err := json.Unmarshal(input, &run); err != nil {
			return &badInputError{err}
		}
		return fn(ctx, run)
	}, append(opts, Idempotent())...)
}

// SuccessFunc makes a callback of a function that only wants the output. Use
// struct{} for a handler without output.
func SuccessFunc[Out any](fn func(ctx context.Context, out Out) error) func(ctx context.Context, run Ended) error {
	return func(ctx context.Context, run Ended) error {
		var out Out
		if err := run.DecodeOutput(&out); err != nil {
			return err
		}
		return fn(ctx, out)
	}
}

// FailureFunc makes a callback of a function that only wants to know why the
// run failed.
func FailureFunc(fn func(ctx context.Context, cause error) error) func(ctx context.Context, run Ended) error {
	return func(ctx context.Context, run Ended) error { return fn(ctx, run.Err()) }
}
