package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/notify"
	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/noun"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

func testAlertRules(t *testing.T, f *alertFixture) {
	labels, err := domain.ParseSelector("team=finance")
	f.ok(err)
	var channels [2]noun.AlertChannel
	for i := range channels {
		channels[i], err = f.put(noun.AlertChannel{ID: domain.ChannelID(ids.Next()), TenantID: f.tenant, Spec: noun.AlertChannelSpec{Name: fmt.Sprint("c", i), Kind: noun.ChannelEmail, Emails: []string{"a@example.com"}}})
		f.ok(err)
	}
	spec := noun.AlertRuleSpec{
		Name: "money", Description: "d", Enabled: true, Position: 3, Match: noun.AlertMatcher{Kinds: []domain.AlertKind{domain.AlertRunFailed}, Executors: []domain.ExecutorID{1}, Jobs: []domain.JobID{2}, Labels: labels},
		Condition: noun.AlertCondition{Kind: noun.ConditionFailures, Failures: 2, Of: 3}, Severity: noun.SeverityCritical, Channels: []domain.ChannelID{channels[0].ID},
		Repeat: time.Hour, Quiet: noun.QuietHours{Zone: "UTC", From: "22:00", To: "06:00", Days: []time.Weekday{time.Friday}}, EscalateAfter: time.Minute, EscalateTo: []domain.ChannelID{channels[1].ID},
	}
	r, err := f.putRule(noun.AlertRule{ID: domain.AlertRuleID(ids.Next()), TenantID: f.tenant, Spec: spec})
	f.ok(err)
	require.Equal(t, spec, r.Spec)
	require.EqualValues(t, 1, r.Version)
	for _, c := range channels {
		require.ErrorContains(t, f.remove(c), `is used by the alert rule "money"; remove it there first`)
	}
	lost := spec
	lost.Name, lost.Channels = "lost", []domain.ChannelID{domain.ChannelID(ids.Next())}
	_, err = f.putRule(noun.AlertRule{ID: domain.AlertRuleID(ids.Next()), TenantID: f.tenant, Spec: lost})
	require.Equal(t, domain.CodeConflict, domain.CodeOf(err))
	also := spec
	also.Name = "also"
	again, err := f.putRule(noun.AlertRule{ID: domain.AlertRuleID(ids.Next()), TenantID: f.tenant, Spec: also})
	f.ok(err)
	require.ErrorContains(t, f.remove(channels[0]), `is used by the alert rules "also", "money"; remove it there first`)
	f.ok(f.s.Rules().Delete(f.ctx, f.tenant, int64(again.ID), 0, "ann"))
	names, err := f.s.Channels().Names(f.ctx, f.tenant, []int64{int64(channels[0].ID), ids.Next()})
	f.ok(err)
	require.Equal(t, map[int64]string{int64(channels[0].ID): "c0"}, names)
	names, err = f.s.Channels().Names(f.ctx, f.tenant+1, []int64{int64(channels[0].ID)})
	f.ok(err)
	require.Empty(t, names)

	r.Spec.Channels = []domain.ChannelID{channels[1].ID}
	r, err = f.putRule(r)
	f.ok(err)
	require.EqualValues(t, 2, r.Version)
	f.ok(f.remove(channels[0]))
	_, err = f.s.Rules().Restore(f.ctx, f.tenant, int64(again.ID), "ann")
	require.ErrorContains(t, err, "was deleted; restore it, or choose another one")
	_, err = f.s.Channels().Restore(f.ctx, f.tenant, int64(channels[0].ID), "ann")
	f.ok(err)
	_, err = f.s.Rules().Restore(f.ctx, f.tenant, int64(again.ID), "ann")
	f.ok(err)
}

