package main

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/carillon-sched/carillon/admin/bench/contender"
	"github.com/carillon-sched/carillon/admin/internal/scheduler/pending"
)

// Timer is what one timer structure costs with so many values pending.
type Timer struct {
	Structure string `json:"structure"`
	Pending   int    `json:"pending"`
	// InsertNs and CancelNs are nanoseconds of one goroutine; PopNs those of
	// taking a value out when its millisecond has come, in simulated time.
	InsertNs float64 `json:"insertNs"`
	CancelNs float64 `json:"cancelNs"`
	PopNs    float64 `json:"popNs,omitempty"`
	// FireNs is CPU of the whole process per value that fired in real time,
	// 20,000 a second, with everything else pending.
	FireNs   float64 `json:"fireCPUNs"`
	Lateness *Spread `json:"latenessMs"`
	Bytes    float64 `json:"bytesPerValue"`
}

// timers measures what the scheduler's timer could be made of.
func (b *bench) timers() []part {
	r := Result{Scenario: "timers", Variant: "1 M pending"}
	n, fires := 1_000_000, 100_000
	if b.o.Quick {
		n, fires, r.Variant = 200_000, 40_000, "200 k pending"
	}
	run := func(ctx context.Context, r *Result) error { return compareTimers(ctx, n, fires, r) }
	return []part{{result: r, usual: b.quickOr(10*time.Second, 25*time.Second), run: run}}
}

func compareTimers(ctx context.Context, n, fires int, r *Result) error {
	for _, one := range []struct {
		name string
		open func() timerUnderTest
	}{
		{"wheel", func() timerUnderTest { return newDriven(pending.NewWheel[int32](time.Now().UnixNano())) }},
		{"heap", func() timerUnderTest { return newDriven(&contender.Heap[int32]{}) }},
		{"runtime", func() timerUnderTest { return &runtimeTimers{} }},
	} {
		t, err := measureTimer(ctx, one.open, n, fires)
		if err != nil {
			return err
		}
		t.Structure = one.name
		r.Timers = append(r.Timers, t)
	}
	return nil
}

// timerUnderTest is a structure with whatever drives it.
type timerUnderTest interface {
	// add makes fired be called with the value at its instant.
	add(at time.Time, value int32)
	// insert and cancel many, without closures in between.
	fill(at []time.Time)
	cancelAll(order []int)
	// popAll takes everything out in simulated time, and returns false where
	// that is not possible.
	popAll() bool
	// run calls fired for what comes due until ctx ends.
	run(ctx context.Context, fired func(value int32))
}

func measureTimer(ctx context.Context, open func() timerUnderTest, n, fires int) (Timer, error) {
	t := Timer{Pending: n}
	random := rand.New(rand.NewPCG(1, 2))
	soon := func() []time.Time { // none comes due while it is measured
		base := time.Now().Add(10 * time.Minute)
		at := make([]time.Time, n)
		for i := range at {
			at[i] = base.Add(time.Duration(random.Int64N(60_000)) * time.Millisecond)
		}
		return at
	}
	order := random.Perm(n)
	q, at := open(), soon()
	before := heapInUse()
	t.InsertNs = perValue(n, func() { q.fill(at) })
	t.Bytes = float64(heapInUse()-before) / float64(n)
	t.CancelNs = perValue(n, func() { q.cancelAll(order) })
	q.fill(at)
	popped := true
	t.PopNs = perValue(n, func() { popped = q.popAll() })
	if !popped {
		t.PopNs = 0
		q.cancelAll(order)
	}
	q.fill(soon())
	var err error
	t.Lateness, t.FireNs, err = fireInTime(ctx, q, fires)
	return t, err
}

