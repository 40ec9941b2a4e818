package storetest

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

func testClaim(t *testing.T, f *fixture) {
	base := f.now().Truncate(time.Second)
	j := f.jobFiring(base, func(s *domain.JobSpec) { s.Name, s.Timeout = "claimed", time.Minute })
	var seen domain.Trigger
	got := f.claim(func(now time.Time, tr domain.Trigger, spec *domain.JobSpec) store.TriggerPlan {
		if tr.JobID != j.ID {
			return store.TriggerPlan{NextFireAt: domain.Never}
		}
		seen = tr
		require.Equal(t, "claimed", spec.Name)
		require.Equal(t, time.Minute, spec.Timeout)
		require.WithinDuration(t, f.now(), now, time.Minute)
		first, second := planned(&j.Job, base, now), planned(&j.Job, base.Add(time.Second), now)
		first.State, first.Reason, first.WakeAt, first.FinishedAt = domain.Missed, domain.ReasonMisfire, time.Time{}, now
		return store.TriggerPlan{Executions: []domain.Execution{first, second}, NextFireAt: base.Add(time.Hour), LastFireAt: base.Add(time.Second)}
	})
	require.Equal(t, domain.Trigger{
		JobID: j.ID, TenantID: f.tenant, Partition: domain.PartitionOf(j.ID), Executor: f.executor, Revision: 1, NextFireAt: base,
	}, seen)
	require.Len(t, got, 2)
	require.Equal(t, got[0], f.find(got[0]), "what is returned is what is stored")
	require.Equal(t, domain.Missed, got[0].State)
	require.Equal(t, domain.Due, f.find(got[1]).State)
	view, err := f.s.FindJob(f.ctx, f.tenant, j.ID)
	f.ok(err)
	require.Equal(t, base.Add(time.Hour), view.NextFireAt)
	require.Empty(t, f.claim(nothing), "the trigger has moved on")
}

// nothing plans nothing and stops the trigger.
func nothing(_ time.Time, t domain.Trigger, _ *domain.JobSpec) store.TriggerPlan {
	return store.TriggerPlan{NextFireAt: domain.Never, LastFireAt: t.LastFireAt}
}

func testClaimHorizonAndLimit(t *testing.T, f *fixture) {
	f.claim(nothing) // what other tests left
	now := f.now()
	soon, later := f.jobFiring(now.Add(3*time.Second), nil), f.jobFiring(now.Add(time.Minute), nil)
	params := store.ClaimDueTriggersParams{Partitions: f.held, Limit: 10, Plan: nothing}

	got, err := f.s.ClaimDueTriggers(f.ctx, params)
	f.ok(err)
	require.Zero(t, got.Triggers)
	require.WithinDuration(t, now, got.Now, 10*time.Second)
	require.False(t, got.NextFireAt.After(soon.NextFireAt), "next fire %s", got.NextFireAt)

	params.Horizon = 5 * time.Second
	other := (soon.Partition + 1) % domain.Partitions
	if later.Partition == other {
		other = (soon.Partition + 2) % domain.Partitions
	}
	params.Partitions = f.held[other : other+1]
	got, err = f.s.ClaimDueTriggers(f.ctx, params)
	f.ok(err)
	require.Zero(t, got.Triggers, "not our partition")

	params.Partitions = f.held
	got, err = f.s.ClaimDueTriggers(f.ctx, params)
	f.ok(err)
	require.Equal(t, 1, got.Triggers)
	require.False(t, got.NextFireAt.After(later.NextFireAt))

	for range 5 {
		f.jobFiring(now.Add(-time.Second), nil)
	}
	params.Limit = 3
	got, err = f.s.ClaimDueTriggers(f.ctx, params)
	f.ok(err)
	require.Equal(t, 3, got.Triggers, "the limit")
	got, err = f.s.ClaimDueTriggers(f.ctx, params)
	f.ok(err)
	require.Equal(t, 2, got.Triggers, "the rest")
}

// A tenant that is left out keeps its triggers as they are, those that an
// earlier search has found already too.
func testClaimExcept(t *testing.T, f *fixture) {
	f.claim(nothing) // what other tests left
	other := newFixture(t, f.s)
	now := f.now()
	for range 3 {
		f.jobFiring(now.Add(-2*time.Second), nil)
		other.jobFiring(now.Add(-time.Second), nil)
	}
	claim := func(limit int, except ...domain.TenantID) (seen []domain.TenantID) {
		_, err := f.s.ClaimDueTriggers(f.ctx, store.ClaimDueTriggersParams{
			Partitions: f.held, Except: except, Limit: limit,
			Plan: func(now time.Time, tr domain.Trigger, spec *domain.JobSpec) store.TriggerPlan {
				seen = append(seen, tr.TenantID)
				return nothing(now, tr, spec)
			},
		})
		f.ok(err)
		return seen
	}
	require.Equal(t, []domain.TenantID{f.tenant}, claim(1), "the oldest one; the search found more")
	require.Equal(t, []domain.TenantID{other.tenant, other.tenant, other.tenant}, claim(10, f.tenant))
	require.Empty(t, claim(10, f.tenant, other.tenant))
	require.Equal(t, []domain.TenantID{f.tenant, f.tenant}, claim(10), "let go again")
}

