package scheduler

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/timing"
)

func plannerWith(plan PlanFunc) *Planner {
	var id atomic.Int64
	return NewPlanner(PlannerOptions{
		NewID: func() int64 { return id.Add(1) }, Plan: plan, Logger: slog.New(slog.DiscardHandler),
		Held: func() []domain.PartitionTerm { return []domain.PartitionTerm{{Partition: 0, Term: 1}} }, Out: func([]domain.Execution) {},
	})
}

func TestPlannedExecutionsCarryWhatLaterStepsNeed(t *testing.T) {
	now := time.UnixMilli(1_800_000_000_000).UTC()
	trigger := domain.Trigger{JobID: 7, TenantID: 3, Partition: 9, Executor: 5, Revision: 4, NextFireAt: now.Add(time.Second)}
	spec := &domain.JobSpec{Retry: domain.Retry{MaxAttempts: 3}, DispatchTimeout: time.Minute}
	following := now.Add(time.Hour)

	p := plannerWith(func(job domain.JobID, revision int64, _ *domain.JobSpec, next, at, horizon time.Time, _ int) timing.Planned {
		require.Equal(t, trigger.JobID, job)
		require.Equal(t, trigger.Revision, revision)
		require.Equal(t, trigger.NextFireAt, next)
		require.Equal(t, now.Add(LookAhead), horizon)
		require.Less(t, LookAhead, store.MostAhead)
		return timing.Planned{Fires: []timing.Fire{
			{At: now.Add(-time.Hour), Missed: domain.ReasonCoalesced, Into: now.Add(-time.Minute)},
			{At: now.Add(-time.Minute), RunAt: now, Misfire: true},
			{At: now.Add(time.Second), RunAt: now.Add(2 * time.Second)},
			{At: now.Add(2 * time.Second), RunAt: now.Add(time.Hour)},
			{At: now.Add(3 * time.Second), Missed: domain.ReasonCalendar, Detail: "a holiday"},
		}, Next: following}
	})
	plan := p.PlanTrigger(now, trigger, spec)

	require.Equal(t, following, plan.NextFireAt)
	require.Equal(t, now.Add(3*time.Second), plan.LastFireAt)
	require.Len(t, plan.Executions, 5)
	missed, late, ahead, cold := plan.Executions[0], plan.Executions[1], plan.Executions[2], plan.Executions[3]

	require.Equal(t, domain.Missed, missed.State)
	require.Equal(t, domain.ReasonCoalesced, missed.Reason)
	require.True(t, missed.WakeAt.IsZero(), "nobody looks at it again")

	require.Contains(t, missed.Message, late.FireAt.Format(time.RFC3339)[:19], "it names the run that stands for it")

	excluded := plan.Executions[4]
	require.Equal(t, []any{domain.Excluded, domain.ReasonCalendar, "a holiday", now, true},
		[]any{excluded.State, excluded.Reason, excluded.Message, excluded.FinishedAt, excluded.WakeAt.IsZero()})

	require.Equal(t, domain.CauseMisfire, late.Cause)
	require.Equal(t, now, late.NotBefore)
	require.Equal(t, now.Add(domain.PickupGrace), late.WakeAt)
	require.Equal(t, now.Add(time.Minute), late.ExpireAt, "the wait for an instance counts from now")

	require.Equal(t, domain.CauseSchedule, ahead.Cause)
	require.Equal(t, now.Add(time.Second), ahead.FireAt, "jitter does not change what it is")
	require.Equal(t, now.Add(2*time.Second), ahead.NotBefore)
	require.Equal(t, ahead.NotBefore.Add(domain.PickupGrace), ahead.WakeAt)

	require.Equal(t, now.Add(time.Hour), cold.NotBefore)
	require.Equal(t, now.Add(time.Hour-domain.WarmUp), cold.WakeAt)
	require.Equal(t, []domain.Execution{late, ahead}, runnable(plan.Executions), "a timer holds what comes soon")
	for _, e := range plan.Executions {
		require.Equal(t, domain.TenantID(3), e.TenantID)
		require.Equal(t, domain.ExecutorID(5), e.Executor)
		require.Equal(t, 9, e.Partition)
		require.Equal(t, int64(4), e.Revision)
		require.Equal(t, 3, e.MaxAttempts)
		require.Empty(t, e.OccurrenceKey, "one row per fire time")
	}
}

// claims is a store.Triggers that answers as told.
type claims struct {
	store.Triggers
	answers []store.ClaimedTriggers
	calls   int
}

func (c *claims) ClaimDueTriggers(context.Context, store.ClaimDueTriggersParams) (store.ClaimedTriggers, error) {
	c.calls++
	if c.calls > len(c.answers) {
		return store.ClaimedTriggers{NextFireAt: domain.Never}, nil
	}
	return c.answers[c.calls-1], nil
}

