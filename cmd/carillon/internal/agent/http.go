package agent

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"code.dny.dev/ssrf"

	executor "github.com/carillon-sched/carillon/executor-sdk"
)

// Bounds of an HTTP call.
const (
	defaultHTTPTimeout = 30 * time.Second
	maxHTTPTimeout     = 10 * time.Minute
	dialTimeout        = 10 * time.Second
	// defaultAnswer and maxAnswer bound how much of an answer's body becomes
	// output, in bytes: escaped as JSON it must still fit one.
	defaultAnswer = 64 << 10
	maxAnswer     = 120 << 10
	maxHeader     = 64 << 10
)

// HTTPRequest is the input of http.request.
type HTTPRequest struct {
	Method      string            `json:"method,omitempty" enum:"GET,HEAD,POST,PUT,PATCH,DELETE,OPTIONS" doc:"Default GET, or POST with a body"`
	URL         string            `json:"url" required:"true" doc:"http or https; templates such as {{input.id}} from the path on"`
	Headers     map[string]string `json:"headers,omitempty" doc:"Values may hold templates, also {{env.NAME}}"`
	Body        json.RawMessage   `json:"body,omitempty" doc:"A text is sent as it is, anything else as JSON; may hold templates"`
	Input       json.RawMessage   `json:"input,omitempty" doc:"What templates call input"`
	Expect      []string          `json:"expect,omitempty" doc:"Statuses that are a success, such as 204 or 2xx; default 2xx"`
	Timeout     time.Duration     `json:"timeout,omitempty" doc:"Default 30s, at most 10m"`
	MaxResponse int               `json:"maxResponse,omitempty" doc:"Bytes of the answer that are kept; default 65536, at most 122880"`
}

// HTTPResponse is its output.
type HTTPResponse struct {
	Status     int               `json:"status"`
	Headers    map[string]string `json:"headers" doc:"Content-Type, Content-Length, Location, ETag, Retry-After"`
	JSON       json.RawMessage   `json:"json,omitempty" doc:"The body, if it is JSON"`
	Body       string            `json:"body,omitempty" doc:"The body, if it is not"`
	Truncated  bool              `json:"truncated,omitempty" doc:"There was more of it"`
	DurationMS int64             `json:"durationMs"`
}

// caller makes the HTTP calls.
type caller struct {
	hosts  []hostPattern
	env    []string
	agent  string // User-Agent
	client *http.Client
}

// hostPattern is a host that may be called: "api.example.com", "*.example.com",
// "*", each with or without a port.
type hostPattern struct{ host, port string }

func parseHost(text string) (hostPattern, error) {
	host, port := strings.ToLower(strings.TrimSpace(text)), ""
	if h, p, err := net.SplitHostPort(host); err == nil {
		host, port = h, p
	}
	host = strings.Trim(host, "[]")
	if _, err := strconv.ParseUint(port, 10, 16); host == "" || port != "" && err != nil || strings.ContainsAny(host, "/@?#") || strings.Contains(strings.TrimPrefix(host, "*"), "*") ||
		strings.HasPrefix(host, "*") && host != "*" && !strings.HasPrefix(host, "*.") {
		return hostPattern{}, fmt.Errorf("%q is no host such as api.example.com, *.example.com, api.example.com:8443 or *", text)
	}
	return hostPattern{host, port}, nil
}

func (p hostPattern) matches(u *url.URL) bool {
	host, port := strings.TrimSuffix(strings.ToLower(u.Hostname()), "."), u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	if p.port != "" && p.port != port {
		return false
	}
	suffix, wild := strings.CutPrefix(p.host, "*")
	return host == p.host || wild && strings.HasSuffix(host, suffix)
}

