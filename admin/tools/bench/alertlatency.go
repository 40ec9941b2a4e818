package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/benchdata"
	"github.com/carillon-sched/carillon/internal/apiclient"
	"github.com/carillon-sched/carillon/internal/testenv/lab"
)

const (
	alertWindow = 30 * time.Second
	// jobsPerRule are fewer than those that make an incident of their executor: each
	// job that fails is a message of its own.
	jobsPerRule = 4
	// alertWithin bounds the wait for the last message.
	alertWithin = 30 * time.Second
	// neverTaken is how long a run waits for an instance that takes it.
	neverTaken = time.Second
)

// trouble is what is told: how a job gets into it, and how often one does.
type trouble struct {
	variant string
	kind    domain.AlertKind
	handler string
	every   time.Duration
}

var troubles = []trouble{
	{"a job fails five times a second", domain.AlertRunFailed, handlerFails, 200 * time.Millisecond},
	// So seldom that no other message has the outbox looked at.
	{"a run is missed every other second", domain.AlertRunMissed, "nobody-has-it", 2 * time.Second},
}

// alertLatency measures how long after a run has failed, or is known to be missed,
// a receiver is told, under a load that is no effort.
func (b *bench) alertLatency() (parts []part) {
	for _, kind := range b.o.databases(b.o.Quick) {
		for _, t := range troubles {
			parts = append(parts, part{
				result: Result{Scenario: "alert-latency", Variant: t.variant, Database: kind, Admins: 1},
				usual:  b.window(alertWindow) + b.quickOr(10*time.Second, 15*time.Second),
				run: func(ctx context.Context, r *Result) error {
					return b.withFleet(ctx, kind, 1, func(f *fleet) error { return f.alertLatency(ctx, t, r) })
				},
			})
		}
	}
	return parts
}

func (f *fleet) alertLatency(ctx context.Context, t trouble, r *Result) (err error) {
	window := f.b.window(alertWindow)
	in, err := receiveAlerts(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.close()) }()
	steady, err := newLoad(ctx, f, handlerOnce, steadyRate)
	if err != nil {
		return err
	}
	bad, err := f.troubled(ctx, t, int(window/t.every), in.url)
	if err != nil {
		return err
	}
	r.Jobs = len(steady.jobs) + len(bad)
	first, err := steady.begin(ctx, steadyRate)
	if err != nil {
		return err
	}
	from := first.Add(f.b.quickOr(0, warmUp))
	to := from.Add(window)
	// None at the same part of its interval as the one before.
	err = f.start(ctx, bad, func(i int) time.Time {
		return from.Add(time.Duration(i)*t.every + time.Duration(float64(t.every)*fraction(i))).Truncate(time.Millisecond)
	})
	if err != nil {
		return err
	}
	if err := pauseUntil(ctx, from); err != nil {
		return err
	}
	if err := f.measure(ctx, to, r); err != nil {
		return err
	}
	if err := in.await(ctx, len(bad)); err != nil {
		return err
	}
	if err := steady.end(ctx); err != nil {
		return err
	}
	seen, err := f.observe(ctx, f.executor)
	if err != nil {
		return err
	}
	// Nobody writes down a start of theirs.
	seen.rows = slices.DeleteFunc(seen.rows, func(m benchdata.MeasuredRun) bool { return slices.Contains(bad, m.Job) })
	r.Window = seconds(window)
	var late *Spread
	r.Fires, late = seen.judge(grid{every: time.Second, from: from, to: to, exact: steadyRate * int(window/time.Second)})
	r.note(f.b, "meanwhile %d runs a second started late by p50 / p99 / max %s ms", steadyRate, spread(late))
	perFire(r.Processes, r.Fires.Started)
	r.Elapsed, err = in.judge(t, bad)
	if err := errors.Join(r.Fires.broken(), err); err != nil {
		r.Failed, f.keep = err.Error(), true
	}
	return nil
}

