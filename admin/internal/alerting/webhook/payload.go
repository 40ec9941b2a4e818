package webhook

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/alerting"
	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// Version names the shape of Payload. Fields may be added to it; one that
// changes or goes makes a new version.
const Version = "carillon.alert/v1"

// maxText bounds each free text in the body, in bytes.
const maxText = 8 << 10

// Payload is the body of a webhook. Ids are decimal strings, times RFC 3339
// UTC with milliseconds or null.
type Payload struct {
	Version string `json:"version"`
	// ID is the event's; the same in all deliveries of it.
	ID string `json:"id"`
	// DedupeKey is the same in every delivery of this event to this URL.
	DedupeKey string `json:"dedupeKey"`
	// Kind is run_failed, run_timed_out, run_lost, run_missed, no_executor, test,
	// clock_jump, db_rollback or executor_flapping.
	Kind      string  `json:"kind"`
	CreatedAt *string `json:"createdAt"`
	// Title and Summary are for people, in the server's alert language.
	Title    string   `json:"title"`
	Summary  string   `json:"summary"`
	Detail   string   `json:"detail,omitempty"` // of events that are not about a run
	Missed   int      `json:"missed,omitempty"` // runs that a run_missed stands for
	Tenant   Ref      `json:"tenant"`
	Job      Job      `json:"job"`
	Executor Ref      `json:"executor"`
	Run      *Run     `json:"run"` // null for events that are not about a run
	Links    Links    `json:"links"`
	Owner    OwnerRef `json:"owner"`
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
}

func payload(n *alerting.Notice, language alerting.Language) Payload {
	spec := n.Job.Spec
	labels := spec.Labels
	if labels == nil {
		labels = map[string]string{}
	}
	p := Payload{
		Version: Version, ID: strconv.FormatInt(n.Event.ID, 10), DedupeKey: n.DedupeKey, Kind: string(n.Event.Kind),
		CreatedAt: instant(n.Event.CreatedAt), Title: n.Title(language), Summary: n.Summary(language), Detail: clip(n.Event.Detail),
		Missed:   n.Event.Missed,
		Tenant:   Ref{n.Event.TenantID.String(), n.Tenant.Name},
		Job:      Job{n.Event.JobID.String(), spec.Name, n.Event.Revision, spec.Handler, labels},
		Executor: Ref{n.Executor.ID.String(), n.Executor.Name},
		Links:    Links{Run: n.RunURL, Job: n.JobURL},
		Owner:    OwnerRef(spec.Owner),
	}
	if n.Execution != nil {
		p.Run = run(n.Execution, n.Instance)
	}
	return p
}

func run(e *domain.Execution, instance string) *Run {
	r := &Run{
		ID: e.ID.String(), Cause: string(e.Cause), State: e.State.String(), Reason: string(e.Reason), Message: clip(e.Message),
		FireAt: instant(e.FireAt), StartedAt: instant(e.StartedAt), FinishedAt: instant(e.FinishedAt),
		Attempt: e.Attempt, MaxAttempts: e.MaxAttempts, ErrorKind: e.ErrorKind, Error: clip(e.Error),
	}
	if e.Instance != 0 {
		r.Instance = &Ref{e.Instance.String(), instance}
	}
	return r
}

func instant(t time.Time) *string {
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

// encode writes the body. It cannot fail: Payload holds only strings, numbers
// and maps of strings.
func (p Payload) encode() []byte {
	body, err := json.Marshal(p)
	if err != nil {
		panic("encode webhook payload: " + err.Error())
	}
	return body
}
