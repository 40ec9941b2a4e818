package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// ask starts a server with one handler and returns a client of it.
func ask(t *testing.T, auth Authorizer, handler http.HandlerFunc) *Client {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	c, err := New(Config{URL: server.URL + "/", Auth: auth, UserAgent: "test/1"})
	require.NoError(t, err)
	t.Cleanup(c.http.CloseIdleConnections)
	return c
}

func problem(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/problem+json; charset=utf-8")
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"status":%d,"code":%q,"detail":"because","instance":"req-1"}`, status, code)
}

func TestProblemIsRead(t *testing.T) {
	c := ask(t, nil, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusUnprocessableEntity)
		fmt.Fprint(w, `{"status":422,"code":"invalid_cron","detail":"body.schedule.expr: 25 is outside 0-23",
			"errors":[{"location":"body.schedule.expr","message":"25 is outside 0-23","value":"0 0 25 * * *","position":4,"length":2,"hint":"h"}]}`)
	})
	_, err := c.CreateJob(t.Context(), json.RawMessage(`{}`), Lenient{})
	p, ok := errors.AsType[*Problem](err)
	require.True(t, ok)
	require.Equal(t, CodeInvalidCron, p.Code)
	require.Len(t, p.Errors, 1)
	require.Equal(t, 4, *p.Errors[0].Position)
	require.Equal(t, "0 0 25 * * *", p.Errors[0].Value)
}

// A proxy's page, a redirect to a login form, another server's JSON: each is
// told as what it is, and none looks like an answer of ours.
func TestForeignAnswers(t *testing.T) {
	tests := []struct {
		name    string
		handler http.HandlerFunc
		want    string
	}{
		{"page", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") }, "not the API's JSON"},
		{"proxy error", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "bad gateway", http.StatusBadGateway) },
			"did not answer like a Carillon server: 502 Bad Gateway"},
		{"redirect", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://sso.example/x?state=s", http.StatusFound)
		},
			"it redirects to https://sso.example/x"},
		{"broken problem", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(500)
			fmt.Fprint(w, "{")
		}, "did not answer like a Carillon server"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := ask(t, nil, test.handler).Me(t.Context())
			require.ErrorContains(t, err, test.want)
		})
	}
}

func TestNoServer(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	c, err := New(Config{URL: server.URL})
	require.NoError(t, err)
	_, err = c.Me(t.Context())
	_, ok := errors.AsType[*TransportError](err)
	require.True(t, ok, "got %v", err)
}

func TestAddresses(t *testing.T) {
	for _, bad := range []string{"", "localhost:8080", "127.0.0.1", "ftp://x", "http://", "http://u:p@x", "http://x?q=1"} {
		_, err := New(Config{URL: bad})
		require.ErrorContains(t, err, "want something like", "%q", bad)
	}
}

// tokens is an Authorizer that counts.
type tokens struct {
	token, renewed string
	renewals       int
}

func (a *tokens) Token(context.Context) (string, error) { return a.token, nil }
func (a *tokens) Renew(_ context.Context, expired string) (string, error) {
	if expired != a.token {
		return "", errors.New("renewed another token")
	}
	a.renewals++
	return a.renewed, nil
}

// An expired token is renewed once, and the whole request is sent again.
func TestRenewal(t *testing.T) {
	var bodies []string
	server := func(w http.ResponseWriter, r *http.Request) {
		body := make([]byte, r.ContentLength)
		_, _ = r.Body.Read(body)
		bodies = append(bodies, string(body))
		if r.Header.Get("Authorization") != "Bearer fresh" {
			problem(w, http.StatusUnauthorized, CodeTokenExpired)
			return
		}
		fmt.Fprint(w, `{"id":"1"}`)
	}
	auth := &tokens{token: "old", renewed: "fresh"}
	d, err := ask(t, auth, server).PauseJob(t.Context(), "1", "why")
	require.NoError(t, err)
	require.Equal(t, "1", d.Value.ID)
	require.Equal(t, []string{`{"note":"why"}`, `{"note":"why"}`}, bodies)

	// A server that refuses the new token too is not asked for ever.
	auth = &tokens{token: "old", renewed: "stale"}
	_, err = ask(t, auth, server).Me(t.Context())
	p, ok := errors.AsType[*Problem](err)
	require.True(t, ok)
	require.Equal(t, CodeTokenExpired, p.Code)
	require.Equal(t, 1, auth.renewals)

	// An Authorizer that cannot renew leaves the server's answer.
	_, err = ask(t, &tokens{token: "key"}, server).Me(t.Context())
	require.ErrorContains(t, err, "because")
}

func TestPages(t *testing.T) {
	var limits []string
	server := func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		limits = append(limits, q.Get("limit"))
		limit, _ := strconv.Atoi(q.Get("limit"))
		start, _ := strconv.Atoi(q.Get("cursor"))
		var items []string
		for i := start; i < min(start+limit, 450); i++ {
			items = append(items, fmt.Sprintf(`{"id":"%d","unknown":true}`, i))
		}
		next := "null"
		if start+limit < 450 {
			next = strconv.Quote(strconv.Itoa(start + limit))
		}
		fmt.Fprintf(w, `{"items":[%s],"nextCursor":%s}`, strings.Join(items, ","), next)
	}
	c := ask(t, nil, server)
	runs, err := c.Runs(t.Context(), RunFilter{})
	require.NoError(t, err)
	require.Len(t, runs, 450)
	require.Equal(t, "449", runs[449].Value.ID)
	require.JSONEq(t, `{"id":"449","unknown":true}`, string(runs[449].Raw), "the server's bytes are kept")

	limits = nil
	runs, err = c.Runs(t.Context(), RunFilter{Limit: 250})
	require.NoError(t, err)
	require.Len(t, runs, 250)
	require.Equal(t, []string{"200", "50"}, limits)
}

func TestRequests(t *testing.T) {
	var got *http.Request
	c := ask(t, nil, func(w http.ResponseWriter, r *http.Request) {
		got = r
		http.SetCookie(w, &http.Cookie{Name: "carillon_refresh", Value: "next", Path: "/api/v1/auth", HttpOnly: true})
		http.SetCookie(w, &http.Cookie{Name: "gone", Value: "x", MaxAge: -1})
		fmt.Fprint(w, `{}`)
	})
	_, err := c.ReplaceJob(t.Context(), "7", 3, json.RawMessage(`{"name":"x"}`), Lenient{UnknownHandler: true})
	require.NoError(t, err)
	require.Equal(t, `"3"`, got.Header.Get("If-Match"))
	require.Equal(t, "/api/v1/jobs/7?allowUnknownHandler=true", got.URL.String())

	_, err = c.RunJob(t.Context(), "7", RunRequest{After: "30m"}, "key-1")
	require.NoError(t, err)
	require.Equal(t, "key-1", got.Header.Get("Idempotency-Key"))

	// A word that is no id stays one segment of the path.
	_, err = c.Run(t.Context(), "../jobs/7?x")
	require.NoError(t, err)
	require.Equal(t, "/api/v1/runs/..%2Fjobs%2F7%3Fx", got.URL.EscapedPath())

	l, err := c.Refresh(t.Context(), []string{"carillon_refresh=first", "a=b"})
	require.NoError(t, err)
	require.Equal(t, "carillon_refresh=first; a=b", got.Header.Get("Cookie"))
	require.Equal(t, []string{"carillon_refresh=next"}, l.Cookies)
}

// The trace can be pasted into a ticket: it has no secrets.
func TestTraceHidesSecrets(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "{}") }))
	defer server.Close()
	var trace strings.Builder
	c, err := New(Config{URL: server.URL, Auth: &tokens{token: "jwt-secret"}, Trace: func(f string, a ...any) {
		fmt.Fprintf(&trace, f+"\n", a...)
	}})
	require.NoError(t, err)
	defer c.http.CloseIdleConnections()
	_, err = c.LogIn(t.Context(), "admin", "pass-secret", "")
	require.NoError(t, err)
	_, err = c.Refresh(t.Context(), []string{"c=cookie-secret"})
	require.NoError(t, err)
	_, err = c.PauseJob(t.Context(), "1", "it's down")
	require.NoError(t, err)
	require.NotContains(t, trace.String(), "secret")
	require.Contains(t, trace.String(), `-d '{"note":"it'\''s down"}' '`+server.URL+`/api/v1/jobs/1/pause'`)
}
