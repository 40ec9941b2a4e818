package proxy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/carillon-sched/carillon/executor-sdk/internal/callapi"
)

// Config says where the admin is and who asks. Zero fields are taken from the
// environment variables named beside them.
type Config struct {
	// URL of an admin node, or several separated by commas: the next one is
	// asked when one does not answer. CARILLON_URL
	URL string
	// Key is an API key ("ck_…") that may call. CARILLON_API_KEY
	Key string
	// HTTP sends the requests; default: http.DefaultClient. It must not have a
	// timeout below a minute: waiting for a run is one long request.
	HTTP *http.Client
	// AllowPlain permits http:// to other hosts than this one: the key then
	// crosses the network in the clear.
	AllowPlain bool
}

// Client calls handlers. It is safe for concurrent use.
type Client struct {
	bases []string
	key   string
	http  *http.Client
	first atomic.Int64 // index of the base that answered last
}

// New checks config. It does not connect.
func New(config Config) (*Client, error) {
	if config.URL == "" {
		config.URL = os.Getenv("CARILLON_URL")
	}
	if config.Key == "" {
		config.Key = os.Getenv("CARILLON_API_KEY")
	}
	if config.Key == "" {
		return nil, errors.New("proxy config: no API key: set Config.Key or CARILLON_API_KEY")
	}
	c := &Client{key: strings.TrimSpace(config.Key), http: config.HTTP}
	if c.http == nil {
		c.http = http.DefaultClient
	}
	for text := range strings.SplitSeq(config.URL, ",") {
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		u, err := url.Parse(text)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return nil, fmt.Errorf("proxy config: %q is no URL like https://carillon.internal", text)
		}
		if u.Scheme == "http" && !config.AllowPlain && !isLoopback(u.Hostname()) {
			return nil, fmt.Errorf("proxy config: %q would send the API key in the clear: use https, or set AllowPlain", text)
		}
		c.bases = append(c.bases, strings.TrimRight(u.String(), "/"))
	}
	if len(c.bases) == 0 {
		return nil, errors.New("proxy config: no admin: set Config.URL or CARILLON_URL, for example http://127.0.0.1:8080")
	}
	return c, nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// How long and how often a request is tried.
const (
	maxAnswer  = 2 << 20 // bytes
	retryFirst = 100 * time.Millisecond
	retryMost  = 3 * time.Second
	// tryTimeout bounds one try, beside the time that it asks the admin to wait:
	// then the next node is asked.
	tryTimeout = 10 * time.Second
	// giveUp is how long a request is tried whose context has no deadline, beside
	// the time that it asks the admin to wait.
	giveUp = time.Minute
)

var (
	errNoAnswer = fmt.Errorf("no answer within %s", tryTimeout)
	errNobody   = fmt.Errorf("no admin node has answered for %s", giveUp)
)

// unanswered is a request that was given up: cause says why, and last what the
// last try met.
type unanswered struct{ cause, last error }

func (e *unanswered) Error() string {
	if errors.Is(e.last, context.Canceled) || errors.Is(e.last, context.DeadlineExceeded) {
		return e.cause.Error()
	}
	return e.cause.Error() + "; the last try: " + e.last.Error()
}

func (e *unanswered) Unwrap() []error { return []error{e.cause, e.last} }

// ask is a request that means the same when it is repeated, as every one of this
// package.
type ask struct {
	method, path string
	body         []byte        // JSON; nil = none
	key          string        // idempotency key; empty = none
	wait         time.Duration // that the admin is asked to wait for
	began        time.Time     // of a new call: since when its caller waits
}

// do sends a request until it is answered. When ctx ends before, or nobody has
// answered for giveUp, the error is an *unanswered. reached: a node may have acted upon it, whatever the error says.
func (c *Client) do(ctx context.Context, a ask) (_ *callapi.Call, reached bool, err error) {
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, a.wait+giveUp, errNobody)
		defer cancel()
	}
	for pause := retryFirst; ; pause = min(2*pause, retryMost) {
		base := c.first.Load()
		try, cancel := context.WithTimeoutCause(ctx, a.wait+tryTimeout, errNoAnswer)
		out, again, sent, err := c.once(try, c.bases[base%int64(len(c.bases))], a)
		if err != nil && try.Err() != nil && ctx.Err() == nil {
			err = context.Cause(try)
		}
		cancel()
		reached = reached || sent
		if err == nil || again < 0 {
			return out, reached, err
		}
		c.first.CompareAndSwap(base, base+1)
		timer := time.NewTimer(max(again, pause/2+rand.N(pause/2)))
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil, reached, &unanswered{context.Cause(ctx), err}
		case <-timer.C:
		}
	}
}

// once sends one request. again is negative when trying again makes no sense,
// else the least time to wait before. sent: some of it may have arrived.
func (c *Client) once(ctx context.Context, base string, a ask) (_ *callapi.Call, again time.Duration, sent bool, err error) {
	var asked, got atomic.Bool
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { asked.Store(true) },
		GotConn: func(httptrace.GotConnInfo) { got.Store(true) },
	})
	request, err := http.NewRequestWithContext(traced, a.method, base+"/api/v1"+a.path, bytes.NewReader(a.body))
	if err != nil {
		return nil, -1, false, err
	}
	request.Header.Set("Authorization", "Bearer "+c.key)
	request.Header.Set("Accept", "application/json")
	if a.body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if a.key != "" {
		request.Header.Set("Idempotency-Key", a.key)
		request.Header.Set("Call-Age", time.Since(a.began).Round(time.Millisecond).String())
	}
	response, err := c.http.Do(request)
	if err != nil {
		// A transport that asked for a connection and got none has sent nothing;
		// of one that does not tell, nothing is known.
		return nil, 0, got.Load() || !asked.Load(), err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	if err != nil {
		return nil, 0, true, fmt.Errorf("read answer: %w", err)
	}
	if response.StatusCode >= 300 {
		return nil, retryIn(response), true, refusalOf(response, text)
	}
	var out callapi.Call
	if len(text) > maxAnswer {
		return nil, -1, true, fmt.Errorf("the answer is longer than %d bytes", maxAnswer)
	}
	if err := json.Unmarshal(text, &out); err != nil {
		return nil, -1, true, fmt.Errorf("read answer: %w", err)
	}
	return &out, -1, true, nil
}

// retryIn is negative for answers that will not change.
func retryIn(r *http.Response) time.Duration {
	if r.StatusCode != http.StatusTooManyRequests && r.StatusCode < 500 {
		return -1
	}
	seconds, _ := strconv.Atoi(r.Header.Get("Retry-After"))
	return time.Duration(min(max(seconds, 0), 30)) * time.Second
}

// RefusedError is an answer of the admin that there is no run: the key may not
// call, nobody registered the handler, the input is no JSON.
type RefusedError struct {
	Status int
	// Code is stable: unauthenticated, permission_denied, not_found, unknown_handler, …
	Code, Detail string
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("the admin refuses the call (%d %s): %s", e.Status, e.Code, e.Detail)
}

func refusalOf(r *http.Response, text []byte) error {
	e := &RefusedError{Status: r.StatusCode}
	var problem callapi.Problem
	if json.Unmarshal(text, &problem) == nil {
		e.Code, e.Detail = string(problem.Code), problem.Detail
	} else {
		e.Detail = http.StatusText(r.StatusCode)
	}
	return e
}
