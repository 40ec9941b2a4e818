package fakeadmin

import (
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/yamux"
	gproto "google.golang.org/protobuf/proto"

	"github.com/carillon-sched/carillon/proto"
)

// Session is one registered executor.
type Session struct {
	ID       int64
	Boot     string
	Register *proto.Register

	admin   *Admin
	conn    net.Conn
	mux     *yamux.Session
	control net.Conn
	command net.Conn
	mu      sync.Mutex   // serialises writes
	leased  atomic.Int64 // the last heartbeat that was answered as renewed
}

// control accepts the two streams, in their order, and serves them.
func (a *Admin) control(conn net.Conn, hello *proto.ClientHello, id int64) {
	config := yamux.DefaultConfig()
	config.EnableKeepAlive = false
	config.ConnectionWriteTimeout = proto.WriteTimeout
	config.LogOutput = io.Discard
	mux, err := yamux.Server(conn, config)
	if err != nil {
		return
	}
	defer mux.Close()
	s := &Session{ID: id, Boot: hello.GetBootId(), admin: a, conn: conn, mux: mux}
	for _, stream := range []struct {
		tag  byte
		into *net.Conn
	}{{'C', &s.control}, {'X', &s.command}} {
		c, err := mux.AcceptStream()
		if err != nil {
			return
		}
		tag := make([]byte, 1)
		if _, err := io.ReadFull(c, tag); err != nil || tag[0] != stream.tag {
			return
		}
		*stream.into = c
	}
	reader := proto.NewReader(s.control, proto.MaxFrame)
	var first proto.ControlToAdmin
	if reader.Next(&first) != nil || first.GetRegister() == nil {
		return
	}
	s.Register = first.GetRegister()
	a.note(func(seen *Seen) { seen.Registers = append(seen.Registers, s.Register) })
	if s.reply() != nil {
		return
	}
	a.note(func(seen *Seen) { a.sessions = append(a.sessions, s); seen.Sessions++ })
	a.wait.Go(func() { s.readCommand(); _ = mux.Close() })
	s.readControl(reader)
	a.note(func(seen *Seen) {
		a.sessions = slices.DeleteFunc(a.sessions, func(other *Session) bool { return other == s })
		seen.Ended++
	})
}

func (s *Session) reply() error {
	reply := &proto.Registered{}
	if s.admin.Judge != nil {
		reply = s.admin.Judge(s, s.Register)
	}
	reply.InstanceId = s.ID
	reply.HeartbeatIntervalMs = s.admin.Heartbeat.Milliseconds()
	reply.LeaseTtlMs = s.admin.LeaseTTL.Milliseconds()
	return s.Control(&proto.ControlToExecutor{Body: &proto.ControlToExecutor_Registered{Registered: reply}})
}

func (s *Session) readControl(reader *proto.Reader) {
	for {
		var m proto.ControlToAdmin
		if reader.Next(&m) != nil {
			return
		}
		switch body := m.GetBody().(type) {
		case *proto.ControlToAdmin_Heartbeat:
			s.admin.note(func(seen *Seen) { seen.Heartbeats = append(seen.Heartbeats, body.Heartbeat) })
			if s.admin.HoldHeartbeats.Load() {
				continue
			}
			if !s.admin.DenyLease.Load() {
				s.leased.Store(body.Heartbeat.GetSeq())
			}
			ack := &proto.HeartbeatAck{Seq: body.Heartbeat.GetSeq(), NowMs: time.Now().UnixMilli(), LeaseRenewed: !s.admin.DenyLease.Load()}
			if body.Heartbeat.GetPaced() && body.Heartbeat.GetRunning() == 0 {
				ack.NextMs = s.admin.Rest.Milliseconds()
			}
			_ = s.Control(&proto.ControlToExecutor{Body: &proto.ControlToExecutor_HeartbeatAck{HeartbeatAck: ack}})
		case *proto.ControlToAdmin_Inventory:
			s.judge(body.Inventory.GetItems())
		case *proto.ControlToAdmin_Drain:
			s.admin.note(func(seen *Seen) { seen.Drains = append(seen.Drains, body.Drain) })
		case *proto.ControlToAdmin_Leave:
			s.admin.note(func(seen *Seen) { seen.Left++ })
			return
		}
	}
}

func (s *Session) judge(items []*proto.InventoryItem) {
	s.admin.note(func(seen *Seen) { seen.Asked = append(seen.Asked, items...) })
	out := &proto.Verdicts{}
	for _, item := range items {
		verdict := proto.Verdict_VERDICT_KEEP
		if s.admin.Answer != nil {
			verdict = s.admin.Answer(s, item)
		}
		out.Verdicts = append(out.Verdicts, &proto.InventoryVerdict{ExecutionId: item.GetExecutionId(), Fence: item.GetFence(), Verdict: verdict})
	}
	_ = s.Control(&proto.ControlToExecutor{Body: &proto.ControlToExecutor_Verdicts{Verdicts: out}})
}