// newCaller refuses, beside hosts that no pattern names, all addresses that
// are not public, unless they are in networks.
func newCaller(hosts []string, networks []netip.Prefix, env []string, agent string, roots *x509.CertPool) (*caller, error) {
	c := &caller{env: env, agent: agent}
	for _, text := range hosts {
		p, err := parseHost(text)
		if err != nil {
			return nil, err
		}
		c.hosts = append(c.hosts, p)
	}
	var v4, v6 []netip.Prefix
	for _, network := range networks {
		if network.Addr().Is4() {
			v4 = append(v4, network)
		} else {
			v6 = append(v6, network)
		}
	}
	guard := ssrf.New(ssrf.WithAnyPort(), ssrf.WithAllowedV4Prefixes(v4...), ssrf.WithAllowedV6Prefixes(v6...))
	dialer := &net.Dialer{Timeout: dialTimeout, Control: guard.Safe}
	c.client = &http.Client{
		Transport: &http.Transport{
			Proxy:                  nil, // the guard would see the proxy's address instead of the receiver's
			DialContext:            dialer.DialContext,
			TLSClientConfig:        &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
			TLSHandshakeTimeout:    dialTimeout,
			MaxResponseHeaderBytes: maxHeader,
			ForceAttemptHTTP2:      true,
			MaxIdleConns:           64,
			IdleConnTimeout:        30 * time.Second,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return c, nil
}

// call is the handler http.request.
func (c *caller) call(ctx context.Context, in HTTPRequest, j job) (HTTPResponse, error) {
	timeout := in.Timeout
	if timeout == 0 {
		timeout = defaultHTTPTimeout
	}
	most := in.MaxResponse
	if most == 0 {
		most = defaultAnswer
	}
	if timeout < 0 || timeout > maxHTTPTimeout || most < 0 || most > maxAnswer {
		return HTTPResponse{}, executor.Permanent(fmt.Errorf("timeout must be from 0s to %s, maxResponse from 0 to %d", maxHTTPTimeout, maxAnswer))
	}
	request, err := c.request(in, j)
	if err != nil {
		return HTTPResponse{}, executor.Permanent(err)
	}
	within, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("no answer within %s", timeout))
	defer cancel()
	began := time.Now()
	answer, err := c.client.Do(request.WithContext(within))
	if err != nil {
		return HTTPResponse{}, transportError(within, err)
	}
	defer answer.Body.Close()
	out, err := read(answer, most)
	if err != nil {
		return out, transportError(within, fmt.Errorf("read the answer: %w", err))
	}
	out.DurationMS = time.Since(began).Milliseconds()
	// Query and headers may hold secrets: they are not logged.
	j.log.Info("answered", "method", request.Method, "host", request.URL.Host, "path", request.URL.Path,
		"status", out.Status, "duration", time.Since(began))
	return out, verdict(answer, in.Expect, out)
}

// request puts the request together, or says why it may not be.
func (c *caller) request(in HTTPRequest, j job) (*http.Request, error) {
	v := values{task: j.task, input: in.Input}
	address, err := expandURL(in.URL, v)
	if err != nil {
		return nil, err
	}
	body, kind, err := bodyOf(in.Body, v)
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
		return nil, errors.New("url: is not valid") // url's error would repeat it, and it may hold a secret
	}
	if err := c.allowed(request.URL); err != nil {
		return nil, err
	}
	h := request.Header
	h.Set("User-Agent", c.agent)
	if kind != "" {
		h.Set("Content-Type", kind)
	}
	h.Set("Idempotency-Key", j.task.Key())
	h.Set("Carillon-Run-Id", j.task.Key())
	if j.task.Traceparent != "" {
		h.Set("Traceparent", j.task.Traceparent)
	}
	v.env = c.env
	return request, setHeaders(h, in.Headers, v)
}

// allowed says why an address may not be called, or nil. Which network it
// leads to shows when it is dialled.
func (c *caller) allowed(u *url.URL) error {
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return errors.New("url: must begin with http:// or https://")
	case u.Hostname() == "":
		return errors.New("url: names no host")
	case u.User != nil:
		return errors.New("url: must not hold a user name or password; use a header")
	case !slices.ContainsFunc(c.hosts, func(p hostPattern) bool { return p.matches(u) }):
		return fmt.Errorf("this agent may not call %s (--allow-http)", u.Host)
	}
	return nil
}

