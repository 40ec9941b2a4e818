package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/verify"
	"github.com/carillon-sched/carillon/internal/apiclient"
	"github.com/carillon-sched/carillon/internal/testenv/lab"
)

const (
	// tooMuch is how many times more is due than can be done.
	tooMuch = 3
	// workSlots are the slots of each executor: with workTime they bound what
	// can be done to 320 runs a second, far below what the nodes can do.
	workSlots = 32
	// fewSlots are those of one executor alone.
	fewSlots = 8
	// fastest bounds the search for the capacity of handlers that return at once.
	fastest = 5000
	// recoveryLimit is how long after the load's end fresh runs may be late.
	recoveryLimit = time.Minute
	// leastGoodput is the part of the capacity that is useful under overload, in percent.
	leastGoodput = 90
	// operatorPauses is how many jobs an operator pauses in the midst of it, but at most a
	// tenth of them: the load has to go on.
	operatorPauses = 100
	// impatient: one of so many jobs gives a run up after a quarter of the load's time.
	impatient = 3
	// lateWatch is how long lateness is watched once it is good again.
	lateWatch = 10 * time.Second
)

// Overload is what becomes of a cluster when more is due than can be done, and
// afterwards.
type Overload struct {
	// OnTimeAgain is from the load's end to the first of five seconds in which
	// all fresh runs started within a second; -1: not within the limit.
	OnTimeAgain Seconds `json:"onTimeAgainSeconds"`
	// Goodput is results committed per second, of each ten seconds of the load.
	Goodput []float64 `json:"goodputPerSecond"`
	// Told are fire times whose row says why they did not run, Waiting those
	// that still waited when the measurement ended.
	Told    int `json:"missedWithReason"`
	Waiting int `json:"stillWaiting"`
	// Paused jobs of those that an operator wanted to pause meanwhile, and how
	// many a second.
	Paused          int     `json:"paused"`
	PausesPerSecond float64 `json:"pausesPerSecond"`
	// Transactions of all nodes during the load; those with most time first.
	Transactions []Stage `json:"transactions"`
}

// overloaded is a fleet that gets more than it can do.
type overloaded struct {
	fleetPlan
	handler, said string
	usual         time.Duration
	quick         bool // a quick run has it
}

// overloads have their capacity bounded by slots that handlers hold, by slots alone, and
// by all that the nodes and the database do for a run.
var overloads = []overloaded{
	{fleetPlan{slots: workSlots}, handlerWorks, "busy slots", 80 * time.Second, true},
	{fleetPlan{slots: fewSlots, executors: 1}, handlerWorks, "few busy slots", 80 * time.Second, false},
	{fleetPlan{slots: fewSlots, executors: 1}, handlerOnce, "few slots", 130 * time.Second, false},
	{fleetPlan{}, handlerOnce, "default slots", 130 * time.Second, false},
}

// overload has three times more due than can be done, then a tenth of it.
func (b *bench) overload() (parts []part) {
	kind, admins := b.o.databases(true)[0], 2
	if kind == SQLite {
		admins = 1
	}
	lasts := 90 * time.Second
	if b.o.Window > 0 {
		lasts = b.o.Window
	} else if b.o.Quick {
		lasts = 30 * time.Second
	}
	for _, o := range overloads {
		if b.o.Quick && !o.quick {
			continue
		}
		o.kind, o.admins = kind, admins
		parts = append(parts, part{
			result: Result{Scenario: "overload", Variant: fmt.Sprintf("%d × capacity for %.0f s, %s", tooMuch, lasts.Seconds(), o.said), Database: kind, Admins: admins},
			usual:  o.usual + lasts,
			run: func(ctx context.Context, r *Result) error {
				return b.withFleetOf(ctx, o.fleetPlan, func(f *fleet) error { return f.overload(ctx, o, lasts, r) })
			},
		})
	}
	return parts
}

