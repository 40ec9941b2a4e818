package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/carillon-sched/carillon/internal/apiclient"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// ask starts a server with one handler and returns a client of it.
func ask(t *testing.T, auth Authorizer, trace func(string, ...any), handler http.HandlerFunc) *Client {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	c, err := New(Config{URL: server.URL + "/", Auth: auth, UserAgent: "test/1", Trace: trace, HTTP: &http.Client{Transport: transport}})
	require.NoError(t, err)
	return c
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

// refusing is an Authorizer without credentials.
type refusing struct{}

func (refusing) Token(context.Context) (string, error)         { return "", errors.New("not logged in") }
func (refusing) Renew(context.Context, string) (string, error) { return "", nil }

// An expired token is renewed once, and the whole request is sent again.
func TestRenewal(t *testing.T) {
	var bodies []string
	server := func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		bodies = append(bodies, string(body))
		if r.Header.Get("Authorization") != "Bearer fresh" {
			w.Header().Set("Content-Type", "application/problem+json; charset=utf-8")
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, `{"status":401,"code":"token_expired","detail":"because","instance":"req-1"}`)
			return
		}
		fmt.Fprint(w, `{"id":"1"}`)
	}
	auth := &tokens{token: "old", renewed: "fresh"}
	d, err := ask(t, auth, nil, server).PauseJob(t.Context(), "1", apiclient.PauseInputBody{Note: "why"})
	require.NoError(t, err)
	require.Equal(t, "1", d.Value.ID)
	require.Equal(t, []string{`{"note":"why"}`, `{"note":"why"}`}, bodies)

	// A server that refuses the new token too is not asked for ever.
	auth = &tokens{token: "old", renewed: "stale"}
	_, err = ask(t, auth, nil, server).Me(t.Context())
	p, ok := errors.AsType[*apiclient.Problem](err)
	require.True(t, ok)
	require.Equal(t, apiclient.ProblemCodeTokenExpired, p.Code)
	require.Equal(t, 1, auth.renewals)

	// An Authorizer that cannot renew leaves the server's answer.
	_, err = ask(t, &tokens{token: "key"}, nil, server).Me(t.Context())
	require.ErrorContains(t, err, "because")

	// What an Authorizer says is not told as a fault of the network.
	_, err = ask(t, refusing{}, nil, server).Me(t.Context())
	require.EqualError(t, err, "not logged in")
}

func TestCookies(t *testing.T) {
	var got *http.Request
	c := ask(t, nil, nil, func(w http.ResponseWriter, r *http.Request) {
		got = r
		http.SetCookie(w, &http.Cookie{Name: "carillon_refresh", Value: "next", Path: "/api/v1/auth", HttpOnly: true})
		http.SetCookie(w, &http.Cookie{Name: "gone", Value: "x", MaxAge: -1})
		fmt.Fprint(w, `{"accessToken":"t"}`)
	})
	l, err := c.Refresh(t.Context(), []string{"carillon_refresh=first", "a=b"})
	require.NoError(t, err)
	require.Equal(t, "carillon_refresh=first; a=b", got.Header.Get("Cookie"))
	require.Equal(t, "test/1", got.Header.Get("User-Agent"))
	require.Equal(t, "t", l.AccessToken)
	require.Equal(t, []string{"carillon_refresh=next"}, l.Cookies)
	cookies, err := c.ChangePassword(t.Context(), "old", "new")
	require.NoError(t, err)
	require.Equal(t, []string{"carillon_refresh=next"}, cookies)
}

// The trace can be pasted into a ticket: it has no secrets.
func TestTraceHidesSecrets(t *testing.T) {
	var trace strings.Builder
	c := ask(t, &tokens{token: "jwt-secret"}, func(f string, a ...any) { fmt.Fprintf(&trace, f+"\n", a...) },
		func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "{}") })
	_, err := c.LogIn(t.Context(), apiclient.LoginInputBody{Username: "admin", Password: "pass-secret"})
	require.NoError(t, err)
	_, err = c.Refresh(t.Context(), []string{"c=cookie-secret"})
	require.NoError(t, err)
	_, err = c.PauseJob(t.Context(), "1", apiclient.PauseInputBody{Note: "it's down"})
	require.NoError(t, err)
	require.NotContains(t, trace.String(), "secret")
	require.Regexp(t, `-d '{"note":"it'\\''s down"}' 'http://[^/]+/api/v1/jobs/1/pause'`, trace.String())
}

// An API key is shown to the cell that its tenant lives in, once for each request.
func TestElsewhere(t *testing.T) {
	var bodies []string
	cell := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		bodies = append(bodies, r.URL.Path+" "+r.Header.Get("Authorization")+" "+string(body))
		fmt.Fprint(w, `{"id":"1"}`)
	}))
	t.Cleanup(cell.Close)
	address := cell.URL
	old := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusMisdirectedRequest)
		fmt.Fprintf(w, `{"code":"tenant_elsewhere","detail":"it lives elsewhere","cell":{"name":"eu2","url":%q}}`, address)
	}
	c := ask(t, &tokens{token: "ck_1"}, nil, old)
	_, err := c.PauseJob(t.Context(), "1", apiclient.PauseInputBody{Note: "why"})
	require.ErrorContains(t, err, "it lives elsewhere", "it was not asked for")

	told := ""
	mux := http.NewServeMux()
	mux.HandleFunc("/", old)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	c, err = New(Config{URL: server.URL, Auth: &tokens{token: "ck_1"}, HTTP: &http.Client{Transport: transport}, Elsewhere: func(cell, url string) { told = cell + " " + url }})
	require.NoError(t, err)
	_, err = c.PauseJob(t.Context(), "1", apiclient.PauseInputBody{Note: "why"})
	require.NoError(t, err)
	require.Equal(t, "eu2 "+address, told)
	require.Equal(t, []string{`/api/v1/jobs/1/pause Bearer ck_1 {"note":"why"}`}, bodies)
	// Cells may be two paths of one host.
	address, bodies = server.URL+"/eu2", nil
	mux.HandleFunc("/eu2/", func(w http.ResponseWriter, r *http.Request) { cell.Config.Handler.ServeHTTP(w, r) })
	_, err = c.PauseJob(t.Context(), "1", apiclient.PauseInputBody{})
	require.NoError(t, err)
	require.Equal(t, []string{"/eu2/api/v1/jobs/1/pause Bearer ck_1 {}"}, bodies)
	address = server.URL
	_, err = c.PauseJob(t.Context(), "1", apiclient.PauseInputBody{})
	require.ErrorContains(t, err, "it lives elsewhere", "it names itself")
	address = "ftp://x"
	_, err = c.PauseJob(t.Context(), "1", apiclient.PauseInputBody{Note: "why"})
	require.ErrorContains(t, err, "it lives elsewhere")
}
