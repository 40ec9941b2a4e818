package client

import (
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
)

// Problem is an error answer of the server (RFC 9457).
type Problem struct {
	Status   int             `json:"status"`
	Title    string          `json:"title"`
	Detail   string          `json:"detail"`
	Code     string          `json:"code"`
	Instance string          `json:"instance"` // request id
	Errors   []ProblemItem   `json:"errors"`
	Current  json.RawMessage `json:"current"` // with revision_mismatch: the job as it is now

	// Host that answered, for messages.
	Host string `json:"-"`
}

// ProblemItem points at one wrong value.
type ProblemItem struct {
	Location string `json:"location"`
	Message  string `json:"message"`
	Value    any    `json:"value"`
	Position *int   `json:"position"` // byte offset in a cron expression
	Length   *int   `json:"length"`
	Hint     string `json:"hint"`
}

// Codes that the command line treats specially.
const (
	CodeTokenExpired     = "token_expired"
	CodeUnauthenticated  = "unauthenticated"
	CodeDenied           = "permission_denied"
	CodeNotFound         = "not_found"
	CodeConflict         = "conflict"
	CodeRevisionMismatch = "revision_mismatch"
	CodeInvalidCron      = "invalid_cron"
	CodeUnknownHandler   = "unknown_handler"
	CodeUnfitInput       = "unfit_input"
	CodeAlreadyFinished  = "already_finished"
	CodeExecutorOffline  = "executor_offline"
	CodeWaitTimedOut     = "wait_timed_out"
	CodeRateLimited      = "rate_limited"
	CodeUnavailable      = "unavailable"
	CodeInternal         = "internal"
)

func (p *Problem) Error() string {
	text := p.Detail
	if text == "" {
		text = p.Title
	}
	if p.Code == "" {
		return fmt.Sprintf("%s (HTTP %d)", text, p.Status)
	}
	return fmt.Sprintf("%s (%s)", text, p.Code)
}

// problemOf reads an error answer. Answers of others (proxies, a wrong
// address) become a Problem without a code.
func problemOf(response *http.Response) *Problem {
	p := &Problem{}
	raw, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	if err != nil || kind != "application/problem+json" || json.Unmarshal(raw, p) != nil {
		*p = Problem{Detail: fmt.Sprintf("%s did not answer like a Carillon server: %s", response.Request.URL.Host, response.Status)}
		if to := response.Header.Get("Location"); to != "" {
			p.Detail += ", it redirects to " + strings.SplitN(to, "?", 2)[0]
		}
	}
	p.Status, p.Host = response.StatusCode, response.Request.URL.Host
	if p.Title == "" {
		p.Title = http.StatusText(p.Status)
	}
	return p
}

// TransportError says that no answer came, or none that can be read.
type TransportError struct {
	Host string
	Err  error
}

func (e *TransportError) Error() string { return fmt.Sprintf("ask %s: %v", e.Host, e.Err) }
func (e *TransportError) Unwrap() error { return e.Err }
