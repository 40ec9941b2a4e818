package notify

import (
	"slices"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/noun"
	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// settled is how long an executor's incident has to be without a further event
// before it is over: its jobs fail one after the other.
var settled = map[noun.AlertClass]time.Duration{
	noun.ClassUnavailable: 10 * time.Second, noun.ClassFailed: 5 * time.Minute, noun.ClassTimedOut: 5 * time.Minute,
}

// tell decides what becomes of incidents whose time has come, and who is told.
// It is pure; the store calls it inside a transaction, perhaps twice.
func (s *Service) tell(now time.Time, due []*DueIncident) {
	for _, d := range due {
		if d.State != noun.IncidentResolved && recovered(d, now) {
			d.Resolve(now, "")
		}
		policy := s.opt.Policy
		if d.Rule != nil && d.Rule.Spec.Repeat > 0 {
			policy.Repeat = d.Rule.Spec.Repeat
		}
		silent, quiet := silentUntil(d), quietUntil(d, now)
		hold := silent
		if quiet.After(hold) {
			hold = quiet
		}
		others := escalateAt(d)
		switch {
		case hold.After(now):
			if !silent.IsZero() && d.State == noun.IncidentResolved && d.ToldState != noun.IncidentOpen {
				d.Forgive() // it came and went while nobody wanted to hear of it
			}
		case !d.NextTell(&policy).After(now):
			tellAll(d, now)
		case d.State == noun.IncidentOpen:
			// Who has come later is told what the others know.
			for n := range d.Receivers {
				if !d.Receivers[n].Told {
					d.Told = append(d.Told, n)
				}
			}
		}
		if d.Momentary() && d.State != noun.IncidentResolved &&
			(d.Events == d.ToldEvents || !silent.IsZero() || d.State == noun.IncidentAcknowledged) {
			d.Resolve(now, "")
			d.Forgive()
		}
		if !hold.After(now) && !others.IsZero() && !others.After(now) {
			escalate(d, now)
			others = time.Time{}
		}
		live := d.Live
		d.Schedule(now, &policy, noun.Wishes{Hold: hold, EscalateAt: others, Unsent: d.Unsent})
		if live && !d.Live && d.Momentary() {
			tellKeepers(d)
		}
	}
}

// tellKeepers tells those products that a momentary incident has closed which would
// keep it open for ever.
func tellKeepers(d *DueIncident) {
	for n := range d.Receivers {
		r := &d.Receivers[n]
		if _, exists := d.Channels[r.ChannelID]; !exists || !r.Told {
			continue
		}
		if keepsOpen(r.Channel) && !(r.Channel == string(noun.ChannelPagerDuty) && asChange(d.Incident)) {
			d.Told = append(d.Told, n)
		}
	}
}

// keepsOpen reports whether the product keeps what it was told until it is told that it
// is over.
func keepsOpen(channel string) bool {
	return channel == string(noun.ChannelOpsgenie) || channel == string(noun.ChannelPagerDuty)
}

// asChange reports whether products that know changes beside trouble hear of it as a
// change, which calls nobody: it is good news, and no rule says that it is critical.
func asChange(i *noun.Incident) bool {
	return i.Kind == domain.AlertRunSucceeded && i.Severity != noun.SeverityCritical
}

func tellAll(d *DueIncident, now time.Time) {
	d.Told = d.Told[:0]
	for n := range d.Receivers {
		d.Told = append(d.Told, n)
	}
	d.Incident.Tell(now)
}

// escalateAt is when others are to be told; zero: never, or they were. Nobody has to
// do anything about what is over at once.
func escalateAt(d *DueIncident) time.Time {
	if d.Rule == nil || d.Rule.Spec.EscalateAfter == 0 || !d.EscalatedAt.IsZero() || d.State != noun.IncidentOpen || d.Momentary() {
		return time.Time{}
	}
	return d.OpenedAt.Add(d.Rule.Spec.EscalateAfter)
}

// escalate tells those whom the rule names for when nobody has acknowledged it.
func escalate(d *DueIncident, now time.Time) {
	d.EscalatedAt = now
	for _, r := range channels(d.TenantAlerts, d.Rule.Spec.EscalateTo) {
		at := slices.IndexFunc(d.Receivers, func(o noun.Receiver) bool { return o.Key() == r.Key() })
		if at < 0 {
			at, d.Receivers = len(d.Receivers), append(d.Receivers, r)
		}
		if !slices.Contains(d.Told, at) {
			d.Told = append(d.Told, at)
		}
	}
}

// silentUntil is the end of the silences that an incident is in now; zero: in none.
func silentUntil(d *DueIncident) (until time.Time) {
	for n := range d.Silences {
		if s := &d.Silences[n]; s.EndsAt.After(until) && s.Match.MatchesIncident(d.Incident, d.Labels) {
			until = s.EndsAt
		}
	}
	return until
}

// quietUntil is the end of the quiet hours that keep an incident back; zero: none do.
func quietUntil(d *DueIncident, now time.Time) time.Time {
	quiet := d.Settings.Quiet
	if d.Rule != nil && !d.Rule.Spec.Quiet.IsZero() {
		quiet = d.Rule.Spec.Quiet
	}
	if d.Severity == noun.SeverityCritical || d.Kind.Platform() {
		return time.Time{}
	}
	return quiet.Until(now)
}

// recovered reports whether an incident is over. A job is well when a run of it has
// succeeded since. An executor is when one of its runs has, and nothing more has
// happened for a while; it has an instance then. An outage that no run was lost in
// is over when there is an instance. A pile of runs is over when none waits.
func recovered(d *DueIncident, now time.Time) bool {
	if d.Kind.Platform() || d.Momentary() {
		return false
	}
	if d.Kind == domain.AlertRunsPileUp {
		return d.Waiting == 0
	}
	if d.Job != 0 {
		return !d.Succeeded.IsZero()
	}
	event := domain.AlertEvent{Kind: d.Kind}
	if now.Sub(d.LastAt) < settled[noun.ClassOf(&event)] {
		return false
	}
	return !d.Succeeded.IsZero() || d.Kind == domain.AlertNoExecutor && d.Online > 0
}
