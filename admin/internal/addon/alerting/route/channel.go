package route

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/notify"
	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/noun"
	"github.com/carillon-sched/carillon/admin/internal/api/document"
	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/resource"
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
	Channel string             `json:"channel,omitempty" doc:"Id or name of a channel whose kind, language and templates are meant; default: those here"`
	Spec    ChannelPreviewSpec `json:"spec,omitempty" doc:"What is meant instead of the channel's"`
	Alert   string             `json:"alert,omitempty" enum:"run_failed,run_timed_out,run_lost,run_missed,no_executor,run_succeeded,test,executor_flapping,instance_gone" doc:"Kind of the sample; default run_failed"`
	RunID   string             `json:"runId,omitempty" doc:"A run of the tenant instead of a sample"`
}

// ChannelPreviewSpec is the part of a channel that a preview needs.
type ChannelPreviewSpec struct {
	Kind      string                `json:"kind,omitempty" enum:"email,webhook,dingtalk,feishu,wecom,slack,teams,telegram,pagerduty,opsgenie" doc:"Means by which alerts are sent; needed without channel"`
	Language  string                `json:"language,omitempty" enum:"en,zh" doc:"Default: the channel's, or the server's"`
	Templates noun.ChannelTemplates `json:"templates,omitempty" doc:"Default: the channel's"`
}

// channelTestTimeout bounds a test, so that its answer comes before the request ends.
const channelTestTimeout = 35 * time.Second

func (a *api) registerAlertChannels() {
	document.Register(a.Server, a.channels)
	web.Register(a.Server, web.May(domain.PermEdit), web.Operation{
		Method: http.MethodPost, Path: web.Base + "/alert-channels/{id}/test", ID: "test-alert-channel", Unaudited: "it changes nothing", Reaches: true, Tag: "alert-channels", Summary: "Send a test message through an alert channel",
		Description: "The message is really sent, by the node that answers, also through a channel that is disabled. 200 whatever the receiver says; the body tells. It counts for the channel's limit.",
	}, a.testAlertChannel)
	web.Register(a.Server, web.May(domain.PermEdit), web.Operation{
		Method: http.MethodPost, Path: web.Base + "/alert-channels/preview", ID: "preview-alert-channel", Unaudited: "it changes nothing", Computes: true, Tag: "alert-channels", Summary: "Show what an alert channel would send",
		Description: "Of a sample, or of a run. Nothing is sent, and nothing is changed.", Errors: []int{http.StatusNotFound},
	}, a.previewAlertChannel)
}

// alertChannel finds one of the tenant by its id or name.
func (a *api) alertChannel(ctx context.Context, tenant domain.TenantID, word string) (noun.AlertChannel, error) {
	row, err := a.channels.Find(ctx, tenant, word)
	if err != nil {
		return noun.AlertChannel{}, err
	}
	return noun.AlertChannelOf(&row)
}

// checkAlertChannel refuses a channel that this server cannot send to.
func (a *api) checkAlertChannel(_ context.Context, _, row *resource.Row) error {
	c, err := noun.AlertChannelOf(row)
	if err != nil {
		return err
	}
	return a.deps.Channels.Check(&c.Spec)
}

func (a *api) testAlertChannel(ctx context.Context, id auth.Identity, in *document.OneInput) (*struct{ Body ChannelTestResult }, error) {
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
	given := &in.Body.Spec
	spec := noun.AlertChannelSpec{Name: "preview", Kind: noun.ChannelKind(given.Kind), Enabled: true}
	if in.Body.Channel != "" {
		c, err := a.alertChannel(ctx, id.Tenant, in.Body.Channel)
		if err != nil {
			return nil, err
		}
		if given.Kind != "" && spec.Kind != c.Spec.Kind {
			return nil, domain.Invalid("body.spec.kind", "is not that of the channel")
		}
		spec = c.Spec
	}
	if spec.Kind == "" {
		return nil, domain.Invalid("body.spec.kind", "is needed without a channel")
	}
	spec.Language = cmp.Or(given.Language, spec.Language)
	if given.Templates != (noun.ChannelTemplates{}) {
		spec.Templates = given.Templates
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
		return nil, domain.Invalid("body.spec.templates", "%v", err)
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
