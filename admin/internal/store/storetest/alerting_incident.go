package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/notify"
	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/noun"
	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// groupAll counts a tenant's events in one incident of a key, which is due at once.
func groupAll(b *notify.AlertBatch, tenant domain.TenantID, key string, receivers ...noun.Receiver) *noun.Incident {
	at := noun.IncidentKey{Tenant: tenant, Key: key}
	for n := range b.Events {
		e := &b.Events[n]
		if e.Event.TenantID != tenant {
			continue
		}
		if b.Live[at] == nil {
			b.Live[at] = &noun.Incident{ID: b.NewID(), TenantID: tenant, Key: key, Live: true, Kind: e.Event.Kind, Executor: e.Executor.ID, Job: e.Event.JobID}
		}
		b.Live[at].Add(&e.Event, e.Job.Spec.Name, b.Now)
		b.Live[at].WakeAt = b.Now
		e.Incident, e.Receivers = b.Live[at], receivers
	}
	return b.Live[at]
}

// count expands all that is in the outbox with groupAll.
func (f *alertFixture) count(key string, receivers ...noun.Receiver) {
	f.t.Helper()
	_, err := f.s.ExpandAlertEvents(f.ctx, 2000, func(b *notify.AlertBatch) { groupAll(b, f.tenant, key, receivers...) })
	f.ok(err)
}

// tellAll tells this tenant's due incidents to all their receivers, and returns
// them; the other tenants' stay as they are.
func (f *alertFixture) tellAll() (out []notify.DueIncident) {
	f.t.Helper()
	_, _, err := f.s.TellIncidents(f.ctx, 1000, func(now time.Time, due []*notify.DueIncident) {
		for _, d := range due {
			if d.TenantID != f.tenant {
				continue
			}
			for n := range d.Receivers {
				d.Told = append(d.Told, n)
			}
			d.Tell(now)
			d.WakeAt = now.Add(time.Hour)
			out = append(out, *d)
		}
	})
	f.ok(err)
	return out
}

func (f *alertFixture) incidents(p notify.ListIncidentsParams) []noun.Incident {
	f.t.Helper()
	p.Tenant = f.tenant
	page, err := f.s.ListIncidents(f.ctx, p)
	list := page.Items
	f.ok(err)
	return list
}

