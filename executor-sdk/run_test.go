package executor_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	executor "github.com/carillon-sched/carillon/executor-sdk"
	"github.com/carillon-sched/carillon/executor-sdk/internal/fakeadmin"
	"github.com/carillon-sched/carillon/proto"
)

const patience = 15 * time.Second

func TestMain(m *testing.M) {
	if os.Getenv("EXECUTOR_TEST_CHILD") != "" {
		victim()
	}
	goleak.VerifyTestMain(m)
}

// output collects the SDK's own log.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// app is an executor that runs until stop.
type app struct {
	*executor.Executor
	admin *fakeadmin.Admin
	log   *output
	stop  func() error
}

func startAdmin(t testing.TB, a *fakeadmin.Admin) *fakeadmin.Admin {
	t.Helper()
	require.NoError(t, a.Start())
	t.Cleanup(a.Close)
	return a
}

// start runs an executor against admin. register adds the handlers.
func start(t testing.TB, admin *fakeadmin.Admin, register func(ex *executor.Executor), change ...func(*executor.Config)) *app {
	t.Helper()
	log := &output{}
	config := executor.Config{
		Name: "shop", Addresses: []string{admin.Address()}, Token: fakeadmin.Token, JournalDir: t.TempDir(),
		Slots: 4, DrainTimeout: 2 * time.Second, KillGrace: time.Second, Logger: slog.New(slog.NewTextHandler(log, nil)),
	}
	for _, c := range change {
		c(&config)
	}
	ex, err := executor.New(config)
	require.NoError(t, err)
	register(ex)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- ex.Run(ctx) }()
	stop := sync.OnceValue(func() error { cancel(); return <-done })
	t.Cleanup(func() { _ = stop() })
	return &app{ex, admin, log, stop}
}

// session waits for the n-th session of the admin and returns the newest.
func session(t testing.TB, admin *fakeadmin.Admin, n int) *fakeadmin.Session {
	t.Helper()
	saw(t, admin, func(s fakeadmin.Seen) bool { return s.Sessions >= n })
	all := admin.Sessions()
	require.NotEmpty(t, all)
	return all[len(all)-1]
}

func saw(t testing.TB, admin *fakeadmin.Admin, condition func(fakeadmin.Seen) bool) fakeadmin.Seen {
	t.Helper()
	seen, err := admin.Wait(patience, condition)
	require.NoError(t, err)
	return seen
}

func results(n int) func(fakeadmin.Seen) bool {
	return func(s fakeadmin.Seen) bool { return len(s.Results) >= n }
}

func resultOf(s fakeadmin.Seen, execution int64) *proto.Result {
	for _, r := range s.Results {
		if r.GetExecutionId() == execution {
			return r
		}
	}
	return nil
}

func brief(r *proto.Result) string {
	return strings.TrimSpace(strings.TrimPrefix(r.GetOutcome().String(), "OUTCOME_") + " " + r.GetErrorKind())
}

func offer(execution int64, handler string, change ...func(*proto.Offer)) *proto.Offer {
	o := &proto.Offer{
		ExecutionId: execution, Fence: 1, JobId: 9, JobName: "job", Handler: handler,
		FireAtMs: 1_700_000_000_000, Attempt: 1, MaxAttempts: 3, Cause: "schedule", TenantId: 5,
	}
	for _, c := range change {
		c(o)
	}
	return o
}

func granted(o *proto.Offer) { o.Granted = true }

func input(text string) func(*proto.Offer) {
	return func(o *proto.Offer) { o.Input = []byte(text) }
}

type sumIn struct {
	A int `json:"a" required:"true"`
	B int `json:"b"`
}

type sumOut struct {
	Sum int `json:"sum"`
}

