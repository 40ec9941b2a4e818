package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/carillon-sched/carillon/internal/apiclient"
	"github.com/carillon-sched/carillon/internal/testenv/lab"
)

// What the receivers of F30 do until they are repaired. The first does so always.
const (
	answers = iota
	hangs
	fails
	drips
	receiverKinds
)

// receiverSet is the receivers of callbacks and of alerts: one of each kind, and what
// each has answered with 200.
type receiverSet struct {
	url      [receiverKinds]string
	server   [receiverKinds]*http.Server
	repaired atomic.Bool
	failed   atomic.Int64 // requests without a good answer

	mu     sync.Mutex
	calls  map[string]int             // guarded by mu: by the run's id
	alerts map[string]map[string]bool // guarded by mu: the incident, by the key of the message
	counts map[string]int             // guarded by mu: the most runs that a message counts, by incident
	last   time.Time                  // guarded by mu: when somebody was answered
}

func newReceivers(s *stage) (*receiverSet, error) {
	w := &receiverSet{calls: map[string]int{}, alerts: map[string]map[string]bool{}, counts: map[string]int{}}
	s.defers(w.close)
	for i := range w.url {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		w.url[i] = "http://" + l.Addr().String()
		w.server[i] = &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(out http.ResponseWriter, in *http.Request) { w.serve(i, out, in) })}
		go func() { _ = w.server[i].Serve(l) }() // until close
	}
	return w, nil
}

func (w *receiverSet) close() (err error) {
	for _, server := range w.server {
		if server != nil {
			err = errors.Join(err, server.Close())
		}
	}
	return err
}

