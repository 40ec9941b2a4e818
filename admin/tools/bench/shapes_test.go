package main

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/benchdata"
	"github.com/carillon-sched/carillon/admin/verify"
)

// TestShapeJudgement has a row for each breach of the invariant, and rows without a breach.
func TestShapeJudgement(t *testing.T) {
	base := time.UnixMilli(1_800_000_000_000).UTC()
	at := func(seconds float64) time.Time { return base.Add(time.Duration(seconds * float64(time.Second))) }
	// Job 1 fires once a second for 100 s, and job 2, one of few, at 50 s. Each run starts
	// 100 ms late.
	world := func() (*observed, []due, *watch) {
		o := &observed{starts: map[domain.ExecutionID][]verify.Time{}}
		add := func(id int64, job domain.JobID, second float64) {
			r := benchdata.MeasuredRun{ID: domain.ExecutionID(id), Job: job, State: domain.Succeeded, FireAt: at(second), NotBefore: at(second), FinishedAt: at(second + 0.2)}
			o.rows = append(o.rows, r)
			o.starts[r.ID] = []verify.Time{verify.At(at(second + 0.1))}
		}
		for i := range 100 {
			add(int64(1000+i), 1, float64(i))
		}
		add(2000, 2, 50)
		w := &watch{}
		for i := range 120 {
			w.samples = append(w.samples, sample{at: at(float64(i)), free: 8})
		}
		return o, []due{
			{jobs: []domain.JobID{1}, from: base, times: 100, every: time.Second},
			{flow: flow{few: true}, jobs: []domain.JobID{2}, from: at(50), times: 1, every: time.Hour},
		}, w
	}
	ended := func(o *observed, i int, state domain.State, reason domain.Reason) {
		o.rows[i].State, o.rows[i].Reason, o.rows[i].FinishedAt = state, reason, o.rows[i].FireAt.Add(10*time.Second)
		delete(o.starts, o.rows[i].ID)
	}
	for name, c := range map[string]struct {
		change func(*observed, []due, *watch)
		want   string // part of the error; empty = the invariant holds
	}{
		"all is well":                {func(*observed, []due, *watch) {}, ""},
		"a fire time without a row":  {func(o *observed, _ []due, _ *watch) { o.rows = o.rows[1:]; delete(o.starts, 1000) }, "1 fire times have no row"},
		"a second start":             {func(o *observed, _ []due, _ *watch) { o.starts[1001] = append(o.starts[1001], o.starts[1001][0]+1) }, "1 doubled"},
		"an early start":             {func(o *observed, _ []due, _ *watch) { o.starts[1001][0] = verify.At(at(0.999)) }, "1 early"},
		"missed by the policy":       {func(o *observed, _ []due, _ *watch) { ended(o, 3, domain.Missed, domain.ReasonMisfire) }, ""},
		"missed without a reason":    {func(o *observed, _ []due, _ *watch) { ended(o, 3, domain.Missed, "") }, "1 runs were not started and have no reason"},
		"discarded without a reason": {func(o *observed, _ []due, _ *watch) { ended(o, 3, domain.Discarded, "") }, "1 runs were not started and have no reason"},
		"no executor beside slots":   {func(o *observed, _ []due, _ *watch) { ended(o, 3, domain.Missed, domain.ReasonNoExecutor) }, "1 runs have the reason no_executor"},
		"no executor, slots were full once": {func(o *observed, _ []due, w *watch) {
			ended(o, 3, domain.Missed, domain.ReasonNoExecutor)
			w.samples[7].free = 0
		}, ""},
		"no executor, planned after the slots were full": {func(o *observed, _ []due, w *watch) {
			ended(o, 3, domain.Missed, domain.ReasonNoExecutor)
			o.rows[3].PlannedAt, w.samples[5].free = at(6), 0
		}, "1 runs have the reason no_executor"},
		"a run stood beside a slot": {func(_ *observed, _ []due, w *watch) { w.samples[9].oldest = 5500 * time.Millisecond }, "5.5 s, seen at 08:00:09"},
		"the database was away": {func(_ *observed, _ []due, w *watch) {
			w.samples[9].oldest = 7 * time.Second
			w.sick = []span{{at(0), at(2)}}
		}, ""},
		"the database had been away": {func(_ *observed, _ []due, w *watch) {
			w.samples[12].oldest = 7 * time.Second
			w.sick = []span{{at(0), at(2)}}
		}, "7.0 s, seen at 08:00:12"},
		"few wait for a tenth of the many": {func(o *observed, _ []due, _ *watch) { o.starts[2000][0] = verify.At(at(59.5)) }, ""},
		"few wait for more of the many":    {func(o *observed, _ []due, _ *watch) { o.starts[2000][0] = verify.At(at(61.5)) }, "1 runs of few jobs waited"},
		"a start without a row":            {func(o *observed, _ []due, _ *watch) { o.starts[5] = o.starts[1000] }, "1 starts without a row"},
		"a parent has no start": {func(o *observed, _ []due, _ *watch) {
			delete(o.starts, 1004)
			o.rows[4].Shards = 1
		}, ""},
		"a part is no fire time": {func(o *observed, _ []due, _ *watch) { o.rows[4].Parent = 1 }, "1 fire times have no row"},
		"timers": {func(o *observed, d []due, _ *watch) {
			d[1] = due{flow: flow{timers: true}, from: at(50), times: 2}
		}, "1 fire times have no row"},
	} {
		t.Run(name, func(t *testing.T) {
			o, want, w := world()
			c.change(o, want, w)
			s := &Shape{}
			fires, _ := o.judgeShape(want, w, s)
			err := errors.Join(s.broken(), fires.unsound())
			if c.want == "" {
				require.NoError(t, err)
				require.Equal(t, 101, fires.Expected)
			} else {
				require.ErrorContains(t, err, c.want)
			}
		})
	}
}

