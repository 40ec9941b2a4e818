package api

import (
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
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
	require.Contains(t, got.Summary.En, "It is due and waits, because no instance with room was there")
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
