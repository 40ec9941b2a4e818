package api

import (
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/benchdata"
	"github.com/carillon-sched/carillon/admin/internal/timing"
)

func TestExplainRun(t *testing.T) {
	w := newWorld(t)
	e := w.executor("acme", "shop")
	w.instance(e, "one", "reconcile")
	w.instance(e, "two", "another")
	job := w.job("acme", "nightly", e)
	run := into[Run](w.call("acme/operator", "POST", "/jobs/"+job.ID+"/run", nil).is(201))
	sent := w.runner.submitted[0]
	_, err := w.store.RecordWaits(t.Context(), []store.Wait{{
		Tenant: sent.TenantID, ID: sent.ID, Reason: domain.ReasonWaitInstance, Message: "all are full", For: time.Minute,
	}})
	require.NoError(t, err)
	got := into[Explanation](w.call("acme/viewer", "GET", "/runs/"+run.ID+"/explain", nil).is(200))
	require.Contains(t, got.Summary.En, "It is due and waits, because no instance could take it")
	require.Equal(t, run.ID, got.Run.ID)
	require.Equal(t, run.FireAt, got.Stamps.PlannedAt)
	require.NotNil(t, got.Stamps.ClaimedAt)
	require.Nil(t, got.Stamps.OfferedAt)
	verdicts := map[string]string{}
	for _, i := range got.Instances {
		verdicts[i.Instance.Name] = i.Verdict
	}
	require.Equal(t, map[string]string{"one": "has_room", "two": "no_handler"}, verdicts)
	require.Equal(t, "delayed:waiting_for_instance", got.Steps[len(got.Steps)-1].Code)
}

// TestExplainWaitingBehindAHandlerThatDoesNotListen: the answer names the run
// that has ended, and where its handler still runs.
func TestExplainWaitingBehindAHandlerThatDoesNotListen(t *testing.T) {
	w := newWorld(t)
	e := w.executor("acme", "shop")
	instance := w.instance(e, "one", "reconcile").ID
	job := w.job("acme", "nightly", e, with("blocking", "serial"))
	var runs []Run
	for range 2 {
		runs = append(runs, into[Run](w.call("acme/operator", "POST", "/jobs/"+job.ID+"/run", nil).is(201)))
	}
	first, second := w.runner.submitted[0], w.runner.submitted[1]
	offer := func(id domain.ExecutionID) store.OfferResult {
		got, err := w.store.OfferExecutions(t.Context(), []store.Offer{{Tenant: first.TenantID, ID: id, Node: 1, Instance: instance}})
		require.NoError(t, err)
		return got[0]
	}
	offered := offer(first.ID).Execution
	_, err := w.store.GrantOffers(t.Context(), []store.GrantRequest{{Tenant: first.TenantID, ID: first.ID, Fence: offered.Fence, Instance: instance}})
	require.NoError(t, err)
	_, err = w.store.FinishAttempts(t.Context(), []store.AttemptReport{{Tenant: first.TenantID, Executor: first.Executor, Report: domain.Report{
		ExecutionID: first.ID, Fence: offered.Fence, Outcome: domain.OutcomeTimedOut, StillRunning: true,
	}}})
	require.NoError(t, err)
	require.Equal(t, store.OfferBlocked, offer(second.ID).Status)

	ask := func(run Run) Explanation {
		return into[Explanation](w.call("acme/viewer", "GET", "/runs/"+run.ID+"/explain", nil).is(200))
	}
	require.Contains(t, ask(runs[1]).Summary.En, "run "+runs[0].ID+" before it ended as timed_out")
	require.Contains(t, ask(runs[1]).Summary.En, "but its handler still runs on instance one")
	require.True(t, ask(runs[0]).Run.Lingers)
	require.Contains(t, ask(runs[0]).Summary.En, "still runs on instance")
}

func TestExplainFire(t *testing.T) {
	w := newWorld(t)
	job := w.job("acme", "nightly", w.executor("acme", "shop"), with("schedule", map[string]any{"kind": "cron", "expr": "0 2 * * *"}))
	ask := func(at string) Explanation {
		return into[Explanation](w.call("acme/viewer", "GET", "/jobs/"+job.ID+"/explain?at="+url.QueryEscape(at), nil).is(200))
	}
	tomorrow := time.Now().UTC().Add(24 * time.Hour).Truncate(24 * time.Hour).Add(2 * time.Hour)
	ahead := ask(tomorrow.Format(time.RFC3339))
	require.Contains(t, ahead.Summary.En, "It lies ahead")
	require.Nil(t, ahead.Run)
	require.Empty(t, ahead.Steps)
	off := ask(tomorrow.Add(time.Minute).Format(time.RFC3339))
	require.Contains(t, off.Summary.En, "before it, it fires at "+tomorrow.Format("2006-01-02T15:04:05.000Z"))
	require.Equal(t, tomorrow.Format("2006-01-02T15:04:05.000Z"), *off.Before)
	require.Equal(t, tomorrow.Add(24*time.Hour).Format("2006-01-02T15:04:05.000Z"), *off.After)
	require.Contains(t, ask("2001-01-01T02:00:00Z").Summary.En, "did not exist yet")

	w.call("acme/viewer", "GET", "/jobs/"+job.ID+"/explain", nil).problem(422, "validation_failed")
	w.call("acme/viewer", "GET", "/jobs/"+job.ID+"/explain?at=yesterday", nil).problem(422, "validation_failed")
}