// troubled makes n jobs that get into trouble when they fire, with rules that keep
// them apart.
func (f *fleet) troubled(ctx context.Context, t trouble, n int, url string) ([]domain.JobID, error) {
	api := f.lab.Admins[0].API
	for i := 0; i < n; i += jobsPerRule {
		group := strconv.Itoa(i / jobsPerRule)
		_, err := api.CreateAlertRule(ctx, apiclient.AlertRuleWrite{Name: "group " + group, Spec: apiclient.AlertRuleText{
			Enabled: true, Match: &apiclient.AlertRuleMatch{Labels: "group=" + group}, Condition: apiclient.AlertConditionText{Kind: "events"},
		}})
		if err != nil {
			return nil, err
		}
	}
	anchor := time.Now().Add(-time.Hour).Truncate(time.Second).UTC()
	return f.load(ctx, f.executor, n, func(i int) domain.JobSpec {
		s := ticking(number("troubled", i), t.handler, 24*time.Hour, anchor)
		s.DispatchTimeout = neverTaken
		s.Labels = map[string]string{"group": strconv.Itoa(i / jobsPerRule)}
		s.Alert = domain.Alert{OnFailure: true, WebhookURL: url}
		return s
	}, notYet)
}

// arrival is one message as its receiver got it.
type arrival struct {
	Kind string `json:"kind"`
	Job  struct {
		ID string `json:"id"`
	} `json:"job"`
	Run struct {
		FinishedAt time.Time `json:"finishedAt"`
	} `json:"run"`
	at time.Time
}

// alertReceiver is what an operator has at the other end of a webhook.
type alertReceiver struct {
	url    string
	server *http.Server
	served chan error

	mu  sync.Mutex
	all []arrival // guarded by mu
	bad error     // guarded by mu
}

func receiveAlerts(ctx context.Context) (*alertReceiver, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	in := &alertReceiver{url: "http://" + l.Addr().String() + "/alerts", served: make(chan error, 1)}
	in.server = &http.Server{Handler: in, ReadHeaderTimeout: 5 * time.Second}
	go func() { in.served <- in.server.Serve(l) }() // until close
	return in, nil
}

func (in *alertReceiver) close() error {
	if err := in.server.Close(); err != nil {
		return err
	}
	if err := <-in.served; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func (in *alertReceiver) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	a := arrival{at: time.Now()}
	err := json.NewDecoder(r.Body).Decode(&a)
	in.mu.Lock()
	defer in.mu.Unlock()
	if err != nil {
		in.bad = errors.Join(in.bad, err)
	}
	in.all = append(in.all, a)
}

// await waits for n messages; the judge says what is missing.
func (in *alertReceiver) await(ctx context.Context, n int) error {
	err := lab.Until(ctx, alertWithin, "all messages", func(context.Context) error {
		in.mu.Lock()
		defer in.mu.Unlock()
		if len(in.all) < n {
			return fmt.Errorf("%d of %d are there", len(in.all), n)
		}
		return nil
	})
	if ctx.Err() == nil {
		return nil
	}
	return err
}

// judge compares the messages with the jobs: there is one for each.
func (in *alertReceiver) judge(t trouble, jobs []domain.JobID) (*Spread, error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	wrong := []error{in.bad}
	var took []float64
	told := map[string]int{}
	for _, a := range in.all {
		told[a.Job.ID]++
		if a.Kind != string(t.kind) || a.Run.FinishedAt.IsZero() {
			wrong = append(wrong, fmt.Errorf("a message of %q about job %s, run ended at %s", a.Kind, a.Job.ID, a.Run.FinishedAt))
			continue
		}
		took = append(took, millisOf(a.at.Sub(a.Run.FinishedAt)))
	}
	for _, id := range jobs {
		if n := told[id.String()]; n != 1 {
			wrong = append(wrong, fmt.Errorf("%d messages about job %s", n, id))
		}
	}
	return spreadOf(took), errors.Join(wrong...)
}