func TestRunsHandlers(t *testing.T) {
	admin := startAdmin(t, &fakeadmin.Admin{})
	var task atomic.Pointer[executor.Task]
	a := start(t, admin, func(ex *executor.Executor) {
		executor.Handle(ex, "sum", func(ctx context.Context, in sumIn) (sumOut, error) {
			got := executor.TaskFrom(ctx)
			task.Store(&got)
			return sumOut{in.A + in.B}, nil
		}, executor.Description("adds"), executor.Idempotent(), executor.Every(time.Minute), executor.Input(sumIn{A: 1}))
	}, func(c *executor.Config) { c.Version = "1.2.3"; c.Labels = map[string]string{"zone": "a"} })
	<-a.Ready()
	require.NoError(t, a.Health())

	s := session(t, admin, 1)
	r := s.Register
	require.Equal(t, "1.2.3", r.GetAppVersion())
	require.Equal(t, "a", r.GetLabels()["zone"])
	require.EqualValues(t, 4, r.GetSlots())
	require.EqualValues(t, os.Getpid(), r.GetPid())
	require.NotEmpty(t, r.GetInstanceName())
	require.Equal(t, "sum", r.GetHandlers()[0].GetName())
	require.Equal(t, "adds", r.GetHandlers()[0].GetDescription())
	require.Contains(t, string(r.GetHandlers()[0].GetInputSchema()), `"required":["a"]`)
	require.EqualValues(t, 60_000, r.GetHandlers()[0].GetJobs()[0].GetEveryMs())

	require.NoError(t, s.Offer(offer(1, "sum", input(`{"a":1,"b":2}`)), offer(2, "sum", input(`{"a":3}`), granted)))
	seen := saw(t, admin, results(2))
	require.Len(t, seen.Answers, 2)
	require.Len(t, seen.Started, 2)
	for id, want := range map[int64]string{1: `{"sum":3}`, 2: `{"sum":3}`} {
		got := resultOf(seen, id)
		require.Equal(t, "SUCCEEDED", brief(got))
		require.Equal(t, want, string(got.GetOutput()))
		require.Equal(t, s.Boot, got.GetBootId())
	}
	require.Equal(t, time.UnixMilli(1_700_000_000_000).UTC(), task.Load().FireTime)
	require.Equal(t, executor.Task{
		ExecutionID: task.Load().ExecutionID, Fence: 1, Attempt: 1, MaxAttempts: 3, TenantID: 5,
		JobID: 9, JobName: "job", Handler: "sum", FireTime: task.Load().FireTime, Cause: "schedule",
	}, *task.Load())
	require.NoError(t, a.stop())
	require.Contains(t, a.log.String(), "everything is handed over")
	require.Error(t, a.Health())
}

func TestHowAttemptsEnd(t *testing.T) {
	admin := startAdmin(t, &fakeadmin.Admin{})
	a := start(t, admin, func(ex *executor.Executor) {
		executor.Handle(ex, "sum", func(_ context.Context, in sumIn) (sumOut, error) { return sumOut{}, nil })
		executor.HandleFunc(ex, "fail", func(context.Context) error { return errors.New("db is down") })
		executor.HandleFunc(ex, "permanent", func(context.Context) error { return executor.Permanent(errors.New("no such order")) })
		executor.HandleFunc(ex, "later", func(context.Context) error {
			return executor.RetryAfter(errors.New("busy"), 90*time.Second)
		})
		executor.HandleFunc(ex, "panic", func(context.Context) error { panic("boom") })
		executor.HandleOut(ex, "large", func(context.Context) (string, error) { return strings.Repeat("x", proto.MaxOutput), nil })
		executor.HandleFunc(ex, "wait", func(ctx context.Context) error {
			<-ctx.Done()
			return context.Cause(ctx)
		})
	}, func(c *executor.Config) { c.Slots = 20 })
	s := session(t, admin, 1)
	require.NoError(t, s.Offer(
		offer(1, "sum", input(`{"a":"one"}`)), offer(2, "fail"), offer(3, "permanent"), offer(4, "later"),
		offer(5, "panic"), offer(6, "large"), offer(7, "wait", func(o *proto.Offer) { o.TimeoutMs = 50 }), offer(8, "wait"),
	))
	saw(t, admin, func(seen fakeadmin.Seen) bool { return len(seen.Started) == 8 })
	require.NoError(t, s.Cancel(&proto.Cancel{ExecutionId: 8, Fence: 1, Reason: "killed", Message: "by ann"}))
	seen := saw(t, admin, results(8))
	for id, want := range map[int64]struct{ outcome, text string }{
		1: {"FAILED bad_input", "input: a: want integer, got string"},
		2: {"FAILED retryable", "db is down"},
		3: {"FAILED permanent", "no such order"},
		4: {"FAILED retryable", "busy"},
		5: {"FAILED panic", "panic: boom"},
		6: {"FAILED output_too_large", "output has 262146 bytes, the limit is 262144"},
		7: {"TIMED_OUT timeout", "timed out"},
		8: {"CANCELLED cancelled", "killed: by ann"},
	} {
		got := resultOf(seen, id)
		require.Equal(t, want.outcome, brief(got), id)
		require.Equal(t, want.text, got.GetError(), id)
	}
	require.EqualValues(t, 90_000, resultOf(seen, 4).GetRetryAfterMs())
	require.Contains(t, resultOf(seen, 5).GetStack(), "run_test.go")
	require.NoError(t, a.stop())
}

