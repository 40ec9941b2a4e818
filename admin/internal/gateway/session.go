package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/yamux"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/proto"
)

// Session is one instance's connection to this node.
type Session struct {
	// fixed after registration
	ID         domain.SessionID
	Tenant     domain.TenantID
	Executor   domain.ExecutorID
	Instance   domain.InstanceID
	BootID     string
	Name       string
	idempotent map[string]bool // by handler name

	mux     *yamux.Session
	control outbox
	command outbox
	began   time.Time
	stir    chan struct{} // capacity 1: the pulse has to be judged; nobody closes it

	heardAt atomic.Int64 // when the last byte came, in nanoseconds since began
	doubt   atomic.Bool  // its instance does not answer
	pinging atomic.Bool
	pings   sync.WaitGroup

	mu       sync.Mutex
	slots    int                   // guarded by mu: as last reported
	reported int                   // guarded by mu: attempts running, as last reported
	surplus  int                   // guarded by mu: heartbeats in a row that told of fewer attempts than inflight has
	beats    int64                 // guarded by mu: heartbeats heard
	young    [2]int                // guarded by mu: of inflight, since the last heartbeat, and between it and the one before
	inflight map[attemptKey]flight // guarded by mu: offered here and not ended
	leased   int64                 // guarded by mu: the last heartbeat that renewed the lease
	draining bool                  // guarded by mu
	lastBeat time.Time             // guarded by mu
	pulse    pulse                 // guarded by mu
	cause    error                 // guarded by mu: why it was closed
	closed   chan struct{}         // closed once by close
}

type attemptKey struct {
	id    int64
	fence int64
}

// flight is an attempt that has a slot of the instance.
type flight struct {
	granted bool  // it was offered in one step
	lease   int64 // Session.leased when the instance was chosen
	since   time.Time
	beat    int64 // Session.beats then
}

// The first byte of each stream says what it is for.
const (
	tagControl = 'C'
	tagCommand = 'X'
)

func muxConfig() *yamux.Config {
	c := yamux.DefaultConfig()
	c.AcceptBacklog = 4
	c.KeepAliveInterval = proto.KeepAliveInterval
	c.ConnectionWriteTimeout = proto.WriteTimeout
	c.MaxStreamWindowSize = 256 << 10
	c.StreamOpenTimeout = 15 * time.Second
	c.StreamCloseTimeout = 30 * time.Second
	c.LogOutput = nil
	// yamux's own lines are about dead peers, which the session reports itself.
	c.Logger = log.New(io.Discard, "", 0)
	return c
}

// serveSession runs one authenticated connection until it ends.
func (g *Gateway) serveSession(ctx context.Context, conn net.Conn, p *peer) error {
	s := newSession(p)
	defer g.lived(s, p, s.began)
	mux, err := yamux.Server(proto.WholeFrames(deadlineConn{conn, s.hear}), muxConfig())
	if err != nil {
		return fmt.Errorf("start multiplexer: %w", err)
	}
	defer mux.Close()
	s.mux = mux
	control, command, err := acceptStreams(mux)
	if err != nil {
		return err
	}
	reader := proto.NewReader(control, proto.MaxFrame)
	registered, unheld, err := g.register(ctx, s, p, control, reader)
	if err != nil {
		return err
	}
	return g.runSession(ctx, s, p, streams{control, command, reader}, registered, unheld)
}

// streams are the two of a session; reader reads control.
type streams struct {
	control, command net.Conn
	reader           *proto.Reader
}

func newSession(p *peer) *Session {
	now := time.Now()
	return &Session{
		ID: domain.SessionID(p.session), Tenant: p.tenant, Executor: p.executor, BootID: p.hello.BootId, Name: p.hello.InstanceName,
		inflight: map[attemptKey]flight{}, idempotent: map[string]bool{}, lastBeat: now,
		began: now, pulse: pulse{heard: now}, stir: make(chan struct{}, 1), closed: make(chan struct{}),
	}
}

// acceptStreams takes the two streams that a session has, in the order in
// which the executor opens them. Their tags are read under a deadline.
func acceptStreams(mux *yamux.Session) (control, command net.Conn, err error) {
	timer := time.AfterFunc(proto.HelloTimeout, func() { _ = mux.Close() })
	defer timer.Stop()
	streams := make([]net.Conn, 2)
	for i, want := range []byte{tagControl, tagCommand} {
		st, err := mux.Accept()
		if err != nil {
			return nil, nil, fmt.Errorf("accept stream: %w", err)
		}
		var tag [1]byte
		if _, err := io.ReadFull(st, tag[:]); err != nil {
			return nil, nil, fmt.Errorf("read stream tag: %w", err)
		}
		if tag[0] != want {
			return nil, nil, fmt.Errorf("stream %d has the tag %q, want %q", i+1, tag[0], want)
		}
		streams[i] = st
	}
	return streams[0], streams[1], nil
}

