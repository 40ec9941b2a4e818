package hostile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/yamux"

	"github.com/carillon-sched/carillon/proto"
)

// Options say who floods whom.
type Options struct {
	Address, Executor, Token string
	// Slow is how many log connections send a byte a second.
	Slow int
}

// Done is what was sent.
type Done struct{ Sessions, Frames, Bytes, Ended atomic.Int64 }

// Flood goes on until ctx ends.
func Flood(ctx context.Context, o Options, done *Done) {
	var all sync.WaitGroup
	again := func(do func() error) {
		all.Go(func() {
			for ctx.Err() == nil {
				if do() != nil {
					done.Ended.Add(1)
				}
				select {
				case <-ctx.Done():
				case <-time.After(20 * time.Millisecond):
				}
			}
		})
	}
	for _, s := range shapes() {
		again(func() error { return o.flood(ctx, s, done) })
	}
	for range (o.Slow + 3) / 4 {
		again(func() error { return o.slowLogs(ctx, done) })
	}
	for range 8 { // slow before the handshake, in a frame, and in the multiplexer
		again(func() error { return o.drip(ctx, proto.Purpose_PURPOSE_UNSPECIFIED) })
		again(func() error { return o.drip(ctx, proto.Purpose_PURPOSE_CONTROL) })
	}
	all.Wait()
}

func (o Options) dial(ctx context.Context) (net.Conn, error) {
	conn, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, "tcp", o.Address)
	if err == nil {
		context.AfterFunc(ctx, func() { _ = conn.Close() })
	}
	return conn, err
}

func (o Options) hello(boot string, purpose proto.Purpose, session int64) *proto.ClientHello {
	return &proto.ClientHello{
		MinVersion: proto.MinVersion, MaxVersion: proto.Version, JoinToken: o.Token, Executor: o.Executor, BootId: boot,
		Purpose: purpose, SessionId: session, Client: "hostile/1",
	}
}

func (o Options) greet(ctx context.Context, boot string, purpose proto.Purpose, session int64) (net.Conn, int64, error) {
	conn, err := o.dial(ctx)
	if err != nil {
		return nil, 0, err
	}
	out, err := proto.AppendFrame([]byte(proto.Preface), o.hello(boot, purpose, session), proto.MaxHello)
	if err == nil {
		_, err = conn.Write(out)
	}
	var answer proto.ServerHello
	if err == nil {
		err = proto.ReadHello(conn, &answer)
	}
	if err == nil && answer.Error != nil {
		err = fmt.Errorf("%s: %s", answer.Error.Code, answer.Error.Message)
	}
	if err != nil {
		return nil, 0, errors.Join(err, conn.Close())
	}
	return conn, answer.SessionId, nil
}

// session is registered, and reads nothing more.
type session struct {
	boot             string
	id               int64
	mux              *yamux.Session
	control, command *yamux.Stream
}

func (o Options) join(ctx context.Context, handlers, size int) (s *session, err error) {
	s = &session{boot: newBoot()}
	conn, id, err := o.greet(ctx, s.boot, proto.Purpose_PURPOSE_CONTROL, 0)
	if err != nil {
		return nil, err
	}
	s.id = id
	config := yamux.DefaultConfig()
	config.EnableKeepAlive, config.LogOutput, config.ConnectionWriteTimeout = false, io.Discard, time.Minute
	if s.mux, err = yamux.Client(conn, config); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	if s.control, err = s.open("C"); err == nil {
		s.command, err = s.open("X")
	}
	if err == nil {
		err = proto.WriteFrame(s.control, &proto.ControlToAdmin{Body: &proto.ControlToAdmin_Register{Register: registration(s.boot, handlers, size)}}, proto.MaxFrame)
	}
	var answer proto.ControlToExecutor
	if err == nil {
		err = proto.NewReader(s.control, proto.MaxFrame).Next(&answer)
	}
	if err == nil && answer.GetRegistered() == nil {
		err = errors.New("not registered")
	}
	if err != nil {
		return nil, errors.Join(err, s.mux.Close())
	}
	return s, nil
}

func (s *session) open(tag string) (*yamux.Stream, error) {
	stream, err := s.mux.OpenStream()
	if err == nil {
		_, err = stream.Write([]byte(tag))
	}
	return stream, err
}

// flood sends one frame until the node ends the session.
func (o Options) flood(ctx context.Context, one shape, done *Done) error {
	handlers, size := 1, 0
	if one.kind == "ControlToAdmin.register" {
		handlers, size = proto.MaxHandlers, 900 // each session registers as much as it may
	}
	s, err := o.join(ctx, handlers, size)
	if err != nil {
		return err
	}
	defer s.mux.Close()
	done.Sessions.Add(1)
	frame, err := encoded(one.make(s.boot))
	if err != nil {
		return err
	}
	var w io.Writer = s.command
	switch {
	case one.kind == "LogBatch":
		conn, _, err := o.greet(ctx, s.boot, proto.Purpose_PURPOSE_LOGS, s.id)
		if err != nil {
			return err
		}
		defer conn.Close()
		w = conn
	case strings.HasPrefix(one.kind, "Control"):
		w = s.control
	}
	for {
		n, err := w.Write(frame)
		done.Bytes.Add(int64(n))
		if err != nil {
			return err
		}
		done.Frames.Add(1)
	}
}

// slowLogs has as many log connections as one session may, and each begins a
// batch that it sends byte by byte.
func (o Options) slowLogs(ctx context.Context, done *Done) error {
	s, err := o.join(ctx, 1, 0)
	if err != nil {
		return err
	}
	defer s.mux.Close()
	done.Sessions.Add(1)
	frame, err := encoded(logs(4, proto.MaxBatch, 400))
	if err != nil {
		return err
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for ctx.Err() == nil && !s.mux.IsClosed() {
				conn, _, err := o.greet(ctx, s.boot, proto.Purpose_PURPOSE_LOGS, s.id)
				if err != nil {
					return
				}
				_ = slowly(ctx, conn, frame, done)
				_ = conn.Close()
			}
		})
	}
	all.Go(func() { // a heart, so that it lasts
		for seq := int64(1); ctx.Err() == nil; seq++ {
			if proto.WriteFrame(s.control, &proto.ControlToAdmin{Body: &proto.ControlToAdmin_Heartbeat{Heartbeat: &proto.Heartbeat{Seq: seq, Slots: 1}}}, proto.MaxFrame) != nil {
				return
			}
			select {
			case <-ctx.Done():
			case <-time.After(proto.HeartbeatInterval):
			}
		}
	})
	all.Wait()
	return nil
}

// drip says a byte a second: of a hello, or of what comes after it.
func (o Options) drip(ctx context.Context, purpose proto.Purpose) error {
	conn, err := o.dial(ctx)
	if err == nil && purpose != proto.Purpose_PURPOSE_UNSPECIFIED {
		_ = conn.Close()
		conn, _, err = o.greet(ctx, newBoot(), purpose, 0)
	}
	if err != nil {
		return err
	}
	defer conn.Close()
	return slowly(ctx, conn, []byte(proto.Preface+text[:100]), &Done{})
}

func slowly(ctx context.Context, conn net.Conn, all []byte, done *Done) error {
	for i := range all {
		if _, err := conn.Write(all[i : i+1]); err != nil {
			return err
		}
		done.Bytes.Add(1)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Second):
		}
	}
	return nil
}
