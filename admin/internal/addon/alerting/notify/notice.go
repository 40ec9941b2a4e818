package notify

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/noun"
	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// Names of the channels that jobs have without an alert channel of the tenant.
const (
	ChannelEmail   = string(noun.ChannelEmail)
	ChannelWebhook = string(noun.ChannelWebhook)
)

// Phase is what a notice means to who keeps incidents, such as PagerDuty.
type Phase string

// The phases.
const (
	PhaseTrigger     Phase = "trigger"
	PhaseAcknowledge Phase = "acknowledge"
	PhaseResolve     Phase = "resolve"
)

// Severity is how bad it is, in PagerDuty's words.
type Severity string

// The severities.
const (
	SeverityCritical Severity = "critical"
	SeverityError    Severity = "error"
	SeverityWarning  Severity = "warning"
	SeverityInfo     Severity = "info"
)

// Channel is an alert channel with its secrets open.
type Channel struct {
	ID domain.ChannelID
	noun.AlertChannelSpec
	Secrets noun.AlertChannelSecrets
}

// Notice is what one delivery tells. It is read-only for senders.
type Notice struct {
	// DedupeKey is the same in every try to deliver this message: 32 hex digits.
	DedupeKey string
	// Try counts the tellings of this delivery from 1, also by other nodes.
	Try    int
	Target string // address or URL
	// Channel is the tenant's alert channel that it goes through; nil: to Target.
	Channel *Channel
	// Group is the same for all notices about the same trouble, to all receivers:
	// who keeps incidents keeps one of them. Phase is what this one says of it.
	Group string
	Phase Phase

	// Incident is what the message is about, as it stands now; nil: it is about
	// Event alone. Its id is the same in all messages about it.
	Incident *noun.Incident
	// Event is the incident's newest when the message was written.
	Event  domain.AlertEvent
	Tenant domain.Tenant
	// Job is the event's, at its revision; of an incident of several jobs, the one
	// whose settings name the target.
	Job      domain.Job
	Executor domain.Executor
	// Execution is the run as it is now, which may be further than when the
	// event was written; nil for events that are not about a run.
	Execution *domain.Execution
	// Instance is the name of the run's instance; empty when it has none.
	Instance string
	// Log are the last lines of the run's log, oldest first; only in mails about a
	// run that ended badly.
	Log []string
	// RunURL and JobURL lead into the UI; empty when there is no such thing.
	RunURL, JobURL string
	// RunbookURL is the section about what happened; empty where no page is configured.
	RunbookURL string
}

// newNotice makes a notice of a claimed delivery. The BaseURL has no slash at its end.
func newNotice(due DueDelivery, opt *Options) *Notice {
	c := due.Context
	n := &Notice{
		DedupeKey: dedupeKey(c.Event, due.Delivery), Incident: due.Incident, Try: due.Delivery.Attempts, Target: due.Delivery.Target,
		Event: c.Event, Tenant: c.Tenant, Job: c.Job, Executor: c.Executor, Execution: c.Execution, Phase: PhaseTrigger,
		Group: groupKey(c.Event),
	}
	if n.Incident != nil {
		n.Group = "carillon-" + digest(c.Event.TenantID.String(), "incident", n.Incident.ID.String())
		switch {
		case n.Over(), n.Incident.Momentary() && !n.Incident.Live: // it closes when nothing else about it is to be told
			n.Phase = PhaseResolve
		case n.Incident.State == noun.IncidentAcknowledged:
			n.Phase = PhaseAcknowledge
		}
	}
	pages := opt.BaseURL
	if n.Tenant.Name != "" { // else the pages ask in the reader's tenant
		pages += "/t/" + url.PathEscape(n.Tenant.Name)
	}
	if id := n.JobID(); id != 0 {
		n.JobURL = pages + "/jobs/" + id.String()
	}
	if c.Event.ExecutionID != 0 {
		n.RunURL = pages + "/runs/" + c.Event.ExecutionID.String()
	}
	if opt.RunbookURL != "" && n.Phase != PhaseResolve && n.Event.Kind != domain.AlertTest && n.Event.Kind != domain.AlertRunSucceeded {
		n.RunbookURL = opt.RunbookURL + "#" + string(n.Event.Kind)
	}
	return n
}

