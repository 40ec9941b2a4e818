package alertsql

import (
	"encoding/json"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/noun"
	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// matcherDocument is the column matcher of alert_silences, and a part of
// alertRuleDocument.
type matcherDocument struct {
	Kinds     []domain.AlertKind  `json:"kinds,omitempty"`
	Executors []domain.ExecutorID `json:"executors,omitempty"`
	Jobs      []domain.JobID      `json:"jobs,omitempty"`
	Labels    string              `json:"labels,omitempty"`
}

func toMatcherDocument(m *noun.AlertMatcher) matcherDocument {
	return matcherDocument{m.Kinds, m.Executors, m.Jobs, m.Labels.Text}
}

func (d *matcherDocument) matcher() (noun.AlertMatcher, error) {
	labels, err := domain.ParseSelector(d.Labels)
	return noun.AlertMatcher{Kinds: d.Kinds, Executors: d.Executors, Jobs: d.Jobs, Labels: labels}, err
}

// encodeMatcher writes what a silence matches.
func encodeMatcher(m *noun.AlertMatcher) (string, error) {
	text, err := json.Marshal(toMatcherDocument(m))
	return string(text), err
}

// decodeMatcher reads what encodeMatcher wrote.
func decodeMatcher(text string) (noun.AlertMatcher, error) {
	var d matcherDocument
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		return noun.AlertMatcher{}, err
	}
	return d.matcher()
}

// alertRuleDocument is the column spec of alert_rules.
type alertRuleDocument struct {
	Description string                  `json:"description,omitempty"`
	Enabled     bool                    `json:"enabled"`
	Position    int                     `json:"position,omitempty"`
	Match       matcherDocument         `json:"match"`
	Condition   noun.AlertConditionKind `json:"condition"`
	Failures    int                     `json:"failures,omitempty"`
	Of          int                     `json:"of,omitempty"`
	Keyword     string                  `json:"keyword,omitempty"`
	Severity    noun.Severity           `json:"severity"`
	Channels    []domain.ChannelID      `json:"channels,omitempty"`
	Mute        bool                    `json:"mute,omitempty"`
	RepeatMS    int64                   `json:"repeatMs,omitempty"`
	Quiet       *noun.QuietHours        `json:"quiet,omitempty"`
	EscalateMS  int64                   `json:"escalateMs,omitempty"`
	EscalateTo  []domain.ChannelID      `json:"escalateTo,omitempty"`
	AfterMS     int64                   `json:"afterMs,omitempty"`
	Factor      float64                 `json:"factor,omitempty"`
}

// encodeAlertRule writes a rule without its name.
func encodeAlertRule(s *noun.AlertRuleSpec) (string, error) {
	d := alertRuleDocument{
		Description: s.Description, Enabled: s.Enabled, Position: s.Position, Match: toMatcherDocument(&s.Match), Condition: s.Condition.Kind,
		Failures: s.Condition.Failures, Of: s.Condition.Of, Keyword: s.Condition.Keyword, Severity: s.Severity, Channels: s.Channels, Mute: s.Mute,
		RepeatMS: s.Repeat.Milliseconds(), EscalateMS: s.EscalateAfter.Milliseconds(), EscalateTo: s.EscalateTo,
		AfterMS: s.Condition.After.Milliseconds(), Factor: s.Condition.Factor,
	}
	if !s.Quiet.IsZero() {
		d.Quiet = &s.Quiet
	}
	text, err := json.Marshal(d)
	return string(text), err
}

// decodeAlertRule reads what encodeAlertRule wrote.
func decodeAlertRule(text string) (s noun.AlertRuleSpec, err error) {
	var d alertRuleDocument
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		return s, err
	}
	s = noun.AlertRuleSpec{
		Description: d.Description, Enabled: d.Enabled, Position: d.Position,
		Condition: noun.AlertCondition{Kind: d.Condition, Failures: d.Failures, Of: d.Of, Keyword: d.Keyword, After: time.Duration(d.AfterMS) * time.Millisecond, Factor: d.Factor},
		Severity:  d.Severity, Channels: d.Channels, Mute: d.Mute, Repeat: time.Duration(d.RepeatMS) * time.Millisecond,
		EscalateAfter: time.Duration(d.EscalateMS) * time.Millisecond, EscalateTo: d.EscalateTo,
	}
	if d.Quiet != nil {
		s.Quiet = *d.Quiet
	}
	s.Match, err = d.Match.matcher()
	return s, err
}
