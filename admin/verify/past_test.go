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

// A job that was paused a second ago and is paused now may have run in between.
func TestStoppedMeansAllTheTime(t *testing.T) {
	call := func(op verify.Op, from, to time.Duration) verify.Call {
		c := verify.Call{Op: op, Job: "7", Tenant: "1", Invoke: at(from), Ack: at(to)}
		if op == verify.OpCreate {
			c.Spec = &verify.Spec{Kind: "fixed_rate", Every: verify.Span(time.Second)}
		}
		return c
	}
	life := verify.NewLife("7", []verify.Call{
		call(verify.OpCreate, 0, time.Millisecond),
		call(verify.OpPause, 10*time.Second, 10010*time.Millisecond),
		call(verify.OpResume, 12*time.Second, 12010*time.Millisecond),
		call(verify.OpPause, 12700*time.Millisecond, 12710*time.Millisecond),
		call(verify.OpDelete, 20*time.Second, 20010*time.Millisecond),
	})
	for _, c := range []struct {
		from, to        time.Duration
		paused, deleted bool
	}{
		{10500 * time.Millisecond, 11500 * time.Millisecond, true, false},
		{11730 * time.Millisecond, 12730 * time.Millisecond, false, false},
		{13 * time.Second, 14 * time.Second, true, false},
		{19500 * time.Millisecond, 20500 * time.Millisecond, false, false},
		{21 * time.Second, 22 * time.Second, false, true},
		{5 * time.Second, 6 * time.Second, false, false},
	} {
		paused, deleted := life.Stopped(at(c.from), at(c.to))
		require.Equal(t, []bool{c.paused, c.deleted}, []bool{paused, deleted}, "from %s to %s", c.from, c.to)
	}
}
