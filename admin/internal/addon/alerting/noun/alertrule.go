package noun

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// Severity says how urgent an incident is.
type Severity string

// The severities. Empty is SeverityWarning.
const (
	SeverityInfo     Severity = "info"
	SeverityWarning  Severity = "warning"
	SeverityCritical Severity = "critical" // is told in quiet hours too
)

// Severities are all of them.
var Severities = []Severity{SeverityInfo, SeverityWarning, SeverityCritical}

// AlertConditionKind says what a rule waits for.
type AlertConditionKind string

const (
	// ConditionEvents: each event of the kinds that the rule matches.
	ConditionEvents AlertConditionKind = "events"
	// ConditionFailures: so many of a job's last runs ended badly.
	ConditionFailures AlertConditionKind = "failures"
	// ConditionKeyword: the error, the message or the result of a run has a text in it.
	ConditionKeyword AlertConditionKind = "keyword"
	// ConditionLate: a run has not started so long after its time.
	ConditionLate AlertConditionKind = "late"
	// ConditionLong: a run runs for longer than that, or than so many times what most
	// of its job's runs took.
	ConditionLong AlertConditionKind = "long"
	// ConditionAbsent: no run of an enabled job has succeeded for so long.
	ConditionAbsent AlertConditionKind = "absent"
)

// Kind is what a condition that is looked for finds; empty: events say that it holds.
func (k AlertConditionKind) Kind() domain.AlertKind {
	switch k {
	case ConditionLate:
		return domain.AlertRunLate
	case ConditionLong:
		return domain.AlertRunLong
	case ConditionAbsent:
		return domain.AlertJobAbsent
	}
	return ""
}

// AlertConditionKinds are all of them.
var AlertConditionKinds = []AlertConditionKind{ConditionEvents, ConditionFailures, ConditionKeyword, ConditionLate, ConditionLong, ConditionAbsent}

// MaxFailuresOf is how many of a job's last runs a rule may look at.
const MaxFailuresOf = 50

// AlertCondition is what a rule waits for. Fields that its kind does not know are 0.
type AlertCondition struct {
	Kind         AlertConditionKind
	Failures, Of int    // failures: so many of the last so many
	Keyword      string // keyword; case does not matter
	// After is how long: late, long, absent.
	After time.Duration
	// Factor of what 99 of 100 of the job's last successful runs took: long; 0 = After decides alone.
	Factor float64
}

// AlertRule says what is told of some of a tenant's events, how urgent it is, and to
// whom. Of several rules that match an event the first one decides, by position.
type AlertRule struct {
	ID       domain.AlertRuleID
	TenantID domain.TenantID
	// Version grows by one with each edit.
	Version   int64
	Spec      AlertRuleSpec
	UpdatedAt time.Time
}

// AlertRuleSpec is what a rule says. AlertRuleText is its form.
type AlertRuleSpec struct {
	Name        string
	Description string
	Enabled     bool
	Position    int
	Match       AlertMatcher
	Condition   AlertCondition
	Severity    Severity
	// Channels are told; empty: whom the job's own settings name, or the tenant's default.
	Channels []domain.ChannelID
	// Mute: nobody is told. The incident is shown.
	Mute bool
	// Repeat is the most time between two messages; 0 = as the server says.
	Repeat time.Duration
	Quiet  QuietHours // zero: the tenant's
	// EscalateTo are told too when nobody has acknowledged the incident within
	// EscalateAfter of its beginning; 0 = never.
	EscalateAfter time.Duration
	EscalateTo    []domain.ChannelID
}

