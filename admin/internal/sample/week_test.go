package sample

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// shop has a job of each story. Each fires every 5 minutes, or as schedules say.
func shop(schedules map[string]domain.ScheduleSpec) (jobs []store.JobView) {
	for i, name := range Jobs() {
		schedule, ok := schedules[name]
		if !ok {
			schedule = domain.ScheduleSpec{Kind: domain.ScheduleCron, Expr: "*/5 * * * *", Zone: "UTC"}
		}
		jobs = append(jobs, store.JobView{ExecutorName: "shop", Job: domain.Job{
			ID: domain.JobID(i + 1), Executor: 7,
			Spec: domain.JobSpec{Name: name, Schedule: schedule, OnLost: domain.OnLostRetry, Retry: domain.Retry{MaxAttempts: 2, Delay: time.Second}},
		}})
	}
	return jobs
}

func (h *History) of(job domain.JobID) (runs []store.ImportedRun) {
	return slices.Collect(func(yield func(store.ImportedRun) bool) {
		for _, r := range h.Runs {
			if r.JobID == job && !yield(r) {
				return
			}
		}
	})
}

func idOf(name string) domain.JobID { return domain.JobID(slices.Index(Jobs(), name) + 1) }

// TestAWeekTellsItsStories: the same week twice, in order and marked, with a job that is broken, a
// job that becomes slow, failures that a retry mends, and an instance that dies with its runs.
func TestAWeekTellsItsStories(t *testing.T) {
	until := time.Date(2026, 11, 30, 12, 3, 0, 0, time.UTC)
	h := Week(shop(nil), until)
	require.Equal(t, h, Week(shop(nil), until))
	require.True(t, slices.IsSortedFunc(h.Runs, func(a, b store.ImportedRun) int { return int(a.ID - b.ID) }))
	ends := map[domain.JobID]time.Time{}
	for _, r := range h.Runs {
		require.Equal(t, []any{domain.CauseImport, Mark}, []any{r.Cause, r.RequestedBy})
		require.True(t, r.State.Terminal())
		require.True(t, domain.Imported(int64(r.ID)))
		require.WithinDuration(t, r.PlannedAt, domain.IDTime(int64(r.ID)), 100*time.Millisecond)
		require.True(t, r.FinishedAt.Before(until) && !r.FireAt.Before(until.Add(-Length)))
		require.False(t, r.GrantedAt.Before(ends[r.JobID]), "runs of a job overlap")
		ends[r.JobID] = r.FinishedAt
	}

	payouts := h.of(idOf("payout-file"))
	for _, r := range payouts {
		require.Equal(t, r.FireAt.After(until.Add(-23*time.Hour)), r.State == domain.Failed, "payout of %s", r.FireAt)
	}
	median := func(runs []store.ImportedRun) time.Duration {
		took := domain.Collect(runs, func(r *store.ImportedRun) time.Duration { return r.Took })
		slices.Sort(took)
		return took[len(took)*95/100]
	}
	slow := h.of(idOf("search-index"))
	require.Greater(t, median(slow[len(slow)-288:]), 2*median(slow[:288])*9/10)
	require.True(t, slices.ContainsFunc(h.of(idOf("sync-inventory")), func(r store.ImportedRun) bool {
		return r.State == domain.Succeeded && len(r.Earlier) == 1 && r.Earlier[0].Error != ""
	}))

	dead := h.Instances[slices.IndexFunc(h.Instances, func(i domain.Instance) bool { return i.GoneReason == domain.LeaseRanOut })]
	lost := 0
	for _, r := range h.Runs {
		for _, a := range r.Earlier {
			if a.State == domain.Lost {
				require.Equal(t, []any{dead.ID, domain.ReasonLeaseExpired}, []any{a.Instance, a.Reason})
				lost++
			}
		}
		if r.GrantedAt.After(dead.GoneAt) {
			require.NotEqual(t, dead.ID, r.Instance)
		}
	}
	require.Positive(t, lost)
}

// TestAWeekHasItsClockChange: fire times are those of the schedules, so that the day of the change
// has the run of 02:30 at 03:00, and no run of an hour that does not exist.
func TestAWeekHasItsClockChange(t *testing.T) {
	until := time.Date(2026, 3, 31, 12, 0, 0, 0, time.UTC) // Europe/Berlin changes on 29 March
	berlin := domain.ScheduleSpec{Kind: domain.ScheduleCron, Expr: "30 2 * * *", Zone: "Europe/Berlin"}
	h := Week(shop(map[string]domain.ScheduleSpec{"search-rebuild": berlin}), until)
	var fires []string
	zone, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	for _, r := range h.of(idOf("search-rebuild")) {
		fires = append(fires, r.FireAt.In(zone).Format("02 15:04 -0700"))
	}
	require.Equal(t, []string{
		"25 02:30 +0100", "26 02:30 +0100", "27 02:30 +0100", "28 02:30 +0100", "29 03:00 +0200", "30 02:30 +0200", "31 02:30 +0200",
	}, fires)
}