func TestRefusesWhatItCannotRun(t *testing.T) {
	admin := startAdmin(t, &fakeadmin.Admin{})
	release := make(chan struct{})
	var calls atomic.Int64
	a := start(t, admin, func(ex *executor.Executor) {
		executor.HandleFunc(ex, "wait", func(context.Context) error { calls.Add(1); <-release; return nil })
	}, func(c *executor.Config) { c.Slots = 1 })
	s := session(t, admin, 1)
	require.NoError(t, s.Offer(offer(1, "other"), offer(2, "wait"), offer(3, "wait"), offer(2, "wait")))
	saw(t, admin, func(seen fakeadmin.Seen) bool { return len(seen.Started) == 1 })
	require.NoError(t, s.Offer(offer(2, "wait", granted)))
	seen := saw(t, admin, func(seen fakeadmin.Seen) bool { return len(seen.Answers) == 5 })
	got := []string{}
	for _, answer := range seen.Answers {
		got = append(got, fmt.Sprint(answer.GetExecutionId(), " ", answer.GetAccepted(), " ", answer.GetRejectCode()))
	}
	require.ElementsMatch(t, []string{
		"1 false unknown_handler", "2 true ", "3 false busy", "2 false duplicate", "2 false duplicate",
	}, got)

	stopped := make(chan error, 1)
	go func() { stopped <- a.stop() }()
	saw(t, admin, func(seen fakeadmin.Seen) bool { return len(seen.Drains) == 1 })
	require.NoError(t, s.Offer(offer(4, "wait")))
	seen = saw(t, admin, func(seen fakeadmin.Seen) bool { return len(seen.Answers) == 6 })
	require.Equal(t, "draining", seen.Answers[5].GetRejectCode())
	close(release)
	require.NoError(t, <-stopped)
	require.EqualValues(t, 1, calls.Load())
	require.Equal(t, "SUCCEEDED", brief(resultOf(admin.Seen(), 2)))
}

func TestGrantAfterFiveSecondsStartsNothing(t *testing.T) {
	t.Parallel()
	admin := startAdmin(t, &fakeadmin.Admin{})
	admin.HoldGrants.Store(true)
	var calls atomic.Int64
	a := start(t, admin, func(ex *executor.Executor) {
		executor.HandleFunc(ex, "h", func(context.Context) error { calls.Add(1); return nil })
	})
	s := session(t, admin, 1)
	require.NoError(t, s.Offer(offer(1, "h")))
	seen := saw(t, admin, results(1))
	require.Equal(t, "NEVER_STARTED", brief(seen.Results[0]))
	require.NoError(t, s.Grant(&proto.Grant{ExecutionId: 1, Fence: 1, Granted: true}))
	seen = saw(t, admin, func(seen fakeadmin.Seen) bool { return len(seen.Answers) == 2 })
	require.Equal(t, "void", seen.Answers[1].GetRejectCode())
	require.NoError(t, a.stop())
	require.Zero(t, calls.Load())
}

