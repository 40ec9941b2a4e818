package check

import (
	"context"
	"log/slog"
	"os"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/carillon-sched/carillon/admin/internal/alerting/post"
	"github.com/carillon-sched/carillon/admin/internal/doctor"
	"github.com/carillon-sched/carillon/admin/internal/hotset"
	"github.com/carillon-sched/carillon/admin/internal/publish"
	"github.com/carillon-sched/carillon/admin/internal/secret"
)

func (e *examination) lookAtMail(ctx context.Context) doctor.Result {
	switch {
	case e.Mail == nil && e.OperatorMails:
		return doctor.Warn("no_mail_server", "Name one with --mail-host.", "mails to the operators cannot be sent: no mail server is configured")
	case e.Mail == nil:
		return doctor.Skip("no mail server is configured (--mail-host)")
	}
	if err := e.Mail.LogIn(ctx); err != nil {
		return doctor.Warn("mail_unreachable", "Look at --mail-host, --mail-port, --mail-tls, the user and its password; until then alerts by mail wait and are tried again.",
			"%s: %v", e.Mail.Server(), plainly(ctx, err))
	}
	login := "without a login"
	if e.MailUser != "" {
		login = "as " + e.MailUser
	}
	return doctor.Passed("%s lets us in %s; nothing was sent", e.Mail.Server(), login)
}

func (e *examination) lookAtWebhook(ctx context.Context) doctor.Result {
	address := e.OperatorWebhook
	if address == "" {
		return doctor.Skip("the operators have no webhook (--operator-webhook)")
	}
	client := post.New(post.Options{AllowPrefixes: e.WebhookNetworks})
	if err := client.Reach(ctx, address); err != nil {
		return doctor.Warn("webhook_unreachable", "Look at --operator-webhook, at what lies between, and for private networks at --webhook-allow.",
			"the operators' webhook at %s: %v", hostOf(address), plainly(ctx, err))
	}
	return doctor.Passed("%s answers; nothing was posted", hostOf(address))
}

func (e *examination) lookAtHotStore(ctx context.Context) doctor.Result {
	if e.HotStore == "" {
		return doctor.Skip("there is none (--hot-store)")
	}
	if err := hotset.Ping(ctx, e.HotStore); err != nil {
		return doctor.Warn("hot_store_unreachable", "Look at the Redis and at --hot-store; until then the database is searched for timers.", "%v", plainly(ctx, err))
	}
	return doctor.Passed("the Redis answers")
}

const (
	// maxBrokers is how many connections are looked at, and brokersAtOnce how many side by side.
	maxBrokers    = 100
	brokersAtOnce = 16
)

func (e *examination) lookAtBrokers(ctx context.Context) ([]doctor.Result, error) {
	list, err := e.store.ListAllConnections(ctx, maxBrokers)
	if err != nil || len(list) == 0 {
		return []doctor.Result{doctor.Skip("there are no connections to brokers")}, err
	}
	box, err := secret.Read(os.Getenv(secret.EnvKey), e.SealingKeyFile)
	if err != nil {
		return []doctor.Result{doctor.Skip("their secrets cannot be opened")}, nil
	}
	p := publish.New(publish.Options{Secrets: box, AllowPrefixes: e.BrokerNetworks, Logger: slog.New(slog.DiscardHandler)})
	found := make([]doctor.Result, len(list))
	var all errgroup.Group
	all.SetLimit(brokersAtOnce)
	for i, c := range list {
		all.Go(func() error {
			if err := p.Look(ctx, c); err != nil {
				found[i] = doctor.Warn("broker_unreachable", "Look at the broker, or let the tenant correct the connection; until then its messages wait and are tried again.",
					"connection %s of tenant %s (%s, %s): %v", c.Spec.Name, c.TenantID, c.Spec.Broker, strings.Join(c.Spec.Addresses, " "), plainly(ctx, err))
			}
			return nil
		})
	}
	_ = all.Wait() // no look ends the others
	found = slices.DeleteFunc(found, func(r doctor.Result) bool { return r.Status == "" })
	if len(found) == 0 {
		return []doctor.Result{doctor.Passed("all %d connections let us in; nothing was published", len(list))}, nil
	}
	return found, nil
}
