package notify

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/noun"
	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// A lost instance is told once, and its incident closes by itself.
func TestALostInstanceIsToldOnce(t *testing.T) {
	b := newBoard(t)
	lost := b.event(domain.AlertInstanceGone, 0, "")
	lost.Event.Executor = 9
	b.happen(lost)
	b.pass(24 * time.Hour)
	require.Len(t, b.told, 1)
	require.Empty(t, b.live)
}

// What has no instance's cause is told with it: to all who would have been told of it,
// by one message.
func TestAnOutageExplains(t *testing.T) {
	b := newBoard(t)
	b.tenant.Rules = []noun.AlertRule{{ID: 7, Spec: noun.AlertRuleSpec{
		Name: "dead man", Enabled: true, Severity: noun.SeverityInfo, Channels: []domain.ChannelID{50}, Condition: noun.AlertCondition{Kind: noun.ConditionAbsent, After: time.Hour}}}}
	absent := func(job int) AlertContext {
		c := b.event(domain.AlertJobAbsent, job, "")
		c.Event.Rule, c.Event.ExecutionID = 7, 0
		return c
	}
	noInstance := b.event(domain.AlertNoExecutor, 1, "")
	noInstance.Job.Spec.Alert.IncludeNoExecutor = true
	b.happen(absent(1), noInstance) // in whatever order they come
	b.pass(2 * time.Second)
	require.Equal(t, []string{"open no_executor executor 9 to on-call", "open no_executor executor 9 to owner-1@example.com"}, b.told)
	b.happen(absent(2), b.event(domain.AlertRunMissed, 3, ""), b.event(domain.AlertRunLate, 4, ""))
	require.Len(t, b.live, 1, "no incident of their own")
	b.pass(2 * time.Second)
	require.Len(t, b.due, 1)
	for _, d := range b.due {
		require.EqualValues(t, 5, d.Events)
		require.Equal(t, domain.AlertNoExecutor, d.Kind)
		require.Equal(t, noun.SeverityWarning, d.Severity)
		var channels []domain.ChannelID
		for _, r := range d.Receivers {
			require.True(t, r.Told, r.Target)
			if r.ChannelID != 0 {
				channels = append(channels, r.ChannelID)
			}
		}
		require.Equal(t, []domain.ChannelID{50}, channels, "the dead man's switch is told of the outage")
		d.Online = 1
	}
	b.pass(time.Minute)
	b.happen(absent(2))
	require.Len(t, b.due, 2, "the outage is over: it explains nothing any more")
}

// Executors that died and a node that stood still are one incident each, with one
// message to each receiver, however their jobs' runs were lost, missed or late, and in
// which order that is found.
func TestOneIncidentPerCause(t *testing.T) {
	b := newBoard(t)
	b.offline = map[domain.ExecutorID]bool{}
	on := func(executor domain.ExecutorID, kind domain.AlertKind, job int, reason domain.Reason) AlertContext {
		c := b.event(kind, job, reason)
		c.Executor = domain.Executor{ID: executor, Name: fmt.Sprintf("executor-%d", executor)}
		c.Job.Spec.Owner.Email = "ann@example.com"
		return c
	}
	for x := range domain.ExecutorID(3) {
		b.offline[x+10] = true
	}
	reasons := []domain.Reason{domain.ReasonMisfire, domain.ReasonMisfireWindow, domain.ReasonMisfireCap, domain.ReasonCoalesced}
	for minute := range 40 {
		for x := range domain.ExecutorID(3) {
			job := int(x)*10 + minute%4
			b.happen(on(x+10, domain.AlertRunLost, job, domain.ReasonProcessDied))
			b.happen(on(x+10, domain.AlertRunMissed, job+1, domain.ReasonNoExecutor), on(x+10, domain.AlertRunFailed, job+2, domain.ReasonSendFailed))
			b.happen(on(x+10, domain.AlertNoExecutor, job, ""), on(x+10, domain.AlertRunLate, job, ""))
		}
		if minute == 0 {
			for n, reason := range reasons {
				b.happen(on(domain.ExecutorID(20+n), domain.AlertRunMissed, 100+n, reason))
			}
			b.happen(on(30, domain.AlertRunLost, 110, domain.ReasonLeaseLost))
		}
		b.pass(time.Second)
	}
	require.ElementsMatch(t, []string{
		"open no_executor executor 10 to ann@example.com", "open no_executor executor 11 to ann@example.com", "open no_executor executor 12 to ann@example.com",
		"resolved scheduler_behind executor 0 to ann@example.com",
	}, b.told)
	require.Len(t, b.live, 4)
	for key, i := range b.live {
		if key.Key == noun.SchedulerIncidentKey {
			require.Equal(t, []any{int64(5), noun.IncidentResolved}, []any{i.Events, i.State}, "what it is late with is known when it has caught up")
		} else {
			require.Equal(t, []any{int64(200), noun.IncidentOpen}, []any{i.Events, i.State})
		}
	}
}

