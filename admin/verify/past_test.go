package verify_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/verify"
)

// TestPastBugs holds what the checker once overlooked (docs/guide/verify.md has the
// table).
func TestPastBugs(t *testing.T) {
	runOf := func(h *verify.History, job string, fire time.Duration) *verify.Run {
		i := slices.IndexFunc(h.Runs, func(r verify.Run) bool { return r.Job == job && r.FireAt == at(fire) })
		require.GreaterOrEqual(t, i, 0)
		return &h.Runs[i]
	}
	rowOf := func(h *verify.History, key string) *verify.Row {
		return &h.Rows[slices.IndexFunc(h.Rows, func(r verify.Row) bool { return r.Key == key })]
	}
	drop := func(h *verify.History, key string) {
		h.Runs = slices.DeleteFunc(h.Runs, func(r verify.Run) bool { return r.Key == key })
	}
	for name, c := range map[string]struct {
		damage func(h *verify.History)
		want   verify.Kind
	}{
		"late behind later fire times": {func(h *verify.History) {
			run := runOf(h, "deleted", 20*time.Second)
			run.Start, run.End = run.Start+verify.Span(10*time.Second), run.End+verify.Span(10*time.Second)
			row := rowOf(h, run.Key)
			row.FinishedAt += verify.Span(10 * time.Second)
		}, verify.Late},
		"a chain that stops": {func(h *verify.History) {
			gone := func(job string, fire verify.Time) bool { return job == "delayed" && fire > at(220*time.Second) }
			h.Runs = slices.DeleteFunc(h.Runs, func(r verify.Run) bool { return gone(r.Job, r.FireAt) })
			h.Rows = slices.DeleteFunc(h.Rows, func(r verify.Row) bool { return gone(r.Job, r.FireAt) })
		}, verify.Missed},
		"succeeded without a start, and no call names it": {func(h *verify.History) {
			i := slices.IndexFunc(h.Rows, func(r verify.Row) bool {
				return r.Cause == "api" && !slices.ContainsFunc(h.Calls, func(c verify.Call) bool { return c.Key == r.Key })
			})
			drop(h, h.Rows[i].Key)
		}, verify.FalseResult},
		"discarded by a job that discards nothing": {func(h *verify.History) {
			run := runOf(h, "idempotent", 20*time.Second)
			row := rowOf(h, run.Key)
			row.State, row.Reason, row.FinishedAt = "discarded", "overlap", row.FireAt+1000
			drop(h, row.Key)
			runOf(h, "idempotent", 19*time.Second).End += verify.Span(2 * time.Second)
		}, verify.Gap},
	} {
		t.Run(name, func(t *testing.T) {
			h := clone(newWorld(1))
			c.damage(h)
			r := check(t, h)
			require.Positive(t, r.Counts[c.want], "%v", r.Examples)
		})
	}
}
