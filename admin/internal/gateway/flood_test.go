package gateway

import (
	"encoding/binary"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/semaphore"
	gproto "google.golang.org/protobuf/proto"

	"github.com/carillon-sched/carillon/proto"
)

// hoarder takes everything and lets go of nothing, as a node does whose database
// is away.
type hoarder struct {
	*recorder
	mu                                         sync.Mutex
	answers, started, results, progress, steps int
	bytes                                      int
}

func (h *hoarder) add(n *int, items int, m ...gproto.Message) {
	h.mu.Lock()
	defer h.mu.Unlock()
	*n += items
	for _, one := range m {
		h.bytes += gproto.Size(one)
	}
}

func (h *hoarder) Answered(_ *Session, list []*proto.Answer) {
	h.add(&h.answers, len(list), &proto.AnswerBatch{Answers: list})
}
func (h *hoarder) Started(_ *Session, list []*proto.Started) { h.add(&h.started, len(list)) }
func (h *hoarder) Finished(_ *Session, list []*proto.Result) {
	h.add(&h.results, len(list), &proto.ResultBatch{Results: list})
}
func (h *hoarder) Progress(_ *Session, list []*proto.Progress) {
	h.add(&h.progress, len(list), &proto.ProgressBatch{Progress: list})
}
func (h *hoarder) Steps(_ *Session, list []*proto.Step) {
	h.add(&h.steps, len(list), &proto.StepBatch{Steps: list})
}

func (h *hoarder) has() (answers, results, steps, bytes int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.answers, h.results, h.steps, h.bytes
}

// flood sends frames of a kind until the other side takes no more, or so many
// were sent, for so long at most. The last frame may be half of one: nothing can be
// sent after it.
func (p *peerEnd) flood(within time.Duration, frames int, frame func(int64) *proto.CommandToAdmin) (sent int) {
	_ = p.command.SetWriteDeadline(time.Now().Add(within))
	for sent < frames && proto.WriteFrame(p.command, frame(int64(sent)), proto.MaxFrame) == nil {
		sent++
	}
	return sent
}

func commandFrame(m gproto.Message) *proto.CommandToAdmin {
	switch m := m.(type) {
	case *proto.AnswerBatch:
		return &proto.CommandToAdmin{Body: &proto.CommandToAdmin_Answers{Answers: m}}
	case *proto.ResultBatch:
		return &proto.CommandToAdmin{Body: &proto.CommandToAdmin_Results{Results: m}}
	default:
		return &proto.CommandToAdmin{Body: &proto.CommandToAdmin_Steps{Steps: m.(*proto.StepBatch)}}
	}
}

func listOf[T any](n int, one func(i int64) T) (out []T) {
	for i := range int64(n) {
		out = append(out, one(i))
	}
	return out
}

// Whatever an executor sends, the node holds a bounded part of it, of all of its
// tenant's sessions together, while nothing of it can be written.
func TestWhatATenantSendsIsBounded(t *testing.T) {
	h := &hoarder{}
	b := startWith(t, func(o *Options) { h.recorder = o.Sink.(*recorder); o.Sink = h })
	const sessions = 4
	for i := range sessions {
		within := time.Second
		if i == 0 { // something has to arrive, however slow the machine is
			within = 5 * time.Second
		}
		for n, kind := range []struct {
			frames int
			frame  func(int64) *proto.CommandToAdmin
		}{
			{400, func(int64) *proto.CommandToAdmin { // the most frequent
				return commandFrame(&proto.AnswerBatch{Answers: listOf(proto.MaxBatch, func(n int64) *proto.Answer {
					return &proto.Answer{ExecutionId: n, Accepted: n%2 == 0, RejectCode: "busy"}
				})})
			}},
			{60, func(int64) *proto.CommandToAdmin { // the largest
				return commandFrame(&proto.StepBatch{Steps: listOf(14, func(n int64) *proto.Step {
					return &proto.Step{ExecutionId: n, Name: "s", Output: make([]byte, proto.MaxStep)}
				})})
			}},
			{60, func(int64) *proto.CommandToAdmin {
				return commandFrame(&proto.ResultBatch{Results: listOf(3, func(n int64) *proto.Result {
					return &proto.Result{ExecutionId: n, Fence: 1, Output: make([]byte, proto.MaxOutput)}
				})})
			}},
		} {
			b.join(fmt.Sprintf("%032x", 3*i+n+1), 4).flood(within, kind.frames, kind.frame)
		}
	}
	require.Eventually(t, func() bool { // what was sent may still be on its way
		_, results, steps, _ := h.has()
		return results > 0 && steps > 0
	}, time.Minute, 10*time.Millisecond)
	answers, _, _, bytes := h.has()
	require.LessOrEqual(t, answers, sessions*2*unexpectedAnswers*8, "what nobody asked for is dropped")
	require.LessOrEqual(t, bytes, maxTenantOutstanding+sessions<<20, "the tenant's sessions share what may be in memory")
}

