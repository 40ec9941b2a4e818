package admin_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin"
	executor "github.com/carillon-sched/carillon/executor-sdk"
)

// TestAHeavyRunIsSentOnceItsSlotsAreFree: while the instance has fewer free slots
// than it takes, a run is not offered at all, and so uses up no sends; and light
// runs that come behind it do not take every slot that becomes free.
func TestAHeavyRunIsSentOnceItsSlotsAreFree(t *testing.T) {
	t.Parallel()
	for name, database := range databases {
		t.Run(name, func(t *testing.T) {
			n := startNode(t, func(c *admin.Config) { c.Database = database(t, c.DataDir) })
			entered, leave := make(chan string, 20), make(chan struct{})
			n.startExecutor("shop", func(c *executor.Config) { c.Slots = 4 }, func(ex *executor.Executor) {
				handle := func(ctx context.Context, in greeting) error {
					entered <- in.Name
					if in.Name == "heavy" {
						return nil
					}
					select {
					case <-leave:
						return nil
					case <-ctx.Done():
						return ctx.Err()
					}
				}
				executor.Handle(ex, "light", func(ctx context.Context, in greeting) (struct{}, error) { return struct{}{}, handle(ctx, in) })
				executor.Handle(ex, "heavy", func(ctx context.Context, in greeting) (struct{}, error) { return struct{}{}, handle(ctx, in) }, executor.Weight(3))
			})
			light := n.newJob("shop", "light", map[string]any{"blocking": "parallel"})
			heavy := n.newJob("shop", "heavy", map[string]any{"sendRetry": map[string]any{"maxSends": 1}})
			for range 3 {
				n.runNow(light, greeting{"first"})
				require.Equal(t, "first", <-entered)
			}
			waits := n.runNow(heavy, greeting{"heavy"})
			n.eventually(func() bool { return n.run(waits).Reason == "waiting_for_instance" }, func() string { return "it does not wait" })
			behind := []string{n.runNow(light, greeting{"behind"}), n.runNow(light, greeting{"behind"})}
			for range 2 {
				leave <- struct{}{}
			}
			require.Equal(t, "heavy", <-entered, "the slots were kept for it")
			require.Equal(t, 1, n.until(waits, "succeeded").Fence, "it was sent once")
			close(leave)
			for _, id := range behind {
				n.until(id, "succeeded")
			}
		})
	}
}
