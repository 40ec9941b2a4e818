package agent

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	executor "github.com/carillon-sched/carillon/executor-sdk"
)

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}

// seen is what a server was asked.
type seen struct {
	method, uri, body string
	header            http.Header
}

// newServer also returns what it was asked so far. A caller that gave up may
// still be served while the next one asks.
func newServer(t *testing.T, answer http.HandlerFunc) (_ *httptest.Server, asked func() []seen) {
	var mu sync.Mutex
	var all []seen // guarded by mu
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		all = append(all, seen{r.Method, r.RequestURI, string(body), r.Header})
		mu.Unlock()
		answer(w, r)
	}))
	t.Cleanup(server.Close)
	return server, func() []seen {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(all)
	}
}

func newTestCaller(t *testing.T, hosts ...string) *caller {
	t.Helper()
	c, err := newCaller(hosts, loopback, []string{"API_TOKEN"}, "carillon-agent/test", nil)
	require.NoError(t, err)
	t.Cleanup(c.client.CloseIdleConnections)
	return c
}

func (c *caller) try(t *testing.T, in HTTPRequest) (HTTPResponse, error) {
	t.Helper()
	return c.call(t.Context(), in, job{task: httpTask(), log: slog.New(slog.DiscardHandler)})
}

func httpTask() executor.Task {
	task := taskOf("shell", "")
	task.Script = nil
	return task
}

