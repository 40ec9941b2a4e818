package verify_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/verify"
)

func check(t require.TestingT, h *verify.History) *verify.Report {
	r, err := verify.Check(h)
	require.NoError(t, err)
	return r
}

func TestAHealthyWorldIsClean(t *testing.T) {
	for seed := range uint64(20) {
		r := check(t, newWorld(seed))
		require.Empty(t, r.Examples, "seed %d", seed)
		require.Empty(t, r.Short, "seed %d", seed)
		require.Equal(t, 0, r.ExitCode())
		require.Equal(t, r.Expected, r.Accounted)
		require.Greater(t, r.Expected, 1000)
		require.Greater(t, r.Repeats, 0)
	}
}

// An attempt that the stop of its process interrupted does not count, where
// lost ones may be repeated; one that was snoozed counts nowhere.
func TestAttemptsThatDoNotCount(t *testing.T) {
	stopped := func(r *verify.Run) { r.Stopped = true }
	snoozed := func(r *verify.Run) { r.Snoozed, r.Cancelled = true, false }
	lost := func(r *verify.Run) { r.End, r.Cancelled, r.Failed = 0, false, false }
	neither := func(*verify.Run) {}
	history := func(job string, first func(*verify.Run), attempts int) *verify.Report {
		h := newWorld(1)
		i := slices.IndexFunc(h.Rows, func(r verify.Row) bool { return r.Job == job && r.State == "succeeded" && r.Attempt == 1 })
		row := &h.Rows[i]
		last := slices.IndexFunc(h.Runs, func(r verify.Run) bool { return r.Key == row.Key })
		row.Fence, row.Attempt = int64(attempts), attempts
		begin := h.Runs[last].Start
		for n := range attempts - 1 {
			r := h.Runs[last]
			r.Start = begin + verify.Span(time.Duration(n)*10*time.Millisecond)
			r.Fence, r.Attempt, r.End, r.Cancelled, r.Failed = int64(n+1), n+1, r.Start+1000, true, true
			if n == 0 {
				first(&r)
			}
			h.Runs = append(h.Runs, r)
		}
		r := &h.Runs[last]
		r.Fence, r.Attempt = row.Fence, row.Attempt
		r.Start, r.End = r.Start+verify.Span(time.Second), r.End+verify.Span(time.Second)
		row.StartedAt, row.FinishedAt = row.StartedAt+verify.Span(time.Second), row.FinishedAt+verify.Span(time.Second)
		return check(t, h)
	}
	require.Empty(t, history("idempotent", stopped, 4).Examples, "3 are allowed, and one was interrupted")
	require.Empty(t, history("failing", snoozed, 3).Examples, "2 are allowed, and one was snoozed")
	require.Empty(t, history("idempotent", lost, 4).Examples, "3 are allowed, and one was lost")
	for name, r := range map[string]*verify.Report{
		"one was lost, two too many":   history("idempotent", lost, 5),
		"none was interrupted":         history("idempotent", neither, 4),
		"one was, and two too many":    history("idempotent", stopped, 5),
		"this job must not repeat it":  history("failing", stopped, 3),
		"one snooze, and two too many": history("failing", snoozed, 4),
	} {
		require.Len(t, r.Examples, 1, name)
		require.Equal(t, verify.Double, r.Examples[0].Kind, name)
	}
}

func BenchmarkCheck(b *testing.B) {
	h := newWorld(1)
	b.ReportMetric(float64(len(h.Runs)), "runs")
	for b.Loop() {
		check(b, h)
	}
}

func TestGuardsOnItself(t *testing.T) {
	_, err := verify.Check(&verify.History{})
	require.ErrorIs(t, err, verify.ErrNoPlan)

	for what, change := range map[string]func(h *verify.History){
		"runs":                  func(h *verify.History) { h.Plan.MinRuns = 1_000_000 },
		"faults":                func(h *verify.History) { h.Plan.MinFaults = 3 },
		"fault without its end": func(h *verify.History) { h.Faults[1].End = 0 },
		"nodes":                 func(h *verify.History) { h.Plan.MinNodes = 6 },
		"nothing expected": func(h *verify.History) {
			h.Plan.From, h.Plan.To, h.Calls = at(-10e9), at(-9e9), h.Calls[:1]
			h.Runs, h.Rows = nil, nil
		},
		"no runs": func(h *verify.History) { *h = verify.History{Plan: &verify.Plan{From: at(0), To: at(1)}} },
		"an unreadable schedule": func(h *verify.History) {
			h.Calls[0].Spec = &verify.Spec{Kind: "cron", Expr: "whenever", Blocking: "parallel"}
			only(h, h.Calls[0].Job)
		},
		"a schedule never created": func(h *verify.History) {
			h.Calls = append(h.Calls, verify.Call{Op: verify.OpPause, Job: "x", Tenant: "1", Invoke: at(0), Ack: at(1)})
		},
	} {
		t.Run(what, func(t *testing.T) {
			h := clone(newWorld(1))
			change(h)
			r := check(t, h)
			require.Empty(t, r.Examples)
			require.NotEmpty(t, r.Short)
			require.Equal(t, 2, r.ExitCode())
			require.Equal(t, verify.NotEnough, r.Verdict())
		})
	}
}

// only keeps the calls, runs and rows of one job.
func only(h *verify.History, job string) {
	h.Calls = slices.DeleteFunc(h.Calls, func(c verify.Call) bool { return c.Job != job })
	h.Runs = slices.DeleteFunc(h.Runs, func(r verify.Run) bool { return r.Job != job })
	h.Rows = slices.DeleteFunc(h.Rows, func(r verify.Row) bool { return r.Job != job })
}

func TestAViolationCountsWithoutEvidence(t *testing.T) {
	h := clone(newWorld(1))
	h.Plan.MinRuns = 1_000_000
	h.Runs = append(h.Runs, h.Runs[0])
	require.Equal(t, 1, check(t, h).ExitCode())
}

func TestTextSaysItInOneLine(t *testing.T) {
	h := clone(newWorld(1))
	h.Runs = append(h.Runs, h.Runs[0])
	var out strings.Builder
	require.NoError(t, check(t, h).WriteText(&out))
	first, rest, _ := strings.Cut(out.String(), "\n")
	require.Regexp(t, `^violation: 2,\d+ expected, 2,\d+ accounted, 0 missed, 1 double, worst late \d+\.\d+ s$`, first)
	for _, want := range []string{"discarded: overlap", "outside faults", "F04", "started a second time", "F07"} {
		require.Contains(t, rest, want)
	}
}

func TestTimelineNeedsNothingElse(t *testing.T) {
	h := clone(newWorld(1))
	h.Plan.Name = `<script>alert("x")</script>`
	h.Runs[0].Tenant = "3"
	var out strings.Builder
	require.NoError(t, check(t, h).WriteHTML(&out))
	require.NotContains(t, out.String(), "<script")
	for _, foreign := range []string{"http://", "https://", "src=", "url(", "@import"} {
		require.NotContains(t, out.String(), foreign)
	}
	require.Contains(t, out.String(), "a run in tenant 3")
	require.Greater(t, strings.Count(out.String(), "<rect"), 400)
}
