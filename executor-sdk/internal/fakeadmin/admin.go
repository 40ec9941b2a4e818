// Package fakeadmin is an admin node for tests: a real TCP listener that
// speaks the protocol, keeps nothing, and does what the test says. By itself
// it registers everybody, grants what is accepted and acknowledges results and
// logs; switches turn each of these off.
package fakeadmin

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/carillon-sched/carillon/proto"
)

// Token is what executors have to show.
const Token = "cjt_fake"

// Admin is one fake node. Set the fields before Start; the switches may change
// at any time.
type Admin struct {
	Node string
	// Listen is the address; default a free port on 127.0.0.1.
	Listen string
	TLS    *tls.Config
	// LeaseTTL and Heartbeat are announced; zero = the protocol's.
	LeaseTTL, Heartbeat time.Duration
	// Rest is what heartbeats of executors are answered with that run nothing and
	// go by it; 0 = they beat as usual.
	Rest time.Duration
	// Refuse answers a hello with an error; nil = check the token.
	Refuse func(*proto.ClientHello) *proto.Error
	// Enroll answers a hello that asks for a certificate; nil = with nothing.
	Enroll func(*proto.ClientHello) []byte
	// Offer says in each answer that certificates are given.
	Offer bool
	// Judge gives the verdicts and the node list of a registration.
	Judge func(*Session, *proto.Register) *proto.Registered
	// Answer gives the verdicts on an Inventory frame; nil = KEEP for all.
	Answer func(*Session, *proto.InventoryItem) proto.Verdict
	// OnResults replaces the recording of results, for benchmarks.
	OnResults func(*Session, []*proto.Result)

	// Switches, all off by default.
	HoldGrants, HoldAcks, HoldLogAcks, HoldHeartbeats, HoldSteps, DenyLease atomic.Bool

	listener net.Listener
	wait     sync.WaitGroup

	mu       sync.Mutex
	cond     *sync.Cond
	conns    map[net.Conn]bool
	logsOf   map[int64][]net.Conn // by session
	sessions []*Session           // alive
	nextID   int64
	seen     Seen
	steps    map[string][]byte // execution/name → what is stored
	closed   bool
}

// Seen is what executors sent, in the order of arrival.
type Seen struct {
	Hellos     []*proto.ClientHello
	Registers  []*proto.Register
	Heartbeats []*proto.Heartbeat
	Drains     []*proto.Drain
	Asked      []*proto.InventoryItem
	Answers    []*proto.Answer
	Started    []*proto.Started
	Results    []*proto.Result
	Progress   []*proto.Progress
	Steps      []*proto.Step
	Lines      []Line
	LogConns   int
	// Left counts the sessions whose process said that it ends.
	Left int
	// Sessions counts the registered ones, Ended those that are over.
	Sessions, Ended int
}

// Line is one log line with its number.
type Line struct {
	Execution, Fence, Number int64
	*proto.LogLine
}

// Start listens.
func (a *Admin) Start() error {
	if a.Node == "" {
		a.Node = "node1"
	}
	if a.Listen == "" {
		a.Listen = "127.0.0.1:0"
	}
	listener, err := net.Listen("tcp", a.Listen)
	if err != nil {
		return err
	}
	if a.TLS != nil {
		listener = tls.NewListener(listener, a.TLS)
	}
	a.listener, a.conns, a.logsOf, a.closed = listener, map[net.Conn]bool{}, map[int64][]net.Conn{}, false
	if a.cond == nil {
		a.cond = sync.NewCond(&a.mu)
	}
	a.wait.Go(a.accept)
	return nil
}

// Address is where executors connect.
func (a *Admin) Address() string { return a.listener.Addr().String() }

// Close ends the listener and all connections, at once.
func (a *Admin) Close() {
	a.mu.Lock()
	a.closed = true
	for conn := range a.conns {
		_ = conn.Close()
	}
	a.mu.Unlock()
	_ = a.listener.Close()
	a.wait.Wait()
}

func (a *Admin) accept() {
	for {
		conn, err := a.listener.Accept()
		if err != nil {
			return
		}
		a.mu.Lock()
		if a.closed {
			_ = conn.Close()
		}
		a.conns[conn] = true
		a.mu.Unlock()
		a.wait.Go(func() {
			defer func() {
				_ = conn.Close()
				a.mu.Lock()
				delete(a.conns, conn)
				a.mu.Unlock()
			}()
			a.serve(conn)
		})
	}
}