func TestHandlerThatIgnoresItsContext(t *testing.T) {
	admin := startAdmin(t, &fakeadmin.Admin{})
	release := make(chan struct{})
	a := start(t, admin, func(ex *executor.Executor) {
		executor.HandleFunc(ex, "deaf", func(context.Context) error { <-release; return nil })
	}, func(c *executor.Config) { c.Slots = 1; c.KillGrace = 200 * time.Millisecond })
	s := session(t, admin, 1)
	require.NoError(t, s.Offer(offer(1, "deaf", func(o *proto.Offer) { o.TimeoutMs = 50 })))
	seen := saw(t, admin, results(1))
	require.Equal(t, "TIMED_OUT timeout", brief(seen.Results[0]))
	require.True(t, seen.Results[0].GetStillRunning())

	require.NoError(t, s.Offer(offer(2, "deaf")))
	seen = saw(t, admin, func(seen fakeadmin.Seen) bool { return len(seen.Answers) == 2 })
	require.Equal(t, "busy", seen.Answers[1].GetRejectCode())

	close(release)
	seen = saw(t, admin, results(2))
	require.Equal(t, "SUCCEEDED", brief(seen.Results[1]))
	require.False(t, seen.Results[1].GetStillRunning())
	require.NoError(t, a.stop())
}

// A handler that ignores the stop has no result: it ends with its process. Until
// then the folder of the journal, whose lock proves the end, is held.
func TestStopGivesUpOnAHandlerThatIgnoresIt(t *testing.T) {
	admin := startAdmin(t, &fakeadmin.Admin{})
	release := make(chan struct{})
	returned := make(chan struct{})
	journal := t.TempDir()
	deaf := func(ex *executor.Executor) {
		executor.HandleFunc(ex, "deaf", func(context.Context) error { defer close(returned); <-release; return nil })
	}
	a := start(t, admin, deaf, func(c *executor.Config) {
		c.DrainTimeout, c.KillGrace, c.JournalDir = -1, 100*time.Millisecond, journal
	})
	require.NoError(t, session(t, admin, 1).Offer(offer(1, "deaf")))
	saw(t, admin, func(seen fakeadmin.Seen) bool { return len(seen.Started) == 1 })
	require.NoError(t, a.stop(), "before the handler is released")
	require.Empty(t, admin.Seen().Results)
	require.Zero(t, admin.Seen().Left)
	require.Contains(t, a.log.String(), "handlers=1")

	next := start(t, admin, deaf, func(c *executor.Config) { c.JournalDir = journal })
	registered := session(t, admin, 2).Register
	require.Empty(t, registered.GetSupersededBoots())
	require.Empty(t, registered.GetOwed())
	require.NoError(t, next.stop())
	close(release)
	<-returned
}

// The stop of a process that ends with a deaf handler is to the next process
// what a kill is.
func TestAStoppedProcessWithADeafHandlerIsReportedByTheNext(t *testing.T) {
	for _, how := range []os.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		t.Run(how.String(), func(t *testing.T) {
			t.Parallel()
			journal := t.TempDir()
			admin := startAdmin(t, &fakeadmin.Admin{})
			child := startVictim(t, admin, journal)
			first := session(t, admin, 1)
			require.NoError(t, first.Offer(offer(1, "deaf"), offer(2, "slow")))
			saw(t, admin, func(seen fakeadmin.Seen) bool { return len(seen.Started) == 2 })
			require.NoError(t, child.Process.Signal(how))
			_ = child.Wait()
			start(t, admin, registerVictims, func(c *executor.Config) { c.JournalDir = journal })
			require.Equal(t, []string{first.Boot}, session(t, admin, 2).Register.GetSupersededBoots())
			got := map[int64]string{}
			for _, r := range saw(t, admin, results(2)).Results {
				got[r.GetExecutionId()] = brief(r)
			}
			require.Equal(t, "UNKNOWN process_died", got[1])
			if how == syscall.SIGTERM {
				require.Equal(t, "FAILED stopping", got[2], "it listens")
			}
		})
	}
}

