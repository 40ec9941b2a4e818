package storetest

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/notify"
	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/noun"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// expand expands all events and returns the contexts of this tenant's.
func (f *alertFixture) expand(deliveries func(notify.AlertContext) []noun.Delivery) []notify.AlertContext {
	f.t.Helper()
	var seen []notify.AlertContext
	for {
		n, err := f.s.ExpandAlertEvents(f.ctx, 1000, func(b *notify.AlertBatch) {
			seen = append(seen, eachAlone(b, f.tenant, deliveries)...)
		})
		f.ok(err)
		if n == 0 {
			return seen
		}
	}
}

func eachAlone(b *notify.AlertBatch, tenant domain.TenantID, deliveries func(notify.AlertContext) []noun.Delivery) []notify.AlertContext {
	return EachAlone(b, func(c notify.AlertContext) bool { return c.Event.TenantID == tenant }, deliveries)
}

// EachAlone makes an incident of each wanted event, with these deliveries, for
// ExpandAlertEvents. It returns the events.
func EachAlone(b *notify.AlertBatch, wanted func(notify.AlertContext) bool, deliveries func(notify.AlertContext) []noun.Delivery) (seen []notify.AlertContext) {
	for i := range b.Events {
		e := &b.Events[i]
		if !wanted(e.AlertContext) {
			continue
		}
		tenant := e.Event.TenantID
		seen = append(seen, e.AlertContext)
		key := noun.IncidentKey{Tenant: tenant, Key: fmt.Sprintf("alone/%d", e.Event.ID)}
		e.Incident = &noun.Incident{ID: b.NewID(), TenantID: tenant, Key: key.Key, Live: true, Kind: e.Event.Kind, Executor: e.Executor.ID}
		e.Incident.Add(&e.Event, "", b.Now)
		e.Incident.WakeAt = b.Now.Add(time.Hour)
		b.Live[key] = e.Incident
		if deliveries == nil {
			continue
		}
		for _, d := range deliveries(e.AlertContext) {
			d.TenantID, d.EventID, d.Job = tenant, e.Event.ID, e.Event.JobID
			b.Direct = append(b.Direct, d)
		}
	}
	return seen
}

func testAlerts(t *testing.T, f *alertFixture) {
	j := f.job(nil)
	e := f.start(f.run(j))
	failed := f.report(e, domain.OutcomeFailed)
	failed.Report.Error = "no route to db\nat main.go:7"
	_, err := f.s.FinishAttempts(f.ctx, []store.AttemptReport{failed})
	f.ok(err)
	f.finish(e, domain.OutcomeFailed) // a resend
	contexts := f.expand(nil)
	require.Len(t, contexts, 1, "written once")
	c := contexts[0]
	require.Equal(t, domain.AlertRunFailed, c.Event.Kind)
	require.Equal(t, j.Spec, c.Job.Spec)
	require.Equal(t, j.ID, c.Job.ID)
	require.Equal(t, "shop", c.Executor.Name)
	require.Equal(t, f.tenant, c.Tenant.ID)
	require.Equal(t, e.ID, c.Event.ExecutionID)
	require.Equal(t, domain.ReasonHandlerFailed, c.Event.Reason)
	require.Equal(t, "no route to db", c.Event.Detail)
	require.Empty(t, f.expand(nil), "expanded once")

	f.finish(f.start(f.run(j)), domain.OutcomeSucceeded)
	timedOut := f.start(f.run(j))
	f.finish(timedOut, domain.OutcomeTimedOut)
	require.Equal(t, []domain.AlertKind{domain.AlertRunTimedOut}, f.alertKinds(timedOut))
	lost := f.start(f.run(j))
	f.finish(lost, domain.OutcomeUnknown)
	require.Equal(t, []domain.AlertKind{domain.AlertRunLost}, f.alertKinds(lost))

	event := domain.AlertEvent{TenantID: f.tenant, Kind: domain.AlertNoExecutor, JobID: j.ID, Revision: 1, DedupeKey: "none:1"}
	second := event
	second.DedupeKey = "none:2"
	f.ok(f.s.RecordAlerts(f.ctx, []domain.AlertEvent{event, event, second}))
	f.ok(f.s.RecordAlerts(f.ctx, []domain.AlertEvent{event}))
	contexts = f.expand(nil)
	require.Len(t, contexts, 2)
	require.Zero(t, contexts[0].Event.ExecutionID)
	require.Equal(t, j.Spec.Name, contexts[0].Job.Spec.Name)
	require.Equal(t, f.executor, contexts[0].Executor.ID)
}

func (f *alertFixture) claimDeliveries(hold time.Duration) (out []notify.DueDelivery) {
	f.t.Helper()
	got, err := f.s.ClaimDueDeliveries(f.ctx, notify.ClaimDeliveriesParams{Limit: 1000, Hold: hold, Boot: "one"})
	f.ok(err)
	for _, d := range got {
		if d.Delivery.TenantID == f.tenant {
			out = append(out, d)
		}
	}
	return out
}

