package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Ref names another object by id, name or both.
type Ref struct {
	ID   string `json:"id,omitempty"`
	Name string `json:"name,omitempty"`
}

// Job is what commands read of a job; Doc has the rest.
type Job struct {
	ID             string     `json:"id"`
	Name           string     `json:"name"`
	Description    string     `json:"description"`
	Executor       Ref        `json:"executor"`
	Handler        string     `json:"handler"`
	Schedule       Schedule   `json:"schedule"`
	Owner          Owner      `json:"owner"`
	State          string     `json:"state"`
	PauseNote      string     `json:"pauseNote"`
	Source         string     `json:"source"`
	Declared       *Declared  `json:"declared"`
	Revision       int64      `json:"revision"`
	NextFireAt     *time.Time `json:"nextFireAt"`
	NeverFires     bool       `json:"neverFires"`
	AwaitsRun      string     `json:"awaitsRun"`
	LastRun        *LastRun   `json:"lastRun"`
	ExecutorOnline int        `json:"executorOnline"`
	UpdatedAt      time.Time  `json:"updatedAt"`
	UpdatedBy      string     `json:"updatedBy"`
}

// Declared says what an application's code has to do with a job.
type Declared struct {
	Executor  Ref    `json:"executor"`
	Ownership string `json:"ownership"`
	Version   string `json:"version"`
	Gone      bool   `json:"gone"`
}

// Schedule says when a job fires.
type Schedule struct {
	Kind    string     `json:"kind"`
	Expr    string     `json:"expr"`
	Dialect string     `json:"dialect"`
	Every   string     `json:"every"`
	At      *time.Time `json:"at"`
	Zone    string     `json:"zone"`
	// Instants, WindowFrom and WindowTo are those of their kinds.
	Instants   []string  `json:"instants"`
	WindowFrom string    `json:"windowFrom"`
	WindowTo   string    `json:"windowTo"`
	Text       Bilingual `json:"text"`
}

// Bilingual is a text in both languages.
type Bilingual struct {
	En string `json:"en"`
	Zh string `json:"zh"`
}

// In returns the text in a language, English unless it is zh.
func (b Bilingual) In(language string) string {
	if language == "zh" {
		return b.Zh
	}
	return b.En
}

// Owner is who gets told.
type Owner struct {
	Name  string `json:"name"`
	Email string `json:"email"`
}

// LastRun is a job's newest run.
type LastRun struct {
	ID    string `json:"id"`
	State string `json:"state"`
}

// JobFilter selects jobs; empty fields select all.
type JobFilter struct {
	Query, ExecutorID, Handler, State, Label, Owner, Kind, Sort string
	NeverFires                                                  bool
	Limit                                                       int // 0 = all
}

// Jobs lists jobs.
func (c *Client) Jobs(ctx context.Context, f JobFilter) ([]Doc[Job], error) {
	q := url.Values{}
	set(q, "q", f.Query)
	set(q, "executorId", f.ExecutorID)
	set(q, "handler", f.Handler)
	set(q, "state", f.State)
	set(q, "label", f.Label)
	set(q, "owner", f.Owner)
	set(q, "kind", f.Kind)
	set(q, "sort", f.Sort)
	if f.NeverFires {
		set(q, "neverFires", "true")
	}
	return all(f.Limit, q, func(q url.Values) (p Page[Job], err error) {
		_, err = c.do(ctx, request{method: http.MethodGet, path: "/jobs", query: q}, &p)
		return p, err
	})
}

// Job gets one job by id.
func (c *Client) Job(ctx context.Context, id string) (d Doc[Job], err error) {
	_, err = c.do(ctx, request{method: http.MethodGet, path: "/jobs/" + url.PathEscape(id)}, &d)
	return d, err
}

// CreateJob makes a job of its writable fields.
func (c *Client) CreateJob(ctx context.Context, spec json.RawMessage, allow Lenient) (d Doc[Job], err error) {
	_, err = c.do(ctx, request{method: http.MethodPost, path: "/jobs", query: allow.query(), body: spec}, &d)
	return d, err
}

// ReplaceJob writes a job's fields, if it still has the revision.
func (c *Client) ReplaceJob(ctx context.Context, id string, revision int64, spec json.RawMessage, allow Lenient) (d Doc[Job], err error) {
	_, err = c.do(ctx, request{
		method: http.MethodPut, path: "/jobs/" + url.PathEscape(id), query: allow.query(), body: spec,
		header: map[string]string{"If-Match": `"` + strconv.FormatInt(revision, 10) + `"`},
	}, &d)
	return d, err
}