func testSilences(t *testing.T, f *alertFixture) {
	now := f.now().Truncate(time.Millisecond)
	s, err := f.s.CreateSilence(f.ctx, noun.AlertSilence{ID: domain.SilenceID(ids.Next()), TenantID: f.tenant, Reason: "deploy", Match: noun.AlertMatcher{Jobs: []domain.JobID{7}},
		StartsAt: now, EndsAt: now.Add(time.Hour), CreatedBy: "ann"})
	f.ok(err)
	found, err := f.s.FindSilence(f.ctx, f.tenant, s.ID)
	f.ok(err)
	require.Equal(t, s, found)
	list, err := f.s.ListSilences(f.ctx, f.tenant, now)
	f.ok(err)
	require.Equal(t, []noun.AlertSilence{s}, list)
	_, err = f.s.EndSilence(f.ctx, f.tenant+1, s.ID, "ben")
	require.Equal(t, domain.CodeNotFound, domain.CodeOf(err))
	ended, err := f.s.EndSilence(f.ctx, f.tenant, s.ID, "ben")
	f.ok(err)
	require.True(t, ended.EndsAt.Before(s.EndsAt))
	again, err := f.s.EndSilence(f.ctx, f.tenant, s.ID, "eve")
	f.ok(err)
	require.Equal(t, ended, again)

	settings, err := f.s.FindAlertSettings(f.ctx, f.tenant)
	f.ok(err)
	require.Equal(t, noun.AlertSettings{TenantID: f.tenant}, settings)
	settings.DefaultChannels, settings.Quiet, settings.UpdatedBy = []domain.ChannelID{9}, noun.QuietHours{Zone: "UTC", From: "22:00", To: "06:00"}, "ann"
	saved, err := f.s.SaveAlertSettings(f.ctx, settings)
	f.ok(err)
	require.EqualValues(t, 1, saved.Version)
	require.Equal(t, settings.DefaultChannels, saved.DefaultChannels)
	require.Equal(t, settings.Quiet, saved.Quiet)
	_, err = f.s.SaveAlertSettings(f.ctx, settings)
	require.Equal(t, domain.CodeRevisionMismatch, domain.CodeOf(err))
	saved.DefaultChannels = nil
	saved, err = f.s.SaveAlertSettings(f.ctx, saved)
	f.ok(err)
	require.EqualValues(t, 2, saved.Version)
}

// testIncidentWishes: who decides about events and messages finds what the tenant says.
func testIncidentWishes(t *testing.T, f *alertFixture) {
	j := f.job(func(s *domain.JobSpec) { s.Labels = map[string]string{"team": "finance"} })
	channel, err := f.put(noun.AlertChannel{ID: domain.ChannelID(ids.Next()), TenantID: f.tenant,
		Spec: noun.AlertChannelSpec{Name: "ops", Kind: noun.ChannelEmail, Enabled: true, Emails: []string{"a@example.com", "b@example.com"}}})
	f.ok(err)
	_, err = f.s.SaveAlertSettings(f.ctx, noun.AlertSettings{TenantID: f.tenant, DefaultChannels: []domain.ChannelID{channel.ID}})
	f.ok(err)
	rule, err := f.putRule(noun.AlertRule{ID: domain.AlertRuleID(ids.Next()), TenantID: f.tenant, Spec: noun.AlertRuleSpec{
		Name: "r", Enabled: true, Match: noun.AlertMatcher{Jobs: []domain.JobID{j.ID}}, Condition: noun.AlertCondition{Kind: noun.ConditionFailures, Failures: 2, Of: 3}}})
	f.ok(err)
	now := f.now()
	_, err = f.s.CreateSilence(f.ctx, noun.AlertSilence{ID: domain.SilenceID(ids.Next()), TenantID: f.tenant, Reason: "x", StartsAt: now.Add(-time.Minute), EndsAt: now.Add(time.Hour)})
	f.ok(err)
	_, err = f.s.CreateSilence(f.ctx, noun.AlertSilence{ID: domain.SilenceID(ids.Next()), TenantID: f.tenant, Reason: "later", StartsAt: now.Add(time.Hour), EndsAt: now.Add(2 * time.Hour)})
	f.ok(err)
	f.finish(f.start(f.run(j)), domain.OutcomeSucceeded)
	f.finish(f.start(f.run(j)), domain.OutcomeFailed)
	_, err = f.s.ExpandAlertEvents(f.ctx, 1000, func(b *notify.AlertBatch) {
		of := b.Tenants[f.tenant]
		require.Equal(t, []domain.ChannelID{channel.ID}, of.Settings.DefaultChannels)
		require.Equal(t, "ops", of.Channels[channel.ID].Spec.Name)
		for n := range b.Events {
			if b.Events[n].Event.TenantID == f.tenant {
				require.Equal(t, rule.ID, b.Events[n].Rule.ID)
				require.Equal(t, []bool{true, false}, b.Events[n].Facts.Bad)
			}
		}
		i := groupAll(b, f.tenant, "wishes", noun.Receiver{Channel: "email", Target: "ops", ChannelID: channel.ID}, noun.Receiver{Channel: "slack", Target: "gone", ChannelID: 5})
		i.Rule, i.Severity = rule.ID, noun.SeverityCritical
	})
	f.ok(err)
	told := f.tellAll()
	require.Len(t, told, 1)
	require.Equal(t, rule.ID, told[0].Rule.ID)
	require.Equal(t, noun.SeverityCritical, told[0].Severity)
	require.Equal(t, map[string]string{"team": "finance"}, told[0].Labels)
	require.Len(t, told[0].Silences, 1)
	require.Len(t, told[0].Receivers, 2)
	targets := map[string]bool{}
	for _, d := range f.claimDeliveries(time.Minute) {
		targets[d.Delivery.Channel+" "+d.Delivery.Target] = true
		require.Equal(t, told[0].ID, d.Incident.ID)
	}
	require.Equal(t, map[string]bool{"email a@example.com": true, "email b@example.com": true, "slack gone": true}, targets)
}

