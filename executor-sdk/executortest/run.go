package executortest

import (
	"encoding/json"
	"log/slog"
	"time"

	executor "github.com/carillon-sched/carillon/executor-sdk"
	"github.com/carillon-sched/carillon/proto"
)

// State is where a run stands, in the admin's words.
type State string

// The states.
const (
	Waiting   State = "due"
	Offered   State = "offered"
	Running   State = "running"
	RetryWait State = "retry_wait"
	Succeeded State = "succeeded"
	Failed    State = "failed"
	TimedOut  State = "timed_out"
	Cancelled State = "cancelled"
	Discarded State = "discarded"
	Missed    State = "missed"
	Lost      State = "lost"     // not to be repeated, and taken over or still running when its executor has stopped
	Excluded  State = "excluded" // by a calendar
)

// Ended reports whether the run will not change any more.
func (s State) Ended() bool {
	switch s {
	case Succeeded, Failed, TimedOut, Cancelled, Discarded, Missed, Lost, Excluded:
		return true
	}
	return false
}

// Line is a line of a run's log.
type Line struct {
	At      time.Time
	Level   slog.Level
	Message string
	Attrs   map[string]any
}

func lineOf(l *proto.LogLine) Line {
	out := Line{At: time.UnixMilli(l.GetAtMs()), Level: slog.Level(l.GetLevel()), Message: l.GetMessage()}
	_ = json.Unmarshal(l.GetAttrs(), &out.Attrs) // empty, or written by the SDK
	return out
}

// Run is one run of a job or handler.
type Run struct {
	// Fixed after construction.
	admin  *Admin
	id     int64
	job    *job
	fireAt time.Time
	cause  string
	who    string
	input  []byte
	ended  chan struct{} // closed by end

	// Fixed when it is made; for the parts of a fire with shards.
	parent       *Run
	part         string // role
	index, total int
	timeout      time.Duration // what its caller allows an attempt; 0 = as the job
	maxAttempts  int           // likewise how many

	// Guarded by admin.mu.
	bound     *instance // the only one that may take it; nil = any
	parts     []*Run
	stopping  State       // how a fire with shards ends when its parts have; empty = as they did
	timer     *time.Timer // of a whole fire with shards
	state     State
	fence     int64
	attempt   int
	uncounted int // attempts that were snoozed or interrupted by the stop of their executor
	oneStep   bool
	notBefore time.Time
	instance  *instance
	result    *proto.Result // of the last attempt
	attempts  []*proto.Result
	steps     map[string][]byte
	progress  *proto.Progress
	lines     []Line
	last      map[int64]int64 // fence → number of the last line that has arrived
	logged    chan struct{}   // closed and replaced when lines arrive
}

// Wait returns when the run has ended. Time passes meanwhile.
func (r *Run) Wait() *Run {
	<-r.ended
	return r
}

// Cancel ends the run as a person does who presses cancel, and does not wait.
func (r *Run) Cancel() {
	r.admin.mu.Lock()
	defer r.admin.mu.Unlock()
	r.cancel("killed", "cancelled by the test")
	r.admin.dispatchLocked()
}

func (r *Run) cancel(reason, message string) {
	switch {
	case r.state.Ended():
	case r.isFamily():
		if r.stopping == "" {
			r.stopping = Cancelled
			r.cancelParts(reason, message)
		}
	case r.instance != nil:
		r.instance.deliver(&proto.CommandToExecutor{Body: &proto.CommandToExecutor_Cancels{Cancels: &proto.CancelBatch{
			Cancels: []*proto.Cancel{{ExecutionId: r.id, Fence: r.fence, Reason: reason, Message: message}},
		}}})
	default:
		r.end(Cancelled)
	}
}

// TakeOver does what happens when the instance of a running attempt is not
// heard of any more: its context ends with ErrLeaseLost, and another attempt begins at
// once, on another instance if there is one. A run of a job with OnLost(FailLost) ends as
// Lost instead.
func (r *Run) TakeOver() {
	a := r.admin
	a.mu.Lock()
	defer a.mu.Unlock()
	if r.instance == nil {
		return
	}
	r.cancel("lease_lost", "taken over by the test")
	r.lose(r.job.decl.GetOnLost() != string(executor.FailLost))
}

// lose gives up an attempt whose outcome is unknown. mu is held.
func (r *Run) lose(repeat bool) {
	before := r.instance
	r.fence++ // what the old attempt still says is stale
	if !repeat {
		r.end(Lost)
		r.admin.dispatchLocked()
		return
	}
	r.state, r.instance = Waiting, nil
	r.admin.dispatchAvoiding(before)
}

// repeatsLost reports whether an attempt whose outcome is unknown is made again.
func (r *Run) repeatsLost() bool {
	p := executor.LostPolicy(r.job.decl.GetOnLost())
	return p == executor.RetryLost || p != executor.FailLost && r.oneStep
}

// State is where the run stands now.
func (r *Run) State() State {
	r.admin.mu.Lock()
	defer r.admin.mu.Unlock()
	return r.state
}

// FireTime is the instant that the run was planned for.
func (r *Run) FireTime() time.Time { return r.fireAt }

// Attempts is how many attempts were made, those included that do not count:
// snoozed ones, and those that the stop of their executor interrupted.
func (r *Run) Attempts() int {
	r.admin.mu.Lock()
	defer r.admin.mu.Unlock()
	return len(r.attempts)
}

// Err is what the last attempt said when it failed, or "".
func (r *Run) Err() string {
	r.admin.mu.Lock()
	defer r.admin.mu.Unlock()
	return r.result.GetError()
}

// ErrKind is the kind of that failure, as in executor.Kind, or "".
func (r *Run) ErrKind() string {
	r.admin.mu.Lock()
	defer r.admin.mu.Unlock()
	return r.result.GetErrorKind()
}

// Output puts what the run gave into the value that out points to. It fails
// the test unless the run succeeded.
func (r *Run) Output(out any) {
	t := r.admin.t
	t.Helper()
	r.admin.mu.Lock()
	state, result := r.state, r.result
	r.admin.mu.Unlock()
	if r.isFamily() {
		t.Fatalf("run of %s went in shards, which have the outputs: see Shards and After", r.job.name)
	}
	if state != Succeeded {
		t.Fatalf("run of %s is %s: %s\n%s", r.job.name, state, result.GetError(), result.GetStack())
	}
	if err := json.Unmarshal(result.GetOutput(), out); err != nil {
		t.Fatalf("output of %s: %v", r.job.name, err)
	}
}

// Log returns the lines that the run has logged, of all attempts. Those of
// attempts that have ended arrive a little later; Log waits for them.
func (r *Run) Log() []Line {
	for {
		r.admin.mu.Lock()
		lines, logged, complete := append([]Line(nil), r.lines...), r.logged, true
		for _, attempt := range r.attempts {
			complete = complete && r.last[attempt.GetFence()] >= attempt.GetLogLines()
		}
		r.admin.mu.Unlock()
		if complete {
			return lines
		}
		<-logged
	}
}

// Progress is what the handler told last of how far it is.
func (r *Run) Progress() (percent float64, message string) {
	r.admin.mu.Lock()
	defer r.admin.mu.Unlock()
	return float64(r.progress.GetPermille()) / 10, r.progress.GetMessage()
}

// parentID is 0 for a run of its own.
func (r *Run) parentID() int64 {
	if r.parent == nil {
		return 0
	}
	return r.parent.id
}
