package main

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func benchOf(o Options) *bench {
	o.Say = func(string, ...any) {}
	return &bench{o: o, report: &Report{}}
}

func named(variant string, run func(context.Context, *Result) error) part {
	return part{result: Result{Scenario: "s", Variant: variant}, usual: time.Second, run: run}
}

// What fails or takes too long costs its own figures, not those of the rest;
// the report is saved after each part.
func TestPartsFailAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var saved []int
		b := benchOf(Options{Budget: time.Minute, Save: func(r *Report) error {
			saved = append(saved, len(r.Results))
			return nil
		}})
		err := b.runAll(t.Context(), []planned{{parts: []part{
			named("broken", func(context.Context, *Result) error { return errors.New("no luck") }),
			named("endless", func(ctx context.Context, _ *Result) error { return pause(ctx, time.Hour) }),
			named("good", func(_ context.Context, r *Result) error { r.Jobs = 7; return nil }),
		}}})
		require.NoError(t, err)
		require.Equal(t, []int{1, 2, 3}, saved)
		require.Equal(t, "no luck", b.report.Results[0].Failed)
		require.Contains(t, b.report.Results[1].Failed, ErrBudget.Error())
		require.Empty(t, b.report.Results[2].Failed)
		require.Equal(t, 7, b.report.Results[2].Jobs)
		require.Error(t, b.report.Err())
	})
}

func TestAnInterruptionEndsTheRunAndKeepsWhatThereIs(t *testing.T) {
	stopped := errors.New("ctrl-c")
	ctx, cancel := context.WithCancelCause(t.Context())
	saved := 0
	b := benchOf(Options{Save: func(*Report) error { saved++; return nil }})
	err := b.runAll(ctx, []planned{{parts: []part{
		named("first", func(context.Context, *Result) error { return nil }),
		named("second", func(ctx context.Context, _ *Result) error { cancel(stopped); return pause(ctx, time.Hour) }),
		named("third", func(context.Context, *Result) error { panic("after the end") }),
	}}})
	require.ErrorIs(t, err, stopped)
	require.Len(t, b.report.Results, 2)
	require.Equal(t, 2, saved)
}

// The lengths of whole runs are a promise of docs/dev/bench.md.
func TestHowLongARunTakes(t *testing.T) {
	for _, c := range []struct {
		name  string
		quick bool
		limit time.Duration
	}{{"whole", false, 115 * time.Minute}, {"quick", true, 6 * time.Minute}} {
		t.Run(c.name, func(t *testing.T) {
			b := benchOf(Options{Quick: c.quick, Databases: []string{MySQL, SQLite}})
			var sum time.Duration
			chosen, err := b.o.chosenScenarios()
			require.NoError(t, err)
			for _, s := range chosen {
				for _, p := range s.parts(b) {
					require.Positive(t, p.usual, p.result.Scenario)
					require.Greater(t, b.budgetOf(p), p.usual)
					sum += p.usual
				}
			}
			require.LessOrEqual(t, sum, c.limit)
		})
	}
}

func TestGoals(t *testing.T) {
	rate := func(db, variant string, perSecond, percent float64) Result {
		return Result{Scenario: "throughput", Variant: variant, Database: db, Throughput: &Throughput{PerSecond: perSecond, FloorPercent: percent}}
	}
	steady := func(p50, p99, core float64) Result {
		return Result{Scenario: "steady", Lateness: &Spread{P50: p50, P99: p99, Max: 100}, Processes: []Process{{Name: "executor-1", Core: 90}, {Name: "admin-1", Core: core}}}
	}
	base := Result{Scenario: "scale", Variant: "no finished runs, throughput", Throughput: &Throughput{PerSecond: 10_000}}
	rows := func(perSecond float64) Result {
		return Result{Scenario: "scale", Variant: "10000000 finished runs, throughput", Rows: 10_000_000, Throughput: &Throughput{PerSecond: perSecond}}
	}
	idleSessions := func(alone, used int64) Result {
		return Result{Scenario: "sessions", Variant: "5000 idle instances", Processes: []Process{{Name: "admin-1", Core: 5, RSS: used, Alone: alone}}}
	}
	overloaded := func(percent float64, again Seconds) Result {
		return Result{Scenario: "overload", Throughput: &Throughput{FloorPercent: percent}, Overload: &Overload{OnTimeAgain: again}}
	}
	for _, c := range []struct {
		name    string
		result  Result
		reached int
	}{
		{"too slow", rate(MySQL, "at most once", 7999, 80), 0},
		{"fast", rate(MySQL, "at most once", 8000, 10), 1},
		{"very fast", rate(MySQL, "at most once", 15_000, 10), 2},
		{"far from the floor", rate(MySQL, "idempotent", 13_000, 34), 0},
		{"near the floor", rate(MySQL, "idempotent", 21_000, 51), 2},
		{"embedded", rate(SQLite, "at most once", 5000, 10), 1},
		{"on time", steady(8, 25, 40), 1},
		{"late", steady(8, 26, 40), 0},
		{"dear", steady(1, 2, 41), 0},
		{"on time, all of them", steady(1, 10, 40), 2},
		{"burst", Result{Scenario: "burst", Jobs: 5000, Lateness: &Spread{P99: 600}}, 1},
		{"edges", Result{Scenario: "edges", Jobs: 1000, Lateness: &Spread{P99: 150}}, 1},
		{"overload", overloaded(90, 60), 1},
		{"overload, little done", overloaded(89, 5), 0},
		{"overload, never well again", overloaded(99, -1), 0},
		{"overload, at once", overloaded(95, 10), 2},
		{"idle", Result{Scenario: "idle", Jobs: 1_000_000, Processes: []Process{{Name: "admin-1", Core: 15, RSS: 501 << 20}}}, 0},
		{"idle sessions", idleSessions(93<<20, 331<<20), 1},
		{"idle sessions, too much", idleSessions(93<<20, 332<<20), 0},
		{"stopped in time", Result{Scenario: "cancel", Elapsed: &Spread{P99: 200, Max: 999}}, 1},
		{"stopped late", Result{Scenario: "cancel", Elapsed: &Spread{P99: 20, Max: 1001}}, 0},
		{"pages", Result{Scenario: "scale", Rows: 10_000_000, Elapsed: &Spread{P99: 50}}, 1},
		{"slow pages", Result{Scenario: "scale", Rows: 10_000_000, Elapsed: &Spread{P99: 51}}, 0},
		{"told", Result{Scenario: "alert-latency", Elapsed: &Spread{P99: 1900, Max: 2000}}, 1},
		{"told late", Result{Scenario: "alert-latency", Elapsed: &Spread{P99: 1000, Max: 2001}}, 0},
		{"taken over", Result{Scenario: "timers-failover", Lateness: &Spread{P99: 4000, Max: 5000}}, 1},
		{"taken over late", Result{Scenario: "timers-failover", Lateness: &Spread{P99: 20, Max: 5001}}, 0},
		{"full table", rows(9000), 1},
		{"full table, slow", rows(8900), 0},
		{"full table, faster", rows(11_000), 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := &Report{Results: []Result{base, c.result}}
			goal, ok := r.GoalOf(&r.Results[1])
			require.True(t, ok)
			require.Equal(t, c.reached, goal.Reached())
		})
	}
	failed := rate(MySQL, "at most once", 20_000, 90)
	failed.Failed = "1 doubled"
	_, ok := (&Report{}).GoalOf(&failed)
	require.False(t, ok, "a figure that broke a promise is none")
}
