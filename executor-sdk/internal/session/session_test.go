package session

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/carillon-sched/carillon/executor-sdk/internal/fakeadmin"
	"github.com/carillon-sched/carillon/proto"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 10 * time.Second

// recorder is the Events of a test: it writes down what happens.
type recorder struct {
	mu      sync.Mutex
	cond    *sync.Cond
	up      map[*Link]bool
	downs   int
	offers  []*proto.Offer
	grants  []*proto.Grant
	cancels []*proto.Cancel
	steps   []*proto.StepAck
	acks    []*proto.ResultAck
	verdict []*proto.InventoryVerdict
	renewed []bool
	base    *proto.Register
	busy    atomic.Bool // a handler runs
}

func newRecorder() *recorder {
	r := &recorder{up: map[*Link]bool{}, base: &proto.Register{InstanceName: "i1", Slots: 3}}
	r.cond = sync.NewCond(&r.mu)
	return r
}

func (r *recorder) note(f func()) {
	r.mu.Lock()
	f()
	r.cond.Broadcast()
	r.mu.Unlock()
}

func (r *recorder) Register() *proto.Register { return r.base }
func (r *recorder) Load() *proto.Heartbeat {
	if r.busy.Load() {
		return &proto.Heartbeat{Running: 1, Slots: 3}
	}
	return &proto.Heartbeat{Slots: 3}
}
func (r *recorder) Up(l *Link, _ time.Time, _ *proto.Registered) {
	r.note(func() { r.up[l] = true })
}
func (r *recorder) Down(l *Link) { r.note(func() { delete(r.up, l); r.downs++ }) }
func (r *recorder) Renewed(_ *Link, _ time.Time, ok bool) {
	r.note(func() { r.renewed = append(r.renewed, ok) })
}
func (r *recorder) Offers(_ *Link, list []*proto.Offer) {
	r.note(func() { r.offers = append(r.offers, list...) })
}
func (r *recorder) Grants(_ *Link, list []*proto.Grant) {
	r.note(func() { r.grants = append(r.grants, list...) })
}
func (r *recorder) Cancels(_ *Link, list []*proto.Cancel) {
	r.note(func() { r.cancels = append(r.cancels, list...) })
}
func (r *recorder) Acks(_ *Link, list []*proto.ResultAck) {
	r.note(func() { r.acks = append(r.acks, list...) })
}

func (r *recorder) StepAcks(_ *Link, list []*proto.StepAck) {
	r.note(func() { r.steps = append(r.steps, list...) })
}

func (r *recorder) Verdicts(_ *Link, list []*proto.InventoryVerdict) {
	r.note(func() { r.verdict = append(r.verdict, list...) })
}

// wait blocks until the condition holds; it is called with mu held.
func (r *recorder) wait(t *testing.T, what string, condition func() bool) {
	t.Helper()
	late := false
	timer := time.AfterFunc(patience, func() { r.note(func() { late = true }) })
	defer timer.Stop()
	r.mu.Lock()
	defer r.mu.Unlock()
	for !condition() {
		if late {
			r.mu.Unlock()
			defer r.mu.Lock()
			require.FailNow(t, "not seen: "+what)
		}
		r.cond.Wait()
	}
}

func (r *recorder) waitUp(t *testing.T, n int) []*Link {
	t.Helper()
	r.wait(t, fmt.Sprint(n, " sessions"), func() bool { return len(r.up) == n })
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []*Link
	for l := range r.up {
		all = append(all, l)
	}
	return all
}

// logBuffer collects log lines.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func startAdmin(t *testing.T, a *fakeadmin.Admin) *fakeadmin.Admin {
	t.Helper()
	require.NoError(t, a.Start())
	t.Cleanup(a.Close)
	return a
}

type running struct {
	*Fleet
	events *recorder
	logs   *logBuffer
	stop   func()
}

