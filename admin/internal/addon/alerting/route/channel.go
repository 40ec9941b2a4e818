package route

import (
	"cmp"
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/notify"
	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/noun"
	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/secret"
)

// Mails says whether alerts can go by mail.
type Mails interface {
	// Mails reports whether there is a mail server.
	Mails() bool
}

// Channels renders and tries alert channels.
type Channels interface {
	// Check holds a channel's addresses against those that the server mails to, and its
	// templates against samples of all alerts.
	Check(spec *noun.AlertChannelSpec) error
	Mails
	// TryChannel sends a test message, once.
	TryChannel(ctx context.Context, tenant domain.Tenant, c noun.AlertChannel) noun.ChannelTrial
	// PreviewChannel shows what would be sent of an event; nil: of a sample of the kind.
	PreviewChannel(spec noun.AlertChannelSpec, kind domain.AlertKind, of *notify.AlertContext) (noun.RenderedAlert, error)
}

// AlertChannel is a means by which the tenant is told.
type AlertChannel struct {
	ID      string `json:"id" doc:"Id of the channel, a decimal string"`
	Version int64  `json:"version" doc:"Grows by one with each edit, from 1"`
	AlertChannelSpec
	Enabled   bool   `json:"enabled" doc:"Whether it is used; what is to go through one that is not fails, and says so"`
	Host      string `json:"host" doc:"Scheme and host of its url, of which nobody can read the rest; empty: it has none"`
	HasSecret bool   `json:"hasSecret" doc:"Whether it has a secret; nobody can read it"`
	HasToken  bool   `json:"hasToken" doc:"Whether it has a token; nobody can read it"`
	CreatedAt string `json:"createdAt" format:"date-time" doc:"When the channel was made"`
	UpdatedAt string `json:"updatedAt" format:"date-time" doc:"When it was edited last"`
	CreatedBy string `json:"createdBy" doc:"Who made the channel"`
	UpdatedBy string `json:"updatedBy" doc:"Who edited it last"`
}

// AlertChannelSpec is what can be read and written of a channel.
type AlertChannelSpec struct {
	Name        string           `json:"name" minLength:"1" maxLength:"128" doc:"Its name, unique in the tenant"`
	Description string           `json:"description,omitempty" maxLength:"4096" doc:"What it is for, for people"`
	Kind        string           `json:"kind" enum:"email,webhook,dingtalk,feishu,wecom,slack,teams,telegram,pagerduty,opsgenie" doc:"By which means; fixed"`
	Language    string           `json:"language,omitempty" enum:"en,zh" doc:"Language of its texts; default: the server's (mail-language)"`
	Emails      []string         `json:"emails,omitempty" maxItems:"16" doc:"email: the addresses, each told by a mail of its own"`
	BaseURL     string           `json:"baseUrl,omitempty" maxLength:"2048" doc:"telegram, pagerduty, opsgenie: where its interface is, such as https://api.eu.opsgenie.com; default: the product's own"`
	ChatID      string           `json:"chatId,omitempty" maxLength:"65" doc:"telegram: number of the chat, or @name of a public one"`
	ThreadID    int64            `json:"threadId,omitempty" minimum:"0" doc:"telegram: topic of the group; default: none"`
	Mentions    []string         `json:"mentions,omitempty" maxItems:"20" doc:"Who is called by name: dingtalk mobile numbers, feishu open ids, wecom user ids, slack member ids"`
	MentionAll  bool             `json:"mentionAll,omitempty" doc:"dingtalk, feishu, wecom, slack: call everybody"`
	Templates   ChannelTemplates `json:"templates,omitempty" doc:"Texts instead of the server's own; default: none"`
}

// ChannelTemplates are texts in the language of Go's templates.
type ChannelTemplates struct {
	Title       string `json:"title,omitempty" maxLength:"1024" doc:"Title of messages, subject of mails"`
	Text        string `json:"text,omitempty" maxLength:"16384" doc:"Text of messages, plain part of mails"`
	HTML        string `json:"html,omitempty" maxLength:"16384" doc:"email: the HTML part"`
	Body        string `json:"body,omitempty" maxLength:"16384" doc:"webhook: the request's body; {{json .Title}} makes a JSON text of a field"`
	ContentType string `json:"contentType,omitempty" maxLength:"100" doc:"webhook: what the body is; default JSON, which is checked"`
}

