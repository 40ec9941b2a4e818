package notify

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/noun"
	"github.com/carillon-sched/carillon/admin/internal/domain"
)

func TestReceivers(t *testing.T) {
	all := domain.Alert{OnFailure: true, IncludeNoExecutor: true}
	for _, row := range []struct {
		name  string
		kind  domain.AlertKind
		owner string
		alert domain.Alert
		want  []string
	}{
		{"owner of a failed run", domain.AlertRunFailed, "ann@example.com", all, []string{"email ann@example.com"}},
		{"timed out", domain.AlertRunTimedOut, "ann@example.com", all, []string{"email ann@example.com"}},
		{"lost", domain.AlertRunLost, "ann@example.com", all, []string{"email ann@example.com"}},
		{"never started", domain.AlertRunMissed, "ann@example.com", all, []string{"email ann@example.com"}},
		{"never started, failures unwanted", domain.AlertRunMissed, "ann@example.com", domain.Alert{IncludeNoExecutor: true}, nil},
		{"no executor", domain.AlertNoExecutor, "ann@example.com", all, []string{"email ann@example.com"}},
		{"failures unwanted", domain.AlertRunFailed, "ann@example.com", domain.Alert{IncludeNoExecutor: true}, nil},
		{"no executor unwanted", domain.AlertNoExecutor, "ann@example.com", domain.Alert{OnFailure: true}, nil},
		{"a test is always wanted", domain.AlertTest, "ann@example.com", domain.Alert{}, []string{"email ann@example.com"}},
		{"kind of a newer version", "run_backwards", "ann@example.com", all, nil},
		{"clock of the database", domain.AlertClockJump, "ann@example.com", all, []string{"email ops@example.com", "webhook https://hook.example.com/ops"}},
		{"rolled back", domain.AlertRollback, "", domain.Alert{}, []string{"email ops@example.com", "webhook https://hook.example.com/ops"}},
		{"an executor comes and goes", domain.AlertFlapping, "", domain.Alert{}, []string{"email ops@example.com", "webhook https://hook.example.com/ops"}},
		{"nobody to tell", domain.AlertRunFailed, "", all, nil},
		{"everybody, each once", domain.AlertRunFailed, "ann@example.com",
			domain.Alert{OnFailure: true, Emails: []string{"bob@example.com", " Ann@Example.com ", "", "bob@example.com"}, WebhookURL: " https://hook.example.com/a "},
			[]string{"email ann@example.com", "email bob@example.com", "webhook https://hook.example.com/a"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := AlertContext{Event: domain.AlertEvent{ID: 8, TenantID: 3, Kind: row.kind},
				Job: domain.Job{Spec: domain.JobSpec{Owner: domain.Owner{Email: row.owner}, Alert: row.alert}}}
			var got []string
			receivers, _ := (Operators{Emails: []string{"ops@example.com"}, WebhookURL: "https://hook.example.com/ops"}).receivers(&GroupedEvent{AlertContext: c}, TenantAlerts{})
			for _, r := range receivers {
				require.False(t, r.Told)
				got = append(got, r.Channel+" "+r.Target)
			}
			require.Equal(t, row.want, got)
		})
	}
}

func TestRetryWait(t *testing.T) {
	for _, row := range []struct {
		name      string
		tries     int
		age, wish time.Duration
		spread    float64
		want      time.Duration
		ok        bool
	}{
		{"first, shortest", 1, 0, 0, 0, 9 * time.Second, true},
		{"first, middle", 1, 0, 0, 0.5, 10 * time.Second, true},
		{"fifth", 5, time.Hour, 0, 0.5, 10 * time.Minute, true},
		{"beyond the table", 99, time.Hour, 0, 0.5, 9 * time.Hour, true},
		{"not counted", 0, 0, 0, 0.5, 10 * time.Second, true},
		{"receiver wishes longer", 1, 0, 5 * time.Minute, 0.5, 5 * time.Minute, true},
		{"receiver wishes shorter", 5, 0, time.Second, 0.5, 10 * time.Minute, true},
		{"receiver's wish is bounded", 1, 0, 1000 * time.Hour, 0.5, time.Hour, true},
		{"eleventh", 11, 15 * time.Hour, 0, 0.5, 9 * time.Hour, true},
		{"twelfth", 12, 24 * time.Hour, 0, 0.5, 0, false},
		{"old, though tried once", 1, 26 * time.Hour, 0, 0.5, 0, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			got, ok := retryWait(row.tries, row.age, row.wish, row.spread)
			require.Equal(t, row.ok, ok)
			require.InDelta(t, row.want, got, float64(time.Millisecond))
		})
	}
	var sum time.Duration
	for _, w := range waits {
		sum += w
	}
	require.Less(t, sum, 24*time.Hour)
	require.Greater(t, sum, 23*time.Hour)
}