func TestDrainLetsHandlersFinishAndCancelsTheRest(t *testing.T) {
	admin := startAdmin(t, &fakeadmin.Admin{})
	release := make(chan struct{})
	a := start(t, admin, func(ex *executor.Executor) {
		executor.HandleFunc(ex, "finishes", func(context.Context) error { <-release; return nil })
		executor.HandleFunc(ex, "stays", func(ctx context.Context) error {
			<-ctx.Done()
			if !errors.Is(context.Cause(ctx), executor.ErrStopping) {
				return errors.New("wrong cause")
			}
			return errors.New("half done")
		})
		executor.HandleFunc(ex, "gives-up", func(ctx context.Context) error {
			<-ctx.Done()
			return fmt.Errorf("copy the shops: %w", ctx.Err())
		})
		executor.HandleFunc(ex, "says-why", func(ctx context.Context) error {
			<-ctx.Done()
			return context.Cause(ctx)
		})
	}, func(c *executor.Config) { c.DrainTimeout = 300 * time.Millisecond })
	s := session(t, admin, 1)
	require.NoError(t, s.Offer(offer(1, "finishes"), offer(2, "stays"), offer(3, "gives-up"), offer(4, "says-why")))
	saw(t, admin, func(seen fakeadmin.Seen) bool { return len(seen.Started) == 4 })
	stopped := make(chan error, 1)
	go func() { stopped <- a.stop() }()
	seen := saw(t, admin, func(seen fakeadmin.Seen) bool { return len(seen.Drains) == 1 })
	require.EqualValues(t, 300, seen.Drains[0].GetGraceMs())
	close(release)
	require.NoError(t, <-stopped)
	seen = admin.Seen()
	require.Equal(t, "SUCCEEDED", brief(resultOf(seen, 1)))
	require.Equal(t, "FAILED retryable", brief(resultOf(seen, 2)))
	require.Equal(t, "executor is stopping: half done", resultOf(seen, 2).GetError())
	for id, text := range map[int64]string{3: "executor is stopping: copy the shops: context canceled", 4: "executor is stopping"} {
		require.Equal(t, "FAILED stopping", brief(resultOf(seen, id)))
		require.Equal(t, text, resultOf(seen, id).GetError())
	}
	require.True(t, seen.Heartbeats[len(seen.Heartbeats)-1].GetDraining())
}

func TestSelfFence(t *testing.T) {
	t.Parallel()
	admin := startAdmin(t, &fakeadmin.Admin{Heartbeat: 200 * time.Millisecond, LeaseTTL: 3 * time.Second})
	cause := make(chan error, 1)
	a := start(t, admin, func(ex *executor.Executor) {
		executor.HandleFunc(ex, "wait", func(ctx context.Context) error {
			<-ctx.Done()
			cause <- context.Cause(ctx)
			return ctx.Err()
		})
	})
	require.NoError(t, session(t, admin, 1).Offer(offer(1, "wait", granted)))
	saw(t, admin, func(seen fakeadmin.Seen) bool { return len(seen.Started) == 1 })
	admin.DenyLease.Store(true)
	require.ErrorIs(t, <-cause, executor.ErrLeaseLost)
	require.ErrorContains(t, a.Health(), "no admin node renews the lease")
	seen := saw(t, admin, results(1))
	require.Equal(t, "FAILED lease_lost", brief(seen.Results[0]))
	admin.DenyLease.Store(false)
	require.Eventually(t, func() bool { return a.Health() == nil }, patience, 10*time.Millisecond)
	require.NoError(t, a.stop())
}