// AlertChannelWrite is a channel with its secrets.
type AlertChannelWrite struct {
	AlertChannelSpec
	Enabled *bool   `json:"enabled,omitempty" doc:"Whether it is used; default true"`
	URL     *string `json:"url,omitempty" maxLength:"2048" writeOnly:"true" doc:"webhook, dingtalk, feishu, wecom, slack, teams: where messages are posted, kept sealed. Default: as it is. Private networks only as the operator allows (webhook-allow)"`
	Secret  *string `json:"secret,omitempty" maxLength:"1024" writeOnly:"true" doc:"webhook, dingtalk, feishu: signs messages, kept sealed. Default: as it is; empty: none"`
	Token   *string `json:"token,omitempty" maxLength:"1024" writeOnly:"true" doc:"telegram: the bot's token. pagerduty: the routing key. opsgenie: the API key. webhook: a bearer token. Kept sealed. Default: as it is; empty: none. Must be given again when url or baseUrl change"`
}

// ChannelTestResult is what the receiver has said.
type ChannelTestResult struct {
	Delivered  bool          `json:"delivered" doc:"Whether the receiver has taken it; of several addresses, all"`
	Permanent  bool          `json:"permanent" doc:"Whether trying again is no use"`
	Message    string        `json:"message" doc:"Why it is not delivered"`
	DurationMS int64         `json:"durationMs" doc:"How long it took"`
	Rendered   RenderedAlert `json:"rendered" doc:"What was sent"`
}

// RenderedAlert is a message as its receiver gets it.
type RenderedAlert struct {
	Title       string `json:"title,omitempty" doc:"A mail's subject"`
	ContentType string `json:"contentType,omitempty" doc:"What the body is"`
	Body        string `json:"body,omitempty" doc:"The request's body; a mail's plain part"`
	HTML        string `json:"html,omitempty" doc:"A mail's HTML part"`
}

// ChannelPreview says what to render.
type ChannelPreview struct {
	ChannelID string           `json:"channelId,omitempty" doc:"A channel whose kind, language and templates are meant; default: those here"`
	Kind      string           `json:"kind,omitempty" enum:"email,webhook,dingtalk,feishu,wecom,slack,teams,telegram,pagerduty,opsgenie" doc:"By which means; needed without channelId"`
	Language  string           `json:"language,omitempty" enum:"en,zh" doc:"Default: the channel's, or the server's"`
	Templates ChannelTemplates `json:"templates,omitempty" doc:"Default: the channel's"`
	Alert     string           `json:"alert,omitempty" enum:"run_failed,run_timed_out,run_lost,run_missed,no_executor,run_succeeded,test,executor_flapping,instance_gone" doc:"Kind of the sample; default run_failed"`
	RunID     string           `json:"runId,omitempty" doc:"A run of the tenant instead of a sample"`
}

// channelTestTimeout bounds a test, so that its answer comes before the request ends.
const channelTestTimeout = 35 * time.Second

type alertChannelOutput = web.Versioned[AlertChannel]

type writeAlertChannelInput = web.Edited[AlertChannelWrite]

func alertChannelOf(c *noun.AlertChannel) AlertChannel {
	s := c.Spec
	return AlertChannel{
		ID: c.ID.String(), Version: c.Version, Enabled: s.Enabled, Host: c.Host, HasSecret: c.HasSecret, HasToken: c.HasToken,
		AlertChannelSpec: AlertChannelSpec{
			Name: s.Name, Description: s.Description, Kind: string(s.Kind), Language: s.Language, Emails: s.Emails, BaseURL: s.BaseURL,
			ChatID: s.ChatID, ThreadID: s.ThreadID, Mentions: s.Mentions, MentionAll: s.MentionAll, Templates: ChannelTemplates(s.Templates),
		},
		CreatedAt: web.Instant(c.CreatedAt), UpdatedAt: web.Instant(c.UpdatedAt), CreatedBy: c.CreatedBy, UpdatedBy: c.UpdatedBy,
	}
}

func alertChannelAnswer(c noun.AlertChannel) *alertChannelOutput {
	return &alertChannelOutput{ETag: web.ETag(c.Version), Body: alertChannelOf(&c)}
}