func startFleet(t *testing.T, change func(*Options)) *running {
	t.Helper()
	logs := &logBuffer{}
	events := newRecorder()
	o := Options{
		Token: fakeadmin.Token, Executor: "shop", Boot: "boot1", Client: "test",
		Logger: slog.New(slog.NewTextHandler(logs, nil)), Events: events,
	}
	change(&o)
	f := NewFleet(o)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { f.Run(ctx); close(ended) }()
	stop := func() { cancel(); <-ended }
	t.Cleanup(stop)
	return &running{f, events, logs, stop}
}

func to(addresses ...string) func(*Options) {
	return func(o *Options) { o.Addresses = addresses }
}

func saw(t *testing.T, a *fakeadmin.Admin, condition func(fakeadmin.Seen) bool) fakeadmin.Seen {
	t.Helper()
	seen, err := a.Wait(patience, condition)
	require.NoError(t, err)
	return seen
}

func TestSession(t *testing.T) {
	admin := startAdmin(t, &fakeadmin.Admin{Heartbeat: 300 * time.Millisecond, LeaseTTL: time.Second})
	f := startFleet(t, to(admin.Address()))
	link := f.events.waitUp(t, 1)[0]
	require.NoError(t, f.Health())
	require.Equal(t, "node1", link.Node())

	seen := saw(t, admin, func(s fakeadmin.Seen) bool { return s.Sessions == 1 && len(s.Heartbeats) > 1 })
	require.Equal(t, "boot1", seen.Hellos[0].GetBootId())
	require.Equal(t, "shop", seen.Hellos[0].GetExecutor())
	require.Equal(t, "i1", seen.Registers[0].GetInstanceName())
	require.EqualValues(t, 1, seen.Heartbeats[0].GetSeq())
	f.events.wait(t, "renewals", func() bool { return len(f.events.renewed) > 1 })
	admin.DenyLease.Store(true)
	f.events.wait(t, "a denied lease", func() bool { return !f.events.renewed[len(f.events.renewed)-1] })

	s := admin.Sessions()[0]
	require.NoError(t, s.Offer(&proto.Offer{ExecutionId: 1}))
	require.NoError(t, s.Grant(&proto.Grant{ExecutionId: 2}))
	require.NoError(t, s.Cancel(&proto.Cancel{ExecutionId: 3}))
	require.NoError(t, s.Ack(&proto.ResultAck{ExecutionId: 4}))
	f.events.wait(t, "commands", func() bool { return len(f.events.acks) == 1 })
	require.EqualValues(t, 1, f.events.offers[0].GetExecutionId())
	require.EqualValues(t, 2, f.events.grants[0].GetExecutionId())
	require.EqualValues(t, 3, f.events.cancels[0].GetExecutionId())

	link.Ask([]*proto.InventoryItem{{ExecutionId: 5, Fence: 6}})
	f.events.wait(t, "a verdict", func() bool { return len(f.events.verdict) == 1 })
	require.EqualValues(t, 5, f.events.verdict[0].GetExecutionId())
	require.EqualValues(t, 6, f.events.verdict[0].GetFence())

	// More than one frame's worth, from many goroutines.
	var wait sync.WaitGroup
	for i := range int64(4) {
		wait.Go(func() {
			for j := range int64(400) {
				link.Answer([]*proto.Answer{{ExecutionId: i*1000 + j}})
			}
			link.Results([]*proto.Result{{ExecutionId: i, Output: make([]byte, proto.MaxOutput), Error: string(make([]byte, proto.MaxErrorText))}})
		})
	}
	wait.Wait()
	saw(t, admin, func(s fakeadmin.Seen) bool { return len(s.Answers) == 1600 && len(s.Results) == 4 })

	f.Drain("test", time.Second)
	f.Drain("test", time.Second)
	seen = saw(t, admin, func(s fakeadmin.Seen) bool { return len(s.Drains) > 0 })
	require.EqualValues(t, 1000, seen.Drains[0].GetGraceMs())
	f.Leave(true)
	f.events.waitUp(t, 0)
	seen = saw(t, admin, func(s fakeadmin.Seen) bool { return s.Ended == 1 })
	require.Len(t, seen.Drains, 1)
	require.Equal(t, 1, seen.Left)
	require.Error(t, f.Health())
	require.NotContains(t, f.logs.String(), "trying again")
}

