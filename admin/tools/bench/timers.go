package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/internal/testenv/lab"
)

const (
	// timerClients are connections that set and cancel timers at once.
	timerClients = 16
	// timerBatch is how many timers one request of a batch sets.
	timerBatch = 1000
	// timersSteady is how many timers are due in a second of timers-fire.
	timersSteady = 5000
	// quotaKnown is after how long nodes go by a quota that was changed.
	quotaKnown = 11 * time.Second
	// timerLead is from the last timer that is set to the first that is due.
	timerLead = 8 * time.Second
)

// Variants that have goals of their own.
const (
	timersSingle    = "one by one"
	timersCancelled = "cancelled by key in batches of 1,000"
	timersEvenly    = "5,000/s"
)

// timersCreate measures how many timers are set, and cancelled by key, in a
// second: durable when they are answered.
func (b *bench) timersCreate() (parts []part) {
	for _, kind := range b.o.databases(true) {
		for _, what := range []timerWork{
			{"in batches of 1,000", timerBatch, "/api/v1/timers/batch"}, {timersSingle, 1, "/api/v1/timers"}, {timersCancelled, timerBatch, "/api/v1/timers/cancel"},
		} {
			parts = append(parts, part{
				result: Result{Scenario: "timers-create", Variant: fmt.Sprintf("%s, %d connections", what.said, timerClients), Database: kind, Admins: 1},
				usual:  b.window(20*time.Second) + 35*time.Second,
				run: func(ctx context.Context, r *Result) error {
					return b.withFleet(ctx, kind, 1, func(f *fleet) error { return f.timersCreate(ctx, what, r) })
				},
			})
		}
	}
	return parts
}

// timerWork is what the clients ask for again and again.
type timerWork struct {
	said string
	size int // timers of one request
	path string
}

func (w timerWork) cancels() bool { return strings.HasSuffix(w.path, "/cancel") }

func (f *fleet) timersCreate(ctx context.Context, what timerWork, r *Result) error {
	due := time.Now().Add(24 * time.Hour)
	window := f.b.window(20 * time.Second)
	set, err := f.timerSetter(ctx, f.timedHandler(), func(int64) time.Time { return due })
	if err != nil {
		return err
	}
	if what.cancels() {
		if err := set.many(ctx, int(window/time.Second)*25_000); err != nil {
			return err
		}
	}
	if what.size == 1 {
		if err := pause(ctx, quotaKnown); err != nil {
			return err
		}
	}
	done, took, err := f.timed(ctx, window, r, func(ctx context.Context) (int, error) { return set.once(ctx, what) })
	if err != nil {
		return err
	}
	r.Throughput = &Throughput{PerSecond: float64(done) / took.Seconds()}
	perFire(r.Processes, done)
	if what.cancels() {
		return nil
	}
	return f.timersFloor(ctx, window/2, due, r.Throughput)
}

// timersFloor is how many timers the store alone sets in a second, in its own
// transactions, one after the other on two connections: without API, encoding and
// waiting for others.
func (f *fleet) timersFloor(ctx context.Context, window time.Duration, due time.Time, t *Throughput) error {
	until := time.Now().Add(window)
	var done atomic.Int64
	err := f.storeTimers(ctx, handlerTimed, func(int64) time.Time { return due }, func() bool { return time.Now().Before(until) }, func() {
		if time.Now().Before(until) {
			done.Add(timerBatch)
		}
	})
	t.Floor = float64(done.Load()) / window.Seconds()
	t.FloorPercent = 100 * t.PerSecond / t.Floor
	return err
}

// storeTimers sets timers of a handler, which must have some, by the store alone: on
// two connections batch after batch while more is true, and calls stored after each.
func (f *fleet) storeTimers(ctx context.Context, handler string, due func(id int64) time.Time, more func() bool, stored func()) error {
	count, err := f.countTimers(ctx, handler)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	for range 2 {
		group.Go(func() error {
			for ctx.Err() == nil && more() {
				list := make([]store.SetTimer, timerBatch)
				for i := range list {
					id := f.ids.Next()
					list[i].Timer = domain.Timer{
						ID: domain.TimerID(id), TenantID: f.tenant, JobID: count.Job, FireAt: due(id), Key: fmt.Sprintf("stored-%d", id), Input: []byte(`{"orderId":1234567,"reason":"unpaid"}`),
					}
				}
				for _, answer := range f.store.SetTimers(ctx, store.SetTimersParams{Timers: list}) {
					if answer.Err != nil {
						return answer.Err
					}
				}
				stored()
			}
			return ctx.Err()
		})
	}
	return group.Wait()
}

// countTimers counts the pending timers of a handler.
func (f *fleet) countTimers(ctx context.Context, handler string) (found store.TimerCount, err error) {
	counts, err := f.store.CountTimers(ctx, f.tenant)
	if err != nil {
		return found, err
	}
	at := slices.IndexFunc(counts, func(c store.TimerCount) bool { return c.Handler == handler })
	if at < 0 {
		return found, fmt.Errorf("%s never had a timer", handler)
	}
	return counts[at], nil
}