// checkAlertRule adds the wrong fields of a rule.
func checkAlertRule(s *AlertRuleSpec, into *domain.Checker) {
	c := checker{*into}
	defer func() { *into = c.Checker }()
	c.Check(len(s.Description) <= 4096, "body.spec.description", nil, "must not exceed 4096 bytes")
	c.Check(s.Position >= 0 && s.Position <= 1_000_000, "body.spec.position", s.Position, "must be from 0 to 1000000")
	c.Check(slices.Contains(Severities, s.Severity), "body.spec.severity", string(s.Severity), "must be info, warning or critical")
	c.matcher("body.spec.match", &s.Match)
	c.condition(&s.Condition)
	c.Check(s.Condition.Kind.Kind() == "" || len(s.Match.Kinds) == 0, "body.spec.match.kinds", nil, "is for conditions of events")
	c.Check(s.Condition.Kind != ConditionFailures || !slices.Contains(s.Match.Kinds, domain.AlertRunSucceeded), "body.spec.match.kinds", string(domain.AlertRunSucceeded), "is for the conditions events and keyword")
	c.Check(len(s.Channels) <= MaxRuleChannels, "body.spec.channels", nil, fmt.Sprintf("must not be more than %d", MaxRuleChannels))
	c.Check(!s.Mute || len(s.Channels) == 0 && len(s.EscalateTo) == 0, "body.spec.mute", nil, "goes without channels")
	c.Check(s.Repeat == 0 || s.Repeat >= time.Minute && s.Repeat <= 7*24*time.Hour, "body.spec.repeat", nil, "must be from 1m to 168h")
	c.quietHours("body.spec.quietHours", &s.Quiet)
	c.Check((s.EscalateAfter > 0) == (len(s.EscalateTo) > 0), "body.spec.escalateTo", nil, "goes with escalateAfter")
	c.Check(s.EscalateAfter == 0 || s.EscalateAfter >= time.Minute && s.EscalateAfter <= 7*24*time.Hour, "body.spec.escalateAfter", nil, "must be from 1m to 168h")
	c.Check(s.EscalateAfter == 0 || !slices.Equal(s.Match.Kinds, []domain.AlertKind{domain.AlertRunSucceeded}), "body.spec.escalateAfter", nil, "does nothing for successes: nobody has to acknowledge them")
	c.Check(len(s.EscalateTo) <= MaxRuleChannels, "body.spec.escalateTo", nil, fmt.Sprintf("must not be more than %d", MaxRuleChannels))
}

// checker collects the wrong fields of a rule, a silence, settings or a channel.
type checker struct{ domain.Checker }

func (c *checker) condition(s *AlertCondition) {
	c.Check(slices.Contains(AlertConditionKinds, s.Kind), "body.spec.condition.kind", string(s.Kind), "must be events, failures, keyword, late, long or absent")
	failures := s.Kind == ConditionFailures
	c.Check(failures || s.Failures == 0 && s.Of == 0, "body.spec.condition.failures", nil, "is for failures")
	c.Check(!failures || s.Of >= 1 && s.Of <= MaxFailuresOf, "body.spec.condition.of", s.Of, "must be from 1 to 50")
	c.Check(!failures || s.Failures >= 1 && s.Failures <= s.Of, "body.spec.condition.failures", s.Failures, "must be from 1 to of")
	keyword := s.Kind == ConditionKeyword
	c.Check(keyword == (s.Keyword != ""), "body.spec.condition.keyword", nil, "is for keyword, which needs it")
	looked := s.Kind.Kind() != ""
	c.Check(looked || s.After == 0, "body.spec.condition.after", nil, "is for late, long and absent")
	c.Check(!looked || s.After >= time.Second && s.After <= 90*24*time.Hour, "body.spec.condition.after", nil, "must be from 1s to 2160h")
	c.Check(s.Factor == 0 || s.Kind == ConditionLong && s.Factor >= 1 && s.Factor <= 100, "body.spec.condition.factor", nil, "is for long, from 1 to 100")
	c.Check(len(s.Keyword) <= 256 && !domain.HasControl(s.Keyword), "body.spec.condition.keyword", nil, "must have at most 256 bytes in one line")
}

// WantsSuccess reports whether the rule hears of runs that have succeeded: only if it
// names that kind. A rule that names no kind is about what went wrong.
func (s *AlertRuleSpec) WantsSuccess() bool {
	return s.Enabled && slices.Contains(s.Match.Kinds, domain.AlertRunSucceeded)
}

// SuccessWishOf returns what rules that want successes want of a job's.
func SuccessWishOf(rules []AlertRuleSpec, executor domain.ExecutorID, job domain.JobID, labels map[string]string) (wish domain.SuccessWish) {
	for n := range rules {
		if s := &rules[n]; s.WantsSuccess() && s.Match.MatchesJob(domain.AlertRunSucceeded, executor, job, labels) {
			if s.Condition.Kind == ConditionKeyword {
				return domain.SuccessEach
			}
			wish = domain.SuccessCounted
		}
	}
	return wish
}

// AlertFacts are what a condition is held against.
type AlertFacts struct {
	// Bad are the newest ended runs of the event's job, newest first: which of them
	// ended badly.
	Bad []bool
	// Text is what the run says of its end.
	Text string
}

// Holds reports whether an event that the rule matches is to be told.
func (s *AlertCondition) Holds(f *AlertFacts) bool {
	switch s.Kind {
	case ConditionFailures:
		n := 0
		for _, bad := range f.Bad[:min(len(f.Bad), s.Of)] {
			if bad {
				n++
			}
		}
		return n >= s.Failures
	case ConditionKeyword:
		return strings.Contains(strings.ToLower(f.Text), strings.ToLower(s.Keyword))
	}
	return true
}

