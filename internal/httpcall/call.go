package httpcall

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	executor "github.com/carillon-sched/carillon/executor-sdk"
	"github.com/carillon-sched/carillon/internal/egress"
)

// Bounds of a call.
const (
	DefaultTimeout = 30 * time.Second
	MaxTimeout     = 10 * time.Minute
	// defaultAnswer and maxAnswer bound how much of an answer's body becomes
	// output, in bytes.
	defaultAnswer = 64 << 10
	maxAnswer     = 120 << 10
	// maxEncoded bounds the same as JSON, where a byte may become six, and
	// maxKeptHeader each of keptHeaders: so that all of it fits an output.
	maxEncoded = 192 << 10
	// SmallAnswer is the size of a body, in bytes, that is read without asking Caller.Room.
	SmallAnswer   = 1 << 10
	maxKeptHeader = 2 << 10
)

// Request is the input of a handler that calls.
type Request struct {
	Method      string            `json:"method,omitempty" enum:"GET,HEAD,POST,PUT,PATCH,DELETE,OPTIONS" doc:"Default GET, or POST with a body"`
	URL         string            `json:"url" required:"true" doc:"http or https; templates such as {{input.id}} from the path on"`
	Headers     map[string]string `json:"headers,omitempty" doc:"Values may hold templates; with an agent also {{env.NAME}}"`
	Body        json.RawMessage   `json:"body,omitempty" doc:"A text is sent as it is, anything else as JSON; may hold templates"`
	Input       json.RawMessage   `json:"input,omitempty" doc:"What templates call input"`
	Expect      []string          `json:"expect,omitempty" doc:"Statuses that are a success, such as 204 or 2xx; default 2xx"`
	Match       *Match            `json:"match,omitempty" doc:"What the answer's body has to say beside; default: nothing"`
	Timeout     time.Duration     `json:"timeout,omitempty" doc:"Default 30s, at most 10m, or what the tenant's policy says"`
	MaxResponse int               `json:"maxResponse,omitempty" doc:"Bytes of the answer that are kept; default 65536, at most 122880"`
}

// Decode reads a request from the input of a job, where a timeout is a text such
// as "5s", or nanoseconds.
func Decode(input json.RawMessage) (Request, error) {
	type plain Request
	var in struct {
		plain
		Timeout any `json:"timeout"`
	}
	if err := json.Unmarshal(input, &in); err != nil {
		return Request{}, err
	}
	out := Request(in.plain)
	switch t := in.Timeout.(type) {
	case float64:
		out.Timeout = time.Duration(t)
	case string:
		var err error
		if out.Timeout, err = time.ParseDuration(t); err != nil {
			return out, fmt.Errorf("timeout: %q is no duration such as 5s", t)
		}
	}
	return out, nil
}

// Caller makes calls. Its fields are fixed before its first call.
type Caller struct {
	Client *http.Client
	Hosts  []Host // that may be called
	// MaxTimeout bounds that of a request; 0 = MaxTimeout.
	MaxTimeout time.Duration
	Env        []string // names of the environment's variables that headers may use; nil: none
	UserAgent  string
	// Secret signs requests; nil: they are not signed.
	Secret []byte

	// Room is asked before more than SmallAnswer bytes of a body are read. size is the most that
	// the body may have. done is told how many bytes are kept. With an error the body is not read,
	// and the response is truncated. nil: there is room.
	Room func(ctx context.Context, size int) (done func(kept int), err error)
	// What refusals say: who calls, and what allows hosts and networks.
	Who, HostsBy, NetworksBy string
}

// Check says what is wrong with a request that can be known before it is made.
func (c *Caller) Check(in *Request) error {
	if _, err := c.request(in, executor.Task{ExecutionID: 1, Attempt: 1, JobName: "job"}); err != nil {
		return err
	}
	return c.checkAnswer(in)
}

