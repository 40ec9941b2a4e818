package webhook

import (
	"bufio"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/notify"
	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/noun"
	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/post"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/secret"
	"github.com/carillon-sched/carillon/internal/httpcall"
	"github.com/carillon-sched/carillon/internal/testenv"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}
	at       = time.Date(2026, 11, 21, 4, 0, 0, 123e6, time.UTC)
)

func testBox(t *testing.T) *secret.Box {
	t.Helper()
	box, err := secret.New(make([]byte, secret.KeySize))
	require.NoError(t, err)
	return box
}

// notice is about a run that failed; key, if any, is the job's signing secret.
func notice(t *testing.T, url, key string) *notify.Notice {
	t.Helper()
	n := &notify.Notice{
		Incident: &noun.Incident{ID: 11, Kind: domain.AlertRunFailed, Job: 5, State: noun.IncidentOpen, OpenedAt: at, LastAt: at.Add(time.Second),
			Events: 1, Told: 1, Jobs: []noun.IncidentJob{{ID: 5, Name: "close-day", Events: 1}}},
		DedupeKey: strings.Repeat("ab", 16), Try: 2, Target: url, Instance: "web-1",
		Event: domain.AlertEvent{ID: 9007199254740993, TenantID: 1, Kind: domain.AlertRunFailed, JobID: 5, Revision: 2, ExecutionID: 1001,
			DedupeKey: "run_failed:1001:3", CreatedAt: at.Add(time.Minute)},
		Tenant: domain.Tenant{ID: 1, Name: "shop"}, Executor: domain.Executor{ID: 9, Name: "billing"},
		Job: domain.Job{ID: 5, TenantID: 1, Revision: 2, Spec: domain.JobSpec{
			Name: "close-day", Handler: "billing.CloseDay", Labels: map[string]string{"team": "finance"},
			Owner: domain.Owner{Name: "Ann", Email: "ann@example.com"},
		}},
		Execution: &domain.Execution{ID: 1001, State: domain.Failed, Reason: domain.ReasonHandlerFailed, Cause: domain.CauseSchedule,
			Message: "no route", Error: "no route", ErrorKind: "error", FireAt: at, StartedAt: at.Add(7 * time.Millisecond),
			FinishedAt: at.Add(time.Second), Attempt: 3, MaxAttempts: 3, Instance: 77},
		RunURL: "https://c.example.com/runs/1001", JobURL: "https://c.example.com/jobs/5",
	}
	if key != "" {
		sealed, err := testBox(t).Seal(1, secret.PurposeJobWebhook, 5, []byte(key))
		require.NoError(t, err)
		n.Job.Spec.Alert.WebhookSecret = sealed
	}
	return n
}

func sender(t *testing.T) *Sender {
	return guarded(t, post.Options{AllowPrefixes: loopback})
}

func guarded(t *testing.T, opt post.Options) *Sender {
	return New(Options{Client: post.New(opt), Opener: testBox(t)})
}