// A handler's own error has a message of its own, and so has an event that a rule calls
// critical.
func TestNotEverythingIsPartOfACause(t *testing.T) {
	b := newBoard(t)
	b.offline = map[domain.ExecutorID]bool{9: true}
	b.tenant.Rules = []noun.AlertRule{{ID: 7, Spec: noun.AlertRuleSpec{Enabled: true, Severity: noun.SeverityCritical, Match: noun.AlertMatcher{Jobs: []domain.JobID{4}}}}}
	b.happen(
		b.event(domain.AlertRunLost, 1, domain.ReasonProcessDied), b.event(domain.AlertRunFailed, 2, domain.ReasonHandlerFailed), b.event(domain.AlertRunTimedOut, 3, domain.ReasonTimeout),
		b.event(domain.AlertRunLost, 4, domain.ReasonProcessDied), b.event(domain.AlertRunMissed, 4, domain.ReasonMisfire),
	)
	b.pass(5 * time.Second)
	require.ElementsMatch(t, []string{
		"open no_executor executor 9 to owner-1@example.com", "open run_failed job 2 to owner-2@example.com", "open run_timed_out job 3 to owner-0@example.com",
		"open run_lost job 4 to owner-1@example.com", "open run_missed job 4 to owner-1@example.com",
	}, b.told)
}

// With instances online a lost run is its job's trouble. When the last instance goes,
// incidents without a message become parts of the outage.
func TestAnOutageTakesInWhatIsUntold(t *testing.T) {
	b := newBoard(t)
	b.happen(b.event(domain.AlertRunLost, 1, domain.ReasonProcessDied))
	require.Contains(t, b.live, noun.IncidentKey{Tenant: 3, Key: noun.JobIncidentKey(1, domain.AlertRunLost)})
	b.offline = map[domain.ExecutorID]bool{9: true}
	batch := b.happen(b.event(domain.AlertRunMissed, 2, domain.ReasonNoExecutor))
	require.Equal(t, []any{domain.AlertNoExecutor, int64(2)}, []any{batch.Events[0].Incident.Kind, batch.Events[0].Incident.Events})
	require.Len(t, b.live, 1)
}

// A run with a short wait for an instance shows the outage. Its owner is told, even if
// outages are the only alerts that the job asks for.
func TestAShortDispatchTimeoutShowsTheOutage(t *testing.T) {
	b := newBoard(t)
	missed := b.event(domain.AlertRunMissed, 1, domain.ReasonNoExecutor)
	missed.Job.Spec.Alert.OnFailure = false
	b.happen(missed)
	b.pass(time.Minute)
	require.Empty(t, b.told, "the executor is there")
	b.offline = map[domain.ExecutorID]bool{9: true}
	b.happen(missed)
	b.pass(5 * time.Second)
	require.Equal(t, []string{"open no_executor executor 9 to owner-1@example.com"}, b.told)
}