// checkAnswer says what is wrong with what a request says of its answer.
func (c *Caller) checkAnswer(in *Request) error {
	if _, _, err := c.bounds(in); err != nil {
		return err
	}
	if _, err := expects(in.Expect, 0); err != nil {
		return err
	}
	return in.Match.check()
}

// bounds are a request's timeout, and how much of the answer is kept.
func (c *Caller) bounds(in *Request) (timeout time.Duration, most int, err error) {
	longest := c.MaxTimeout
	if longest == 0 {
		longest = MaxTimeout
	}
	timeout, most = in.Timeout, in.MaxResponse
	if timeout == 0 {
		timeout = min(DefaultTimeout, longest)
	}
	if most == 0 {
		most = defaultAnswer
	}
	switch {
	case timeout < 0 || timeout > longest:
		return 0, 0, fmt.Errorf("timeout: must be from 0s to %s", longest)
	case most < 0 || most > maxAnswer:
		return 0, 0, fmt.Errorf("maxResponse: must be from 0 to %d", maxAnswer)
	}
	return timeout, most, nil
}

// Call makes a request and judges the answer.
func (c *Caller) Call(ctx context.Context, in Request, task executor.Task, log *slog.Logger) (Response, error) {
	request, err := c.Prepare(&in, task)
	if err != nil {
		return Response{}, err
	}
	return c.Do(ctx, request, &in, log)
}

// Prepare puts a request together, or says why it may not be: another try would
// end the same way.
func (c *Caller) Prepare(in *Request, task executor.Task) (*http.Request, error) {
	request, err := c.request(in, task)
	if err == nil {
		err = c.checkAnswer(in)
	}
	if err != nil {
		return nil, executor.Permanent(err)
	}
	return request, nil
}

// Do sends what Prepare has put together. NoAnswer tells of its error whether the
// receiver is to blame that there was no answer.
func (c *Caller) Do(ctx context.Context, request *http.Request, in *Request, log *slog.Logger) (Response, error) {
	timeout, most, err := c.bounds(in)
	if err != nil {
		return Response{}, executor.Permanent(err)
	}
	within, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("no answer within %s", timeout))
	defer cancel()
	var connected atomic.Bool
	traced := httptrace.WithClientTrace(within, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }})
	began := time.Now()
	answer, err := c.Client.Do(request.WithContext(traced))
	if err != nil {
		blame := c.transportError(ctx, within, err)
		if !connected.Load() && NoAnswer(blame) && unreached(within, err) {
			blame = undoneError{blame, 0}
		}
		return Response{}, blame
	}
	defer answer.Body.Close()
	out, err := c.read(within, answer, most)
	if err != nil {
		return out, c.transportError(ctx, within, fmt.Errorf("read the answer: %w", err))
	}
	out.DurationMS = time.Since(began).Milliseconds()
	// Query and headers may hold secrets: they are not logged.
	log.Info("answered", "method", request.Method, "host", request.URL.Host, "path", request.URL.Path,
		"status", out.Status, "duration", time.Since(began))
	return out, verdict(answer, in, out)
}

var errInvalidURL = errors.New("url: is not valid") // url's error would repeat it, and it may hold a secret