func TestClaimingGoesOnWhileSomethingIsDue(t *testing.T) {
	now := time.UnixMilli(1_800_000_000_000).UTC()
	due := domain.Execution{ID: 1, State: domain.Due}
	missed := domain.Execution{ID: 2, State: domain.Missed}
	full := store.ClaimedTriggers{Now: now, Triggers: claimLimit, NextFireAt: domain.Never, Executions: []domain.Execution{due, missed}}
	behind := store.ClaimedTriggers{Now: now, Triggers: 1, NextFireAt: now}
	last := store.ClaimedTriggers{Now: now, Triggers: 3, NextFireAt: now.Add(LookAhead + 1)}

	var out []domain.Execution
	p := plannerWith(nil)
	source := &claims{answers: []store.ClaimedTriggers{full, behind, last}}
	p.store, p.out = source, func(e []domain.Execution) { out = append(out, e...) }
	require.NoError(t, p.Claim(t.Context()))
	require.Equal(t, 3, source.calls)
	require.Equal(t, []domain.Execution{due}, out, "missed ones do not go on")
}

// timerClaims is a store.DueTimers that answers as told.
type timerClaims struct {
	answers []store.ClaimedTimers
	err     error
	asked   []store.ClaimDueTimersParams
}

func (c *timerClaims) ClaimDueTimers(_ context.Context, p store.ClaimDueTimersParams) (store.ClaimedTimers, error) {
	c.asked = append(c.asked, p)
	if len(c.asked) > len(c.answers) {
		return store.ClaimedTimers{}, c.err
	}
	return c.answers[len(c.asked)-1], nil
}

type brokenClaims struct{ store.Triggers }

func (brokenClaims) ClaimDueTriggers(context.Context, store.ClaimDueTriggersParams) (store.ClaimedTriggers, error) {
	return store.ClaimedTriggers{}, errors.New("a trigger cannot be read")
}

// Timers are claimed beside the triggers, until none is due, and whatever becomes
// of the triggers.
func TestTimersAreClaimedBesideTriggers(t *testing.T) {
	first, ended, second := domain.Execution{ID: 1, State: domain.Due}, domain.Execution{ID: 2, State: domain.Missed}, domain.Execution{ID: 3, State: domain.Due}
	var out []domain.Execution
	p := plannerWith(nil)
	timers := &timerClaims{answers: []store.ClaimedTimers{{Timers: 2, More: true, Executions: []domain.Execution{first, ended}}, {Timers: 1, Executions: []domain.Execution{second}}}}
	p.store, p.timers, p.out = &claims{}, timers, func(e []domain.Execution) { out = append(out, e...) }
	require.NoError(t, p.Claim(t.Context()))
	require.Equal(t, []domain.Execution{first, second}, out)
	require.Len(t, timers.asked, 2)
	require.Equal(t, []any{LookAhead, claimLimit, p.held()}, []any{timers.asked[0].Horizon, timers.asked[0].Limit, timers.asked[0].Partitions})

	timers.asked, p.store = nil, brokenClaims{}
	require.ErrorContains(t, p.Claim(t.Context()), "a trigger cannot be read")
	require.Len(t, timers.asked, 1)

	told := 0
	p.refused = func() { told++ }
	p.store, p.timers = &claims{}, &timerClaims{err: domain.Errorf(domain.CodeStaleTerm, "not held any more")}
	require.NoError(t, p.Claim(t.Context()))
	require.Equal(t, 1, told)
}

// A claim under terms that are over plans nothing, and whoever holds the leases
// hears of it: he has to look what has become of them.
func TestAClaimThatIsRefusedIsTold(t *testing.T) {
	p := plannerWith(nil)
	p.store = staleClaims{}
	told := 0
	p.refused = func() { told++ }
	require.NoError(t, p.Claim(t.Context()))
	require.Equal(t, 1, told)
}

type staleClaims struct{ store.Triggers }

func (staleClaims) ClaimDueTriggers(context.Context, store.ClaimDueTriggersParams) (store.ClaimedTriggers, error) {
	return store.ClaimedTriggers{}, domain.Errorf(domain.CodeStaleTerm, "not held any more")
}

func TestLagGrowsWhilePlanningDoesNotEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		p := plannerWith(nil)
		behind := store.ClaimedTriggers{Now: now, Triggers: 1, NextFireAt: now}
		p.store = &claims{answers: []store.ClaimedTriggers{behind, {Now: now, NextFireAt: domain.Never}}}
		require.Zero(t, p.Lag())
		time.Sleep(LookAhead + time.Minute)
		require.Equal(t, time.Minute, p.Lag())
		require.NoError(t, p.Claim(t.Context()))
		require.Zero(t, p.Lag())
	})
}