// RuleOf returns the first rule that matches what happens to a job; nil: none does.
func RuleOf(rules []AlertRule, kind domain.AlertKind, executor domain.ExecutorID, job domain.JobID, labels map[string]string) *AlertRule {
	for n := range rules {
		r := &rules[n]
		if r.Spec.Enabled && r.Spec.Condition.Kind.Kind() == "" && r.Spec.Match.MatchesJob(kind, executor, job, labels) &&
			(kind != domain.AlertRunSucceeded || r.Spec.WantsSuccess()) {
			return r
		}
	}
	return nil
}

// RuleByID returns the one that found an event; nil: it is gone.
func RuleByID(rules []AlertRule, id domain.AlertRuleID) *AlertRule {
	for n := range rules {
		if rules[n].ID == id {
			return &rules[n]
		}
	}
	return nil
}

// SortRules brings rules into the order in which they decide.
func SortRules(rules []AlertRule) {
	slices.SortFunc(rules, func(a, b AlertRule) int {
		return cmp.Or(cmp.Compare(a.Spec.Position, b.Spec.Position), cmp.Compare(a.ID, b.ID))
	})
}

// Key is that of an incident that the rule opens instead of the default one.
func (r *AlertRule) Key(key string) string {
	if r == nil {
		return key
	}
	return "rule/" + r.ID.String() + "/" + key
}

// Bounds of what tenants say about alerts.
const (
	MaxAlertRules    = 100
	MaxAlertSilences = 200 // that are not over
	MaxMatched       = 100 // ids in a matcher
	MaxRuleChannels  = 10
)

// AlertMatcher selects what a rule or a silence is about: what meets all that is
// given. Empty: everything.
type AlertMatcher struct {
	Kinds     []domain.AlertKind
	Executors []domain.ExecutorID
	Jobs      []domain.JobID
	Labels    domain.Selector
}

// MatchesJob reports whether it selects what happens to a job.
func (m *AlertMatcher) MatchesJob(kind domain.AlertKind, executor domain.ExecutorID, job domain.JobID, labels map[string]string) bool {
	return m.matchesKind(kind) && (len(m.Executors) == 0 || slices.Contains(m.Executors, executor)) &&
		(len(m.Jobs) == 0 || slices.Contains(m.Jobs, job)) && m.Labels.Matches(labels)
}

func (m *AlertMatcher) matchesKind(kind domain.AlertKind) bool {
	return len(m.Kinds) == 0 || slices.Contains(m.Kinds, kind)
}

// MatchesIncident reports whether it selects an incident. One of several jobs is
// selected by its executor, or if all of its jobs are named.
func (m *AlertMatcher) MatchesIncident(i *Incident, labels map[string]string) bool {
	if i.Job != 0 {
		return m.MatchesJob(i.Kind, i.Executor, i.Job, labels)
	}
	kind := i.Kind
	if kind == domain.AlertSchedulerBehind {
		kind = domain.AlertRunMissed // by which tenants select it
	}
	if !m.matchesKind(kind) || len(m.Executors) > 0 && !slices.Contains(m.Executors, i.Executor) || !m.Labels.Empty() {
		return false
	}
	for _, j := range i.Jobs {
		if len(m.Jobs) > 0 && !slices.Contains(m.Jobs, j.ID) {
			return false
		}
	}
	return true
}

// TenantAlertKinds are those that tenants are told.
var TenantAlertKinds = []domain.AlertKind{domain.AlertRunFailed, domain.AlertRunTimedOut, domain.AlertRunLost, domain.AlertRunMissed, domain.AlertNoExecutor, domain.AlertRunLate, domain.AlertRunLong, domain.AlertJobAbsent, domain.AlertRunsPileUp, domain.AlertRunSucceeded}

func (c *checker) matcher(at string, m *AlertMatcher) {
	for _, kind := range m.Kinds {
		c.Check(slices.Contains(TenantAlertKinds, kind), at+".kinds", string(kind), "must be "+joinKinds(TenantAlertKinds))
	}
	c.Check(len(m.Executors) <= MaxMatched, at+".executorIds", nil, "must not be more than 100")
	c.Check(len(m.Jobs) <= MaxMatched, at+".jobIds", nil, "must not be more than 100")
}

func joinKinds(kinds []domain.AlertKind) string {
	return strings.Join(domain.Collect(kinds, func(k *domain.AlertKind) string { return string(*k) }), ", ")
}

