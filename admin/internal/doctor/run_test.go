package doctor_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/doctor"
)

func look(r ...doctor.Result) func(context.Context) []doctor.Result {
	return func(context.Context) []doctor.Result { return r }
}

func statuses(r *doctor.Report) map[string]doctor.Status {
	out := map[string]doctor.Status{}
	for _, one := range r.Results {
		out[one.Check] = one.Status
	}
	return out
}

func TestAChecksNeeds(t *testing.T) {
	report := doctor.Run(t.Context(), []doctor.Check{
		{ID: "good", Look: look(doctor.Passed("here"))},
		{ID: "warned", Needs: []string{"good"}, Look: look(doctor.Passed("one"), doctor.Warn("slow", "wait", "it is slow"))},
		{ID: "bad", Needs: []string{"good", "warned"}, Look: look(doctor.Fail("gone", "bring it", "it is gone"))},
		{ID: "after bad", Needs: []string{"bad"}, Look: look(doctor.Passed("never"))},
		{ID: "after that", Needs: []string{"after bad"}, Look: look(doctor.Passed("never"))},
		{ID: "bug", Look: func(context.Context) []doctor.Result { panic("oh") }},
		{ID: "silent", Look: look()},
	})
	require.Equal(t, map[string]doctor.Status{
		"good": doctor.OK, "warned": doctor.Warning, "bad": doctor.Failed, "after bad": doctor.Skipped, "after that": doctor.Skipped,
		"bug": doctor.Failed, "silent": doctor.Failed,
	}, statuses(report))
	require.Equal(t, map[doctor.Status]int{doctor.OK: 2, doctor.Warning: 1, doctor.Failed: 3, doctor.Skipped: 2}, report.Counts)
	require.Equal(t, "it needs bad", report.Results[4].Found)
	require.Panics(t, func() { doctor.Run(t.Context(), []doctor.Check{{ID: "a", Needs: []string{"b"}}}) })
}

// Whatever hangs, and however many wait for each other, the report is in time.
func TestTheReportIsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		hangs := func(context.Context) []doctor.Result { <-release; return look(doctor.Passed("late"))(t.Context()) }
		obeys := func(ctx context.Context) []doctor.Result {
			<-ctx.Done()
			return []doctor.Result{doctor.Warn("late", "", "it says so itself")}
		}
		var checks []doctor.Check
		var needs []string
		for _, id := range []string{"a", "b", "c", "d"} {
			checks = append(checks, doctor.Check{ID: id, Needs: needs, Look: obeys})
			needs = append(needs, id)
		}
		checks = append(checks, doctor.Check{ID: "hangs", Look: hangs})
		report := doctor.Run(t.Context(), checks)
		require.LessOrEqual(t, report.Duration, doctor.Limit) // of the bubble's clock
		require.Equal(t, map[string]doctor.Status{
			"a": doctor.Warning, "b": doctor.Warning, "c": doctor.Warning, "d": doctor.Warning, "hangs": doctor.Failed,
		}, statuses(report))
		require.Equal(t, "no_answer", report.Results[4].Code)
		close(release)
		synctest.Wait()
	})
}
