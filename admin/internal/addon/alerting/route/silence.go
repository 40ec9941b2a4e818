package route

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/notify"
	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/noun"
	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// AlertSilence is a time in which nothing is told of what it matches.
type AlertSilence struct {
	ID        string          `json:"id" doc:"Id of the silence, a decimal string"`
	Match     noun.AlertMatch `json:"match" doc:"What it is about"`
	Reason    string          `json:"reason" doc:"Why"`
	StartsAt  string          `json:"startsAt" format:"date-time" doc:"When it begins"`
	EndsAt    string          `json:"endsAt" format:"date-time" doc:"When it ends"`
	CreatedAt string          `json:"createdAt" format:"date-time" doc:"When it was made"`
	CreatedBy string          `json:"createdBy" doc:"Who made it"`
	EndedBy   string          `json:"endedBy" doc:"Who has ended it before its time; empty: nobody"`
}

// AlertSilenceWrite is a silence to be made.
type AlertSilenceWrite struct {
	Match    noun.AlertMatch `json:"match,omitempty" doc:"What it is about; default: everything. An incident of several jobs is matched by its executor, or when all of its jobs are named"`
	Reason   string          `json:"reason" minLength:"1" maxLength:"1024" doc:"Why, for others"`
	StartsAt *time.Time      `json:"startsAt,omitempty" doc:"When it begins; default: now"`
	EndsAt   *time.Time      `json:"endsAt,omitempty" doc:"When it ends, at most 90 days after its beginning; or duration"`
	Duration string          `json:"duration,omitempty" maxLength:"32" doc:"How long it lasts, such as 2h; or endsAt"`
}

// AlertSettings are what a tenant says about all of its alerts.
type AlertSettings struct {
	Version           int64                 `json:"version" doc:"Grows by one with each edit; 0: nobody has said anything"`
	DefaultChannelIDs []string              `json:"defaultChannelIds" doc:"Alert channels that are told of what nobody else is told of"`
	ReachesNobody     bool                  `json:"reachesNobody" doc:"No default channel works: each is missing or disabled, or is for mails while the server has no mail server. Failures of timers and calls, and of jobs that name no receiver, reach nobody"`
	QuietHours        *noun.AlertQuietHours `json:"quietHours" doc:"When only critical incidents are told; null: never"`
	UpdatedAt         *string               `json:"updatedAt" format:"date-time" doc:"When they were edited last; null: never"`
	UpdatedBy         string                `json:"updatedBy" doc:"Who edited them last"`
}

// AlertSettingsWrite are settings to be saved.
type AlertSettingsWrite struct {
	DefaultChannelIDs []string              `json:"defaultChannelIds,omitempty" maxItems:"10" doc:"Alert channels that are told of what no rule and no job's settings name anybody for; default: none"`
	QuietHours        *noun.AlertQuietHours `json:"quietHours,omitempty" doc:"When only critical incidents are told; default: never"`
}

type alertSettingsOutput = web.Versioned[AlertSettings]

func silenceOf(s *noun.AlertSilence) AlertSilence {
	return AlertSilence{
		ID: s.ID.String(), Match: noun.MatchOf(&s.Match), Reason: s.Reason, StartsAt: web.Instant(s.StartsAt), EndsAt: web.Instant(s.EndsAt),
		CreatedAt: web.Instant(s.CreatedAt), CreatedBy: s.CreatedBy, EndedBy: s.EndedBy,
	}
}

func (a *api) alertSettingsAnswer(ctx context.Context, s noun.AlertSettings) (*alertSettingsOutput, error) {
	nobody, err := reachesNobody(ctx, a.deps.Store, a.deps.Channels, &s)
	if err != nil {
		return nil, err
	}
	return &alertSettingsOutput{ETag: web.ETag(s.Version), Body: AlertSettings{
		Version: s.Version, DefaultChannelIDs: noun.IDTexts(s.DefaultChannels), ReachesNobody: nobody, QuietHours: noun.QuietOf(&s.Quiet),
		UpdatedAt: web.InstantOrNull(s.UpdatedAt), UpdatedBy: s.UpdatedBy,
	}}, nil
}

