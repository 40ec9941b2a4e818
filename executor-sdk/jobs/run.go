package jobs

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/carillon-sched/carillon/executor-sdk/internal/callapi"
)

// Result is a run of a job as it stands.
type Result struct {
	// ID is that of the web UI.
	ID, Job string
	FireAt  time.Time
	// State is in the admin's words: due, offered, running, retry_wait, succeeded, failed,
	// timed_out, lost, cancelled, …
	State string
	// Reason is why the run is in its state; empty if the state says it. Error is the error
	// that the handler returned.
	Reason, Error string
	Attempt       int
	// StartedAt and FinishedAt are zero until then.
	StartedAt, FinishedAt time.Time
	// Output is the output of the handler. It is nil in Results; Result has it.
	Output json.RawMessage
}

// Ended reports whether the run has ended.
func (r *Result) Ended() bool {
	return !slices.Contains([]string{"due", "offered", "running", "retry_wait", "cancelling"}, r.State)
}

func resultOf(r *callapi.Run) *Result {
	out := &Result{ID: r.ID, Job: r.JobName, FireAt: r.FireAt, State: r.State, Reason: r.Reason, Error: r.Error, Attempt: int(r.Attempt)}
	if r.StartedAt != nil {
		out.StartedAt = *r.StartedAt
	}
	if r.FinishedAt != nil {
		out.FinishedAt = *r.FinishedAt
	}
	return out
}

// Option shapes a run.
type Option interface{ shape(r *request) }

type option func(*request)

func (o option) shape(r *request) { o(r) }

type request struct {
	input any
	key   string
	body  callapi.RunRequest
}

// Input replaces the input of the job, for this run.
func Input(in any) Option { return option(func(r *request) { r.input = in }) }

// Key names the run. A second request with the same key and the same options gets the same run,
// as long as the admin keeps it. Default: random.
func Key(key string) Option { return option(func(r *request) { r.key = key }) }

// After starts the run later, at most ten years from now; default at once.
func After(d time.Duration) Option {
	return option(func(r *request) { r.body.After = max(d, 0).String() })
}

// Note is shown beside the run.
func Note(text string) Option { return option(func(r *request) { r.body.Note = text }) }

// Run starts a job, also a paused one, and does not wait for the end: see Result.
func (j Jobs) Run(ctx context.Context, name string, opts ...Option) (*Result, error) {
	var r request
	for _, o := range opts {
		o.shape(&r)
	}
	if r.key == "" {
		r.key = rand.Text()
	}
	if r.input != nil {
		raw, err := json.Marshal(r.input)
		if err != nil {
			return nil, fmt.Errorf("%s: input: %w", subject(j.executor, name), err)
		}
		r.body.Input = raw
	}
	job, err := j.Get(ctx, name)
	if err != nil {
		return nil, err
	}
	var out callapi.Run
	ask := callapi.Ask{Method: http.MethodPost, Path: "/jobs/" + job.ID + "/run", Key: r.key, Began: time.Now()}
	if err := j.ask(ctx, name, ask, r.body, &out); err != nil {
		return nil, err
	}
	return resultOf(&out), nil
}

// Result returns one run by its id, with its output.
func (j Jobs) Result(ctx context.Context, id string) (*Result, error) {
	var out struct {
		callapi.Run
		Output json.RawMessage `json:"output"`
	}
	if err := j.ask(ctx, id, callapi.Ask{Method: http.MethodGet, Path: "/runs/" + url.PathEscape(id), Longest: maxRun}, nil, &out); err != nil {
		return nil, err
	}
	result := resultOf(&out.Run)
	result.Output = out.Output
	return result, nil
}

// Results returns the runs of a job from the newest on, without their outputs, as an iterator
// that asks for a page when it is needed. An error is the last that it gives.
func (j Jobs) Results(ctx context.Context, name string) iter.Seq2[*Result, error] {
	return func(yield func(*Result, error) bool) {
		job, err := j.Get(ctx, name)
		if err != nil {
			yield(nil, err)
			return
		}
		q := url.Values{"jobId": {job.ID}, "limit": {strconv.Itoa(pageSize)}}
		list(ctx, j, name, "/runs", q, resultOf, yield)
	}
}
