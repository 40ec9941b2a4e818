package timerheap

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestHeapIsASortedList: whatever is added, removed and taken out, with a clock
// that steps back too, what comes out is what a stable sort says.
func TestHeapIsASortedList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var h Heap[int]
		type held struct {
			at   int64
			item *Item[int]
		}
		var model []held
		n := 0
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				at := rapid.Int64Range(0, 50).Draw(t, "at")
				model = append(model, held{at, h.Add(at, n)})
				n++
			},
			"remove": func(t *rapid.T) {
				if len(model) == 0 {
					return
				}
				i := rapid.IntRange(0, len(model)-1).Draw(t, "which")
				h.Remove(model[i].item)
				model = slices.Delete(model, i, i+1)
			},
			"pop": func(t *rapid.T) {
				now := rapid.Int64Range(0, 60).Draw(t, "now")
				slices.SortStableFunc(model, func(a, b held) int { return int(a.at - b.at) })
				for len(model) > 0 && model[0].at <= now {
					at, value, _ := h.First()
					require.Equal(t, model[0].at, at)
					require.Equal(t, model[0].item.Value, value)
					h.Remove(model[0].item)
					model = model[1:]
				}
			},
			"": func(t *rapid.T) {
				require.Equal(t, len(model), h.Len())
				at, _, ok := h.First()
				require.Equal(t, len(model) > 0, ok)
				if ok {
					require.Equal(t, slices.MinFunc(model, func(a, b held) int { return int(a.at - b.at) }).at, at)
				}
			},
		})
	})
}
