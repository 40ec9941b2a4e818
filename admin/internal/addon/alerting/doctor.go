package alerting

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/carillon-sched/carillon/admin/internal/addon"
	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/alertsql"
	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/post"
	"github.com/carillon-sched/carillon/admin/internal/doctor"
)

// shownUnheard is how many tenants the doctor names.
const shownUnheard = 10

// lookAtReceivers names tenants without a receiver of their failures. Those that get one at
// the next start are left out.
func lookAtReceivers(ctx context.Context, e addon.Examination) ([]doctor.Result, error) {
	v := e.Settings
	list, err := (&alertsql.Alerts{DB: e.DB}).ListUnheardTenants(ctx, v.Text(mailHost) != "")
	if err != nil {
		return nil, err
	}
	var names []string
	for n := range list {
		if !list[n].Fresh || len(defaultAddresses(v)) == 0 {
			names = append(names, list[n].Name)
		}
	}
	if len(names) == 0 {
		return []doctor.Result{doctor.Passed("each tenant has an alert channel for failures that name no receiver")}, nil
	}
	shown := strings.Join(names[:min(len(names), shownUnheard)], ", ")
	if more := len(names) - shownUnheard; more > 0 {
		shown += fmt.Sprintf(" and %d more", more)
	}
	return []doctor.Result{doctor.Warn("alerts_reach_nobody", "Give the server addresses with --alert-to (and --mail-host), or each tenant a default channel: carillon alert default CHANNEL-ID",
		"failures of timers and calls, and of jobs that name no receiver, reach nobody in these tenants: %s", shown)}, nil
}

// lookAtMail connects to the server for mails, and sends nothing.
func lookAtMail(ctx context.Context, e addon.Examination) ([]doctor.Result, error) {
	sender, err := mailSender(e.Settings, nil)
	if err != nil {
		return nil, err
	}
	if sender == nil {
		if len(e.Settings.List(operatorEmail)) > 0 {
			return []doctor.Result{doctor.Warn("no_mail_server", "Name one with --mail-host.", "mails to the operators cannot be sent: no mail server is configured")}, nil
		}
		return []doctor.Result{doctor.Skip("no mail server is configured (--mail-host)")}, nil
	}
	if err := sender.LogIn(ctx); err != nil {
		return []doctor.Result{doctor.Warn("mail_unreachable", "Look at --mail-host, --mail-port, --mail-tls, the user and its password; until then alerts by mail wait and are tried again.",
			"%s: %v", sender.Server(), e.Plainly(ctx, err))}, nil
	}
	login := "without a login"
	if user := e.Settings.Text(mailUser); user != "" {
		login = "as " + user
	}
	return []doctor.Result{doctor.Passed("%s lets us in %s; nothing was sent", sender.Server(), login)}, nil
}

// lookAtWebhook connects to the server of the operators' webhook, and posts nothing.
func lookAtWebhook(ctx context.Context, e addon.Examination) ([]doctor.Result, error) {
	address := e.Settings.Text(operatorWebhook)
	if address == "" {
		return []doctor.Result{doctor.Skip("the operators have no webhook (--operator-webhook)")}, nil
	}
	host := ""
	if u, err := url.Parse(address); err == nil {
		host = u.Hostname()
	}
	if err := post.New(post.Options{AllowPrefixes: e.Networks}).Reach(ctx, address); err != nil {
		return []doctor.Result{doctor.Warn("webhook_unreachable", "Look at --operator-webhook, at what lies between, and for private networks at --webhook-allow.",
			"the operators' webhook at %s: %v", host, e.Plainly(ctx, err))}, nil
	}
	return []doctor.Result{doctor.Passed("%s answers; nothing was posted", host)}, nil
}
