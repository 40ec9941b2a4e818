package admin_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin"
	executor "github.com/carillon-sched/carillon/executor-sdk"
	"github.com/carillon-sched/carillon/internal/testenv"
)

type greeting struct {
	Name string `json:"name"`
}

type reply struct {
	Text string `json:"text"`
}

// TestTheWholePath sends work from the API through database and wire into a
// handler and back, in every way in which it can end, on both databases.
func TestTheWholePath(t *testing.T) {
	t.Parallel()
	for name, database := range databases {
		t.Run(name, func(t *testing.T) {
			n := startNode(t, func(c *admin.Config) { c.Database = database(t, c.DataDir) })
			var flaky atomic.Int32
			entered := make(chan struct{}, 1)
			n.startExecutor("shop", nil, func(ex *executor.Executor) {
				executor.Handle(ex, "greet", func(ctx context.Context, in greeting) (reply, error) {
					executor.Logger(ctx).Info("greeting", "name", in.Name)
					return reply{"hello " + in.Name}, nil
				})
				executor.Handle(ex, "greet-idempotent", func(_ context.Context, in greeting) (reply, error) {
					return reply{"hello " + in.Name}, nil
				}, executor.Idempotent())
				executor.HandleFunc(ex, "flaky", func(context.Context) error {
					if flaky.Add(1) == 1 {
						return errors.New("not yet")
					}
					return nil
				})
				executor.HandleFunc(ex, "hopeless", func(context.Context) error { return executor.Permanent(errors.New("never")) })
				executor.HandleFunc(ex, "panics", func(context.Context) error { panic("out of tune") })
				executor.HandleFunc(ex, "slow", func(ctx context.Context) error {
					select {
					case entered <- struct{}{}:
					default:
					}
					<-ctx.Done()
					return context.Cause(ctx)
				})
			})

			for _, handler := range []string{"greet", "greet-idempotent"} {
				job := n.newJob("shop", handler, nil)
				r := n.until(n.runNow(job, greeting{"Mei"}), "succeeded")
				require.JSONEq(t, `{"text":"hello Mei"}`, string(r.Output))
				require.Equal(t, 1, r.Attempt)
			}

			t.Run("synchronous", func(t *testing.T) {
				job := n.newJob("shop", "greet", map[string]any{"name": "sync"})
				var r run
				n.do(http.MethodPost, "/api/v1/jobs/"+job+"/run?wait=30s", map[string]any{"input": greeting{"Bo"}}, &r, 201)
				require.Equal(t, "succeeded", r.State)
				n.logContains(r.ID, "greeting", "Bo")
			})
			t.Run("delayed", func(t *testing.T) {
				job := n.newJob("shop", "greet", map[string]any{"name": "delayed"})
				var r run
				before := time.Now()
				n.do(http.MethodPost, "/api/v1/jobs/"+job+"/run", map[string]any{"input": greeting{"Bo"}, "after": "4s"}, &r, 201)
				n.until(r.ID, "succeeded")
				require.GreaterOrEqual(t, time.Since(before), 4*time.Second)
			})
			t.Run("a failed attempt is tried again", func(t *testing.T) {
				job := n.newJob("shop", "flaky", map[string]any{"retry": map[string]any{"maxAttempts": 3, "delay": "100ms"}})
				r := n.until(n.runNow(job, nil), "succeeded")
				require.Equal(t, 2, r.Attempt)
				require.Len(t, r.Attempts, 2)
				require.Contains(t, r.Attempts[0].Error, "not yet")
			})
			t.Run("a permanent error is not", func(t *testing.T) {
				job := n.newJob("shop", "hopeless", map[string]any{"retry": map[string]any{"maxAttempts": 3, "delay": "100ms"}})
				r := n.until(n.runNow(job, nil), "failed")
				require.Equal(t, 1, r.Attempt)
				require.Equal(t, "permanent", r.ErrorKind)
			})
			t.Run("a panic fails the attempt with its stack", func(t *testing.T) {
				r := n.until(n.runNow(n.newJob("shop", "panics", nil), nil), "failed")
				require.Equal(t, "panic", r.ErrorKind)
				require.Contains(t, r.Error, "out of tune")
			})
			t.Run("timeout", func(t *testing.T) {
				job := n.newJob("shop", "slow", map[string]any{"name": "timeout", "timeout": "300ms"})
				r := n.until(n.runNow(job, nil), "timed_out")
				require.Equal(t, "timeout", r.Reason)
			})
			t.Run("cancel", func(t *testing.T) {
				for len(entered) > 0 {
					<-entered
				}
				id := n.runNow(n.newJob("shop", "slow", map[string]any{"name": "cancel"}), nil)
				<-entered
				n.do(http.MethodPost, "/api/v1/runs/"+id+"/cancel", map[string]any{"reason": "enough"}, nil, 202)
				r := n.until(id, "cancelled")
				require.Equal(t, "killed", r.Reason)
			})
			t.Run("bad input fails at once", func(t *testing.T) {
				job, input := n.newJob("shop", "greet", map[string]any{"name": "bad"}), map[string]any{"input": map[string]any{"name": 5}}
				n.do(http.MethodPost, "/api/v1/jobs/"+job+"/run", input, nil, 422)
				var asked run
				n.do(http.MethodPost, "/api/v1/jobs/"+job+"/run?allowUnfitInput=true", input, &asked, 201)
				require.Equal(t, "bad_input", n.until(asked.ID, "failed").ErrorKind)
			})
		})
	}
}

