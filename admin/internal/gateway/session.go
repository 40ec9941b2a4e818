package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/yamux"
	"golang.org/x/time/rate"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/panics"
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
	Labels     map[string]string
	idempotent map[string]bool // by handler name
	serial     string          // of its certificate; empty = it has none
	local      bool            // its executor is in this process

	mux        *yamux.Session
	socket     net.Conn // below mux and TLS: closing it ends everything, and waits for nobody
	control    outbox
	command    outbox
	began      time.Time
	retires    time.Time // when it is old enough to be replaced
	watch      watch
	wakeSettle func() // of the gateway
	account    *account
	Slots      Slots
	logRate    *rate.Limiter // of all its log connections

	heardAt atomic.Int64 // when the last byte came, in nanoseconds since began
	doubt   atomic.Bool  // its instance does not answer
	pinging atomic.Bool
	pings   sync.WaitGroup
	// owned by the watch
	doubtedAt time.Duration // when it looked last and its instance did not answer, since began
	logs      atomic.Int32  // its log connections

	mu         sync.Mutex    // guards also what changes of Slots
	cpu        int           // guarded by mu: in thousandths of what it may use, as last reported; 0 = unknown
	memory     int           // guarded by mu: likewise
	draining   bool          // guarded by mu
	drainsAt   time.Time     // guarded by mu: when that was heard
	drainedAt  time.Time     // guarded by mu: when it was heard that somebody drains it; zero = nobody
	refusing   bool          // guarded by mu; it has no room, whatever its slots say
	retiring   bool          // guarded by mu: it gets no more offers, and is replaced
	results    outstanding   // guarded by mu: without their acknowledgement
	steps      outstanding   // guarded by mu: without their answer
	unexpected allowance     // guarded by mu: of answers to what was not offered through this session
	ungranted  int           // guarded by mu: acceptances without their grant, about
	idle       idle          // guarded by mu
	cause      error         // guarded by mu: why it was closed
	closed     chan struct{} // closed once by close
}

type attemptKey struct {
	id    int64
	fence int64
}

// reservation is an attempt that has slots of the instance.
type reservation struct {
	granted bool          // it was offered in one step
	lease   int64         // Slots.leased when the instance was chosen
	leaseAt time.Duration // Slots.leasedAt then
	since   time.Time
	// startable is until when the instance starts it at most, since Session.began;
	// 0 = that is not known, or somebody else has the run by now.
	startable time.Duration
	beat      int64 // Occupancy.beats then
	weight    int   // slots
	loading   int   // bytes of its offer that have not been written
	// answered: the instance has said whether it takes it.
	answered bool
}

// The first byte of each stream says what it is for.
const (
	tagControl = 'C'
	tagCommand = 'X'
)

func muxConfig() *yamux.Config {
	c := yamux.DefaultConfig()
	c.AcceptBacklog = 4
	// The idle policy pings when nothing is heard, and sooner than this would.
	c.EnableKeepAlive = false
	c.ConnectionWriteTimeout = proto.WriteTimeout
	c.MaxStreamWindowSize = 256 << 10
	c.StreamOpenTimeout = 15 * time.Second
	c.StreamCloseTimeout = 30 * time.Second
	c.LogOutput = nil
	// yamux's own lines are about dead peers, which the session reports itself.
	c.Logger = log.New(io.Discard, "", 0)
	return c
}

// serveSession runs one authenticated connection until it ends; raw is what
// lies below conn.
func (g *Gateway) serveSession(ctx context.Context, raw, conn net.Conn, p *peer) error {
	s := g.newSession(p, raw)
	defer g.lived(s, p)
	mux, err := yamux.Server(proto.WholeFrames(&guardedConn{Conn: conn, heard: s.hear, broken: func(err error) { g.refuser.flooded(conn, p, s, err) }}), muxConfig())
	if err != nil {
		return fmt.Errorf("start multiplexer: %w", err)
	}
	defer mux.Close()
	s.mux = mux
	io, err := acceptStreams(mux)
	if err != nil {
		return s.because(err)
	}
	registered, orphanCheck, err := g.register(ctx, s, p, io)
	p.seat.registered()
	if err != nil {
		return s.because(err)
	}
	return g.runSession(ctx, s, p, io, registered, orphanCheck)
}

// streams are the two of a session; reader reads control.
type streams struct {
	control, command *yamux.Stream
	reader           *proto.Reader
}

func (g *Gateway) newSession(p *peer, socket net.Conn) *Session {
	now := time.Now()
	s := &Session{
		ID: domain.SessionID(p.session), Tenant: p.tenant, Executor: p.executor, BootID: p.hello.BootId, Name: p.hello.InstanceName, serial: p.serial, local: p.local != nil, socket: socket, wakeSettle: g.wakeSettle, account: p.seat.account,
		logRate:    rate.NewLimiter(logRate, logBurst),
		idempotent: map[string]bool{},
		began:      now, retires: now.Add(g.lifetime(p)), idle: idle{heard: now, beatAt: now}, closed: make(chan struct{}), results: newOutstanding(), steps: newOutstanding(),
	}
	s.Slots = Slots{began: now, mu: &s.mu}
	return s
}

// lifetime is how long a session may last: each one for itself, so that those
// that came together after a restart do not go together.
func (g *Gateway) lifetime(p *peer) time.Duration {
	d := g.opt.RecycleAfter
	d -= rand.N(d/5 + 1)
	if p.serial != "" {
		d = max(0, min(d, time.Until(p.until)-retirement))
	}
	return d
}