// A frame of many empty items would take a hundred times its size.
func TestAFrameOfTooManyItemsEndsItsSession(t *testing.T) {
	for name, frame := range map[string]gproto.Message{
		"answers":   commandFrame(&proto.AnswerBatch{Answers: listOf(proto.MaxBatch+1, func(int64) *proto.Answer { return &proto.Answer{} })}),
		"steps":     commandFrame(&proto.StepBatch{Steps: listOf(200_000, func(int64) *proto.Step { return &proto.Step{} })}),
		"inventory": &proto.ControlToAdmin{Body: &proto.ControlToAdmin_Inventory{Inventory: &proto.Inventory{Items: listOf(20_000, func(int64) *proto.InventoryItem { return &proto.InventoryItem{} })}}},
	} {
		t.Run(name, func(t *testing.T) {
			b := start(t)
			p := b.join(bootA, 4)
			first := get(t, b.rec.joined)
			other := b.join(bootB, 4)
			get(t, b.rec.joined)
			stream := p.command
			if name == "inventory" {
				stream = p.control
			}
			_ = proto.WriteFrame(stream, frame, proto.MaxFrame) // it may be refused before all of it is written
			require.Same(t, first, get(t, b.rec.left))
			require.ErrorIs(t, first.err(), proto.ErrTooManyItems)
			other.send(other.control, &proto.ControlToAdmin{Body: &proto.ControlToAdmin_Heartbeat{Heartbeat: &proto.Heartbeat{Seq: 1}}})
			require.EqualValues(t, 1, other.nextControl().GetHeartbeatAck().GetSeq(), "the others go on")
		})
	}
}

// An answer counts once.
func TestAnAnswerThatComesTwiceCountsOnce(t *testing.T) {
	h := &hoarder{}
	b := startWith(t, func(o *Options) { h.recorder = o.Sink.(*recorder); o.Sink = h })
	p := b.join(bootA, 4)
	s := get(t, h.joined)
	require.True(t, s.Reserve(1, 1, 1, 0))
	s.SendOffers([]*proto.Offer{{ExecutionId: 1, Fence: 1, Handler: "close-day"}})
	p.nextCommand()
	p.flood(time.Second, 20, func(int64) *proto.CommandToAdmin {
		return commandFrame(&proto.AnswerBatch{Answers: listOf(100, func(int64) *proto.Answer { return &proto.Answer{ExecutionId: 1, Fence: 1, Accepted: true} })})
	})
	// So many answers to nothing may have ended the session before this is written.
	_ = proto.WriteFrame(p.control, &proto.ControlToAdmin{Body: &proto.ControlToAdmin_Leave{Leave: &proto.Leave{}}}, proto.MaxFrame)
	get(t, h.left)
	answers, _, _, _ := h.has()
	require.Equal(t, 1, answers)
}

// 240 connections that begin a batch of lines and do not end it take places of
// their tenant alone, and none of those that the node has for all; of the same
// tenant, they give way in time.
func TestSlowLogsDelayNobodyElse(t *testing.T) {
	b := start(t)
	var slow []net.Conn
	var session *Session
	for i := range 60 {
		boot := fmt.Sprintf("%032x", i+1)
		p := b.join(boot, 4)
		session = get(t, b.rec.joined)
		for range maxLogs {
			conn := b.logConn(boot, p.sessionID)
			begun := make([]byte, proto.HeaderSize+1000)
			binary.BigEndian.PutUint32(begun, proto.MaxFrame)
			_, err := conn.Write(begun)
			require.NoError(t, err)
			slow = append(slow, conn)
		}
	}
	require.Len(t, slow, 240)
	require.Greater(t, len(slow), logFrames)
	waitFor(t, "their tenant's places are taken", func() bool { return full(session.account.logs) })
	require.Empty(t, b.gate.logs.frames)
	// A session of another tenant: the fake knows one, so it is moved.
	p := b.join(bootB, 4)
	b.gate.registry.byInstanceName(t, p).account = newAccount()
	conn := b.logConn(bootB, p.sessionID)
	p.send(conn, logBatch(1, 7, 1, "one"))
	require.EqualValues(t, 1, ackOf(t, conn).GetSeq())
}

// full says whether a tenant's memory for log batches has no room for another.
func full(logs *semaphore.Weighted) bool {
	if !logs.TryAcquire(smallLogs) {
		return true
	}
	logs.Release(smallLogs)
	return false
}

func (r *registry) byInstanceName(t *testing.T, p *peerEnd) *Session {
	t.Helper()
	for _, s := range r.all() {
		if int64(s.ID) == p.sessionID {
			return s
		}
	}
	t.Fatal("no such session")
	return nil
}
