package verify_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/verify"
)

const (
	families   = 10
	shardCount = 3
)

// shardWorld is a serial job whose fires are cut into shards, with a hook before
// them, and one run of it by hand.
func shardWorld() *verify.History {
	w := &verify.History{Plan: &verify.Plan{
		From: at(0), To: at(families*10*time.Second - 1), MinRuns: 10, MinNodes: 1, MaxLate: verify.Span(2 * time.Second), Settle: verify.Span(5 * time.Second),
	}}
	w.Nodes = []verify.Node{{Node: "n1", Role: "admin", At: at(0)}, {Node: "e1", Role: "executor", At: at(0)}}
	w.Calls = []verify.Call{
		{Op: verify.OpCreate, Tenant: "1", Job: "j", Invoke: at(-5 * time.Second), Ack: at(-5 * time.Second), Spec: &verify.Spec{Kind: "fixed_rate", Every: verify.Span(10 * time.Second)}},
		{Op: verify.OpTrigger, Tenant: "1", Job: "j", Key: "asked", Invoke: at(15 * time.Second), Ack: at(15 * time.Second)},
	}
	for n := range families + 1 {
		fire, key, cause := time.Duration(n)*10*time.Second, fmt.Sprint("p", n), "schedule"
		if n == families {
			fire, key, cause = 15*time.Second, "asked", "manual"
		}
		row := func(key, part string, shard int, from, to time.Duration) *verify.Row {
			r := verify.Row{
				Key: key, Tenant: "1", Job: "j", Revision: 1, Cause: cause, FireAt: at(fire), State: "succeeded", Fence: 1, Part: part, Shard: shard, Shards: shardCount,
				PlannedAt: at(from), OfferedAt: at(from), GrantedAt: at(from), StartedAt: at(from), FinishedAt: at(to), Node: "n1",
			}
			if part != "" {
				r.Parent, r.Attempt = "", 1
			}
			w.Rows = append(w.Rows, r)
			return &w.Rows[len(w.Rows)-1]
		}
		part := func(name string, shard int, from, to time.Duration) {
			child := fmt.Sprintf("%s-%s%d", key, name, shard)
			row(child, name, shard, from, to).Parent = key
			w.Runs = append(w.Runs, verify.Run{
				Job: "j", Key: child, Fence: 1, Boot: "e1-1", Tenant: "1", Shard: shard, Attempt: 1, FireAt: at(fire), Node: "e1", Start: at(from), End: at(to),
			})
		}
		row(key, "", 0, fire, fire+3200*time.Millisecond)
		// The shards are late by what the hook took, which is no fault of anybody's.
		part("before", 0, fire+10*time.Millisecond, fire+3*time.Second)
		for shard := range shardCount {
			part("shard", shard, fire+3010*time.Millisecond, fire+3100*time.Millisecond)
		}
	}
	return w
}

func TestAHealthyFamilyIsClean(t *testing.T) {
	r := check(t, shardWorld())
	require.Empty(t, r.Examples)
	require.Empty(t, r.Short)
	require.Equal(t, families*shardCount+1, r.Expected, "each shard is expected, and the run by hand")
	require.Equal(t, r.Expected, r.Ran)
}

// TestEveryBrokenFamilyIsFound damages the fifth fire.
func TestEveryBrokenFamilyIsFound(t *testing.T) {
	row := func(h *verify.History, key string) *verify.Row {
		return &h.Rows[slices.IndexFunc(h.Rows, func(r verify.Row) bool { return r.Key == key })]
	}
	drop := func(h *verify.History, key string, alsoRow bool) {
		h.Runs = slices.DeleteFunc(h.Runs, func(r verify.Run) bool { return r.Key == key })
		if alsoRow {
			h.Rows = slices.DeleteFunc(h.Rows, func(r verify.Row) bool { return r.Key == key })
		}
	}
	for name, c := range map[string]struct {
		change func(h *verify.History)
		want   verify.Kind
	}{
		"a shard is not there":     {func(h *verify.History) { drop(h, "p5-shard1", true) }, verify.Missed},
		"a shard that did not run": {func(h *verify.History) { drop(h, "p5-shard1", false) }, verify.FalseResult},
		"a shard started twice":    {func(h *verify.History) { h.Runs = append(h.Runs, twice(h, "p5-shard1")) }, verify.Double},
		"two rows of a shard": {func(h *verify.History) {
			twin := *row(h, "p5-shard1")
			twin.Key = "twin"
			h.Rows = append(h.Rows, twin)
		}, verify.Double},
		"succeeded with a bad shard": {func(h *verify.History) {
			*row(h, "p5-shard1") = badShard(*row(h, "p5-shard1"))
			drop(h, "p5-shard1", false)
		}, verify.FalseResult},
		"ended before its shard":       {func(h *verify.History) { r := row(h, "p5-shard1"); r.State, r.FinishedAt = "running", 0 }, verify.FalseResult},
		"failed though all succeeded":  {func(h *verify.History) { r := row(h, "p5"); r.State, r.Reason = "failed", "shards_failed" }, verify.FalseResult},
		"beside the fire before it":    {func(h *verify.History) { overlap(h) }, verify.Overlap},
		"a run by hand without shards": {func(h *verify.History) { drop(h, "asked-shard2", true) }, verify.Missed},
	} {
		t.Run(name, func(t *testing.T) {
			h := shardWorld()
			c.change(h)
			r := check(t, h)
			require.Positive(t, r.Counts[c.want], "%v", r.Examples)
		})
	}
}

func twice(h *verify.History, key string) verify.Run {
	r := h.Runs[slices.IndexFunc(h.Runs, func(r verify.Run) bool { return r.Key == key })]
	r.Start += 1000
	return r
}

func badShard(r verify.Row) verify.Row {
	r.State, r.Reason = "missed", "instance_gone"
	return r
}

// overlap lets a shard of the fifth fire run into the sixth.
func overlap(h *verify.History) {
	for i := range h.Runs {
		if h.Runs[i].Key == "p5-shard1" {
			h.Runs[i].End += verify.Span(9 * time.Second)
		}
	}
	for i := range h.Rows {
		if k := h.Rows[i].Key; k == "p5-shard1" || k == "p5" {
			h.Rows[i].FinishedAt += verify.Span(9 * time.Second)
		}
	}
}
