package notify

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/noun"
	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// board is the incidents of a played database.
type board struct {
	t    *testing.T
	s    *Service
	now  time.Time
	ids  int64
	live map[noun.IncidentKey]*noun.Incident
	told []string // kind, and job or executor, of each message
	due  map[domain.IncidentID]*DueIncident

	tenant   TenantAlerts
	silences []noun.AlertSilence
	facts    noun.AlertFacts // of every event
	offline  map[domain.ExecutorID]bool
}

func newBoard(t *testing.T) *board {
	t.Helper()
	return &board{
		t: t, s: New(Options{Operators: Operators{Emails: []string{"ops@example.com"}}}), now: time.Unix(1e9, 0).UTC(),
		live: map[noun.IncidentKey]*noun.Incident{}, due: map[domain.IncidentID]*DueIncident{},
		tenant: TenantAlerts{Channels: map[domain.ChannelID]noun.AlertChannel{50: {ID: 50, Spec: noun.AlertChannelSpec{Kind: noun.ChannelSlack, Name: "on-call"}}}},
	}
}

// event is one of a job of executor 9, whose owner has an address of its own.
func (b *board) event(kind domain.AlertKind, job int, reason domain.Reason) AlertContext {
	b.ids++
	spec := domain.JobSpec{Name: fmt.Sprintf("job-%d", job), Alert: domain.DefaultAlert, Owner: domain.Owner{Email: fmt.Sprintf("owner-%d@example.com", job%3)}}
	return AlertContext{
		Event: domain.AlertEvent{ID: b.ids, TenantID: 3, Kind: kind, JobID: domain.JobID(job), ExecutionID: domain.ExecutionID(b.ids), Reason: reason},
		Job:   domain.Job{ID: domain.JobID(job), Spec: spec}, Executor: domain.Executor{ID: 9, Name: "billing"},
	}
}

// happen groups events as the store does.
func (b *board) happen(contexts ...AlertContext) *AlertBatch {
	batch := &AlertBatch{Now: b.now, Live: b.live, Offline: b.offline, Recent: map[domain.ExecutorID][]*noun.Incident{}, NewID: func() domain.IncidentID {
		b.ids++
		return domain.IncidentID(b.ids)
	}, Tenants: map[domain.TenantID]TenantAlerts{3: b.tenant}}
	for _, i := range b.live {
		if i.Job != 0 && i.Live {
			batch.Recent[i.Executor] = append(batch.Recent[i.Executor], i)
		}
	}
	for _, c := range contexts {
		e := GroupedEvent{AlertContext: c, Facts: b.facts}
		e.Decide(b.tenant.Rules)
		batch.Events = append(batch.Events, e)
	}
	b.s.group(batch)
	b.forgetClosed()
	for _, e := range batch.Events {
		if e.Incident == nil {
			continue
		}
		d := b.due[e.Incident.ID]
		if d == nil {
			d = &DueIncident{Incident: e.Incident}
			b.due[e.Incident.ID] = d
		}
	receivers:
		for _, r := range e.Receivers {
			for _, known := range d.Receivers {
				if known.Key() == r.Key() {
					continue receivers
				}
			}
			d.Receivers = append(d.Receivers, r)
		}
	}
	return batch
}

func (b *board) forgetClosed() {
	for key, i := range b.live {
		if !i.Live {
			delete(b.live, key)
		}
	}
}

// pass lets time pass, and the service tell.
func (b *board) pass(d time.Duration) {
	b.t.Helper()
	defer b.forgetClosed()
	for end := b.now.Add(d); ; {
		var next *DueIncident
		for _, d := range b.due {
			if d.Live && !d.WakeAt.After(end) && (next == nil || d.WakeAt.Before(next.WakeAt)) {
				next = d
			}
		}
		if next == nil {
			b.now = end
			return
		}
		b.now, next.Told, next.TenantAlerts, next.Silences = next.WakeAt, nil, b.tenant, nil
		for n := range b.tenant.Rules {
			if b.tenant.Rules[n].ID == next.Incident.Rule {
				next.Rule = &b.tenant.Rules[n]
			}
		}
		for _, s := range b.silences {
			if !s.StartsAt.After(b.now) && s.EndsAt.After(b.now) {
				next.Silences = append(next.Silences, s)
			}
		}
		b.s.tell(b.now, []*DueIncident{next})
		for _, n := range next.Told {
			next.Receivers[n].Told = true
			what := fmt.Sprintf("job %s", next.Job)
			if next.Job == 0 {
				what = fmt.Sprintf("executor %s", next.Executor)
			}
			b.told = append(b.told, fmt.Sprintf("%s %s %s", next.State, next.Incident.Kind, what)+" to "+next.Receivers[n].Target)
		}
	}
}