func TestDedupeKey(t *testing.T) {
	event := domain.AlertEvent{ID: 8, TenantID: 3, DedupeKey: "run_failed:7:1"}
	d := noun.Delivery{Channel: ChannelEmail, Target: "ann@example.com"}
	key := dedupeKey(event, d)
	require.Regexp(t, `^[0-9a-f]{32}$`, key)

	other := d
	other.Target = "bob@example.com"
	require.NotEqual(t, key, dedupeKey(event, other))
	other = d
	other.Channel = ChannelWebhook
	require.NotEqual(t, key, dedupeKey(event, other))
	for _, e := range []domain.AlertEvent{
		{ID: 8, TenantID: 4, DedupeKey: "run_failed:7:1"}, {ID: 8, TenantID: 3, DedupeKey: "run_failed:7:2"}, {ID: 8, TenantID: 3},
	} {
		require.NotEqual(t, key, dedupeKey(e, d))
	}
	d.Attempts, d.ID = 7, 99
	require.Equal(t, key, dedupeKey(event, d), "the same in every try")
	d.Incident = 5
	key = dedupeKey(event, d)
	d.Attempts = 8
	require.Equal(t, key, dedupeKey(event, d), "the same in every try")
	d.ID = 100
	require.NotEqual(t, key, dedupeKey(event, d), "each message of an incident has its own")
}

func TestTextsExistInBothLanguages(t *testing.T) {
	for kind := range titles {
		if kind == domain.AlertRecovered || kind == domain.AlertSchedulerBehind {
			continue // no event has it: TestTextsOfIncidents
		}
		n := &Notice{Event: domain.AlertEvent{Kind: kind}, Job: domain.Job{Spec: domain.JobSpec{Name: "close-day"}},
			Executor: domain.Executor{Name: "billing"}, Execution: &domain.Execution{Attempt: 3, State: domain.Succeeded}}
		for _, f := range []func(Language) string{n.Title, n.Summary} {
			require.NotEmpty(t, f(English))
			require.NotEqual(t, f(English), f(Chinese))
			require.NotContains(t, f(English)+f(Chinese), "%!")
		}
		require.Equal(t, !kind.Platform(), strings.Contains(n.Title(Chinese), "close-day"))
	}
	for _, s := range domain.States {
		require.NotEmpty(t, StateName(s, English))
		require.NotEmpty(t, StateName(s, Chinese))
	}
}

func TestTextsOfIncidents(t *testing.T) {
	for kind := range titles {
		if kind == domain.AlertRecovered || kind == domain.AlertTest {
			continue
		}
		for _, several := range []bool{false, true} {
			if kind == domain.AlertSchedulerBehind && !several {
				continue // it is the tenant's
			}
			for _, state := range noun.IncidentStates {
				n := &Notice{
					Event: domain.AlertEvent{Kind: kind, JobID: 1}, Job: domain.Job{ID: 1, Spec: domain.JobSpec{Name: "close-day"}}, Executor: domain.Executor{Name: "billing"},
					Incident: &noun.Incident{Kind: kind, Job: 1, State: state, Events: 4321, OpenedAt: time.Unix(1e9, 0), ResolvedAt: time.Unix(1e9, 0)},
				}
				n.Incident.Jobs = []noun.IncidentJob{{ID: 1, Name: "close-day", Events: 3}}
				if several {
					n.Incident.Job = 0
					n.Incident.Jobs = append(n.Incident.Jobs, noun.IncidentJob{ID: 2, Name: "open-day", Events: 3}, noun.IncidentJob{ID: 3, Events: 4315})
				}
				over := state == noun.IncidentResolved && !n.Incident.Momentary() // which nobody hears the end of
				for _, l := range []Language{English, Chinese} {
					title, summary := n.Title(l), n.Summary(l)
					require.NotContains(t, title+summary, "%!")
					require.Equal(t, over, strings.HasPrefix(title, titles[domain.AlertRecovered].in(l)[:6]), title)
					if kind.Platform() {
						continue
					}
					require.Equal(t, several && kind != domain.AlertSchedulerBehind, strings.Contains(title, "billing"), title)
					require.Contains(t, summary, "4321")
					require.Contains(t, summary, "2001-09-09 01:46:40 UTC")
					require.Equal(t, several && !over, strings.Contains(summary, "open-day"), summary)
				}
			}
		}
	}
}

