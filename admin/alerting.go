package admin

import (
	"context"
	"log/slog"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/alertsql"
	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/chat"
	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/mail"
	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/notify"
	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/post"
	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/route"
	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/webhook"
	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/doctor/check"
	"github.com/carillon-sched/carillon/admin/internal/secret"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore"
)

// alertStore is the database as alerting knows it.
type alertStore struct {
	*gormstore.Store
	notify.Tables
}

// alertOptions lets runs that have succeeded write the events that alert rules want.
func alertOptions(o *gormstore.Options) { o.Successes = alertsql.ReadSuccesses }

// buildAlerting constructs the service that tells. Leases and gateway come later.
func (a *Admin) buildAlerting() error {
	senders, addresses, err := a.config.senders(a.box)
	if err != nil {
		return err
	}
	a.alerts = alertsql.New(a.store.Engine)
	a.alerting = notify.New(notify.Options{
		Operators: notify.Operators(a.config.Operators), Policy: a.config.Alerts.policy(),
		Store: alertStore{a.store, a.alerts}, Senders: notify.Traced(senders, a.tracer), Addresses: addresses, Opener: a.box, BaseURL: a.config.BaseURL, RunbookURL: a.config.RunbookURL, Logger: a.log, Metrics: a.metrics.Registry(),
		MailsPerHour: a.config.Mail.PerHour,
		Boot:         a.self.BootID, Living: func() []string { return a.leases.Living() }, Shown: func() (time.Time, bool) { return a.leases.Shown() },
	})
	return nil
}

// alertDeps is what the operations of alerts need.
func (a *Admin) alertDeps() route.Deps {
	return route.Deps{
		Store: alertStore{a.store, a.alerts}, Secrets: a.box, Channels: a.alerting, NewID: a.ids.Next, Now: a.clock.Now, Log: a.log.With("component", "api"),
	}
}

func (a *Admin) alertRoutes(s *web.Server)     { route.Register(s, a.alertDeps()) }
func (a *Admin) alertAttention() web.Attention { return route.Attention(a.alertDeps()) }

// unheard names for the doctor the tenants without a receiver of their failures. Tenants that
// get one at the next start are left out.
func (c Config) unheard(ctx context.Context, s *gormstore.Store) (names []string, err error) {
	list, err := alertsql.New(s.Engine).ListUnheardTenants(ctx, c.Mail.Host != "")
	if err != nil {
		return nil, err
	}
	for n := range list {
		if !list[n].Fresh || len(c.receivers()) == 0 {
			names = append(names, list[n].Name)
		}
	}
	return names, nil
}

// mailServer returns the server for mails that the doctor looks at. nil: there is none.
func (c Config) mailServer() (check.Mail, error) {
	if _, err := notify.ParseLanguage(c.Mail.Language); err != nil || c.Mail.Host == "" {
		return nil, err
	}
	sender, err := c.Mail.sender(notify.English, c.Operators, nil)
	if err != nil {
		return nil, err
	}
	return sender, nil
}

// reachWebhook connects to the server of an address, and posts nothing.
func (c Config) reachWebhook(ctx context.Context, address string) error {
	return post.New(post.Options{AllowPrefixes: c.Webhook.AllowPrefixes}).Reach(ctx, address)
}

// senders are the channels that are configured. Without a mail server, mails
// fail with that reason in the delivery log.
func (c Config) senders(box *secret.Box) ([]notify.Sender, notify.AddressCheck, error) {
	language, err := notify.ParseLanguage(c.Mail.Language)
	if err != nil {
		return nil, nil, err
	}
	client := post.New(post.Options{AllowPrefixes: c.Webhook.AllowPrefixes, UserAgent: "carillon/" + c.Version, Logger: c.Logger.With("component", "alerting")})
	out := append(chat.New(chat.Options{Client: client, Language: language}), webhook.New(webhook.Options{Client: client, Opener: box, Language: language}))
	if c.Mail.Host == "" {
		return out, nil, nil
	}
	sender, err := c.Mail.sender(language, c.Operators, c.Logger.With("component", "alerting"))
	if err != nil {
		return nil, nil, err
	}
	return append(out, sender), sender, nil
}

func (m MailConfig) sender(language notify.Language, operators OperatorsConfig, log *slog.Logger) (*mail.Sender, error) {
	return mail.New(mail.Config{
		Host: m.Host, Port: m.Port, From: m.From, Username: m.Username, Password: m.Password, TLS: m.TLS, Language: language, Logger: log,
		Recipients: mail.Recipients{Domains: m.Domains, Operators: operators.Emails},
	})
}