// timed has the clients work for a window, or until nothing is left to do, and
// counts what they have done in which time.
func (f *fleet) timed(ctx context.Context, window time.Duration, r *Result, work func(context.Context) (int, error)) (int, time.Duration, error) {
	began := time.Now()
	until, cancel := context.WithTimeout(ctx, window)
	defer cancel()
	var done atomic.Int64
	errs := make(chan error, timerClients+1)
	var wg sync.WaitGroup
	for range timerClients {
		wg.Go(func() {
			for until.Err() == nil {
				n, err := work(ctx)
				if err != nil || n == 0 {
					errs <- err
					return
				}
				if until.Err() == nil {
					done.Add(int64(n))
				}
			}
		})
	}
	var took time.Duration
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		wg.Wait()
		took = min(time.Since(began), window)
	}()
	errs <- f.measure(ctx, began.Add(window), r)
	<-ended
	close(errs)
	var all error
	for err := range errs {
		all = errors.Join(all, err)
	}
	return int(done.Load()), took, all
}

// timersFire measures how late timers fire that were set through the API.
func (b *bench) timersFire() (parts []part) {
	sizes := []int{10_000, 100_000}
	if b.o.Quick {
		sizes = sizes[:1]
	}
	add := func(kind, said string, n int, usual time.Duration, at func(first time.Time, i int64) time.Time) {
		parts = append(parts, part{
			result: Result{Scenario: "timers-fire", Variant: said, Database: kind, Admins: 1},
			usual:  usual + 30*time.Second,
			run: func(ctx context.Context, r *Result) error {
				return b.withFleet(ctx, kind, 1, func(f *fleet) error { return f.timersFire(ctx, n, at, r) })
			},
		})
	}
	for _, kind := range b.o.databases(true) {
		for _, n := range sizes {
			add(kind, fmt.Sprintf("%d on one second", n), n, time.Duration(n)*200*time.Microsecond, func(first time.Time, _ int64) time.Time { return first })
		}
		window := b.window(time.Minute)
		add(kind, timersEvenly, timersSteady*int(window/time.Second), 2*window, evenly(timersSteady))
	}
	return parts
}

// evenly has so many timers due in a second.
func evenly(perSecond int64) func(first time.Time, i int64) time.Time {
	return func(first time.Time, i int64) time.Time {
		return first.Add(time.Duration(i) * time.Second / time.Duration(perSecond))
	}
}

func (f *fleet) timersFire(ctx context.Context, n int, at func(time.Time, int64) time.Time, r *Result) error {
	_, err := f.fireTimers(ctx, n, at, nil, r)
	return err
}

// fireTimers sets n timers, waits until all have ended, and judges what was seen.
// meanwhile, if any, runs from shortly before the first is due on.
func (f *fleet) fireTimers(
	ctx context.Context, n int, at func(time.Time, int64) time.Time, meanwhile func(ctx context.Context, first, last time.Time) error, r *Result,
) (*observed, error) {
	first, last, err := f.timersDue(ctx, n, f.timedHandler(), at, meanwhile, r)
	if err != nil {
		return nil, err
	}
	const limit = 2 * time.Minute
	if err := errors.Join(f.timersClaimed(ctx, limit), f.drain(ctx, limit)); err != nil {
		return nil, err
	}
	seen, err := f.observe(ctx, f.executor)
	if err != nil {
		return nil, err
	}
	r.Fires, r.Lateness = seen.judge(grid{from: first, to: last.Add(time.Millisecond), exact: n})
	perFire(r.Processes, r.Fires.Started)
	if err := r.Fires.broken(); err != nil {
		r.Failed, f.keep = err.Error(), true
	}
	return seen, nil
}

// timersClaimed waits until no timer is pending: those have no runs yet.
func (f *fleet) timersClaimed(ctx context.Context, limit time.Duration) error {
	return lab.Until(ctx, limit, "no timer pending", func(ctx context.Context) error {
		count, err := f.countTimers(ctx, handlerTimed)
		if err == nil && count.Pending > 0 {
			err = fmt.Errorf("%d are", count.Pending)
		}
		return err
	})
}

// timersDue sets n timers, and measures until 2 s after the last was due. meanwhile,
// if any, runs from shortly before the first is due on.
func (f *fleet) timersDue(
	ctx context.Context, n int, to timerTarget, at func(time.Time, int64) time.Time, meanwhile func(ctx context.Context, first, last time.Time) error, r *Result,
) (first, last time.Time, err error) {
	// 100 µs a timer: setting them has to be done before the first is due.
	first = time.Now().Add(timerLead + time.Duration(n)*100*time.Microsecond).Truncate(time.Second).Add(time.Second)
	last = at(first, int64(n-1))
	set, err := f.timerSetter(ctx, to, func(i int64) time.Time { return at(first, i) })
	if err != nil {
		return first, last, err
	}
	began := time.Now()
	if err := set.many(ctx, n); err != nil {
		return first, last, err
	}
	if late := time.Until(first); late < time.Second {
		return first, last, fmt.Errorf("setting %d timers took %s: the first was due meanwhile", n, time.Since(began))
	}
	r.Notes = append(r.Notes, fmt.Sprintf("%d timers set in %.1f s", n, time.Since(began).Seconds()))
	r.Window = seconds(last.Sub(first))
	if err := pauseUntil(ctx, first.Add(-time.Second)); err != nil {
		return first, last, err
	}
	var beside sync.WaitGroup
	var failed error
	if meanwhile != nil {
		beside.Go(func() { failed = meanwhile(ctx, first, last) })
	}
	err = f.measure(ctx, last.Add(2*time.Second), r)
	beside.Wait()
	return first, last, errors.Join(err, failed)
}

