// Package alerting answers: how does alerting become a part of a node?
//
// It registers the service (package notify) with its tables (alertsql), operations (route)
// and channels (mail, chat, webhook). It has the settings, and the checks of the doctor.
package alerting

import (
	"log/slog"

	"github.com/carillon-sched/carillon/admin/internal/addon"
	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/alertsql"
	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/chat"
	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/mail"
	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/notify"
	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/post"
	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/route"
	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/webhook"
	"github.com/carillon-sched/carillon/admin/internal/api/web"
)

// AddOn is the add-on.
func AddOn() addon.AddOn {
	return addon.AddOn{
		Name: "alerting", Settings: settings(), Check: check, Build: build, Successes: alertsql.ReadSuccesses, Tables: alertsql.OwnTables(),
		Doctor: []addon.Doctor{
			{ID: "receivers", Look: lookAtReceivers},
			{ID: "mail", Alone: true, Look: lookAtMail},
			{ID: "webhook", Alone: true, Look: lookAtWebhook},
		},
	}
}

// tables are those of the add-on, with the questions about nouns of the core.
type tables struct {
	addon.Store
	notify.Tables
}

func build(n addon.Node) (addon.Parts, error) {
	log := n.Logger.With("component", "alerting")
	senders, addresses, err := channels(n, log)
	if err != nil {
		return addon.Parts{}, err
	}
	v, alerts := n.Settings, alertsql.New(n.Engine)
	service := notify.New(notify.Options{
		Store: tables{n.Store, alerts}, Senders: notify.Traced(senders, n.Trace), Opener: n.Secrets, Addresses: addresses, Operators: operators(v), Policy: policy(v),
		BaseURL: n.BaseURL, RunbookURL: v.Text(runbookURL), MailsPerHour: v.Number(mailPerHour), Boot: n.Boot, Living: n.Living, Shown: n.Shown,
		Logger: n.Logger, Metrics: n.Metrics,
	})
	deps := route.Deps{
		Store: tables{n.Store, alerts}, Kept: route.Kept{Channels: alertsql.Channels(n.DB), Rules: alertsql.Rules(n.DB), RulesChanged: alerts.RulesChanged, Names: alerts}, Secrets: n.Secrets, Channels: service, NewID: n.NewID, Now: n.Now, Log: n.Logger.With("component", "api"),
	}
	receivers := &notify.Receivers{Store: alerts, NewID: n.NewID, Default: defaultAddresses(v), Log: log}
	return addon.Parts{
		Routes: func(s *web.Server) { route.Register(s, deps) }, Attention: route.Attention(deps),
		Intake: service.Run, Nudge: service.Nudge, OutboxLag: alerts.OutboxLag, Unexplained: alerts.WithoutOutage,
		TenantMade: receivers.TenantMade, Provisioned: receivers.Give,
	}, nil
}

// channels are those that are configured. Without a mail server, mails fail with that reason
// in the delivery log.
func channels(n addon.Node, log *slog.Logger) ([]notify.Sender, notify.AddressCheck, error) {
	language, err := notify.ParseLanguage(n.Settings.Text(alertLanguage))
	if err != nil {
		return nil, nil, err
	}
	client := post.New(post.Options{AllowPrefixes: n.Networks, UserAgent: "carillon/" + n.Version, Logger: log})
	out := append(chat.New(chat.Options{Client: client, Language: language}), webhook.New(webhook.Options{Client: client, Opener: n.Secrets, Language: language}))
	sender, err := mailSender(n.Settings, log)
	if err != nil || sender == nil {
		return out, nil, err
	}
	return append(out, sender), sender, nil
}

// mailSender sends mails. nil: there is no mail server.
func mailSender(v addon.Values, log *slog.Logger) (*mail.Sender, error) {
	language, err := notify.ParseLanguage(v.Text(alertLanguage))
	if err != nil || v.Text(mailHost) == "" {
		return nil, err
	}
	return mail.New(mail.Config{
		Host: v.Text(mailHost), Port: v.Number(mailPort), From: v.Text(mailFrom), Username: v.Text(mailUser), Password: v.Text(mailPassword), TLS: v.Text(mailTLS),
		Language: language, Logger: log, Recipients: mail.Recipients{Domains: v.List(mailDomains), Operators: v.List(operatorEmail)},
	})
}