func TestPostsASignedPayload(t *testing.T) {
	sink := testenv.HTTPSink(t)
	require.NoError(t, sender(t).Send(t.Context(), notice(t, sink.URL+"/hook?token=abc", "s3cret")))
	got := sink.Wait(t, 1)[0]
	require.Equal(t, http.MethodPost, got.Method)
	require.Equal(t, "/hook?token=abc", got.URI)
	require.NoError(t, verify(got.Header, got.Body, []byte("s3cret")))
	require.Error(t, verify(got.Header, got.Body, []byte("other")))
	require.Error(t, verify(got.Header, append(got.Body, ' '), []byte("s3cret")))
	require.Equal(t, strings.Repeat("ab", 16), got.Header.Get("Carillon-Dedupe-Key"))
	require.Equal(t, "2", got.Header.Get("Carillon-Delivery-Attempt"))
	require.Equal(t, httpcall.KeyID([]byte("s3cret")), got.Header.Get("Carillon-Key-Id"))
	require.Equal(t, "carillon.alert/v1", got.Header.Get("Carillon-Version"))
	require.Equal(t, "application/json; charset=utf-8", got.Header.Get("Content-Type"))
	require.JSONEq(t, `{
		"version": "carillon.alert/v1", "id": "9007199254740993", "dedupeKey": "abababababababababababababababab",
		"incident": {"id": "11", "kind": "run_failed", "state": "open", "severity": "warning", "openedAt": "2026-11-21T04:00:00.123Z", "lastAt": "2026-11-21T04:00:01.123Z",
			"resolvedAt": null, "events": 1, "jobs": 1, "jobNames": ["close-day"], "message": 1},
		"kind": "run_failed", "createdAt": "2026-11-21T04:01:00.123Z",
		"title": "Failed: close-day", "summary": "The run failed for good, after 3 attempts. It will not be tried again.",
		"tenant": {"id": "1", "name": "shop"},
		"job": {"id": "5", "name": "close-day", "revision": 2, "handler": "billing.CloseDay", "labels": {"team": "finance"}},
		"executor": {"id": "9", "name": "billing"},
		"run": {"id": "1001", "cause": "schedule", "state": "failed", "reason": "handler_failed", "message": "no route",
			"fireAt": "2026-11-21T04:00:00.123Z", "startedAt": "2026-11-21T04:00:00.130Z", "finishedAt": "2026-11-21T04:00:01.123Z",
			"attempt": 3, "maxAttempts": 3, "instance": {"id": "77", "name": "web-1"}, "errorKind": "error", "error": "no route"},
		"links": {"run": "https://c.example.com/runs/1001", "job": "https://c.example.com/jobs/5"},
		"owner": {"name": "Ann", "email": "ann@example.com"}
	}`, string(got.Body))
}

func TestPayloadOfAnEventWithoutARun(t *testing.T) {
	n := notice(t, "https://example.com", "")
	n.Incident, n.Event.Kind, n.Execution, n.RunURL, n.Job.Spec.Labels = nil, domain.AlertNoExecutor, nil, "", nil
	var got map[string]any
	require.NoError(t, json.Unmarshal(notify.NewPayload(n, notify.Chinese).Encode(), &got))
	require.Nil(t, got["run"])
	require.Contains(t, got, "run")
	require.Equal(t, "没有在线的执行器：close-day", got["title"])
	require.Equal(t, map[string]any{}, got["job"].(map[string]any)["labels"])
}

func TestWithoutASecretThereIsNoSignature(t *testing.T) {
	sink := testenv.HTTPSink(t)
	require.NoError(t, sender(t).Send(t.Context(), notice(t, sink.URL, "")))
	got := sink.Wait(t, 1)[0]
	require.Empty(t, got.Header.Values("Carillon-Signature"))
	require.Empty(t, got.Header.Values("Carillon-Key-Id"))
}

func TestASecretThatDoesNotOpenIsTemporary(t *testing.T) {
	sink := testenv.HTTPSink(t)
	n := notice(t, sink.URL, "s3cret")
	n.Job.ID = 6 // sealed for job 5
	err := sender(t).Send(t.Context(), n)
	require.ErrorIs(t, err, secret.ErrUnreadable)
	require.False(t, permanent(err))
	require.Empty(t, sink.Requests(), "rather not at all than unsigned")
}

func permanent(err error) bool {
	var e *notify.SendError
	return errors.As(err, &e) && e.Permanent
}

func unreachable(err error) bool {
	var e *notify.SendError
	return errors.As(err, &e) && e.Unreachable
}