func TestWrongToken(t *testing.T) {
	admin := startAdmin(t, &fakeadmin.Admin{})
	f := startFleet(t, func(o *Options) { o.Addresses = []string{admin.Address()}; o.Token = "cjt_wrong" })
	saw(t, admin, func(s fakeadmin.Seen) bool { return len(s.Hellos) == 1 })
	require.Eventually(t, func() bool { return bytes.Contains([]byte(f.logs.String()), []byte("admin refuses")) }, patience, time.Millisecond)
	require.Contains(t, f.logs.String(), "level=ERROR")
	require.Contains(t, f.logs.String(), "bad_token: the join token is not known")
	require.Contains(t, f.logs.String(), "check Config.Token (CARILLON_EXECUTOR_TOKEN)")
	require.NotContains(t, f.logs.String(), "cjt_wrong")
	require.ErrorContains(t, f.Health(), "bad_token")
}

func TestStrangersAtTheOtherEnd(t *testing.T) {
	for name, answer := range map[string]string{
		"closes at once": "",
		"speaks HTTP":    "HTTP/1.1 400 Bad Request\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			defer listener.Close()
			go func() {
				for {
					conn, err := listener.Accept()
					if err != nil {
						return
					}
					_, _ = conn.Write([]byte(answer))
					_ = conn.Close()
				}
			}()
			f := startFleet(t, to(listener.Addr().String()))
			require.Eventually(t, func() bool { return f.logs.String() != "" }, patience, time.Millisecond)
			require.Contains(t, f.logs.String(), "no session with admin node")
			require.Error(t, f.Health())
			f.stop()
		})
	}
}