func TestOneMessagePerIncident(t *testing.T) {
	b := newBoard(t)
	b.happen(b.event(domain.AlertRunFailed, 1, domain.ReasonHandlerFailed), b.event(domain.AlertRunFailed, 1, domain.ReasonHandlerFailed))
	b.happen(b.event(domain.AlertRunFailed, 1, domain.ReasonHandlerFailed), b.event(domain.AlertRunTimedOut, 2, domain.ReasonTimeout))
	b.pass(time.Minute)
	require.ElementsMatch(t, []string{"open run_failed job 1 to owner-1@example.com", "open run_timed_out job 2 to owner-2@example.com"}, b.told)
}

// 1,000 jobs of one dead executor make one message to each of their owners.
func TestOneMessageOfAThousandJobs(t *testing.T) {
	b := newBoard(t)
	for round := range 100 {
		var events []AlertContext
		for n := range 10 {
			kind, reason := domain.AlertRunLost, domain.ReasonProcessDied
			switch n % 3 {
			case 1:
				kind, reason = domain.AlertRunMissed, domain.ReasonNoExecutor
			case 2:
				kind, reason = domain.AlertRunFailed, domain.ReasonSendFailed
			}
			events = append(events, b.event(kind, 1+round*10+n, reason))
		}
		b.happen(events...)
		b.pass(100 * time.Millisecond)
	}
	b.happen(b.event(domain.AlertNoExecutor, 5, ""))
	b.pass(30 * time.Second)
	require.ElementsMatch(t, []string{
		"open run_lost executor 9 to owner-0@example.com", "open run_lost executor 9 to owner-1@example.com", "open run_lost executor 9 to owner-2@example.com",
	}, b.told)
	require.Len(t, b.live, 1)
	for _, i := range b.live {
		require.EqualValues(t, 1001, i.Events)
		require.Len(t, i.Jobs, noun.MaxIncidentJobs)
	}
}

// The first few of a storm are single jobs' incidents until there are enough; those
// that nobody was told of become a part of it.
func TestAStormTakesInWhatIsUntold(t *testing.T) {
	b := newBoard(t)
	for job := range stormJobs - 1 {
		b.happen(b.event(domain.AlertRunFailed, job+1, domain.ReasonHandlerFailed))
	}
	require.Len(t, b.live, stormJobs-1)
	b.happen(b.event(domain.AlertRunFailed, stormJobs, domain.ReasonHandlerFailed))
	require.Len(t, b.live, 1)
	for _, i := range b.live {
		require.EqualValues(t, stormJobs, i.Events)
	}
}

func TestFewJobsAreNoStorm(t *testing.T) {
	b := newBoard(t)
	for job := range 50 {
		b.happen(b.event(domain.AlertRunFailed, job+1, domain.ReasonHandlerFailed))
		b.pass(stormWindow / 2)
	}
	require.Len(t, b.told, 50)
}

func TestWhoComesLaterIsTold(t *testing.T) {
	b := newBoard(t)
	b.happen(b.event(domain.AlertNoExecutor, 1, ""))
	b.pass(time.Minute)
	require.Equal(t, []string{"open no_executor executor 9 to owner-1@example.com"}, b.told)
	b.happen(b.event(domain.AlertNoExecutor, 2, ""), b.event(domain.AlertNoExecutor, 4, ""))
	b.pass(2 * time.Second)
	require.Equal(t, "open no_executor executor 9 to owner-2@example.com", b.told[1])
	require.Len(t, b.told, 2, "the first one knows")
}

