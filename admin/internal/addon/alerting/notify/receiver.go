package notify

import (
	"strings"

	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/noun"
	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// Operators are who is told of what concerns the platform; its webhooks are
// not signed.
type Operators struct {
	Emails     []string
	WebhookURL string
}

// receivers decides who is told of an event. A rule that matches it says so, or that
// nobody is; else the job's settings do: its owner and its further addresses by mail,
// its URL by webhook. Who has named nobody has the tenant's default. The operators
// are told of what is not about a job. unwanted: it is not counted.
func (o Operators) receivers(e *GroupedEvent, tenant TenantAlerts) (out []noun.Receiver, isWanted bool) {
	if e.Event.Kind.Platform() {
		out = addresses(domain.Alert{Emails: o.Emails, WebhookURL: o.WebhookURL}, "", 0)
		if e.Event.Kind == domain.AlertFlapping || e.Event.Kind == domain.AlertInstanceGone {
			out = append(out, channels(tenant, tenant.Settings.DefaultChannels)...)
		}
		return out, true
	}
	if e.Rule != nil {
		switch {
		case !e.Rule.Spec.Condition.Holds(&e.Facts):
			return nil, false
		case e.Rule.Spec.Mute:
			return nil, true
		case len(e.Rule.Spec.Channels) > 0:
			return channels(tenant, e.Rule.Spec.Channels), true
		}
	}
	if !wanted(e.Event.Kind, e.Job.Spec.Alert) || e.Event.Kind == domain.AlertRunSucceeded && e.Rule == nil { // its rule is gone
		return nil, false
	}
	out = addresses(e.Job.Spec.Alert, e.Job.Spec.Owner.Email, e.Job.ID)
	if len(out) == 0 && e.Event.Kind != domain.AlertTest {
		out = channels(tenant, tenant.Settings.DefaultChannels)
	}
	return out, true
}

// channels are those of these ids. One that is gone stays one, so that the delivery
// log says that somebody was not told.
func channels(tenant TenantAlerts, ids []domain.ChannelID) []noun.Receiver {
	out := make([]noun.Receiver, len(ids))
	for n, id := range ids {
		out[n] = noun.Receiver{ChannelID: id, Channel: ChannelWebhook, Target: "#" + id.String()}
		if c, ok := tenant.Channels[id]; ok {
			out[n].Channel, out[n].Target = string(c.Spec.Kind), c.Spec.Name
		}
	}
	return out
}

// addresses are those that a job's settings, or the operators', name.
func addresses(alert domain.Alert, owner string, job domain.JobID) (out []noun.Receiver) {
	seen := map[string]bool{}
	for _, address := range append([]string{owner}, alert.Emails...) {
		address = strings.TrimSpace(address)
		// Strictly, the part before the @ may depend on its case; in practice
		// one mailbox written in two ways is told once.
		if key := strings.ToLower(address); key != "" && !seen[key] {
			seen[key] = true
			out = append(out, noun.Receiver{Channel: ChannelEmail, Target: address, Job: job})
		}
	}
	if url := strings.TrimSpace(alert.WebhookURL); url != "" {
		out = append(out, noun.Receiver{Channel: ChannelWebhook, Target: url, Job: job})
	}
	return out
}

func wanted(kind domain.AlertKind, alert domain.Alert) bool {
	switch kind {
	case domain.AlertRunFailed, domain.AlertRunTimedOut, domain.AlertRunLost, domain.AlertRunMissed, domain.AlertRunsPileUp:
		return alert.OnFailure
	case domain.AlertNoExecutor:
		return alert.IncludeNoExecutor
	case domain.AlertTest, domain.AlertRunLate, domain.AlertRunLong, domain.AlertJobAbsent, domain.AlertRunSucceeded:
		return true
	default:
		return false // written by a newer version: that one's nodes know what to do
	}
}
