package logship

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"github.com/carillon-sched/carillon/proto"
)

// Run connects when there are lines and sends them until ctx ends. What is not
// stored by then stays in the spool.
func (s *Shipper) Run(ctx context.Context) {
	var wait sync.WaitGroup
	defer wait.Wait()
	if s.spool != nil {
		wait.Go(func() { s.runSpool(ctx) })
		wait.Go(func() { s.readFound(ctx) })
	}
	s.ship(ctx)
}

func (s *Shipper) ship(ctx context.Context) {
	failures := 0
	told := ""
	for {
		if !s.awaitLines(ctx) {
			return
		}
		conn, err := s.options.Dial(ctx)
		if err == nil {
			s.restart()
			var stored bool
			if stored, err = s.serve(ctx, conn); stored {
				failures, told = 0, ""
			}
		}
		if ctx.Err() != nil {
			return
		}
		told = s.tell(err, told)
		ceiling := min(retryMin<<min(failures, 10), retryMax)
		failures++
		select {
		case <-ctx.Done():
			return
		case <-time.After(rand.N(ceiling)):
		case <-s.wake:
			// A new session may do better; but lines wake too, so not at once.
			select {
			case <-ctx.Done():
				return
			case <-time.After(retryMin):
			}
		}
	}
}

// tell logs a refusal once until it changes. Connections that fail are told
// about by the sessions, which fail with them.
func (s *Shipper) tell(err error, told string) string {
	level := slog.LevelDebug
	if errors.As(err, new(*refusedError)) {
		level = slog.LevelWarn
	}
	if text := err.Error(); text != told {
		s.options.Logger.Log(context.Background(), level, "log connection lost, trying again", "err", err)
		return text
	}
	return told
}

// awaitLines waits until something has to be sent.
func (s *Shipper) awaitLines(ctx context.Context) bool {
	for {
		s.mu.Lock()
		waiting := s.total > 0
		s.mu.Unlock()
		if ctx.Err() != nil {
			return false
		}
		if waiting {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-s.wake:
		}
	}
}

var (
	errStopped = errors.New("stopped")
	errNoAck   = errors.New("no acknowledgement in time")
)

// serve sends on one connection until it fails. stored says that the admin
// took at least one batch.
func (s *Shipper) serve(ctx context.Context, conn net.Conn) (stored bool, err error) {
	failed := make(chan error, 1)
	var wait sync.WaitGroup
	wait.Go(func() {
		var readErr error
		stored, readErr = s.readAcks(conn)
		failed <- readErr
	})
	err = s.send(ctx, conn, failed)
	_ = conn.Close()
	wait.Wait()
	return stored, err
}

func (s *Shipper) send(ctx context.Context, conn net.Conn, failed <-chan error) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	var buf []byte
	for {
		now := time.Now()
		s.mu.Lock()
		wait := s.due(now)
		var m *proto.LogBatch
		if wait == 0 {
			m = s.take(now)
		}
		late := false
		if len(s.inFlight) > 0 {
			left := ackTimeout - now.Sub(s.inFlight[0].sentAt)
			if late = left <= 0; wait < 0 || left < wait {
				wait = left
			}
		}
		s.mu.Unlock()
		if late {
			return errNoAck
		}
		if m != nil {
			var err error
			if buf, err = proto.AppendFrame(buf[:0], m, proto.MaxFrame); err != nil {
				return err
			}
			if _, err := conn.Write(buf); err != nil {
				return err
			}
			continue
		}
		timer.Stop()
		if wait > 0 {
			timer.Reset(wait)
		}
		select {
		case <-ctx.Done():
			return errStopped
		case err := <-failed:
			return err
		case <-s.wake:
		case <-timer.C:
		}
	}
}

// readAcks handles what the admin answers, until the connection ends.
func (s *Shipper) readAcks(conn net.Conn) (stored bool, err error) {
	reader := proto.NewReader(conn, proto.MaxFrame)
	for {
		var ack proto.LogAck
		if err := reader.Next(&ack); err != nil {
			return stored, fmt.Errorf("read log acknowledgement: %w", err)
		}
		if e := ack.GetError(); e != nil {
			// Older admin nodes name the batch that was not stored. What was, and
			// goes out again, costs nothing.
			return stored, &refusedError{e.GetCode(), e.GetMessage()}
		}
		s.acknowledged(ack.GetSeq())
		stored = true
	}
}

// refusedError is the admin's no to a batch.
type refusedError struct{ code, message string }

func (e *refusedError) Error() string { return "logs refused: " + e.code + ": " + e.message }
