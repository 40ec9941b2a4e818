package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/benchdata"
	"github.com/carillon-sched/carillon/admin/verify"
)

func TestJudge(t *testing.T) {
	base := time.UnixMilli(1_800_000_000_000).UTC()
	row := func(id int64, job int64, second int) benchdata.MeasuredRun {
		at := base.Add(time.Duration(second) * time.Second)
		return benchdata.MeasuredRun{ID: domain.ExecutionID(id), Job: domain.JobID(job), State: domain.Succeeded, FireAt: at, FinishedAt: at.Add(time.Second)}
	}
	// Two jobs, four seconds; each starts 5 ms late.
	clean := func() *observed {
		o := &observed{starts: map[domain.ExecutionID][]verify.Time{}}
		for i := range 8 {
			r := row(int64(100+i), int64(i%2), i/2)
			o.rows = append(o.rows, r)
			o.starts[r.ID] = []verify.Time{verify.At(r.FireAt.Add(5 * time.Millisecond))}
		}
		return o
	}
	whole := grid{every: time.Second, from: base, to: base.Add(4 * time.Second)}
	for name, test := range map[string]struct {
		change func(*observed, *grid)
		want   Fires
		sound  bool
	}{
		"all is well":           {func(*observed, *grid) {}, Fires{Expected: 8, Rows: 8, Started: 8}, true},
		"exact number":          {func(_ *observed, g *grid) { g.exact = 8 }, Fires{Expected: 8, Rows: 8, Started: 8}, true},
		"fewer than exact":      {func(_ *observed, g *grid) { g.exact = 9 }, Fires{Expected: 9, Rows: 8, Started: 8, Missed: 1}, false},
		"gap in a job's rows":   {func(o *observed, _ *grid) { delete(o.starts, 102); o.rows = append(o.rows[:2:2], o.rows[3:]...) }, Fires{Expected: 8, Rows: 7, Started: 7, Missed: 1}, false},
		"row never started":     {func(o *observed, _ *grid) { o.rows[3].State = domain.Missed; delete(o.starts, 103) }, Fires{Expected: 8, Rows: 8, Started: 7, Missed: 1}, false},
		"succeeded, no witness": {func(o *observed, _ *grid) { delete(o.starts, 103) }, Fires{Expected: 8, Rows: 8, Started: 7, Missed: 1, Unproven: 1}, false},
		"started twice":         {func(o *observed, _ *grid) { o.starts[101] = append(o.starts[101], o.starts[101][0]+1) }, Fires{Expected: 8, Rows: 8, Started: 8, Doubled: 1}, false},
		"started early":         {func(o *observed, _ *grid) { o.starts[101][0] -= 6000 }, Fires{Expected: 8, Rows: 8, Started: 8, Early: 1}, false},
		"start without a row":   {func(o *observed, _ *grid) { o.starts[999] = o.starts[101] }, Fires{Expected: 8, Rows: 8, Started: 8, Foreign: 1}, false},
		"nothing at all":        {func(o *observed, _ *grid) { *o = observed{} }, Fires{}, false},
		"rows outside": {func(_ *observed, g *grid) { g.from, g.to = base.Add(time.Second), base.Add(3*time.Second) },
			Fires{Expected: 4, Rows: 4, Started: 4}, true},
	} {
		t.Run(name, func(t *testing.T) {
			o, g := clean(), whole
			test.change(o, &g)
			got, late := o.judge(g)
			require.Equal(t, test.want, *got)
			require.Equal(t, test.sound, got.broken() == nil, "%v", got.broken())
			if test.sound {
				require.Equal(t, &Spread{Count: got.Started, P50: 5, P99: 5, Max: 5}, late)
			}
		})
	}
	require.Equal(t, 4, clean().finishedIn(base.Add(time.Second), base.Add(3*time.Second)), "the end is not in it")
	o := clean()
	o.starts[103][0] = verify.At(base.Add(3 * time.Second))
	o.starts[104] = nil
	n, last := o.late(5 * time.Millisecond)
	require.Equal(t, []any{1, true}, []any{n, last.Equal(base.Add(3 * time.Second))})
}

func TestSpread(t *testing.T) {
	require.Nil(t, spreadOf(nil))
	var ms []float64
	for i := range 1000 {
		ms = append(ms, float64(999-i))
	}
	require.Equal(t, &Spread{Count: 1000, P50: 500, P99: 990, Max: 999}, spreadOf(ms))
	require.Equal(t, &Spread{Count: 1, P50: 7, P99: 7, Max: 7}, spreadOf([]float64{7}))
}

func TestOffsetsFillTheSecondWhateverTheirNumber(t *testing.T) {
	l := &load{}
	for _, n := range []int{10, 1000, 7777} {
		var tenths [10]int
		for i := range n {
			tenths[l.offset(i)/(100*time.Millisecond)]++
		}
		for _, got := range tenths {
			require.InDelta(t, n/10, got, 2)
		}
	}
}

func TestOnGrid(t *testing.T) {
	anchor := time.UnixMilli(1_800_000_000_000).UTC()
	require.Equal(t, anchor.Add(14*time.Second), onGrid(anchor, 7*time.Second, anchor.Add(8*time.Second)))
	require.Equal(t, anchor.Add(14*time.Second), onGrid(anchor, 7*time.Second, anchor.Add(14*time.Second)))
}

// A fleet that was stopped in its midst: what waits is no loss and as late as it
// is by then; what was given up with a reason has no lateness; a fire time
// without a row is lost as ever.
func TestUnfinished(t *testing.T) {
	base := time.UnixMilli(1_800_000_000_000).UTC()
	o := &observed{starts: map[domain.ExecutionID][]verify.Time{1: {verify.At(base.Add(5 * time.Millisecond))}}}
	for i, state := range []domain.State{domain.Succeeded, domain.Missed, domain.Due} {
		o.rows = append(o.rows, benchdata.MeasuredRun{ID: domain.ExecutionID(i + 1), Job: 7, State: state, FireAt: base.Add(time.Duration(i) * time.Second)})
	}
	g := grid{every: time.Second, from: base, to: base.Add(time.Minute)}
	stopped := base.Add(2200 * time.Millisecond)
	fires, late, told, waiting := o.unfinished(g, stopped)
	require.NoError(t, fires.broken())
	require.Equal(t, &Fires{Expected: 3, Rows: 3, Started: 1}, fires)
	require.Equal(t, &Spread{Count: 2, P50: 200, P99: 200, Max: 200}, late)
	require.Equal(t, []int{1, 1}, []int{told, waiting})

	o.rows[1].FireAt = base.Add(3 * time.Second) // none at 1 s
	fires, _, _, _ = o.unfinished(g, stopped)
	require.Equal(t, 1, fires.Missed)
	require.Error(t, fires.broken())

	o.rows[0].State, o.starts = domain.Succeeded, nil
	fires, _, _, _ = o.unfinished(g, stopped)
	require.Equal(t, 1, fires.Unproven, "what is said to have succeeded is no excuse")
}
