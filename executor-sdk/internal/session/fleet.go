package session

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/carillon-sched/carillon/proto"
)

// Options of NewFleet.
type Options struct {
	// Addresses to begin with, host:port.
	Addresses []string
	Token     string
	Executor  string
	Instance  string // its name
	Boot      string
	Client    string
	// TLS is nil for plain TCP.
	TLS *tls.Config
	// Dial opens connections; nil: TCP.
	Dial   func(ctx context.Context, address string) (net.Conn, error)
	Logger *slog.Logger
	// IdleAfter: with nothing to do for so long, one session stays; 0 = all do.
	IdleAfter time.Duration
	Events    Events
	// Refused, if set, is told when a node says no. It must not block.
	Refused func(*RefusedError)
}

// Fleet holds one session to every admin node.
//
// A target is an address it tries: either a seed (from the configuration) or a
// node (from the node list). A node has its own target once it is listed; the
// seeds rest then, and wake up when no session has stood for a while, since
// the list may be out of date, or hold addresses that cannot be reached from here.
type Fleet struct {
	options Options
	badge   *badge

	mu       sync.Mutex       // guards what follows
	claimed  map[string]*Link // node → its session, registered or about to be
	ready    []*Link          // registered
	opened   uint64           // how many ever were registered
	nodes    map[string]*target
	seeds    map[string]bool // addresses that have a target: of the configuration, and of cells that the tenant moved to
	changed  chan struct{}   // closed and replaced when claimed or nodes change
	aloneAt  time.Time       // since when there is no session
	refused  error           // why the last try failed; nil after a success
	group    sync.WaitGroup
	ctx      context.Context // of Run
	left     bool            // Leave was called
	parked   string          // the only node that keeps its session; empty: all do
	activeAt time.Time       // when there was something to do
}

// NewFleet returns a Fleet that connects while Run runs.
func NewFleet(o Options) *Fleet {
	if o.Dial == nil {
		o.Dial = dialTCP
	}
	return &Fleet{
		options: o, badge: newBadge(), claimed: map[string]*Link{}, nodes: map[string]*target{}, seeds: map[string]bool{},
		changed: make(chan struct{}), aloneAt: time.Now(), activeAt: time.Now(),
		refused: errors.New("not connected yet"),
	}
}

// Run keeps the sessions until ctx ends, and returns when all have ended.
func (f *Fleet) Run(ctx context.Context) {
	f.mu.Lock()
	f.ctx = ctx
	for _, address := range f.options.Addresses {
		f.seedLocked(address)
	}
	f.group.Go(func() { f.keepBadge(ctx) })
	if f.options.IdleAfter > 0 {
		f.group.Go(func() { f.watchIdle(ctx) })
	}
	f.mu.Unlock()
	<-ctx.Done()
	f.group.Wait()
}

// serve holds one session with t from dialling to its end.
func (f *Fleet) serve(ctx context.Context, t *target) error {
	address := f.addressOf(t)
	link, reply, sentAt, err := f.connect(ctx, t, address)
	if err != nil {
		return err
	}
	t.told = ""
	f.options.Logger.Info("connected to admin node", "node", link.node, "address", address)
	f.options.Events.Up(link, sentAt, reply)
	f.setNodes(reply.GetNodes().GetNodes())
	err = link.run(ctx)
	f.forget(link)
	f.options.Events.Down(link)
	return err
}

func (f *Fleet) connect(ctx context.Context, t *target, address string) (*Link, *proto.Registered, time.Time, error) {
	conn, hello, err := f.introduce(ctx, address, proto.Purpose_PURPOSE_CONTROL, 0)
	if err != nil {
		return nil, nil, time.Time{}, err
	}
	if hello.GetNodeId() == "" {
		_ = conn.Close()
		return nil, nil, time.Time{}, errors.New("hello: the admin gave no node id")
	}
	link := &Link{
		address: address, node: hello.GetNodeId(), id: hello.GetSessionId(),
		events: f.options.Events, logger: f.options.Logger.With("node", hello.GetNodeId()), conn: conn,
		outbox: newOutbox(), beatNow: make(chan struct{}, 1), retime: make(chan struct{}, 1), onNodes: f.setNodes,
		onWake: f.wake, onOffers: f.offered, isParked: f.parkedAt,
		sent: map[int64]time.Time{},
	}
	if !f.claim(t, link) {
		_ = conn.Close()
		return nil, nil, time.Time{}, errDuplicate
	}
	reply, sentAt, err := link.open(ctx)
	if err != nil {
		f.forget(link)
		return nil, nil, time.Time{}, err
	}
	f.admit(link)
	link.interval = time.Duration(reply.GetHeartbeatIntervalMs()) * time.Millisecond
	if link.interval <= 0 {
		link.interval = proto.HeartbeatInterval
	}
	return link, reply, sentAt, nil
}

