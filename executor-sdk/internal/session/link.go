package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/yamux"

	"github.com/carillon-sched/carillon/proto"
)

// The first byte on each stream says what it carries.
const (
	tagControl = 'C'
	tagCommand = 'X'
)

// chunk bounds one write on a stream, in bytes. Larger ones would delay the
// pings and the other stream behind them in yamux's single queue.
const chunk = 16 << 10

// Events is what a session tells. Its methods are called from the session's
// reading goroutines and must not wait.
type Events interface {
	// Register makes the registration for a new session.
	Register() *proto.Register
	// Load fills the heartbeat, except for its number.
	Load() *proto.Heartbeat
	// Up comes first for every session, with the answer to the registration
	// that was sent at sentAt; Down comes last.
	Up(l *Link, sentAt time.Time, reply *proto.Registered)
	Down(l *Link)
	// Renewed tells that a heartbeat sent at sentAt was answered, and whether
	// the node renewed the lease.
	Renewed(l *Link, sentAt time.Time, ok bool)
	Verdicts(l *Link, list []*proto.InventoryVerdict)
	Offers(l *Link, list []*proto.Offer)
	Grants(l *Link, list []*proto.Grant)
	Cancels(l *Link, list []*proto.Cancel)
	Acks(l *Link, list []*proto.ResultAck)
	StepAcks(l *Link, list []*proto.StepAck)
}

var (
	errSilent     = errors.New("no heartbeat was answered in time")
	errExtra      = errors.New("the admin opened a stream of its own")
	errAdminLeft  = errors.New("the admin closed the session")
	errCut        = errors.New("the connection ended without a word from the admin: its process was killed, or something on the way closed it")
	errDuplicate  = errors.New("a session to this node stands already")
	errRegistered = errors.New("the admin sent no answer to the registration")
)

// Link is one registered session to one admin node.
type Link struct {
	// Fixed after construction.
	address   string
	node      string
	id        int64 // session id, which a log connection has to name
	events    Events
	logger    *slog.Logger
	conn      net.Conn
	cut       *cutConn // below session
	session   *yamux.Session
	control   *yamux.Stream
	command   *yamux.Stream
	reader    *proto.Reader // of control
	interval  time.Duration // between heartbeats
	outbox    *outbox
	beatNow   chan struct{} // capacity 1: send a heartbeat at once; nobody closes it
	retime    chan struct{} // capacity 1: the next heartbeat is due at another time; nobody closes it
	onNodes   func([]*proto.Node)
	onWake    func()
	onOffers  func()
	isParked  func(node string) bool
	drainSent sync.Once

	adminDrains atomic.Bool // the admin said that it is going

	writeMu sync.Mutex // serialises frames on control

	askMu  sync.Mutex
	asking []*proto.InventoryItem // guarded by askMu: to be sent before the next heartbeat

	mu    sync.Mutex          // guards what follows
	sent  map[int64]time.Time // heartbeats without an answer yet, by number
	beats []beatAt            // all of them, by number, but for old ones
	seq   int64
	err   error // why the session ended; the first one counts

	beatAt    time.Time // when the last heartbeat was sent
	restUntil time.Time // the node wants none before; zero = it has not said so
	stirred   bool      // something was offered since the last one, to this session or another
}

// Node returns the id of the node at the other end.
func (l *Link) Node() string { return l.node }

// Answer, Accept, Started and Results queue messages for the admin. What was
// accepted and started goes with whatever goes next: nobody waits for it, and a
// write of its own would cost both ends more than the message.
func (l *Link) Answer(list []*proto.Answer)   { l.outbox.put(list, nil, nil) }
func (l *Link) Accept(list []*proto.Answer)   { l.outbox.putDeferred(list, nil) }
func (l *Link) Started(list []*proto.Started) { l.outbox.putDeferred(nil, list) }
func (l *Link) Results(list []*proto.Result)  { l.outbox.put(nil, nil, list) }

// Progress and Steps queue what running handlers tell and ask.
func (l *Link) Progress(list []*proto.Progress) { l.outbox.putProgress(list, nil) }
func (l *Link) Steps(list []*proto.Step)        { l.outbox.putProgress(nil, list) }

// Ask queues attempts for the node to judge.
func (l *Link) Ask(list []*proto.InventoryItem) {
	l.askMu.Lock()
	l.asking = append(l.asking, list...)
	l.askMu.Unlock()
	select {
	case l.beatNow <- struct{}{}:
	default:
	}
}