// register reads the Register frame and enters the instance.
func (g *Gateway) register(ctx context.Context, s *Session, p *peer, control net.Conn, reader *proto.Reader) (*proto.Registered, *store.EndUnheldParams, error) {
	_ = control.SetReadDeadline(time.Now().Add(proto.HelloTimeout))
	var first proto.ControlToAdmin
	if err := reader.Next(&first); err != nil {
		return nil, nil, fmt.Errorf("read registration: %w", err)
	}
	_ = control.SetReadDeadline(time.Time{})
	reg := first.GetRegister()
	refuse := func(code, message string, retryAfter int64) error {
		_ = proto.WriteFrame(control, &proto.ControlToExecutor{Body: &proto.ControlToExecutor_Error{
			Error: &proto.Error{Code: code, Message: message, RetryAfterMs: retryAfter},
		}}, proto.MaxFrame)
		return fmt.Errorf("registration refused: %s", message)
	}
	fail := func(code, message string) error { return refuse(code, message, -1) }
	if reg == nil {
		return nil, nil, fail("malformed", "the first control frame must be Register")
	}
	if message := checkRegister(reg); message != "" {
		return nil, nil, fail("malformed", message)
	}
	if err := g.refuseFlapping(p.hello, reg.InstanceName); err != nil { // of an SDK whose hello does not name it
		s.Name = "" // it has not lived
		code, retry := helloCode(err)
		return nil, nil, refuse(code, err.Error(), retry)
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	leave, err := g.enter(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer leave()
	build, err := buildOf(p, reg)
	if err != nil {
		return nil, nil, err
	}
	instance, err := g.opt.Fleet.RegisterInstance(ctx, store.RegisterInstanceParams{
		Instance: instanceOf(g.opt.NewID(), p, reg, build.Digest), Handlers: handlersOf(p, reg), Build: build, TTL: proto.LeaseTTL,
	})
	if err != nil {
		return nil, nil, fmt.Errorf("register instance: %w", err)
	}
	s.Instance, s.Name = instance.ID, instance.Name
	s.slots, s.draining = int(reg.Slots), reg.Draining
	for _, h := range reg.Handlers {
		s.idempotent[h.Name] = h.Idempotent
	}
	out := &proto.Registered{
		Verdicts:   g.settle(ctx, s, reg.Inventory),
		InstanceId: int64(instance.ID), HeartbeatIntervalMs: proto.HeartbeatInterval.Milliseconds(),
		LeaseTtlMs: proto.LeaseTTL.Milliseconds(), Nodes: g.nodeList(),
	}
	if len(reg.SupersededBoots) > 0 {
		g.supersede(ctx, s, reg)
	}
	if g.opt.Declarer != nil {
		out.Notices = g.opt.Declarer.Declare(ctx, p.tenant, p.executor, build.Digest)
	}
	return out, unheldOf(s, p, reg, instance), nil
}

// supersedeGrace is how long results from a taken-over journal may take before
// their attempts are judged without them.
const supersedeGrace = 3 * time.Second

// supersede ends the boots whose journal this process holds the lock of: the
// kernel gives it to nobody while they live. What the journal owes no result
// for has ended with them.
func (g *Gateway) supersede(ctx context.Context, s *Session, reg *proto.Register) {
	p := store.SupersedeBootsParams{
		Tenant: s.Tenant, Executor: s.Executor, BootIDs: reg.SupersededBoots, Grace: supersedeGrace,
		OwedComplete: reg.OwedComplete && len(reg.Owed) <= proto.MaxOwed,
	}
	for _, item := range reg.Owed {
		p.Owed = append(p.Owed, domain.ExecutionID(item.ExecutionId))
	}
	ended, err := g.opt.Fleet.SupersedeBoots(ctx, p)
	if err != nil {
		// Their leases run out by themselves; this was only quicker.
		g.log.Warn("could not end superseded boots", "instance_id", s.Instance, "err", err)
		return
	}
	for _, id := range ended {
		if old := g.registry.byInstance(id); old != nil {
			old.close(errors.New("a newer process took over its journal"))
		}
	}
}

// runSession serves a registered session: one reader per stream, one writer
// per stream. It returns when all of them have ended.
func (g *Gateway) runSession(ctx context.Context, s *Session, p *peer, io streams, registered *proto.Registered, unheld *store.EndUnheldParams) error {
	s.control.init(io.control)
	s.command.init(io.command)
	if old := g.registry.add(s); old != nil {
		old.close(errors.New("the same process connected again"))
	}
	if g.epoch.Load() != p.epoch {
		s.close(errRenewed)
	}
	s.sendControl(&proto.ControlToExecutor{Body: &proto.ControlToExecutor_Registered{Registered: registered}})
	if g.isDraining() {
		s.sendControl(&proto.ControlToExecutor{Body: &proto.ControlToExecutor_Drain{Drain: &proto.Drain{Reason: "admin node stops"}}})
	}
	g.log.Info("executor joined", "executor_id", s.Executor, "instance_id", s.Instance, "instance", s.Name, "session", s.ID, "slots", s.slots)

	var wg sync.WaitGroup
	run := func(what string, f func() error) {
		wg.Go(func() {
			if err := f(); err != nil {
				s.close(fmt.Errorf("%s: %w", what, err))
			}
		})
	}
	run("write control", s.control.run)
	run("write commands", s.command.run)
	run("read control", func() error { return g.readControl(ctx, s, io.reader) })
	run("read commands", func() error { return g.readCommands(s, io.command) })
	run("watch", func() error { return g.watch(ctx, s) })
	if unheld != nil && g.opt.Inventory != nil {
		g.conns.Go(func() { g.endUnheld(ctx, s, *unheld) }) // may outlast the session by one look
	}
	g.opt.Sink.Joined(s)

	<-s.closed
	_ = s.mux.Close()
	s.control.stop()
	s.command.stop()
	wg.Wait()
	s.pings.Wait()
	g.registry.remove(s)
	g.opt.Sink.Left(s)
	return s.err()
}

func (s *Session) close(cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cause == nil {
		s.cause = cause
		close(s.closed)
	}
}

func (s *Session) err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cause
}

func (s *Session) serves(handler string) bool {
	_, ok := s.idempotent[handler]
	return ok
}

// Idempotent reports whether the instance registered the handler as idempotent.
func (s *Session) Idempotent(handler string) bool { return s.idempotent[handler] }

func (s *Session) isDraining() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.draining || s.cause != nil
}

