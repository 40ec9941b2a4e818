package noun

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/resource"
)

// AlertRuleKind is the kind of documents that are alert rules.
var AlertRuleKind = resource.Of(resource.Kind{
	Name: "AlertRule", Noun: "alert rule", Path: "alert-rules", Most: MaxAlertRules, Last: true, Read: domain.PermRead, Edit: domain.PermEdit,
	About: "An alert rule says which events are told, how urgent they are, and to whom. The first enabled rule that matches decides, by position and then by age.",
	Notes: resource.Notes{
		Create: "It decides about events from now on. Open incidents go on as they began. A tenant may have 100.",
		Update: "It decides about events from now on. Its open incidents take quiet hours, repeat and escalation from it, and keep their receivers.",
		Delete: "The next rule that matches decides from then on, or the jobs' own settings.",
	},
}, resource.Rules[AlertRuleText]{
	Complete: (*AlertRuleText).complete,
	Check: func(_ context.Context, d *resource.Draft[AlertRuleText], c *domain.Checker) error {
		rule := d.Spec.rule(c)
		if c.Err() == nil {
			checkAlertRule(&rule, c)
		}
		return nil
	},
	Refs: func(s *AlertRuleText) []resource.Refs {
		return []resource.Refs{
			{Kind: AlertChannelKind.Name, At: "body.spec.channels", Words: s.Channels}, {Kind: AlertChannelKind.Name, At: "body.spec.escalateTo", Words: s.EscalateTo},
			{Kind: "Executor", At: "body.spec.match.executors", Words: s.Match.Executors}, {Kind: "Job", At: "body.spec.match.jobs", Words: s.Match.Jobs},
		}
	},
	Older: olderRule,
})

// AlertRuleText is the form of a rule.
type AlertRuleText struct {
	Description   string             `json:"description,omitempty" maxLength:"4096" doc:"Purpose of the rule, for people"`
	Enabled       bool               `json:"enabled" required:"false" doc:"Whether it decides; default true"`
	Position      int                `json:"position,omitempty" minimum:"0" maximum:"1000000" doc:"Of several rules that match an event, the rule with the lowest position decides; default 0"`
	Match         AlertRuleMatch     `json:"match,omitzero" doc:"Events that it decides about; default: all"`
	Condition     AlertConditionText `json:"condition" doc:"What it waits for. If an event matches but does not meet it, no alert is sent"`
	Severity      Severity           `json:"severity,omitempty" enum:"info,warning,critical" doc:"critical is told in quiet hours too; default warning"`
	Channels      []string           `json:"channels,omitempty" maxItems:"10" doc:"Alert channels that are told, by name or id; default: the receivers in the job's settings, or the tenant's default channels"`
	Mute          bool               `json:"mute,omitempty" doc:"No alert is sent, and the incident is shown. Default false"`
	Repeat        string             `json:"repeat,omitempty" maxLength:"32" doc:"Most time between two messages, from 1m to 168h; default: as the server says (alert-repeat)"`
	QuietHours    *AlertQuietHours   `json:"quietHours,omitempty" doc:"Default: the tenant's"`
	EscalateAfter string             `json:"escalateAfter,omitempty" maxLength:"32" doc:"Time from the beginning of an incident until others are told, if nobody has acknowledged it, from 1m to 168h; default: never"`
	EscalateTo    []string           `json:"escalateTo,omitempty" maxItems:"10" doc:"Alert channels that are told then, by name or id"`
}

// AlertConditionText is the form of an AlertCondition.
type AlertConditionText struct {
	Kind     AlertConditionKind `json:"kind" enum:"events,failures,keyword,late,long,absent" doc:"events: each event that the rule matches. failures: so many of the job's last runs ended badly. keyword: the error, the message or the result of a run has a text in it. late: a run has not started so long after its time. long: a run runs for longer than that. absent: no run of an enabled job has succeeded for so long"`
	Failures int                `json:"failures,omitempty" minimum:"0" maximum:"50" doc:"failures: how many"`
	Of       int                `json:"of,omitempty" minimum:"0" maximum:"50" doc:"failures: of how many last runs"`
	Keyword  string             `json:"keyword,omitempty" maxLength:"256" doc:"keyword: the text; case does not matter"`
	After    string             `json:"after,omitempty" maxLength:"32" doc:"late, long, absent: how long, such as 30m; checked every 10 s"`
	Factor   float64            `json:"factor,omitempty" minimum:"0" maximum:"100" doc:"long: also longer than so many times what 99 of 100 of the job's last 100 runs took; default: after decides alone"`
}

// UnmarshalJSON reads a rule. It is enabled by default.
func (s *AlertRuleText) UnmarshalJSON(text []byte) error {
	type plain AlertRuleText
	read := plain{Enabled: true}
	if err := json.Unmarshal(text, &read); err != nil {
		return err
	}
	*s = AlertRuleText(read)
	return nil
}

