package jobs

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/carillon-sched/carillon/executor-sdk/callback"
	"github.com/carillon-sched/carillon/executor-sdk/internal/callapi"
)

// Schedule says when a job fires. The zero value is OnDemand.
type Schedule struct{ write callapi.ScheduleWrite }

// Cron fires as a cron expression of 5, 6 or 7 fields says, in a time zone by its IANA name;
// empty: UTC.
func Cron(expr, zone string) Schedule {
	return Schedule{callapi.ScheduleWrite{Kind: "cron", Expr: expr, Zone: zone}}
}

// Every fires at a fixed rate of at least one second.
func Every(d time.Duration) Schedule {
	return Schedule{callapi.ScheduleWrite{Kind: "fixed_rate", Every: d.String()}}
}

// Once fires at one instant, in milliseconds.
func Once(at time.Time) Schedule {
	return Schedule{callapi.ScheduleWrite{Kind: "once", At: at.UTC().Format("2006-01-02T15:04:05.000Z07:00")}}
}

// OnDemand fires never by itself: Run starts the job.
func OnDemand() Schedule { return Schedule{callapi.ScheduleWrite{Kind: "none"}} }

// Blocking says what a fire does while an earlier run of the job goes on.
type Blocking string

// The strategies.
const (
	Serial       Blocking = "serial"        // it waits in order
	DiscardLater Blocking = "discard_later" // it is dropped
	CoverEarly   Blocking = "cover_early"   // it stops the earlier run and takes its place
	Parallel     Blocking = "parallel"      // it runs beside it
)

// Spec has the settings of a job. Zero fields have the defaults of the server.
type Spec struct {
	// Handler is the handler of the executor that the job runs. It is needed, and need not be
	// registered yet.
	Handler string
	// Input is encoded as JSON, at most 256 KiB; nil = none.
	Input    any
	Schedule Schedule
	// Description is for people. Labels group jobs; there are at most 32.
	Description string
	Labels      map[string]string
	// Timeout bounds one attempt, in milliseconds; 0 = no bound.
	Timeout time.Duration
	// Attempts is how often a failed run is tried, the first time included; 0 = once.
	// RetryDelay is the wait before the next attempt; 0 = 10 s.
	Attempts   int
	RetryDelay time.Duration
	// Blocking is empty for the default: Serial with a recurring schedule, Parallel else.
	Blocking Blocking
	// OnSuccess follows a run that succeeded, OnFailure one that finally failed; empty = nothing.
	// A key that is bound to executors needs the other executor too, and "carillon" for an address
	// or a connection.
	OnSuccess, OnFailure callback.Callback
	// Paused creates the job paused. It has no effect on a job that exists.
	Paused bool
}

// write is the spec as the API wants it.
func (s Spec) write(executor, name string) (callapi.JobWrite, error) {
	w := callapi.JobWrite{
		Name: name, Executor: callapi.ExecutorChoice{Name: executor}, Handler: s.Handler, Schedule: s.Schedule.write,
		Description: s.Description, Labels: s.Labels, Blocking: string(s.Blocking),
	}
	if w.Schedule.Kind == "" {
		w.Schedule.Kind = "none"
	}
	if s.Input != nil {
		raw, err := json.Marshal(s.Input)
		if err != nil {
			return w, fmt.Errorf("%s: input: %w", subject(executor, name), err)
		}
		w.Input = raw
	}
	var err error
	if w.OnSuccess, err = writeCallback(s.OnSuccess); err != nil {
		return w, fmt.Errorf("%s: OnSuccess: %w", subject(executor, name), err)
	}
	if w.OnFailure, err = writeCallback(s.OnFailure); err != nil {
		return w, fmt.Errorf("%s: OnFailure: %w", subject(executor, name), err)
	}
	if s.Timeout > 0 {
		w.Timeout = s.Timeout.String()
	}
	if s.Attempts > 0 || s.RetryDelay > 0 {
		w.Retry = &callapi.RetryWrite{MaxAttempts: int64(s.Attempts)}
		if s.RetryDelay > 0 {
			w.Retry.Delay = s.RetryDelay.String()
		}
	}
	if s.Paused {
		w.State = "paused"
	}
	return w, nil
}

// Job is a job as it stands.
type Job struct {
	// ID is that of the web UI.
	ID, Name, Executor, Handler, Description string
	Labels                                   map[string]string
	// Input is nil in lists.
	Input json.RawMessage
	// OnSuccess and OnFailure are empty where nothing follows.
	OnSuccess, OnFailure callback.Callback
	Paused               bool
	// PauseNote is the reason of the pause.
	PauseNote string
	// Revision grows with each change of the settings, from 1.
	Revision int64
	// NextFireAt is zero if nothing is planned.
	NextFireAt           time.Time
	CreatedAt, UpdatedAt time.Time
}

func jobOf(j *callapi.Job) *Job {
	out := &Job{
		ID: j.ID, Name: j.Name, Executor: j.Executor.Name, Handler: j.Handler, Description: j.Description, Labels: j.Labels,
		Input: j.Input, OnSuccess: callbackOf(j.OnSuccess), OnFailure: callbackOf(j.OnFailure), Paused: j.State == "paused", PauseNote: j.PauseNote, Revision: j.Revision,
		CreatedAt: j.CreatedAt, UpdatedAt: j.UpdatedAt,
	}
	if j.NextFireAt != nil {
		out.NextFireAt = *j.NextFireAt
	}
	return out
}
