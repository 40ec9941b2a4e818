package alerting

import (
	"strings"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// expand decides who is told of an event: the job's owner and its further
// addresses by mail, its URL by webhook. It is pure; the store calls it inside
// a transaction, perhaps twice, and fills in ids and times.
func expand(c store.AlertContext) []domain.Delivery {
	alert := c.Job.Spec.Alert
	if !wanted(c.Event.Kind, alert) {
		return nil
	}
	var out []domain.Delivery
	add := func(channel, target string) {
		out = append(out, domain.Delivery{
			TenantID: c.Event.TenantID, EventID: c.Event.ID, Channel: channel, Target: target, State: domain.DeliveryPending,
		})
	}
	seen := map[string]bool{}
	for _, address := range append([]string{c.Job.Spec.Owner.Email}, alert.Emails...) {
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
	case domain.AlertRunFailed, domain.AlertRunTimedOut, domain.AlertRunLost:
		return alert.OnFailure
	case domain.AlertNoExecutor:
		return alert.IncludeNoExecutor
	case domain.AlertTest:
		return true
	default:
		return false // written by a newer version: that one's nodes know what to do
	}
}
