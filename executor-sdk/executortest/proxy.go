package executortest

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	executor "github.com/carillon-sched/carillon/executor-sdk"
	"github.com/carillon-sched/carillon/executor-sdk/proxy"
	"github.com/carillon-sched/carillon/proto"
)

// Proxy returns a client whose calls run on this admin's executors, without a
// network: for code that uses package proxy. All executors have the name of the
// configuration, by default "test"; calls may name any.
func (a *Admin) Proxy() *proxy.Client {
	client, err := proxy.New(proxy.Config{
		URL: "http://127.0.0.1", Key: "ck_test", HTTP: &http.Client{Transport: transport{a}},
	})
	if err != nil {
		a.t.Fatal(err)
	}
	return client
}

// transport answers the requests of package proxy as the API does.
type transport struct{ admin *Admin }

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	a := t.admin
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
			return answer(r, http.StatusNotFound, map[string]string{"code": "not_found", "detail": "there is no call " + id}), nil
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
	var body struct {
		Handler     string          `json:"handler"`
		Input       json.RawMessage `json:"input"`
		MaxAttempts int             `json:"maxAttempts"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		return nil, answer(r, http.StatusBadRequest, map[string]string{"code": "malformed_json", "detail": err.Error()})
	}
	a.Start()
	a.mu.Lock()
	defer a.mu.Unlock()
	key := body.Handler + "\x00" + r.Header.Get("Idempotency-Key")
	if known := a.calls[key]; known != nil {
		return known, nil
	}
	for _, i := range a.instances {
		if i.handlers[body.Handler] == nil {
			continue
		}
		j := &job{admin: a, name: body.Handler, handler: body.Handler, decl: &proto.JobDeclaration{
			Name: body.Handler, MaxAttempts: int32(max(1, body.MaxAttempts)), RetryDelayMs: 1000, Blocking: string(executor.Parallel),
		}}
		if a.calls == nil {
			a.calls = map[string]*Run{}
		}
		a.calls[key] = a.add(j, time.Now(), "api", "key:test", body.Input)
		return a.calls[key], nil
	}
	return nil, answer(r, http.StatusUnprocessableEntity, map[string]string{
		"code": "unknown_handler", "detail": "no instance has registered a handler " + strconv.Quote(body.Handler),
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
func (r *Run) call() map[string]any {
	r.admin.mu.Lock()
	defer r.admin.mu.Unlock()
	out := map[string]any{
		"id": strconv.FormatInt(r.id, 10), "executor": "test", "handler": r.job.handler, "state": r.state, "done": r.state.Ended(),
		"attempt": r.attempt, "errorKind": r.result.GetErrorKind(), "error": r.result.GetError(),
	}
	if output := r.result.GetOutput(); len(output) > 0 {
		out["output"] = json.RawMessage(output)
	}
	if r.progress != nil {
		out["progress"] = map[string]any{"percent": float64(r.progress.GetPermille()) / 10, "message": r.progress.GetMessage()}
	}
	return out
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