func (c *Caller) request(in *Request, task executor.Task) (*http.Request, error) {
	v := Values{Task: task, Input: in.Input}
	address, err := expandURL(in.URL, v)
	if err != nil {
		return nil, err
	}
	body, kind, err := v.Body(in.Body)
	if err != nil {
		return nil, fmt.Errorf("body: %w", err)
	}
	method := in.Method
	if method == "" {
		method = http.MethodGet
		if len(body) > 0 {
			method = http.MethodPost
		}
	}
	request, err := http.NewRequest(method, address, bytes.NewReader(body)) //nolint:noctx // the caller adds it
	if err != nil {
		return nil, errInvalidURL
	}
	if err := c.allowed(request.URL); err != nil {
		return nil, err
	}
	h := make(http.Header, 10+len(in.Headers)) // with the size of all that is set, the map does not grow
	request.Header = h
	h.Set("User-Agent", c.UserAgent)
	if kind != "" {
		h.Set("Content-Type", kind)
	}
	h.Set("Idempotency-Key", task.Key())
	h.Set("Carillon-Run-Id", task.Key())
	h.Set("Carillon-Planned-At", plannedAt(task))
	h.Set("Carillon-Attempt", strconv.Itoa(task.Attempt))
	if task.Traceparent != "" {
		h.Set("Traceparent", task.Traceparent)
	}
	v.Env = c.Env
	if err := setHeaders(h, in.Headers, v); err != nil {
		return nil, err
	}
	if c.Secret != nil {
		Sign(h, c.Secret, body, time.Now())
	}
	return request, nil
}

func plannedAt(t executor.Task) string { return t.FireTime.Format("2006-01-02T15:04:05.000Z07:00") }

// Of these the transport decides, or who receives them could not believe them,
// nor those that begin with ownPrefix.
var ownHeaders = []string{
	"Host", "Content-Length", "Transfer-Encoding", "Connection", "Upgrade", "Te", "Trailer", "Proxy-Authorization", "Proxy-Connection", "Keep-Alive",
	"Idempotency-Key",
}

const ownPrefix = "Carillon-"

func setHeaders(h http.Header, wanted map[string]string, v Values) error {
	for name, template := range wanted {
		if n := http.CanonicalHeaderKey(name); slices.Contains(ownHeaders, n) || strings.HasPrefix(n, ownPrefix) {
			return fmt.Errorf("headers: %q cannot be set", name)
		}
		value, err := expand(template, v, nil)
		if err != nil {
			return fmt.Errorf("headers: %s: %w", name, err)
		}
		if name == "" || strings.ContainsAny(name, " :\r\n\x00") || strings.ContainsAny(value, "\r\n\x00") {
			return fmt.Errorf("headers: %q: names have no space and no colon, values no line feed", name)
		}
		h.Set(name, value)
	}
	return nil
}

// noAnswerError is a call whose receiver gave no answer.
type noAnswerError struct{ error }

func (e noAnswerError) Unwrap() error { return e.error }

// NoAnswer reports whether a call failed because the receiver could not be
// reached, broke off, or took too long.
func NoAnswer(err error) bool { return errors.As(err, new(noAnswerError)) }

// Undone reports whether a failed call had no effect. Either no connection was made,
// or the receiver has not taken the request (408, 425, 429, 503). The same call can be
// repeated without harm. after is the pause that the receiver asks for; 0 = none.
func Undone(err error) (after time.Duration, ok bool) {
	undone, ok := errors.AsType[undoneError](err)
	return undone.after, ok
}

type undoneError struct {
	error
	after time.Duration
}

func (e undoneError) Unwrap() error { return e.error }

// unreached reports whether the attempt to connect failed, or took too long. A name
// that does not exist is a mistake as a rule, and so is a certificate.
func unreached(within context.Context, err error) bool {
	if unknown, ok := errors.AsType[*net.DNSError](err); ok && unknown.IsNotFound {
		return false
	}
	dial, ok := errors.AsType[*net.OpError](err)
	return ok && dial.Op == "dial" || within.Err() != nil
}

// transportError says why there was no answer, without the address, which may
// hold a secret.
func (c *Caller) transportError(ctx, within context.Context, err error) error {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err
	}
	err = egress.Public(err)
	switch {
	case egress.Refused(err):
		return executor.Permanent(fmt.Errorf("%w (%s)", err, c.NetworksBy))
	case ctx.Err() != nil && !errors.Is(context.Cause(ctx), executor.ErrTimeout):
		return context.Cause(ctx) // nobody waits for it any more
	case within.Err() != nil:
		return noAnswerError{context.Cause(within)}
	}
	return noAnswerError{err}
}
