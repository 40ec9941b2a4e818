package gateway

import (
	"context"
	"log/slog"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/yamux"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	gproto "google.golang.org/protobuf/proto"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/proto"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	goodToken = "cjt_good"
	bootA     = "0123456789abcdef0123456789abcdef"
	bootB     = "fedcba9876543210fedcba9876543210"
)

// fakeAuth knows one token, for tenant 1 and executor 2 with the name "shop".
type fakeAuth struct{}

func (fakeAuth) VerifyJoinTokens(_ context.Context, claims []domain.JoinClaim) ([]domain.JoinVerdict, error) {
	out := make([]domain.JoinVerdict, len(claims))
	for i, c := range claims {
		switch {
		case c.Secret == "cjt_expired":
			out[i].Err = domain.Errorf(domain.CodeTokenExpired, "the join token has expired; make a new one")
		case c.Secret != goodToken:
			out[i].Err = domain.Errorf(domain.CodeUnauthenticated, "the join token is not valid")
		case c.Executor != "shop":
			out[i].Err = domain.Errorf(domain.CodeDenied, "the join token is for the executor %q", "shop")
		default:
			out[i] = domain.JoinVerdict{Tenant: 1, Executor: 2}
		}
	}
	return out, nil
}

// fakeFleet registers and renews in memory.
type fakeFleet struct {
	renewals []store.InstanceRenewal // guarded by mu
	store.Instances
	mu   sync.Mutex
	ids  map[string]domain.InstanceID
	gone map[domain.InstanceID]bool
	held []domain.Held
	// drained is what somebody drains; guarded by mu.
	drained []domain.InstanceID
	quiet   []time.Duration // guarded by mu: of each renewal
	broken  atomic.Bool
	// failures is how many renewals fail before one does not.
	failures atomic.Int64
	left     chan domain.InstanceID // buffered

	registered time.Time // fixed before anybody joins
	// hold, unless nil, lets a registration go on with each token; fixed before
	// anybody joins.
	hold     chan struct{}
	together []int // guarded by mu: how many came in with each transaction
}