func TestAnswers(t *testing.T) {
	for _, row := range []struct {
		status    int
		header    http.Header
		body      string
		fails     bool
		permanent bool
		wait      time.Duration
		text      string
	}{
		{status: 200}, {status: 202}, {status: 204},
		{status: 500, body: "oops\r\n\x1b[31mred", fails: true, text: "the receiver answered 500 Internal Server Error: oops [31mred"},
		{status: 503, header: http.Header{"Retry-After": {"120"}}, fails: true, wait: 2 * time.Minute},
		{status: 429, header: http.Header{"Retry-After": {"7"}}, fails: true, wait: 7 * time.Second},
		{status: 503, header: http.Header{"Retry-After": {"Wed, 21 Oct 2026 07:28:00 GMT"}}, fails: true},
		{status: 408, fails: true}, {status: 425, fails: true},
		{status: 400, fails: true, permanent: true}, {status: 401, fails: true, permanent: true},
		{status: 404, fails: true, permanent: true}, {status: 410, fails: true, permanent: true},
	} {
		t.Run(fmt.Sprint(row.status, row.header), func(t *testing.T) {
			sink := testenv.HTTPSink(t)
			sink.Script(testenv.HTTPAnswer{Status: row.status, Header: row.header, Body: row.body})
			err := sender(t).Send(t.Context(), notice(t, sink.URL, "s3cret"))
			if !row.fails {
				require.NoError(t, err)
				return
			}
			require.Error(t, err)
			require.Equal(t, row.permanent, permanent(err))
			require.False(t, unreachable(err), "it answered")
			if row.wait > 0 {
				var e *notify.SendError
				require.ErrorAs(t, err, &e)
				require.Equal(t, row.wait, e.RetryAfter)
			}
			if row.text != "" {
				require.Equal(t, row.text, err.Error())
			}
		})
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	for _, status := range []int{301, 302, 303, 307, 308} {
		sink, other := testenv.HTTPSink(t), testenv.HTTPSink(t)
		sink.Script(testenv.HTTPAnswer{Status: status, Header: http.Header{"Location": {other.URL}}})
		err := sender(t).Send(t.Context(), notice(t, sink.URL, "s3cret"))
		require.True(t, permanent(err))
		require.ErrorContains(t, err, "redirects are not followed")
		require.Empty(t, other.Requests())
	}
}

func TestSpecialNetworksAreRefused(t *testing.T) {
	sink := testenv.HTTPSink(t)
	_, port, err := net.SplitHostPort(strings.TrimPrefix(sink.URL, "http://"))
	require.NoError(t, err)
	closed := guarded(t, post.Options{})
	for _, host := range []string{
		"127.0.0.1", "localhost", "127.1.2.3", "0.0.0.0", "10.0.0.1", "172.16.0.1", "192.168.1.1", "100.64.0.1",
		"169.254.169.254", "224.0.0.1", "255.255.255.255",
		"[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:169.254.169.254]", "[fe80::1]", "[fd00::1]", "[64:ff9b::7f00:1]",
	} {
		t.Run(host, func(t *testing.T) {
			err := closed.Send(t.Context(), notice(t, "http://"+host+":"+port+"/", "s3cret"))
			require.Error(t, err)
			require.True(t, permanent(err), "%v", err)
			require.EqualError(t, err, "the host leads to a network that may not be reached (--webhook-allow)")
		})
	}
	require.Empty(t, sink.Requests())
	// What one prefix allows does not open another.
	partly := guarded(t, post.Options{AllowPrefixes: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}})
	require.True(t, permanent(partly.Send(t.Context(), notice(t, sink.URL, ""))))
	require.Empty(t, sink.Requests())
}

func TestAddressesThatAreNoWebhooks(t *testing.T) {
	for _, address := range []string{"", "ftp://example.com", "file:///etc/passwd", "gopher://127.0.0.1", "http://", "https:///path", "http://a b", "example.com", "http://exa\nmple.com"} {
		err := sender(t).Send(t.Context(), notice(t, address, ""))
		require.True(t, permanent(err), "%q: %v", address, err)
	}
	require.NoError(t, post.CheckURL("https://hooks.example.com:8443/a?b=c"))
}

func TestProxiesOfTheEnvironmentAreIgnored(t *testing.T) {
	sink, proxy := testenv.HTTPSink(t), testenv.HTTPSink(t)
	t.Setenv("HTTP_PROXY", proxy.URL)
	t.Setenv("http_proxy", proxy.URL)
	require.NoError(t, sender(t).Send(t.Context(), notice(t, sink.URL, "")))
	require.Len(t, sink.Requests(), 1)
	require.Empty(t, proxy.Requests())
}

func TestAHangingReceiverEndsInTime(t *testing.T) {
	sink := testenv.HTTPSink(t)
	sink.Script(testenv.HTTPAnswer{Delay: time.Minute})
	began := time.Now()
	err := sender(t).Send(t.Context(), notice(t, sink.URL, ""))
	require.True(t, unreachable(err), "%v", err)
	require.ErrorContains(t, err, "no answer within 5s")
	require.Less(t, time.Since(began), time.Minute, "before the receiver answers")
	require.NotContains(t, err.Error(), sink.URL, "addresses may hold tokens")
}

