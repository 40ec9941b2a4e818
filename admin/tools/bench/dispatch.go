package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/gateway"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/verify"
	"github.com/carillon-sched/carillon/internal/testenv/lab"
	"github.com/carillon-sched/carillon/proto"
)

const (
	// frameOf is how many offers one frame carries when they go in batches.
	frameOf = 100
	// underWay is how many runs are on the wire at once then: what the
	// executor has slots for.
	underWay = loadSlots
	// wireWindow is how long each way is measured.
	wireWindow = 10 * time.Second
)

// dispatch measures the way of a command and its result without a database:
// gateway, SDK, handler, the executor's journal. The gateway runs in this
// process, the executor in its own. Beside it stands the same number of the
// same frames over yamux alone.
func (b *bench) dispatch() (parts []part) {
	for _, n := range []int{1, frameOf} {
		variant := "one run at a time"
		if n > 1 {
			variant = fmt.Sprintf("in frames of %d", n)
		}
		parts = append(parts, part{
			result: Result{Scenario: "dispatch", Variant: variant},
			usual:  2*b.window(wireWindow) + 5*time.Second,
			run:    func(ctx context.Context, r *Result) error { return b.measureWire(ctx, n, r) },
		})
	}
	return parts
}

func (b *bench) measureWire(ctx context.Context, frame int, r *Result) (err error) {
	window := b.window(wireWindow)
	alone, err := wireFloor(ctx, frame, window)
	if err != nil {
		return fmt.Errorf("yamux alone: %w", err)
	}
	w, err := b.openWire(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { err = joinClose(err, w.close) }()
	trips, err := roundTrips(ctx, w, frame, window)
	if err != nil {
		return err
	}
	r.Window = seconds(window)
	r.RoundTrip, r.FloorRoundTrip = spreadOf(trips.micros), spreadOf(alone.micros)
	rate, floor := trips.perSecond(), alone.perSecond()
	r.Throughput = &Throughput{PerSecond: rate, Offered: rate, Floor: floor, FloorPercent: 100 * rate / floor}
	if text := w.failed.Load(); text != nil {
		return fmt.Errorf("a run did not succeed: %s", *text)
	}
	if r.Fires, err = w.judge(ctx, trips.done); err != nil {
		return err
	}
	if broken := r.Fires.broken(); broken != nil {
		r.Failed = broken.Error()
	}
	return nil
}

// wire is a gateway with one executor and nothing behind it. It is the
// gateway's Sink, Authenticator and Fleet, as far as one executor needs them.
type wire struct {
	store.Instances // nil: what is not overridden is not asked

	// fixed after construction
	dir     string
	lab     *lab.Fleet
	stop    context.CancelFunc
	served  chan error
	session *gateway.Session
	joined  chan *gateway.Session // one token
	left    chan time.Time        // one token: when its session ended
	results chan int              // results that came, per frame; drained by the only sender

	ids    atomic.Int64
	failed atomic.Pointer[string] // what the first run that did not succeed said
}

// openWire starts both; the executor dials what through makes of the gateway's
// address, if that is not nil.
func (b *bench) openWire(ctx context.Context, through func(address string) (string, error)) (_ *wire, err error) {
	w := &wire{joined: make(chan *gateway.Session, 1), left: make(chan time.Time, 1), results: make(chan int, underWay), served: make(chan error, 1)}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.close())
		}
	}()
	if w.dir, err = os.MkdirTemp(b.o.Dir, "wire-"); err != nil {
		return nil, err
	}
	if err := os.Mkdir(w.history(), 0o700); err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	address := l.Addr().String()
	if through != nil {
		if address, err = through(address); err != nil {
			return nil, errors.Join(err, l.Close())
		}
	}
	g := gateway.New(gateway.Options{
		NodeID: "bench", ClusterID: "bench", Auth: w, Fleet: w, Sink: w,
		NewID: func() int64 { return w.ids.Add(1) }, Logger: slog.New(slog.DiscardHandler),
	})
	g.SetNodes([]domain.Node{{Name: "bench", ExecutorAddress: address}})
	serveCtx, stop := context.WithCancel(ctx)
	w.stop = stop
	go func() { w.served <- g.Serve(serveCtx, l) }() // close waits for it
	if w.lab, err = lab.NewFleet(lab.Options{Dir: w.dir, Binary: b.o.Binary}); err != nil {
		return nil, err
	}
	if _, err = w.lab.StartExecutor(lab.Command{
		Name: "executor-1", Program: b.o.Executor, Env: []string{"CARILLON_EXECUTOR_TOKEN=cjt_bench"},
		Args: []string{
			"executor", "--name", "bench", "--addresses", address,
			"--journal", filepath.Join(w.dir, "journal"), "--history", w.history(), "--slots", strconv.Itoa(loadSlots),
		},
	}); err != nil {
		return nil, err
	}
	select {
	case w.session = <-w.joined:
		return w, nil
	case <-time.After(time.Minute):
		return nil, fmt.Errorf("the executor did not connect (logs in %s)", w.dir)
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (w *wire) history() string { return filepath.Join(w.dir, "history") }

// close stops the executor first, so that its results are still acknowledged.
func (w *wire) close() (err error) {
	if w.lab != nil {
		w.lab.Close()
	}
	if w.stop != nil {
		w.stop()
		err = <-w.served
	}
	return errors.Join(err, os.RemoveAll(w.dir))
}

// send offers runs in one step: the offer is the grant.
func (w *wire) send(first, n int) error {
	offers := make([]*proto.Offer, n)
	for i := range offers {
		offers[i] = offerOf(first + i)
		if !w.session.Reserve(offers[i].ExecutionId, offers[i].Fence, 1, len(offers[i].Input)) {
			return fmt.Errorf("the executor has no slot for run %d", first+i)
		}
	}
	w.session.SendOffers(offers)
	return nil
}

func (w *wire) receive(ctx context.Context) (int, error) {
	select {
	case n := <-w.results:
		return n, nil
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
}

func offerOf(run int) *proto.Offer {
	return &proto.Offer{
		ExecutionId: int64(run) + 1, Fence: 1, JobId: 1, JobName: "bench", Handler: handlerIdempotent, Input: []byte(`{}`),
		FireAtMs: time.Now().UnixMilli(), Attempt: 1, MaxAttempts: 1, Cause: "schedule", Granted: true,
	}
}

// judge compares what was sent with what the executor's witness saw.
func (w *wire) judge(ctx context.Context, sent int) (*Fires, error) {
	if err := pause(ctx, 2*witnessEvery); err != nil { // witnesses write a little later than they see
		return nil, err
	}
	h, err := verify.ReadPaths(w.history())
	if err != nil {
		return nil, err
	}
	out := &Fires{Expected: sent, Rows: sent}
	seen := make(map[string]bool, sent)
	for i := range h.Runs {
		if seen[h.Runs[i].Key] {
			out.Doubled++
		}
		seen[h.Runs[i].Key] = true
	}
	out.Started = len(seen)
	out.Missed = sent - out.Started
	return out, nil
}

// Finished acknowledges at once, as if results had been stored.
func (w *wire) Finished(s *gateway.Session, results []*proto.Result) {
	acks := make([]*proto.ResultAck, len(results))
	for i, r := range results {
		if r.Outcome != proto.Outcome_OUTCOME_SUCCEEDED {
			w.failed.CompareAndSwap(nil, &r.Error)
		}
		acks[i] = &proto.ResultAck{ExecutionId: r.ExecutionId, Fence: r.Fence, Code: string(store.FinishStored)}
		s.Slots.Release(r.ExecutionId, r.Fence)
	}
	s.SendAcks(acks)
	w.results <- len(results) // there are never more than its capacity under way
}

func (w *wire) Joined(s *gateway.Session) {
	select {
	case w.joined <- s:
	default: // it came back; the run fails by its budget
	}
}

func (w *wire) Left(*gateway.Session) {
	select {
	case w.left <- time.Now():
	default: // nobody waits for it
	}
}

func (w *wire) Answered(*gateway.Session, []*proto.Answer)   {}
func (w *wire) Started(*gateway.Session, []*proto.Started)   {}
func (w *wire) Freed(*gateway.Session, int)                  {}
func (w *wire) Doubted(*gateway.Session)                     {}
func (w *wire) Draining(*gateway.Session)                    {}
func (w *wire) Unheard(*gateway.Session, map[int64]int64)    {}
func (w *wire) Progress(*gateway.Session, []*proto.Progress) {}
func (w *wire) Steps(*gateway.Session, []*proto.Step)        {}

// VerifyJoinTokens lets in whoever comes: the gateway listens on loopback for
// the time of a measurement, and nothing is behind it.
func (w *wire) VerifyJoinTokens(_ context.Context, claims []domain.JoinClaim) ([]domain.JoinVerdict, error) {
	out := make([]domain.JoinVerdict, len(claims))
	for i := range out {
		out[i] = domain.JoinVerdict{Tenant: 1, Executor: 1}
	}
	return out, nil
}

func (w *wire) RegisterInstances(_ context.Context, list []store.RegisterInstanceParams) ([]store.Registration, error) {
	out := make([]store.Registration, len(list))
	for i, p := range list {
		out[i].Instance = p.Instance
	}
	return out, nil
}

func (w *wire) RenewInstances(_ context.Context, renewals []store.InstanceRenewal, _ time.Duration) (time.Time, []domain.InstanceID, error) {
	ids := make([]domain.InstanceID, len(renewals))
	for i, r := range renewals {
		ids[i] = r.ID
	}
	return time.Now(), ids, nil
}

func (w *wire) LeaveInstances(_ context.Context, list []store.InstanceLeave) []error {
	return make([]error, len(list))
}

func (w *wire) SupersedeBoots(_ context.Context, list []store.SupersedeBootsParams) []store.SupersededBoots {
	return make([]store.SupersededBoots, len(list))
}
