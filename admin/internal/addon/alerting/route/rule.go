package route

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/noun"
	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// AlertMatch selects what a rule or a silence is about.
type AlertMatch struct {
	Kinds       []string `json:"kinds,omitempty" enum:"run_failed,run_timed_out,run_lost,run_missed,no_executor,run_late,run_long,job_absent,runs_pile_up,run_succeeded" maxItems:"16" doc:"Only these kinds; default: all. A rule hears of run_succeeded only if it names it, with the condition events or keyword"`
	ExecutorIDs []string `json:"executorIds,omitempty" maxItems:"100" doc:"Only these executors; default: all"`
	JobIDs      []string `json:"jobIds,omitempty" maxItems:"100" doc:"Only these jobs; default: all"`
	Labels      string   `json:"labels,omitempty" maxLength:"1024" doc:"Only jobs whose labels meet this selector, such as team=finance, tier in (gold, silver), !test"`
}

// AlertQuietHours are a time of each day at which only critical incidents are told.
type AlertQuietHours struct {
	Zone string   `json:"zone" maxLength:"64" doc:"Time zone, such as Europe/Berlin"`
	From string   `json:"from" pattern:"^[0-2][0-9]:[0-5][0-9]$" doc:"Their beginning, such as 22:00"`
	To   string   `json:"to" pattern:"^[0-2][0-9]:[0-5][0-9]$" doc:"Their end; before from: on the next day"`
	Days []string `json:"days,omitempty" enum:"sunday,monday,tuesday,wednesday,thursday,friday,saturday" maxItems:"7" doc:"Days on which they begin; default: all"`
}

// AlertCondition is what a rule waits for.
type AlertCondition struct {
	Kind     string  `json:"kind" enum:"events,failures,keyword,late,long,absent" doc:"events: each event that the rule matches. failures: so many of the job's last runs ended badly. keyword: the error, the message or the result of a run has a text in it. late: a run has not started so long after its time. long: a run runs for longer than that. absent: no run of an enabled job has succeeded for so long"`
	Failures int     `json:"failures,omitempty" minimum:"0" maximum:"50" doc:"failures: how many"`
	Of       int     `json:"of,omitempty" minimum:"0" maximum:"50" doc:"failures: of how many last runs"`
	Keyword  string  `json:"keyword,omitempty" maxLength:"256" doc:"keyword: the text; case does not matter"`
	After    string  `json:"after,omitempty" maxLength:"32" doc:"late, long, absent: how long, such as 30m; it is looked for every 10 s"`
	Factor   float64 `json:"factor,omitempty" minimum:"0" maximum:"100" doc:"long: also longer than so many times what 99 of 100 of the job's last 100 runs took; default: after decides alone"`
}

// AlertRuleSpec is what can be read and written of a rule.
type AlertRuleSpec struct {
	Name          string           `json:"name" minLength:"1" maxLength:"128" doc:"Its name, unique in the tenant"`
	Description   string           `json:"description,omitempty" maxLength:"4096" doc:"What it is for, for people"`
	Enabled       *bool            `json:"enabled,omitempty" doc:"Whether it decides; default true"`
	Position      int              `json:"position,omitempty" minimum:"0" maximum:"1000000" doc:"Of several rules that match an event the one of the lowest position decides; default 0"`
	Match         AlertMatch       `json:"match,omitempty" doc:"What it is about; default: everything"`
	Condition     AlertCondition   `json:"condition" doc:"What it waits for. An event that it matches and that does not meet it is told to nobody"`
	Severity      string           `json:"severity,omitempty" enum:"info,warning,critical" doc:"critical is told in quiet hours too"`
	ChannelIDs    []string         `json:"channelIds,omitempty" maxItems:"10" doc:"Alert channels that are told; default: whom the job's settings name, or the tenant's default channels"`
	Mute          bool             `json:"mute,omitempty" doc:"Nobody is told; the incident is shown. Default false"`
	Repeat        string           `json:"repeat,omitempty" maxLength:"32" doc:"Most time between two messages, from 1m to 168h; default: as the server says (alert-repeat)"`
	QuietHours    *AlertQuietHours `json:"quietHours,omitempty" doc:"Default: the tenant's"`
	EscalateAfter string           `json:"escalateAfter,omitempty" maxLength:"32" doc:"How long after its beginning others are told of an incident that nobody has acknowledged, from 1m to 168h; default: never"`
	EscalateTo    []string         `json:"escalateTo,omitempty" maxItems:"10" doc:"Alert channels that are told then"`
}

