package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Run is what commands read of a run.
type Run struct {
	ID          string     `json:"id"`
	JobID       string     `json:"jobId"`
	JobName     string     `json:"jobName"`
	Executor    Ref        `json:"executor"`
	Handler     string     `json:"handler"`
	Cause       string     `json:"cause"`
	FireAt      time.Time  `json:"fireAt"`
	State       string     `json:"state"`
	Reason      string     `json:"reason"`
	Message     string     `json:"message"`
	Attempt     int        `json:"attempt"`
	MaxAttempts int        `json:"maxAttempts"`
	Instance    *Ref       `json:"instance"`
	RequestedBy string     `json:"requestedBy"`
	Note        string     `json:"note"`
	StartedAt   *time.Time `json:"startedAt"`
	FinishedAt  *time.Time `json:"finishedAt"`
	LatenessMS  *int64     `json:"latenessMs"`
	DurationMS  *int64     `json:"durationMs"`
	Error       string     `json:"error"`
	ParentID    string     `json:"parentId"`
	Part        string     `json:"part"` // shard, before or after
	Shard       *Shard     `json:"shard"`
	Stage       string     `json:"stage"`
	Shards      int        `json:"shards"` // of a run that has them
	// Lingers: it has ended, but its handler still runs and keeps the slot.
	Lingers    bool       `json:"lingers"`
	ReturnedAt *time.Time `json:"returnedAt"`

	// Only of a single run.
	Input    json.RawMessage `json:"input"`
	Output   json.RawMessage `json:"output"`
	Attempts []Attempt       `json:"attempts"`
	Progress *Progress       `json:"progress"`
	Steps    []Step          `json:"steps"`
}

// Progress is how far a handler says that it is.
type Progress struct {
	Percent   float64   `json:"percent"`
	Message   string    `json:"message"`
	UpdatedAt time.Time `json:"updatedAt"`
}

// Step is what a handler has done for good.
type Step struct {
	Name     string          `json:"name"`
	Output   json.RawMessage `json:"output"`
	StoredAt time.Time       `json:"storedAt"`
}

// Shard is a slice of a run with shards.
type Shard struct {
	Index int `json:"index"`
	Total int `json:"total"`
}

// RunParts are the shards and hooks of a run.
type RunParts struct {
	Items  []Doc[Run]     `json:"items"`
	More   bool           `json:"more"`
	Living int            `json:"living"`
	Shards map[string]int `json:"shards"`
}

// Attempt is one try.
type Attempt struct {
	Number     int        `json:"number"`
	Instance   *Ref       `json:"instance"`
	State      string     `json:"state"`
	StartedAt  *time.Time `json:"startedAt"`
	FinishedAt *time.Time `json:"finishedAt"`
	ErrorKind  string     `json:"errorKind"`
	Error      string     `json:"error"`
	Stack      string     `json:"stack"`
}

// StateSucceeded is the one good end.
const StateSucceeded = "succeeded"

// States are those that a run can be in, live ones first.
var States = []string{
	"due", "offered", "running", "cancelling", "retry_wait",
	"succeeded", "failed", "timed_out", "cancelled", "lost", "missed", "discarded", "excluded",
}

// Causes are the reasons why a run exists.
var Causes = []string{"schedule", "misfire", "manual", "api", "retry", "parent", "backfill"}

// unfinished are the states that a run can still leave.
var unfinished = map[string]bool{"due": true, "offered": true, "running": true, "cancelling": true, "retry_wait": true}

// Finished reports whether the run's state is final. States that this version
// does not know count as final, so that nobody waits for ever.
func (r *Run) Finished() bool { return !unfinished[r.State] }

// RunFilter selects runs; empty fields select all.
type RunFilter struct {
	JobID, ExecutorID, InstanceID, States, Cause, From, To, Query string
	Limit                                                         int // 0 = all
}

// Runs lists runs, newest first.
func (c *Client) Runs(ctx context.Context, f RunFilter) ([]Doc[Run], error) {
	q := url.Values{}
	set(q, "jobId", f.JobID)
	set(q, "executorId", f.ExecutorID)
	set(q, "instanceId", f.InstanceID)
	set(q, "state", f.States)
	set(q, "cause", f.Cause)
	set(q, "from", f.From)
	set(q, "to", f.To)
	set(q, "q", f.Query)
	return all(f.Limit, q, func(q url.Values) (p Page[Run], err error) {
		_, err = c.do(ctx, request{method: http.MethodGet, path: "/runs", query: q}, &p)
		return p, err
	})
}

// Run gets one run with its attempts.
func (c *Client) Run(ctx context.Context, id string) (d Doc[Run], err error) {
	_, err = c.do(ctx, request{method: http.MethodGet, path: "/runs/" + url.PathEscape(id)}, &d)
	return d, err
}

