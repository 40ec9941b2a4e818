package pending_test

import (
	"cmp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/carillon-sched/carillon/admin/bench/contender"
	"github.com/carillon-sched/carillon/admin/internal/scheduler/pending"
)

const ms = 1_000_000

// queues are the structures under test, made at an instant.
var queues = map[string]func(now int64) pending.Queue[int]{
	"wheel": func(now int64) pending.Queue[int] { return pending.NewWheel[int](now) },
	"heap":  func(int64) pending.Queue[int] { return &contender.Heap[int]{} },
}

// modelled is a value that the model holds.
type modelled struct {
	at     int64
	value  int
	handle pending.Handle
	late   bool // added when its instant had passed
}

// A queue is what a sorted list would be: whatever is added, cancelled and
// taken out, at whatever pace, with a clock that sometimes steps back.
func TestQueuesAreSortedLists(t *testing.T) {
	for name, open := range queues {
		t.Run(name, func(t *testing.T) { rapid.Check(t, func(t *rapid.T) { checkQueue(t, open) }) })
	}
}

func checkQueue(t *rapid.T, open func(int64) pending.Queue[int]) {
	now := rapid.Int64Range(0, 1<<60).Draw(t, "now")
	horizon := now // how far the clock has ever come
	q := open(now)
	var held []modelled
	var gone []pending.Handle
	next := 0
	// Spans of every level of the wheel, and beyond; instants are no whole milliseconds.
	span := rapid.SampledFrom([]int64{ms, 300 * ms, 70_000 * ms, 20_000_000 * ms, 1 << 53})
	t.Repeat(map[string]func(*rapid.T){
		"add": func(t *rapid.T) {
			for range rapid.IntRange(1, 20).Draw(t, "n") {
				s := span.Draw(t, "span")
				at := max(0, now+rapid.Int64Range(-s/4, s).Draw(t, "at"))
				held = append(held, modelled{at, next, q.Add(at, next), at <= horizon})
				next++
			}
		},
		"cancel": func(t *rapid.T) {
			if len(held) == 0 {
				return
			}
			i := rapid.IntRange(0, len(held)-1).Draw(t, "which")
			require.True(t, q.Cancel(held[i].handle))
			gone = append(gone, held[i].handle)
			held = slices.Delete(held, i, i+1)
		},
		"cancel what has gone": func(t *rapid.T) {
			require.False(t, q.Cancel(0))
			if len(gone) > 0 {
				require.False(t, q.Cancel(rapid.SampledFrom(gone).Draw(t, "which")))
			}
		},
		"pop": func(t *rapid.T) {
			now += rapid.Int64Range(0, span.Draw(t, "span")).Draw(t, "step")
			held, gone = popDue(t, q, now, horizon, held, gone)
			horizon = max(horizon, now)
		},
		"step back": func(t *rapid.T) {
			now = max(0, now-rapid.Int64Range(0, span.Draw(t, "span")).Draw(t, "step"))
			held, gone = popDue(t, q, now, horizon, held, gone)
		},
		"": func(t *rapid.T) {
			require.Equal(t, len(held), q.Len())
			at, ok := q.Next()
			require.Equal(t, len(held) > 0, ok)
			for _, h := range held {
				require.LessOrEqual(t, at, roundUp(h.at), "nothing is due before Next")
			}
		},
	})
}

// roundUp: the wheel may be asked for a value at the end of its millisecond.
func roundUp(at int64) int64 { return (at + ms - 1) / ms * ms }

func popDue(t *rapid.T, q pending.Queue[int], now, horizon int64, held []modelled, gone []pending.Handle) ([]modelled, []pending.Handle) {
	byValue := map[int]modelled{}
	for _, h := range held {
		byValue[h.value] = h
	}
	last := int64(-1)
	for _, value := range q.PopDue(now, nil) {
		h, ok := byValue[value]
		require.True(t, ok, "value %d is not held", value)
		require.LessOrEqual(t, h.at, now, "never early")
		if !h.late && now >= horizon {
			require.GreaterOrEqual(t, roundUp(h.at), last, "in order")
			last = roundUp(h.at)
		}
		gone = append(gone, h.handle)
		delete(byValue, value)
	}
	held = held[:0]
	for _, h := range byValue {
		require.Greater(t, roundUp(h.at), now/ms*ms, "what is due comes out")
		held = append(held, h)
	}
	slices.SortFunc(held, func(a, b modelled) int { return cmp.Compare(a.value, b.value) })
	return held, gone
}

// Next says when a look is worth while: asking only then misses nothing, and
// finds values in the millisecond that they are due in.
func TestLookingAtNextOnlyFindsAllInTime(t *testing.T) {
	for name, open := range queues {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				now := rapid.Int64Range(0, 1<<59).Draw(t, "now")
				q := open(now)
				want := rapid.SliceOfN(rapid.Int64Range(0, 100_000_000*ms), 1, 50).Draw(t, "in")
				at := map[int]int64{}
				for i, in := range want {
					at[i] = roundUp(now + in)
					q.Add(at[i], i)
				}
				looks := 0
				for q.Len() > 0 {
					next, ok := q.Next()
					require.True(t, ok)
					now = max(now, next)
					for _, i := range q.PopDue(now, nil) {
						require.LessOrEqual(t, now-at[i], int64(ms))
						delete(at, i)
					}
					looks++
				}
				require.Empty(t, at)
				require.LessOrEqual(t, looks, 6*len(want), "a few cascades a value at most")
			})
		})
	}
}

func TestAnEmptiedWheelKeepsLittleAndKnowsNoOldHandle(t *testing.T) {
	w := pending.NewWheel[[100]int](0)
	var handles []pending.Handle
	for round := range 3 {
		handles = handles[:0]
		for i := range 100_000 {
			handles = append(handles, w.Add(int64(round*1000+i%900)*ms, [100]int{}))
		}
		require.Len(t, w.PopDue(int64(round*1000+900)*ms, nil), 100_000)
		for i := range 100 {
			w.Add(int64(round*1000+950)*ms, [100]int{i})
		}
		for _, h := range handles {
			require.False(t, w.Cancel(h))
		}
		require.Equal(t, 100, w.Len())
		require.Len(t, w.PopDue(int64(round*1000+960)*ms, nil), 100)
	}
}