// reachesNobody reports whether no default channel of the tenant works.
func reachesNobody(ctx context.Context, s notify.AlertChannels, mails Mails, settings *noun.AlertSettings) (bool, error) {
	list, err := s.ListAlertChannels(ctx, settings.TenantID)
	if err != nil {
		return false, err
	}
	of := make(map[domain.ChannelID]noun.AlertChannel, len(list))
	for _, c := range list {
		if c.Spec.Kind != noun.ChannelEmail || mails.Mails() {
			of[c.ID] = c
		}
	}
	return len(settings.Receivers(of)) == 0, nil
}

func (a *api) registerSilences() {
	web.Register(a.Server, web.May(domain.PermRead), web.Operation{
		Method: http.MethodGet, Path: web.Base + "/alert-silences", ID: "list-alert-silences", Large: true, Tag: "alerts", Summary: "List silences",
		Description: "Those that are not over, the first to end first; with all, also those that ended within the last 30 days.",
	}, func(ctx context.Context, id auth.Identity, in *struct {
		web.ShortPage
		All bool `query:"all" doc:"Also those that are over"`
	}) (*web.PageOutput[AlertSilence], error) {
		after := a.deps.Now()
		if in.All {
			after = after.AddDate(0, 0, -30)
		}
		rows, err := a.deps.Store.ListSilences(ctx, id.Tenant, after)
		return web.ListPage(rows, err, silenceOf, in.ShortPage, "alert-silences")
	})
	web.Register(a.Server, web.May(domain.PermOperate), web.Operation{
		Method: http.MethodPost, Path: web.Base + "/alert-silences", ID: "create-alert-silence", Tag: "alerts", Summary: "Silence alerts for a while",
		Description: "Nothing is told of what it matches until it ends. Events are counted all the same: an incident that is open at the end is told then, and one that came and went meanwhile never is.",
		Status:      http.StatusCreated, Errors: []int{http.StatusConflict},
	}, a.createSilence)
	web.Register(a.Server, web.May(domain.PermRead), web.Operation{
		Method: http.MethodGet, Path: web.Base + "/alert-silences/{id}", ID: "get-alert-silence", Tag: "alerts", Summary: "One silence", Description: "Also one that is over, for as long as it is kept.",
	}, func(ctx context.Context, id auth.Identity, in *web.IDInput) (*struct{ Body AlertSilence }, error) {
		s, err := web.ByID(ctx, id.Tenant, in.ID, a.deps.Store.FindSilence)
		return web.AnswerOf(s, err, silenceOf)
	})
	web.Register(a.Server, web.May(domain.PermOperate), web.Operation{
		Method: http.MethodPost, Path: web.Base + "/alert-silences/{id}/end", ID: "end-alert-silence", Tag: "alerts", Summary: "End a silence now",
		Description: "Incidents that are open are told within a minute. One that is over stays as it is.",
	}, func(ctx context.Context, id auth.Identity, in *web.IDInput) (*struct{ Body AlertSilence }, error) {
		silence, err := domain.ParseID[domain.SilenceID](in.ID)
		if err != nil {
			return nil, err
		}
		s, err := a.deps.Store.EndSilence(ctx, id.Tenant, silence, id.Actor())
		if err != nil {
			return nil, err
		}
		a.deps.Log.Info("silence ended", "tenant_id", id.Tenant, "silence_id", s.ID, "by", id.Actor())
		return &struct{ Body AlertSilence }{silenceOf(&s)}, nil
	})
	web.Register(a.Server, web.May(domain.PermRead), web.Operation{
		Method: http.MethodGet, Path: web.Base + "/alert-settings", ID: "get-alert-settings", Tag: "alerts", Summary: "What the tenant says about all of its alerts",
		Description: "The ETag is the version, for update-alert-settings.",
	}, func(ctx context.Context, id auth.Identity, _ *struct{}) (*alertSettingsOutput, error) {
		s, err := a.deps.Store.FindAlertSettings(ctx, id.Tenant)
		if err != nil {
			return nil, err
		}
		return a.alertSettingsAnswer(ctx, s)
	})
	web.Register(a.Server, web.May(domain.PermEdit), web.Operation{
		Method: http.MethodPut, Path: web.Base + "/alert-settings", ID: "update-alert-settings", Tag: "alerts", Summary: "Replace what the tenant says about all of its alerts",
		Description: "It holds for events from now on, quiet hours for open incidents too.",
		Errors:      []int{http.StatusPreconditionFailed, http.StatusPreconditionRequired},
	}, a.updateAlertSettings)
}