func yamuxConfig(logger *slog.Logger) *yamux.Config {
	c := yamux.DefaultConfig()
	c.AcceptBacklog = 8
	c.EnableKeepAlive = false // heartbeats ask more, and as often
	c.ConnectionWriteTimeout = proto.WriteTimeout
	c.MaxStreamWindowSize = 256 << 10
	c.StreamOpenTimeout = 15 * time.Second
	c.StreamCloseTimeout = 30 * time.Second
	c.LogOutput = nil
	c.Logger = slog.NewLogLogger(logger.Handler(), slog.LevelDebug)
	return c
}

// open turns a greeted connection into a session and registers. It closes
// conn when it fails.
func (l *Link) open(ctx context.Context) (reply *proto.Registered, sentAt time.Time, err error) {
	l.cut = &cutConn{Conn: l.conn}
	if l.session, err = yamux.Client(proto.WholeFrames(l.cut), yamuxConfig(l.logger)); err != nil {
		_ = l.conn.Close()
		return nil, sentAt, err
	}
	defer func() {
		if err != nil {
			_ = l.session.Close()
		}
	}()
	defer closeOn(ctx, l.conn)()
	if l.control, err = l.session.OpenStream(); err != nil {
		return nil, sentAt, fmt.Errorf("open control stream: %w", err)
	}
	if l.command, err = l.session.OpenStream(); err != nil {
		return nil, sentAt, fmt.Errorf("open command stream: %w", err)
	}
	sentAt = time.Now()
	l.beats = append(l.beats, beatAt{0, sentAt, sentAt})
	body := &proto.ControlToAdmin{Body: &proto.ControlToAdmin_Register{Register: l.events.Register()}}
	first, err := proto.AppendFrame([]byte{tagControl}, body, proto.MaxFrame)
	if err != nil {
		return nil, sentAt, fmt.Errorf("register: %w", err)
	}
	if err := writeChunks(l.control, first); err != nil {
		return nil, sentAt, fmt.Errorf("register: %w", err)
	}
	if err := writeChunks(l.command, []byte{tagCommand}); err != nil {
		return nil, sentAt, fmt.Errorf("register: %w", err)
	}
	reply, err = l.registered()
	return reply, sentAt, err
}

// registered waits for the answer to the registration.
func (l *Link) registered() (*proto.Registered, error) {
	if err := l.control.SetReadDeadline(time.Now().Add(proto.HelloTimeout)); err != nil {
		return nil, err
	}
	l.reader = proto.NewReader(l.control, proto.MaxFrame)
	var reply proto.ControlToExecutor
	if err := l.reader.Next(&reply); err != nil {
		if errors.Is(err, io.EOF) {
			err = l.howItEnded()
		}
		return nil, fmt.Errorf("register: %w", err)
	}
	if e := reply.GetError(); e != nil {
		return nil, refusal(e)
	}
	if reply.GetRegistered() == nil {
		return nil, errRegistered
	}
	return reply.GetRegistered(), l.control.SetReadDeadline(time.Time{})
}

// run serves the session until it ends or ctx does, and says why. All its
// goroutines have ended when it returns.
func (l *Link) run(ctx context.Context) error {
	done := make(chan struct{})
	stop := context.AfterFunc(ctx, func() { l.fail(context.Cause(ctx)) })
	defer stop()
	var wait sync.WaitGroup
	for _, loop := range []func(done <-chan struct{}) error{
		l.readControl, l.readCommand, l.beat, l.write, l.refuseStreams,
	} {
		wait.Go(func() { l.fail(loop(done)) })
	}
	<-l.session.CloseChan()
	close(done)
	wait.Wait()
	// yamux closed the session by itself, or fail did; Close waits for its end.
	_ = l.session.Close()
	_ = l.conn.Close()
	l.outbox.close()
	l.mu.Lock()
	defer l.mu.Unlock()
	if errors.Is(l.err, errAdminLeft) {
		l.err = l.howItEnded()
	}
	return l.err
}

// howItEnded tells what became of a session that neither side ended with a
// reason. An admin that goes on purpose says so before.
func (l *Link) howItEnded() error {
	cause := l.cut.cause()
	switch {
	case cause == nil || l.adminDrains.Load():
		return errAdminLeft
	case errors.Is(cause, io.EOF):
		return errCut
	default:
		return fmt.Errorf("the connection to the admin broke: %w", cause)
	}
}