// testLookedForRules: what is late, long or absent is found, once.
func testLookedForRules(t *testing.T, f *alertFixture) {
	late, long, well := f.job(nil), f.job(nil), f.job(nil)
	f.finish(f.start(f.run(well)), domain.OutcomeSucceeded)
	waits, runs := f.run(late), f.start(f.run(long))
	day := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	f.backfill(well, day, day.Add(time.Hour), nil)
	require.Len(t, f.drive(), 1, "what a backfill asks for is not late")
	f.ok(f.s.AgeStart(f.ctx, waits.ID, time.Hour))
	f.ok(f.s.AgeStart(f.ctx, runs.ID, time.Hour))
	condition := map[noun.AlertConditionKind]domain.AlertRuleID{}
	for _, kind := range []noun.AlertConditionKind{noun.ConditionLate, noun.ConditionLong, noun.ConditionAbsent} {
		r, err := f.putRule(noun.AlertRule{ID: domain.AlertRuleID(ids.Next()), TenantID: f.tenant, Spec: noun.AlertRuleSpec{
			Name: string(kind), Enabled: true, Match: noun.AlertMatcher{Executors: []domain.ExecutorID{f.executor}}, Condition: noun.AlertCondition{Kind: kind, After: 10 * time.Minute}}})
		f.ok(err)
		condition[kind] = r.ID
	}
	look := func() map[domain.AlertKind][]domain.JobID {
		t.Helper()
		for found := true; found; {
			var err error
			found, err = f.s.EvaluateAlertRules(f.ctx)
			f.ok(err)
		}
		out := map[domain.AlertKind][]domain.JobID{}
		_, err := f.s.ExpandAlertEvents(f.ctx, 1000, func(b *notify.AlertBatch) {
			for n := range b.Events {
				if e := &b.Events[n]; e.Event.TenantID == f.tenant && e.Event.Rule != 0 {
					require.Equal(t, e.Event.Rule, e.Rule.ID)
					require.Equal(t, e.Rule.Spec.Condition.Kind.Kind(), e.Event.Kind)
					out[e.Event.Kind] = append(out[e.Event.Kind], e.Event.JobID)
				}
			}
			groupAll(b, f.tenant, "looked")
		})
		f.ok(err)
		return out
	}
	first := look()
	require.Equal(t, []domain.JobID{late.ID}, first[domain.AlertRunLate])
	require.Equal(t, []domain.JobID{long.ID}, first[domain.AlertRunLong])
	require.Empty(t, first[domain.AlertJobAbsent], "the jobs and the rule are new")
	f.ok(f.s.AgeRules(f.ctx, f.tenant, time.Hour))
	second := look()
	require.ElementsMatch(t, []domain.JobID{late.ID, long.ID}, second[domain.AlertJobAbsent])
	require.Len(t, second, 1, "each is told once")
	f.ok(f.s.AgeRules(f.ctx, f.tenant, time.Hour))
	require.Empty(t, look())
	row, err := f.s.Rules().Find(f.ctx, f.tenant, int64(condition[noun.ConditionLate]))
	f.ok(err)
	r, err := noun.AlertRuleOf(&row)
	f.ok(err)
	r.Spec.Enabled = false
	_, err = f.putRule(r)
	f.ok(err)
	f.ok(f.s.AgeStart(f.ctx, f.run(late).ID, time.Hour))
	require.Empty(t, look())
}