// TestShapesToPlay checks the shapes of a quick run and of SQLite, which has no server to break.
func TestShapesToPlay(t *testing.T) {
	names := func(o Options) (list []string) {
		for _, p := range benchOf(o).shapes() {
			list = append(list, p.result.Variant)
		}
		return list
	}
	all, quick := names(Options{Databases: []string{MySQL}, Admins: []int{1}}), names(Options{Databases: []string{MySQL}, Quick: true})
	require.Len(t, all, len(shapeTable()))
	require.Len(t, quick, len(all)-1, "without the ten minutes")
	require.Len(t, names(Options{Databases: []string{MySQL}}), 2*len(all), "with one and with two nodes")
	for _, name := range names(Options{Databases: []string{SQLite}}) {
		require.NotContains(t, name, "the database")
		require.NotContains(t, name, "node joins")
	}
	_, err := (&Options{Shapes: []string{"square"}}).chosenShapes()
	require.ErrorContains(t, err, `unknown shape "square": use timers-burst, `)
	require.Equal(t, []int{20_000, 100_000, 50_000}, []int{flow{n: 100_000, quick: 20_000}.count(true, 1), flow{n: 100_000, quick: 20_000}.count(false, 1), flow{n: 100_000}.count(true, 0.5)})
}

// TestShapesAreAskedFor checks that a run without names of scenarios plays no shapes.
func TestShapesAreAskedFor(t *testing.T) {
	has := func(o Options) bool {
		list, err := o.chosenScenarios()
		require.NoError(t, err)
		return slices.ContainsFunc(list, func(s scenario) bool { return s.name == "shapes" })
	}
	require.False(t, has(Options{}))
	require.False(t, has(Options{Quick: true}))
	require.True(t, has(Options{Scenarios: []string{"shapes"}, Quick: true}))
}

// TestRestOfRuns checks which runs may wait for longer than settleLimit.
func TestRestOfRuns(t *testing.T) {
	for name, want := range map[string]bool{
		"due waiting_for_slot": true, "due waiting_for_limit": true, "due maintenance": true, "running": true, "offered": true,
		"due waiting_for_instance": false, "due": false,
	} {
		require.Equal(t, want, rightly(map[string]int{"running": 1, name: 3}), name)
	}
}
