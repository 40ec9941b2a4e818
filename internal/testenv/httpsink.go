package testenv

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// HTTPRequest is one request that the sink read to its end.
type HTTPRequest struct {
	Method string
	URI    string // path and query as sent
	Header http.Header
	Body   []byte
	At     time.Time // when the body was read
}

// HTTPAnswer is an answer prepared for one request. The zero value is an
// empty 200.
type HTTPAnswer struct {
	// Status is the status code; 0 means 200.
	Status int
	Header http.Header
	Body   string
	// Delay passes before the answer; it ends early with the request or the
	// test.
	Delay time.Duration
	// HangUp closes the connection instead of answering.
	HangUp bool
}

// Sink is a web server on 127.0.0.1 that records what it is asked. Its
// methods are safe for use by several goroutines; Wait belongs into the
// test's own.
type Sink struct {
	// URL is the base, http://127.0.0.1:port, without a slash at its end.
	URL string

	closing  chan struct{} // closed in the test's cleanup: ends delays
	requests *recorder[HTTPRequest]
	script   script[HTTPAnswer]
}

// HTTPSink starts a web server for this test; it ends with it. Requests are
// answered with an empty 200 unless Script says otherwise.
func HTTPSink(tb testing.TB) *Sink {
	tb.Helper()
	s := &Sink{closing: make(chan struct{}), requests: newRecorder[HTTPRequest]()}
	server := httptest.NewServer(http.HandlerFunc(s.serve))
	s.URL = server.URL
	tb.Cleanup(func() {
		close(s.closing) // first, because Close waits for the handlers
		server.Close()
	})
	return s
}

// Script prepares answers for the next requests, one each, in the order in
// which they arrive.
func (s *Sink) Script(answers ...HTTPAnswer) { s.script.push(answers...) }

// Requests returns what arrived so far, oldest first.
func (s *Sink) Requests() []HTTPRequest {
	requests, _ := s.requests.snapshot()
	return requests
}

// Wait returns all requests as soon as there are n, answered or not, and
// fails the test after WaitLimit.
func (s *Sink) Wait(tb testing.TB, n int) []HTTPRequest {
	tb.Helper()
	return s.requests.wait(tb.Context(), tb, n, "requests")
}

func (s *Sink) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client gave up: there is no request to record
	}
	// Before recording: a Script after Wait(n) is meant for the next request.
	answer, _ := s.script.takeFirst(func(HTTPAnswer) bool { return true })
	s.requests.add(HTTPRequest{
		Method: r.Method, URI: r.RequestURI, Header: r.Header.Clone(), Body: body, At: time.Now(),
	})
	if answer.Delay > 0 {
		timer := time.NewTimer(answer.Delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-r.Context().Done():
		case <-s.closing:
		}
	}
	if answer.HangUp {
		panic(http.ErrAbortHandler) // net/http's way to close the connection
	}
	for name, values := range answer.Header {
		w.Header()[http.CanonicalHeaderKey(name)] = values
	}
	if answer.Status != 0 {
		w.WriteHeader(answer.Status)
	}
	_, _ = io.WriteString(w, answer.Body) // the client may be gone by now
}