// AlertSilence keeps messages back: of incidents that it selects nothing is told
// while it lasts. Those that are over by its end are never told.
type AlertSilence struct {
	ID        domain.SilenceID
	TenantID  domain.TenantID
	Match     AlertMatcher
	Reason    string
	StartsAt  time.Time
	EndsAt    time.Time
	CreatedAt time.Time
	CreatedBy string
	EndedBy   string // who has ended it before its time
}

// MaxSilence is how long a silence may last: what is silent for longer is forgotten.
const MaxSilence = 90 * 24 * time.Hour

// CheckSilence says what is wrong with a silence that is made now.
func CheckSilence(s *AlertSilence, now time.Time) error {
	var c checker
	c.matcher("body.match", &s.Match)
	c.Check(s.Reason != "" && len(s.Reason) <= 1024 && !domain.HasControl(s.Reason), "body.reason", nil, "must say why, in 1 to 1024 bytes of one line")
	c.Check(s.EndsAt.After(s.StartsAt), "body.endsAt", nil, "must be after startsAt")
	c.Check(s.EndsAt.After(now), "body.endsAt", nil, "must be in the future")
	c.Check(s.EndsAt.Sub(s.StartsAt) <= MaxSilence, "body.endsAt", nil, "must be at most 90 days after startsAt")
	return c.Err()
}

// QuietHours are a time of each day at which only critical incidents are told; the
// others wait for its end. The zero value is none.
type QuietHours struct {
	Zone     string
	From, To string         // HH:MM; To before From: until the next day
	Days     []time.Weekday // on which it begins; empty = all
}

// IsZero reports whether there are none.
func (q *QuietHours) IsZero() bool { return q.From == "" && q.To == "" }

const clockLayout = "15:04"

func (c *checker) quietHours(at string, q *QuietHours) {
	if q.IsZero() {
		c.Check(q.Zone == "" && len(q.Days) == 0, at, nil, "needs from and to")
		return
	}
	_, err := time.LoadLocation(q.Zone)
	c.Check(err == nil && q.Zone != "" && q.Zone != "Local", at+".zone", q.Zone, "is not a time zone such as Europe/Berlin")
	for field, text := range map[string]string{".from": q.From, ".to": q.To} {
		_, err := time.Parse(clockLayout, text)
		c.Check(err == nil && len(text) == len(clockLayout), at+field, text, "must be a time such as 22:00")
	}
	c.Check(q.From != q.To, at+".to", q.To, "must differ from from")
}

// Until returns the end of the quiet hours that now is in; zero: in none.
func (q *QuietHours) Until(now time.Time) time.Time {
	zone, err := time.LoadLocation(q.Zone)
	if q.IsZero() || err != nil {
		return time.Time{}
	}
	local := now.In(zone)
	for back := range 2 { // since today, or since yesterday
		day := local.AddDate(0, 0, -back)
		from, to := onDay(day, q.From), onDay(day, q.To)
		if !to.After(from) {
			to = onDay(day.AddDate(0, 0, 1), q.To)
		}
		if (len(q.Days) == 0 || slices.Contains(q.Days, day.Weekday())) && !now.Before(from) && now.Before(to) {
			return to.UTC()
		}
	}
	return time.Time{}
}

func onDay(day time.Time, clock string) time.Time {
	t, _ := time.Parse(clockLayout, clock) // it was checked
	return time.Date(day.Year(), day.Month(), day.Day(), t.Hour(), t.Minute(), 0, 0, day.Location())
}

// AlertSettings are what a tenant says about all of its alerts.
type AlertSettings struct {
	TenantID domain.TenantID
	// Version grows by one with each edit; 0: nobody has said anything.
	Version int64
	// DefaultChannels are told of what nobody else is told of.
	DefaultChannels []domain.ChannelID
	Quiet           QuietHours
	UpdatedAt       time.Time
	UpdatedBy       string
}

// Receivers returns the default channels that exist and are enabled.
func (s *AlertSettings) Receivers(channels map[domain.ChannelID]AlertChannel) (out []AlertChannel) {
	for _, id := range s.DefaultChannels {
		if c, ok := channels[id]; ok && c.Spec.Enabled {
			out = append(out, c)
		}
	}
	return out
}

// CheckAlertSettings says what is wrong with settings.
func CheckAlertSettings(s *AlertSettings) error {
	var c checker
	c.Check(len(s.DefaultChannels) <= MaxRuleChannels, "body.defaultChannelIds", nil, fmt.Sprintf("must not be more than %d", MaxRuleChannels))
	c.quietHours("body.quietHours", &s.Quiet)
	return c.Err()
}