// timerTarget is what timers start.
type timerTarget struct {
	executor, handler string
	input             func(i int64) any
}

func (f *fleet) timedHandler() timerTarget {
	return timerTarget{"bench", handlerTimed, func(i int64) any { return timerInput{i, "unpaid"} }}
}

// timerSetter sets timers of one target, whose keys are numbers. It is safe for
// concurrent use.
type timerSetter struct {
	f         *fleet
	to        timerTarget
	due       func(i int64) time.Time
	from      int64        // added to the numbers in keys, so that those of two setters differ
	next      atomic.Int64 // of the next timer
	cancelled atomic.Int64 // keys below it have been cancelled
}

// timerSetter takes the tenant's quotas away: what is measured is the product, not
// what a tenant may ask of it.
func (f *fleet) timerSetter(ctx context.Context, to timerTarget, due func(int64) time.Time) (*timerSetter, error) {
	f.setters++
	return &timerSetter{f: f, to: to, due: due, from: f.setters * keysEach}, f.store.SetQuotas(ctx, store.SetQuotasParams{
		Tenant: f.tenant, Max: map[domain.QuotaKind]int64{domain.QuotaAPICalls: 0, domain.QuotaTimers: 0, domain.QuotaStoredBytes: 0}, By: "bench",
	})
}

// timerJSON is what the API takes.
type timerJSON struct {
	Executor string    `json:"executor"`
	Handler  string    `json:"handler"`
	Key      string    `json:"key"`
	At       time.Time `json:"at"`
	Input    any       `json:"input"`
}

// timerInput is about as much as an application says of what is to be done.
type timerInput struct {
	OrderID int64  `json:"orderId"`
	Reason  string `json:"reason"`
}

// keysEach is more than a setter sets.
const keysEach = 1_000_000_000

func (s *timerSetter) name(i int64) string { return fmt.Sprintf("order-%014d", s.from+i) }

func (s *timerSetter) timer(i int64) timerJSON {
	return timerJSON{
		Executor: s.to.executor, Handler: s.to.handler, Key: s.name(i), At: s.due(i).UTC().Truncate(time.Millisecond), Input: s.to.input(i),
	}
}

// once makes one request, and returns how many timers it was for; 0: nothing is
// left to cancel.
func (s *timerSetter) once(ctx context.Context, what timerWork) (int, error) {
	size := int64(what.size)
	switch {
	case what.cancels():
		to := s.cancelled.Add(size)
		if to > s.next.Load() {
			return 0, nil
		}
		keys := make([]string, 0, size)
		for i := to - size; i < to; i++ {
			keys = append(keys, s.name(i))
		}
		return what.size, s.ask(ctx, what.path, map[string]any{"executor": s.to.executor, "handler": s.to.handler, "keys": keys})
	case size == 1:
		return 1, s.ask(ctx, what.path, s.timer(s.next.Add(1)-1))
	}
	return what.size, s.batch(ctx, size)
}

func (s *timerSetter) batch(ctx context.Context, size int64) error {
	to := s.next.Add(size)
	list := make([]timerJSON, 0, size)
	for i := to - size; i < to; i++ {
		list = append(list, s.timer(i))
	}
	return s.ask(ctx, "/api/v1/timers/batch", map[string]any{"timers": list})
}

// many sets n timers from all clients.
func (s *timerSetter) many(ctx context.Context, n int) error {
	var left atomic.Int64
	left.Store(int64(n))
	var wg sync.WaitGroup
	errs := make(chan error, timerClients)
	for range timerClients {
		wg.Go(func() {
			for {
				size := min(int64(timerBatch), left.Add(-timerBatch)+timerBatch)
				if size <= 0 {
					return
				}
				if err := s.batch(ctx, size); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	wg.Wait()
	close(errs)
	return <-errs
}

// ask posts, and refuses an answer that says that something was not done.
func (s *timerSetter) ask(ctx context.Context, path string, body any) error {
	raw, err := json.Marshal(body)
	if err != nil {
		return err
	}
	api := s.f.lab.Admins[0].API
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, api.Base+path, bytes.NewReader(raw))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := api.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	var answer struct {
		Items []struct{ Problem *struct{ Detail string } }
	}
	if response.StatusCode >= http.StatusMultipleChoices {
		return fmt.Errorf("%s: %s", path, response.Status)
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return err
	}
	for _, item := range answer.Items {
		if item.Problem != nil {
			return fmt.Errorf("%s: %s", path, item.Problem.Detail)
		}
	}
	return nil
}