// logContains waits until the run's log is complete and shows the words.
func (n *node) logContains(id string, words ...string) {
	n.t.Helper()
	var text string
	n.eventually(func() bool {
		var page struct {
			Lines []struct {
				Msg   string
				Attrs map[string]any
			}
			Complete bool
		}
		n.do(http.MethodGet, "/api/v1/runs/"+id+"/log", nil, &page, 200)
		text = fmt.Sprint(page.Lines)
		for _, w := range words {
			if !strings.Contains(text, w) {
				return false
			}
		}
		return page.Complete
	}, func() string { return fmt.Sprintf("the log of %s lacks %v: %s", id, words, text) })
}

// TestSchedulesFireOnceOnSeveralNodes lets two nodes share a database and
// counts what handlers saw.
func TestSchedulesFireOnceOnSeveralNodes(t *testing.T) {
	t.Parallel()
	dsn := "mysql:" + testenv.Database(t)
	key := t.TempDir() + "/sealing.key"
	share := func(c *admin.Config) { c.Database, c.SealingKeyFile = dsn, key }
	a := startNode(t, share)
	b := startNode(t, share)

	var mu sync.Mutex
	var wanted int64 // the job
	seen := map[int64]int{}
	for range 2 {
		a.startExecutor("shop", nil, func(ex *executor.Executor) {
			executor.HandleFunc(ex, "tick", func(ctx context.Context) error {
				mu.Lock()
				defer mu.Unlock()
				if task := executor.TaskFrom(ctx); task.JobID == wanted {
					seen[task.FireTime.UnixMilli()]++
				}
				return nil
			})
		})
	}
	start, ids := b.eachSecond("shop", []string{"tick"}, 10, nil)
	mu.Lock()
	wanted = number(t, ids[0])
	mu.Unlock()
	require.Eventually(t, func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(seen) >= 10
	}, time.Minute, 100*time.Millisecond)
	mu.Lock()
	defer mu.Unlock()
	for i := range int64(10) {
		require.Equal(t, 1, seen[start.UnixMilli()+i*1000], "fire %d", i)
	}
	require.Len(t, seen, 10)
}

// TestSerialRunsKeepTheirOrder and discard_later leaves a row with its reason.
func TestBlockingStrategies(t *testing.T) {
	t.Parallel()
	n := startNode(t, nil)
	var mu sync.Mutex
	var order []string
	running, most := 0, 0
	n.startExecutor("shop", nil, func(ex *executor.Executor) {
		executor.Handle(ex, "one-at-a-time", func(_ context.Context, in greeting) (struct{}, error) {
			mu.Lock()
			order = append(order, in.Name)
			running++
			most = max(most, running)
			mu.Unlock()
			<-time.After(30 * time.Millisecond) // the work
			mu.Lock()
			running--
			mu.Unlock()
			return struct{}{}, nil
		})
	})
	serial := n.newJob("shop", "one-at-a-time", map[string]any{"blocking": "serial"})
	var ids, want []string
	for i := range 8 {
		want = append(want, fmt.Sprint(i))
		ids = append(ids, n.runNow(serial, greeting{fmt.Sprint(i)}))
	}
	for _, id := range ids {
		n.until(id, "succeeded")
	}
	require.Equal(t, want, order)
	require.Equal(t, 1, most)
}
