package alerting

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// Names of the channels, as stored in deliveries.
const (
	ChannelEmail   = "email"
	ChannelWebhook = "webhook"
)

// Notice is what one delivery tells. It is read-only for senders.
type Notice struct {
	// DedupeKey is the same for every telling of this event to this target:
	// 32 hex digits.
	DedupeKey string
	// Try counts the tellings of this delivery from 1, also by other nodes.
	Try    int
	Target string // address or URL

	Event    domain.AlertEvent
	Tenant   domain.Tenant
	Job      domain.Job // at the event's revision
	Executor domain.Executor
	// Execution is the run as it is now, which may be further than when the
	// event was written; nil for events that are not about a run.
	Execution *domain.Execution
	// Instance is the name of the run's instance; empty when it has none.
	Instance string
	// RunURL and JobURL lead into the UI; empty when there is no such thing.
	RunURL, JobURL string
}

// newNotice makes a notice of a claimed delivery. baseURL has no slash at its end.
func newNotice(due store.DueDelivery, baseURL string) *Notice {
	c := due.Context
	n := &Notice{
		DedupeKey: dedupeKey(c.Event, due.Delivery), Try: due.Delivery.Attempts, Target: due.Delivery.Target,
		Event: c.Event, Tenant: c.Tenant, Job: c.Job, Executor: c.Executor, Execution: c.Execution,
	}
	if c.Event.JobID != 0 {
		n.JobURL = baseURL + "/jobs/" + c.Event.JobID.String()
	}
	if c.Event.ExecutionID != 0 {
		n.RunURL = baseURL + "/runs/" + c.Event.ExecutionID.String()
	}
	return n
}

// dedupeKey names the telling of one event to one target. It is derived and
// not stored: any node computes the same.
func dedupeKey(event domain.AlertEvent, d domain.Delivery) string {
	name := event.DedupeKey
	if name == "" {
		name = strconv.FormatInt(event.ID, 10)
	}
	sum := sha256.Sum256([]byte(strings.Join([]string{event.TenantID.String(), name, d.Channel, d.Target}, "\x00")))
	return hex.EncodeToString(sum[:16])
}

// JobName returns a name for people, also when the job is gone.
func (n *Notice) JobName() string {
	if n.Job.Spec.Name != "" {
		return n.Job.Spec.Name
	}
	if n.Event.JobID == 0 {
		return "-"
	}
	return "#" + n.Event.JobID.String()
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
	return why + "\n" + text // such as: no instance took the retry, and what the last attempt said
}