// Free returns how many more attempts the instance can take, as far as this
// node knows: what it offered itself, or what the instance reported to run for
// all nodes, whichever is more.
func (s *Session) Free() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.slots - s.occupied()
}

// Closed reports whether the session has ended.
func (s *Session) Closed() bool {
	select {
	case <-s.closed:
		return true
	default:
		return false
	}
}

// Offered returns the fences of the attempts that were offered here in two
// steps and have not ended, by execution id. (One-step attempts run already.)
func (s *Session) Offered() map[int64]int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make(map[int64]int64, len(s.inflight))
	for k, f := range s.inflight {
		if !f.granted {
			out[k.id] = k.fence
		}
	}
	return out
}

func checkRegister(r *proto.Register) string {
	switch {
	case r.Slots < 1 || r.Slots > 100_000:
		return "slots must be from 1 to 100000"
	case len(r.Handlers) > proto.MaxHandlers:
		return fmt.Sprintf("at most %d handlers can be registered", proto.MaxHandlers)
	case len(r.InstanceName) > proto.MaxName || len(r.Host) > 255 || len(r.AppVersion) > proto.MaxName:
		return "instance_name, host or app_version is too long"
	case len(r.Labels) > 64 || len(r.SupersededBoots) > 1000:
		return "too many labels or superseded boots"
	}
	for _, h := range r.Handlers {
		if h.Name == "" || len(h.Name) > proto.MaxName {
			return fmt.Sprintf("handler name %q must have 1 to %d bytes", h.Name, proto.MaxName)
		}
	}
	return ""
}

func instanceOf(id int64, p *peer, r *proto.Register, build string) domain.Instance {
	names := make([]string, 0, len(r.Handlers))
	for _, h := range r.Handlers {
		names = append(names, h.Name)
	}
	slices.Sort(names)
	return domain.Instance{
		ID: domain.InstanceID(id), TenantID: p.tenant, Executor: p.executor, BootID: p.hello.BootId,
		Name: r.InstanceName, Host: r.Host, PID: int(r.Pid), AppVersion: r.AppVersion, Build: build, Client: p.hello.Client,
		Labels: r.Labels, Handlers: names, Slots: int(r.Slots), Draining: r.Draining,
		StartedAt: time.UnixMilli(r.StartedAtMs).UTC(),
	}
}

func handlersOf(p *peer, r *proto.Register) []domain.Handler {
	out := make([]domain.Handler, 0, len(r.Handlers))
	for _, h := range r.Handlers {
		out = append(out, domain.Handler{
			TenantID: p.tenant, Executor: p.executor, Name: h.Name, Description: h.Description,
			InputSchema: h.InputSchema, OutputSchema: h.OutputSchema, Idempotent: h.Idempotent,
		})
	}
	return out
}
