package runner

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/carillon-sched/carillon/executor-sdk/internal/journal"
	"github.com/carillon-sched/carillon/proto"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// memory is a journal that is durable at once.
type memory struct{ err error }

func (j *memory) Append(_ []journal.Record, written func(), done func(error)) {
	go func() {
		if written != nil && j.err == nil {
			written()
		}
		if done != nil {
			done(j.err)
		}
	}()
}

func (j *memory) Err() error { return j.err }

// admin is a session that grants what is accepted and collects results.
type admin struct {
	runner *Runner
	ack    bool

	mu      sync.Mutex
	results []*proto.Result
}

func (a *admin) Answer(list []*proto.Answer) {
	for _, answer := range list {
		if answer.GetAccepted() {
			go a.runner.Grants(a, []*proto.Grant{{ExecutionId: answer.GetExecutionId(), Fence: answer.GetFence(), Granted: true}})
		}
	}
}

func (a *admin) Accept([]*proto.Answer)                 {}
func (a *admin) Started([]*proto.Started)               {}
func (a *admin) Ask([]*proto.InventoryItem)             {}
func (a *admin) LeaseFrom(int64) (from, sent time.Time) { return time.Now(), time.Now() }

func (a *admin) Results(list []*proto.Result) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.results = append(a.results, list...)
	if !a.ack {
		return
	}
	for _, r := range list {
		go a.runner.Acks([]*proto.ResultAck{{ExecutionId: r.GetExecutionId(), Fence: r.GetFence()}})
	}
}

func (a *admin) got() []*proto.Result {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]*proto.Result(nil), a.results...)
}

// inBubble runs a Runner in a synctest bubble, where sleeping costs nothing.
func inBubble(t *testing.T, call func(ctx context.Context, o *proto.Offer) Return, body func(r *Runner, a *admin)) {
	synctest.Test(t, func(t *testing.T) {
		r := New(Options{
			Boot: "boot1", Journal: &memory{}, Logger: slog.New(slog.DiscardHandler), Base: context.Background(),
			Limits: Limits{Slots: 4, KillGrace: 10 * time.Second, AcceptTTL: proto.AcceptTTL, LeaseMargin: 3 * time.Second, ResendAfter: 10 * time.Second},
			Known:  func(string) bool { return true },
			Call:   call,
		})
		ctx, cancel := context.WithCancel(context.Background())
		var wait sync.WaitGroup
		wait.Go(func() { r.Run(ctx) })
		a := &admin{runner: r, ack: true}
		r.LinkUp(a, time.Now(), &proto.Registered{LeaseTtlMs: 15_000})
		body(r, a)
		synctest.Wait()
		cancel()
		wait.Wait()
	})
}

// heartbeat keeps the lease while d passes.
func heartbeat(r *Runner, a *admin, d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); {
		time.Sleep(min(time.Second, time.Until(end)))
		r.Renewed(a, time.Now(), true)
	}
}

func TestRunnerEnforcesTheTimeout(t *testing.T) {
	var cause, err error
	var ended time.Duration
	start := time.Time{}
	inBubble(t, func(ctx context.Context, _ *proto.Offer) Return {
		<-ctx.Done()
		cause, err, ended = context.Cause(ctx), ctx.Err(), time.Since(start)
		return Return{Kind: KindRetryable, Error: err.Error()}
	}, func(r *Runner, a *admin) {
		start = time.Now()
		r.Offers(a, []*proto.Offer{offer(1, 1, timeout(time.Minute))})
		heartbeat(r, a, 2*time.Minute)
		require.Len(t, a.got(), 1)
		require.Equal(t, "TIMED_OUT timeout", brief(a.got()[0]))
	})
	require.ErrorIs(t, cause, ErrTimeout)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Equal(t, time.Minute, ended)
}

func TestRunnerFencesItself(t *testing.T) {
	var after time.Duration
	var cause error
	inBubble(t, func(ctx context.Context, _ *proto.Offer) Return {
		start := time.Now()
		<-ctx.Done()
		after, cause = time.Since(start), context.Cause(ctx)
		return Return{}
	}, func(r *Runner, a *admin) {
		r.Offers(a, []*proto.Offer{offer(1, 1, idempotent)})
		require.False(t, r.LeaseLost())
		time.Sleep(13 * time.Second)
		require.True(t, r.LeaseLost())
	})
	require.ErrorIs(t, cause, ErrLeaseLost)
	require.GreaterOrEqual(t, after, proto.SelfFence)
	require.LessOrEqual(t, after, proto.SelfFence+tickInterval)
}

