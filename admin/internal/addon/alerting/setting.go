package alerting

import (
	"cmp"
	"errors"
	"fmt"
	netmail "net/mail"
	"net/url"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/addon"
	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/mail"
	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/notify"
	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/noun"
)

// Names of the settings.
const (
	mailHost        = "mail-host"
	mailPort        = "mail-port"
	mailFrom        = "mail-from"
	mailDomains     = "mail-domains"
	mailPerHour     = "mail-per-hour"
	mailUser        = "mail-user"
	mailPassword    = "mail-password-file"
	mailTLS         = "mail-tls"
	alertLanguage   = "alert-language"
	alertThrottle   = "alert-throttle"
	alertRepeat     = "alert-repeat"
	alertTo         = "alert-to"
	operatorEmail   = "operator-email"
	operatorWebhook = "operator-webhook"
	runbookURL      = "runbook-url"
)

func settings() []addon.Setting {
	return []addon.Setting{
		{Name: mailHost, Usage: "SMTP server for alerts"},
		{Name: mailPort, Kind: addon.Number, Usage: "its port (default 587, or 465 with --mail-tls tls)"},
		{Name: mailFrom, Usage: "sender of alert mails"},
		{Name: mailDomains, Kind: addon.List, Usage: "domains whose addresses get alert mails, for example example.com,.example.org (those below it), or any (default: the domain of --mail-from)"},
		{Name: mailPerHour, Kind: addon.Number, Default: "600", Usage: "how many alert mails a tenant may cause in an hour; further ones wait"},
		{Name: mailUser, Usage: "user name at the SMTP server"},
		{Name: mailPassword, Kind: addon.Secret, Usage: "file with the password at the SMTP server"},
		{Name: mailTLS, Default: mail.TLSStart, Usage: "starttls, tls or none"},
		{Name: alertLanguage, Default: "en", Usage: "language of alerts: en or zh"},
		{Name: alertThrottle, Kind: addon.Duration, Usage: "least time between the first two messages about an incident; ever longer after each further one (default 5m)"},
		{Name: alertRepeat, Kind: addon.Duration, Usage: "most time between two messages about an incident that goes on (default 4h)"},
		{Name: alertTo, Kind: addon.List, Usage: "addresses that get failures which name no receiver: each tenant without alert settings gets an alert channel \"default\" to them (default: --operator-email)"},
		{Name: operatorEmail, Kind: addon.List, Usage: "who is told when firing is held on all nodes, for example ops@example.com"},
		{Name: operatorWebhook, Kind: addon.Address, Usage: "URL that is told of it too, unsigned"},
		{Name: runbookURL, Usage: "page that alerts lead to for what to do, such as a copy of docs/guide/runbooks.md; the kind of incident is its anchor"},
	}
}

func check(v addon.Values) error {
	if err := errors.Join(checkRunbook(v.Text(runbookURL)), checkPaces(v), checkMails(v), checkOperators(operators(v))); err != nil {
		return err
	}
	if _, err := mailSender(v, nil); err != nil {
		return err
	}
	if err := checkReceivers(v, v.List(alertTo)); err != nil {
		return fmt.Errorf("receivers of alerts (--alert-to): %w", err)
	}
	return nil
}

func checkRunbook(address string) error {
	if address == "" {
		return nil
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.Fragment != "" || len(address) > 400 {
		return errors.New("runbook URL: must be an http or https address of up to 400 characters without #")
	}
	return nil
}

func checkPaces(v addon.Values) error {
	for _, name := range []string{alertThrottle, alertRepeat} {
		if d := v.Duration(name); d != 0 && d < time.Second {
			return fmt.Errorf("%s: %s is less than a second", strings.ReplaceAll(name, "-", " "), d)
		}
	}
	return nil
}

func checkMails(v addon.Values) error {
	for _, pattern := range v.List(mailDomains) {
		if err := mail.CheckDomain(pattern); err != nil {
			return fmt.Errorf("mail domains: %w", err)
		}
	}
	if n := v.Number(mailPerHour); n < 1 {
		return fmt.Errorf("--mail-per-hour: %d: use 1 or more", n)
	}
	return nil
}

func checkOperators(o notify.Operators) error {
	for _, address := range o.Emails {
		if _, err := netmail.ParseAddress(address); err != nil {
			return fmt.Errorf("operator email: %q: %w", address, err)
		}
	}
	if o.WebhookURL == "" {
		return nil
	}
	u, err := url.Parse(o.WebhookURL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return fmt.Errorf("operator webhook: %q is no http or https URL", o.WebhookURL)
	}
	return nil
}

// operators are told of what concerns all jobs. Without any, it is logged and shown only.
func operators(v addon.Values) notify.Operators {
	return notify.Operators{Emails: v.List(operatorEmail), WebhookURL: v.Text(operatorWebhook)}
}

// policy is how incidents are told.
func policy(v addon.Values) noun.TellPolicy {
	p := noun.DefaultTellPolicy
	p.Throttle, p.Repeat = cmp.Or(v.Duration(alertThrottle), p.Throttle), cmp.Or(v.Duration(alertRepeat), p.Repeat)
	return p
}

// defaultAddresses are those of the default channel that a tenant gets. They come from
// --alert-to, or else from the operators. Without a mail server there are none.
func defaultAddresses(v addon.Values) []string {
	if v.Text(mailHost) == "" {
		return nil
	}
	if to := v.List(alertTo); len(to) > 0 {
		return addressesOf(to)
	}
	return addressesOf(v.List(operatorEmail))
}

// addressesOf are those of a list that people wrote, at most as many as a channel may have. A
// text that is no address is left out.
func addressesOf(list []string) (out []string) {
	for _, text := range list[:min(len(list), noun.MaxChannelEmails)] {
		if address, err := netmail.ParseAddress(text); err == nil {
			out = append(out, address.Address)
		}
	}
	return out
}

// checkReceivers holds addresses against what this server sends.
func checkReceivers(v addon.Values, addresses []string) error {
	if len(addresses) == 0 {
		return nil
	}
	if len(addresses) > noun.MaxChannelEmails {
		return fmt.Errorf("%d addresses are too many: use at most %d, such as that of a list", len(addresses), noun.MaxChannelEmails)
	}
	sender, err := mailSender(v, nil)
	if err != nil {
		return err
	}
	if sender == nil {
		return errors.New("alerts to addresses need a mail server: name one with --mail-host")
	}
	for _, address := range addresses {
		if err := sender.Check(address); err != nil {
			return fmt.Errorf("%q: %w", address, err)
		}
	}
	return nil
}
