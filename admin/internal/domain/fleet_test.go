package domain

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// An instance is lost if it said nothing of its end and nothing of its name came after it.
func TestLostOf(t *testing.T) {
	t.Parallel()
	gone := []Instance{
		{ID: 9, Executor: 1, Name: "a", GoneReason: LeaseRanOut},
		{ID: 8, Executor: 1, Name: "b", GoneReason: LeaseRanOut},
		{ID: 7, Executor: 1, Name: "c", GoneReason: "stopped"},
		{ID: 6, Executor: 1, Name: "d", GoneReason: LeaseRanOut, Draining: true},
		{ID: 5, Executor: 1, Name: "a", GoneReason: LeaseRanOut},
		{ID: 4, Executor: 2, Name: "b", GoneReason: LeaseRanOut},
	}
	ids := func(list []Instance) (out []InstanceID) {
		for _, i := range list {
			out = append(out, i.ID)
		}
		return out
	}
	lost, others := LostOf(gone, []Instance{{ID: 10, Executor: 1, Name: "b"}, {ID: 11, Executor: 1, Name: "e"}})
	require.Equal(t, []InstanceID{9, 4}, ids(lost))
	require.Equal(t, []InstanceID{8, 7, 6, 5}, ids(others))
}