func TestMissedRunsAreCounted(t *testing.T) {
	n := &Notice{Event: domain.AlertEvent{Kind: domain.AlertRunMissed, Missed: 1}, Execution: &domain.Execution{State: domain.Missed}}
	require.Equal(t, "The run never started.", n.Summary(English))
	n.Event.Missed = 1440
	require.Contains(t, n.Summary(English), "1440 runs of the job never started")
	require.Contains(t, n.Summary(Chinese), "1440")
}

func TestMovedOn(t *testing.T) {
	n := &Notice{Event: domain.AlertEvent{Kind: domain.AlertRunLost}, Execution: &domain.Execution{State: domain.Lost}}
	require.Empty(t, n.MovedOn(English))
	n.Execution.State = domain.Succeeded
	require.Equal(t, "Meanwhile the run has moved on; it is now: succeeded.", n.MovedOn(English))
	n.Execution = nil
	require.Empty(t, n.MovedOn(English))
}

func TestErrorText(t *testing.T) {
	for _, row := range []struct{ message, text, want string }{
		{"", "", ""}, {"boom", "", "boom"}, {"", "boom", "boom"}, {"boom", "boom", "boom"},
		{"no instance took it", "boom", "boom\nno instance took it"},
	} {
		n := &Notice{Execution: &domain.Execution{Message: row.message, Error: row.text}}
		require.Equal(t, row.want, n.ErrorText())
	}
}

func TestNoticeOfAJobThatIsGone(t *testing.T) {
	n := newNotice(DueDelivery{
		Delivery: noun.Delivery{Channel: ChannelEmail, Target: "ann@example.com", Attempts: 2},
		Context:  AlertContext{Event: domain.AlertEvent{ID: 1, TenantID: 1, JobID: 5, ExecutionID: 1001, Kind: domain.AlertRunLost}},
	}, &Options{BaseURL: "https://c.example.com", RunbookURL: "https://w.example.com/runbooks"})
	require.Equal(t, "https://w.example.com/runbooks#run_lost", n.RunbookURL)
	require.Equal(t, n.RunbookURL, NewPayload(n, English).Links.Runbook)
	content := n.standard(Chinese)
	require.Equal(t, Fact{"应急手册", n.RunbookURL}, content.Facts[len(content.Facts)-1])
	require.Equal(t, "#5", n.JobName())
	require.Equal(t, "https://c.example.com/runs/1001", n.RunURL)
	require.Equal(t, "https://c.example.com/jobs/5", n.JobURL)
	require.Equal(t, time.UTC, n.Zone())
	require.Equal(t, "Outcome unknown: #5", n.Title(English))
}

func TestParseLanguage(t *testing.T) {
	for in, want := range map[string]Language{"": English, "en": English, "zh": Chinese} {
		got, err := ParseLanguage(in)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	_, err := ParseLanguage("fr")
	require.Error(t, err)
}

// TestPilesOfRuns: a pile is quiet, says how many runs wait, and is over when none does.
func TestPilesOfRuns(t *testing.T) {
	n := &Notice{Event: domain.AlertEvent{Kind: domain.AlertRunsPileUp, Detail: domain.PileMessage(101, false)}, Job: domain.Job{Spec: domain.JobSpec{Name: "close-day"}}}
	require.Equal(t, SeverityWarning, n.Severity())
	require.Contains(t, n.Summary(English), "Runs take longer than the interval. 101 wait.")
	require.Contains(t, n.Summary(Chinese), "执行时间超过触发间隔，有 101 次执行在等待。")
	n.Event.Detail = domain.PileMessage(1000, true)
	require.Contains(t, n.Summary(English), "1000 runs wait for earlier ones, as many as may (maxWaiting). Further fires are discarded.")
	require.Contains(t, n.Summary(Chinese), "有 1000 次执行在等待之前的执行")

	d := &DueIncident{Incident: &noun.Incident{Kind: domain.AlertRunsPileUp, Job: 1}, Succeeded: time.Unix(1e9, 0), Waiting: 1}
	require.False(t, recovered(d, time.Unix(2e9, 0)), "runs of the job succeed meanwhile")
	d.Waiting = 0
	require.True(t, recovered(d, time.Unix(2e9, 0)))
	require.True(t, wanted(domain.AlertRunsPileUp, domain.DefaultAlert))
	require.False(t, wanted(domain.AlertRunsPileUp, domain.Alert{}))
}