func testIncidents(t *testing.T, f *alertFixture) {
	j := f.job(nil)
	key := noun.JobIncidentKey(j.ID, domain.AlertRunFailed)
	anna, hook := noun.Receiver{Channel: "email", Target: "anna@example.com", Job: j.ID}, noun.Receiver{Channel: "webhook", Target: "https://example.com", Job: j.ID}
	for range 2 {
		f.finish(f.start(f.run(j)), domain.OutcomeFailed)
	}
	f.count(key, anna)
	f.finish(f.start(f.run(j)), domain.OutcomeFailed)
	f.count(key, anna, hook)
	list := f.incidents(notify.ListIncidentsParams{})
	require.Len(t, list, 1)
	i := list[0]
	require.Equal(t, noun.IncidentOpen, i.State)
	require.EqualValues(t, 3, i.Events)
	require.Equal(t, []noun.IncidentJob{{ID: j.ID, Name: j.Spec.Name, Events: 3}}, i.Jobs)
	require.True(t, i.Live)
	events, err := f.s.ListIncidentEvents(f.ctx, notify.ListIncidentEventsParams{Tenant: f.tenant, Incident: i.ID})
	f.ok(err)
	require.Len(t, events, 3)
	require.Equal(t, i.LastEvent, events[0].ID)
	require.Equal(t, i.FirstEvent, events[2].ID)

	told := f.tellAll()
	require.Len(t, told, 1)
	require.Len(t, told[0].Receivers, 2, "each once")
	require.False(t, told[0].Receivers[0].Told)
	require.Zero(t, told[0].Succeeded)
	require.Empty(t, f.tellAll(), "it is due in an hour")
	due := f.claimDeliveries(time.Minute)
	require.Len(t, due, 2)
	for _, d := range due {
		require.Equal(t, i.ID, d.Incident.ID)
		require.EqualValues(t, 1, d.Incident.Told)
		require.Equal(t, j.ID, d.Context.Job.ID)
		require.Equal(t, events[0].ExecutionID, d.Context.Execution.ID, "the newest")
	}

	// What waits there tells how it stands then; what is under way does not.
	f.ok(f.s.FinishDelivery(f.ctx, due[0].Delivery.ID, noun.DeliveryPending, 0, "503"))
	waits := due[0].Delivery.Target
	f.finish(f.start(f.run(j)), domain.OutcomeFailed)
	f.count(key)
	told = f.tellAll()
	require.Len(t, told, 1)
	require.True(t, told[0].Receivers[0].Told)
	due = f.claimDeliveries(time.Minute)
	require.Len(t, due, 2)
	for _, d := range due {
		require.EqualValues(t, 4, d.Incident.Events)
		require.Equal(t, d.Delivery.Target == waits, d.Delivery.Attempts == 2)
	}

	// Whoever looks after the success of a run sees it.
	f.finish(f.start(f.run(j)), domain.OutcomeSucceeded)
	changed, err := f.s.ChangeIncident(f.ctx, f.tenant, i.ID, func(i *noun.Incident, now time.Time) error {
		i.State, i.AcknowledgedAt, i.AcknowledgedBy, i.WakeAt = noun.IncidentAcknowledged, now, "ann", now
		return nil
	})
	f.ok(err)
	require.Equal(t, "ann", changed.AcknowledgedBy)
	told = f.tellAll()
	require.Len(t, told, 1)
	require.False(t, told[0].Succeeded.IsZero())
	f.ok(f.s.FinishDelivery(f.ctx, due[1].Delivery.ID, noun.DeliveryFailed, 0, "gave up"))
	found, err := f.s.FindIncident(f.ctx, f.tenant, i.ID)
	f.ok(err)
	require.Equal(t, noun.IncidentAcknowledged, found.ToldState)
	require.EqualValues(t, 1, found.Undelivered)
	require.EqualValues(t, 1, f.incidents(notify.ListIncidentsParams{})[0].Undelivered)
	require.Len(t, f.incidents(notify.ListIncidentsParams{State: noun.IncidentAcknowledged, Executor: f.executor}), 1)
	require.Empty(t, f.incidents(notify.ListIncidentsParams{State: noun.IncidentOpen}))
	require.Empty(t, f.incidents(notify.ListIncidentsParams{Before: i.ID}))

	// Where there is nobody to tell, there was no message.
	require.Positive(t, found.Told)
	nobodys := f.job(nil)
	f.finish(f.start(f.run(nobodys)), domain.OutcomeFailed)
	f.count(noun.JobIncidentKey(nobodys.ID, domain.AlertRunFailed))
	told = f.tellAll()
	require.Len(t, told, 1)
	require.Empty(t, told[0].Receivers)
	for _, one := range f.incidents(notify.ListIncidentsParams{}) {
		require.Equal(t, one.ID == i.ID, one.Told > 0 && !one.ToldAt.IsZero(), one)
	}

	// The wall.
	other := f.tenant + 1
	_, err = f.s.FindIncident(f.ctx, other, i.ID)
	require.Equal(t, domain.CodeNotFound, domain.CodeOf(err))
	_, err = f.s.ChangeIncident(f.ctx, other, i.ID, func(*noun.Incident, time.Time) error { return nil })
	require.Equal(t, domain.CodeNotFound, domain.CodeOf(err))
	events, err = f.s.ListIncidentEvents(f.ctx, notify.ListIncidentEventsParams{Tenant: other, Incident: i.ID})
	f.ok(err)
	require.Empty(t, events)
}

// testIncidentOfManyEvents: a flood keeps a bounded number of rows, among them what
// was told.
func testIncidentOfManyEvents(t *testing.T, f *alertFixture) {
	j := f.job(nil)
	send := func(from, to int) {
		var events []domain.AlertEvent
		for n := from; n < to; n++ {
			events = append(events, domain.AlertEvent{TenantID: f.tenant, Kind: domain.AlertRunFailed, JobID: j.ID, Revision: 1, DedupeKey: fmt.Sprint(n)})
		}
		f.ok(f.s.RecordAlerts(f.ctx, events))
		f.count("flood", noun.Receiver{Channel: "email", Target: "x"})
	}
	kept := func() (n int) {
		before := int64(0)
		for {
			events, err := f.s.ListIncidentEvents(f.ctx, notify.ListIncidentEventsParams{Tenant: f.tenant, Incident: f.incidents(notify.ListIncidentsParams{})[0].ID, Before: before, Limit: 200})
			f.ok(err)
			if len(events) == 0 {
				return n
			}
			n, before = n+len(events), events[len(events)-1].ID
		}
	}
	send(0, noun.MaxIncidentEvents-10)
	send(noun.MaxIncidentEvents-10, noun.MaxIncidentEvents+100)
	require.Equal(t, noun.MaxIncidentEvents+1, kept(), "the first ones and the newest")
	require.Len(t, f.tellAll(), 1)
	for round := range 3 {
		send(noun.MaxIncidentEvents+100+round*50, noun.MaxIncidentEvents+150+round*50)
	}
	require.Equal(t, noun.MaxIncidentEvents+2, kept(), "also the one that was told")
	require.EqualValues(t, noun.MaxIncidentEvents+250, f.incidents(notify.ListIncidentsParams{})[0].Events)
	require.Len(t, f.claimDeliveries(time.Minute), 1)
}

