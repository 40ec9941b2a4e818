package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/carillon-sched/carillon/admin/verify"
	executor "github.com/carillon-sched/carillon/executor-sdk"
)

// witness is a history file of runs (package verify). Lines are written 20
// times a second rather than one by one: that costs the measured executor
// less, and nothing here is killed. Safe for concurrent use.
type witness struct {
	file *os.File
	boot string
	stop chan struct{}
	done chan struct{}

	mu     sync.Mutex
	buffer []byte // guarded by mu
	err    error  // guarded by mu; the first failure of a write
}

const witnessEvery = 50 * time.Millisecond

func openWitness(dir, name string) (*witness, error) {
	path := filepath.Join(dir, fmt.Sprintf("%s-%d%s", name, os.Getpid(), verify.Extension))
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	w := &witness{file: file, boot: rand.Text()[:12], stop: make(chan struct{}), done: make(chan struct{})}
	go w.run() // until close
	return w, nil
}

func (w *witness) run() {
	defer close(w.done)
	tick := time.NewTicker(witnessEvery)
	defer tick.Stop()
	for {
		select {
		case <-w.stop:
			return
		case <-tick.C:
			w.flush()
		}
	}
}

func (w *witness) flush() {
	w.mu.Lock()
	lines := w.buffer
	w.buffer = make([]byte, 0, len(lines))
	w.mu.Unlock()
	if len(lines) == 0 {
		return
	}
	if _, err := w.file.Write(lines); err != nil {
		w.mu.Lock()
		w.err = errors.Join(w.err, err)
		w.mu.Unlock()
	}
}

// record writes down that the handler of a task was started at now and is
// about to return.
func (w *witness) record(t executor.Task, now time.Time) error {
	return w.add(func(b []byte) []byte { return appendRun(b, t, w.boot, now.UnixMicro()) })
}

// add has a line appended.
func (w *witness) add(line func([]byte) []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.buffer = line(w.buffer)
	return w.err
}

func (w *witness) close() error {
	close(w.stop)
	<-w.done
	w.flush()
	return errors.Join(w.err, w.file.Close())
}

// appendRun is verify.Writer's line at a tenth of its price.
func appendRun(b []byte, t executor.Task, boot string, at int64) []byte {
	b = strconv.AppendInt(append(b, `{"type":"run","job":"`...), t.JobID, 10)
	b = append(append(b, `","key":"`...), t.Key()...)
	b = strconv.AppendInt(append(b, `","fence":`...), t.Fence, 10)
	b = append(append(b, `,"boot":"`...), boot...)
	b = strconv.AppendInt(append(b, `","tenant":"`...), t.TenantID, 10)
	b = strconv.AppendInt(append(b, `","shard":`...), int64(t.ShardIndex), 10)
	b = strconv.AppendInt(append(b, `,"start":`...), at, 10)
	b = strconv.AppendInt(append(b, `,"end":`...), at, 10)
	b = strconv.AppendInt(append(b, `,"attempt":`...), int64(t.Attempt), 10)
	b = strconv.AppendInt(append(b, `,"fireAt":`...), t.FireTime.UnixMicro(), 10)
	return append(b, "}\n"...)
}

// The handlers of a load executor.
const (
	handlerOnce       = "tick"            // at most once: OFFER, ACCEPT, GRANT
	handlerIdempotent = "tick-idempotent" // one step
	handlerListens    = "listens"         // until it is told to stop
	handlerTalks      = "talks"           // the same, and logs meanwhile
	handlerWorks      = "works"           // at most once, and takes workTime
	handlerTimed      = "timed"           // handlerOnce with a timerInput
	handlerFails      = "fails"           // at once; nobody writes that down
)

// loadSlots is how many handlers one load executor runs at once where slots
// must not be what is measured.
const loadSlots = 2000

// workTime is how long handlerWorks holds its slot.
const workTime = 200 * time.Millisecond

// ExecutorOptions configure the executor that the bench starts as a process.
type ExecutorOptions struct {
	Name      string
	Addresses string // of admin nodes, comma-separated
	Journal   string // folder
	History   string // folder of witness files
	Token     string
	// Slots is how many handlers run at once; 0 = what the SDK does by default.
	Slots int
	// Crowd is how many instances that do nothing are started instead; 0 = one
	// that works.
	Crowd int
}

// RunExecutor is an executor whose handlers write down that they were started
// and return at once, but for one that works and those that wait until they are
// told to stop. It runs until ctx ends.
func RunExecutor(ctx context.Context, o ExecutorOptions) (err error) {
	if o.Crowd > 0 {
		return runCrowd(ctx, o)
	}
	w, err := openWitness(o.History, "witness")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	ex, err := executor.New(executor.Config{
		Name: o.Name, Addresses: strings.Split(o.Addresses, ","), Token: executor.Secret(o.Token),
		JournalDir: o.Journal, Slots: o.Slots,
	})
	if err != nil {
		return err
	}
	tick := func(ctx context.Context) error { return w.record(executor.TaskFrom(ctx), time.Now()) }
	executor.HandleFunc(ex, handlerOnce, tick)
	executor.Handle(ex, handlerTimed, func(ctx context.Context, _ timerInput) (struct{}, error) { return struct{}{}, tick(ctx) })
	executor.HandleFunc(ex, handlerIdempotent, tick, executor.Idempotent())
	executor.HandleFunc(ex, handlerListens, func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	})
	executor.HandleFunc(ex, handlerTalks, talk)
	executor.HandleFunc(ex, handlerFails, func(context.Context) error { return errors.New("as it is meant to") })
	executor.HandleFunc(ex, handlerWorks, func(ctx context.Context) error { return errors.Join(tick(ctx), pause(ctx, workTime)) })
	return ex.Run(ctx)
}

// talk writes lines until it is told to stop.
func talk(ctx context.Context) error {
	tick := time.NewTicker(tailEvery)
	defer tick.Stop()
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
			executor.Logger(ctx).Info("a line", "number", n)
		}
	}
}
