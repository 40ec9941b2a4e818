package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/internal/testenv/lab"
)

func TestTheTableSaysWhatCouldNotBeRun(t *testing.T) {
	results := []result{
		{ID: "F01", Title: "kill", Verdict: passed, Injected: 200, Targets: 1000, Figure: "max 6 s", Over: []string{"max 6 s, goal 5"}},
		{ID: "F13", Title: "blackhole", Verdict: unable, Reason: "it takes root"},
		{ID: "F19", Title: "crash", Verdict: failed, Reason: "1 missed", Targets: 10, Missed: 1, Seconds: 20, Stalls: &lab.Stalls{Disk: 1266, Processor: 44}},
	}
	var out bytes.Buffer
	printTable(&out, results)
	require.Contains(t, out.String(), "1 pass, 1 fail, 1 unable")
	require.Regexp(t, `F01 .* pass, over goal +0 +max 6 s\n`, out.String())
	require.Regexp(t, `F19 .* FAIL +20 +1266/44 `, out.String())
	require.Contains(t, out.String(), "F01 over its goal: max 6 s, goal 5\n")
	require.Contains(t, out.String(), "F13 unable (blackhole)\n  it takes root\n")
	require.Regexp(t, `all +200 +1010 +1 +0 `, out.String())
	require.Regexp(t, `\n1 passed, 1 failed\n$`, out.String(), "what CI counts")
	require.Contains(t, markdown(results), "| F13 | blackhole | 0 | 0 | 0 | 0 | unable | it takes root |\n")
	require.EqualError(t, conclude(&settings{dir: "x"}, false, results), "F19 failed (logs and histories in x)")
	require.NoError(t, conclude(&settings{dir: "x"}, false, results[:2]))
}

func TestAFigureOverItsGoalIsNoted(t *testing.T) {
	var s stage
	s.goal("p99", 1000, 1000, "ms")
	require.Empty(t, s.result.Over)
	require.Equal(t, "pass", (&result{Verdict: passed}).judgement())
	s.goal("max", 6905.2, 5000, "ms")
	require.Equal(t, []string{"max 6905 ms, goal 5000"}, s.result.Over)
}

func TestRowsAreChosenByIdOrForCI(t *testing.T) {
	s, err := parse([]string{"--only", "f19, F01"})
	require.NoError(t, err)
	rows, err := selected(s)
	require.NoError(t, err)
	require.Equal(t, "F19", rows[0].id)
	require.Equal(t, "F01", rows[1].id)
	_, err = selected(&settings{only: []string{"F99"}})
	require.ErrorContains(t, err, "no row F99")
	_, err = parse([]string{"F01"})
	require.ErrorContains(t, err, "unexpected argument")
	all, err := selected(&settings{})
	require.NoError(t, err)
	few, err := selected(&settings{ci: true})
	require.NoError(t, err)
	require.Greater(t, len(all), len(few))
	seen := map[string]bool{}
	for _, r := range matrix() {
		require.False(t, seen[r.id], "%s twice", r.id)
		seen[r.id] = true
	}
	// docs/dev/reliability.md names these; what is missing here is not claimed.
	for _, id := range []string{"F01", "F02", "F03", "F04", "F07", "F08", "F09", "F10", "F11", "F12", "F13", "F16", "F18", "F19", "F20",
		"F21", "F22", "F23", "F24", "F25", "F26", "F27", "F32", "F33", "F34"} {
		require.True(t, seen[id], "%s is missing", id)
	}
}

func TestProblemsAreCountedWithAFewExamples(t *testing.T) {
	var p problems
	require.NoError(t, p.err())
	for i := range 5 {
		p.add("lost results", "run %d", i)
	}
	p.add("others", "x")
	require.EqualError(t, p.err(), "5 lost results, for example run 0; run 1; run 2\n1 others, for example x")
}

func TestLatenessIsSummedUp(t *testing.T) {
	require.Equal(t, lateness{}, summary(nil))
	require.Equal(t, lateness{Count: 4, P50: 3, P99: 9, Max: 9}, summary([]float64{9, 1, 3, 2}))
}
