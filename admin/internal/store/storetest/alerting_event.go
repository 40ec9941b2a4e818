package storetest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/notify"
	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/noun"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// testPileIncident: the incident of a job that piles up knows how many runs wait.
func testPileIncident(t *testing.T, f *alertFixture) {
	j := f.job(func(s *domain.JobSpec) { serial(s); s.MaxWaiting = 3 })
	now := f.now()
	var runs []domain.Execution
	for n := range 5 {
		runs = append(runs, f.asked(domain.CauseSchedule, j, now.Add(time.Duration(n-10)*time.Second)))
	}
	running := f.start(runs[0])
	for _, e := range runs[1:4] {
		f.offer(store.OfferBlocked, e)
	}
	f.offer(store.OfferDiscarded, runs[4])
	f.finish(running, domain.OutcomeSucceeded)
	f.count("pile", noun.Receiver{Channel: "email", Target: "anna@example.com", Job: j.ID})
	list := f.incidents(notify.ListIncidentsParams{})
	require.Len(t, list, 1)
	told := f.tellAll()
	require.Len(t, told, 1)
	require.EqualValues(t, 3, told[0].Waiting)
	for _, e := range runs[1:4] {
		f.finish(f.start(e), domain.OutcomeSucceeded)
	}
	_, err := f.s.ChangeIncident(f.ctx, f.tenant, list[0].ID, func(i *noun.Incident, now time.Time) error {
		i.WakeAt = now
		return nil
	})
	f.ok(err)
	told = f.tellAll()
	require.Len(t, told, 1)
	require.Zero(t, told[0].Waiting)
}

// testLostInstancesExplained: an outage of the executor tells enough of its lost instances.
func testLostInstancesExplained(t *testing.T, f *alertFixture) {
	dead := f.register("dead", -time.Minute)
	f.expire(nil)
	f.ok(f.s.AgeInstance(f.ctx, dead.ID, domain.LostFor+time.Second))
	lost := func() (out []string) {
		list, err := f.s.ListLostInstances(f.ctx)
		f.ok(err)
		list, err = f.s.WithoutOutage(f.ctx, list)
		f.ok(err)
		for _, x := range list {
			if x.Executor == f.executor {
				out = append(out, x.Lost...)
			}
		}
		return out
	}
	require.Equal(t, []string{dead.Name + " on host"}, lost())
	f.ok(f.s.RecordAlerts(f.ctx, []domain.AlertEvent{{TenantID: f.tenant, Kind: domain.AlertNoExecutor, JobID: f.job(func(*domain.JobSpec) {}).ID, Revision: 1, DedupeKey: "outage"}}))
	f.count("outage")
	require.Empty(t, lost(), "the outage is told")
	page, err := f.s.ListIncidents(f.ctx, notify.ListIncidentsParams{Tenant: f.tenant, Limit: 10})
	incidents := page.Items
	f.ok(err)
	require.Len(t, incidents, 1)
	_, err = f.s.ChangeIncident(f.ctx, f.tenant, incidents[0].ID, func(i *noun.Incident, now time.Time) error {
		i.Resolve(now, "ann")
		return nil
	})
	f.ok(err)
	require.Empty(t, lost(), "the outage was told")
}

// testAlertWall: a tenant sees no deliveries of another one.
func testAlertWall(t *testing.T, f *alertFixture) {
	j := f.job(nil)
	f.finish(f.start(f.run(j)), domain.OutcomeFailed)
	f.expand(func(notify.AlertContext) []noun.Delivery {
		return []noun.Delivery{{Channel: "email", Target: "x"}}
	})
	mine, err := f.s.ListDeliveries(f.ctx, notify.ListDeliveriesParams{Tenant: f.tenant, Job: j.ID})
	f.ok(err)
	require.Len(t, mine, 1)
	other := newFixture(t, f.s)
	deliveries, err := f.s.ListDeliveries(f.ctx, notify.ListDeliveriesParams{Tenant: other.tenant, Job: j.ID})
	f.ok(err)
	require.Empty(t, deliveries)
}