func (w *receiverSet) serve(kind int, out http.ResponseWriter, in *http.Request) {
	if in.URL.Path == "/refused" { // the run fails for good
		out.WriteHeader(http.StatusNotFound)
		return
	}
	body, err := io.ReadAll(in.Body)
	if err != nil {
		return
	}
	alert := in.Header.Get("Carillon-Dedupe-Key")
	if kind != answers && !w.repaired.Load() {
		w.failed.Add(1)
		if alert != "" && kind == drips { // its status says success, and nobody wants its body
			w.told(alert, body)
		}
		switch kind {
		case hangs:
			<-in.Context().Done()
		case fails:
			out.WriteHeader(http.StatusInternalServerError)
		case drips:
			out.Header().Set("Content-Length", "1000")
			for range 1000 {
				if _, err := out.Write([]byte{' '}); err != nil || http.NewResponseController(out).Flush() != nil || wait(in.Context(), time.Second) != nil {
					return
				}
			}
		}
		return
	}
	if alert != "" {
		w.told(alert, body)
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls[in.Header.Get("Idempotency-Key")]++
	w.last = time.Now()
}

// told notes an alert that was answered with 200.
func (w *receiverSet) told(key string, body []byte) {
	var alert struct {
		Incident struct {
			ID     string
			Events int
		}
	}
	if json.Unmarshal(body, &alert) != nil || alert.Incident.ID == "" {
		alert.Incident.ID = "no incident: " + string(body)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.alerts[key] == nil {
		w.alerts[key] = map[string]bool{}
	}
	w.alerts[key][alert.Incident.ID] = true
	w.counts[alert.Incident.ID] = max(w.counts[alert.Incident.ID], alert.Incident.Events)
	w.last = time.Now()
}

// answered is how many different calls were, how many failed runs the newest messages
// about them count, and when the last one was.
func (w *receiverSet) answered() (calls, failures int, last time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, n := range w.counts {
		failures += n
	}
	return len(w.calls), failures, w.last
}

// f30 has callbacks and alerts for receivers that hang, answer 500 and drip a byte
// a second, beside one that is well, and then very many calls at once. The load of
// handlers has to be on time all the while, and all that was for the receivers has
// to be delivered once these are well.
func f30(ctx context.Context, s *stage) error {
	err := s.open(ctx, fleetPlan{admins: 2, executors: 2, env: func(int) []string {
		return []string{"CARILLON_WEBHOOK_ALLOW=127.0.0.0/8", "CARILLON_ALERT_THROTTLE=5s", "CARILLON_ALERT_REPEAT=10s"}
	}})
	if err != nil {
		return err
	}
	w, err := newReceivers(s)
	if err != nil {
		return err
	}
	api := s.fleet.Admins[0].API
	err = api.AllowCallbacks(ctx, "admin", s.fleet.Password, apiclient.CallbackPolicyWrite{Hosts: []string{"127.0.0.1"}, MaxTimeout: "2s"})
	if err != nil {
		return err
	}
	if err := s.load(ctx, s.rate()/2); err != nil {
		return err
	}
	if err := wait(ctx, pick(s.set, 20*time.Second, 8*time.Second)); err != nil { // for the lateness without faults
		return err
	}
	length, perSecond := s.lasts(time.Minute, 15*time.Second), 40
	set := int(length/time.Second) * perSecond
	burst := pick(s.set, 10_000, 2000)
	err = s.fault("receivers hang, fail and drip", "callbacks, alerts", func() error {
		began := time.Now()
		if err := s.makeRefused(ctx, w, began.Add(length)); err != nil {
			return err
		}
		err := s.setCallbacks(ctx, set, func(i int) (string, time.Time) {
			return w.url[i%receiverKinds], began.Add(time.Duration(i) * time.Second / time.Duration(perSecond))
		})
		return errors.Join(err, waitUntil(ctx, began.Add(length)))
	})
	if err != nil {
		return err
	}
	w.repaired.Store(true)
	repaired := time.Now()
	err = s.fault(fmt.Sprintf("%d calls due at once", burst), "callbacks", func() error {
		at := time.Now().Add(2 * time.Second).Truncate(time.Second)
		return s.setCallbacks(ctx, burst, func(int) (string, time.Time) { return w.url[answers], at })
	})
	if err != nil {
		return err
	}
	return s.delivered(ctx, w, set+burst, repaired)
}

// makeRefused makes a job of each receiver whose runs fail, one a second, and whose
// alerts go to it.
func (s *stage) makeRefused(ctx context.Context, w *receiverSet, end time.Time) error {
	for i, url := range w.url {
		j := job{name: fmt.Sprintf("refused-%d", i), handler: "http", kind: "fixed_rate", every: time.Second, startAt: time.Now(), endAt: end, input: map[string]any{"url": w.url[answers] + "/refused"}}
		body := j.withDefaults().body("")
		body.Executor = apiclient.ExecutorChoice{Name: "carillon"}
		body.Alert = &apiclient.AlertWrite{OnFailure: true, WebhookURL: url}
		if _, err := s.fleet.Admins[i%2].API.MakeJob(ctx, body); err != nil {
			return err
		}
	}
	return nil
}

// setCallbacks sets timers that call.
func (s *stage) setCallbacks(ctx context.Context, n int, of func(i int) (url string, at time.Time)) error {
	const most = 2000
	for from := 0; from < n; from += most {
		list := make([]apiclient.TimerRequest, 0, most)
		for i := from; i < min(n, from+most); i++ {
			url, at := of(i)
			list = append(list, apiclient.TimerRequest{
				Executor: "carillon", Handler: "http", At: stamp(at), MaxAttempts: 50, Input: lab.JSON(map[string]any{"url": url, "body": map[string]int{"order": i}}),
			})
		}
		answer, err := s.fleet.Admins[0].API.SetTimers(ctx, apiclient.SetTimersInputBody{Timers: list})
		if err == nil && int(answer.Value.Created) != len(list) {
			err = fmt.Errorf("%d of %d timers were set", answer.Value.Created, len(list))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// delivered waits until all calls and alerts were answered, and judges them and the
// load beside them.
func (s *stage) delivered(ctx context.Context, w *receiverSet, calls int, repaired time.Time) error {
	const limit = 5 * time.Minute // longer than the pauses between tries by then
	var runs *builtInRuns
	var err error
	var called, told int
	var last time.Time
	for until := time.Now().Add(limit); time.Now().Before(until); {
		if runs, err = s.builtInRuns(ctx); err != nil {
			return err
		}
		if called, told, last = w.answered(); called >= calls && runs.living == 0 && told >= runs.states["failed"] {
			break
		}
		if err := wait(ctx, 500*time.Millisecond); err != nil {
			return err
		}
	}
	var wrong problems
	if called != calls || runs.states["succeeded"] != calls || runs.living > 0 {
		wrong.add("calls that were not delivered", "%d of %d were answered, and the runs are %v", called, calls, runs.states)
	}
	if told == 0 || told != runs.states["failed"] {
		wrong.add("failures that no alert counts", "%d of %d", told, runs.states["failed"])
	}
	w.mu.Lock()
	for run, n := range w.calls {
		if n > 1 {
			wrong.add("calls that were answered more than once", "run %s: %d times", run, n)
		}
	}
	for key, of := range w.alerts {
		if len(of) != 1 {
			wrong.add("keys of several alerts", "%s: of %d incidents", key, len(of))
		}
	}
	messages := len(w.alerts)
	w.mu.Unlock()
	if messages > told/2 {
		wrong.add("floods of alerts", "%d messages about %d failed runs", messages, told)
	}
	if w.failed.Load() < receiverKinds {
		wrong.add("kinds of evidence missing", "%d requests had no good answer", w.failed.Load())
	}
	if err := w.close(); err != nil { // the nodes keep connections to them for a while
		return err
	}
	s.unjudged = runs.jobs
	j, err := s.finish(ctx)
	if j != nil {
		s.result.Figures["calls"], s.result.Figures["failures"], s.result.Figures["alerts"], s.result.Figures["withoutGoodAnswer"] = calls, told, messages, w.failed.Load()
		s.figure("%d calls delivered, and %d alerts about %d failed runs, each answered once or with the same key, after %d requests without a good answer; all delivered %.0f s after the receivers were repaired; handlers' lateness %s, before %s",
			calls, messages, told, w.failed.Load(), last.Sub(repaired).Seconds(), j.inside, j.quiet)
		s.goals(j.inside, 2*max(j.quiet.P99, steadyGoal), 1000)
	}
	return errors.Join(err, wrong.err())
}

// builtInRuns are those of the executor that the nodes are.
type builtInRuns struct {
	living int
	states map[string]int // how many have ended how
	jobs   map[string]bool
}

func (s *stage) builtInRuns(ctx context.Context) (*builtInRuns, error) {
	db, err := s.db.Open()
	if err != nil {
		return nil, err
	}
	defer db.Close()
	rows, err := db.QueryContext(ctx, `SELECT e.job_id, e.state, COUNT(*) FROM executions e
		JOIN executors x ON x.id = e.executor_id WHERE x.name = 'carillon' GROUP BY e.job_id, e.state`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	out := &builtInRuns{states: map[string]int{}, jobs: map[string]bool{}}
	for rows.Next() {
		var job string
		var state, n int
		if err := rows.Scan(&job, &state, &n); err != nil {
			return nil, err
		}
		out.jobs[job] = true
		if state < 10 {
			out.living += n
		} else {
			out.states[stateName(state)] += n
		}
	}
	return out, rows.Err()
}
