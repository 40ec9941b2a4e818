package run_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/run"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// fires puts runs of a job into the world, one for each second before now.
func (w *world) fires(job domain.JobID, cause domain.Cause, n int) (offers []store.Offer) {
	for i := range n {
		id, _ := w.NewID()
		at := w.now.Add(time.Duration(i-n) * time.Second)
		w.rows[id] = domain.Execution{ID: id, TenantID: tenant, JobID: job, Executor: executor, State: domain.Due, Cause: cause, FireAt: at, NotBefore: at, MaxAttempts: 1}
		offers = append(offers, store.Offer{Tenant: tenant, ID: id, Instance: 1})
	}
	return offers
}

// TestQueueFull: no more fires of a schedule wait than the bound, and one alert tells of the
// others.
func TestQueueFull(t *testing.T) {
	for name, row := range map[string]struct {
		spec                domain.JobSpec
		cause               domain.Cause
		waiting, discarded  int
		absent, maintenance bool
	}{
		"serial":                  {domain.JobSpec{Blocking: domain.BlockSerial, MaxWaiting: 3}, domain.CauseSchedule, 3, 2, false, false},
		"two at once":             {domain.JobSpec{Blocking: domain.BlockParallel, Parallelism: 2, MaxWaiting: 3}, domain.CauseSchedule, 3, 1, false, false},
		"any number at once":      {domain.JobSpec{Blocking: domain.BlockParallel, MaxWaiting: 1}, domain.CauseSchedule, 0, 0, false, false},
		"the default":             {domain.JobSpec{Blocking: domain.BlockSerial}, domain.CauseSchedule, 5, 0, false, false},
		"by hand":                 {domain.JobSpec{Blocking: domain.BlockSerial, MaxWaiting: 3}, domain.CauseManual, 5, 0, false, false},
		"backfill":                {domain.JobSpec{Blocking: domain.BlockSerial, MaxWaiting: 3}, domain.CauseBackfill, 5, 0, false, false},
		"no instance":             {domain.JobSpec{Blocking: domain.BlockSerial, MaxWaiting: 3}, domain.CauseSchedule, 3, 3, true, false},
		"maintenance keeps all":   {domain.JobSpec{Blocking: domain.BlockSerial, MaxWaiting: 3}, domain.CauseSchedule, 6, 0, false, true},
		"without a bound, absent": {domain.JobSpec{Blocking: domain.BlockSerial}, domain.CauseSchedule, 6, 0, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, func(int) int { return 0 })
			spec := row.spec
			spec.Handler, spec.Retry.MaxAttempts = "h", 1
			*w.jobs[1] = spec
			if row.maintenance {
				scope := domain.MaintenanceScope{Tenant: tenant}
				w.maintenance = domain.Maintenances{scope: {{MaintenanceScope: scope, Mode: domain.MaintenanceWait, Since: w.now.Add(-time.Hour), EndsAt: w.now.Add(time.Hour)}}}
			}
			offers := w.fires(1, row.cause, 6)
			b := w.batch()
			if row.absent {
				var waits []store.Wait
				for _, o := range offers {
					waits = append(waits, store.Wait{Tenant: tenant, ID: o.ID, Reason: domain.ReasonWaitInstance, For: time.Minute})
				}
				ended, err := b.Wait(waits)
				require.NoError(t, err)
				require.Len(t, ended, row.discarded)
			} else {
				_, err := b.Offer(offers)
				require.NoError(t, err)
			}
			w.save(b)
			discarded := 0
			for _, e := range w.rows {
				if e.State == domain.Discarded {
					discarded++
					require.Equal(t, domain.ReasonQueueFull, e.Reason)
					require.Greater(t, int(e.ID), row.waiting, "the newest ones")
				}
			}
			require.Equal(t, []int{row.waiting, row.discarded}, []int{len(w.queues[1]), discarded}, "waiting, discarded")
			require.Equal(t, row.discarded > 0, w.alerts[domain.PileKey(1, w.now)])
			require.LessOrEqual(t, len(b.Alerts), 1)

			// The waiting runs are offered again, and none is discarded.
			b = w.batch()
			_, err := b.Offer(offers)
			require.NoError(t, err)
			require.Empty(t, b.Alerts)
		})
	}
}

