package client

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/internal/apiclient"
)

// Authorizer knows the credentials. It is called from one goroutine.
type Authorizer interface {
	// Token returns what to send as bearer token; empty sends none.
	Token(ctx context.Context) (string, error)
	// Renew is called when the server called the token expired. It returns a
	// new one, or "" when it cannot: then the server's answer stands.
	Renew(ctx context.Context, expired string) (string, error)
}

// Client asks one server. It is safe for use by one goroutine at a time.
type Client struct{ *apiclient.Client }

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
	// Elsewhere is told that a tenant lives in another cell, which is asked instead.
	// nil: that is not done. Only an API key counts there as well.
	Elsewhere func(cell, url string)
	// HTTP does the requests. Default: a client without an overall timeout,
	// because some requests wait on purpose; contexts bound them.
	HTTP *http.Client
}

// New checks the address.
func New(c Config) (*Client, error) {
	if c.HTTP == nil {
		transport := http.DefaultTransport.(*http.Transport).Clone() // nobody replaces the default
		transport.ResponseHeaderTimeout = 6 * time.Minute            // the longest wait is 5 minutes
		c.HTTP = &http.Client{Transport: transport, CheckRedirect: apiclient.KeepRedirects}
	}
	api, err := apiclient.New(c.URL, doer(c))
	return &Client{api}, err
}

// doer sends requests with credentials.
type doer Config

// Do asks, and once more if the server says that the token has expired and
// there is a new one.
func (d doer) Do(request *http.Request) (*http.Response, error) {
	request.Header.Set("User-Agent", d.UserAgent)
	if d.Auth == nil {
		return d.send(request, "")
	}
	token, err := d.Auth.Token(request.Context())
	if err != nil {
		return nil, err
	}
	response, err := d.send(request, token)
	if err == nil && response.StatusCode == http.StatusMisdirectedRequest && d.Elsewhere != nil {
		return d.follow(request, response, token)
	}
	if err != nil || response.StatusCode != http.StatusUnauthorized || token == "" {
		return response, err
	}
	fresh, err := d.Auth.Renew(request.Context(), token)
	if err == nil && (fresh == "" || fresh == token) {
		return response, nil
	}
	response.Body.Close()
	if err == nil && request.GetBody != nil {
		request.Body, err = request.GetBody()
	}
	if err != nil {
		return nil, err
	}
	return d.send(request, fresh)
}

// follow asks the cell that an answer names, with the same key. A key is not sent in
// the clear because of an answer.
func (d doer) follow(request *http.Request, response *http.Response, token string) (*http.Response, error) {
	raw, err := io.ReadAll(io.LimitReader(response.Body, 1<<16))
	response.Body.Close()
	response.Body = io.NopCloser(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	var p apiclient.Problem
	if json.Unmarshal(raw, &p) != nil || p.Cell == nil {
		return response, nil
	}
	to, err := apiclient.ParseURL(p.Cell.URL)
	if err != nil || to.Scheme == "http" && request.URL.Scheme != "http" {
		return response, nil // the answer says what to do
	}
	base, path, isAPI := strings.Cut(request.URL.EscapedPath(), "/api/")
	if to.Host == request.URL.Host && to.EscapedPath() == base {
		return response, nil // it is this one
	}
	there := to.String() + "/api/" + path
	if request.URL.RawQuery != "" {
		there += "?" + request.URL.RawQuery
	}
	target, err := url.Parse(there)
	if err == nil && request.GetBody != nil {
		request.Body, err = request.GetBody()
	}
	if err != nil || !isAPI {
		return response, err
	}
	d.Elsewhere(p.Cell.Name, p.Cell.URL)
	request.URL = target
	request.Host = ""
	return d.send(request, token)
}

func (d doer) send(request *http.Request, token string) (*http.Response, error) {
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	d.traceRequest(request)
	return d.HTTP.Do(request)
}

// traceRequest shows the request as a curl command. It leaves out cookies and masks the
// token, the secrets in bodies, and the bodies of requests below /auth.
func (d doer) traceRequest(request *http.Request) {
	if d.Trace == nil {
		return
	}
	line := "curl -X " + request.Method
	if request.Header.Get("Authorization") != "" {
		line += " -H 'Authorization: Bearer ***'"
	}
	for _, name := range []string{"Content-Type", "If-Match", "Idempotency-Key"} {
		if v := request.Header.Get(name); v != "" {
			line += " -H " + shellQuote(name+": "+v)
		}
	}
	if request.GetBody != nil && request.ContentLength > 0 {
		text := masked
		if body, err := request.GetBody(); err == nil && !strings.Contains(request.URL.Path, "/api/v1/auth/") {
			raw, _ := io.ReadAll(body) // it is in memory
			text = shellQuote(maskBody(raw))
		}
		line += " -d " + text
	}
	d.Trace("%s %s", line, shellQuote(request.URL.String()))
}

func shellQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