// acceptStreams takes the two streams that a session has, in the order in
// which the executor opens them. Their tags are read under a deadline.
func acceptStreams(mux *yamux.Session) (out streams, err error) {
	timer := time.AfterFunc(proto.HelloTimeout, func() { _ = mux.Close() })
	defer timer.Stop()
	accepted := make([]*yamux.Stream, 2)
	for i, want := range []byte{tagControl, tagCommand} {
		st, err := mux.AcceptStream()
		if err != nil {
			return out, fmt.Errorf("accept stream: %w", err)
		}
		var tag [1]byte
		if _, err := io.ReadFull(st, tag[:]); err != nil {
			return out, fmt.Errorf("read stream tag: %w", err)
		}
		if tag[0] != want {
			return out, fmt.Errorf("stream %d has the tag %q, want %q", i+1, tag[0], want)
		}
		accepted[i] = st
	}
	return streams{accepted[0], accepted[1], proto.NewReader(accepted[0], proto.MaxFrame)}, nil
}

// runSession serves a registered session: this goroutine reads the control
// stream, another one the commands. It returns when both have ended, and what
// they began.
func (g *Gateway) runSession(ctx context.Context, s *Session, p *peer, io streams, registered *proto.Registered, orphanCheck *store.EndOrphansParams) error {
	s.control.init(io.control, func(err error) { s.close(fmt.Errorf("write control: %w", err)) }, g.wakeSettle)
	s.command.init(io.command, func(err error) { s.close(fmt.Errorf("write commands: %w", err)) }, g.wakeSettle)
	s.command.sent = func(part []bulk) {
		if s.Slots.loaded(part) {
			g.opt.Sink.Freed(s, s.Free())
		}
	}
	s.watch.start(func() (again time.Duration) {
		if err := panics.Catch(func() error { again = g.watcher.look(s); return nil }); err != nil {
			s.close(err)
			return proto.HeartbeatTimeout
		}
		return again
	})
	g.tally.opened.Add(1)
	defer g.tally.ended.Add(1)
	from := addressOf(s.socket.RemoteAddr())
	g.admission.seen(from, s.Tenant)
	defer g.admission.seen(from, s.Tenant)
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
	g.log.Info("executor joined", "executor_id", s.Executor, "instance_id", s.Instance, "instance", s.Name, "session", s.ID, "slots", s.Slots.occupancy.slots)
	if orphanCheck != nil && g.opt.Inventory != nil {
		g.tasks.spawn(func() error { g.inventories.endOrphans(ctx, s, *orphanCheck); return nil }) // may outlast the session by one look
	}
	g.opt.Sink.Joined(s)

	var commands sync.WaitGroup
	commands.Go(func() {
		s.closeForFault(io.command, fmt.Errorf("read commands: %w", panics.Catch(func() error { return g.intake.readCommands(s, io.command) })))
	})
	s.closeForFault(io.control, fmt.Errorf("read control: %w", panics.Catch(func() error { return g.intake.readControl(ctx, s, io) })))

	_ = s.mux.Close()
	s.watch.stop()
	s.control.stop()
	s.command.stop()
	commands.Wait()
	s.pings.Wait()
	g.registry.remove(s)
	g.opt.Sink.Left(s)
	g.tasks.spawn(func() error { g.watcher.reclaimEnded(ctx, s); return nil }) // outlasts the session by a second or so
	g.wakeSettle()
	return s.err()
}

// close ends the session; only the first cause is kept. It does not wait.
func (s *Session) close(cause error) {
	s.mu.Lock()
	first := s.cause == nil
	if first {
		s.cause = cause
		close(s.closed)
	}
	s.mu.Unlock()
	if first {
		_ = s.socket.Close() // the readers return, and clear up
	}
}

// because is err, or the reason why the session was closed before.
func (s *Session) because(err error) error {
	if cause := s.err(); cause != nil {
		return cause
	}
	return err
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

// drainLocked notes that the instance takes nothing more. mu is held.
func (s *Session) drainLocked() {
	if !s.draining {
		s.draining, s.drainsAt = true, time.Now()
	}
}

// drainingFor is how long ago that was heard; 0 when it takes runs.
func (s *Session) drainingFor() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.draining && (s.drainedAt.IsZero() || s.drainsAt.Before(s.drainedAt)):
		return time.Since(s.drainsAt)
	case !s.drainedAt.IsZero():
		return time.Since(s.drainedAt)
	}
	return 0
}

func (s *Session) isDraining() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.draining || s.retiring || s.cause != nil || !s.drainedAt.IsZero()
}

// Drained reports whether somebody wants the instance to take nothing new; a process
// that drains by itself refuses what it does not start.
func (s *Session) Drained() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.drainedAt.IsZero()
}

// Free returns how many slots of the instance are free, as far as this node
// knows: beside what it offered itself, or what the instance reported to run for
// all nodes, whichever is more.
func (s *Session) Free() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refusing || s.Slots.queueFull || !s.drainedAt.IsZero() {
		return 0
	}
	return s.Slots.occupancy.Free()
}

// Refusing reports whether the instance takes nothing because its journal cannot
// be written.
func (s *Session) Refusing() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refusing
}

// Taken returns how many slots are taken, and of how many.
func (sl *Slots) Taken() (taken, of int) {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	return sl.occupancy.Occupied(), sl.occupancy.slots
}

// Load returns how much of its slots, CPU and memory the instance uses, each in
// thousandths of what it has; 0 for what it does not report.
func (s *Session) Load() (slots, cpu, memory int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Slots.occupancy.Occupied() * 1000 / max(s.Slots.occupancy.slots, 1), s.cpu, s.memory
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
func (sl *Slots) Offered() map[int64]int64 {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	out := make(map[int64]int64, len(sl.inflight))
	for k, f := range sl.inflight {
		if !f.granted {
			out[k.id] = k.fence
		}
	}
	return out
}
