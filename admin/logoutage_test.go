package admin_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin"
	executor "github.com/carillon-sched/carillon/executor-sdk"
	"github.com/carillon-sched/carillon/internal/testenv"
)

// pageOfLog is what the API tells of a log.
type pageOfLog struct {
	Lines []struct {
		N     int64
		Msg   string
		Attrs struct{ Dropped int64 }
	}
	Next, LastLine      int64
	Complete, Truncated bool
}

// wholeLog reads a log to its end, and returns its lines and how many it says
// were dropped.
func (n *node) wholeLog(id string) (lines []string, dropped int64, truncated bool) {
	n.t.Helper()
	after := int64(0)
	for {
		var p pageOfLog
		n.do(http.MethodGet, fmt.Sprintf("/api/v1/runs/%s/log?after=%d&limit=1000&wait=5s", id, after), nil, &p, 200)
		for _, l := range p.Lines {
			if l.Attrs.Dropped > 0 {
				dropped += l.Attrs.Dropped
				require.Contains(n.t, l.Msg, "lines dropped")
				continue
			}
			lines = append(lines, l.Msg)
		}
		after = p.Next
		if p.Complete {
			return lines, dropped, p.Truncated
		}
	}
}

// TestLogsOutliveAnOutageOfTheDatabase: for ten seconds nothing can be stored.
// What fits into the executor's buffer is there afterwards, in its order and
// once; of what does not, every line is accounted for.
func TestLogsOutliveAnOutageOfTheDatabase(t *testing.T) {
	t.Parallel()
	server := testenv.PrivateServer(t)
	dsn := server.Database(t)
	n := startNode(t, func(c *admin.Config) { c.Database = "mysql:" + dsn })
	const outage, pace = 10 * time.Second, 10 * time.Millisecond
	var quiet, loud atomic.Int64 // lines written
	until := make(chan struct{})
	speak := func(count *atomic.Int64, text string) func(context.Context) error {
		return func(ctx context.Context) error {
			log := executor.Logger(ctx)
			tick := time.NewTicker(pace)
			defer tick.Stop()
			for {
				log.Info(fmt.Sprintf("line %d%s", count.Add(1), text))
				select {
				case <-until:
					return nil
				case <-tick.C:
				}
			}
		}
	}
	n.startExecutor("shop", nil, func(ex *executor.Executor) { executor.HandleFunc(ex, "quiet", speak(&quiet, "")) })
	const small = 256 << 10
	flooded := n.startExecutor("mill", func(c *executor.Config) { c.LogBuffer = small }, func(ex *executor.Executor) {
		executor.HandleFunc(ex, "loud", speak(&loud, strings.Repeat(" and more", 200)))
	})
	one, two := n.runNow(n.newJob("shop", "quiet", nil), nil), n.runNow(n.newJob("mill", "loud", nil), nil)
	n.eventually(func() bool { return quiet.Load() > 100 && loud.Load() > 100 }, func() string { return "the handlers do not write" })

	require.NoError(t, server.Stop())
	gone := time.Now()
	n.eventually(func() bool { return time.Since(gone) >= outage && flooded.Stats().LogLinesDropped > 0 },
		func() string { return "nothing was dropped: the buffer is not bounded" })
	require.LessOrEqual(t, flooded.Stats().LogBuffered, small)
	require.NoError(t, server.Start())
	during := quiet.Load()
	n.eventually(func() bool { return quiet.Load() > during+100 }, func() string { return "the handlers do not write any more" })
	close(until)
	n.until(one, "succeeded")
	n.until(two, "succeeded")

	lines, dropped, truncated := n.wholeLog(one)
	require.Zero(t, dropped)
	require.False(t, truncated)
	require.EqualValues(t, ascending(t, lines), quiet.Load(), "the last line is there")
	require.EqualValues(t, quiet.Load(), len(lines), "and all before it")
	lines, dropped, _ = n.wholeLog(two)
	require.Positive(t, dropped)
	require.EqualValues(t, loud.Load(), int64(len(lines))+dropped, "each line is there or counted")
	require.EqualValues(t, dropped, flooded.Stats().LogLinesDropped)
	ascending(t, lines)
	t.Logf("quiet wrote %d lines; loud %d, of which %d were dropped", quiet.Load(), loud.Load(), dropped)
}

// ascending looks that no line stands twice or before an earlier one, and
// returns the number of the last one.
func ascending(t *testing.T, lines []string) (last int64) {
	t.Helper()
	for _, l := range lines {
		var number int64
		_, err := fmt.Sscanf(l, "line %d", &number)
		require.NoError(t, err)
		require.Greater(t, number, last, "in their order, once")
		last = number
	}
	return last
}