// testAbsorbedIncident: what was an incident of its own becomes a part of another
// one, with its events and receivers.
func testAbsorbedIncident(t *testing.T, f *alertFixture) {
	j := f.job(nil)
	f.finish(f.start(f.run(j)), domain.OutcomeUnknown)
	f.count(noun.JobIncidentKey(j.ID, domain.AlertRunLost), noun.Receiver{Channel: "email", Target: "anna@example.com"})
	f.finish(f.start(f.run(j)), domain.OutcomeUnknown)
	_, err := f.s.ExpandAlertEvents(f.ctx, 100, func(b *notify.AlertBatch) {
		whole := groupAll(b, f.tenant, noun.ExecutorIncidentKey(f.executor, noun.ClassUnavailable), noun.Receiver{Channel: "email", Target: "ben@example.com"})
		require.Len(t, b.Recent[f.executor], 1)
		whole.Absorb(b.Recent[f.executor][0], b.Now)
	})
	f.ok(err)
	told := f.tellAll()
	require.Len(t, told, 1)
	require.EqualValues(t, 2, told[0].Events)
	require.Len(t, told[0].Receivers, 2)
	events, err := f.s.ListIncidentEvents(f.ctx, notify.ListIncidentEventsParams{Tenant: f.tenant, Incident: told[0].ID})
	f.ok(err)
	require.Len(t, events, 2)
	part := f.incidents(notify.ListIncidentsParams{State: noun.IncidentResolved})
	require.Len(t, part, 1)
	require.Equal(t, told[0].ID, part[0].Parent)
	require.False(t, part[0].Live)
	// Its key is free.
	f.finish(f.start(f.run(j)), domain.OutcomeUnknown)
	f.count(noun.JobIncidentKey(j.ID, domain.AlertRunLost))
	require.Len(t, f.incidents(notify.ListIncidentsParams{State: noun.IncidentOpen}), 2)

	f.ok(f.s.AgeIncident(f.ctx, part[0].ID, 365*24*time.Hour))
	for deleted := int64(1); deleted > 0; {
		deleted, err = f.s.DeleteOutboxBefore(f.ctx, time.Now().Add(-200*24*time.Hour), 100)
		f.ok(err)
	}
	require.Empty(t, f.incidents(notify.ListIncidentsParams{State: noun.IncidentResolved}))
	require.Len(t, f.incidents(notify.ListIncidentsParams{State: noun.IncidentOpen}), 2, "those that live stay")
}

// testIncidentRace: several nodes count, and open one incident.
func testIncidentRace(t *testing.T, f *alertFixture) {
	j := f.job(nil)
	const events = 200
	for n := range events / 10 {
		var list []domain.AlertEvent
		for m := range 10 {
			list = append(list, domain.AlertEvent{TenantID: f.tenant, Kind: domain.AlertRunFailed, JobID: j.ID, Revision: 1, DedupeKey: fmt.Sprint(n*10 + m)})
		}
		f.ok(f.s.RecordAlerts(f.ctx, list))
	}
	race(4, func(int) {
		for range events / 10 {
			_, err := f.s.ExpandAlertEvents(f.ctx, 7, func(b *notify.AlertBatch) { groupAll(b, f.tenant, "race") })
			if err != nil {
				t.Errorf("expand: %v", err)
			}
		}
	})
	list := f.incidents(notify.ListIncidentsParams{})
	require.Len(t, list, 1)
	require.EqualValues(t, events, list[0].Events)
}
