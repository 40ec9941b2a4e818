package alerting

import (
	"strings"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// Operators are who is told of what concerns the platform; its webhooks are
// not signed.
type Operators struct {
	Emails     []string
	WebhookURL string
}

// expand decides who is told of an event: the job's owner and its further
// addresses by mail, its URL by webhook; the operators of what is not about a
// job. It is pure; the store calls it inside a transaction, perhaps twice, and
// fills in ids and times.
func (o Operators) expand(c store.AlertContext) []domain.Delivery {
	alert, owner := c.Job.Spec.Alert, c.Job.Spec.Owner.Email
	if c.Event.Kind.Platform() {
		alert, owner = domain.Alert{Emails: o.Emails, WebhookURL: o.WebhookURL}, ""
	} else if !wanted(c.Event.Kind, alert) {
		return nil
	}
	var out []domain.Delivery
	add := func(channel, target string) {
		out = append(out, domain.Delivery{
			TenantID: c.Event.TenantID, EventID: c.Event.ID, Channel: channel, Target: target, State: domain.DeliveryPending,
		})
	}
	seen := map[string]bool{}
	for _, address := range append([]string{owner}, alert.Emails...) {
		address = strings.TrimSpace(address)
		// Strictly, the part before the @ may depend on its case; in practice
		// one mailbox written in two ways is told once.
		if key := strings.ToLower(address); key != "" && !seen[key] {
			seen[key] = true
			add(ChannelEmail, address)
		}
	}
	if url := strings.TrimSpace(alert.WebhookURL); url != "" {
		add(ChannelWebhook, url)
	}
	return out
}

func wanted(kind domain.AlertKind, alert domain.Alert) bool {
	switch kind {
	case domain.AlertRunFailed, domain.AlertRunTimedOut, domain.AlertRunLost, domain.AlertRunMissed:
		return alert.OnFailure
	case domain.AlertNoExecutor:
		return alert.IncludeNoExecutor
	case domain.AlertTest:
		return true
	default:
		return false // written by a newer version: that one's nodes know what to do
	}
}