func (s *Session) readCommand() {
	reader := proto.NewReader(s.command, proto.MaxFrame)
	for {
		var m proto.CommandToAdmin
		if reader.Next(&m) != nil {
			return
		}
		switch body := m.GetBody().(type) {
		case *proto.CommandToAdmin_Answers:
			s.answers(body.Answers.GetAnswers())
		case *proto.CommandToAdmin_Started:
			if s.admin.OnResults == nil {
				s.admin.note(func(seen *Seen) { seen.Started = append(seen.Started, body.Started.GetStarted()...) })
			}
		case *proto.CommandToAdmin_Results:
			s.results(body.Results.GetResults())
		case *proto.CommandToAdmin_Progress:
			s.admin.note(func(seen *Seen) { seen.Progress = append(seen.Progress, body.Progress.GetProgress()...) })
		case *proto.CommandToAdmin_Steps:
			s.steps(body.Steps.GetSteps())
		}
	}
}

// steps answers as an admin does that knows no fences.
func (s *Session) steps(list []*proto.Step) {
	hold := s.admin.HoldSteps.Load()
	var acks []*proto.StepAck
	s.admin.note(func(seen *Seen) {
		seen.Steps = append(seen.Steps, list...)
		for _, step := range list {
			acks = append(acks, s.admin.stepLocked(step))
		}
	})
	if !hold {
		_ = s.Command(&proto.CommandToExecutor{Body: &proto.CommandToExecutor_StepAcks{StepAcks: &proto.StepAckBatch{Acks: acks}}})
	}
}

func (a *Admin) stepLocked(step *proto.Step) *proto.StepAck {
	ack := &proto.StepAck{ExecutionId: step.GetExecutionId(), Fence: step.GetFence(), Request: step.GetRequest(), Code: "none"}
	key := fmt.Sprintf("%d/%s", step.GetExecutionId(), step.GetName())
	switch stored, known := a.steps[key]; {
	case known:
		ack.Code, ack.Output = "found", stored
	case step.GetAction() == proto.StepAction_STEP_ACTION_STORE:
		if a.steps == nil {
			a.steps = map[string][]byte{}
		}
		a.steps[key], ack.Code = step.GetOutput(), "stored"
	}
	return ack
}

func (s *Session) answers(list []*proto.Answer) {
	hold := s.admin.HoldGrants.Load()
	if s.admin.OnResults == nil {
		s.admin.note(func(seen *Seen) { seen.Answers = append(seen.Answers, list...) })
	}
	if hold {
		return
	}
	var grants []*proto.Grant
	for _, answer := range list {
		if answer.GetAccepted() {
			grants = append(grants, &proto.Grant{ExecutionId: answer.GetExecutionId(), Fence: answer.GetFence(), Granted: true})
		}
	}
	if len(grants) > 0 {
		_ = s.Grant(grants...)
	}
}

func (s *Session) results(list []*proto.Result) {
	hold := s.admin.HoldAcks.Load()
	if s.admin.OnResults != nil {
		s.admin.OnResults(s, list)
	} else {
		s.admin.note(func(seen *Seen) { seen.Results = append(seen.Results, list...) })
	}
	if hold {
		return
	}
	acks := make([]*proto.ResultAck, len(list))
	for i, r := range list {
		acks[i] = &proto.ResultAck{ExecutionId: r.GetExecutionId(), Fence: r.GetFence(), Code: "stored"}
	}
	_ = s.Ack(acks...)
}

// Offer, Grant, Cancel and Ack send one batch.
func (s *Session) Offer(list ...*proto.Offer) error {
	batch := &proto.OfferBatch{Offers: make([]*proto.Offer, len(list))}
	for i, o := range list { // callers share theirs
		batch.Offers[i] = gproto.CloneOf(o)
		batch.Offers[i].LeaseSeq = s.leased.Load()
	}
	return s.Command(&proto.CommandToExecutor{Body: &proto.CommandToExecutor_Offers{Offers: batch}})
}

func (s *Session) Grant(list ...*proto.Grant) error {
	return s.Command(&proto.CommandToExecutor{Body: &proto.CommandToExecutor_Grants{Grants: &proto.GrantBatch{Grants: list}}})
}

func (s *Session) Cancel(list ...*proto.Cancel) error {
	return s.Command(&proto.CommandToExecutor{Body: &proto.CommandToExecutor_Cancels{Cancels: &proto.CancelBatch{Cancels: list}}})
}

func (s *Session) Ack(list ...*proto.ResultAck) error {
	return s.Command(&proto.CommandToExecutor{Body: &proto.CommandToExecutor_Acks{Acks: &proto.ResultAckBatch{Acks: list}}})
}

// Command and Control send one frame.
func (s *Session) Command(m *proto.CommandToExecutor) error {
	frame, err := proto.AppendFrame(nil, m, proto.MaxFrame)
	if err != nil {
		return err
	}
	return s.Raw(frame)
}

func (s *Session) Control(m *proto.ControlToExecutor) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return proto.WriteFrame(s.control, m, proto.MaxFrame)
}

// Raw writes bytes on the command stream.
func (s *Session) Raw(p []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err := s.command.Write(p)
	return err
}

// OpenStream opens a stream, which no admin should do.
func (s *Session) OpenStream() error {
	_, err := s.mux.OpenStream()
	return err
}

// Cut breaks the connection without a word, as a reset does.
func (s *Session) Cut() {
	if tcp, ok := s.conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = s.conn.Close()
}

// End closes the connection without a word, as the kernel does for a process
// that was killed.
func (s *Session) End() { _ = s.conn.Close() }

// Nodes pushes a node list.
func (s *Session) Nodes(nodes ...*proto.Node) error {
	return s.Control(&proto.ControlToExecutor{Body: &proto.ControlToExecutor_Nodes{Nodes: &proto.NodeList{Nodes: nodes}}})
}
