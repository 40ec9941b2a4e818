package proxy

import (
	"bytes"
	"cmp"
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
	// Key is an API key ("ck_…") that may call. CARILLON_API_KEY, or a file named by
	// CARILLON_API_KEY_FILE
	Key string
	// HTTP sends the requests. The default keeps 64 idle connections to each node.
	// It must not have a timeout below a minute, because a call that waits for its
	// run is one long request.
	HTTP *http.Client
	// AllowPlain permits http:// to other hosts than this one: the key then
	// crosses the network in the clear.
	AllowPlain bool
}

// Client reaches the admin: it calls handlers, and package timers sets timers with
// it. It is safe for concurrent use.
type Client struct {
	bases []string
	key   string
	http  *http.Client
	first atomic.Int64 // index of the base that answered last
	plain bool         // Config.AllowPlain
	// cell is the base of the cell that the key's tenant lives in, when a node has said
	// that it is another one; nil: it has not.
	cell atomic.Pointer[string]
}

// New checks config. It does not connect.
func New(config Config) (*Client, error) {
	if config.URL == "" {
		config.URL = os.Getenv("CARILLON_URL")
	}
	config.Key = strings.TrimSpace(cmp.Or(config.Key, os.Getenv("CARILLON_API_KEY")))
	if path := os.Getenv("CARILLON_API_KEY_FILE"); config.Key == "" && path != "" {
		raw, err := os.ReadFile(path) //nolint:gosec // whoever starts the program names its file
		if err != nil {
			return nil, fmt.Errorf("proxy config: CARILLON_API_KEY_FILE: %w", err)
		}
		config.Key = strings.TrimSpace(string(raw))
	}
	if config.Key == "" {
		return nil, errors.New("proxy config: no API key: set Config.Key, CARILLON_API_KEY or CARILLON_API_KEY_FILE")
	}
	c := &Client{key: config.Key, http: config.HTTP, plain: config.AllowPlain}
	if c.http == nil {
		c.http = shared
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

// shared is the default of Config.HTTP. http.DefaultTransport keeps two idle connections
// to a host, and each further request at once would connect anew.
var shared = &http.Client{Transport: withConnections(64)}

func withConnections(idle int) http.RoundTripper {
	t, is := http.DefaultTransport.(*http.Transport)
	if !is {
		return http.DefaultTransport // the application has put its own there
	}
	t = t.Clone()
	t.MaxIdleConnsPerHost, t.MaxIdleConns = idle, 4*idle
	return t
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// How long and how often a request is tried.
const (
	maxAnswer  = 2 << 20 // bytes, unless the request says more
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
	errNoMore   = errors.New("a node may have done it, and asking again could do it twice")
)

func init() {
	callapi.Do = func(ctx context.Context, client any, a callapi.Ask, out any) (bool, error) {
		return client.(*Client).do(ctx, a, out)
	}
}

// do sends a request until it is answered, and reads the answer into out. When ctx
// ends before, or nobody has answered for giveUp, the error is a *callapi.Unanswered.
// reached: a node may have acted upon it, whatever the error says.
func (c *Client) do(ctx context.Context, a callapi.Ask, out any) (reached bool, err error) {
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, a.Wait+giveUp, errNobody)
		defer cancel()
	}
	for pause := retryFirst; ; pause = min(2*pause, retryMost) {
		base := c.first.Load()
		try, cancel := context.WithTimeoutCause(ctx, a.Wait+tryTimeout, errNoAnswer)
		at := c.bases[base%int64(len(c.bases))]
		cell := c.cell.Load()
		if cell != nil {
			at = *cell
		}
		again, sent, err := c.once(try, at, a, out)
		if err != nil && try.Err() != nil && ctx.Err() == nil {
			err = context.Cause(try)
		}
		cancel()
		reached = reached || sent
		if err == nil || again < 0 {
			return reached, err
		}
		c.turn(base, cell, err)
		again = max(again, pause/2+rand.N(pause/2))
		if reached && !a.RepeatUntil.IsZero() && time.Now().Add(again).After(a.RepeatUntil) {
			return true, &callapi.Unanswered{Cause: errNoMore, Last: err}
		}
		timer := time.NewTimer(again)
		select {
		case <-ctx.Done():
			timer.Stop()
			return reached, &callapi.Unanswered{Cause: context.Cause(ctx), Last: err}
		case <-timer.C:
		}
	}
}

// turn chooses who is asked next, after a try that led to nothing.
func (c *Client) turn(base int64, cell *string, err error) {
	var refused *RefusedError
	if errors.As(err, &refused) && refused.cell != "" {
		c.cell.CompareAndSwap(cell, &refused.cell)
		return
	}
	if cell != nil { // it may have moved on, or back: the configured nodes know
		c.cell.CompareAndSwap(cell, nil)
		return
	}
	c.first.CompareAndSwap(base, base+1)
}

// once sends one request. again is negative when trying again makes no sense,
// else the least time to wait before. sent: some of it may have arrived.
func (c *Client) once(ctx context.Context, base string, a callapi.Ask, out any) (again time.Duration, sent bool, err error) {
	var asked, got atomic.Bool
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { asked.Store(true) },
		GotConn: func(httptrace.GotConnInfo) { got.Store(true) },
	})
	request, err := http.NewRequestWithContext(traced, a.Method, base+"/api/v1"+a.Path, bytes.NewReader(a.Body))
	if err != nil {
		return -1, false, err
	}
	request.Header.Set("Authorization", "Bearer "+c.key)
	request.Header.Set("Accept", "application/json")
	if a.Body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if a.Key != "" {
		request.Header.Set("Idempotency-Key", a.Key)
		request.Header.Set("Call-Age", time.Since(a.Began).Round(time.Millisecond).String())
	}
	response, err := c.http.Do(request)
	if err != nil {
		// A transport that asked for a connection and got none has sent nothing;
		// of one that does not tell, nothing is known.
		return 0, got.Load() || !asked.Load(), err
	}
	defer response.Body.Close()
	longest := cmp.Or(a.Longest, maxAnswer)
	text, err := io.ReadAll(io.LimitReader(response.Body, longest+1))
	if err != nil {
		return 0, true, fmt.Errorf("read answer: %w", err)
	}
	if response.StatusCode >= 300 {
		refused := refusalOf(response, text)
		switch refused.Code {
		case string(callapi.ProblemCodeTenantElsewhere): // nothing was looked at
			if refused.cell != "" && c.mayAsk(refused.cell) && refused.cell != base {
				return 0, false, refused
			}
			return -1, false, refused
		case string(callapi.ProblemCodeRateLimited), string(callapi.ProblemCodeTenantMoving): // likewise
			return retryIn(response), false, refused
		}
		return retryIn(response), true, refused
	}
	if int64(len(text)) > longest {
		return -1, true, fmt.Errorf("the answer is longer than %d bytes", longest)
	}
	if out == nil { // there is none to read
		return -1, true, nil
	}
	if err := json.Unmarshal(text, out); err != nil {
		return -1, true, fmt.Errorf("read answer: %w", err)
	}
	return -1, true, nil
}

// mayAsk reports whether the key may be sent to a cell: not in the clear, unless that
// was allowed.
func (c *Client) mayAsk(base string) bool {
	u, err := url.Parse(base)
	return err == nil && u.Host != "" && (u.Scheme == "https" || u.Scheme == "http" && (c.plain || isLoopback(u.Hostname())))
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
	cell         string // with tenant_elsewhere: the base of where it lives
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("the admin refuses the call (%d %s): %s", e.Status, e.Code, e.Detail)
}

func refusalOf(r *http.Response, text []byte) *RefusedError {
	e := &RefusedError{Status: r.StatusCode}
	var problem callapi.Problem
	if json.Unmarshal(text, &problem) == nil {
		e.Code, e.Detail = string(problem.Code), problem.Detail
		if problem.Cell != nil {
			e.cell = strings.TrimRight(problem.Cell.URL, "/")
		}
	} else {
		e.Detail = http.StatusText(r.StatusCode)
	}
	return e
}