func TestACallSaysWhatItIsTold(t *testing.T) {
	t.Setenv("API_TOKEN", "s3cret")
	server, asked := newServer(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"ok":true}`))
	})
	got, err := newTestCaller(t, "*").try(t, HTTPRequest{
		URL:     server.URL + "/customers/{{input.id}}/orders?since={{input.since}}",
		Headers: map[string]string{"Authorization": "Bearer {{env.API_TOKEN}}"},
		Body:    json.RawMessage(`{"run":"{{run.id}}","items":"{{input.items}}","note":"for {{input.who}}","shard":"{{run.shardIndex}}"}`),
		Input:   json.RawMessage(`{"id":"a/b?c","since":"1&2","items":[1,{"x":null}],"who":"\"them\""}`),
	})
	require.NoError(t, err)
	require.Equal(t, 200, got.Status)
	require.JSONEq(t, `{"ok":true}`, string(got.JSON))
	require.Equal(t, "application/json", got.Headers["Content-Type"])
	a := asked()[0]
	require.Equal(t, "POST", a.method)
	require.Equal(t, "/customers/a%2Fb%3Fc/orders?since=1%262", a.uri)
	require.JSONEq(t, `{"run":"4711","items":[1,{"x":null}],"note":"for \"them\"","shard":1}`, a.body)
	require.Equal(t, "Bearer s3cret", a.header.Get("Authorization"))
	require.Equal(t, "4711", a.header.Get("Idempotency-Key"))
	require.Equal(t, "carillon-agent/test", a.header.Get("User-Agent"))
	require.Equal(t, "application/json", a.header.Get("Content-Type"))
}

func TestWhatMakesACallFail(t *testing.T) {
	server, asked := newServer(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/moved":
			http.Redirect(w, r, "/elsewhere", http.StatusFound)
		case "/busy":
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(http.StatusServiceUnavailable)
		case "/missing":
			http.Error(w, "no\nsuch\x1b[31m thing", http.StatusNotFound)
		}
	})
	c := newTestCaller(t, "127.0.0.1")
	for path, want := range map[string]string{
		"/moved": "the answer is 302 Found", "/busy": "the answer is 503 Service Unavailable", "/missing": "the answer is 404 Not Found: no such [31m thing",
	} {
		_, err := c.try(t, HTTPRequest{URL: server.URL + path})
		require.ErrorContains(t, err, want)
	}
	require.Len(t, asked(), 3, "the redirect was not followed")
	for _, expect := range [][]string{{"404"}, {"2xx", "4xx"}, {"4XX"}} {
		got, err := c.try(t, HTTPRequest{URL: server.URL + "/missing", Expect: expect})
		require.NoError(t, err)
		require.Equal(t, 404, got.Status)
	}
	_, err := c.try(t, HTTPRequest{URL: server.URL, Expect: []string{"ok"}})
	require.ErrorContains(t, err, `"ok" is no status`)
}

func TestAnAnswerIsBounded(t *testing.T) {
	server, _ := newServer(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("[" + strings.Repeat("1,", 1000) + "1]"))
	})
	got, err := newTestCaller(t, "*").try(t, HTTPRequest{URL: server.URL, MaxResponse: 10})
	require.NoError(t, err)
	require.True(t, got.Truncated)
	require.Equal(t, "[1,1,1,1,1", got.Body)
	require.Empty(t, got.JSON)
}

func TestACallEndsWithItsTimeAndItsRun(t *testing.T) {
	arrived := make(chan struct{})
	server, _ := newServer(t, func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/until-its-run-ends" { // the other one may end before it arrives
			close(arrived)
		}
		<-r.Context().Done()
	})
	c := newTestCaller(t, "*")
	_, err := c.try(t, HTTPRequest{URL: server.URL, Timeout: 20 * time.Millisecond})
	require.EqualError(t, err, "no answer within 20ms")
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		<-arrived
		cancel(http.ErrAbortHandler)
	}()
	_, err = c.call(ctx, HTTPRequest{URL: server.URL + "/until-its-run-ends"}, job{log: slog.New(slog.DiscardHandler)})
	require.ErrorIs(t, err, http.ErrAbortHandler)
}

func TestWhereACallMayNotGo(t *testing.T) {
	server, asked := newServer(t, func(http.ResponseWriter, *http.Request) {})
	at, err := url.Parse(server.URL)
	require.NoError(t, err)
	// No network beyond the public ones is allowed here.
	guarded, err := newCaller([]string{"*"}, nil, nil, "test", nil)
	require.NoError(t, err)
	for _, address := range []string{
		server.URL, "http://localhost:" + at.Port(), "http://[::ffff:127.0.0.1]:" + at.Port(), "http://[::1]:" + at.Port(),
		"http://169.254.169.254/latest/meta-data", "http://10.0.0.1/", "http://0.0.0.0:" + at.Port(),
	} {
		_, err := guarded.try(t, HTTPRequest{URL: address, Timeout: 5 * time.Second})
		require.ErrorContains(t, err, "--allow-http-net", address)
	}
	named := newTestCaller(t, "api.example.com", "*.example.org:8443")
	for address, want := range map[string]string{
		server.URL:                                    "this agent may not call",
		"http://example.org:8443/":                    "this agent may not call",
		"http://evilexample.org:8443/":                "this agent may not call",
		"http://a.example.org/":                       "this agent may not call",
		"ftp://api.example.com/":                      "must begin with http",
		"http://u:p@api.example.com/":                 "user name",
		"http:///x":                                   "names no host",
		"http://{{input.host}}/":                      "written out",
		"http://api.example.com{{input.x}}/":          "written out",
		"http://api.example.com/{{input.up}}/secrets": "would change the path",
	} {
		_, err := named.try(t, HTTPRequest{URL: address, Input: json.RawMessage(`{"host":"evil","x":"@evil","up":".."}`)})
		require.ErrorContains(t, err, want, address)
	}
	require.Empty(t, asked())
	for pattern, hosts := range map[string][]string{
		"api.example.com": {"http://API.example.com./", "https://api.example.com:99/"}, "*.example.org:8443": {"https://a.b.example.org:8443"}, "api.example.com:443": {"https://api.example.com"},
	} {
		p, err := parseHost(pattern)
		require.NoError(t, err)
		for _, host := range hosts {
			u, err := url.Parse(host)
			require.NoError(t, err)
			require.True(t, p.matches(u), "%s %s", pattern, host)
		}
	}
	for _, text := range []string{"", "http://x", "a*b", "*b.com", "a@b"} {
		_, err := parseHost(text)
		require.Error(t, err, text)
	}
}

func TestHeadersCannotBeForged(t *testing.T) {
	server, asked := newServer(t, func(http.ResponseWriter, *http.Request) {})
	c := newTestCaller(t, "*")
	for name, value := range map[string]string{
		"Host": "x", "content-length": "1", "X-A": "b\r\nX-C: d", "X B": "c", "X-Input": "{{input.evil}}", "X-Env": "{{env.HOME}}", "X-None": "{{run.nothing}}", "X-Open": "{{run.id",
	} {
		_, err := c.try(t, HTTPRequest{URL: server.URL, Headers: map[string]string{name: value}, Input: json.RawMessage(`{"evil":"a\nb"}`)})
		require.ErrorContains(t, err, "headers", name)
	}
	_, err := c.try(t, HTTPRequest{URL: server.URL, Body: json.RawMessage(`"{{env.API_TOKEN}}"`)})
	require.ErrorContains(t, err, "no such variable here", "the environment is for headers only")
	require.Empty(t, asked())
}

func FuzzExpand(f *testing.F) {
	f.Add("/a/{{input.b}}?c={{run.id}}", `{"b":[1]}`)
	f.Add("{{input.0.x}}{{", `[{"x":"\u0000"}]`)
	f.Fuzz(func(t *testing.T, template, input string) {
		v := values{task: taskOf("shell", ""), input: json.RawMessage(input)}
		out, err := expandURL("http://host.example/"+template, v)
		if err != nil {
			return
		}
		if u, err := url.Parse(out); err == nil {
			require.Equal(t, "host.example", u.Host)
		}
		if json.Valid([]byte(input)) {
			if raw, err := expandJSON(json.RawMessage(`{"a":"x"}`), v); err == nil {
				require.True(t, json.Valid(raw))
			}
		}
	})
}