// serve checks preface and hello as an admin must.
func (a *Admin) serve(conn net.Conn) {
	_ = conn.SetReadDeadline(time.Now().Add(proto.HelloTimeout))
	preface := make([]byte, len(proto.Preface))
	if _, err := io.ReadFull(conn, preface); err != nil || string(preface) != proto.Preface {
		return
	}
	var hello proto.ClientHello
	if proto.ReadHello(conn, &hello) != nil {
		return
	}
	_ = conn.SetReadDeadline(time.Time{})
	a.note(func(s *Seen) { s.Hellos = append(s.Hellos, &hello) })
	reply := &proto.ServerHello{Version: proto.Version, NodeId: a.Node, ClusterId: "fake", Enroll: a.Offer, Error: a.refuse(&hello)}
	a.mu.Lock()
	a.nextID++
	reply.SessionId = a.nextID
	a.mu.Unlock()
	if a.Enroll != nil && hello.GetPurpose() == proto.Purpose_PURPOSE_ENROLL && reply.Error == nil {
		reply.Certificate = a.Enroll(&hello)
	}
	if proto.WriteFrame(conn, reply, proto.MaxHello) != nil || reply.Error != nil {
		return
	}
	switch hello.GetPurpose() {
	case proto.Purpose_PURPOSE_CONTROL:
		a.control(conn, &hello, reply.GetSessionId())
		a.endLogs(reply.GetSessionId())
	case proto.Purpose_PURPOSE_LOGS:
		a.mu.Lock()
		a.logsOf[hello.GetSessionId()] = append(a.logsOf[hello.GetSessionId()], conn)
		a.mu.Unlock()
		a.logs(conn)
	}
}

// endLogs ends a session's log connections with it.
func (a *Admin) endLogs(session int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, conn := range a.logsOf[session] {
		_ = conn.Close()
	}
	delete(a.logsOf, session)
}

func (a *Admin) refuse(hello *proto.ClientHello) *proto.Error {
	if a.Refuse != nil {
		return a.Refuse(hello)
	}
	if hello.GetJoinToken() != Token {
		return &proto.Error{Code: "bad_token", Message: "the join token is not known", RetryAfterMs: -1}
	}
	return nil
}

func (a *Admin) logs(conn net.Conn) {
	a.note(func(s *Seen) { s.LogConns++ })
	reader := proto.NewReader(conn, proto.MaxFrame)
	for {
		var batch proto.LogBatch
		if reader.Next(&batch) != nil {
			return
		}
		hold := a.HoldLogAcks.Load() // before anybody can see the lines, and change it
		a.note(func(s *Seen) {
			for _, c := range batch.GetChunks() {
				for i, line := range c.GetLines() {
					s.Lines = append(s.Lines, Line{c.GetExecutionId(), c.GetFence(), c.GetFirstLine() + int64(i), line})
				}
			}
		})
		if hold {
			continue
		}
		if proto.WriteFrame(conn, &proto.LogAck{Seq: batch.GetSeq()}, proto.MaxFrame) != nil {
			return
		}
	}
}

// note changes what was seen and wakes those who wait for it.
func (a *Admin) note(f func(*Seen)) {
	a.mu.Lock()
	f(&a.seen)
	a.cond.Broadcast()
	a.mu.Unlock()
}

// Seen returns a copy of what was seen.
func (a *Admin) Seen() Seen {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.copyLocked()
}

func (a *Admin) copyLocked() Seen {
	s := a.seen
	s.Results = append([]*proto.Result(nil), s.Results...)
	s.Answers = append([]*proto.Answer(nil), s.Answers...)
	s.Lines = append([]Line(nil), s.Lines...)
	return s
}

// Wait returns when what was seen meets the condition, or after d with an error.
func (a *Admin) Wait(d time.Duration, condition func(Seen) bool) (Seen, error) {
	late := false
	timer := time.AfterFunc(d, func() {
		a.mu.Lock()
		late = true
		a.cond.Broadcast()
		a.mu.Unlock()
	})
	defer timer.Stop()
	a.mu.Lock()
	defer a.mu.Unlock()
	for !condition(a.seen) {
		if late {
			return a.copyLocked(), fmt.Errorf("not seen within %s: %d hellos, %d registered, %d answers, %d started, %d results, %d lines",
				d, len(a.seen.Hellos), a.seen.Sessions, len(a.seen.Answers), len(a.seen.Started), len(a.seen.Results), len(a.seen.Lines))
		}
		a.cond.Wait()
	}
	return a.copyLocked(), nil
}

// Sessions returns the living sessions, the oldest first.
func (a *Admin) Sessions() []*Session {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]*Session(nil), a.sessions...)
}
