package notify

import (
	"cmp"
	"encoding/json"
	"strconv"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/noun"
	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// PayloadVersion names the shape of Payload. Fields may be added to it; one that
// changes or goes makes a new version.
const PayloadVersion = "carillon.alert/v1"

// maxText bounds each free text in the body, in bytes.
const maxText = 8 << 10

// Payload is the body of a webhook. Ids are decimal strings, times RFC 3339
// UTC with milliseconds or null.
type Payload struct {
	Version string `json:"version"`
	// ID is that of the newest event.
	ID string `json:"id"`
	// DedupeKey is the same in every try to deliver this message to this URL.
	DedupeKey string `json:"dedupeKey"`
	// Incident is what the message is about; null for a test.
	Incident *Incident `json:"incident"`
	// Kind is run_failed, run_timed_out, run_lost, run_missed, no_executor,
	// recovered, test, clock_jump, db_rollback, executor_flapping or row_set_aside.
	Kind      string  `json:"kind"`
	CreatedAt *string `json:"createdAt"`
	// Title and Summary are for people, in the server's alert language.
	Title    string   `json:"title"`
	Summary  string   `json:"summary"`
	Detail   string   `json:"detail,omitempty"` // the error's first line; what has happened, of events that are not about a run
	Missed   int      `json:"missed,omitempty"` // runs that a run_missed stands for
	Tenant   Ref      `json:"tenant"`
	Job      Job      `json:"job"`
	Executor Ref      `json:"executor"`
	Run      *Run     `json:"run"` // null for events that are not about a run
	Links    Links    `json:"links"`
	Owner    OwnerRef `json:"owner"`
}

// Incident is what is told as one thing, as it stands when the webhook is sent.
type Incident struct {
	// ID is the same in all messages about it.
	ID string `json:"id"`
	// Kind is what has happened, also when it is over.
	Kind string `json:"kind"`
	// State is open, acknowledged or resolved.
	State string `json:"state"`
	// Severity is info, warning or critical, as the tenant's rule says.
	Severity   string  `json:"severity"`
	OpenedAt   *string `json:"openedAt"`
	LastAt     *string `json:"lastAt"`
	ResolvedAt *string `json:"resolvedAt"`
	// Events is how many there were, of Jobs jobs (1000: that many or more).
	Events int64 `json:"events"`
	Jobs   int   `json:"jobs"`
	// JobNames are some of them.
	JobNames []string `json:"jobNames"`
	// Message counts the messages about it, from 1.
	Message int64 `json:"message"`
}

func payloadIncident(i *noun.Incident) *Incident {
	if i == nil {
		return nil
	}
	names, _ := i.Names()
	if names == nil {
		names = []string{}
	}
	return &Incident{
		ID: i.ID.String(), Kind: string(i.Kind), State: i.State.String(), Severity: string(cmp.Or(i.Severity, noun.SeverityWarning)), OpenedAt: rfc3339(i.OpenedAt), LastAt: rfc3339(i.LastAt),
		ResolvedAt: rfc3339(i.ResolvedAt), Events: i.Events, Jobs: len(i.Jobs), JobNames: names, Message: i.Told,
	}
}

// Ref names an object.
type Ref struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// Job is the job at the revision that the event is about.
type Job struct {
	ID       string            `json:"id"`
	Name     string            `json:"name"`
	Revision int64             `json:"revision"`
	Handler  string            `json:"handler"`
	Labels   map[string]string `json:"labels"`
}

// OwnerRef is the job's owner.
type OwnerRef struct {
	Name  string `json:"name"`
	Email string `json:"email"`
}

// Run is the run as it stands when the webhook is sent.
type Run struct {
	ID          string  `json:"id"`
	Cause       string  `json:"cause"`
	State       string  `json:"state"`
	Reason      string  `json:"reason"`
	Message     string  `json:"message"`
	FireAt      *string `json:"fireAt"`
	StartedAt   *string `json:"startedAt"`
	FinishedAt  *string `json:"finishedAt"`
	Attempt     int     `json:"attempt"`
	MaxAttempts int     `json:"maxAttempts"`
	Instance    *Ref    `json:"instance"` // null when it was never sent to one
	ErrorKind   string  `json:"errorKind"`
	Error       string  `json:"error"`
}

// Links lead into the UI; empty when there is nothing to show.
type Links struct {
	Run string `json:"run"`
	Job string `json:"job"`
	// Runbook is absent where no page is configured.
	Runbook string `json:"runbook,omitempty"`
}

// NewPayload is what a notice says to machines.
func NewPayload(n *Notice, language Language) Payload {
	spec := n.Job.Spec
	labels := spec.Labels
	if labels == nil {
		labels = map[string]string{}
	}
	p := Payload{
		Version: PayloadVersion, ID: strconv.FormatInt(n.Event.ID, 10), DedupeKey: n.DedupeKey, Incident: payloadIncident(n.Incident), Kind: string(n.Kind()),
		CreatedAt: rfc3339(n.Event.CreatedAt), Title: n.Title(language), Summary: n.Summary(language), Detail: clip(n.Event.Detail),
		Tenant:   Ref{n.Event.TenantID.String(), n.Tenant.Name},
		Job:      Job{n.JobID().String(), spec.Name, cmp.Or(n.Job.Revision, n.Event.Revision), spec.Handler, labels},
		Executor: Ref{n.Executor.ID.String(), n.Executor.Name},
		Links:    Links{Run: n.RunURL, Job: n.JobURL, Runbook: n.RunbookURL},
		Owner:    OwnerRef(spec.Owner),
	}
	if n.Event.Kind == domain.AlertRunMissed {
		p.Missed = n.Event.Missed
	}
	if n.Execution != nil {
		p.Run = payloadRun(n.Execution, n.Instance)
	}
	return p
}

func payloadRun(e *domain.Execution, instance string) *Run {
	r := &Run{
		ID: e.ID.String(), Cause: string(e.Cause), State: e.State.String(), Reason: string(e.Reason), Message: clip(e.Message),
		FireAt: rfc3339(e.FireAt), StartedAt: rfc3339(e.StartedAt), FinishedAt: rfc3339(e.FinishedAt),
		Attempt: e.Attempt, MaxAttempts: e.MaxAttempts, ErrorKind: e.ErrorKind, Error: clip(e.Error),
	}
	if e.Instance != 0 {
		r.Instance = &Ref{e.Instance.String(), instance}
	}
	return r
}

func rfc3339(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	s := t.UTC().Format("2006-01-02T15:04:05.000Z")
	return &s
}

// clip bounds a text. A character that is cut in two becomes U+FFFD in JSON.
func clip(s string) string {
	if len(s) > maxText {
		return s[:maxText]
	}
	return s
}

// Encode writes the body. It cannot fail: Payload holds only strings, numbers
// and maps of strings.
func (p Payload) Encode() []byte {
	body, err := json.Marshal(p)
	if err != nil {
		panic("encode webhook payload: " + err.Error())
	}
	return body
}