func (w *AlertChannelWrite) spec() noun.AlertChannelSpec {
	return noun.AlertChannelSpec{
		Name: strings.TrimSpace(w.Name), Description: strings.TrimSpace(w.Description), Kind: noun.ChannelKind(w.Kind),
		Enabled: w.Enabled == nil || *w.Enabled, Language: w.Language, Emails: w.Emails, BaseURL: strings.TrimRight(w.BaseURL, "/"), ChatID: w.ChatID,
		ThreadID: w.ThreadID, Mentions: w.Mentions, MentionAll: w.MentionAll, Templates: noun.ChannelTemplates(w.Templates),
	}
}

// give puts the secrets that were given into the place of others.
func (w *AlertChannelWrite) give(s *noun.AlertChannelSecrets) {
	for from, to := range map[*string]*string{w.URL: &s.URL, w.Secret: &s.Secret, w.Token: &s.Token} {
		if from != nil {
			*to = strings.TrimSpace(*from)
		}
	}
}

func (a *api) registerAlertChannels() {
	web.Register(a.Server, web.May(domain.PermRead), web.Operation{
		Method: http.MethodGet, Path: web.Base + "/alert-channels", ID: "list-alert-channels", Large: true, Tag: "alerts", Summary: "List alert channels",
		Description: "By name. Addresses with keys in them, and secrets, cannot be read.",
	}, func(ctx context.Context, id auth.Identity, in *web.PageQuery) (*web.PageOutput[AlertChannel], error) {
		rows, err := a.deps.Store.ListAlertChannels(ctx, id.Tenant)
		return web.ListPage(rows, err, alertChannelOf, in.ShortPage, "alert-channels")
	})
	web.Register(a.Server, web.May(domain.PermEdit), web.Operation{
		Method: http.MethodPost, Path: web.Base + "/alert-channels", ID: "create-alert-channel", Computes: true, Tag: "alerts", Summary: "Create an alert channel",
		Description: "test-alert-channel tries it. Templates are held against samples of all alerts. A tenant may have 64.",
		Status:      http.StatusCreated, Errors: []int{http.StatusConflict},
	}, a.createAlertChannel)
	web.Register(a.Server, web.May(domain.PermRead), web.Operation{
		Method: http.MethodGet, Path: web.Base + "/alert-channels/{id}", ID: "get-alert-channel", Tag: "alerts", Summary: "One alert channel",
		Description: "The ETag is the version, for update-alert-channel.",
	}, func(ctx context.Context, id auth.Identity, in *web.IDInput) (*alertChannelOutput, error) {
		c, err := a.alertChannel(ctx, id.Tenant, in.ID)
		if err != nil {
			return nil, err
		}
		return alertChannelAnswer(c), nil
	})
	web.Register(a.Server, web.May(domain.PermEdit), web.Operation{
		Method: http.MethodPut, Path: web.Base + "/alert-channels/{id}", ID: "update-alert-channel", Computes: true, Tag: "alerts", Summary: "Replace an alert channel",
		Description: "Url, secret and token stay where they are left out, unless the token would be sent to another receiver.",
		Errors:      []int{http.StatusConflict, http.StatusPreconditionFailed, http.StatusPreconditionRequired},
	}, a.updateAlertChannel)
	web.Register(a.Server, web.May(domain.PermEdit), web.Operation{
		Method: http.MethodDelete, Path: web.Base + "/alert-channels/{id}", ID: "delete-alert-channel", Tag: "alerts", Summary: "Delete an alert channel",
		Description: "What is to go through it yet fails, and says so in the log of deliveries.", Status: http.StatusNoContent,
	}, func(ctx context.Context, id auth.Identity, in *web.IDInput) (*struct{}, error) {
		c, err := a.alertChannel(ctx, id.Tenant, in.ID)
		if err != nil {
			return nil, err
		}
		if err := a.deps.Store.DeleteAlertChannel(ctx, id.Tenant, c.ID); err != nil {
			return nil, err
		}
		a.deps.Log.Info("alert channel deleted", "tenant_id", id.Tenant, "channel", c.Spec.Name, "by", id.Actor())
		return nil, nil
	})
	web.Register(a.Server, web.May(domain.PermEdit), web.Operation{
		Method: http.MethodPost, Path: web.Base + "/alert-channels/{id}/test", ID: "test-alert-channel", Unaudited: "it changes nothing", Reaches: true, Tag: "alerts", Summary: "Send a test message through an alert channel",
		Description: "The message is really sent, by the node that answers, also through a channel that is disabled. 200 whatever the receiver says; the body tells. It counts for the channel's limit.",
	}, a.testAlertChannel)
	web.Register(a.Server, web.May(domain.PermEdit), web.Operation{
		Method: http.MethodPost, Path: web.Base + "/alert-channels/preview", ID: "preview-alert-channel", Unaudited: "it changes nothing", Computes: true, Tag: "alerts", Summary: "Show what an alert channel would send",
		Description: "Of a sample, or of a run. Nothing is sent, and nothing is changed.", Errors: []int{http.StatusNotFound},
	}, a.previewAlertChannel)
}