// overload finds the capacity first. A third of the jobs do not want to be
// run late (dispatchTimeout), the others wait for as long as jobs do by default. A
// tenth of the capacity goes on when the load has ended; of these jobs the
// fresh runs are looked at.
func (f *fleet) overload(ctx context.Context, o overloaded, lasts time.Duration, r *Result) error {
	capacity, err := f.capacity(ctx, o)
	if err != nil {
		return err
	}
	few, n := int(capacity)/10, int(tooMuch*capacity)
	if few == 0 {
		return fmt.Errorf("%.0f runs a second are too few to measure", capacity)
	}
	l := &load{f: f}
	from := time.Now().Add(lead + time.Duration(n)*2*time.Millisecond).Truncate(time.Second).UTC()
	to := from.Add(lasts)
	l.jobs, err = f.load(ctx, f.executor, n, func(i int) domain.JobSpec {
		s := ticking(number("overload", i), o.handler, time.Second, from.Add(l.offset(i)))
		if i%impatient == 1 {
			s.DispatchTimeout = lasts / 4
		}
		if i >= few {
			s.Schedule.EndAt = to.Add(-time.Millisecond)
		}
		return s
	}, func(i int) time.Time { return from.Add(l.offset(i)) })
	if err != nil {
		return err
	}
	if time.Until(from) < 0 {
		return fmt.Errorf("loading %d jobs took longer than there was time", n)
	}
	r.Jobs, r.Window, r.Overload = n, seconds(lasts-warmUp), &Overload{OnTimeAgain: -1}
	tail, err := f.underOverload(ctx, l, from, to, r)
	if err != nil {
		return err
	}
	ended, calm, err := f.untilOnTime(ctx, tail, few, to, r.Overload)
	if err != nil {
		return err
	}
	f.b.o.Say("  what the whole load came to is read")
	f.lab.Close()
	stopped := time.Now()
	seen, err := f.observe(ctx, f.executor)
	if err != nil {
		return err
	}
	r.Fires, _, r.Overload.Told, r.Overload.Waiting = seen.unfinished(grid{every: time.Second, from: from, to: stopped}, stopped)
	_, r.Lateness, _, _ = seen.unfinished(grid{every: time.Second, from: calm, to: ended}, stopped)
	for at := from; at.Before(to); at = at.Add(10 * time.Second) {
		until := earlier(at.Add(10*time.Second), to)
		r.Overload.Goodput = append(r.Overload.Goodput, float64(seen.finishedIn(at, until))/until.Sub(at).Seconds())
	}
	done := seen.finishedIn(from.Add(warmUp), to)
	good := float64(done) / (lasts - warmUp).Seconds()
	r.Throughput = &Throughput{PerSecond: good, Offered: float64(n), Floor: capacity, FloorPercent: 100 * good / capacity}
	perFire(r.Processes, done)
	if err := errors.Join(r.Fires.broken(), r.notWell()); err != nil {
		r.Failed = err.Error()
		f.keep = true
	}
	return nil
}

// capacity is what is done when a little less or a little more is due than busy
// slots can do, whichever is better; of a handler that returns at once, what is
// done at the first rate that is not carried.
func (f *fleet) capacity(ctx context.Context, o overloaded) (most float64, err error) {
	if o.handler != handlerWorks {
		l, err := newLoad(ctx, f, o.handler, fastest)
		if err != nil {
			return 0, err
		}
		rate, err := l.search(ctx, 0)
		return float64(rate) / overload, err
	}
	bound := float64(o.processes()*o.slots) / workTime.Seconds()
	l, err := newLoad(ctx, f, handlerWorks, int(math.Ceil(bound*overload)))
	if err != nil {
		return 0, err
	}
	for _, n := range []int{len(l.jobs) * 4 / 5, len(l.jobs)} {
		got, err := l.probe(ctx, n)
		if err != nil {
			return 0, err
		}
		f.b.o.Say("  %d runs a second due: %.0f done; the slots can do %.0f", n, got, bound)
		most = max(most, got)
	}
	return most, nil
}

