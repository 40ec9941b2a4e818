package httpcall

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	executor "github.com/carillon-sched/carillon/executor-sdk"
	"github.com/carillon-sched/carillon/proto"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

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

func testCaller(t *testing.T, networks []netip.Prefix, hosts ...string) *Caller {
	t.Helper()
	allowed, err := ParseHosts(hosts)
	require.NoError(t, err)
	c := &Caller{
		Client: NewClient(NewTransport(networks, nil, slog.New(slog.DiscardHandler))), Hosts: allowed, Env: []string{"API_TOKEN"}, UserAgent: "carillon/test",
		Who: "this test", HostsBy: "hosts", NetworksBy: "networks",
	}
	t.Cleanup(c.Client.CloseIdleConnections)
	return c
}

func newTestCaller(t *testing.T, hosts ...string) *Caller { return testCaller(t, loopback, hosts...) }

func (c *Caller) try(t *testing.T, in Request) (Response, error) {
	t.Helper()
	return c.Call(t.Context(), in, task, slog.New(slog.DiscardHandler))
}

var task = executor.Task{
	ExecutionID: 4711, Fence: 3, Attempt: 2, MaxAttempts: 5, TenantID: 1, JobID: 8, JobName: "nightly", Cause: "schedule",
	FireTime: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), ShardIndex: 1, ShardTotal: 4,
}

