package lab

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	executor "github.com/carillon-sched/carillon/executor-sdk"
)

// Sighting is what a handler wrote down about its own start: one line of JSON.
// Our tables are compared with it, never the other way round.
type Sighting struct {
	Job     int64 `json:"job"`
	Run     int64 `json:"run"`
	Fence   int64 `json:"fence"`
	Attempt int   `json:"attempt"`
	Fire    int64 `json:"fire"`  // Unix ms
	Start   int64 `json:"start"` // Unix µs
}

// Witness is a file of sightings. Safe for concurrent use.
type Witness struct {
	mu     sync.Mutex
	file   *os.File
	buffer []byte // guarded by mu
	delay  bool
	stop   chan struct{}
	done   chan struct{}
}

// flushEvery is how often a delayed witness writes.
const flushEvery = 50 * time.Millisecond

// OpenWitness appends to path. With delay, lines are written 20 times a second
// rather than one by one: that costs the measured executor less, and loses
// lines when the process is killed.
func OpenWitness(path string, delay bool) (*Witness, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	w := &Witness{file: file, delay: delay, stop: make(chan struct{}), done: make(chan struct{})}
	go w.run() // until Close
	return w, nil
}

func (w *Witness) run() {
	defer close(w.done)
	tick := time.NewTicker(flushEvery)
	defer tick.Stop()
	for {
		select {
		case <-w.stop:
			return
		case <-tick.C:
			if err := w.flush(); err != nil {
				slog.Error("the witness cannot write", "err", err) // the lines stay, and are tried again
			}
		}
	}
}

func (w *Witness) flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.buffer) == 0 {
		return nil
	}
	_, err := w.file.Write(w.buffer)
	w.buffer = w.buffer[:0]
	return err
}

// Record writes down that the handler of ctx was started at now.
func (w *Witness) Record(ctx context.Context, now time.Time) error {
	t := executor.TaskFrom(ctx)
	w.mu.Lock()
	w.buffer = appendSighting(w.buffer, Sighting{
		Job: t.JobID, Run: t.ExecutionID, Fence: t.Fence, Attempt: t.Attempt,
		Fire: t.FireTime.UnixMilli(), Start: now.UnixMicro(),
	})
	w.mu.Unlock()
	if w.delay {
		return nil
	}
	return w.flush()
}

// Close writes what is left.
func (w *Witness) Close() error {
	close(w.stop)
	<-w.done
	err := w.flush()
	if closeErr := w.file.Close(); err == nil {
		err = closeErr
	}
	return err
}

// appendSighting is json.Marshal at a tenth of its price.
func appendSighting(b []byte, s Sighting) []byte {
	b = strconv.AppendInt(append(b, `{"job":`...), s.Job, 10)
	b = strconv.AppendInt(append(b, `,"run":`...), s.Run, 10)
	b = strconv.AppendInt(append(b, `,"fence":`...), s.Fence, 10)
	b = strconv.AppendInt(append(b, `,"attempt":`...), int64(s.Attempt), 10)
	b = strconv.AppendInt(append(b, `,"fire":`...), s.Fire, 10)
	b = strconv.AppendInt(append(b, `,"start":`...), s.Start, 10)
	return append(b, "}\n"...)
}

// ReadSightings calls seen for each line of the files, in the files' order.
func ReadSightings(seen func(Sighting), paths ...string) error {
	for _, path := range paths {
		if err := readSightings(seen, path); err != nil {
			return err
		}
	}
	return nil
}

func readSightings(seen func(Sighting), path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		var s Sighting
		if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
			return fmt.Errorf("witness line %q: %w", lines.Text(), err)
		}
		seen(s)
	}
	return lines.Err()
}

// The handlers of RunWitness.
const (
	TickHandler       = "tick"
	IdempotentHandler = "tick-idempotent"
)

// TokenVariable carries the join token of RunWitness.
const TokenVariable = "CARILLON_EXECUTOR_TOKEN"

// WitnessOptions configure the executor of RunWitness.
type WitnessOptions struct {
	Name      string // of the executor
	Addresses string // of admin nodes, comma-separated
	Journal   string // folder
	File      string // of sightings
	Slots     int
	Delay     bool // OpenWitness
}

// RunWitness is an executor whose handlers record that they were started and
// return. It runs until ctx ends; the join token is in TokenVariable.
func RunWitness(ctx context.Context, o WitnessOptions) (err error) {
	w, err := OpenWitness(o.File, o.Delay)
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := w.Close(); err == nil {
			err = closeErr
		}
	}()
	ex, err := executor.New(executor.Config{
		Name: o.Name, Addresses: strings.Split(o.Addresses, ","), Token: executor.Secret(os.Getenv(TokenVariable)),
		JournalDir: o.Journal, Slots: o.Slots,
	})
	if err != nil {
		return err
	}
	tick := func(ctx context.Context) error { return w.Record(ctx, time.Now()) }
	executor.HandleFunc(ex, TickHandler, tick)
	executor.HandleFunc(ex, IdempotentHandler, tick, executor.Idempotent())
	return ex.Run(ctx)
}