// rawServer answers the request of every connection with f.
func rawServer(t *testing.T, f func(net.Conn)) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			if _, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
				f(conn)
			}
			conn.Close()
		}
	}()
	t.Cleanup(func() { listener.Close(); <-done })
	return "http://" + listener.Addr().String()
}

// drip sends a byte every 50 ms until the other side is gone.
func drip(conn net.Conn) {
	pace := time.NewTicker(50 * time.Millisecond)
	defer pace.Stop()
	for range pace.C {
		if _, err := conn.Write([]byte("x")); err != nil {
			return
		}
	}
}

func TestADrippingReceiverEndsInTime(t *testing.T) {
	for _, row := range []struct {
		name, begin string
		delivered   bool
	}{
		{"before the status", "", false},
		{"in the header", "HTTP/1.1 200 OK\r\nX-Long: ", false},
		{"in the body after an error", "HTTP/1.1 500 No\r\nContent-Length: 100000\r\n\r\n", false},
		{"in the body after yes", "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n", true},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			url := rawServer(t, func(conn net.Conn) {
				if _, err := conn.Write([]byte(row.begin)); err == nil {
					drip(conn)
				}
			})
			began := time.Now()
			err := sender(t).Send(t.Context(), notice(t, url, ""))
			require.Equal(t, row.delivered, err == nil, "%v", err)
			require.Less(t, time.Since(began), time.Minute, "the drops go on for ever")
		})
	}
}

func TestABoundlessAnswerIsCut(t *testing.T) {
	written := make(chan int, 1)
	url := rawServer(t, func(conn net.Conn) {
		total, chunk := 0, []byte(strings.Repeat("x", 32<<10))
		_, _ = conn.Write([]byte("HTTP/1.1 500 No\r\nContent-Length: 1000000000\r\n\r\n"))
		for {
			n, err := conn.Write(chunk)
			if total += n; err != nil {
				written <- total
				return
			}
		}
	})
	err := sender(t).Send(t.Context(), notice(t, url, ""))
	require.ErrorContains(t, err, "500")
	require.Less(t, len(err.Error()), 400)
	require.Less(t, <-written, 64<<20, "kernel buffers aside, it was cut off")
}

func TestCertificatesAreVerified(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	require.ErrorContains(t, sender(t).Send(t.Context(), notice(t, server.URL, "")), "certificate")
	pool := x509.NewCertPool()
	pool.AddCert(server.Certificate())
	trusting := guarded(t, post.Options{AllowPrefixes: loopback, RootCAs: pool})
	require.NoError(t, trusting.Send(t.Context(), notice(t, server.URL, "")))
}

func TestEndsWithItsContext(t *testing.T) {
	sink := testenv.HTTPSink(t)
	sink.Script(testenv.HTTPAnswer{Delay: time.Minute})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- sender(t).Send(ctx, notice(t, sink.URL, "")) }()
	sink.Wait(t, 1)
	cancel()
	require.ErrorIs(t, <-done, context.Canceled)
}

func TestLane(t *testing.T) {
	s := sender(t)
	lane := func(tenant domain.TenantID, url string) string {
		return s.Lane(&notify.Notice{Target: url, Event: domain.AlertEvent{TenantID: tenant}})
	}
	require.Equal(t, lane(1, "https://Hooks.example.com/a"), lane(1, "https://hooks.example.com/b?c"))
	require.NotEqual(t, lane(1, "https://hooks.example.com/a"), lane(2, "https://hooks.example.com/a"))
	require.NotEqual(t, lane(1, "https://hooks.example.com/a"), lane(1, "https://hooks.example.com:8443/a"))
}

func TestLongTextsAreCut(t *testing.T) {
	n := notice(t, "https://example.com", "")
	n.Execution.Error = strings.Repeat("é", 100_000)
	body := notify.NewPayload(n, notify.English).Encode()
	require.Less(t, len(body), 12<<10)
	require.True(t, json.Valid(body))
}