// A frame that breaks the rules costs the session it came on, and only that.
func TestBadFrames(t *testing.T) {
	huge := make([]byte, proto.HeaderSize)
	binary.BigEndian.PutUint32(huge, proto.MaxFrame+1)
	for name, attack := range map[string]func(*fakeadmin.Session) error{
		"oversized":      func(s *fakeadmin.Session) error { return s.Raw(huge) },
		"wrong checksum": func(s *fakeadmin.Session) error { return s.Raw([]byte{0, 0, 0, 1, 0, 0, 0, 0, 9}) },
		"extra stream":   func(s *fakeadmin.Session) error { return s.OpenStream() },
		"error frame": func(s *fakeadmin.Session) error {
			return s.Control(&proto.ControlToExecutor{Body: &proto.ControlToExecutor_Error{Error: &proto.Error{Code: "superseded"}}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			bad, good := startAdmin(t, &fakeadmin.Admin{Node: "bad"}), startAdmin(t, &fakeadmin.Admin{Node: "good"})
			f := startFleet(t, to(bad.Address(), good.Address()))
			f.events.waitUp(t, 2)
			saw(t, bad, func(s fakeadmin.Seen) bool { return s.Sessions == 1 })
			_ = attack(bad.Sessions()[0]) // the session may end before the write returns
			saw(t, bad, func(s fakeadmin.Seen) bool { return s.Ended == 1 && s.Sessions == 2 })
			f.events.waitUp(t, 2)
			require.Equal(t, 1, good.Seen().Sessions)
			require.Zero(t, good.Seen().Ended)
			f.stop()
		})
	}
}

// A message this version does not know is skipped.
func TestUnknownMessagesAreIgnored(t *testing.T) {
	admin := startAdmin(t, &fakeadmin.Admin{})
	f := startFleet(t, to(admin.Address()))
	f.events.waitUp(t, 1)
	saw(t, admin, func(s fakeadmin.Seen) bool { return s.Sessions == 1 })
	s := admin.Sessions()[0]
	require.NoError(t, s.Command(&proto.CommandToExecutor{}))
	require.NoError(t, s.Control(&proto.ControlToExecutor{}))
	require.NoError(t, s.Offer(&proto.Offer{ExecutionId: 1}))
	f.events.wait(t, "the offer", func() bool { return len(f.events.offers) == 1 })
	require.Zero(t, f.events.downs)
}

func TestSilentAdminLosesTheSession(t *testing.T) {
	admin := startAdmin(t, &fakeadmin.Admin{Heartbeat: 20 * time.Millisecond})
	f := startFleet(t, to(admin.Address()))
	f.events.waitUp(t, 1)
	admin.HoldHeartbeats.Store(true)
	f.events.wait(t, "the end", func() bool { return f.events.downs > 0 })
	require.Eventually(t, func() bool {
		return bytes.Contains([]byte(f.logs.String()), []byte("no heartbeat was answered in time"))
	}, patience, time.Millisecond)
}

func TestReconnectAfterResetAndRestart(t *testing.T) {
	admin := startAdmin(t, &fakeadmin.Admin{})
	f := startFleet(t, to(admin.Address()))
	f.events.waitUp(t, 1)
	saw(t, admin, func(s fakeadmin.Seen) bool { return s.Sessions == 1 })
	admin.Sessions()[0].Cut()
	saw(t, admin, func(s fakeadmin.Seen) bool { return s.Sessions == 2 })
	f.events.waitUp(t, 1)

	admin.Listen = admin.Address()
	admin.Close()
	f.events.waitUp(t, 0)
	require.NoError(t, admin.Start())
	saw(t, admin, func(s fakeadmin.Seen) bool { return s.Sessions == 3 })
	f.events.waitUp(t, 1)
}

func node(a *fakeadmin.Admin) *proto.Node { return &proto.Node{Id: a.Node, Address: a.Address()} }

func TestNodeListIsFollowed(t *testing.T) {
	one, two := startAdmin(t, &fakeadmin.Admin{Node: "n1"}), startAdmin(t, &fakeadmin.Admin{Node: "n2"})
	three := startAdmin(t, &fakeadmin.Admin{Node: "n3"})
	// The first list comes with the registration.
	var listed atomic.Pointer[[]*proto.Node]
	listed.Store(&[]*proto.Node{node(one), node(two)})
	one.Judge = func(*fakeadmin.Session, *proto.Register) *proto.Registered {
		return &proto.Registered{Nodes: &proto.NodeList{Nodes: *listed.Load()}}
	}
	f := startFleet(t, to(one.Address()))
	f.events.waitUp(t, 2)
	require.Equal(t, "boot1", two.Seen().Hellos[0].GetBootId())

	saw(t, one, func(s fakeadmin.Seen) bool { return s.Sessions == 1 })
	s := one.Sessions()[0]
	require.NoError(t, s.Nodes())              // an empty list changes nothing,
	require.NoError(t, s.Nodes(&proto.Node{})) // nor does one without a usable node
	listed.Store(&[]*proto.Node{node(one), node(three)})
	require.NoError(t, s.Nodes(*listed.Load()...))
	f.events.waitUp(t, 3)
	saw(t, two, func(s fakeadmin.Seen) bool { return s.Sessions == 1 })
	two.Sessions()[0].Cut()
	f.events.waitUp(t, 2)

	// Two is not listed: nobody comes back. One is: its session returns.
	s.Cut()
	saw(t, one, func(s fakeadmin.Seen) bool { return s.Sessions == 2 })
	require.Equal(t, 1, two.Seen().Sessions)
}

// A seed and the list may name one node in two ways; it gets one session.
func TestOneSessionPerNode(t *testing.T) {
	admin := startAdmin(t, &fakeadmin.Admin{})
	_, port, err := net.SplitHostPort(admin.Address())
	require.NoError(t, err)
	admin.Judge = func(*fakeadmin.Session, *proto.Register) *proto.Registered {
		return &proto.Registered{Nodes: &proto.NodeList{Nodes: []*proto.Node{node(admin)}}}
	}
	f := startFleet(t, to("localhost:"+port, "127.0.0.1:"+port))
	f.events.waitUp(t, 1)
	// The second hello is answered and given up, or never sent.
	saw(t, admin, func(s fakeadmin.Seen) bool { return s.Sessions == 1 })
	admin.Sessions()[0].Cut()
	saw(t, admin, func(s fakeadmin.Seen) bool { return s.Sessions == 2 && s.Ended == 1 })
	f.events.waitUp(t, 1)
	require.Len(t, admin.Sessions(), 1)
}

// When the list leads nowhere, the configured address still does.
func TestSeedWorksWhenTheListDoesNot(t *testing.T) {
	admin := startAdmin(t, &fakeadmin.Admin{})
	admin.Judge = func(*fakeadmin.Session, *proto.Register) *proto.Registered {
		return &proto.Registered{Nodes: &proto.NodeList{Nodes: []*proto.Node{{Id: "node1", Address: "127.0.0.1:1"}}}}
	}
	f := startFleet(t, to(admin.Address()))
	f.events.waitUp(t, 1)
	saw(t, admin, func(s fakeadmin.Seen) bool { return s.Sessions == 1 })
	began := time.Now()
	admin.Sessions()[0].Cut()
	saw(t, admin, func(s fakeadmin.Seen) bool { return s.Sessions == 2 })
	require.GreaterOrEqual(t, time.Since(began), seedPatience-100*time.Millisecond)
}

func TestLogConnection(t *testing.T) {
	admin := startAdmin(t, &fakeadmin.Admin{})
	f := startFleet(t, to(admin.Address()))
	f.events.waitUp(t, 1)
	conn, err := f.DialLogs(t.Context())
	require.NoError(t, err)
	defer conn.Close()
	seen := saw(t, admin, func(s fakeadmin.Seen) bool { return s.LogConns == 1 && s.Sessions == 1 })
	require.Equal(t, proto.Purpose_PURPOSE_LOGS, seen.Hellos[1].GetPurpose())
	require.Equal(t, admin.Sessions()[0].ID, seen.Hellos[1].GetSessionId())

	f.stop()
	_, err = f.DialLogs(t.Context())
	require.ErrorIs(t, err, ErrNoSession)
}

func TestRegistrationThatIsTooLarge(t *testing.T) {
	admin := startAdmin(t, &fakeadmin.Admin{})
	events := newRecorder()
	events.base.AppVersion = string(make([]byte, proto.MaxFrame))
	f := startFleet(t, func(o *Options) { o.Addresses = []string{admin.Address()}; o.Events = events })
	require.Eventually(t, func() bool {
		return bytes.Contains([]byte(f.logs.String()), []byte("register: frame over the size limit"))
	}, patience, time.Millisecond)
}

// authority is a certificate that signs itself, for 127.0.0.1.
func authority(t *testing.T) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"admin.test"},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	leaf, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

func TestTLS(t *testing.T) {
	certificate, pool := authority(t)
	_, stranger := authority(t)
	admin := startAdmin(t, &fakeadmin.Admin{TLS: &tls.Config{Certificates: []tls.Certificate{certificate}}})

	good := startFleet(t, func(o *Options) { o.Addresses = []string{admin.Address()}; o.TLS = &tls.Config{RootCAs: pool} })
	good.events.waitUp(t, 1)
	conn, err := good.DialLogs(t.Context())
	require.NoError(t, err)
	require.NoError(t, conn.Close())
	good.stop()

	for want, o := range map[string]*tls.Config{
		"certificate signed by unknown authority": {RootCAs: stranger},
		"certificate is valid for admin.test":     {RootCAs: pool, ServerName: "other.test"},
	} {
		f := startFleet(t, func(options *Options) { options.Addresses = []string{admin.Address()}; options.TLS = o })
		require.Eventually(t, func() bool { return bytes.Contains([]byte(f.logs.String()), []byte(want)) }, patience, time.Millisecond)
		f.stop()
	}
	plain := startFleet(t, to(admin.Address()))
	require.Eventually(t, func() bool { return plain.logs.String() != "" }, patience, time.Millisecond)
}