// underOverload watches the fleet while more is due than it can do; from the
// middle on an operator pauses the last jobs. The tail begins just before the
// load's end.
func (f *fleet) underOverload(ctx context.Context, l *load, from, to time.Time, r *Result) (tail *lab.Tail, err error) {
	if err := pauseUntil(ctx, from.Add(warmUp)); err != nil {
		return nil, err
	}
	before, err := f.transactions(ctx)
	if err != nil {
		return nil, err
	}
	var group errgroup.Group
	group.Go(func() error { return f.measure(ctx, to, r) })
	group.Go(func() error {
		if err := pauseUntil(ctx, from.Add(to.Sub(from)/2)); err != nil {
			return err
		}
		f.pauseSome(ctx, l.jobs[len(l.jobs)-min(operatorPauses, len(l.jobs)/10):], to, r)
		return nil
	})
	group.Go(func() (err error) {
		if err = pauseUntil(ctx, to.Add(-time.Second)); err == nil {
			tail, err = lab.Follow(f.history)
		}
		return err
	})
	if err := group.Wait(); err != nil {
		return nil, err
	}
	after, err := f.transactions(ctx)
	if err != nil {
		return nil, err
	}
	for step, s := range after {
		s.Transactions -= before[step].Transactions
		s.Busy -= before[step].Busy
		if s.Transactions > 0 {
			r.Overload.Transactions = append(r.Overload.Transactions, s)
		}
	}
	slices.SortFunc(r.Overload.Transactions, func(a, b Stage) int { return cmp.Compare(b.Busy, a.Busy) })
	return tail, nil
}

// transactions sums the nodes' metrics by step.
func (f *fleet) transactions(ctx context.Context) (map[string]Stage, error) {
	out := map[string]Stage{}
	for _, a := range f.lab.Admins {
		count, err := a.API.MetricBy(ctx, "carillon_transaction_seconds_count", "step")
		if err != nil {
			return nil, err
		}
		sum, err := a.API.MetricBy(ctx, "carillon_transaction_seconds_sum", "step")
		if err != nil {
			return nil, err
		}
		for step := range maps.Keys(count) {
			s := out[step]
			out[step] = Stage{Name: step, Transactions: s.Transactions + int(count[step]), Busy: s.Busy + Seconds(sum[step])}
		}
	}
	return out, nil
}

// pauseSome pauses jobs through the API, four at a time over all nodes, until
// an instant. A call that is refused or not answered counts as not paused.
func (f *fleet) pauseSome(ctx context.Context, jobs []domain.JobID, until time.Time, r *Result) {
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	var mu sync.Mutex
	var took []float64 // ms, of those that were answered; guarded by mu
	var group errgroup.Group
	group.SetLimit(4)
	began := time.Now()
	for i, id := range jobs {
		group.Go(func() error {
			asked := time.Now()
			api := f.lab.Admins[i%len(f.lab.Admins)].API
			if _, err := api.PauseJob(ctx, id.String(), apiclient.PauseInputBody{}); err == nil {
				mu.Lock()
				defer mu.Unlock()
				took = append(took, ms(time.Since(asked)))
			}
			return nil
		})
	}
	_ = group.Wait() // its functions return nil
	r.Overload.Paused = len(took)
	r.Overload.PausesPerSecond = float64(len(took)) / time.Since(began).Seconds()
	r.Elapsed = spreadOf(took)
}

// untilOnTime waits until the fresh runs of the jobs that go on are on time, and a
// little longer. It returns the time in which their lateness counts as that
// afterwards.
func (f *fleet) untilOnTime(ctx context.Context, tail *lab.Tail, jobs int, end time.Time, o *Overload) (until, from time.Time, err error) {
	const look = 2 * time.Second
	for limit := end.Add(recoveryLimit + look); time.Now().Before(limit) && o.OnTimeAgain < 0; {
		if err := pause(ctx, look); err != nil {
			return until, from, err
		}
		runs, err := tail.Runs()
		if err != nil {
			return until, from, err
		}
		if took, ok := lab.OnTimeAgain(runs, verify.At(end), jobs); ok {
			o.OnTimeAgain = seconds(took)
		}
	}
	if o.OnTimeAgain < 0 {
		return time.Now().Add(-time.Second), end, nil
	}
	from = end.Add(time.Duration(float64(o.OnTimeAgain) * float64(time.Second)))
	until = time.Now()
	return until.Add(lateWatch - time.Second), from, pauseUntil(ctx, until.Add(lateWatch))
}

// notWell says what of promise P13 was not kept.
func (r *Result) notWell() error {
	var bad []error
	if p := r.Throughput.FloorPercent; p < leastGoodput {
		bad = append(bad, fmt.Errorf("%.0f %% of what can be done was done under overload, less than %d", p, leastGoodput))
	}
	if again := r.Overload.OnTimeAgain; again < 0 || again > seconds(recoveryLimit) {
		bad = append(bad, fmt.Errorf("fresh runs were not on time within %s after the load's end", recoveryLimit))
	}
	return errors.Join(bad...)
}