func (f *fakeFleet) RegisterInstances(_ context.Context, list []store.RegisterInstanceParams) ([]store.Registration, error) {
	if f.hold != nil {
		<-f.hold
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.together = append(f.together, len(list))
	out := make([]store.Registration, len(list))
	for n, p := range list {
		i := p.Instance
		if i.Name == "nobody's" {
			out[n].Err = domain.Errorf(domain.CodeNotFound, "there is no executor")
			continue
		}
		if i.Name == "one too many" {
			out[n].Err = domain.Quota{Kind: domain.QuotaInstances, Max: 3, Used: 3}.Check(1)
			continue
		}
		if id, ok := f.ids[i.BootID]; ok {
			i.ID = id
		}
		f.ids[i.BootID] = i.ID
		i.LastSeenAt, i.ConnectedAt = f.registered, f.registered.Add(-time.Hour)
		if slices.Contains(f.drained, i.ID) {
			i.DrainedAt = time.Now()
		}
		out[n].Instance = i
	}
	return out, nil
}

func (f *fakeFleet) RenewInstances(_ context.Context, renewals []store.InstanceRenewal, _ time.Duration) (time.Time, []domain.InstanceID, error) {
	if f.broken.Load() || f.failures.Add(-1) >= 0 {
		return time.Time{}, nil, domain.Errorf(domain.CodeUnavailable, "no database")
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []domain.InstanceID
	f.renewals = append(f.renewals, renewals...)
	for _, r := range renewals {
		f.quiet = append(f.quiet, r.Quiet)
		if !f.gone[r.ID] {
			out = append(out, r.ID)
		}
	}
	return time.Now(), out, nil
}

func (f *fakeFleet) ListWanted(context.Context, []domain.InstanceID) ([]domain.InstanceID, error) {
	return nil, nil
}

func (f *fakeFleet) ListDrained(context.Context) ([]domain.InstanceID, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.drained, nil
}

func (f *fakeFleet) drain(ids ...domain.InstanceID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.drained = ids
}

func (f *fakeFleet) ListHeld(context.Context, domain.TenantID, domain.InstanceID, []domain.Held) ([]domain.Held, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.held, nil
}

func (f *fakeFleet) LeaveInstances(_ context.Context, list []store.InstanceLeave) []error {
	out := make([]error, len(list))
	for n, l := range list {
		if f.broken.Load() {
			out[n] = domain.Errorf(domain.CodeUnavailable, "no database")
		} else if l.Tenant == 1 && l.Reason == "stopped" {
			f.left <- l.ID
		}
	}
	return out
}

func (f *fakeFleet) SupersedeBoots(_ context.Context, list []store.SupersedeBootsParams) []store.SupersededBoots {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := make([]store.SupersededBoots, len(list))
	for n, p := range list {
		for _, b := range p.BootIDs {
			if id, ok := f.ids[b]; ok {
				f.gone[id] = true
				out[n].Ended = append(out[n].Ended, id)
			}
		}
	}
	return out
}

// recorder is a Sink that passes events on to the test.
type recorder struct {
	joined, left, doubted, draining chan *Session
	freed                           chan room
	answers                         chan *proto.Answer
	results                         chan *proto.Result

	mu      sync.Mutex
	unheard map[int64]int64 // guarded by mu
}

// room is what Sink.Freed tells.
type room struct {
	of *Session
	n  int
}

func (r *recorder) Joined(s *Session)       { r.joined <- s }
func (r *recorder) Left(s *Session)         { r.left <- s }
func (r *recorder) Freed(s *Session, n int) { r.freed <- room{s, n} }
func (r *recorder) Doubted(s *Session)      { r.doubted <- s }
func (r *recorder) Draining(s *Session)     { r.draining <- s }
func (r *recorder) Unheard(_ *Session, offered map[int64]int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.unheard == nil {
		r.unheard = map[int64]int64{}
	}
	maps.Copy(r.unheard, offered)
}
func (r *recorder) Answered(_ *Session, list []*proto.Answer) {
	for _, a := range list {
		r.answers <- a
	}
}
func (r *recorder) Started(*Session, []*proto.Started)   {}
func (r *recorder) Progress(*Session, []*proto.Progress) {}
func (r *recorder) Steps(*Session, []*proto.Step)        {}

func (r *recorder) Finished(_ *Session, list []*proto.Result) {
	for _, x := range list {
		r.results <- x
	}
}

type bench struct {
	t     *testing.T
	gate  *Gateway
	addr  string
	fleet *fakeFleet
	rec   *recorder
	judge *judge
	logs  *fakeLogs
}

func start(t *testing.T) *bench {
	t.Helper()
	return startWith(t, func(*Options) {})
}

func startWith(t *testing.T, change func(*Options)) *bench {
	t.Helper()
	var id atomic.Int64
	b := &bench{
		t:     t,
		logs:  newFakeLogs(),
		judge: &judge{orphans: make(chan store.EndOrphansParams, 64), fails: make(chan error, 8)},
		fleet: &fakeFleet{ids: map[string]domain.InstanceID{}, gone: map[domain.InstanceID]bool{}, left: make(chan domain.InstanceID, 8)},
		rec: &recorder{
			joined: make(chan *Session, 64), left: make(chan *Session, 64), freed: make(chan room, 64),
			doubted: make(chan *Session, 64), draining: make(chan *Session, 64),
			answers: make(chan *proto.Answer, 64), results: make(chan *proto.Result, 64),
		},
	}
	opt := Options{
		NodeID: "node-1", ClusterID: "c1", Auth: fakeAuth{}, Fleet: b.fleet, Sink: b.rec,
		NewID: func() int64 { return id.Add(1) }, Logger: slog.New(slog.DiscardHandler), Inventory: b.judge, Logs: b.logs,
	}
	change(&opt)
	b.gate = New(opt)
	b.gate.SetNodes([]domain.Node{{Name: "node-1", ExecutorAddress: "127.0.0.1:1"}})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	b.addr = l.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- b.gate.Serve(ctx, l) }()
	t.Cleanup(func() { cancel(); require.NoError(t, <-done) })
	return b
}

func hello(token, boot string) *proto.ClientHello {
	return &proto.ClientHello{
		MinVersion: 1, MaxVersion: proto.Version, JoinToken: token, Executor: "shop", BootId: boot,
		Purpose: proto.Purpose_PURPOSE_CONTROL, Client: "test/1",
	}
}

// dial connects and greets; it returns the server's answer.
func (b *bench) dial(h *proto.ClientHello) (net.Conn, *proto.ServerHello) {
	b.t.Helper()
	conn, err := net.Dial("tcp", b.addr)
	require.NoError(b.t, err)
	b.t.Cleanup(func() { conn.Close() })
	require.NoError(b.t, conn.SetDeadline(time.Now().Add(10*time.Second)))
	_, err = conn.Write([]byte(proto.Preface))
	require.NoError(b.t, err)
	require.NoError(b.t, proto.WriteFrame(conn, h, proto.MaxFrame))
	var answer proto.ServerHello
	require.NoError(b.t, proto.ReadHello(conn, &answer))
	return conn, &answer
}

// peerEnd is the executor's side of a session.
type peerEnd struct {
	t                *testing.T
	mux              *yamux.Session
	control, command net.Conn
	fromControl      *proto.Reader
	fromCommand      *proto.Reader
	registered       *proto.Registered
	sessionID        int64
}

func (b *bench) join(boot string, slots int32, superseded ...string) *peerEnd {
	b.t.Helper()
	return b.joinWith(boot, &proto.Register{
		InstanceName: "i-" + boot[:4], Slots: slots, SupersededBoots: superseded,
		Handlers: []*proto.Handler{{Name: "close-day"}, {Name: "sync", Idempotent: true}},
	})
}

func (b *bench) joinWith(boot string, register *proto.Register) *peerEnd {
	b.t.Helper()
	conn, answer := b.dial(hello(goodToken, boot))
	require.Nil(b.t, answer.Error)
	return b.joinOver(conn, answer, register)
}

func (b *bench) joinOver(conn net.Conn, answer *proto.ServerHello, register *proto.Register) *peerEnd {
	b.t.Helper()
	p := b.registerOver(conn, answer, register)
	p.registered = p.nextControl().GetRegistered()
	require.NotNil(b.t, p.registered)
	return p
}

// registerOver does not wait for the answer, nor look whether it was sent.
func (b *bench) registerOver(conn net.Conn, answer *proto.ServerHello, register *proto.Register) *peerEnd {
	b.t.Helper()
	config := yamux.DefaultConfig()
	config.EnableKeepAlive = false
	mux, err := yamux.Client(conn, config)
	require.NoError(b.t, err)
	b.t.Cleanup(func() { mux.Close() })
	p := &peerEnd{t: b.t, mux: mux, sessionID: answer.SessionId}
	p.control = p.open('C')
	p.command = p.open('X')
	p.fromControl = proto.NewReader(p.control, proto.MaxFrame)
	p.fromCommand = proto.NewReader(p.command, proto.MaxFrame)
	// The admin may have read it and ended the session before this returns.
	_ = proto.WriteFrame(p.control, &proto.ControlToAdmin{Body: &proto.ControlToAdmin_Register{Register: register}}, proto.MaxFrame)
	return p
}

func (p *peerEnd) open(tag byte) net.Conn {
	st, err := p.mux.Open()
	require.NoError(p.t, err)
	_, err = st.Write([]byte{tag})
	require.NoError(p.t, err)
	return st
}

func (p *peerEnd) send(w net.Conn, m gproto.Message) {
	p.t.Helper()
	require.NoError(p.t, proto.WriteFrame(w, m, proto.MaxFrame))
}

func (p *peerEnd) nextControl() *proto.ControlToExecutor {
	p.t.Helper()
	var m proto.ControlToExecutor
	require.NoError(p.t, p.fromControl.Next(&m))
	return &m
}

func (p *peerEnd) nextCommand() *proto.CommandToExecutor {
	p.t.Helper()
	var m proto.CommandToExecutor
	require.NoError(p.t, p.fromCommand.Next(&m))
	return &m
}

func get[T any](t *testing.T, ch <-chan T) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(20 * time.Second):
		t.Fatal("nothing came")
		panic("unreachable")
	}
}
