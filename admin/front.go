package admin

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/alerting"
	"github.com/carillon-sched/carillon/admin/internal/alerting/chat"
	"github.com/carillon-sched/carillon/admin/internal/alerting/mail"
	"github.com/carillon-sched/carillon/admin/internal/alerting/post"
	"github.com/carillon-sched/carillon/admin/internal/alerting/webhook"
	"github.com/carillon-sched/carillon/admin/internal/api"
	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/bridge"
	"github.com/carillon-sched/carillon/admin/internal/declare"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/publish"
	"github.com/carillon-sched/carillon/admin/internal/scheduler"
	"github.com/carillon-sched/carillon/admin/internal/secret"
	"github.com/carillon-sched/carillon/admin/internal/telemetry"
	"github.com/carillon-sched/carillon/internal/assistant"
)

// buildFront constructs what people see: API, UI and alerts.
func (a *Admin) buildFront(ctx context.Context) error {
	senders, mails, err := a.senders(a.box)
	if err != nil {
		return err
	}
	a.alerting = alerting.New(alerting.Options{
		Operators: alerting.Operators(a.config.Operators), Policy: a.config.Alerts.policy(),
		Store: a.store, Senders: telemetry.Senders(senders, a.tracer), Opener: a.box, BaseURL: a.config.BaseURL, RunbookURL: a.config.RunbookURL, Logger: a.log, Metrics: a.metrics.Registry(),
		MailsPerHour: a.config.Mail.PerHour,
		Boot:         a.self.BootID, Living: a.leases.Living, Shown: a.leases.Shown,
	})
	a.publisher = publish.New(publish.Options{
		Connections: a.store, Secrets: a.box, AllowPrefixes: a.config.Connections.AllowPrefixes, Logger: a.log.With("component", "publish"),
	})
	var pages http.Handler
	if a.config.UI != nil {
		pages = a.config.UI(a.config.path())
	}
	front, err := api.New(api.Deps{
		Store: a.steps, Auth: a.auth, Secrets: a.box, Denied: a.denials.Nudge, SignScript: bridge.SignScripts(a.box.ScriptKey()), ScriptKey: a.box.ScriptKey().Public().(ed25519.PublicKey), Runner: runner{a}, NewID: a.ids.Next, Now: a.clock.Now, Statistics: a.config.Statistics.kept(),
		CallJob: a.calls.For, Held: a.leases.Held, TimersSet: a.timersSet,
		Plan: a.planner.PlanTrigger, JobsChanged: a.planner.Nudge, FollowCalendar: a.calendars.Edited, Nodes: a.self.Nodes, Self: a.self.BootID,
		Publish: func(ctx context.Context, m domain.Message) (bool, error) {
			err := a.publisher.Try(ctx, m)
			return publish.IsPermanent(err), err
		},
		DisabledChanged: a.follow.Changed, BeforeDisable: a.follow.BeforeDisable, DrainsChanged: a.gateway.DrainsChanged,
		Channels: channels{a.alerting, mails}, TenantMade: a.tenantMade,
		Weights: declare.Weights, Declaration: a.declarer.Declaration, GivenBack: a.declarer.GivenBack, BuiltInChanged: a.callbacks.Refresh,
		ClockHeld: a.guard.Hold,
		Ready:     a.ready,
		NoFire:    a.config.NoFire,
		Draining:  a.draining.Load, Closing: a.closing.Load,
		Assistant: a.assistant(),
		Path:      a.config.path(), UI: pages, Metrics: a.metrics.Registry(), MetricsElsewhere: a.scrapes != nil, Logger: a.log, Version: a.config.Version,
		RunRetention:  a.config.RunRetention,
		LogRetention:  a.config.LogRetention,
		Waits:         web.Waits{PerUser: a.config.HTTPLimits.WaitsPerUser, PerTenant: a.config.HTTPLimits.WaitsPerTenant},
		SecureCookies: api.SecureCookies(a.config.SecureCookies), TrustedProxies: a.config.TrustedProxies,
	})
	if err != nil {
		return fmt.Errorf("build the API: %w", err)
	}
	first, err := a.auth.EnsureFirstAdmin(ctx, a.config.AdminPassword)
	if err != nil {
		return err
	}
	if first.Created && first.Password != "" {
		a.firstLogin = &Login{Username: first.Username, Password: first.Password}
	}
	if err := a.applyProvision(ctx); err != nil {
		return err
	}
	if a.scrapes != nil {
		a.scrapes.open(api.MetricsOnly(a.metrics.Registry()))
	}
	a.arrivals.until = time.Now().Add(arrivalsLimit)
	a.front.open(front)
	return nil
}

// assistant makes what answers assistants, if there is to be anything.
func (a *Admin) assistant() func(http.Handler) api.Assistant {
	if a.config.Assistant == AssistantOff {
		return nil
	}
	return func(front http.Handler) api.Assistant {
		return assistant.NewHandler(assistant.HandlerOptions{
			API: front, Page: a.config.BaseURL, Writes: a.config.Assistant == AssistantWrites, Version: a.config.Version, Logger: a.log.With("component", "mcp"),
		})
	}
}