func testDeliveries(t *testing.T, f *alertFixture) {
	j := f.job(nil)
	f.finish(f.start(f.run(j)), domain.OutcomeFailed)
	f.expand(func(c notify.AlertContext) []noun.Delivery {
		return []noun.Delivery{{Channel: "email", Target: "anna@example.com"}, {Channel: "webhook", Target: "https://example.com"}}
	})
	due := f.claimDeliveries(time.Minute)
	require.Len(t, due, 2)
	require.Equal(t, 1, due[0].Delivery.Attempts)
	require.Equal(t, domain.AlertRunFailed, due[0].Delivery.Event.Kind)
	require.Equal(t, j.ID, due[0].Context.Job.ID)
	require.Empty(t, f.claimDeliveries(time.Minute), "hidden")

	f.ok(f.s.FinishDelivery(f.ctx, due[0].Delivery.ID, noun.DeliveryDelivered, 0, ""))
	f.ok(f.s.FinishDelivery(f.ctx, due[1].Delivery.ID, noun.DeliveryPending, 0, "503"))
	again := f.claimDeliveries(0)
	require.Len(t, again, 1)
	require.Equal(t, due[1].Delivery.ID, again[0].Delivery.ID)
	require.Equal(t, 2, again[0].Delivery.Attempts)
	require.Len(t, f.claimDeliveries(time.Minute), 1, "the node that held it died")
	f.ok(f.s.FinishDelivery(f.ctx, due[1].Delivery.ID, noun.DeliveryFailed, 0, "gave up"))
	f.ok(f.s.FinishDelivery(f.ctx, due[1].Delivery.ID, noun.DeliveryDelivered, 0, ""))

	list := func(p notify.ListDeliveriesParams) []noun.Delivery {
		t.Helper()
		p.Tenant = f.tenant
		got, err := f.s.ListDeliveries(f.ctx, p)
		f.ok(err)
		return got
	}
	all := list(notify.ListDeliveriesParams{})
	require.Len(t, all, 2)
	require.Equal(t, noun.DeliveryFailed, all[0].State, "newest first; settled once")
	require.Equal(t, "gave up", all[0].LastError)
	require.Equal(t, noun.DeliveryDelivered, all[1].State)
	require.False(t, all[1].DeliveredAt.IsZero())
	require.Equal(t, j.ID, all[1].Event.JobID)
	require.Len(t, list(notify.ListDeliveriesParams{State: noun.DeliveryFailed}), 1)
	require.Len(t, list(notify.ListDeliveriesParams{Job: j.ID, Limit: 1}), 1)
	require.Equal(t, all[1:], list(notify.ListDeliveriesParams{Before: all[0].ID}))
	require.Empty(t, list(notify.ListDeliveriesParams{Job: j.ID + 1}))
}

func testDeliveryRace(t *testing.T, f *alertFixture) {
	j := f.job(nil)
	for range 10 {
		f.finish(f.start(f.run(j)), domain.OutcomeFailed)
	}
	race(4, func(int) {
		_, err := f.s.ExpandAlertEvents(f.ctx, 3, func(b *notify.AlertBatch) {
			eachAlone(b, f.tenant, func(notify.AlertContext) []noun.Delivery {
				return []noun.Delivery{{Channel: "email", Target: "x"}}
			})
		})
		if err != nil {
			t.Errorf("expand: %v", err)
		}
	})
	f.expand(func(notify.AlertContext) []noun.Delivery {
		return []noun.Delivery{{Channel: "email", Target: "x"}}
	})
	var mu sync.Mutex
	seen := map[int64]int{}
	race(4, func(int) {
		for range 4 {
			got, err := f.s.ClaimDueDeliveries(f.ctx, notify.ClaimDeliveriesParams{Limit: 4, Hold: time.Minute, Boot: "one"})
			if err != nil {
				t.Errorf("claim: %v", err)
			}
			mu.Lock()
			for _, d := range got {
				if d.Delivery.TenantID == f.tenant {
					seen[d.Delivery.ID]++
				}
			}
			mu.Unlock()
		}
	})
	for _, d := range f.claimDeliveries(time.Minute) {
		seen[d.Delivery.ID]++
	}
	require.Len(t, seen, 10)
	for id, n := range seen {
		require.Equal(t, 1, n, "delivery %d", id)
	}
}

// testDeadClaims: what a dead node had claimed is free for the living, and
// nothing that one of them has.
func testDeadClaims(t *testing.T, f *alertFixture) {
	j := f.job(nil)
	f.finish(f.start(f.run(j)), domain.OutcomeFailed)
	f.expand(func(notify.AlertContext) []noun.Delivery {
		return []noun.Delivery{{Channel: "email", Target: "anna@example.com"}, {Channel: "email", Target: "ben@example.com"}}
	})
	boot := f.tenant.String() // the databases of other tests hold claims, too
	claim := func(limit int, by string, living ...string) (ids []int64) {
		t.Helper()
		got, err := f.s.ClaimDueDeliveries(f.ctx, notify.ClaimDeliveriesParams{Limit: limit, Hold: time.Hour, Boot: boot + by, Living: living})
		f.ok(err)
		for _, d := range got {
			if d.Delivery.TenantID == f.tenant {
				ids = append(ids, d.Delivery.ID)
			}
		}
		return ids
	}
	all := claim(1000, "dead")
	require.Len(t, all, 2)
	require.Empty(t, claim(1000, "heir"), "who lives is not known")
	require.Empty(t, claim(1000, "heir", boot+"heir", boot+"dead", "one"), "it lives")
	f.ok(f.s.FinishDelivery(f.ctx, all[0], noun.DeliveryDelivered, 0, ""))
	require.Equal(t, all[1:], claim(1000, "heir", boot+"heir", "one"))

	f.ok(f.s.ReleaseDeliveries(f.ctx, boot+"dead", all))
	require.Empty(t, claim(1000, "third", boot+"heir", "one"), "the dead one awoke: it is another's now")
	f.ok(f.s.ReleaseDeliveries(f.ctx, boot+"heir", all))
	require.Equal(t, all[1:], claim(1000, "third", boot+"third", boot+"heir", "one"))
	f.ok(f.s.FinishDelivery(f.ctx, all[1], noun.DeliveryPending, 0, "503"))
	require.Equal(t, all[1:], claim(1000, "third", boot+"third", "one"), "put back, it is nobody's")
}