// AlertRule says what is told of some of a tenant's events, and to whom.
type AlertRule struct {
	ID      string `json:"id" doc:"Id of the rule, a decimal string"`
	Version int64  `json:"version" doc:"Grows by one with each edit, from 1"`
	AlertRuleSpec
	CreatedAt string `json:"createdAt" format:"date-time" doc:"When the rule was made"`
	UpdatedAt string `json:"updatedAt" format:"date-time" doc:"When it was edited last"`
	CreatedBy string `json:"createdBy" doc:"Who made the rule"`
	UpdatedBy string `json:"updatedBy" doc:"Who edited it last"`
}

type alertRuleOutput = web.Versioned[AlertRule]

type writeAlertRuleInput = web.Edited[AlertRuleSpec]

// reader reads also what rules and silences are made of.
type reader struct{ web.Reader }

func matchOf(m *noun.AlertMatcher) AlertMatch {
	return AlertMatch{
		Kinds: domain.Collect(m.Kinds, func(k *domain.AlertKind) string { return string(*k) }), ExecutorIDs: idTexts(m.Executors), JobIDs: idTexts(m.Jobs), Labels: m.Labels.Text,
	}
}

func idTexts[T ~int64](ids []T) []string {
	return domain.Collect(ids, func(id *T) string { return strconv.FormatInt(int64(*id), 10) })
}

func quietOf(q *noun.QuietHours) *AlertQuietHours {
	if q.IsZero() {
		return nil
	}
	return &AlertQuietHours{q.Zone, q.From, q.To, domain.Collect(q.Days, func(d *time.Weekday) string { return strings.ToLower(d.String()) })}
}

func ruleOf(r *noun.AlertRule) AlertRule {
	s := &r.Spec
	return AlertRule{
		ID: r.ID.String(), Version: r.Version, CreatedAt: web.Instant(r.CreatedAt), UpdatedAt: web.Instant(r.UpdatedAt), CreatedBy: r.CreatedBy, UpdatedBy: r.UpdatedBy,
		AlertRuleSpec: AlertRuleSpec{
			Name: s.Name, Description: s.Description, Enabled: &s.Enabled, Position: s.Position, Match: matchOf(&s.Match),
			Condition: AlertCondition{string(s.Condition.Kind), s.Condition.Failures, s.Condition.Of, s.Condition.Keyword, durationOrEmpty(s.Condition.After), s.Condition.Factor}, Severity: string(s.Severity),
			ChannelIDs: idTexts(s.Channels), Mute: s.Mute, Repeat: durationOrEmpty(s.Repeat), QuietHours: quietOf(&s.Quiet),
			EscalateAfter: durationOrEmpty(s.EscalateAfter), EscalateTo: idTexts(s.EscalateTo),
		},
	}
}

func durationOrEmpty(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return d.String()
}

// match reads a matcher.
func (r *reader) match(at string, m *AlertMatch) noun.AlertMatcher {
	labels := r.Selector(at+".labels", m.Labels)
	return noun.AlertMatcher{
		Kinds:     domain.Collect(m.Kinds, func(k *string) domain.AlertKind { return domain.AlertKind(*k) }),
		Executors: idsIn[domain.ExecutorID](r, at+".executorIds", m.ExecutorIDs), Jobs: idsIn[domain.JobID](r, at+".jobIds", m.JobIDs), Labels: labels,
	}
}

func idsIn[T ~int64](r *reader, at string, texts []string) []T {
	var out []T
	for n, text := range texts {
		if id := web.OptionalID[T](&r.Reader, at+"["+strconv.Itoa(n)+"]", text); id != 0 {
			out = append(out, id)
		}
	}
	return out
}

func (r *reader) quietHours(q *AlertQuietHours) (out noun.QuietHours) {
	if q == nil {
		return out
	}
	out = noun.QuietHours{Zone: q.Zone, From: q.From, To: q.To}
	for day := time.Sunday; day <= time.Saturday; day++ {
		for _, name := range q.Days {
			if strings.EqualFold(name, day.String()) {
				out.Days = append(out.Days, day)
			}
		}
	}
	return out
}

