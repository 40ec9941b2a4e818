package executortest

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	executor "github.com/carillon-sched/carillon/executor-sdk"
	"github.com/carillon-sched/carillon/executor-sdk/internal/bridge"
	"github.com/carillon-sched/carillon/schedule"
)

// Admin is the admin of one test. Its methods are for the test's goroutine and
// for handlers; they fail the test when they are used wrongly.
type Admin struct {
	t testing.TB

	mu        sync.Mutex // guards what follows, and the Runs
	instances []*instance
	jobs      map[string]*job
	calendars map[string]*schedule.Calendar
	runs      []*Run
	calls     map[string]call // by handler and idempotency key
	called    map[string]*job // what calls and timers of a handler belong to, by kind and its name
	callbacks map[string]*job // likewise its runs as a callback
	timers    *timerTable
	nextID    int64
	stopped   bool
}

// Test runs test by a fake clock. When it returns, all executors are stopped.
func Test(t *testing.T, test func(t *testing.T, admin *Admin)) {
	synctest.Test(t, func(t *testing.T) {
		admin := newAdmin(t)
		t.Cleanup(admin.Stop)
		test(t, admin)
	})
}

func newAdmin(t testing.TB) *Admin {
	a := &Admin{
		t: t, jobs: map[string]*job{}, calendars: map[string]*schedule.Calendar{},
		calls: map[string]call{}, called: map[string]*job{}, callbacks: map[string]*job{},
	}
	a.timers = newTimerTable(a)
	return a
}

// Executor makes an executor that belongs to this admin, and one more instance
// with each call. Register handlers with it; the first call of another method of Admin
// starts it. change may set fields of its configuration.
func (a *Admin) Executor(change ...func(*executor.Config)) *executor.Executor {
	a.t.Helper()
	config := executor.Config{
		Name: "test", Addresses: []string{"in-process:1"}, Token: "cjt_test",
		JournalDir: a.t.TempDir(), Logger: slog.New(slog.DiscardHandler),
	}
	for _, c := range change {
		c(&config)
	}
	ex, err := executor.New(config)
	if err != nil {
		a.t.Fatal(err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	i := &instance{admin: a, ex: ex, name: config.Name, number: len(a.instances) + 1, slots: config.Slots}
	a.instances = append(a.instances, i)
	bridge.Connect(ex, i)
	return ex
}

// Start starts the executors that do not run yet, and with them the
// schedules of their jobs. Calling it is only needed when a test has nothing
// to call and waits for schedules.
func (a *Admin) Start() {
	a.t.Helper()
	a.mu.Lock()
	var begin []*instance
	for _, i := range a.instances {
		if !i.started {
			i.started = true
			begin = append(begin, i)
		}
	}
	a.mu.Unlock()
	for _, i := range begin {
		ctx, cancel := context.WithCancel(context.Background())
		i.cancel, i.done = cancel, make(chan error, 1)
		go func() { i.done <- i.ex.Run(ctx) }()
		select {
		case <-i.ex.Ready():
		case err := <-i.done:
			i.done <- nil
			a.t.Fatal(err)
		}
	}
}

// Stop stops the executors as a SIGTERM does, which lets running handlers
// finish, and returns when they have stopped. Test calls it at the end.
func (a *Admin) Stop() {
	a.mu.Lock()
	a.stopped = true
	for _, j := range a.jobs {
		j.stop()
	}
	all := append([]*instance(nil), a.instances...)
	a.mu.Unlock()
	for _, i := range all {
		if i.cancel != nil {
			i.cancel()
		}
	}
	for _, i := range all {
		i.stopped()
	}
}

// StopOne stops one executor as a SIGTERM does when an application is rolled
// out, and returns when it has stopped: it drains, and what it interrupts goes
// on with the others, if it may.
func (a *Admin) StopOne(ex *executor.Executor) {
	a.mu.Lock()
	all := append([]*instance(nil), a.instances...)
	a.mu.Unlock()
	for _, i := range all {
		if i.ex == ex && i.cancel != nil {
			i.cancel()
			i.stopped()
			return
		}
	}
	a.t.Fatal("executortest: StopOne: this executor was not started here")
}

// stopped waits until it has stopped.
func (i *instance) stopped() {
	if i.done == nil {
		return
	}
	if err := <-i.done; err != nil {
		i.admin.t.Error(err)
	}
	i.done <- nil // it may be asked again
	a := i.admin
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, r := range slices.Clone(a.runs) {
		if r.instance == i && r.state == Running {
			r.lose(r.repeatsLost()) // its handler ignores the stop
		}
	}
}

// Call runs a job, or a handler, with input and returns when the run has
// ended, retries included. The name is that of a declared job, whose settings
// and input apply, or else of a handler: it then runs as a call by a program does. A nil input stands for
// the job's own.
func (a *Admin) Call(name string, input any) *Run {
	a.t.Helper()
	return a.Begin(name, input).Wait()
}

// CallAs is Call by somebody: what the handler sees as Task.RequestedBy.
func (a *Admin) CallAs(who, name string, input any) *Run {
	a.t.Helper()
	return a.begin(who, name, input).Wait()
}

// Begin is Call without waiting for the end.
func (a *Admin) Begin(name string, input any) *Run {
	a.t.Helper()
	return a.begin("", name, input)
}

func (a *Admin) begin(who, name string, input any) *Run {
	a.t.Helper()
	a.Start()
	var raw []byte
	if input != nil {
		var err error
		if raw, err = json.Marshal(input); err != nil {
			a.t.Fatalf("input of %s: %v", name, err)
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.add(a.jobLocked(name), time.Now(), "api", who, raw)
}

// Fire runs a declared job as its schedule does at the instant at, which only
// is what the handler sees as its fire time. It returns when the run has ended.
func (a *Admin) Fire(job string, at time.Time) *Run {
	a.t.Helper()
	a.Start()
	a.mu.Lock()
	r := a.add(a.jobLocked(job), at, "schedule", "", nil)
	a.mu.Unlock()
	return r.Wait()
}

// Runs lists the runs of a job, or of a handler without one, oldest first;
// "" lists all. Shards are not among them: see Run.Shards.
func (a *Admin) Runs(name string) []*Run {
	a.mu.Lock()
	defer a.mu.Unlock()
	var out []*Run
	for _, r := range a.runs {
		if r.parent == nil && (name == "" || r.job.name == name) {
			out = append(out, r)
		}
	}
	return out
}

// Sleep lets d pass, and then waits as Wait does: it is what a test needs that
// looks at what handlers have done meanwhile.
func (a *Admin) Sleep(d time.Duration) {
	// Whatever begins later takes this lock, and so comes after what the test
	// has read and written: the race detector knows it too.
	a.mu.Lock()
	timer := time.After(d)
	a.mu.Unlock()
	<-timer
	a.Wait()
}

// Wait returns when nothing is under way at the present instant: what runs
// now waits for a later one. What handlers have written until then may be read.
func (a *Admin) Wait() { synctest.Wait() }

// jobLocked finds what a name stands for.
func (a *Admin) jobLocked(name string) *job {
	a.t.Helper()
	if j := a.jobs[name]; j != nil {
		return j
	}
	if h := a.handlerLocked(name); h != nil {
		return a.callJob("call", h)
	}
	a.t.Fatalf("executortest: neither a job nor a handler is called %q", name)
	return nil
}

func (a *Admin) newIDLocked() int64 {
	a.nextID++
	return a.nextID
}