func TestRecovery(t *testing.T) {
	b := newBoard(t)
	b.happen(b.event(domain.AlertNoExecutor, 1, ""), b.event(domain.AlertRunFailed, 2, domain.ReasonHandlerFailed))
	b.pass(time.Minute)
	require.Len(t, b.told, 2)
	for _, d := range b.due {
		if d.Job == 0 {
			d.Online = 1
		} else {
			d.Succeeded = b.now
		}
	}
	b.pass(time.Minute)
	require.ElementsMatch(t, []string{"resolved no_executor executor 9 to owner-1@example.com", "resolved run_failed job 2 to owner-2@example.com"}, b.told[2:])
	// It comes back at once: the same incident, and it is not told yet.
	b.happen(b.event(domain.AlertNoExecutor, 1, ""))
	b.pass(time.Second)
	require.Len(t, b.told, 4)
}

func TestUnwantedEventsAreNotCounted(t *testing.T) {
	b := newBoard(t)
	e := b.event(domain.AlertRunFailed, 1, domain.ReasonHandlerFailed)
	e.Job.Spec.Alert = domain.Alert{}
	b.happen(e)
	require.Empty(t, b.live)
	test := b.event(domain.AlertTest, 1, "")
	batch := b.happen(test)
	require.Empty(t, b.live)
	require.Len(t, batch.Direct, 1, "a test is told at once")
	clock := AlertContext{Event: domain.AlertEvent{ID: 1, Kind: domain.AlertClockJump}}
	b.happen(clock)
	require.Len(t, b.live, 1)
	b.pass(time.Minute)
	require.Equal(t, []string{"open clock_jump executor 0 to ops@example.com"}, b.told)
}

func TestRulesDecide(t *testing.T) {
	b := newBoard(t)
	b.tenant.Rules = []noun.AlertRule{
		{ID: 1, Spec: noun.AlertRuleSpec{Enabled: true, Match: noun.AlertMatcher{Jobs: []domain.JobID{1}}, Condition: noun.AlertCondition{Kind: noun.ConditionFailures, Failures: 2, Of: 3}}},
		{ID: 2, Spec: noun.AlertRuleSpec{Enabled: true, Match: noun.AlertMatcher{Jobs: []domain.JobID{2}}, Condition: noun.AlertCondition{Kind: noun.ConditionEvents}, Severity: noun.SeverityCritical, Channels: []domain.ChannelID{50}}},
		{ID: 3, Spec: noun.AlertRuleSpec{Enabled: true, Match: noun.AlertMatcher{Jobs: []domain.JobID{3}}, Condition: noun.AlertCondition{Kind: noun.ConditionEvents}, Mute: true}},
	}
	b.facts = noun.AlertFacts{Bad: []bool{true, false, false}}
	for job := range 4 {
		b.happen(b.event(domain.AlertRunFailed, job+1, domain.ReasonHandlerFailed))
	}
	b.pass(2 * time.Second)
	require.ElementsMatch(t, []string{"open run_failed job 2 to on-call", "open run_failed job 4 to owner-1@example.com"}, b.told)
	b.facts.Bad[1] = true
	b.happen(b.event(domain.AlertRunFailed, 1, domain.ReasonHandlerFailed))
	b.pass(2 * time.Second)
	require.Equal(t, "open run_failed job 1 to owner-1@example.com", b.told[2], "without channels the job's settings say who")
	require.Len(t, b.live, 4, "one is muted, and shown")
}

func TestTheTenantsDefault(t *testing.T) {
	b := newBoard(t)
	b.tenant.Settings.DefaultChannels = []domain.ChannelID{50, 51}
	nobody := b.event(domain.AlertRunFailed, 1, domain.ReasonHandlerFailed)
	nobody.Job.Spec.Owner = domain.Owner{}
	b.happen(nobody, b.event(domain.AlertRunFailed, 2, domain.ReasonHandlerFailed))
	b.pass(2 * time.Second)
	require.ElementsMatch(t, []string{"open run_failed job 1 to on-call", "open run_failed job 1 to #51", "open run_failed job 2 to owner-2@example.com"}, b.told)
}

