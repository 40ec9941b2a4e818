package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/carillon-sched/carillon/proto"
)

// watchEvery bounds the pause between two looks at a session.
const watchEvery = time.Second

// watch closes the session when the peer is silent for too long, when it opens
// streams it should not, or when the gateway stops; and it lets the instance
// have no offers while it does not answer.
func (g *Gateway) watch(ctx context.Context, s *Session) error {
	timer := time.NewTimer(watchEvery)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return errGatewayStopped
		case <-s.closed:
			return nil
		case <-s.mux.CloseChan():
			return io.EOF
		case <-timer.C:
		case <-s.stir:
		}
		if s.mux.NumStreams() > 2 {
			return errors.New("the executor opened a third stream")
		}
		s.mu.Lock()
		silence := time.Since(s.lastBeat)
		s.mu.Unlock()
		if silence > proto.HeartbeatTimeout {
			return fmt.Errorf("no heartbeat for %s", silence.Round(time.Second))
		}
		again, err := g.feel(s, time.Now())
		if err != nil {
			return err
		}
		timer.Reset(min(again, watchEvery))
	}
}

// feel judges the session's pulse and tells what has changed.
func (g *Gateway) feel(s *Session, now time.Time) (again time.Duration, err error) {
	s.mu.Lock()
	s.pulse.hear(s.began.Add(time.Duration(s.heardAt.Load())))
	ask, again, err := s.pulse.judge(now)
	doubted := s.pulse.doubted(now)
	s.mu.Unlock()
	if err != nil {
		return 0, err
	}
	if ask {
		s.ping()
	}
	switch was := s.doubt.Swap(doubted); {
	case doubted && !was:
		g.log.Warn("executor does not answer; it gets no offers from here meanwhile", "instance_id", s.Instance, "instance", s.Name)
		g.opt.Sink.Doubted(s)
	case was && !doubted:
		g.log.Info("executor answers again", "instance_id", s.Instance, "instance", s.Name)
		g.opt.Sink.Freed(s, s.Free())
	}
	return again, nil
}

// hear notes that something came. It is called by the connection's reader.
func (s *Session) hear() {
	s.heardAt.Store(int64(time.Since(s.began)))
	if s.doubt.Load() {
		s.stirUp()
	}
}

func (s *Session) stirUp() {
	select {
	case s.stir <- struct{}{}:
	default:
	}
}

// ping asks the peer's multiplexer, which answers without the application; one
// at a time. It ends with its answer, after proto.WriteTimeout, or with the
// session.
func (s *Session) ping() {
	if !s.pinging.CompareAndSwap(false, true) {
		return
	}
	s.pings.Go(func() {
		defer s.pinging.Store(false)
		if _, err := s.mux.Ping(); err == nil {
			s.mu.Lock()
			s.pulse.pinged()
			s.mu.Unlock()
		}
	})
}
