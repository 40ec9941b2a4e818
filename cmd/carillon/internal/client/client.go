package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const base = "/api/v1"

// maxAnswer bounds an answer in bytes; the largest real one is a page of 200
// runs or 5,000 log lines.
const maxAnswer = 64 << 20

// Authorizer knows the credentials. It is called from one goroutine.
type Authorizer interface {
	// Token returns what to send as bearer token; empty sends none.
	Token(ctx context.Context) (string, error)
	// Renew is called when the server called the token expired. It returns a
	// new one, or "" when it cannot: then the server's answer stands.
	Renew(ctx context.Context, expired string) (string, error)
}

// Client asks one server. It is safe for use by one goroutine at a time.
type Client struct {
	base  *url.URL
	http  *http.Client
	auth  Authorizer
	agent string
	trace func(format string, args ...any)
}

// Config of a Client.
type Config struct {
	// URL of the server, for example http://127.0.0.1:8080. Required.
	URL string
	// Auth may be nil: then requests carry no credentials.
	Auth Authorizer
	// UserAgent is sent with each request.
	UserAgent string
	// Trace gets a line per request, as a curl command without secrets. May be nil.
	Trace func(format string, args ...any)
	// HTTP does the requests. Default: a client without an overall timeout,
	// because some requests wait on purpose; contexts bound them.
	HTTP *http.Client
}

// New checks the address.
func New(c Config) (*Client, error) {
	u, err := ParseURL(c.URL)
	if err != nil {
		return nil, err
	}
	out := &Client{base: u, http: c.HTTP, auth: c.Auth, agent: c.UserAgent, trace: c.Trace}
	if out.http == nil {
		transport := http.DefaultTransport.(*http.Transport).Clone() // nobody replaces the default
		transport.ResponseHeaderTimeout = 6 * time.Minute            // the longest wait is 5 minutes
		out.http = &http.Client{
			Transport: transport,
			// A redirect would turn POST into GET, and show the token to others.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
	}
	return out, nil
}

// ParseURL reads a server address; one without a scheme is refused, because
// guessing http would send secrets in the clear.
func ParseURL(text string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimRight(text, "/"))
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") || u.User != nil || u.RawQuery != "" {
		return nil, fmt.Errorf("server address %q: want something like https://carillon.example.com or http://127.0.0.1:8080", text)
	}
	return u, nil
}

// Host is the server's host and port.
func (c *Client) Host() string { return c.base.Host }

// request is one question.
type request struct {
	method, path string
	query        url.Values
	header       map[string]string
	body         any // marshalled to JSON; nil = none
}

// do asks, renews the token once if the server says that it has expired, and
// decodes the answer into out (nil = discard). It returns the status and header.
func (c *Client) do(ctx context.Context, r request, out any) (*http.Response, error) {
	var body []byte
	if r.body != nil {
		var err error
		if body, err = json.Marshal(r.body); err != nil {
			return nil, fmt.Errorf("encode request: %w", err)
		}
	}
	token := ""
	if c.auth != nil {
		var err error
		if token, err = c.auth.Token(ctx); err != nil {
			return nil, err
		}
	}
	response, err := c.send(ctx, r, body, token)
	if p, ok := errors.AsType[*Problem](err); ok && c.auth != nil && token != "" && p.Status == http.StatusUnauthorized {
		fresh, renewErr := c.auth.Renew(ctx, token)
		if renewErr != nil {
			return nil, renewErr
		}
		if fresh != "" && fresh != token {
			response, err = c.send(ctx, r, body, fresh)
		}
	}
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	return response, decode(response, out)
}

// send asks once. A status of 400 and above is an error; otherwise the caller
// closes the body.
func (c *Client) send(ctx context.Context, r request, body []byte, token string) (*http.Response, error) {
	target := *c.base
	target.Path += base + r.path
	target.RawPath = "" // the parts of r.path are ids and escaped names
	if unescaped, err := url.PathUnescape(target.Path); err == nil && unescaped != target.Path {
		target.RawPath, target.Path = target.Path, unescaped
	}
	target.RawQuery = r.query.Encode()
	req, err := http.NewRequestWithContext(ctx, r.method, target.String(), bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	req.Header.Set("Accept", "application/json, application/problem+json")
	req.Header.Set("User-Agent", c.agent)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	for name, value := range r.header {
		req.Header.Set(name, value)
	}
	c.traceRequest(req, body)
	response, err := c.http.Do(req)
	if err != nil {
		return nil, &TransportError{Host: c.base.Host, Err: unwrapURL(err)}
	}
	if response.StatusCode >= 300 {
		defer response.Body.Close()
		return nil, problemOf(response)
	}
	return response, nil
}

// traceRequest shows the request as a curl command. Secrets stay out: the
// token, cookies, and the bodies of requests below /auth.
func (c *Client) traceRequest(req *http.Request, body []byte) {
	if c.trace == nil {
		return
	}
	line := "curl -X " + req.Method
	if req.Header.Get("Authorization") != "" {
		line += " -H 'Authorization: Bearer ***'"
	}
	for _, name := range []string{"Content-Type", "If-Match", "Idempotency-Key"} {
		if v := req.Header.Get(name); v != "" {
			line += " -H " + shellQuote(name+": "+v)
		}
	}
	switch {
	case strings.Contains(req.URL.Path, base+"/auth/") && len(body) > 0:
		line += " -d ***"
	case len(body) > 0:
		line += " -d " + shellQuote(string(body))
	}
	c.trace("%s %s", line, shellQuote(req.URL.String()))
}

func shellQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

func decode(response *http.Response, out any) error {
	if out == nil || response.StatusCode == http.StatusNoContent {
		return nil
	}
	raw, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return &TransportError{Host: response.Request.URL.Host, Err: fmt.Errorf("read answer: %w", err)}
	}
	if err := json.Unmarshal(raw, out); err != nil {
		return &TransportError{
			Host: response.Request.URL.Host,
			Err:  fmt.Errorf("the answer is not the API's JSON (%w); is this address a Carillon server?", err),
		}
	}
	return nil
}

// unwrapURL drops the method and address that net/http puts before an error;
// the command says them in its own words.
func unwrapURL(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}