// fireInTime lets values fire in real time, 20 a millisecond.
func fireInTime(ctx context.Context, q timerUnderTest, fires int) (*Spread, float64, error) {
	const perMilli = 20
	late := make([]int64, fires) // each written once, by the goroutine that fires it
	var left atomic.Int64
	left.Store(int64(fires))
	done := make(chan struct{})
	at := make([]time.Time, fires)
	first := time.Now().Add(time.Second).Truncate(time.Millisecond)
	for i := range at {
		at[i] = first.Add(time.Duration(i/perMilli) * time.Millisecond)
	}
	ctx, cancel := context.WithCancel(ctx)
	var driver sync.WaitGroup
	driver.Go(func() {
		q.run(ctx, func(value int32) {
			late[value] = int64(time.Since(at[value]))
			if left.Add(-1) == 0 {
				close(done)
			}
		})
	})
	for i := range at {
		q.add(at[i], int32(i))
	}
	if err := pauseUntil(ctx, first.Add(-5*time.Millisecond)); err != nil {
		cancel()
		driver.Wait()
		return nil, 0, err
	}
	cpu := ownCPU()
	select {
	case <-done:
	case <-ctx.Done():
	}
	cpu = ownCPU() - cpu
	err := context.Cause(ctx)
	cancel()
	driver.Wait()
	if err != nil {
		return nil, 0, err
	}
	ms := make([]float64, fires)
	for i, l := range late {
		ms[i] = float64(l) / 1e6
	}
	return spreadOf(ms), float64(cpu.Nanoseconds()) / float64(fires), nil
}

func perValue(n int, do func()) float64 {
	began := time.Now()
	do()
	return float64(time.Since(began).Nanoseconds()) / float64(n)
}

func heapInUse() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// ownCPU is what this process has used so far.
func ownCPU() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // cannot fail for ourselves
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// driven is a queue with one goroutine that sleeps until the next look, as in
// scheduler.Timer.
type driven struct {
	mu      sync.Mutex
	queue   pending.Queue[int32] // guarded by mu
	handles []pending.Handle
	wake    chan struct{}
}

func newDriven(q pending.Queue[int32]) *driven {
	return &driven{queue: q, wake: make(chan struct{}, 1)}
}

func (d *driven) fill(at []time.Time) {
	if len(d.handles) != len(at) {
		d.handles = make([]pending.Handle, len(at))
	}
	for i, t := range at {
		d.handles[i] = d.queue.Add(t.UnixNano(), int32(i))
	}
}

func (d *driven) cancelAll(order []int) {
	for _, i := range order {
		d.queue.Cancel(d.handles[i])
	}
}

func (d *driven) popAll() bool {
	var due []int32
	for d.queue.Len() > 0 {
		at, _ := d.queue.Next()
		due = d.queue.PopDue(at, due[:0])
	}
	return true
}

func (d *driven) add(at time.Time, value int32) {
	d.mu.Lock()
	before, had := d.queue.Next()
	d.queue.Add(at.UnixNano(), value)
	after, _ := d.queue.Next()
	d.mu.Unlock()
	if !had || after < before {
		select {
		case d.wake <- struct{}{}:
		default:
		}
	}
}

func (d *driven) run(ctx context.Context, fired func(int32)) {
	sleep := time.NewTimer(0)
	defer sleep.Stop()
	var due []int32
	for {
		d.mu.Lock()
		now := time.Now().UnixNano()
		due = d.queue.PopDue(now, due[:0])
		wait := time.Second
		if at, ok := d.queue.Next(); ok {
			wait = time.Duration(max(0, at-now))
		}
		d.mu.Unlock()
		for _, value := range due {
			fired(value)
		}
		sleep.Reset(wait)
		select {
		case <-ctx.Done():
			return
		case <-d.wake:
		case <-sleep.C:
		}
	}
}

// runtimeTimers has a timer of the runtime for each value.
type runtimeTimers struct {
	timers []*time.Timer
	fired  atomic.Pointer[func(int32)]
}

func (r *runtimeTimers) fill(at []time.Time) {
	if len(r.timers) != len(at) {
		r.timers = make([]*time.Timer, len(at))
	}
	now := time.Now()
	for i, t := range at {
		r.timers[i] = time.AfterFunc(t.Sub(now), func() { (*r.fired.Load())(int32(i)) })
	}
}

func (r *runtimeTimers) cancelAll(order []int) {
	for _, i := range order {
		r.timers[i].Stop()
	}
}

func (r *runtimeTimers) popAll() bool { return false }

func (r *runtimeTimers) add(at time.Time, value int32) {
	time.AfterFunc(time.Until(at), func() { (*r.fired.Load())(value) })
}

func (r *runtimeTimers) run(ctx context.Context, fired func(int32)) {
	r.fired.Store(&fired)
	<-ctx.Done()
	for _, t := range r.timers {
		t.Stop()
	}
}