// TestExplainABackfilledFire: the run that a backfill made for a missed fire
// time is told beside it; without a run of the schedule it is the answer.
func TestExplainABackfilledFire(t *testing.T) {
	w := newWorld(t)
	e := w.executor("acme", "shop")
	job := w.job("acme", "daily", e, with("schedule", map[string]any{"kind": "cron", "expr": "0 2 * * *"}))
	missedAt := time.Date(2026, 3, 1, 2, 0, 0, 0, time.UTC)
	w.call("acme/operator", "POST", "/jobs/"+job.ID+"/backfill", map[string]any{"from": missedAt, "to": missedAt.Add(25 * time.Hour), "concurrency": 2}).is(201)
	got, err := w.store.DriveBackfills(t.Context(), store.DriveBackfillsParams{Limit: 10, Fires: timing.FiresBetween, NewID: w.ids.Next})
	require.NoError(t, err)
	require.Len(t, got.Runs, 2)
	missed := got.Runs[0]
	missed.ID, missed.OccurrenceKey, missed.Cause = domain.ExecutionID(w.ids.Next()), "", domain.CauseSchedule
	missed.State, missed.Reason, missed.FinishedAt, missed.WakeAt = domain.Missed, domain.ReasonMisfire, missedAt.Add(time.Hour), time.Time{}
	require.NoError(t, benchdata.LoadExecutions(t.Context(), w.store.DB, []domain.Execution{missed}))

	ask := func(at time.Time) Explanation {
		return into[Explanation](w.call("acme/viewer", "GET", "/jobs/"+job.ID+"/explain?at="+at.Format(time.RFC3339), nil).is(200))
	}
	both := ask(missedAt)
	require.Equal(t, missed.ID.String(), both.Run.ID)
	require.Equal(t, got.Runs[0].ID.String(), both.Backfill.ID)
	require.Contains(t, both.Summary.En, "It did not run, because ")
	require.Contains(t, both.Summary.En, " A backfill has run this fire time, as run "+both.Backfill.ID+": It is due and about to be sent to an instance.")
	require.Contains(t, both.Summary.Zh, "补数已运行该触发时间（运行 "+both.Backfill.ID+"）：")
	last := both.Steps[len(both.Steps)-1]
	require.Equal(t, "Backfill: An admin node wrote the run down.", last.Text.En)
	require.Equal(t, "补数：管理节点写入该次运行。", last.Text.Zh)

	alone := ask(missedAt.Add(24 * time.Hour))
	require.Equal(t, got.Runs[1].ID.String(), alone.Run.ID)
	require.Nil(t, alone.Backfill)
}

// TestExplainUnderALimit: which one, its number, and how many run.
func TestExplainUnderALimit(t *testing.T) {
	w := newWorld(t)
	e := w.executor("acme", "shop")
	w.instance(e, "one", "reconcile")
	job := w.job("acme", "nightly", e, with("blocking", "parallel"))
	w.call("acme/editor", "PUT", "/executors/"+e.ID.String()+"/limit", map[string]any{"maxRunning": 1}).is(200)
	var runs []Run
	for range 2 {
		runs = append(runs, into[Run](w.call("acme/operator", "POST", "/jobs/"+job.ID+"/run", nil).is(201)))
	}
	w.started("acme", runs[0].ID)
	second := w.runner.submitted[1]
	blocked, err := w.store.OfferExecutions(t.Context(), []store.Offer{{Tenant: second.TenantID, ID: second.ID, Node: 1, Instance: 1}})
	require.NoError(t, err)
	require.Equal(t, store.OfferBlocked, blocked[0].Status)
	got := into[Explanation](w.call("acme/viewer", "GET", "/runs/"+runs[1].ID+"/explain", nil).is(200))
	require.Equal(t, `It is due and waits, because the executor "shop" may have 1 run at once: 1 is running now, 1 waiting for room.`, got.Summary.En)
}

// TestExplainWhoWasFull: what the offer left is told.
func TestExplainWhoWasFull(t *testing.T) {
	w := newWorld(t)
	e := w.executor("acme", "shop")
	one, two := w.instance(e, "one", "reconcile").ID, w.instance(e, "two", "reconcile").ID
	job := w.job("acme", "nightly", e)
	run := into[Run](w.call("acme/operator", "POST", "/jobs/"+job.ID+"/run", nil).is(201))
	sent, both := w.runner.submitted[0], []domain.InstanceID{one, two}
	_, err := w.store.OfferExecutions(t.Context(), []store.Offer{{Tenant: sent.TenantID, ID: sent.ID, Node: 1, Instance: two,
		Passed: domain.NewPassed(2, func(i int) bool { return i == 0 }, func(i int) domain.InstanceID { return both[i] })}})
	require.NoError(t, err)
	got := into[Explanation](w.call("acme/viewer", "GET", "/runs/"+run.ID+"/explain", nil).is(200))
	require.Len(t, got.Instances, 2)
	require.Equal(t, "chosen", got.Instances[0].Verdict)
	require.Equal(t, "full", got.Instances[1].Verdict)
	require.Contains(t, got.Instances[1].Text.En, "rows count 0 runs on its 8 slots")
}