// Of these the transport decides.
var ownHeaders = []string{"Host", "Content-Length", "Transfer-Encoding", "Connection", "Upgrade", "Te", "Trailer", "Proxy-Authorization", "Proxy-Connection", "Keep-Alive"}

func setHeaders(h http.Header, wanted map[string]string, v values) error {
	for name, template := range wanted {
		if slices.Contains(ownHeaders, http.CanonicalHeaderKey(name)) {
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

// bodyOf expands a body and says what it is.
func bodyOf(raw json.RawMessage, v values) (body []byte, kind string, err error) {
	raw = bytes.TrimSpace(raw)
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return nil, "", nil
	case raw[0] == '"':
		template, err := text(raw)
		if err != nil {
			return nil, "", err
		}
		out, err := expand(template, v, nil)
		return []byte(out), "text/plain; charset=utf-8", err
	}
	body, err = expandJSON(raw, v)
	return body, "application/json", err
}

var keptHeaders = []string{"Content-Type", "Content-Length", "Location", "Etag", "Retry-After"}

func read(answer *http.Response, most int) (HTTPResponse, error) {
	out := HTTPResponse{Status: answer.StatusCode, Headers: map[string]string{}}
	for _, name := range keptHeaders {
		if value := answer.Header.Get(name); value != "" {
			out.Headers[name] = strings.ToValidUTF8(value, "\uFFFD")
		}
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, int64(most)+1))
	if err != nil {
		return out, err
	}
	if out.Truncated = len(body) > most; out.Truncated {
		body = body[:most]
	}
	if !out.Truncated && json.Valid(body) {
		out.JSON = body
	} else {
		out.Body = strings.ToValidUTF8(string(body), "\uFFFD")
	}
	return out, nil
}

// transportError says why there was no answer, without the address, which may
// hold a secret.
func transportError(ctx context.Context, err error) error {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err
	}
	switch {
	case errors.Is(err, ssrf.ErrProhibitedIP), errors.Is(err, ssrf.ErrProhibitedNetwork):
		return executor.Permanent(fmt.Errorf("the host leads to a network that this agent may not reach (--allow-http-net): %w", err))
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return err
}

// verdict makes a failure of a status that was not expected: 408, 425, 429 and
// 5xx may get better, others will not. Redirects are not followed.
func verdict(answer *http.Response, expect []string, out HTTPResponse) error {
	if len(expect) == 0 {
		expect = []string{"2xx"}
	}
	status := strconv.Itoa(answer.StatusCode)
	for _, pattern := range expect {
		pattern = strings.ReplaceAll(strings.ToLower(pattern), "x", "?")
		matched, err := path.Match(pattern, status)
		if err != nil || len(pattern) != 3 {
			return executor.Permanent(fmt.Errorf("expect: %q is no status such as 204 or 2xx", pattern))
		}
		if matched {
			return nil
		}
	}
	err := fmt.Errorf("the answer is %s %s%s", status, http.StatusText(answer.StatusCode), excerpt(out))
	switch {
	case answer.StatusCode/100 == 5, answer.StatusCode == http.StatusRequestTimeout, answer.StatusCode == http.StatusTooEarly,
		answer.StatusCode == http.StatusTooManyRequests:
		if seconds, bad := strconv.ParseUint(answer.Header.Get("Retry-After"), 10, 16); bad == nil {
			return executor.RetryAfter(err, time.Duration(seconds)*time.Second)
		}
		return err
	}
	return executor.Permanent(err)
}

// excerpt is the beginning of an answer on one printable line.
func excerpt(out HTTPResponse) string {
	const most = 200
	body := out.Body + string(out.JSON)
	clean := strings.Join(strings.FieldsFunc(strings.ToValidUTF8(body[:min(len(body), most)], ""), func(r rune) bool {
		return r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0
	}), " ")
	if clean == "" {
		return ""
	}
	return ": " + clean
}