// Eight claimers, frequent jobs: every fire time exactly once.
func testClaimRace(t *testing.T, f *fixture) {
	const jobs, fires, claimers = 40, 6, 8
	start := f.now().Truncate(time.Second).Add(-time.Hour)
	views := map[domain.JobID]store.JobView{}
	for range jobs {
		j := f.jobFiring(start, nil)
		views[j.ID] = j
	}
	end := start.Add(fires * time.Second)
	plan := func(now time.Time, tr domain.Trigger, _ *domain.JobSpec) store.TriggerPlan {
		j, ok := views[tr.JobID]
		if !ok {
			return nothing(now, tr, nil)
		}
		p := store.TriggerPlan{Executions: []domain.Execution{planned(&j.Job, tr.NextFireAt, now)}, NextFireAt: tr.NextFireAt.Add(time.Second), LastFireAt: tr.NextFireAt}
		if !p.NextFireAt.Before(end) {
			p.NextFireAt = domain.Never
		}
		return p
	}
	var mu sync.Mutex
	seen := map[string]int{}
	race(claimers, func(int) {
		for idle := 0; idle < 3; {
			got, err := f.s.ClaimDueTriggers(f.ctx, store.ClaimDueTriggersParams{Partitions: f.held, Limit: 10, Plan: plan})
			if err != nil {
				t.Errorf("claim: %v", err)
				return
			}
			if got.Triggers == 0 {
				idle++
			}
			mu.Lock()
			for _, e := range f.mine(got.Executions) {
				seen[fmt.Sprint(e.JobID, e.FireAt.UnixMilli())]++
			}
			mu.Unlock()
		}
	})
	for len(f.claim(plan)) > 0 { // what was locked by others when the last one gave up
		t.Log("left over: claimed by a claimer that found nothing three times")
		break
	}
	require.Len(t, seen, jobs*fires)
	for key, n := range seen {
		require.Equal(t, 1, n, key)
	}
}

func testClaimUnique(t *testing.T, f *fixture) {
	now := f.now().Truncate(time.Second)
	j := f.job(nil)
	first := f.fire(j, now.Add(-3*time.Second), now.Add(-2*time.Second))
	f.setNext(j, now.Add(-time.Minute)) // as if the clock had stepped back
	got := f.claim(func(now2 time.Time, tr domain.Trigger, _ *domain.JobSpec) store.TriggerPlan {
		p := store.TriggerPlan{NextFireAt: domain.Never}
		if tr.JobID == j.ID {
			for i := -4; i < 0; i++ {
				p.Executions = append(p.Executions, planned(&j.Job, now.Add(time.Duration(i)*time.Second), now2))
			}
			p.Executions = append(p.Executions, p.Executions[0]) // twice in one plan
			p.Executions[4].ID = domain.ExecutionID(ids.Next())
		}
		return p
	})
	require.Len(t, got, 2, "the two that existed are left out")
	require.Equal(t, now.Add(-4*time.Second), got[0].FireAt)
	require.Equal(t, now.Add(-time.Second), got[1].FireAt)
	require.NotContains(t, identify(got), first[0].ID)
}

func testCreateExecution(t *testing.T, f *fixture) {
	j := f.job(nil)
	e := planned(&j.Job, f.now(), f.now())
	e.Cause, e.OccurrenceKey, e.Input, e.Note, e.RequestedBy = domain.CauseAPI, domain.RequestKey("7", "one"), []byte(`{"day":"x"}`), "by hand", "anna"
	run, created, err := f.s.CreateExecution(f.ctx, e)
	f.ok(err)
	require.True(t, created)
	require.Equal(t, run, f.find(run))
	require.Equal(t, []byte(`{"day":"x"}`), run.Input)

	again := e
	again.ID, again.FireAt = domain.ExecutionID(ids.Next()), e.FireAt.Add(time.Hour)
	second, created, err := f.s.CreateExecution(f.ctx, again)
	f.ok(err)
	require.False(t, created, "the same key at another time")
	require.Equal(t, run, second)
	again.ID, again.OccurrenceKey = domain.ExecutionID(ids.Next()), domain.RequestKey("7", "another")
	second, created, err = f.s.CreateExecution(f.ctx, again)
	f.ok(err)
	require.False(t, created, "the same key for something else")
	require.Equal(t, run, second, "with what the first one asked for")

	// Without a key, runs do not stand in the way of scheduled fires or each other.
	plain := planned(&j.Job, f.now(), f.now())
	plain.Cause, plain.Revision, plain.Executor = domain.CauseManual, 0, 0
	one, created, err := f.s.CreateExecution(f.ctx, plain)
	f.ok(err)
	require.True(t, created)
	require.EqualValues(t, 1, one.Revision)
	require.Equal(t, f.executor, one.Executor)
	plain.ID = domain.ExecutionID(ids.Next())
	_, created, err = f.s.CreateExecution(f.ctx, plain)
	f.ok(err)
	require.True(t, created)

	missing := e
	missing.ID, missing.JobID = domain.ExecutionID(ids.Next()), domain.JobID(ids.Next())
	_, _, err = f.s.CreateExecution(f.ctx, missing)
	f.code(domain.CodeNotFound, err)
	_, err = f.s.SetJobState(f.ctx, store.SetJobStateParams{Tenant: f.tenant, ID: j.ID, State: domain.JobDeleted})
	f.ok(err)
	e.ID, e.OccurrenceKey = domain.ExecutionID(ids.Next()), "order-8"
	_, _, err = f.s.CreateExecution(f.ctx, e)
	f.code(domain.CodeNotFound, err)
}

func testRequestKeyRace(t *testing.T, f *fixture) {
	j := f.job(nil)
	now := f.now()
	var mu sync.Mutex
	created, seen := 0, map[domain.ExecutionID]bool{}
	race(6, func(i int) {
		e := planned(&j.Job, now.Add(time.Duration(i)*time.Millisecond), now)
		e.Cause, e.OccurrenceKey = domain.CauseAPI, "one"
		run, fresh, err := f.s.CreateExecution(f.ctx, e)
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			t.Errorf("create: %v", err)
		}
		if fresh {
			created++
		}
		seen[run.ID] = true
	})
	require.Equal(t, 1, created)
	require.Len(t, seen, 1)
}