func (r *reader) optionalDuration(at, text string) time.Duration {
	if text == "" {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		r.Fail(at, text, "must be a duration such as 30m")
	}
	return d
}

func (a *api) ruleSpec(ctx context.Context, tenant domain.TenantID, w *AlertRuleSpec, was noun.AlertMatcher) (noun.AlertRuleSpec, error) {
	var r reader
	s := noun.AlertRuleSpec{
		Name: strings.TrimSpace(w.Name), Description: strings.TrimSpace(w.Description), Enabled: w.Enabled == nil || *w.Enabled, Position: w.Position, Match: r.match("body.match", &w.Match),
		Condition: noun.AlertCondition{Kind: noun.AlertConditionKind(w.Condition.Kind), Failures: w.Condition.Failures, Of: w.Condition.Of, Keyword: w.Condition.Keyword,
			After: r.optionalDuration("body.condition.after", w.Condition.After), Factor: w.Condition.Factor},
		Severity: noun.Severity(cmp.Or(w.Severity, string(noun.SeverityWarning))), Channels: idsIn[domain.ChannelID](&r, "body.channelIds", w.ChannelIDs), Mute: w.Mute,
		Repeat: r.optionalDuration("body.repeat", w.Repeat), Quiet: r.quietHours(w.QuietHours), EscalateAfter: r.optionalDuration("body.escalateAfter", w.EscalateAfter),
		EscalateTo: idsIn[domain.ChannelID](&r, "body.escalateTo", w.EscalateTo),
	}
	if err := r.Err(); err != nil {
		return s, err
	}
	if err := noun.CheckAlertRule(&s); err != nil {
		return s, err
	}
	if err := a.checkMatched(ctx, tenant, s.Match, was); err != nil {
		return s, err
	}
	return s, a.checkChannels(ctx, tenant, "body.channelIds", s.ChannelIDs())
}

// checkMatched refuses executors and jobs that the tenant does not have: nothing would
// ever match. What was named before may have been deleted since.
func (a *api) checkMatched(ctx context.Context, tenant domain.TenantID, m, was noun.AlertMatcher) error {
	for n, id := range m.Executors {
		if slices.Contains(was.Executors, id) {
			continue
		}
		if _, err := a.deps.Store.FindExecutor(ctx, tenant, id); err != nil {
			return matchedError(err, fmt.Sprintf("body.match.executorIds[%d]", n), "executor", id)
		}
	}
	for n, id := range m.Jobs {
		if slices.Contains(was.Jobs, id) {
			continue
		}
		if _, err := a.deps.Store.FindJob(ctx, tenant, id); err != nil {
			return matchedError(err, fmt.Sprintf("body.match.jobIds[%d]", n), "job", id)
		}
	}
	return nil
}

func matchedError(err error, at, kind string, id fmt.Stringer) error {
	if domain.CodeOf(err) != domain.CodeNotFound {
		return err
	}
	return domain.Invalid(at, "there is no %s %s", kind, id)
}

// checkChannels looks whether the tenant has these alert channels.
func (a *api) checkChannels(ctx context.Context, tenant domain.TenantID, at string, ids []domain.ChannelID) error {
	if len(ids) == 0 {
		return nil
	}
	list, err := a.deps.Store.ListAlertChannels(ctx, tenant)
	if err != nil {
		return err
	}
	there := map[domain.ChannelID]bool{}
	for _, c := range list {
		there[c.ID] = true
	}
	for _, id := range ids {
		if !there[id] {
			return domain.Invalid(at, "there is no alert channel %s", id)
		}
	}
	return nil
}

func ruleAnswer(r noun.AlertRule) *alertRuleOutput {
	return &alertRuleOutput{ETag: web.ETag(r.Version), Body: ruleOf(&r)}
}

