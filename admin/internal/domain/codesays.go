package domain

import (
	"maps"
	"slices"
	"strings"
)

// CodeSays lists what code declares of a job's labels, alerts and owner, by the
// paths of the API and in their order: "labels.KEY", "alert.onFailure",
// "alert.includeNoExecutor", "alert.emails", "alert.webhookUrl", "owner". That is the
// code's, like all other settings of a declared job; the rest of these is the
// console's (docs/adr/0057).
//
// Nil: not noted, of jobs that were made in the console or stored before this was
// noted. Their labels and alerts are the console's, and their owner is the code's.
type CodeSays []string

// Has reports whether code declares the setting.
func (c CodeSays) Has(setting string) bool { return slices.Contains(c, setting) }

// Locks reports whether a setting, as the API names it, is the code's where the code
// owns the job.
func (c CodeSays) Locks(field string) bool {
	switch {
	case strings.HasPrefix(field, "labels."), strings.HasPrefix(field, "alert."):
		return c.Has(field)
	case strings.HasPrefix(field, "owner."):
		return c == nil || c.Has("owner")
	}
	return true
}

// Same reports whether both say the same. Where one is not noted, the owner does
// not count.
func (c CodeSays) Same(other CodeSays) bool {
	noted := func(c CodeSays) CodeSays {
		return slices.DeleteFunc(slices.Clone(c), func(s string) bool { return s == "owner" })
	}
	if c == nil || other == nil {
		c, other = noted(c), noted(other)
	}
	return slices.Equal(c, other)
}

// KeepConsoles makes of what code declares what the job becomes that was old: its
// labels, alerts and owner stay where code does not say them. A label that code said
// before, and does not say any more, goes; such a setting of its alerts has its
// default again. An owner stays.
func (s *JobSpec) KeepConsoles(old *JobSpec) error {
	labels := map[string]string{}
	for key, value := range old.Labels {
		if !old.CodeSays.Has("labels." + key) {
			labels[key] = value
		}
	}
	ours := len(labels)
	maps.DeleteFunc(labels, func(key, _ string) bool { return s.CodeSays.Has("labels." + key) })
	for key, value := range s.Labels {
		if s.CodeSays.Has("labels." + key) {
			labels[key] = value
		}
	}
	if len(labels) > MaxLabels {
		return Invalid("job.labels", "a job has at most %d labels; this one has %d of the console beside those that are declared", MaxLabels, ours)
	}
	if s.Labels = labels; len(labels) == 0 {
		s.Labels = nil
	}

	kept := old.Alert // its signing key is never the code's
	for setting, from := range map[string]func(to, from *Alert){
		"alert.onFailure":         func(to, from *Alert) { to.OnFailure = from.OnFailure },
		"alert.includeNoExecutor": func(to, from *Alert) { to.IncludeNoExecutor = from.IncludeNoExecutor },
		"alert.emails":            func(to, from *Alert) { to.Emails = from.Emails },
		"alert.webhookUrl":        func(to, from *Alert) { to.WebhookURL = from.WebhookURL },
	} {
		switch {
		case s.CodeSays.Has(setting):
			from(&kept, &s.Alert)
		case old.CodeSays.Has(setting):
			from(&kept, &DefaultAlert)
		}
	}
	if s.Alert = kept; s.Alert.WebhookURL == "" {
		s.Alert.WebhookSecret = nil
	}
	if !s.CodeSays.Locks("owner.email") {
		s.Owner = old.Owner
	}
	return nil
}