func (a *api) createSilence(ctx context.Context, id auth.Identity, in *struct{ Body AlertSilenceWrite }) (*struct{ Body AlertSilence }, error) {
	var c domain.Checker
	now := a.deps.Now().UTC().Truncate(time.Millisecond)
	s := noun.AlertSilence{
		ID: domain.SilenceID(a.deps.NewID()), TenantID: id.Tenant, Match: in.Body.Match.Matcher("body.match", &c), Reason: strings.TrimSpace(in.Body.Reason),
		StartsAt: now, CreatedBy: id.Actor(),
	}
	if in.Body.StartsAt != nil {
		s.StartsAt = in.Body.StartsAt.UTC().Truncate(time.Millisecond)
	}
	d := noun.OptionalDuration(&c, "body.duration", in.Body.Duration)
	c.Check((in.Body.EndsAt == nil) != (in.Body.Duration == ""), "body.endsAt", nil, "either this or duration is needed")
	switch {
	case in.Body.EndsAt != nil:
		s.EndsAt = in.Body.EndsAt.UTC().Truncate(time.Millisecond)
	default:
		s.EndsAt = s.StartsAt.Add(d)
	}
	if err := c.Err(); err != nil {
		return nil, err
	}
	if err := noun.CheckSilence(&s, now); err != nil {
		return nil, err
	}
	if err := a.checkMatched(ctx, id.Tenant, "body.match", s.Match); err != nil {
		return nil, err
	}
	s, err := a.deps.Store.CreateSilence(ctx, s)
	if err != nil {
		return nil, err
	}
	a.deps.Log.Info("alerts silenced", "tenant_id", id.Tenant, "silence_id", s.ID, "until", s.EndsAt, "reason", s.Reason, "by", id.Actor())
	return &struct{ Body AlertSilence }{silenceOf(&s)}, nil
}

func (a *api) updateAlertSettings(ctx context.Context, id auth.Identity, in *struct {
	IfMatch string `header:"If-Match" doc:"The version that was edited, in quotes, as in ETag; * for any"`
	Body    AlertSettingsWrite
}) (*alertSettingsOutput, error) {
	before, err := a.deps.Store.FindAlertSettings(ctx, id.Tenant)
	if err != nil {
		return nil, err
	}
	version := before.Version
	if in.IfMatch != web.ETag(0) && in.IfMatch != "*" {
		if version, err = web.IfMatch(ctx, in.IfMatch); err != nil {
			return nil, err
		}
	} else if in.IfMatch == web.ETag(0) {
		version = 0
	}
	var c domain.Checker
	s := noun.AlertSettings{
		TenantID: id.Tenant, Version: version, DefaultChannels: noun.IDsIn[domain.ChannelID](&c, "body.defaultChannelIds", in.Body.DefaultChannelIDs),
		Quiet: in.Body.QuietHours.Hours(), UpdatedBy: id.Actor(),
	}
	if err := c.Err(); err != nil {
		return nil, err
	}
	if err := noun.CheckAlertSettings(&s); err != nil {
		return nil, err
	}
	if err := a.checkChannels(ctx, id.Tenant, "body.defaultChannelIds", s.DefaultChannels); err != nil {
		return nil, err
	}
	if s, err = a.deps.Store.SaveAlertSettings(ctx, s); err != nil {
		return nil, err
	}
	a.deps.Log.Info("alert settings changed", "tenant_id", id.Tenant, "version", s.Version, "by", id.Actor())
	return a.alertSettingsAnswer(ctx, s)
}
