package noun

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

func TestRuleOf(t *testing.T) {
	finance, err := domain.ParseSelector("team=finance")
	require.NoError(t, err)
	rules := []AlertRule{
		{ID: 3, Spec: AlertRuleSpec{Enabled: true, Position: 9}},
		{ID: 1, Spec: AlertRuleSpec{Enabled: true, Match: AlertMatcher{Labels: finance, Kinds: []domain.AlertKind{domain.AlertRunFailed}}}},
		{ID: 2, Spec: AlertRuleSpec{Enabled: false, Position: 1}},
		{ID: 4, Spec: AlertRuleSpec{Enabled: true, Position: 2, Match: AlertMatcher{Executors: []domain.ExecutorID{7}, Jobs: []domain.JobID{5}}}},
	}
	SortRules(rules)
	for _, row := range []struct {
		kind     domain.AlertKind
		executor domain.ExecutorID
		job      domain.JobID
		labels   map[string]string
		want     domain.AlertRuleID
	}{
		{domain.AlertRunFailed, 7, 5, map[string]string{"team": "finance"}, 1},
		{domain.AlertRunLost, 7, 5, map[string]string{"team": "finance"}, 4},
		{domain.AlertRunLost, 7, 6, nil, 3},
		{domain.AlertRunLost, 8, 5, nil, 3},
	} {
		require.Equal(t, row.want, RuleOf(rules, row.kind, row.executor, row.job, row.labels).ID)
	}
	require.Nil(t, RuleOf(rules[:2], domain.AlertRunLost, 8, 5, nil))
}

func TestOnlyWhoNamesSuccessHearsOfIt(t *testing.T) {
	all := AlertRule{ID: 1, Spec: AlertRuleSpec{Enabled: true, Condition: AlertCondition{Kind: ConditionEvents}}}
	named := AlertRule{ID: 2, Spec: AlertRuleSpec{Enabled: true, Match: AlertMatcher{Kinds: []domain.AlertKind{domain.AlertRunSucceeded}, Jobs: []domain.JobID{5}}, Condition: AlertCondition{Kind: ConditionEvents}}}
	rules := []AlertRule{all, named}
	require.EqualValues(t, 2, RuleOf(rules, domain.AlertRunSucceeded, 7, 5, nil).ID, "the first one is about what went wrong")
	require.Nil(t, RuleOf(rules, domain.AlertRunSucceeded, 7, 6, nil))
	require.EqualValues(t, 1, RuleOf(rules, domain.AlertRunFailed, 7, 5, nil).ID)

	specs := []AlertRuleSpec{all.Spec, named.Spec}
	require.Equal(t, domain.SuccessCounted, SuccessWishOf(specs, 7, 5, nil))
	require.Equal(t, domain.SuccessUnwanted, SuccessWishOf(specs, 7, 6, nil))
	keyword := named.Spec
	keyword.Condition = AlertCondition{Kind: ConditionKeyword, Keyword: "x"}
	require.Equal(t, domain.SuccessEach, SuccessWishOf(append(specs, keyword), 7, 5, nil))
	keyword.Enabled = false
	require.Equal(t, domain.SuccessCounted, SuccessWishOf(append(specs, keyword), 7, 5, nil))

	named.Spec.Name, named.Spec.Severity = "n", SeverityInfo
	var c domain.Checker
	checkAlertRule(&named.Spec, &c)
	require.NoError(t, c.Err())
	named.Spec.Condition = AlertCondition{Kind: ConditionFailures, Failures: 1, Of: 2}
	checkAlertRule(&named.Spec, &c)
	require.ErrorContains(t, c.Err(), "is for the conditions events and keyword")
}

func TestConditions(t *testing.T) {
	failures := AlertCondition{Kind: ConditionFailures, Failures: 2, Of: 3}
	require.True(t, failures.Holds(&AlertFacts{Bad: []bool{true, false, true}}))
	require.False(t, failures.Holds(&AlertFacts{Bad: []bool{true, false, false, true}}), "of the last three")
	require.False(t, failures.Holds(&AlertFacts{Bad: []bool{true}}))
	keyword := AlertCondition{Kind: ConditionKeyword, Keyword: "Deadlock"}
	require.True(t, keyword.Holds(&AlertFacts{Text: "error 1213: deadlock found"}))
	require.False(t, keyword.Holds(&AlertFacts{}))
	events := AlertCondition{Kind: ConditionEvents}
	require.True(t, events.Holds(&AlertFacts{}))
}

func TestQuietHours(t *testing.T) {
	at := func(text string) time.Time {
		when, err := time.Parse(time.RFC3339, text)
		require.NoError(t, err)
		return when
	}
	night := QuietHours{Zone: "Europe/Berlin", From: "22:00", To: "06:30"}
	saturdays := QuietHours{Zone: "Europe/Berlin", From: "22:00", To: "06:30", Days: []time.Weekday{time.Saturday}}
	noon := QuietHours{Zone: "UTC", From: "12:00", To: "13:00"}
	for _, row := range []struct {
		quiet     QuietHours
		now, want string // empty: none
	}{
		{night, "2026-11-26T20:59:00Z", ""},
		{night, "2026-11-26T21:00:00Z", "2026-11-27T05:30:00Z"},
		{night, "2026-11-27T05:29:59Z", "2026-11-27T05:30:00Z"},
		{night, "2026-11-27T05:30:00Z", ""},
		{night, "2026-10-24T21:00:00Z", "2026-10-25T05:30:00Z"}, // the hour is there twice that night
		{saturdays, "2026-11-28T22:00:00Z", "2026-11-29T05:30:00Z"},
		{saturdays, "2026-11-29T05:00:00Z", "2026-11-29T05:30:00Z"},
		{saturdays, "2026-11-29T22:00:00Z", ""},
		{noon, "2026-11-26T12:30:00Z", "2026-11-26T13:00:00Z"},
		{noon, "2026-11-26T13:30:00Z", ""},
		{QuietHours{}, "2026-11-26T13:30:00Z", ""},
	} {
		want := time.Time{}
		if row.want != "" {
			want = at(row.want)
		}
		require.Equal(t, want, row.quiet.Until(at(row.now)), "%+v at %s", row.quiet, row.now)
	}
}

func TestMatchesIncident(t *testing.T) {
	test, err := domain.ParseSelector("env=test")
	require.NoError(t, err)
	one := &Incident{Kind: domain.AlertRunFailed, Executor: 7, Job: 5}
	several := &Incident{Kind: domain.AlertRunLost, Executor: 7, Jobs: []IncidentJob{{ID: 5}, {ID: 6}}}
	for _, row := range []struct {
		m            AlertMatcher
		one, several bool
	}{
		{AlertMatcher{}, true, true},
		{AlertMatcher{Kinds: []domain.AlertKind{domain.AlertRunLost}}, false, true},
		{AlertMatcher{Executors: []domain.ExecutorID{7}}, true, true},
		{AlertMatcher{Executors: []domain.ExecutorID{8}}, false, false},
		{AlertMatcher{Jobs: []domain.JobID{5}}, true, false},
		{AlertMatcher{Jobs: []domain.JobID{5, 6, 7}}, true, true},
		{AlertMatcher{Labels: test}, true, false},
	} {
		require.Equal(t, row.one, row.m.MatchesIncident(one, map[string]string{"env": "test"}), "%+v", row.m)
		require.Equal(t, row.several, row.m.MatchesIncident(several, nil), "%+v", row.m)
	}
}
