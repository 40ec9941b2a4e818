package admin

import (
	"slices"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/proto"
)

// declaredAlert is what a new job has.
func declaredAlert(d *proto.AlertDeclaration) domain.Alert {
	out := domain.DefaultAlert
	if d == nil {
		return out
	}
	if d.OnFailure != nil {
		out.OnFailure = *d.OnFailure
	}
	if d.IncludeNoExecutor != nil {
		out.IncludeNoExecutor = *d.IncludeNoExecutor
	}
	out.Emails, out.WebhookURL = d.Emails, d.WebhookUrl
	return out
}

// codeSays lists what the declaration says of settings that are the console's
// otherwise; it is never nil.
func codeSays(d *proto.JobDeclaration) domain.CodeSays {
	out := domain.CodeSays{}
	for key := range d.Labels {
		out = append(out, "labels."+key)
	}
	a := d.Alert
	for setting, said := range map[string]bool{
		"alert.onFailure":         a != nil && a.OnFailure != nil,
		"alert.includeNoExecutor": a != nil && a.IncludeNoExecutor != nil,
		"alert.emails":            len(a.GetEmails()) > 0,
		"alert.webhookUrl":        a.GetWebhookUrl() != "",
		"owner":                   d.OwnerEmail != "",
	} {
		if said {
			out = append(out, setting)
		}
	}
	slices.Sort(out)
	return out
}
