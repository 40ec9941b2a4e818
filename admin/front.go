package admin

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/alerting"
	"github.com/carillon-sched/carillon/admin/internal/alerting/mail"
	"github.com/carillon-sched/carillon/admin/internal/alerting/webhook"
	"github.com/carillon-sched/carillon/admin/internal/api"
	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/calljob"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/secret"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// buildFront constructs what people see: API, UI and alerts.
func (a *Admin) buildFront(ctx context.Context) error {
	senders, err := a.senders(a.box)
	if err != nil {
		return err
	}
	a.alerting = alerting.New(alerting.Options{
		Operators: alerting.Operators(a.config.Operators),
		Store:     a.store, Senders: a.traced(senders), BaseURL: a.config.BaseURL, Logger: a.log, Metrics: a.metrics.registry,
		Boot: a.members.self.BootID, Living: a.leases.Living, Shown: a.leases.Shown,
	})
	front, err := api.New(api.Deps{
		Store: a.observed(), Auth: a.auth, Secrets: a.box, Denied: a.denials.Nudge, SignScript: signScripts(a.box.ScriptKey()), ScriptKey: a.box.ScriptKey().Public().(ed25519.PublicKey), Runner: runner{a}, NewID: a.ids.Next, Now: a.clock.Now,
		CallJob: func(ctx context.Context, executor domain.Executor, handler domain.Handler) (store.JobView, error) {
			return a.callJobs().For(ctx, executor, handler, calljob.Call)
		},
		NextFire: nextFire, Plan: a.planner.PlanTrigger, JobsChanged: a.planner.Nudge, FollowCalendar: a.follower.one, Nodes: a.members.nodes, Self: a.members.self.BootID,
		Weights: weightsIn, Declaration: a.declarer.Declaration, GivenBack: a.declarer.GivenBack,
		ClockHeld: func() (time.Time, time.Duration, bool) { h, held := a.clock.Held(); return h.At, h.Jump, held },
		Draining:  a.draining.Load, Closing: a.closing.Load,
		UI: a.config.UI, Metrics: a.metrics.registry, MetricsElsewhere: a.scrapes != nil, Logger: a.log, Version: a.config.Version,
		RunRetention:  a.config.RunRetention,
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
	if a.scrapes != nil {
		a.scrapes.open(api.MetricsAlone(a.metrics.registry))
	}
	a.front.open(front)
	return nil
}

// senders are the channels that are configured. Without a mail server, mails
// fail with that reason in the delivery log.
func (a *Admin) senders(box *secret.Box) ([]alerting.Sender, error) {
	language, err := alerting.ParseLanguage(a.config.Mail.Language)
	if err != nil {
		return nil, err
	}
	out := []alerting.Sender{webhook.New(webhook.Options{
		AllowPrefixes: a.config.Webhook.AllowPrefixes, Opener: box, Language: language, UserAgent: "carillon/" + a.config.Version,
	})}
	if a.config.Mail.Host == "" {
		return out, nil
	}
	m := a.config.Mail
	sender, err := mail.New(mail.Config{
		Host: m.Host, Port: m.Port, From: m.From, Username: m.Username, Password: m.Password, TLS: m.TLS, Language: language,
	})
	if err != nil {
		return nil, err
	}
	return append(out, sender), nil
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