// introduce opens a connection and says who we are; with a certificate if the
// admin wants one, which it is asked for first.
func (f *Fleet) introduce(ctx context.Context, address string, purpose proto.Purpose, session int64) (net.Conn, *proto.ServerHello, error) {
	for try := 0; ; try++ {
		conn, shown, err := f.dial(ctx, address)
		if err != nil {
			return nil, nil, err
		}
		hello, err := f.greet(ctx, conn, f.hello(purpose, session, shown), shown)
		if try == 0 && wantsCertificate(hello, err) {
			enrolled := f.enroll(ctx, address, shown)
			if enrolled == nil {
				_ = conn.Close()
				continue
			}
			if err == nil { // it may go on without one
				f.options.Logger.Warn("the admin offers certificates, and this process got none", "address", address, "err", enrolled)
			} else {
				err = enrolled
			}
		}
		if err != nil {
			_ = conn.Close()
			return nil, nil, err
		}
		return conn, hello, nil
	}
}

// dial connects to address; shown is the certificate that the admin has seen.
func (f *Fleet) dial(ctx context.Context, address string) (conn net.Conn, shown *tls.Certificate, err error) {
	secure := f.options.TLS
	if secure != nil {
		secure = secure.Clone()
		f.badge.wear(secure, func(c *tls.Certificate) { shown = c })
	}
	conn, err = dial(ctx, f.options.Dial, address, secure)
	return conn, shown, err
}

// hello leaves the join token out where a certificate speaks for us.
func (f *Fleet) hello(purpose proto.Purpose, session int64, shown *tls.Certificate) *proto.ClientHello {
	token := f.options.Token
	if shown != nil {
		token = ""
	}
	return &proto.ClientHello{
		MinVersion: proto.MinVersion, MaxVersion: proto.Version,
		JoinToken: token, Executor: f.options.Executor, BootId: f.options.Boot,
		Purpose: purpose, SessionId: session, Client: f.options.Client, InstanceName: f.options.Instance,
	}
}

// greet sends the hello. A certificate that does not count any more is dropped,
// so that the next try comes with the join token.
func (f *Fleet) greet(ctx context.Context, conn net.Conn, hello *proto.ClientHello, shown *tls.Certificate) (*proto.ServerHello, error) {
	reply, err := greet(ctx, conn, hello)
	var refused *RefusedError
	if errors.As(err, &refused) && shown != nil && refused.Code == "bad_certificate" {
		f.badge.drop(shown)
	}
	return reply, err
}

// claim makes link the session to its node, unless there is one: a seed and a
// listed address may lead to the same node.
func (f *Fleet) claim(t *target, link *Link) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	t.answered = link.node
	if f.claimed[link.node] != nil || f.left {
		return false
	}
	f.claimed[link.node] = link
	f.broadcast()
	return true
}

// admit counts a session that registered.
func (f *Fleet) admit(link *Link) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ready = append(f.ready, link)
	f.opened++
	f.refused = nil
}

// forget gives up what claim and admit gave.
func (f *Fleet) forget(link *Link) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.claimed, link.node)
	before := len(f.ready)
	f.ready = slices.DeleteFunc(f.ready, func(l *Link) bool { return l == link })
	if before > 0 && len(f.ready) == 0 { // alone now: any other node will do
		for id, t := range f.nodes {
			if id != link.node {
				t.poke()
			}
		}
	}
	if len(f.claimed) == 0 {
		f.aloneAt = time.Now()
	}
	if link.node == f.parked {
		f.wakeLocked()
	}
	f.broadcast()
}