// dedupeKey names a message to one target. It is derived and not stored: any node
// computes the same.
func dedupeKey(event domain.AlertEvent, d noun.Delivery) string {
	name, target := eventName(event), d.Target
	if d.Incident != 0 {
		name = "message " + strconv.FormatInt(d.ID, 10)
	}
	if d.ChannelID != 0 && d.Channel != ChannelEmail {
		target = d.ChannelID.String() // its name may change
	}
	return digest(event.TenantID.String(), name, d.Channel, target)
}

// groupKey names what an event is about, to all receivers.
func groupKey(event domain.AlertEvent) string {
	return "carillon-" + digest(event.TenantID.String(), eventName(event))
}

func eventName(event domain.AlertEvent) string {
	if event.DedupeKey == "" {
		return strconv.FormatInt(event.ID, 10)
	}
	return event.DedupeKey
}

func digest(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:16])
}

// Kind is that of the message: what has happened, or that it is over.
func (n *Notice) Kind() domain.AlertKind {
	switch {
	case n.Incident == nil:
		return n.Event.Kind
	case n.Over():
		return domain.AlertRecovered
	}
	return n.Incident.Kind
}

// Over reports whether the message says that an incident is over.
func (n *Notice) Over() bool {
	return n.Incident != nil && n.Incident.State == noun.IncidentResolved && !n.Incident.Momentary()
}

// Change reports whether the message is of no trouble: see asChange.
func (n *Notice) Change() bool {
	if n.Incident == nil {
		return n.Event.Kind == domain.AlertRunSucceeded
	}
	return asChange(n.Incident)
}

// Several reports whether the message is about several jobs of an executor.
func (n *Notice) Several() bool {
	return n.Incident != nil && n.Incident.Job == 0 && !n.Incident.Kind.Platform()
}

// JobID is 0 for what is about no job.
func (n *Notice) JobID() domain.JobID { return cmp.Or(n.Job.ID, n.Event.JobID) }

// Severity is how bad it is.
func (n *Notice) Severity() Severity {
	if n.Incident != nil && n.Incident.Severity == noun.SeverityCritical && !n.Over() {
		return SeverityCritical // as a rule says
	}
	switch n.Kind() {
	case domain.AlertClockJump, domain.AlertRollback, domain.AlertStalled:
		return SeverityCritical
	case domain.AlertNoExecutor, domain.AlertRunsPileUp, domain.AlertSchedulerBehind, domain.AlertFlapping, domain.AlertSetAside, domain.AlertOverload:
		return SeverityWarning
	case domain.AlertRunSucceeded:
		if !n.Change() {
			return SeverityCritical
		}
		return SeverityInfo
	case domain.AlertTest, domain.AlertRecovered, domain.AlertInstanceGone:
		return SeverityInfo
	default:
		return SeverityError
	}
}

// Language is that of the channel, or else the server's.
func (n *Notice) Language(server Language) Language {
	if n.Channel != nil && n.Channel.AlertChannelSpec.Language != "" {
		return Language(n.Channel.AlertChannelSpec.Language)
	}
	if server == "" {
		return English
	}
	return server
}

// JobName returns a name for people, also when the job is gone.
func (n *Notice) JobName() string {
	if n.Job.Spec.Name != "" {
		return n.Job.Spec.Name
	}
	if n.JobID() == 0 {
		return "-"
	}
	return "#" + n.JobID().String()
}

// Zone returns the job's time zone, UTC when it has none or an unknown one.
func (n *Notice) Zone() *time.Location {
	if zone, err := time.LoadLocation(n.Job.Spec.Schedule.Zone); err == nil {
		return zone
	}
	return time.UTC
}

// ErrorText returns what went wrong, in the words of the handler or of the
// engine; empty when nobody said anything.
func (n *Notice) ErrorText() string {
	if n.Execution == nil {
		return n.Event.Detail
	}
	text, why := n.Execution.Error, n.Execution.Message
	switch {
	case text == "" || text == why:
		return why
	case why == "":
		return text
	}
	return text + "\n" + why // such as: what the last attempt said, and no instance took the retry
}