func TestSilence(t *testing.T) {
	b := newBoard(t)
	b.silences = []noun.AlertSilence{{StartsAt: b.now, EndsAt: b.now.Add(time.Hour), Match: noun.AlertMatcher{Kinds: []domain.AlertKind{domain.AlertRunFailed}}}}
	b.happen(b.event(domain.AlertRunFailed, 1, domain.ReasonHandlerFailed), b.event(domain.AlertRunFailed, 2, domain.ReasonHandlerFailed), b.event(domain.AlertRunLost, 3, domain.ReasonProcessDied))
	b.pass(30 * time.Minute)
	require.Equal(t, []string{"open run_lost job 3 to owner-0@example.com"}, b.told)
	for _, d := range b.due {
		if d.Job == 2 {
			d.Succeeded = b.now
		}
	}
	b.pass(31 * time.Minute)
	require.Equal(t, []string{"open run_failed job 1 to owner-1@example.com"}, b.told[1:], "what was over by its end is not told")
}

func TestQuietHoursHoldMessagesBack(t *testing.T) {
	b := newBoard(t) // at 01:46:40 UTC
	b.tenant.Settings.Quiet = noun.QuietHours{Zone: "UTC", From: "22:00", To: "06:00"}
	b.tenant.Rules = []noun.AlertRule{{ID: 2, Spec: noun.AlertRuleSpec{Enabled: true, Match: noun.AlertMatcher{Jobs: []domain.JobID{2}}, Condition: noun.AlertCondition{Kind: noun.ConditionEvents}, Severity: noun.SeverityCritical}}}
	b.happen(b.event(domain.AlertRunFailed, 1, domain.ReasonHandlerFailed), b.event(domain.AlertRunFailed, 2, domain.ReasonHandlerFailed))
	b.pass(time.Hour)
	require.Equal(t, []string{"open run_failed job 2 to owner-2@example.com"}, b.told, "the critical one")
	for _, d := range b.due {
		if d.Job == 1 {
			d.Succeeded = b.now
		}
	}
	b.pass(4 * time.Hour)
	require.Equal(t, []string{"resolved run_failed job 1 to owner-1@example.com"}, b.told[1:], "in the morning all is told, also what is over")
}

// A success is told, and that is all: nobody hears that it is over, however often it
// comes nobody is told more often than of anything else, and a silence swallows it.
func TestSuccessesAreTold(t *testing.T) {
	b := newBoard(t)
	b.happen(b.event(domain.AlertRunSucceeded, 1, ""))
	require.Empty(t, b.live, "its rule is gone")
	b.tenant.Rules = []noun.AlertRule{{ID: 2, Spec: noun.AlertRuleSpec{
		Enabled: true, Match: noun.AlertMatcher{Kinds: []domain.AlertKind{domain.AlertRunSucceeded}}, Condition: noun.AlertCondition{Kind: noun.ConditionEvents},
		Channels: []domain.ChannelID{50}, EscalateAfter: time.Minute, EscalateTo: []domain.ChannelID{51}}}}
	const message = "resolved run_succeeded job 1 to on-call" // over as soon as it is told
	first := b.happen(b.event(domain.AlertRunSucceeded, 1, "")).Events[0].Incident
	b.pass(24 * time.Hour)
	require.Equal(t, []string{message}, b.told)
	require.False(t, first.Live)
	b.told = nil
	for range 60 { // once a minute
		b.happen(b.event(domain.AlertRunSucceeded, 1, ""))
		b.pass(time.Minute)
	}
	require.Equal(t, []string{message, message, message}, b.told, "at once, after 5 minutes and after 20 more")
	b.pass(24 * time.Hour)
	require.Len(t, b.told, 4, "and the rest of them")
	b.told = nil
	b.silences = []noun.AlertSilence{{StartsAt: b.now, EndsAt: b.now.Add(time.Hour)}}
	b.happen(b.event(domain.AlertRunSucceeded, 1, ""))
	b.pass(24 * time.Hour)
	require.Empty(t, b.told)
	for job := range stormJobs {
		b.happen(b.event(domain.AlertRunSucceeded, job+1, ""))
	}
	b.pass(time.Hour)
	require.Equal(t, []string{"resolved run_succeeded executor 9 to on-call"}, b.told, "one message for many jobs")
}

