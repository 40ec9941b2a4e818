package scheduler

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/timing"
)

// under is a view of maintenance that does not change.
type under struct {
	store.MaintenanceView
	all domain.Maintenances
}

func (u under) Maintenances(context.Context) (domain.Maintenances, error) { return u.all, nil }
func (u under) KnownMaintenances() domain.Maintenances                    { return u.all }

// asked remembers what a claim was to leave out.
type asked struct {
	store.Triggers
	last *store.ClaimDueTriggersParams
}

func (a asked) ClaimDueTriggers(_ context.Context, p store.ClaimDueTriggersParams) (store.ClaimedTriggers, error) {
	*a.last = p
	return store.ClaimedTriggers{NextFireAt: domain.Never}, nil
}

func TestWhatWaitsForTheEndOfMaintenanceIsNotPlanned(t *testing.T) {
	now := time.UnixMilli(1_800_000_000_000).UTC()
	on := func(s domain.MaintenanceScope, mode domain.MaintenanceMode, until time.Time) domain.Maintenance {
		return domain.Maintenance{MaintenanceScope: s, Mode: mode, Since: now.Add(-time.Minute), EndsAt: until}
	}
	tenant, executor := domain.MaintenanceScope{Tenant: 3}, domain.MaintenanceScope{Tenant: 4, Executor: 9}
	for name, c := range map[string]struct {
		list      []domain.Maintenance
		claims    bool
		tenants   []domain.TenantID
		executors []domain.ExecutorID
	}{
		"none":                {nil, true, nil, nil},
		"of the cluster":      {[]domain.Maintenance{on(domain.MaintenanceScope{}, domain.MaintenanceWait, domain.Never)}, false, nil, nil},
		"of parts of it":      {[]domain.Maintenance{on(tenant, domain.MaintenanceWait, domain.Never), on(executor, domain.MaintenanceWait, now.Add(1))}, true, []domain.TenantID{3}, []domain.ExecutorID{9}},
		"that is over":        {[]domain.Maintenance{on(domain.MaintenanceScope{}, domain.MaintenanceWait, now)}, true, nil, nil},
		"that skips":          {[]domain.Maintenance{on(domain.MaintenanceScope{}, domain.MaintenanceSkip, domain.Never)}, true, nil, nil},
		"that is for reading": {[]domain.Maintenance{on(tenant, domain.MaintenanceContinue, domain.Never)}, true, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			all := domain.Maintenances{}
			for _, m := range c.list {
				all[m.MaintenanceScope] = append(all[m.MaintenanceScope], m)
			}
			var last store.ClaimDueTriggersParams
			p := plannerWith(nil)
			p.store, p.maintenance, p.now = asked{last: &last}, under{all: all}, func() time.Time { return now }
			require.NoError(t, p.Claim(t.Context()))
			require.Equal(t, c.claims, last.Limit > 0)
			require.Equal(t, c.tenants, last.Except)
			require.Equal(t, c.executors, last.ExceptExecutors)
			require.Zero(t, p.Lag(), "nothing is late that is to wait")
		})
	}
}

// A job of each minute, whose fire times of 10:00 to 10:59 fell into maintenance.
func TestFireTimesThatWaitedAreNotMissed(t *testing.T) {
	began := time.Date(2026, 11, 2, 10, 0, 0, 0, time.UTC)
	ended := began.Add(time.Hour)
	now := ended.Add(10 * time.Second)
	cache, err := timing.NewCache(4)
	require.NoError(t, err)
	trigger := domain.Trigger{JobID: 7, TenantID: 3, Executor: 5, Revision: 1, NextFireAt: began}
	for name, c := range map[string]struct {
		misfire domain.Misfire
		mode    domain.MaintenanceMode
		want    map[string]int // state and reason, with the cause of those that run
	}{
		"the last one stands for all":   {domain.Misfire{}, domain.MaintenanceWait, map[string]int{"excluded maintenance": 60, "due misfire": 1}},
		"also by the policy's own will": {domain.Misfire{Policy: domain.MisfireOnceNow}, domain.MaintenanceWait, map[string]int{"excluded maintenance": 60, "due misfire": 1}},
		"all are made up": {
			domain.Misfire{Policy: domain.MisfireAll, Window: time.Minute}, domain.MaintenanceWait, map[string]int{"due misfire": 61},
		},
		"as many as the policy allows": {
			domain.Misfire{Policy: domain.MisfireAll, MaxRuns: 3}, domain.MaintenanceWait, map[string]int{"excluded maintenance": 58, "due misfire": 3},
		},
		"those that were to be skipped": {domain.Misfire{}, domain.MaintenanceSkip, map[string]int{"excluded maintenance": 60, "missed misfire": 1}},
		"those of an announced one":     {domain.Misfire{}, domain.MaintenanceContinue, map[string]int{"missed misfire": 61}},
	} {
		t.Run(name, func(t *testing.T) {
			p := plannerWith(cache.Plan)
			scope := domain.MaintenanceScope{Tenant: 3}
			p.maintenance = under{all: domain.Maintenances{scope: {{MaintenanceScope: scope, Mode: c.mode, Since: began, EndsAt: ended}}}}
			spec := &domain.JobSpec{Misfire: c.misfire, Schedule: domain.ScheduleSpec{Kind: domain.ScheduleFixedRate, Every: time.Minute, Anchor: began}}
			got := map[string]int{}
			for at := trigger; !at.NextFireAt.After(now); {
				plan := p.PlanTrigger(now, at, spec)
				require.NoError(t, plan.Err)
				for _, e := range plan.Executions {
					if why := string(e.Reason); e.State == domain.Due {
						got["due "+string(e.Cause)]++
						require.True(t, e.FireAt.Equal(ended) || len(e.Delays) == 1 && e.Delays[0].Reason == domain.ReasonMaintenance, "its row says that it waited")
					} else {
						got[e.State.String()+" "+why]++
						require.Equal(t, e.State == domain.Missed, domain.MissedUntold(&e), "nobody is told of maintenance")
					}
				}
				at.NextFireAt = plan.NextFireAt
			}
			require.Equal(t, c.want, got)
		})
	}
}