// Lenient says what the server takes although the executor's catalogue does not
// have it, for jobs that are made before their application is deployed.
type Lenient struct{ UnknownHandler, UnfitInput bool }

func (l Lenient) query() url.Values {
	q := url.Values{}
	if l.UnknownHandler {
		q.Set("allowUnknownHandler", "true")
	}
	if l.UnfitInput {
		q.Set("allowUnfitInput", "true")
	}
	return q
}

// DeleteJob removes a job; its runs stay.
func (c *Client) DeleteJob(ctx context.Context, id string) error {
	_, err := c.do(ctx, request{method: http.MethodDelete, path: "/jobs/" + url.PathEscape(id)}, nil)
	return err
}

// PauseJob stops a job's schedule.
func (c *Client) PauseJob(ctx context.Context, id, note string) (d Doc[Job], err error) {
	_, err = c.do(ctx, request{
		method: http.MethodPost, path: "/jobs/" + url.PathEscape(id) + "/pause", body: map[string]string{"note": note},
	}, &d)
	return d, err
}

// ResumeJob starts it again.
func (c *Client) ResumeJob(ctx context.Context, id string) (d Doc[Job], err error) {
	_, err = c.do(ctx, request{method: http.MethodPost, path: "/jobs/" + url.PathEscape(id) + "/resume"}, &d)
	return d, err
}

// RunRequest is a wish for a run.
type RunRequest struct {
	Input      json.RawMessage `json:"input,omitempty"`
	InstanceID string          `json:"instanceId,omitempty"`
	Note       string          `json:"note,omitempty"`
	At         string          `json:"at,omitempty"`
	After      string          `json:"after,omitempty"`
	Allow      Lenient         `json:"-"`
}

// RunJob asks for a run and does not wait for it. The same key on the same job
// never starts a second run.
func (c *Client) RunJob(ctx context.Context, id string, r RunRequest, key string) (d Doc[Run], err error) {
	_, err = c.do(ctx, request{
		method: http.MethodPost, path: "/jobs/" + url.PathEscape(id) + "/run", query: r.Allow.query(), body: r,
		header: map[string]string{"Idempotency-Key": key},
	}, &d)
	return d, err
}

// Fires are a schedule's next fire times.
type Fires struct {
	Fires      []Fire `json:"fires"`
	NeverFires bool   `json:"neverFires"`
}

// Fire is one of them.
type Fire struct {
	At    time.Time `json:"at"`
	Zoned string    `json:"zoned"`
	Note  string    `json:"note"`
	// Excluded says why a calendar keeps it from running.
	Excluded string `json:"excluded"`
}

// NextFires asks for a job's next n fire times after from (empty = now).
func (c *Client) NextFires(ctx context.Context, id string, n int, from string) (d Doc[Fires], err error) {
	q := url.Values{"n": {strconv.Itoa(n)}}
	set(q, "from", from)
	_, err = c.do(ctx, request{method: http.MethodGet, path: "/jobs/" + url.PathEscape(id) + "/next-fires", query: q}, &d)
	return d, err
}

// JobBatchItem is what became of one of many jobs.
type JobBatchItem struct {
	Name    string   `json:"name"`
	Status  int      `json:"status"`
	ID      string   `json:"id"`
	Problem *Problem `json:"problem"` // nil: it was created
}

// The most that one request for many jobs holds: how many, and bytes in all (the
// server takes 1 MiB).
const (
	maxBatch      = 1000
	maxBatchBytes = 900 << 10
)

// CreateJobs makes many jobs, with as many requests as they need, and calls done
// with the answers of each request, in order.
func (c *Client) CreateJobs(ctx context.Context, specs []json.RawMessage, allow Lenient, done func([]Doc[JobBatchItem]) error) error {
	for len(specs) > 0 {
		n, bytes := 0, 0
		for n < len(specs) && n < maxBatch && (n == 0 || bytes+len(specs[n]) <= maxBatchBytes) {
			bytes += len(specs[n]) + 1
			n++
		}
		body, err := json.Marshal(map[string]any{"items": specs[:n]})
		if err != nil {
			return err
		}
		var answer Page[JobBatchItem]
		if _, err := c.do(ctx, request{method: http.MethodPost, path: "/jobs/batch", query: allow.query(), body: json.RawMessage(body)}, &answer); err != nil {
			return err
		}
		if err := done(answer.Items); err != nil {
			return err
		}
		specs = specs[n:]
	}
	return nil
}