func (s *AlertRuleText) complete() {
	s.Description = strings.TrimSpace(s.Description)
	if s.Severity == "" {
		s.Severity = SeverityWarning
	}
}

// idsOf reads words that are ids. A name has the id 0: it is not known yet.
func idsOf[T ~int64](words []string) (out []T) {
	for _, word := range words {
		id, _ := domain.ParseID[T](word)
		out = append(out, id)
	}
	return out
}

// rule reads the form. Names have the id 0.
func (s *AlertRuleText) rule(c *domain.Checker) AlertRuleSpec {
	return AlertRuleSpec{
		Description: s.Description, Enabled: s.Enabled, Position: s.Position, Match: s.Match.matcher(c),
		Condition: AlertCondition{Kind: s.Condition.Kind, Failures: s.Condition.Failures, Of: s.Condition.Of, Keyword: s.Condition.Keyword,
			After: OptionalDuration(c, "body.spec.condition.after", s.Condition.After), Factor: s.Condition.Factor},
		Severity: s.Severity, Channels: idsOf[domain.ChannelID](s.Channels), Mute: s.Mute, Repeat: OptionalDuration(c, "body.spec.repeat", s.Repeat), Quiet: s.QuietHours.Hours(),
		EscalateAfter: OptionalDuration(c, "body.spec.escalateAfter", s.EscalateAfter), EscalateTo: idsOf[domain.ChannelID](s.EscalateTo),
	}
}

// AlertRuleOf is the rule of a stored document.
func AlertRuleOf(row *resource.Row) (AlertRule, error) {
	if row.Problem != "" {
		return AlertRule{}, errors.New(row.Problem)
	}
	d, err := resource.Read[AlertRuleText](row)
	if err != nil {
		return AlertRule{}, err
	}
	var c domain.Checker
	spec := d.Spec.rule(&c)
	spec.Name = row.Name
	return AlertRule{ID: domain.AlertRuleID(row.ID), TenantID: row.Tenant, Version: row.Version, UpdatedAt: row.UpdatedAt, Spec: spec}, c.Err()
}

// TextOf is the form of a rule.
func TextOf(s *AlertRuleSpec) AlertRuleText {
	return AlertRuleText{
		Description: s.Description, Enabled: s.Enabled, Position: s.Position, Match: AlertRuleMatch{Kinds: s.Match.Kinds, Executors: IDTexts(s.Match.Executors), Jobs: IDTexts(s.Match.Jobs), Labels: s.Match.Labels.Text},
		Condition: AlertConditionText{s.Condition.Kind, s.Condition.Failures, s.Condition.Of, s.Condition.Keyword, durationOrEmpty(s.Condition.After), s.Condition.Factor},
		Severity:  s.Severity, Channels: IDTexts(s.Channels), Mute: s.Mute, Repeat: durationOrEmpty(s.Repeat), QuietHours: QuietOf(&s.Quiet),
		EscalateAfter: durationOrEmpty(s.EscalateAfter), EscalateTo: IDTexts(s.EscalateTo),
	}
}

// olderRule reads a row of before the mechanism of documents.
func olderRule(text []byte) (AlertRuleText, map[string]string, error) {
	var was struct {
		Description, Keyword string
		Enabled, Mute        bool
		Position             int
		Failures, Of         int
		Match                struct {
			Kinds     []domain.AlertKind
			Executors []domain.ExecutorID
			Jobs      []domain.JobID
			Labels    string
		}
		Condition                     AlertConditionKind
		Severity                      Severity
		Channels, EscalateTo          []domain.ChannelID
		RepeatMS, EscalateMS, AfterMS int64
		Quiet                         *QuietHours
		Factor                        float64
	}
	if err := json.Unmarshal(text, &was); err != nil {
		return AlertRuleText{}, nil, err
	}
	ms := func(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
	s := AlertRuleSpec{
		Description: was.Description, Enabled: was.Enabled, Position: was.Position, Severity: was.Severity, Channels: was.Channels, Mute: was.Mute,
		Match:     AlertMatcher{Kinds: was.Match.Kinds, Executors: was.Match.Executors, Jobs: was.Match.Jobs, Labels: domain.Selector{Text: was.Match.Labels}},
		Condition: AlertCondition{Kind: was.Condition, Failures: was.Failures, Of: was.Of, Keyword: was.Keyword, After: ms(was.AfterMS), Factor: was.Factor},
		Repeat:    ms(was.RepeatMS), EscalateAfter: ms(was.EscalateMS), EscalateTo: was.EscalateTo,
	}
	if was.Quiet != nil {
		s.Quiet = *was.Quiet
	}
	return TextOf(&s), nil, nil
}