// testSuccessRules: who wants to hear of no success pays for none, and who does hears of
// each once.
func testSuccessRules(t *testing.T, f *alertFixture) {
	j, other := f.job(nil), f.job(nil)
	f.finish(f.start(f.run(j)), domain.OutcomeSucceeded)
	require.Empty(t, f.expand(nil), "nobody wants to know, so nothing was written")
	rule := noun.AlertRule{ID: domain.AlertRuleID(ids.Next()), TenantID: f.tenant, Spec: noun.AlertRuleSpec{
		Name: "done", Enabled: true, Match: noun.AlertMatcher{Kinds: []domain.AlertKind{domain.AlertRunSucceeded}, Jobs: []domain.JobID{j.ID}},
		Condition: noun.AlertCondition{Kind: noun.ConditionEvents}}}
	rule, err := f.putRule(rule)
	f.ok(err)
	told := func() (out []notify.GroupedEvent) {
		t.Helper()
		_, err := f.s.ExpandAlertEvents(f.ctx, 1000, func(b *notify.AlertBatch) {
			out = nil
			for _, e := range b.Events {
				if e.Event.TenantID == f.tenant {
					out = append(out, e)
				}
			}
		})
		f.ok(err)
		return out
	}
	e := f.start(f.run(j))
	f.finish(e, domain.OutcomeSucceeded)
	f.finish(e, domain.OutcomeSucceeded) // a resend
	f.finish(f.start(f.run(other)), domain.OutcomeSucceeded)
	got := told()
	require.Len(t, got, 1)
	require.Equal(t, domain.AlertRunSucceeded, got[0].Event.Kind)
	require.Equal(t, e.ID, got[0].Event.ExecutionID)
	require.Equal(t, rule.ID, got[0].Rule.ID)
	a, b := f.start(f.run(j)), f.start(f.run(j))
	both := []store.AttemptReport{f.report(a, domain.OutcomeSucceeded), f.report(b, domain.OutcomeSucceeded)}
	_, err = f.s.FinishAttempts(f.ctx, both)
	f.ok(err)
	require.Len(t, told(), 1, "those of one transaction are counted together")

	rule.Spec.Condition = noun.AlertCondition{Kind: noun.ConditionKeyword, Keyword: "corrected"}
	rule, err = f.putRule(rule)
	f.ok(err)
	a, b = f.start(f.run(j)), f.start(f.run(j))
	both = []store.AttemptReport{f.report(a, domain.OutcomeSucceeded), f.report(b, domain.OutcomeSucceeded)}
	both[0].Report.Output = []byte(`{"rows": 3, "note": "2 CORRECTED"}`)
	_, err = f.s.FinishAttempts(f.ctx, both)
	f.ok(err)
	holds := map[domain.ExecutionID]bool{}
	for _, e := range told() {
		holds[e.Event.ExecutionID] = e.Rule.Spec.Condition.Holds(&e.Facts)
	}
	require.Equal(t, map[domain.ExecutionID]bool{a.ID: true, b.ID: false}, holds, "each is read, with its result")

	// Before one is closed, all that was to be told about it must have been.
	f.finish(f.start(f.run(j)), domain.OutcomeSucceeded)
	f.count(noun.JobIncidentKey(j.ID, domain.AlertRunSucceeded), noun.Receiver{Channel: "webhook", Target: "https://example.com", Job: j.ID})
	require.Len(t, f.tellAll(), 1)
	over := func() notify.DueIncident {
		t.Helper()
		_, err := f.s.ChangeIncident(f.ctx, f.tenant, f.incidents(notify.ListIncidentsParams{})[0].ID, func(i *noun.Incident, now time.Time) error {
			i.State, i.WakeAt = noun.IncidentResolved, now
			return nil
		})
		f.ok(err)
		due := f.tellAll()
		require.Len(t, due, 1)
		return due[0]
	}
	require.True(t, over().Unsent)
	due := f.claimDeliveries(time.Minute)
	require.Len(t, due, 1)
	require.True(t, over().Unsent, "it is under way")
	for _, d := range append(due, f.claimDeliveries(time.Minute)...) {
		f.ok(f.s.FinishDelivery(f.ctx, d.Delivery.ID, noun.DeliveryDelivered, 0, ""))
	}
	require.False(t, over().Unsent)

	rule.Spec.Enabled = false
	_, err = f.putRule(rule)
	f.ok(err)
	f.finish(f.start(f.run(j)), domain.OutcomeSucceeded)
	require.Empty(t, told())
}