// cutConn keeps the first error of the connection that is not its own end here:
// the multiplexer only tells its streams that they have ended. An end of the
// stream gives way to another error: the kernel tells a reset to the reader or
// to the writer, and an end to the other of them.
type cutConn struct {
	net.Conn
	err atomic.Pointer[error]
}

func (c *cutConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	return n, c.keep(err)
}

func (c *cutConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	return n, c.keep(err)
}

func (c *cutConn) keep(err error) error {
	if err != nil && !errors.Is(err, net.ErrClosed) {
		if first := c.err.Load(); first == nil || errors.Is(*first, io.EOF) {
			c.err.CompareAndSwap(first, &err)
		}
	}
	return err
}

func (c *cutConn) cause() error {
	if err := c.err.Load(); err != nil {
		return *err
	}
	return nil
}

// fail ends the session for the reason err; only the first reason is kept. What
// the admin gave as its reason counts more than that it then closed the session,
// which another loop may see before the reason is read.
func (l *Link) fail(err error) {
	if err == nil || errors.Is(err, yamux.ErrSessionShutdown) || errors.Is(err, yamux.ErrStreamClosed) {
		err = errAdminLeft // a write that came after the end tells only that it came too late
	}
	said := errors.As(err, new(*RefusedError))
	l.mu.Lock()
	if l.err == nil || said && errors.Is(l.err, errAdminLeft) {
		l.err = err
	}
	l.mu.Unlock()
	// Not l.session.Close at first: it waits for its reader, which waits for
	// the connection.
	_ = l.conn.Close()
	_ = l.session.Close()
}

// goAway ends the session in good order: what is queued was written before.
func (l *Link) goAway() { l.goAwayFor(errStopped) }

func (l *Link) goAwayFor(reason error) {
	_ = l.session.GoAway()
	l.fail(reason)
}

var errStopped = errors.New("the executor stopped")

// writeChunks writes all of p in pieces that leave room for others. Any error
// means that the session has to end.
func writeChunks(s *yamux.Stream, p []byte) error {
	for len(p) > 0 {
		if err := s.SetWriteDeadline(time.Now().Add(proto.WriteTimeout)); err != nil {
			return err
		}
		n, err := s.Write(p[:min(chunk, len(p))])
		if err != nil {
			return err
		}
		p = p[n:]
	}
	return nil
}

// write sends what the outbox collects.
func (l *Link) write(done <-chan struct{}) error {
	var buf []byte
	for {
		select {
		case <-done:
			return nil
		case <-l.outbox.wake:
		}
		var err error
		if buf, err = l.outbox.drain(buf[:0]); err != nil {
			return err
		}
		hitAll(l.outbox.points, ".before")
		if err := writeChunks(l.command, buf); err != nil {
			return fmt.Errorf("write command: %w", err)
		}
		hitAll(l.outbox.points, ".after")
		if cap(buf) > 1<<20 {
			buf = nil // a rare large result must not stay in memory
		}
	}
}

// readCommand hands over what the admin sends on the command stream.
func (l *Link) readCommand(<-chan struct{}) error {
	reader := proto.NewReader(l.command, proto.MaxFrame)
	for {
		var m proto.CommandToExecutor
		if err := reader.Next(&m); err != nil {
			return readError("command", err)
		}
		switch body := m.GetBody().(type) {
		case *proto.CommandToExecutor_Offers:
			l.events.Offers(l, body.Offers.GetOffers())
			l.onOffers() // heartbeats that it asks for know of them
		case *proto.CommandToExecutor_Grants:
			l.events.Grants(l, body.Grants.GetGrants())
		case *proto.CommandToExecutor_Cancels:
			l.events.Cancels(l, body.Cancels.GetCancels())
		case *proto.CommandToExecutor_Acks:
			l.events.Acks(l, body.Acks.GetAcks())
		case *proto.CommandToExecutor_StepAcks:
			l.events.StepAcks(l, body.StepAcks.GetAcks())
		}
		// Anything else is from a newer version and asks nothing of this one.
	}
}

func readError(stream string, err error) error {
	if errors.Is(err, io.EOF) {
		return errAdminLeft
	}
	return fmt.Errorf("read %s: %w", stream, err)
}

// refuseStreams ends the session when the admin opens a stream: only the
// executor does, and an unaccepted one would cost the session a minute later.
func (l *Link) refuseStreams(<-chan struct{}) error {
	if _, err := l.session.AcceptStream(); err == nil {
		return errExtra
	}
	return nil
}
