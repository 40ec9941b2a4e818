package gateway

import (
	"encoding/binary"
	"net"
	"strings"
	"testing"

	"github.com/hashicorp/yamux"
	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/proto"
)

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

	// Each was written down before its connection ended; a hello that cannot be
	// read names nobody.
	times := map[string]int{}
	_, noted := b.gate.admission.takeRefusals(100)
	for _, r := range noted {
		times[r.Code] += r.Times
		require.Equal(t, "127.0.0.1", r.Remote)
	}
	require.Equal(t, map[string]int{"bad_token": 2, "token_expired": 1, "wrong_executor": 1, "version_unsupported": 1, "malformed": 2, "not_registered": 1}, times)
}

func TestOtherProtocolsAreDropped(t *testing.T) {
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

	require.True(t, s.Reserve(100, 1, 1, 0))
	require.True(t, s.Reserve(101, 1, 1, 0))
	require.True(t, s.Slots.Holds(100, 1))
	require.False(t, s.Slots.Holds(100, 2))
	require.False(t, s.Reserve(102, 1, 1, 0), "two slots")
	s.SendOffers([]*proto.Offer{{ExecutionId: 100, Fence: 1, Handler: "close-day"}})
	require.Equal(t, int64(100), p.nextCommand().GetOffers().Offers[0].ExecutionId)

	p.send(p.command, &proto.CommandToAdmin{Body: &proto.CommandToAdmin_Answers{Answers: &proto.AnswerBatch{
		Answers: []*proto.Answer{{ExecutionId: 100, Fence: 1, Accepted: true}, {ExecutionId: 101, Fence: 1, RejectCode: "busy"}},
	}}})
	require.True(t, get(t, b.rec.answers).Accepted)
	require.Equal(t, "busy", get(t, b.rec.answers).RejectCode)
	require.Zero(t, s.Free(), "it says that it is full")
	require.Empty(t, b.rec.freed)
	require.False(t, s.Slots.Holds(101, 1))
	p.send(p.control, &proto.ControlToAdmin{Body: &proto.ControlToAdmin_Heartbeat{Heartbeat: &proto.Heartbeat{Seq: 1, Slots: 2, Running: 1}}})
	require.True(t, p.nextControl().GetHeartbeatAck().LeaseRenewed)
	require.Equal(t, room{s, 1}, get(t, b.rec.freed), "until it tells otherwise")
	require.Equal(t, 1, s.Free())

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

// An instance that refuses everything for a while has no room, keeps its lease,
// and lets what waits go on as soon as it takes runs again.
func TestAnInstanceThatTakesNothingHasNoRoom(t *testing.T) {
	b := start(t)
	p := b.join(bootA, 2)
	s := get(t, b.rec.joined)
	beat := func(m *proto.Heartbeat) {
		p.send(p.control, &proto.ControlToAdmin{Body: &proto.ControlToAdmin_Heartbeat{Heartbeat: m}})
		require.True(t, p.nextControl().GetHeartbeatAck().LeaseRenewed)
	}
	beat(&proto.Heartbeat{Seq: 1, Slots: 2, Refusing: true})
	require.Zero(t, s.Free())
	require.False(t, s.Reserve(100, 1, 1, 0))
	beat(&proto.Heartbeat{Seq: 2, Slots: 2})
	require.Equal(t, room{s, 2}, get(t, b.rec.freed))
	require.True(t, s.Reserve(100, 1, 1, 0))
	b.fleet.mu.Lock()
	defer b.fleet.mu.Unlock()
	require.Len(t, b.fleet.renewals, 2)
	require.Equal(t, []bool{true, false}, []bool{b.fleet.renewals[0].Refusing, b.fleet.renewals[1].Refusing}, "the other nodes and explanations hear of it")
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
	if st, err := p.mux.Open(); err == nil { // it may see the session end already
		_, _ = st.Write([]byte{'C'})
	}
	require.Same(t, s, get(t, b.rec.left))
	require.ErrorContains(t, s.err(), "third stream")
	_, cut := b.gate.admission.takeRefusals(100)
	require.Len(t, cut, 1)
	require.Equal(t, "flood", cut[0].Code)
	require.Equal(t, "shop", cut[0].Executor)
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
	require.Same(t, s, get(t, b.rec.draining))
	require.Empty(t, b.gate.Sessions(1, 2, "sync"))
	require.False(t, s.Reserve(1, 1, 1, 0))
	require.False(t, s.Closed(), "it may still report results")
}

func TestRegistrationIsChecked(t *testing.T) {
	e := start(t).refused(&proto.Register{Slots: 0})
	require.Equal(t, "malformed", e.Code)
	require.Contains(t, e.Message, "slots")
}

// TestATenantHasAllItsInstances: what is over the quota is told so, and when to
// come again.
func TestATenantHasAllItsInstances(t *testing.T) {
	e := start(t).refused(&proto.Register{Slots: 1, InstanceName: "one too many"})
	require.Equal(t, "limit_reached", e.Code)
	require.Equal(t, quotaRetry.Milliseconds(), e.RetryAfterMs)
	require.Contains(t, e.Message, "may have 3 instances online and has 3")
}

// refused is the answer to a registration that is not taken.
func (b *bench) refused(r *proto.Register) *proto.Error {
	t := b.t
	t.Helper()
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
	_ = proto.WriteFrame(p.control, &proto.ControlToAdmin{Body: &proto.ControlToAdmin_Register{Register: r}}, proto.MaxFrame)
	return p.nextControl().GetError()
}