// TestPilesUp: a run takes so long while others wait.
func TestPilesUp(t *testing.T) {
	for name, row := range map[string]struct {
		spec  domain.JobSpec
		cause domain.Cause
		runs  int
		took  time.Duration
		want  string
	}{
		"longer than the interval":    {domain.JobSpec{Blocking: domain.BlockSerial}, domain.CauseSchedule, 4, 1001 * time.Millisecond, "runs take longer than the interval, 3 wait"},
		"not longer":                  {domain.JobSpec{Blocking: domain.BlockSerial}, domain.CauseSchedule, 4, time.Second, ""},
		"few wait":                    {domain.JobSpec{Blocking: domain.BlockSerial}, domain.CauseSchedule, 3, time.Hour, ""},
		"by hand":                     {domain.JobSpec{Blocking: domain.BlockSerial}, domain.CauseManual, 9, time.Hour, ""},
		"two at once":                 {domain.JobSpec{Blocking: domain.BlockParallel, Parallelism: 2}, domain.CauseSchedule, 5, 2001 * time.Millisecond, "runs take longer than the interval, 3 wait"},
		"two at once, and not longer": {domain.JobSpec{Blocking: domain.BlockParallel, Parallelism: 2}, domain.CauseSchedule, 5, 2 * time.Second, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, func(int) int { return 0 })
			spec := row.spec
			spec.Handler, spec.Retry.MaxAttempts = "h", 1
			*w.jobs[1] = spec
			offers := w.fires(1, row.cause, row.runs)
			b := w.batch()
			results, err := b.Offer(offers)
			require.NoError(t, err)
			w.save(b)
			e := results[0].Execution
			e = w.rows[e.ID]
			b = w.batch()
			_, err = b.Grant([]store.GrantRequest{{Tenant: tenant, ID: e.ID, Fence: e.Fence, Instance: 1}})
			require.NoError(t, err)
			w.save(b)
			started := w.now
			w.now = w.now.Add(row.took)
			b = w.batch()
			_, err = b.Finish([]store.AttemptReport{{Tenant: tenant, Executor: executor, Report: domain.Report{
				ExecutionID: e.ID, Fence: e.Fence, Outcome: domain.OutcomeSucceeded, StartedAt: started, Took: row.took,
			}}})
			require.NoError(t, err)
			told := ""
			for _, a := range b.Alerts {
				if a.Kind == domain.AlertRunsPileUp {
					told = a.Detail
					require.Equal(t, domain.PileKey(1, w.now), a.DedupeKey)
				}
			}
			require.Equal(t, row.want, told)
		})
	}
}

// TestARunThatDoesNotEnd sweeps the head of a queue. An alert is written if the holder of
// the slot runs on, and none if it has just begun, as after an outage.
func TestARunThatDoesNotEnd(t *testing.T) {
	for name, row := range map[string]struct {
		runs  int
		since time.Duration
		want  string
	}{
		"it goes on":            {4, 30 * time.Second, "runs take longer than the interval, 3 wait"},
		"few wait":              {3, 30 * time.Second, ""},
		"it has begun just now": {4, time.Second, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, func(int) int { return 0 })
			*w.jobs[1] = domain.JobSpec{Handler: "h", Blocking: domain.BlockSerial}
			offers := w.fires(1, domain.CauseSchedule, row.runs)
			b := w.batch()
			results, err := b.Offer(offers)
			require.NoError(t, err)
			w.save(b)
			e := w.rows[results[0].Execution.ID]
			b = w.batch()
			_, err = b.Grant([]store.GrantRequest{{Tenant: tenant, ID: e.ID, Fence: e.Fence, Instance: 1}})
			require.NoError(t, err)
			w.save(b)
			w.now = w.now.Add(run.SlotCheck)
			e = w.rows[e.ID]
			e.GrantedAt = w.now.Add(-row.since)
			w.rows[e.ID] = e
			b = w.batch()
			var ids []domain.ExecutionID
			for _, o := range offers[1:] {
				ids = append(ids, o.ID)
			}
			_, err = b.Sweep(ids, time.Second)
			require.NoError(t, err)
			told := ""
			for _, a := range b.Alerts {
				told = a.Detail
			}
			require.Equal(t, row.want, told)
			require.LessOrEqual(t, len(b.Alerts), 1)
		})
	}
}