// broadcast wakes the targets that wait. mu is held.
func (f *Fleet) broadcast() {
	close(f.changed)
	f.changed = make(chan struct{})
}

// setNodes follows a node list. An empty list is ignored: it would leave
// nowhere to go. Sessions to nodes that are no longer listed go on until they
// end: another node's view may just be late.
func (f *Fleet) setNodes(list []*proto.Node) {
	list = slices.DeleteFunc(slices.Clone(list), func(n *proto.Node) bool {
		return n.GetId() == "" || n.GetAddress() == ""
	})
	if len(list) == 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	listed := map[string]bool{}
	for _, n := range list {
		listed[n.GetId()] = true
		if t := f.nodes[n.GetId()]; t != nil {
			t.address = n.GetAddress()
			if f.claimed[t.node] == nil {
				t.poke() // lists come when nodes do: it may be back
			}
			continue
		}
		t := newTarget(n.GetId(), n.GetAddress())
		f.nodes[t.node] = t
		if f.ctx.Err() == nil {
			f.group.Go(func() { f.keep(f.ctx, t) })
		}
	}
	for id, t := range f.nodes {
		if !listed[id] {
			t.removed = true
			delete(f.nodes, id)
		}
	}
	f.broadcast()
}

// seedLocked begins to try an address. mu is held.
func (f *Fleet) seedLocked(address string) {
	if !f.seeds[address] {
		f.seeds[address] = true
		f.group.Go(func() { f.keep(f.ctx, newTarget("", address)) })
	}
}

// maxSeeds bounds the addresses that an executor keeps of cells that its tenant has
// been to; a tenant that moves on and on is found by the configured ones.
const maxSeeds = 64

// follow goes to the cell that the tenant lives in now. The nodes of the cell before
// are forgotten: a list of the new one's comes with the first session.
func (f *Fleet) follow(addresses []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(addresses) == 0 || f.ctx.Err() != nil || f.left {
		return
	}
	for id, t := range f.nodes {
		if f.claimed[id] == nil {
			t.removed = true
			delete(f.nodes, id)
		}
	}
	for _, address := range addresses {
		if len(f.seeds) < maxSeeds {
			f.seedLocked(address)
		}
	}
	f.broadcast()
}

// Health returns nil while at least one session stands, else why there is none.
func (f *Fleet) Health() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.ready) > 0 {
		return nil
	}
	if f.refused == nil {
		return errAdminLeft
	}
	return f.refused
}

// Sessions counts the sessions that stand, and those that ever did.
func (f *Fleet) Sessions() (now int, opened uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.ready), f.opened
}

// current returns the registered sessions.
func (f *Fleet) current() []*Link {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.ready)
}

// Drain tells every node that this process stops within grace.
func (f *Fleet) Drain(reason string, grace time.Duration) {
	for _, l := range f.current() {
		l.drain(reason, grace)
	}
}

// leaveWithin bounds the wait for the nodes to hear that this process ends.
const leaveWithin = time.Second

// Leave ends all sessions in good order and begins no new one. clean: nothing
// runs and no result is owed, so that the nodes may take this process off
// their list at once.
func (f *Fleet) Leave(clean bool) {
	f.mu.Lock()
	f.left = true
	f.broadcast()
	f.mu.Unlock()
	links := f.current()
	if clean {
		late := time.After(leaveWithin)
		for _, l := range links {
			l.leave()
		}
		for _, l := range links { // each node closes the session when it is done
			select {
			case <-l.session.CloseChan():
				continue
			case <-late:
			}
			break
		}
	}
	for _, l := range links {
		l.goAway()
	}
}

// ErrNoSession means that there is no session to bind a log connection to.
var ErrNoSession = errors.New("no session with an admin node")

// DialLogs opens a connection for logs beside one of the sessions. The admin
// ends it together with that session.
func (f *Fleet) DialLogs(ctx context.Context) (net.Conn, error) {
	links := f.current()
	if len(links) == 0 {
		return nil, ErrNoSession
	}
	link := links[rand.IntN(len(links))]
	conn, _, err := f.introduce(ctx, link.address, proto.Purpose_PURPOSE_LOGS, link.id)
	if err != nil {
		return nil, err
	}
	return conn, nil
}
