package scheduler

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestHeapReturnsWhatWasPushedInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var h heap[int64]
		var model []int64
		for _, push := range rapid.SliceOf(rapid.Bool()).Draw(t, "ops") {
			if push || len(model) == 0 {
				at := rapid.Int64Range(-5, 50).Draw(t, "at")
				h.push(at, at)
				model = append(model, at)
				continue
			}
			least := slices.Min(model)
			at, ok := h.peek()
			require.True(t, ok)
			require.Equal(t, least, at)
			require.Equal(t, least, h.pop())
			model = slices.Delete(model, slices.Index(model, least), slices.Index(model, least)+1)
		}
		slices.Sort(model)
		for _, want := range model {
			require.Equal(t, want, h.pop())
		}
		require.Zero(t, h.len())
	})
}

func BenchmarkHeapMillionPending(b *testing.B) {
	var h heap[int]
	for i := range 1_000_000 {
		h.push(rand.Int64N(1e10), i)
	}
	for b.Loop() {
		at, _ := h.peek()
		h.push(at+rand.Int64N(1e10), h.pop())
	}
}