// RunParts gets the shards and hooks of a run, all of them.
func (c *Client) RunParts(ctx context.Context, id string) (p RunParts, err error) {
	q := url.Values{"limit": {"1002"}}
	_, err = c.do(ctx, request{method: http.MethodGet, path: "/runs/" + url.PathEscape(id) + "/parts", query: q}, &p)
	return p, err
}

// CancelRun asks a run to stop.
func (c *Client) CancelRun(ctx context.Context, id, reason string) (d Doc[Run], err error) {
	_, err = c.do(ctx, request{
		method: http.MethodPost, path: "/runs/" + url.PathEscape(id) + "/cancel", body: map[string]string{"reason": reason},
	}, &d)
	return d, err
}

// RetryRun runs a finished run again; input nil = its own. onlyFailed: of a run
// with shards, those that did not succeed.
func (c *Client) RetryRun(ctx context.Context, id string, input json.RawMessage, onlyFailed bool) (d Doc[Run], err error) {
	body := struct {
		Input      json.RawMessage `json:"input,omitempty"`
		OnlyFailed bool            `json:"onlyFailed,omitempty"`
	}{input, onlyFailed}
	_, err = c.do(ctx, request{method: http.MethodPost, path: "/runs/" + url.PathEscape(id) + "/retry", body: body}, &d)
	return d, err
}

// LogLine is one line that a handler wrote.
type LogLine struct {
	N       int64           `json:"n"`
	At      time.Time       `json:"at"`
	Attempt int             `json:"attempt"`
	Level   string          `json:"level"`
	Msg     string          `json:"msg"`
	Attrs   json.RawMessage `json:"attrs"`
}

// LogPage is a piece of a log.
type LogPage struct {
	Lines     []Doc[LogLine] `json:"lines"`
	LastLine  int64          `json:"lastLine"`
	Next      int64          `json:"next"` // 0 from servers that do not say
	Complete  bool           `json:"complete"`
	Truncated bool           `json:"truncated"`
	Counts    *LogCounts     `json:"counts"` // nil as long as lines can still come
	Prev      int64          `json:"prev"`
}

// LogCounts tells whether a log that has ended is whole.
type LogCounts struct {
	Written int64 `json:"written"`
	Kept    int64 `json:"kept"`
	Missing []struct {
		Lines int64  `json:"lines"`
		Why   string `json:"why"`
	} `json:"missing"`
}

// LogQuery asks for a piece of a log.
type LogQuery struct {
	Attempt     int   // 0 = all
	After       int64 // lines with higher numbers
	Last        int   // the last so many lines, for the first piece; 0 = from After on
	Limit       int   // 0 = the server's default
	Wait        time.Duration
	Level, Text string
}

// logEnd is beyond the last line of every log.
const logEnd = 1<<53 - 1

// Log gets the next piece of a run's log. After is moved on in q, and Last is used up.
func (c *Client) Log(ctx context.Context, id string, q *LogQuery) (p LogPage, err error) {
	if q.Last > 0 {
		return c.lastLines(ctx, id, q)
	}
	v := url.Values{"after": {strconv.FormatInt(q.After, 10)}}
	if q.Limit > 0 {
		v.Set("limit", strconv.Itoa(q.Limit))
	}
	if q.Wait > 0 {
		v.Set("wait", q.Wait.String())
	}
	if p, err = c.logPiece(ctx, id, q, v); err != nil {
		return p, err
	}
	q.After = max(q.After, p.Next)
	if n := len(p.Lines); n > 0 {
		q.After = max(q.After, p.Lines[n-1].Value.N)
	}
	return p, nil
}

// lastLines gets the last q.Last lines. The server looks at a part of a long
// log at a time.
func (c *Client) lastLines(ctx context.Context, id string, q *LogQuery) (p LogPage, err error) {
	for before := int64(logEnd); before > 0 && len(p.Lines) < q.Last; {
		v := url.Values{"before": {strconv.FormatInt(before, 10)}, "limit": {strconv.Itoa(q.Last - len(p.Lines))}}
		more, err := c.logPiece(ctx, id, q, v)
		if err != nil {
			return p, err
		}
		more.Lines = append(more.Lines, p.Lines...)
		if before < logEnd { // the first answer says where the log ended
			more.LastLine, more.Complete, more.Truncated, more.Counts = p.LastLine, p.Complete, p.Truncated, p.Counts
		}
		p, before = more, more.Prev
	}
	q.Last, q.After = 0, max(q.After, p.LastLine)
	return p, nil
}

func (c *Client) logPiece(ctx context.Context, id string, q *LogQuery, v url.Values) (p LogPage, err error) {
	if q.Attempt > 0 {
		v.Set("attempt", strconv.Itoa(q.Attempt))
	}
	set(v, "level", q.Level)
	set(v, "q", q.Text)
	_, err = c.do(ctx, request{method: http.MethodGet, path: "/runs/" + url.PathEscape(id) + "/log", query: v}, &p)
	return p, err
}