func TestACallSaysWhatItIsTold(t *testing.T) {
	t.Setenv("API_TOKEN", "s3cret")
	server, asked := newServer(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"ok":true}`))
	})
	got, err := newTestCaller(t, "*").try(t, Request{
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
	require.Equal(t, []string{"4711", "2026-01-02T03:04:05.000Z", "2", ""}, []string{
		a.header.Get("Idempotency-Key"), a.header.Get("Carillon-Planned-At"), a.header.Get("Carillon-Attempt"), a.header.Get(HeaderSignature),
	})
	require.Equal(t, "carillon/test", a.header.Get("User-Agent"))
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
		_, err := c.try(t, Request{URL: server.URL + path})
		require.ErrorContains(t, err, want)
	}
	require.Len(t, asked(), 3, "the redirect was not followed")
	for _, expect := range [][]string{{"404"}, {"2xx", "4xx"}, {"4XX"}} {
		got, err := c.try(t, Request{URL: server.URL + "/missing", Expect: expect})
		require.NoError(t, err)
		require.Equal(t, 404, got.Status)
	}
	_, err := c.try(t, Request{URL: server.URL, Expect: []string{"ok"}})
	require.ErrorContains(t, err, `"ok" is no status`)
}

// Some failures prove that the call had no effect: it was not sent, or the
// receiver has not taken it. Others prove nothing.
func TestACallWithoutEffect(t *testing.T) {
	server, _ := newServer(t, func(w http.ResponseWriter, r *http.Request) {
		switch code := strings.Trim(r.URL.Path, "/"); code {
		case "broken":
			panic(http.ErrAbortHandler)
		case "slow":
			<-r.Context().Done()
		default:
			if code == "429" {
				w.Header().Set("Retry-After", "7")
			}
			status, _ := strconv.Atoi(code)
			w.WriteHeader(status)
		}
	})
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	c := newTestCaller(t, "127.0.0.1")
	for path, want := range map[string]bool{
		"/408": true, "/425": true, "/429": true, "/503": true, "/400": false, "/404": false, "/500": false, "/502": false, "/504": false,
		"/broken": false, "/slow": false,
	} {
		_, err := c.try(t, Request{URL: server.URL + path, Method: http.MethodPost, Timeout: time.Second})
		require.Error(t, err, path)
		after, undone := Undone(err)
		require.Equal(t, want, undone, path)
		if path == "/429" {
			require.Equal(t, 7*time.Second, after)
		}
	}
	_, err := c.try(t, Request{URL: closed.URL})
	_, undone := Undone(err)
	require.True(t, undone, "no connection was made: %v", err)
	require.True(t, NoAnswer(err))
	_, err = testCaller(t, nil, "127.0.0.1").try(t, Request{URL: server.URL})
	_, undone = Undone(err)
	require.False(t, undone, "it may never be made: %v", err)
	require.False(t, unreached(t.Context(), &net.OpError{Op: "dial", Err: &net.DNSError{IsNotFound: true}}), "a name that does not exist")
}

// The body counts where the request says so, and a status that is no success
// stays none whatever the body says.
func TestWhatTheBodyHasToSay(t *testing.T) {
	server, _ := newServer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/500" {
			w.WriteHeader(http.StatusInternalServerError)
		}
		_, _ = w.Write([]byte(`{"code":0,"items":[{"id":"a"}],"ok":true}`))
	})
	c := newTestCaller(t, "*")
	for _, m := range []Match{
		{Contains: `"ok":true`}, {Path: "code", Equals: json.RawMessage("0")}, {Path: "items.0.id", Equals: json.RawMessage(`"a"`)}, {Path: "items", Equals: json.RawMessage(` [{"id" : "a"}]`)},
	} {
		_, err := c.try(t, Request{URL: server.URL, Match: &m})
		require.NoError(t, err, "%+v", m)
		_, err = c.try(t, Request{URL: server.URL + "/500", Match: &m})
		require.ErrorContains(t, err, "the answer is 500", "%+v", m)
		require.False(t, NoAnswer(err))
	}
	for want, m := range map[string]Match{
		"does not contain": {Contains: "no"}, "its code is 0, not 1": {Path: "code", Equals: json.RawMessage("1")}, "has no nothing": {Path: "nothing", Equals: json.RawMessage("1")},
	} {
		_, err := c.try(t, Request{URL: server.URL, Match: &m})
		require.ErrorContains(t, err, want)
	}
	_, err := c.try(t, Request{URL: server.URL, MaxResponse: 5, Match: &Match{Path: "code", Equals: json.RawMessage("0")}})
	require.ErrorContains(t, err, "cannot be compared")
	for want, m := range map[string]Match{
		"needs either": {}, "path needs equals": {Path: "a"}, "equals needs a path": {Contains: "a", Equals: json.RawMessage("1")},
	} {
		_, err := c.try(t, Request{URL: server.URL, Match: &m})
		require.ErrorContains(t, err, want)
	}
}

func TestACallIsSigned(t *testing.T) {
	server, asked := newServer(t, func(http.ResponseWriter, *http.Request) {})
	c := newTestCaller(t, "*")
	c.Secret = []byte("s3cret")
	_, err := c.try(t, Request{URL: server.URL, Body: json.RawMessage(`{"run":"{{run.id}}"}`)})
	require.NoError(t, err)
	got := asked()[0]
	require.Equal(t, KeyID(c.Secret), got.header.Get(HeaderKeyID))
	stamp, _, _ := strings.Cut(strings.TrimPrefix(got.header.Get(HeaderSignature), "t="), ",")
	at, err := strconv.ParseInt(stamp, 10, 64)
	require.NoError(t, err)
	require.Equal(t, Signature(c.Secret, []byte(got.body), time.Unix(at, 0)), got.header.Get(HeaderSignature))
	_, err = c.try(t, Request{URL: server.URL, Headers: map[string]string{"carillon-signature": "t=1,v1=00"}})
	require.ErrorContains(t, err, "cannot be set")
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for text, want := range map[string]time.Duration{
		"7": 7 * time.Second, "Fri, 02 Jan 2026 03:04:35 GMT": 30 * time.Second, "Fri, 02 Jan 2026 03:04:00 GMT": 0, "999999999": maxRetryAfter,
	} {
		got, ok := retryAfter(http.Header{"Retry-After": {text}}, now)
		require.True(t, ok, text)
		require.Equal(t, want, got, text)
	}
	_, ok := retryAfter(http.Header{"Retry-After": {"soon"}}, now)
	require.False(t, ok)
}

// What a job's input holds can be judged before any run.
func TestARequestIsCheckedBeforeItIsMade(t *testing.T) {
	c := newTestCaller(t, "api.example.com")
	c.MaxTimeout = time.Minute
	for input, want := range map[string]string{
		`{"url":"https://api.example.com/{{run.id}}?a={{input.b}}","input":{"b":""},"timeout":"1m"}`: "",
		`{"url":"https://api.example.com/{{run.nope}}"}`:                                             "there is no such value",
		`{"url":"https://api.example.com/{{input.b}}"}`:                                              `the input has no "b"`,
		`{"url":"https://api.example.com","body":{"a":["{{run.nope}}"]}}`:                            "there is no such value",
		`{"url":"https://api.example.com","headers":{"X":"{{env.HOME}}"}}`:                           "no such variable",
		`{"url":"https://api.example.com","headers":{"host":"x"}}`:                                   `"host" cannot be set`,
		`{"url":"https://api.example.com","headers":{"X":"a\r\nY: b"}}`:                              "no line feed",
		`{"url":"https://api.example.com","expect":["9xx"]}`:                                         `"9xx" is no status`,
		`{"url":"https://api.example.com","timeout":"61s"}`:                                          "timeout: must be from 0s to 1m0s",
		`{"url":"https://api.example.com","timeout":61000000000}`:                                    "timeout: must be",
		`{"url":"https://other.example.com/"}`:                                                       "may not call other.example.com",
		`{"url":"https://{{input.host}}/"}`:                                                          "written out",
		`{"url":"https://api.example.com","expect":["2xx","20"]}`:                                    `"20" is no status`,
		`{"url":"https://api.example.com","match":{}}`:                                               "match: needs either",
		`{"url":"https://api.example.com","maxResponse":-1}`:                                         "maxResponse: must be",
	} {
		in, err := Decode(json.RawMessage(input))
		require.NoError(t, err, input)
		if err = c.Check(&in); want == "" {
			require.NoError(t, err, input)
		} else {
			require.ErrorContains(t, err, want, input)
		}
	}
	_, err := Decode(json.RawMessage(`{"timeout":"soon"}`))
	require.ErrorContains(t, err, "is no duration")
}

func TestAnAnswerIsBounded(t *testing.T) {
	server, _ := newServer(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("[" + strings.Repeat("1,", 1000) + "1]"))
	})
	got, err := newTestCaller(t, "*").try(t, Request{URL: server.URL, MaxResponse: 10})
	require.NoError(t, err)
	require.True(t, got.Truncated)
	require.Equal(t, "[1,1,1,1,1", got.Body)
	require.Empty(t, got.JSON)
}

// However an answer is written as JSON, it fits an output.
func TestAnAnswerFitsAnOutput(t *testing.T) {
	var body []byte
	server, _ := newServer(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", strings.Repeat("<", 60<<10))
		_, _ = w.Write(body)
	})
	c := newTestCaller(t, "*")
	var all strings.Builder // of each kind of character, so that each is counted as it is written
	for r := range rune(0x2100) {
		all.WriteRune(r)
	}
	for name, text := range map[string]string{
		"zeros": "\x00", "angles": "<", "quotes": `"`, "not UTF-8": "\xffa", "JSON": "[" + strings.Repeat(`"<",`, 30_000) + "1]", "all": all.String() + strings.Repeat("<", 10_000), "letters": "a",
	} {
		body = []byte(strings.Repeat(text, maxAnswer/len(text)))
		got, err := c.try(t, Request{URL: server.URL, MaxResponse: maxAnswer})
		require.NoError(t, err, name)
		raw, err := json.Marshal(got)
		require.NoError(t, err)
		require.LessOrEqual(t, len(raw), proto.MaxOutput, name)
		require.Equal(t, name != "letters", got.Truncated, name)
		kept, err := json.Marshal(got.Body)
		require.NoError(t, err)
		require.LessOrEqual(t, len(kept), maxEncoded, name)
		if got.Truncated {
			require.Greater(t, len(kept), maxEncoded-10, "%s: no more is cut than has to be", name)
		}
	}
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
	_, err := c.try(t, Request{URL: server.URL, Timeout: 20 * time.Millisecond})
	require.EqualError(t, err, "no answer within 20ms")
	require.True(t, NoAnswer(err))
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		<-arrived
		cancel(http.ErrAbortHandler)
	}()
	_, err = c.Call(ctx, Request{URL: server.URL + "/until-its-run-ends"}, executor.Task{}, slog.New(slog.DiscardHandler))
	require.ErrorIs(t, err, http.ErrAbortHandler)
	require.False(t, NoAnswer(err), "the receiver is not to blame")
}