func TestRunnerReportsPanicsAndGoexit(t *testing.T) {
	inBubble(t, func(_ context.Context, o *proto.Offer) Return {
		switch o.GetExecutionId() {
		case 1:
			panic("boom")
		case 2:
			runtime.Goexit()
		case 3:
			panic(errors.New("wrapped \xff"))
		}
		return Return{}
	}, func(r *Runner, a *admin) {
		for i := range int64(3) {
			r.Offers(a, []*proto.Offer{offer(i+1, 1, idempotent)})
			synctest.Wait()
		}
		got := a.got()
		require.Len(t, got, 3)
		for _, result := range got {
			require.Equal(t, "FAILED panic", brief(result))
		}
		require.Equal(t, "panic: boom", got[0].GetError())
		require.Contains(t, got[0].GetStack(), "runner_test.go")
		require.Contains(t, got[1].GetError(), "runtime.Goexit")
		require.Equal(t, "panic: wrapped \uFFFD", got[2].GetError())
		used, _ := r.Load()
		require.Zero(t, used)
	})
}

func TestRunnerDrains(t *testing.T) {
	release := map[int64]chan struct{}{1: make(chan struct{}), 2: make(chan struct{})}
	inBubble(t, func(ctx context.Context, o *proto.Offer) Return {
		select {
		case <-release[o.GetExecutionId()]:
			return Return{}
		case <-ctx.Done():
			return Return{Kind: KindRetryable, Error: context.Cause(ctx).Error()}
		}
	}, func(r *Runner, a *admin) {
		release[1], release[2] = make(chan struct{}), make(chan struct{})
		r.Offers(a, []*proto.Offer{offer(1, 1), offer(2, 1)})
		synctest.Wait()
		quiet := r.Drain()
		close(release[1])
		heartbeat(r, a, time.Second)
		require.False(t, closed(quiet))
		require.False(t, closed(r.Settled()))
		r.Stop()
		synctest.Wait()
		require.True(t, closed(quiet))
		require.True(t, closed(r.Settled()))
		texts := []string{}
		for _, result := range a.got() {
			texts = append(texts, brief(result)+" "+result.GetError())
		}
		require.Equal(t, "SUCCEEDED  FAILED retryable executor is stopping", strings.Join(texts, " "))
	})
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// Many goroutines at once, for the race detector: every offer ends in exactly
// one start and one result.
func TestRunnerUnderLoad(t *testing.T) {
	var mu sync.Mutex
	starts := map[int64]int{}
	r := New(Options{
		Boot: "boot1", Journal: &memory{}, Logger: slog.New(slog.DiscardHandler), Base: context.Background(),
		Limits: Limits{Slots: 5000, KillGrace: time.Second, AcceptTTL: proto.AcceptTTL, LeaseMargin: 3 * time.Second, ResendAfter: 10 * time.Second},
		Known:  func(string) bool { return true },
		Call: func(_ context.Context, o *proto.Offer) Return {
			mu.Lock()
			starts[o.GetExecutionId()]++
			mu.Unlock()
			return Return{}
		},
	})
	ctx, cancel := context.WithCancel(context.Background())
	var wait sync.WaitGroup
	wait.Go(func() { r.Run(ctx) })
	a := &admin{runner: r, ack: true}
	r.LinkUp(a, time.Now(), &proto.Registered{})
	var senders sync.WaitGroup
	for s := range int64(4) {
		senders.Go(func() {
			for i := range int64(500) {
				o := offer(s*500+i, 1)
				o.Granted = i%2 == 0
				r.Offers(a, []*proto.Offer{o, o})
				r.Renewed(a, time.Now(), true)
			}
		})
	}
	senders.Wait()
	<-r.Drain()
	<-r.Settled()
	cancel()
	wait.Wait()
	require.Len(t, starts, 2000)
	for id, n := range starts {
		require.Equal(t, 1, n, id)
	}
	require.Len(t, a.got(), 2000)
}