// alertChannel finds one of the tenant by the id in the path.
func (a *api) alertChannel(ctx context.Context, tenant domain.TenantID, text string) (noun.AlertChannel, error) {
	return web.ByID(ctx, tenant, text, a.deps.Store.FindAlertChannel)
}

func (a *api) checkAlertChannel(spec *noun.AlertChannelSpec, secrets *noun.AlertChannelSecrets) error {
	if err := noun.CheckAlertChannel(spec, secrets); err != nil {
		return err
	}
	return a.deps.Channels.Check(spec)
}

func (a *api) createAlertChannel(ctx context.Context, id auth.Identity, in *struct{ Body AlertChannelWrite }) (*alertChannelOutput, error) {
	c := noun.AlertChannel{ID: domain.ChannelID(a.deps.NewID()), TenantID: id.Tenant, Spec: in.Body.spec(), CreatedBy: id.Actor()}
	var secrets noun.AlertChannelSecrets
	in.Body.give(&secrets)
	if err := a.checkAlertChannel(&c.Spec, &secrets); err != nil {
		return nil, err
	}
	if err := a.sealAlertChannel(&c, secrets); err != nil {
		return nil, err
	}
	c, err := a.deps.Store.CreateAlertChannel(ctx, c)
	if err != nil {
		return nil, err
	}
	a.deps.Log.Info("alert channel created", "tenant_id", id.Tenant, "channel", c.Spec.Name, "kind", c.Spec.Kind, "by", id.Actor())
	return alertChannelAnswer(c), nil
}

func (a *api) updateAlertChannel(ctx context.Context, id auth.Identity, in *writeAlertChannelInput) (*alertChannelOutput, error) {
	c, err := a.alertChannel(ctx, id.Tenant, in.ID)
	if err != nil {
		return nil, err
	}
	if err := web.MustMatch(ctx, in.IfMatch, "alert channel", c.ID, c.Version); err != nil {
		return nil, err
	}
	secrets, err := web.Unseal[noun.AlertChannelSecrets](a.deps.Secrets, c.TenantID, secret.PurposeAlertChannel, int64(c.ID), c.Secrets)
	if err != nil {
		return nil, err
	}
	spec, before := in.Body.spec(), secrets.URL
	if spec.Kind != c.Spec.Kind {
		return nil, domain.Invalid("body.kind", "is fixed: make another channel")
	}
	in.Body.give(&secrets)
	// Who could redirect a token without knowing it would get to know it. A secret
	// only signs.
	if in.Body.Token == nil && c.HasToken && (spec.BaseURL != c.Spec.BaseURL || secrets.URL != before) {
		return nil, domain.Invalid("body.token", "must be given again: the channel leads elsewhere")
	}
	if err := a.checkAlertChannel(&spec, &secrets); err != nil {
		return nil, err
	}
	c.Spec, c.UpdatedBy = spec, id.Actor()
	if err := a.sealAlertChannel(&c, secrets); err != nil {
		return nil, err
	}
	if c, err = a.deps.Store.UpdateAlertChannel(ctx, c); err != nil {
		return nil, err
	}
	a.deps.Log.Info("alert channel changed", "tenant_id", id.Tenant, "channel", c.Spec.Name, "version", c.Version, "by", id.Actor())
	return alertChannelAnswer(c), nil
}

func (a *api) sealAlertChannel(c *noun.AlertChannel, s noun.AlertChannelSecrets) (err error) {
	c.Secrets, c.Host, c.HasSecret, c.HasToken = nil, s.Host(), s.Secret != "", s.Token != ""
	c.Secrets, err = web.Seal(a.deps.Secrets, c.TenantID, secret.PurposeAlertChannel, int64(c.ID), s)
	return err
}

