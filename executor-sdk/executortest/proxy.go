package executortest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/executor-sdk/internal/callapi"
	"github.com/carillon-sched/carillon/executor-sdk/proxy"
)

// Proxy returns a client whose calls run on this admin's executors, and its timers
// fire there, without a network: for code that uses package proxy or timers. All executors
// have the name of the configuration, by default "test"; calls may name any.
func (a *Admin) Proxy() *proxy.Client {
	client, err := proxy.New(proxy.Config{
		URL: "http://127.0.0.1", Key: "ck_test", HTTP: &http.Client{Transport: transport{a}},
	})
	if err != nil {
		a.t.Fatal(err)
	}
	return client
}

// transport answers the requests of packages proxy and timers as the API does.
type transport struct{ admin *Admin }

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	a := t.admin
	if strings.HasPrefix(r.URL.Path, "/api/v1/timer") {
		return a.timers.serve(r), nil
	}
	path := strings.TrimPrefix(r.URL.Path, "/api/v1/calls")
	var run *Run
	if path == "" {
		var refused *http.Response
		if run, refused = a.accept(r); refused != nil {
			return refused, nil
		}
	} else {
		id, rest, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
		if run = a.byID(id); run == nil {
			return refuse(r, http.StatusNotFound, callapi.ProblemCodeNotFound, "there is no call "+id), nil
		}
		if rest == "cancel" {
			run.Cancel()
		}
	}
	if wait, err := time.ParseDuration(r.URL.Query().Get("wait")); err == nil && wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-run.ended:
		case <-timer.C:
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
	return answer(r, http.StatusOK, run.call()), nil
}

// accept makes the run of a new call, or finds that of its key.
func (a *Admin) accept(r *http.Request) (*Run, *http.Response) {
	raw, err := io.ReadAll(r.Body)
	var body callapi.CallRequest
	if err == nil {
		err = json.Unmarshal(raw, &body)
	}
	timeout, err1 := readDuration(body.Timeout, 0)
	within, err2 := readDuration(body.StartWithin, defaultStartWithin)
	if err := errors.Join(err, err1, err2); err != nil {
		return nil, refuse(r, http.StatusUnprocessableEntity, callapi.ProblemCodeValidationFailed, err.Error())
	}
	a.Start()
	a.mu.Lock()
	defer a.mu.Unlock()
	key := body.Handler + "\x00" + r.Header.Get("Idempotency-Key")
	if known, ok := a.calls[key]; ok {
		if known.body != string(raw) {
			return nil, refuse(r, http.StatusUnprocessableEntity, callapi.ProblemCodeIdempotencyKeyReused, "the key was used for another call")
		}
		return known.run, nil
	}
	if h := a.handlerLocked(body.Handler); h != nil {
		run := a.newRun(a.callJob("call", h), time.Now(), "api", "key:test", body.Input)
		run.timeout, run.maxAttempts = timeout, int(body.MaxAttempts)
		a.calls[key] = call{run, string(raw)}
		a.enter(run)
		run.expireIn(within)
		return run, nil
	}
	return nil, refuse(r, http.StatusUnprocessableEntity, callapi.ProblemCodeUnknownHandler,
		"no instance has registered a handler "+strconv.Quote(body.Handler))
}

// call is a run with the request that asked for it.
type call struct {
	run  *Run
	body string
}

// defaultStartWithin is the admin's for a call that says nothing else.
const defaultStartWithin = 5 * time.Minute

func readDuration(text string, otherwise time.Duration) (time.Duration, error) {
	if text == "" {
		return otherwise, nil
	}
	return time.ParseDuration(text)
}

// expireIn ends the run as missed when it still waits for an instance then. mu
// is held.
func (r *Run) expireIn(d time.Duration) {
	if r.state.Ended() {
		return
	}
	time.AfterFunc(d, func() {
		r.admin.mu.Lock()
		defer r.admin.mu.Unlock()
		if r.attempt == 0 && r.state == Waiting {
			r.end(Missed)
		}
	})
}

func (a *Admin) byID(id string) *Run {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, r := range a.runs {
		if strconv.FormatInt(r.id, 10) == id {
			return r
		}
	}
	return nil
}

// call is the run as the API shows a call.
func (r *Run) call() callapi.Call {
	r.admin.mu.Lock()
	defer r.admin.mu.Unlock()
	out := callapi.Call{
		ID: strconv.FormatInt(r.id, 10), Executor: "test", Handler: r.job.handler, State: string(r.state), Done: r.state.Ended(),
		Attempt: int64(r.attempt), ErrorKind: r.result.GetErrorKind(), Error: r.result.GetError(), MaxAttempts: int64(r.mayTry()),
	}
	if d := r.attemptTimeout(); d > 0 {
		out.Timeout = d.String()
	}
	if output := r.result.GetOutput(); len(output) > 0 {
		out.Output = output
	}
	if r.progress != nil {
		out.Progress = &callapi.Progress{Percent: float64(r.progress.GetPermille()) / 10, Message: r.progress.GetMessage()}
	}
	return out
}

func refuse(r *http.Request, status int, code callapi.ProblemCode, detail string) *http.Response {
	return answer(r, status, callapi.Problem{Status: int64(status), Code: code, Detail: detail})
}

func answer(r *http.Request, status int, body any) *http.Response {
	raw, err := json.Marshal(body)
	if err != nil {
		status, raw = http.StatusInternalServerError, []byte(`{"code":"internal"}`)
	}
	return &http.Response{
		Status: http.StatusText(status), StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(raw)), Request: r,
	}
}