func TestHeadersCannotBeForged(t *testing.T) {
	server, asked := newServer(t, func(http.ResponseWriter, *http.Request) {})
	c := newTestCaller(t, "*")
	for name, value := range map[string]string{
		"Host": "x", "content-length": "1", "idempotency-key": "1", "Carillon-Run-Id": "1", "carillon-attempt": "1", "X-A": "b\r\nX-C: d", "X B": "c", "X-Input": "{{input.evil}}", "X-Env": "{{env.HOME}}", "X-None": "{{run.nothing}}", "X-Open": "{{run.id",
	} {
		_, err := c.try(t, Request{URL: server.URL, Headers: map[string]string{name: value}, Input: json.RawMessage(`{"evil":"a\nb"}`)})
		require.ErrorContains(t, err, "headers", name)
	}
	_, err := c.try(t, Request{URL: server.URL, Body: json.RawMessage(`"{{env.API_TOKEN}}"`)})
	require.ErrorContains(t, err, "no such variable is handed out", "the environment is for headers only")
	require.Empty(t, asked())
}

func FuzzExpand(f *testing.F) {
	f.Add("/a/{{input.b}}?c={{run.id}}", `{"b":[1]}`)
	f.Add("{{input.0.x}}{{", `[{"x":"\u0000"}]`)
	f.Fuzz(func(t *testing.T, template, input string) {
		v := Values{Task: task, Input: json.RawMessage(input)}
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

// What holds no template is sent as it is written, and a template counts however
// its braces are written.
func TestJSONBodies(t *testing.T) {
	v := Values{Input: json.RawMessage(`{"n":7}`)}
	for _, c := range []struct{ raw, want string }{
		{`{"b": {"z":1, "a":{"x":"<&>"}}, "a":1.50}`, `{"b": {"z":1, "a":{"x":"<&>"}}, "a":1.50}`},
		{`{"b":2,"n":"{{input.n}}"}`, `{"b":2,"n":7}`},
		{`{"n":"\u007b\u007binput.n}}"}`, `{"n":7}`},
	} {
		got, err := expandJSON(json.RawMessage(c.raw), v)
		require.NoError(t, err)
		require.Equal(t, c.want, string(got))
	}
	_, err := expandJSON(json.RawMessage(`{"n":`), v)
	require.Error(t, err)
}

// An answer in another charset becomes UTF-8; bytes that are no text in it are marked.
func TestAnswersInOtherCharsets(t *testing.T) {
	for name, c := range map[string]struct {
		contentType, body string
		want              Response
	}{
		"GBK":               {"application/json; charset=gbk", "{\"city\":\"\xb0\xd9\"}", Response{JSON: json.RawMessage(`{"city":"百"}`)}},
		"GB18030 text":      {"text/html; charset=GB18030", "\xb0\xd9", Response{Body: "百"}},
		"Shift JIS":         {"text/plain; charset=shift_jis", "\x95\x53", Response{Body: "百"}},
		"Latin 1":           {"text/plain; charset=iso-8859-1", "caf\xe9", Response{Body: "café"}},
		"a backslash in it": {"application/json; charset=gbk", "{\"t\":\"\x81\x5c\"}", Response{JSON: json.RawMessage(`{"t":"乗"}`)}},
		"no charset":        {"application/json", "{\"city\":\"\xb0\xd9\"}", Response{JSON: json.RawMessage("{\"city\":\"\uFFFD\"}"), NotUTF8: true}},
		"a wrong charset":   {"application/json; charset=utf-8", "{\"city\":\"\xb0\xd9\"}", Response{JSON: json.RawMessage("{\"city\":\"\uFFFD\"}"), NotUTF8: true}},
		"an unknown one":    {"text/plain; charset=klingon", "caf\xe9", Response{Body: "caf\uFFFD", NotUTF8: true}},
		"UTF-8":             {"application/json; charset=utf-8", `{"city":"百"}`, Response{JSON: json.RawMessage(`{"city":"百"}`)}},
	} {
		t.Run(name, func(t *testing.T) {
			server, _ := newServer(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", c.contentType)
				_, _ = w.Write([]byte(c.body))
			})
			got, err := newTestCaller(t, "*").try(t, Request{URL: server.URL})
			require.NoError(t, err)
			require.Equal(t, string(c.want.JSON), string(got.JSON))
			require.Equal(t, []any{c.want.Body, c.want.NotUTF8}, []any{got.Body, got.NotUTF8})
		})
	}
}

// A query arrives as it was meant, whatever of it its author escaped.
func TestQueriesAreEscaped(t *testing.T) {
	server, asked := newServer(t, func(http.ResponseWriter, *http.Request) {})
	c := newTestCaller(t, "*")
	for query, want := range map[string]string{
		"q=a b":                    "q=a%20b",
		"q=caf\u00e9&d=百":          "q=caf%C3%A9&d=%E7%99%BE",
		"q=caf%C3%A9&r=a+b":        "q=caf%C3%A9&r=a+b",
		"q=100%&r=%zz&s=%":         "q=100%25&r=%25zz&s=%25",
		`q="x"<y>\^|`:              "q=%22x%22%3Cy%3E%5C%5E%7C",
		"filter[a]=1&b=c:d/e?f@g,": "filter[a]=1&b=c:d/e?f@g,",
		"q=\xb0":                   "q=%B0",
		"since={{input.s}}&x=y z":  "since=1%26+2&x=y%20z",
	} {
		_, err := c.try(t, Request{URL: server.URL + "/find me?" + query, Input: json.RawMessage(`{"s":"1& 2"}`)})
		require.NoError(t, err, query)
		all := asked()
		require.Equal(t, "/find%20me?"+want, all[len(all)-1].uri)
	}
}
