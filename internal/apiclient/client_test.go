package apiclient

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve starts a server with one handler and returns a client of it.
func serve(t *testing.T, handler http.HandlerFunc) *Client {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	doer := &http.Client{Transport: &http.Transport{}, CheckRedirect: KeepRedirects}
	t.Cleanup(doer.CloseIdleConnections)
	c, err := New(server.URL+"/", doer)
	require.NoError(t, err)
	return c
}

func TestProblemIsRead(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json; charset=utf-8")
		w.WriteHeader(http.StatusUnprocessableEntity)
		fmt.Fprint(w, `{"status":422,"code":"invalid_cron","detail":"body.schedule.expr: 25 is outside 0-23","current":"of another shape",
			"errors":[{"location":"body.schedule.expr","message":"25 is outside 0-23","value":"0 0 25 * * *","position":0,"length":2,"hint":"h"}]}`)
	})
	_, err := c.CreateJob(t.Context(), CreateJobParams{}, JobWrite{})
	p, ok := errors.AsType[*Problem](err)
	require.True(t, ok, "got %v", err)
	require.Equal(t, ProblemCodeInvalidCron, p.Code)
	require.Len(t, p.Errors, 1)
	require.Zero(t, *p.Errors[0].Position)
	require.JSONEq(t, `"0 0 25 * * *"`, string(p.Errors[0].Value))
	require.Equal(t, "body.schedule.expr: 25 is outside 0-23 (invalid_cron)", err.Error())
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
			_, err := serve(t, test.handler).Me(t.Context())
			require.ErrorContains(t, err, test.want)
		})
	}
}

func TestAnswersAreBounded(t *testing.T) {
	raw, err := readAnswer(strings.NewReader("12345"), 5)
	require.NoError(t, err)
	require.Equal(t, "12345", string(raw))
	_, err = readAnswer(strings.NewReader("123456"), 5)
	require.EqualError(t, err, "the answer is larger than 5 bytes; ask for less at once")
}

func TestNoServer(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	c, err := New(server.URL, http.DefaultClient)
	require.NoError(t, err)
	_, err = c.Me(t.Context())
	_, ok := errors.AsType[*TransportError](err)
	require.True(t, ok, "got %v", err)
}

func TestAddresses(t *testing.T) {
	for _, bad := range []string{"", "localhost:8080", "127.0.0.1", "ftp://x", "http://", "http://u:p@x", "http://x?q=1"} {
		_, err := New(bad, nil)
		require.ErrorContains(t, err, "want something like", "%q", bad)
	}
}

func TestRequests(t *testing.T) {
	var got *http.Request
	var body []byte
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		got = r
		body, _ = io.ReadAll(r.Body)
		w.Header().Set("X-Wait", "timed-out")
		w.WriteHeader(http.StatusAccepted)
		fmt.Fprint(w, `{"id":"1","unknown":true}`)
	})
	_, err := c.UpdateJob(t.Context(), "7", UpdateJobParams{IfMatch: `"3"`, AllowUnknownHandler: true}, JobWrite{},
		Body(json.RawMessage(`{"of":"a newer version"}`)))
	require.NoError(t, err)
	require.Equal(t, `"3"`, got.Header.Get("If-Match"))
	require.Equal(t, "/api/v1/jobs/7?allowUnknownHandler=true", got.URL.String())
	require.Equal(t, `{"of":"a newer version"}`, string(body))

	run, err := c.RunJob(t.Context(), "7", RunJobParams{IdempotencyKey: "key-1"}, RunRequest{After: "30m"}, Header("Cookie", "a=b"))
	require.NoError(t, err)
	require.Equal(t, "key-1", got.Header.Get("Idempotency-Key"))
	require.Equal(t, "a=b", got.Header.Get("Cookie"))
	require.Equal(t, "application/json", got.Header.Get("Content-Type"))
	require.Equal(t, `{"after":"30m"}`, string(body), "what is empty is not sent")
	require.Equal(t, "1", run.Value.ID)
	require.Equal(t, http.StatusAccepted, run.Status)
	require.Equal(t, "timed-out", run.Header.Get("X-Wait"))
	require.Equal(t, `{"id":"1","unknown":true}`, string(run.Raw), "the server's bytes are kept")
	as, err := As[Run](run)
	require.NoError(t, err)
	require.Equal(t, "1", as.Value.ID)

	// A word that is no id stays one segment of the path.
	_, err = c.GetScriptVersion(t.Context(), "../jobs/7?x{y}", 2)
	require.NoError(t, err)
	require.Equal(t, "/api/v1/scripts/..%2Fjobs%2F7%3Fx%7By%7D/versions/2", got.URL.EscapedPath())
	require.Empty(t, body)
}