func (a *api) testAlertChannel(ctx context.Context, id auth.Identity, in *web.IDInput) (*struct{ Body ChannelTestResult }, error) {
	c, err := a.alertChannel(ctx, id.Tenant, in.ID)
	if err != nil {
		return nil, err
	}
	tenant, err := a.deps.Store.FindTenant(ctx, id.Tenant)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, channelTestTimeout)
	defer cancel()
	begin := time.Now()
	trial := a.deps.Channels.TryChannel(ctx, tenant, c)
	a.deps.Log.Info("alert channel tested", "tenant_id", id.Tenant, "channel", c.Spec.Name, "delivered", trial.Delivered, "by", id.Actor())
	return &struct{ Body ChannelTestResult }{ChannelTestResult{
		Delivered: trial.Delivered, Permanent: trial.Permanent, Message: trial.Message, DurationMS: time.Since(begin).Milliseconds(),
		Rendered: RenderedAlert(trial.Rendered),
	}}, nil
}

func (a *api) previewAlertChannel(ctx context.Context, id auth.Identity, in *struct{ Body ChannelPreview }) (*struct{ Body RenderedAlert }, error) {
	spec := noun.AlertChannelSpec{Name: "preview", Kind: noun.ChannelKind(in.Body.Kind), Enabled: true}
	if in.Body.ChannelID != "" {
		c, err := a.alertChannel(ctx, id.Tenant, in.Body.ChannelID)
		if err != nil {
			return nil, err
		}
		if in.Body.Kind != "" && spec.Kind != c.Spec.Kind {
			return nil, domain.Invalid("body.kind", "is not that of the channel")
		}
		spec = c.Spec
	}
	if spec.Kind == "" {
		return nil, domain.Invalid("body.kind", "is needed without channelId")
	}
	spec.Language = cmp.Or(in.Body.Language, spec.Language)
	if t := noun.ChannelTemplates(in.Body.Templates); t != (noun.ChannelTemplates{}) {
		spec.Templates = t
	}
	if err := noun.CheckChannelTemplates(&spec); err != nil {
		return nil, err
	}
	if err := a.deps.Channels.Check(&spec); err != nil {
		return nil, err
	}
	kind := domain.AlertKind(cmp.Or(in.Body.Alert, string(domain.AlertRunFailed)))
	var of *notify.AlertContext
	if in.Body.RunID != "" {
		var err error
		if of, err = a.alertOfRun(ctx, id.Tenant, in.Body.RunID, domain.AlertKind(in.Body.Alert)); err != nil {
			return nil, err
		}
	}
	out, err := a.deps.Channels.PreviewChannel(spec, kind, of)
	if err != nil {
		return nil, domain.Invalid("body.templates", "%v", err)
	}
	return &struct{ Body RenderedAlert }{RenderedAlert(out)}, nil
}

// alertOfRun is what would be told of a run; kind: empty = as it has ended.
func (a *api) alertOfRun(ctx context.Context, tenant domain.TenantID, text string, kind domain.AlertKind) (*notify.AlertContext, error) {
	run, err := web.ByID(ctx, tenant, text, a.deps.Store.FindExecution)
	if err != nil {
		return nil, err
	}
	job, err := a.deps.Store.FindJob(ctx, tenant, run.JobID)
	if err != nil {
		return nil, err
	}
	out := &notify.AlertContext{Job: job.Job, Execution: &run.Execution}
	if out.Executor, err = a.deps.Store.FindExecutor(ctx, tenant, run.Executor); err != nil {
		return nil, err
	}
	if out.Tenant, err = a.deps.Store.FindTenant(ctx, tenant); err != nil {
		return nil, err
	}
	if kind == "" {
		kind = map[domain.State]domain.AlertKind{
			domain.TimedOut: domain.AlertRunTimedOut, domain.Lost: domain.AlertRunLost, domain.Missed: domain.AlertRunMissed,
		}[run.State]
	}
	if kind == "" {
		kind = domain.AlertRunFailed
	}
	out.Event = domain.AlertEvent{ID: 1, TenantID: tenant, Kind: kind, JobID: run.JobID, Revision: run.Revision, ExecutionID: run.ID, CreatedAt: a.deps.Now()}
	return out, nil
}