// senders are the channels that are configured. Without a mail server, mails
// fail with that reason in the delivery log.
func (a *Admin) senders(box *secret.Box) ([]alerting.Sender, *mail.Sender, error) {
	language, err := alerting.ParseLanguage(a.config.Mail.Language)
	if err != nil {
		return nil, nil, err
	}
	client := post.New(post.Options{AllowPrefixes: a.config.Webhook.AllowPrefixes, UserAgent: "carillon/" + a.config.Version, Logger: a.log.With("component", "alerting")})
	out := append(chat.New(chat.Options{Client: client, Language: language}), webhook.New(webhook.Options{Client: client, Opener: box, Language: language}))
	if a.config.Mail.Host == "" {
		return out, nil, nil
	}
	sender, err := a.config.Mail.sender(language, a.config.Operators, a.log.With("component", "alerting"))
	if err != nil {
		return nil, nil, err
	}
	return append(out, sender), sender, nil
}

func (m MailConfig) sender(language alerting.Language, operators OperatorsConfig, log *slog.Logger) (*mail.Sender, error) {
	return mail.New(mail.Config{
		Host: m.Host, Port: m.Port, From: m.From, Username: m.Username, Password: m.Password, TLS: m.TLS, Language: language, Logger: log,
		Recipients: mail.Recipients{Domains: m.Domains, Operators: operators.Emails},
	})
}

// channels lets the API render and try alert channels.
type channels struct {
	*alerting.Service
	mails *mail.Sender // nil: there is no mail server
}

// Mails reports whether there is a mail server.
func (c channels) Mails() bool { return c.mails != nil }

// Check holds a channel against what this server sends.
func (c channels) Check(spec *domain.AlertChannelSpec) error {
	for i, address := range spec.Emails {
		if c.mails == nil {
			break
		}
		if err := c.mails.Check(address); err != nil {
			return domain.Invalid(fmt.Sprintf("body.emails[%d]", i), "%v", err)
		}
	}
	return alerting.CheckTemplates(spec)
}

// timersSet lets the planner look at once when a timer is due within what it
// claims ahead.
func (a *Admin) timersSet(first time.Time) {
	if first.Sub(a.clock.Now()) < scheduler.LookAhead {
		a.planner.Nudge()
	}
}

// runner lets the API begin and end runs.
type runner struct{ a *Admin }

// Submit takes a run that was just created. One for later stays in the
// database alone, however many there are; a sweep brings it shortly before
// its time (domain.FirstWake).
func (r runner) Submit(e domain.Execution) {
	if e.NotBefore.Sub(r.a.clock.Now()) <= domain.ColdAfter {
		r.a.timer.Add(e)
	}
}

func (r runner) SendCancel(e domain.Execution) { r.a.dispatcher.SendCancel(e) }

func (r runner) WaitFinished(ctx context.Context, tenant domain.TenantID, id domain.ExecutionID) (domain.Execution, error) {
	return r.a.completer.WaitFinished(ctx, tenant, id)
}

// silentTooLong is when a node that cannot write is not ready any more: it has lost its
// partitions long before, and the others have them.
const silentTooLong = 10 * time.Second

// arrivalsLimit bounds how long a node that has started waits for executors before it
// is ready: some of them may have ended, or cannot reach this node.
const arrivalsLimit = 5 * time.Second

// arrivals are the instances that were connected to the cluster when this node began to
// serve. Until they have a session here, a run that this node fires waits for one.
type arrivals struct {
	until time.Time // fixed when the node serves

	mu      sync.Mutex
	known   bool                // guarded by mu: missing was read
	missing []domain.InstanceID // guarded by mu
}

// wait returns how many instances have no session here yet; 0 after the limit. list is
// asked once.
func (w *arrivals) wait(ctx context.Context, now time.Time, list func(context.Context) ([]domain.InstanceID, error), here func(domain.InstanceID) bool) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !now.Before(w.until) {
		w.missing = nil
		return 0, nil
	}
	if !w.known {
		missing, err := list(ctx)
		if err != nil {
			return 0, err
		}
		w.known, w.missing = true, missing
	}
	w.missing = slices.DeleteFunc(w.missing, here)
	return len(w.missing), nil
}

// ready says why requests should go to another node; nil: they need not.
func (a *Admin) ready(ctx context.Context) error {
	if a.config.NoFire {
		return a.store.Ping(ctx)
	}
	if silent := a.leases.Silent(); silent > silentTooLong {
		return domain.Errorf(domain.CodeUnavailable, "the node has not been able to write to its database for %s", silent.Round(time.Second))
	}
	missing, err := a.arrivals.wait(ctx, time.Now(), a.store.ListConnected, func(id domain.InstanceID) bool { return a.gateway.SessionOf(id) != nil })
	if err != nil {
		return err
	}
	if missing > 0 {
		return domain.Errorf(domain.CodeUnavailable, "%d instances of executors are not connected to this node yet", missing)
	}
	return a.store.Ping(ctx)
}
