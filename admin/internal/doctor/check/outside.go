package check

import (
	"context"

	"github.com/carillon-sched/carillon/admin/internal/doctor"
	"github.com/carillon-sched/carillon/admin/internal/hotset"
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
			"%s: %v", e.Mail.Server(), Plainly(ctx, err))
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
	if err := e.ReachWebhook(ctx, address); err != nil {
		return doctor.Warn("webhook_unreachable", "Look at --operator-webhook, at what lies between, and for private networks at --webhook-allow.",
			"the operators' webhook at %s: %v", hostOf(address), Plainly(ctx, err))
	}
	return doctor.Passed("%s answers; nothing was posted", hostOf(address))
}

func (e *examination) lookAtHotStore(ctx context.Context) doctor.Result {
	if e.HotStore == "" {
		return doctor.Skip("there is none (--hot-store)")
	}
	if err := hotset.Ping(ctx, e.HotStore); err != nil {
		return doctor.Warn("hot_store_unreachable", "Look at the Redis and at --hot-store; until then the database is searched for timers.", "%v", Plainly(ctx, err))
	}
	return doctor.Passed("the Redis answers")
}