// Products that keep an alert open until it is closed hear when an incident of successes
// closes, after all that was to be told about it; PagerDuty only where it was an incident.
func TestSuccessesAreClosed(t *testing.T) {
	b := newBoard(t)
	channel := func(id domain.ChannelID, kind noun.ChannelKind) noun.AlertChannel {
		return noun.AlertChannel{ID: id, Spec: noun.AlertChannelSpec{Kind: kind, Name: string(kind)}}
	}
	b.tenant.Channels[51], b.tenant.Channels[52] = channel(51, noun.ChannelOpsgenie), channel(52, noun.ChannelPagerDuty)
	rule := noun.AlertRule{ID: 2, Spec: noun.AlertRuleSpec{
		Enabled: true, Match: noun.AlertMatcher{Kinds: []domain.AlertKind{domain.AlertRunSucceeded}}, Condition: noun.AlertCondition{Kind: noun.ConditionEvents},
		Severity: noun.SeverityWarning, Channels: []domain.ChannelID{50, 51, 52}}}
	const toSlack, toOpsgenie, toPagerDuty = "resolved run_succeeded job 1 to on-call", "resolved run_succeeded job 1 to opsgenie", "resolved run_succeeded job 1 to pagerduty"
	for _, c := range []struct {
		severity noun.Severity
		closed   []string
	}{{noun.SeverityWarning, []string{toOpsgenie}}, {noun.SeverityCritical, []string{toOpsgenie, toPagerDuty}}} {
		rule.Spec.Severity, b.told = c.severity, nil
		b.tenant.Rules = []noun.AlertRule{rule}
		i := b.happen(b.event(domain.AlertRunSucceeded, 1, "")).Events[0].Incident
		b.due[i.ID].Unsent = true
		b.pass(time.Hour)
		require.Equal(t, []string{toSlack, toOpsgenie, toPagerDuty}, b.told, c.severity)
		require.True(t, i.Live, "a message is on its way, which the end must not overtake")
		phase := func() Phase {
			return newNotice(DueDelivery{Incident: i, Context: AlertContext{Event: domain.AlertEvent{TenantID: 3, Kind: domain.AlertRunSucceeded}}}, &b.s.opt).Phase
		}
		require.Equal(t, PhaseTrigger, phase())
		b.told, b.due[i.ID].Unsent = nil, false
		b.pass(24 * time.Hour)
		require.Equal(t, c.closed, b.told)
		require.False(t, i.Live)
		require.Equal(t, PhaseResolve, phase())
	}
}

func TestEscalation(t *testing.T) {
	b := newBoard(t)
	b.tenant.Rules = []noun.AlertRule{{ID: 2, Spec: noun.AlertRuleSpec{Enabled: true, Condition: noun.AlertCondition{Kind: noun.ConditionEvents}, EscalateAfter: 30 * time.Minute, EscalateTo: []domain.ChannelID{50}}}}
	b.happen(b.event(domain.AlertRunFailed, 1, domain.ReasonHandlerFailed))
	b.happen(b.event(domain.AlertRunTimedOut, 2, domain.ReasonTimeout))
	b.pass(10 * time.Minute)
	require.Len(t, b.told, 2)
	for _, d := range b.due {
		if d.Job == 2 {
			require.NoError(t, d.Acknowledge(b.now, "ann"))
		}
	}
	b.pass(21 * time.Minute)
	require.Equal(t, []string{"open run_failed job 1 to on-call"}, b.told[2:], "nobody was at it")
	for _, d := range b.due {
		d.Succeeded = b.now
	}
	b.pass(2 * time.Minute)
	require.ElementsMatch(t, []string{"resolved run_failed job 1 to owner-1@example.com", "resolved run_failed job 1 to on-call", "resolved run_timed_out job 2 to owner-2@example.com"}, b.told[3:])
}
