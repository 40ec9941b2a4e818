package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// testRefusals has the table for itself.
func testRefusals(t *testing.T, f *fixture) {
	at := time.UnixMilli(1800000000000).UTC()
	shop := domain.Refusal{
		Code: "bad_token", Message: "no", Remote: "192.0.2.7", Executor: "shop", Instance: "a", Node: "one", Times: 3, FirstAt: at, LastAt: at.Add(time.Minute),
	}
	late := domain.Refusal{Code: "flood", Remote: "192.0.2.7", Times: 1, FirstAt: at.Add(time.Hour), LastAt: at.Add(time.Hour)}
	f.ok(f.s.NoteRefusals(f.ctx, nil, 10))
	f.ok(f.s.NoteRefusals(f.ctx, []domain.Refusal{shop, late}, 10))
	list := func() []domain.Refusal {
		list, err := f.s.ListRefusals(f.ctx, 1000)
		f.ok(err)
		return list
	}
	require.Equal(t, []domain.Refusal{late, shop}, list())

	// Another node has seen it, too, earlier and later; its clock may be behind.
	again := shop
	again.Node, again.Message, again.FirstAt, again.LastAt = "two", "no again", at.Add(2*time.Minute), at.Add(2*time.Minute)
	f.ok(f.s.NoteRefusals(f.ctx, []domain.Refusal{again}, 10))
	again.LastAt = at
	f.ok(f.s.NoteRefusals(f.ctx, []domain.Refusal{again}, 10))
	want := shop
	want.Node, want.Message, want.Times, want.LastAt = "two", "no again", 9, at.Add(2*time.Minute)
	require.Equal(t, []domain.Refusal{late, want}, list())

	// All that nodes note at once is counted.
	race(4, func(node int) {
		one := shop
		one.Instance, one.Times, one.FirstAt, one.LastAt = "raced", 1, at.Add(2*time.Hour), at.Add(2*time.Hour)
		other := one
		other.Instance = fmt.Sprint("of ", node)
		if err := f.s.NoteRefusals(f.ctx, []domain.Refusal{one, other}, 10); err != nil {
			t.Errorf("note: %v", err)
		}
	})
	times := map[string]int{}
	for _, r := range list() {
		times[r.Instance] += r.Times
	}
	require.Equal(t, map[string]int{"": 1, "a": 9, "raced": 4, "of 0": 1, "of 1": 1, "of 2": 1, "of 3": 1}, times)

	// The bound: those whose last time is longest ago go.
	f.ok(f.s.NoteRefusals(f.ctx, []domain.Refusal{{Code: "denied", Times: 1, FirstAt: at.Add(3 * time.Hour), LastAt: at.Add(3 * time.Hour)}}, 6))
	got := list()
	require.Len(t, got, 6)
	require.Equal(t, "denied", got[0].Code)
	for _, r := range got {
		require.NotContains(t, []domain.Refusal{want, late}, r)
	}
	short, err := f.s.ListRefusals(f.ctx, 2)
	f.ok(err)
	require.Len(t, short, 2)
	require.Equal(t, got[0], short[0])

	n, err := f.s.DeleteRefusalsBefore(f.ctx, at.Add(3*time.Hour), 4)
	f.ok(err)
	require.EqualValues(t, 4, n)
	n, err = f.s.DeleteRefusalsBefore(f.ctx, at.Add(3*time.Hour), 4)
	f.ok(err)
	require.EqualValues(t, 1, n)
	require.Len(t, list(), 1)
	_, err = f.s.DeleteRefusalsBefore(f.ctx, at.Add(4*time.Hour), 4)
	f.ok(err)
	require.Empty(t, list())
}
