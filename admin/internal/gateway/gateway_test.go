package gateway

import (
	"context"
	"encoding/binary"
	"log/slog"
	"net"
	"strings"
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

func (fakeAuth) VerifyJoinToken(_ context.Context, secret, _, name string) (domain.TenantID, domain.ExecutorID, error) {
	switch {
	case secret == "cjt_expired":
		return 0, 0, domain.Errorf(domain.CodeTokenExpired, "the join token has expired; make a new one")
	case secret != goodToken:
		return 0, 0, domain.Errorf(domain.CodeUnauthenticated, "the join token is not valid")
	case name != "shop":
		return 0, 0, domain.Errorf(domain.CodeDenied, "the join token is for the executor %q", "shop")
	}
	return 1, 2, nil
}

// fakeFleet registers and renews in memory.
type fakeFleet struct {
	store.Fleet
	mu     sync.Mutex
	ids    map[string]domain.InstanceID
	gone   map[domain.InstanceID]bool
	held   []domain.Held
	broken atomic.Bool
	// failures is how many renewals fail before one does not.
	failures atomic.Int64
	left     chan domain.InstanceID // buffered

	registered time.Time // fixed before anybody joins
}

func (f *fakeFleet) RegisterInstance(_ context.Context, p store.RegisterInstanceParams) (domain.Instance, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := p.Instance
	if id, ok := f.ids[i.BootID]; ok {
		i.ID = id
	}
	f.ids[i.BootID] = i.ID
	i.LastSeenAt, i.ConnectedAt = f.registered, f.registered.Add(-time.Hour)
	return i, nil
}

func (f *fakeFleet) RenewInstances(_ context.Context, renewals []store.InstanceRenewal, _ time.Duration) (time.Time, []domain.InstanceID, error) {
	if f.broken.Load() || f.failures.Add(-1) >= 0 {
		return time.Time{}, nil, domain.Errorf(domain.CodeUnavailable, "no database")
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []domain.InstanceID
	for _, r := range renewals {
		if !f.gone[r.ID] {
			out = append(out, r.ID)
		}
	}
	return time.Now(), out, nil
}

func (f *fakeFleet) ListHeld(context.Context, domain.TenantID, domain.InstanceID, []domain.Held) ([]domain.Held, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.held, nil
}

func (f *fakeFleet) LeaveInstance(_ context.Context, tenant domain.TenantID, id domain.InstanceID, reason string) error {
	if f.broken.Load() {
		return domain.Errorf(domain.CodeUnavailable, "no database")
	}
	if tenant == 1 && reason == "stopped" {
		f.left <- id
	}
	return nil
}

func (f *fakeFleet) SupersedeBoots(_ context.Context, p store.SupersedeBootsParams) ([]domain.InstanceID, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []domain.InstanceID
	for _, b := range p.BootIDs {
		if id, ok := f.ids[b]; ok {
			f.gone[id] = true
			out = append(out, id)
		}
	}
	return out, nil
}

// recorder is a Sink that passes events on to the test.
type recorder struct {
	joined, left, doubted, draining chan *Session
	freed                           chan room
	answers                         chan *proto.Answer
	results                         chan *proto.Result
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
func (r *recorder) Answered(_ *Session, list []*proto.Answer) {
	for _, a := range list {
		r.answers <- a
	}
}
func (r *recorder) Started(*Session, []*proto.Started) {}
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
		judge: &judge{unheld: make(chan store.EndUnheldParams, 64), fails: make(chan error, 8)},
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

// registerOver does not wait for the answer.
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
	p.send(p.control, &proto.ControlToAdmin{Body: &proto.ControlToAdmin_Register{Register: register}})
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

func TestHandshakeRefusals(t *testing.T) {
	b := start(t)
	for name, c := range map[string]struct {
		change func(*proto.ClientHello)
		code   string
		text   string
	}{
		"wrong token":      {func(h *proto.ClientHello) { h.JoinToken = "cjt_wrong" }, "bad_token", "not valid"},
		"no token":         {func(h *proto.ClientHello) { h.JoinToken = "" }, "bad_token", "not valid"},
		"expired token":    {func(h *proto.ClientHello) { h.JoinToken = "cjt_expired" }, "token_expired", "make a new one"},
		"foreign executor": {func(h *proto.ClientHello) { h.Executor = "payments" }, "wrong_executor", `"shop"`},
		"newer protocol":   {func(h *proto.ClientHello) { h.MinVersion = 99; h.MaxVersion = 99 }, "version_unsupported", "99"},
		"bad boot id":      {func(h *proto.ClientHello) { h.BootId = "UPPER" }, "malformed", "boot_id"},
		"no purpose":       {func(h *proto.ClientHello) { h.Purpose = 0 }, "malformed", "purpose"},
		"logs of nobody":   {func(h *proto.ClientHello) { h.Purpose = proto.Purpose_PURPOSE_LOGS; h.SessionId = 77 }, "not_registered", "77"},
		"hello over 4 KiB": {func(h *proto.ClientHello) { h.Client = strings.Repeat("x", proto.MaxHello) }, "malformed", "size limit"},
	} {
		t.Run(name, func(t *testing.T) {
			h := hello(goodToken, bootA)
			c.change(h)
			conn, answer := b.dial(h)
			require.NotNil(t, answer.Error)
			require.Equal(t, c.code, answer.Error.Code)
			require.Contains(t, answer.Error.Message, c.text)
			_, err := conn.Read(make([]byte, 1))
			require.Error(t, err, "the connection ends")
		})
	}
	require.Zero(t, b.gate.Count())
}

func TestStrangersAreDroppedWithoutAWord(t *testing.T) {
	b := start(t)
	conn, err := net.Dial("tcp", b.addr)
	require.NoError(t, err)
	defer conn.Close()
	_, err = conn.Write([]byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"))
	require.NoError(t, err)
	n, err := conn.Read(make([]byte, 100))
	require.Zero(t, n)
	require.Error(t, err)
}

func TestSessionCarriesOffersAnswersAndResults(t *testing.T) {
	b := start(t)
	p := b.join(bootA, 2)
	s := get(t, b.rec.joined)
	require.Equal(t, domain.TenantID(1), s.Tenant)
	require.Equal(t, p.registered.InstanceId, int64(s.Instance))
	require.Equal(t, "node-1", p.registered.Nodes.Nodes[0].Id)

	require.Len(t, b.gate.Sessions(1, 2, "close-day"), 1)
	require.Empty(t, b.gate.Sessions(1, 2, "unknown"), "only instances that serve the handler")
	require.Empty(t, b.gate.Sessions(9, 2, "close-day"), "another tenant sees nothing")
	require.True(t, s.Idempotent("sync"))
	require.False(t, s.Idempotent("close-day"))

	require.True(t, s.Reserve(100, 1))
	require.True(t, s.Reserve(101, 1))
	require.True(t, s.Holds(100, 1))
	require.False(t, s.Holds(100, 2))
	require.False(t, s.Reserve(102, 1), "two slots")
	s.SendOffers([]*proto.Offer{{ExecutionId: 100, Fence: 1, Handler: "close-day"}})
	require.Equal(t, int64(100), p.nextCommand().GetOffers().Offers[0].ExecutionId)

	p.send(p.command, &proto.CommandToAdmin{Body: &proto.CommandToAdmin_Answers{Answers: &proto.AnswerBatch{
		Answers: []*proto.Answer{{ExecutionId: 100, Fence: 1, Accepted: true}, {ExecutionId: 101, Fence: 1, RejectCode: "busy"}},
	}}})
	require.True(t, get(t, b.rec.answers).Accepted)
	require.Equal(t, "busy", get(t, b.rec.answers).RejectCode)
	require.Equal(t, room{s, 1}, get(t, b.rec.freed))
	require.Equal(t, 1, s.Free(), "a refusal gives its slot back")

	s.SendGrants([]*proto.Grant{{ExecutionId: 100, Fence: 1, Granted: true}})
	require.True(t, p.nextCommand().GetGrants().Grants[0].Granted)
	p.send(p.command, &proto.CommandToAdmin{Body: &proto.CommandToAdmin_Results{Results: &proto.ResultBatch{
		Results: []*proto.Result{{ExecutionId: 100, Fence: 1, Outcome: proto.Outcome_OUTCOME_TIMED_OUT, StillRunning: true}},
	}}})
	require.True(t, get(t, b.rec.results).StillRunning)
	require.Equal(t, 1, s.Free(), "its handler still has the slot")
	p.send(p.command, &proto.CommandToAdmin{Body: &proto.CommandToAdmin_Results{Results: &proto.ResultBatch{
		Results: []*proto.Result{{ExecutionId: 100, Fence: 1, Outcome: proto.Outcome_OUTCOME_SUCCEEDED}},
	}}})
	require.Equal(t, int64(100), get(t, b.rec.results).ExecutionId)
	require.Equal(t, room{s, 1}, get(t, b.rec.freed), "each slot lets somebody go on, also when others were free")
	require.Equal(t, 2, s.Free())

	s.SendAcks([]*proto.ResultAck{{ExecutionId: 100, Fence: 1, Code: "stored"}})
	require.Equal(t, "stored", p.nextCommand().GetAcks().Acks[0].Code)
	s.SendCancel(&proto.Cancel{ExecutionId: 5, Fence: 1, Reason: "killed"})
	require.Equal(t, "killed", p.nextCommand().GetCancels().Cancels[0].Reason)
}

func TestHeartbeatIsAcknowledgedAfterTheLeaseWasRenewed(t *testing.T) {
	b := start(t)
	p := b.join(bootA, 2)
	s := get(t, b.rec.joined)
	p.send(p.control, &proto.ControlToAdmin{Body: &proto.ControlToAdmin_Heartbeat{Heartbeat: &proto.Heartbeat{Seq: 1, Running: 1, Slots: 4}}})
	ack := p.nextControl().GetHeartbeatAck()
	require.Equal(t, int64(1), ack.Seq)
	require.True(t, ack.LeaseRenewed)
	require.Equal(t, 3, s.Free(), "load and slots as reported")

	b.fleet.broken.Store(true)
	p.send(p.control, &proto.ControlToAdmin{Body: &proto.ControlToAdmin_Heartbeat{Heartbeat: &proto.Heartbeat{Seq: 2}}})
	require.False(t, p.nextControl().GetHeartbeatAck().LeaseRenewed, "without the database nothing is renewed")
	require.False(t, s.Closed())
	b.fleet.broken.Store(false)

	b.fleet.mu.Lock()
	b.fleet.gone[s.Instance] = true
	b.fleet.mu.Unlock()
	p.send(p.control, &proto.ControlToAdmin{Body: &proto.ControlToAdmin_Heartbeat{Heartbeat: &proto.Heartbeat{Seq: 3}}})
	require.Same(t, s, get(t, b.rec.left), "an instance that was declared gone has to register anew")
}

func TestABadFrameClosesItsSessionOnly(t *testing.T) {
	oversized := make([]byte, proto.HeaderSize)
	binary.BigEndian.PutUint32(oversized, proto.MaxFrame+1)
	for name, bytes := range map[string][]byte{
		"oversized frame": oversized,
		"bad checksum":    {0, 0, 0, 1, 9, 9, 9, 9, 8},
	} {
		t.Run(name, func(t *testing.T) {
			b := start(t)
			good := b.join(bootA, 1)
			kept := get(t, b.rec.joined)
			bad := b.join(bootB, 1)
			victim := get(t, b.rec.joined)
			_, _ = bad.command.Write(bytes) // may see the session end while it writes
			require.Same(t, victim, get(t, b.rec.left))
			require.False(t, kept.Closed())
			kept.SendCancel(&proto.Cancel{ExecutionId: 1})
			require.NotNil(t, good.nextCommand().GetCancels())
		})
	}
}

func TestAThirdStreamClosesTheSession(t *testing.T) {
	b := start(t)
	p := b.join(bootA, 1)
	s := get(t, b.rec.joined)
	p.open('C')
	require.Same(t, s, get(t, b.rec.left))
	require.ErrorContains(t, s.err(), "third stream")
}

func TestTheSameProcessReplacesItsOlderSession(t *testing.T) {
	b := start(t)
	b.join(bootA, 1)
	old := get(t, b.rec.joined)
	b.join(bootA, 1)
	next := get(t, b.rec.joined)
	require.Same(t, old, get(t, b.rec.left))
	require.Equal(t, old.Instance, next.Instance)
	require.Same(t, next, b.gate.SessionOf(old.Instance))
	require.Equal(t, 1, b.gate.Count())
}

func TestATakenOverJournalEndsTheOlderProcess(t *testing.T) {
	b := start(t)
	b.join(bootA, 1)
	old := get(t, b.rec.joined)
	b.join(bootB, 1, bootA)
	require.Same(t, old, get(t, b.rec.left))
	require.Same(t, get(t, b.rec.joined), b.gate.Sessions(1, 2, "sync")[0])
}

func TestNodeListIsPushed(t *testing.T) {
	b := start(t)
	p := b.join(bootA, 1)
	get(t, b.rec.joined)
	b.gate.SetNodes([]domain.Node{{Name: "node-1"}, {Name: "node-2", ExecutorAddress: "127.0.0.1:2"}})
	require.Equal(t, "127.0.0.1:2", p.nextControl().GetNodes().Nodes[1].Address)
}

func TestDrainingInstancesGetNoOffers(t *testing.T) {
	b := start(t)
	p := b.join(bootA, 1)
	s := get(t, b.rec.joined)
	p.send(p.control, &proto.ControlToAdmin{Body: &proto.ControlToAdmin_Drain{Drain: &proto.Drain{Reason: "deploy"}}})
	require.Equal(t, s, get(t, b.rec.draining))
	require.Empty(t, b.gate.Sessions(1, 2, "sync"))
	require.False(t, s.Reserve(1, 1))
	require.False(t, s.Closed(), "it may still report results")
}

func TestRegistrationIsChecked(t *testing.T) {
	b := start(t)
	conn, answer := b.dial(hello(goodToken, bootA))
	require.Nil(t, answer.Error)
	mux, err := yamux.Client(conn, yamux.DefaultConfig())
	require.NoError(t, err)
	defer mux.Close()
	p := &peerEnd{t: t, mux: mux}
	p.control = p.open('C')
	p.open('X')
	p.fromControl = proto.NewReader(p.control, proto.MaxFrame)
	// The admin may have closed the session before this write has returned.
	_ = proto.WriteFrame(p.control, &proto.ControlToAdmin{Body: &proto.ControlToAdmin_Register{Register: &proto.Register{Slots: 0}}}, proto.MaxFrame)
	e := p.nextControl().GetError()
	require.Equal(t, "malformed", e.Code)
	require.Contains(t, e.Message, "slots")
}
