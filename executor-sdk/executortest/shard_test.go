package executortest_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	executor "github.com/carillon-sched/carillon/executor-sdk"
	"github.com/carillon-sched/carillon/executor-sdk/executortest"
)

// What the documentation of the package shows.
func TestCountingInShards(t *testing.T) {
	executortest.Test(t, func(t *testing.T, admin *executortest.Admin) {
		ex := admin.Executor()
		executor.HandleOut(ex, "count", countMine,
			executor.Every(time.Hour), executor.Shards(4), executor.Retries(1), executor.AfterShards("add-up"))
		executor.Handle(ex, "add-up", addUp)

		fire := admin.Call("count", nil)
		require.Equal(t, executortest.Succeeded, fire.State())
		require.Len(t, fire.Shards(), 4)
		var all int
		fire.After().Output(&all)
		require.Equal(t, 100, all)
	})
}

func countMine(ctx context.Context) (int, error) {
	task := executor.TaskFrom(ctx)
	if task.Shard().Index == 2 && task.Attempt == 1 {
		return 0, errors.New("a shard is tried again by itself")
	}
	n := 0
	for id := range uint64(100) {
		if task.Shard().Mine(id) {
			n++
		}
	}
	return n, nil
}

func addUp(_ context.Context, in executor.ShardResults) (all int, err error) {
	for _, s := range in.Shards {
		var n int
		if err := json.Unmarshal(s.Output, &n); err != nil {
			return 0, err
		}
		all += n
	}
	return all, nil
}

func TestShardsHaveHooksAttemptsAndOneCallback(t *testing.T) {
	executortest.Test(t, func(t *testing.T, admin *executortest.Admin) {
		ex := admin.Executor()
		var order []string
		var parents []int64
		note := func(name string, err error) func(context.Context) error {
			return func(ctx context.Context) error {
				order = append(order, name)
				parents = append(parents, executor.TaskFrom(ctx).ParentID)
				require.Equal(t, name, executor.TaskFrom(ctx).Part)
				return err
			}
		}
		executor.HandleFunc(ex, "first", note("before", nil))
		executor.HandleFunc(ex, "work", func(ctx context.Context) error {
			if executor.TaskFrom(ctx).Shard().Index == 1 {
				return executor.Permanent(errors.New("no"))
			}
			return nil
		}, executor.Shards(3), executor.BeforeShards("first"), executor.AfterShards("last"), executor.OnFailure("told"))
		executor.HandleIn(ex, "last", func(_ context.Context, in executor.ShardResults) error {
			order = append(order, "after")
			require.Equal(t, []int{3, 2}, []int{in.Total, in.Succeeded})
			require.Equal(t, "failed", in.Shards[1].State)
			require.Equal(t, "no", in.Shards[1].Error)
			return nil
		})
		ended := 0
		executor.HandleEnd(ex, "told", func(_ context.Context, run executor.Ended) error {
			ended++
			require.Equal(t, "2 of 3 shards succeeded", run.Error)
			return nil
		})

		fire := admin.Call("work", nil)
		require.Equal(t, executortest.Failed, fire.State())
		require.Equal(t, "shards_failed", fire.ErrKind())
		require.Equal(t, "2 of 3 shards succeeded", fire.Err())
		require.Equal(t, executortest.Succeeded, fire.Before().State())
		require.Equal(t, []string{"before", "after"}, order)
		require.NotZero(t, parents[0])
		admin.Wait()
		require.Equal(t, 1, ended)
		require.Len(t, admin.Runs("work"), 1, "shards are no runs of the job")
	})
}

func TestAHookThatFailsEndsTheFire(t *testing.T) {
	executortest.Test(t, func(t *testing.T, admin *executortest.Admin) {
		ex := admin.Executor()
		executor.HandleFunc(ex, "first", func(context.Context) error { return errors.New("not today") })
		executor.HandleFunc(ex, "work", func(context.Context) error { return nil }, executor.Shards(2), executor.BeforeShards("first"))
		executor.HandleFunc(ex, "more", func(context.Context) error { return nil }, executor.Shards(2), executor.AfterShards("bad"))
		executor.HandleIn(ex, "bad", func(context.Context, executor.ShardResults) error { return errors.New("no sum") })
		fire := admin.Call("work", nil)
		require.Equal(t, "before_hook", fire.ErrKind())
		require.Empty(t, fire.Shards())
		fire = admin.Call("more", nil)
		require.Equal(t, "after_hook", fire.ErrKind())
		require.Equal(t, "2 of 2 shards succeeded; the hook after them ended as failed", fire.Err())
	})
}

// A broadcast reaches each instance once; what an instance that goes leaves
// behind is missed, or moves.
func TestABroadcastReachesEveryInstance(t *testing.T) {
	for policy, want := range map[executor.GonePolicy]executortest.State{
		executor.MissShard: executortest.Failed, executor.MoveShard: executortest.Succeeded,
	} {
		executortest.Test(t, func(t *testing.T, admin *executortest.Admin) {
			var mu sync.Mutex
			reached := map[int]int{}
			for n := range 3 {
				ex := admin.Executor()
				executor.HandleFunc(ex, "reload", func(ctx context.Context) error {
					mu.Lock()
					reached[n]++
					mu.Unlock()
					select {
					case <-time.After(time.Minute):
						return nil
					case <-ctx.Done():
						return context.Cause(ctx)
					}
				}, executor.Broadcast(), executor.OnGone(policy))
			}
			require.Equal(t, executortest.Succeeded, admin.Call("reload", nil).State())
			require.Equal(t, map[int]int{0: 1, 1: 1, 2: 1}, reached)

			fire := admin.Begin("reload", nil)
			admin.Wait()
			fire.Shards()[1].TakeOver()
			require.Equal(t, want, fire.Wait().State())
		})
	}
}

func TestAFireIsCancelledAndTimesOutAsAWhole(t *testing.T) {
	executortest.Test(t, func(t *testing.T, admin *executortest.Admin) {
		ex := admin.Executor(func(c *executor.Config) { c.Slots = 2 }) // the third shard waits
		executor.HandleFunc(ex, "slow", func(ctx context.Context) error {
			<-ctx.Done()
			return context.Cause(ctx)
		}, executor.Shards(3), executor.FireTimeout(time.Minute))
		began := time.Now()
		fire := admin.Call("slow", nil)
		require.Equal(t, executortest.TimedOut, fire.State())
		require.Equal(t, time.Minute, time.Since(began).Round(time.Minute))
		fire = admin.Begin("slow", nil)
		admin.Wait()
		fire.Cancel()
		require.Equal(t, executortest.Cancelled, fire.Wait().State())
		for _, s := range fire.Shards() {
			require.Equal(t, executortest.Cancelled, s.State())
		}
	})
}