func (a *api) registerAlertRules() {
	web.Register(a.Server, web.May(domain.PermRead), web.Operation{
		Method: http.MethodGet, Path: web.Base + "/alert-rules", ID: "list-alert-rules", Large: true, Tag: "alerts", Summary: "List alert rules",
		Description: "In the order in which they decide.",
	}, func(ctx context.Context, id auth.Identity, in *web.PageQuery) (*web.PageOutput[AlertRule], error) {
		rows, err := a.deps.Store.ListAlertRules(ctx, id.Tenant)
		return web.ListPage(rows, err, ruleOf, in.ShortPage, "alert-rules")
	})
	web.Register(a.Server, web.May(domain.PermEdit), web.Operation{
		Method: http.MethodPost, Path: web.Base + "/alert-rules", ID: "create-alert-rule", Tag: "alerts", Summary: "Create an alert rule",
		Description: "It decides about events from now on; incidents that are open go on as they began. A tenant may have 100.",
		Status:      http.StatusCreated, Errors: []int{http.StatusConflict},
	}, func(ctx context.Context, id auth.Identity, in *struct{ Body AlertRuleSpec }) (*alertRuleOutput, error) {
		spec, err := a.ruleSpec(ctx, id.Tenant, &in.Body, noun.AlertMatcher{})
		if err != nil {
			return nil, err
		}
		r, err := a.deps.Store.CreateAlertRule(ctx, noun.AlertRule{ID: domain.AlertRuleID(a.deps.NewID()), TenantID: id.Tenant, Spec: spec, CreatedBy: id.Actor()})
		if err != nil {
			return nil, err
		}
		a.deps.Log.Info("alert rule created", "tenant_id", id.Tenant, "rule", r.Spec.Name, "by", id.Actor())
		return ruleAnswer(r), nil
	})
	web.Register(a.Server, web.May(domain.PermRead), web.Operation{
		Method: http.MethodGet, Path: web.Base + "/alert-rules/{id}", ID: "get-alert-rule", Tag: "alerts", Summary: "One alert rule",
		Description: "The ETag is the version, for update-alert-rule.",
	}, func(ctx context.Context, id auth.Identity, in *web.IDInput) (*alertRuleOutput, error) {
		r, err := a.alertRule(ctx, id.Tenant, in.ID)
		if err != nil {
			return nil, err
		}
		return ruleAnswer(r), nil
	})
	web.Register(a.Server, web.May(domain.PermEdit), web.Operation{
		Method: http.MethodPut, Path: web.Base + "/alert-rules/{id}", ID: "update-alert-rule", Tag: "alerts", Summary: "Replace an alert rule",
		Description: "It decides about events from now on. Its open incidents take quiet hours, repeat and escalation from it, and keep their receivers.",
		Errors:      []int{http.StatusConflict, http.StatusPreconditionFailed, http.StatusPreconditionRequired},
	}, func(ctx context.Context, id auth.Identity, in *writeAlertRuleInput) (*alertRuleOutput, error) {
		r, err := a.alertRule(ctx, id.Tenant, in.ID)
		if err != nil {
			return nil, err
		}
		version, err := web.IfMatch(ctx, in.IfMatch)
		if err != nil {
			return nil, err
		}
		if version != 0 {
			r.Version = version
		}
		if r.Spec, err = a.ruleSpec(ctx, id.Tenant, &in.Body, r.Spec.Match); err != nil {
			return nil, err
		}
		r.UpdatedBy = id.Actor()
		if r, err = a.deps.Store.UpdateAlertRule(ctx, r); err != nil {
			return nil, err
		}
		a.deps.Log.Info("alert rule changed", "tenant_id", id.Tenant, "rule", r.Spec.Name, "version", r.Version, "by", id.Actor())
		return ruleAnswer(r), nil
	})
	web.Register(a.Server, web.May(domain.PermEdit), web.Operation{
		Method: http.MethodDelete, Path: web.Base + "/alert-rules/{id}", ID: "delete-alert-rule", Tag: "alerts", Summary: "Delete an alert rule",
		Description: "The next one that matches decides from then on, or the jobs' own settings.", Status: http.StatusNoContent,
	}, func(ctx context.Context, id auth.Identity, in *web.IDInput) (*struct{}, error) {
		r, err := a.alertRule(ctx, id.Tenant, in.ID)
		if err != nil {
			return nil, err
		}
		if err := a.deps.Store.DeleteAlertRule(ctx, id.Tenant, r.ID); err != nil {
			return nil, err
		}
		a.deps.Log.Info("alert rule deleted", "tenant_id", id.Tenant, "rule", r.Spec.Name, "by", id.Actor())
		return nil, nil
	})
}

func (a *api) alertRule(ctx context.Context, tenant domain.TenantID, text string) (noun.AlertRule, error) {
	return web.ByID(ctx, tenant, text, a.deps.Store.FindAlertRule)
}
