package gateway

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/carillon-sched/carillon/proto"
)

func (s *Session) sendControl(m *proto.ControlToExecutor) {
	if err := s.control.put(m); err != nil {
		s.close(err)
	}
}

func (s *Session) sendCommand(m *proto.CommandToExecutor) {
	if err := s.command.put(m); err != nil {
		s.close(err)
	}
}

// renewedBy notes that a heartbeat has renewed the instance's lease.
func (s *Session) renewedBy(seq int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leased = max(s.leased, seq)
}

// Granted reports whether the attempt was offered here in one step.
func (s *Session) Granted(execution, fence int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.inflight[attemptKey{execution, fence}].granted
}

// SendOffers sends offers in frames of bounded size. Their slots have been
// reserved under the fences they carry.
func (s *Session) SendOffers(offers []*proto.Offer) {
	s.mu.Lock()
	first := s.pulse.offered(time.Now(), len(offers))
	for _, o := range offers {
		k := attemptKey{o.ExecutionId, o.Fence}
		f, reserved := s.inflight[k]
		if !reserved { // a full instance refuses by itself
			f.lease = s.leased
		} else if o.Granted {
			f.granted = true
			s.inflight[k] = f
		}
		o.LeaseSeq = f.lease
	}
	s.mu.Unlock()
	if first {
		s.stirUp()
	}
	for len(offers) > 0 {
		n, size := 0, 0
		for n < len(offers) && n < proto.MaxBatch && size < proto.MaxFrame/2 {
			size += len(offers[n].Input) + len(offers[n].GetScript().GetContent()) + 512
			n++
		}
		s.sendCommand(&proto.CommandToExecutor{Body: &proto.CommandToExecutor_Offers{
			Offers: &proto.OfferBatch{Offers: offers[:n]},
		}})
		offers = offers[n:]
	}
}

// SendGrants tells which accepted offers may start and which are void.
func (s *Session) SendGrants(grants []*proto.Grant) {
	for _, g := range grants {
		if !g.Granted {
			s.ended(attemptKey{g.ExecutionId, g.Fence})
		}
	}
	s.sendCommand(&proto.CommandToExecutor{Body: &proto.CommandToExecutor_Grants{Grants: &proto.GrantBatch{Grants: grants}}})
}

// SendAcks acknowledges results that are stored.
func (s *Session) SendAcks(acks []*proto.ResultAck) {
	s.sendCommand(&proto.CommandToExecutor{Body: &proto.CommandToExecutor_Acks{Acks: &proto.ResultAckBatch{Acks: acks}}})
}

// SendCancel asks the instance to stop an attempt.
func (s *Session) SendCancel(c *proto.Cancel) {
	s.sendCommand(&proto.CommandToExecutor{Body: &proto.CommandToExecutor_Cancels{Cancels: &proto.CancelBatch{Cancels: []*proto.Cancel{c}}}})
}

func (g *Gateway) readControl(ctx context.Context, s *Session, reader *proto.Reader) error {
	for {
		var m proto.ControlToAdmin
		if err := reader.Next(&m); err != nil {
			return err
		}
		switch body := m.Body.(type) {
		case *proto.ControlToAdmin_Heartbeat:
			g.heartbeat(s, body.Heartbeat)
		case *proto.ControlToAdmin_Inventory:
			g.inventory(ctx, s, body.Inventory.GetItems())
		case *proto.ControlToAdmin_Drain:
			s.mu.Lock()
			s.draining = true
			s.mu.Unlock()
			g.log.Info("executor drains", "instance_id", s.Instance, "reason", body.Drain.Reason)
		case *proto.ControlToAdmin_Register:
			return errors.New("registered twice")
		}
	}
}

func (g *Gateway) heartbeat(s *Session, b *proto.Heartbeat) {
	s.mu.Lock()
	s.lastBeat = time.Now()
	s.counted(int(b.Running))
	if b.Slots > 0 {
		s.slots = int(b.Slots)
	}
	s.draining = s.draining || b.Draining
	s.mu.Unlock()
	g.renewals.add(s, b)
	if room := s.Free(); room > 0 { // attempts of other nodes may have ended
		g.opt.Sink.Freed(s, room)
	}
}

func (g *Gateway) readCommands(s *Session, stream net.Conn) error {
	reader := proto.NewReader(stream, proto.MaxFrame)
	for {
		var m proto.CommandToAdmin
		if err := reader.Next(&m); err != nil {
			return err
		}
		switch body := m.Body.(type) {
		case *proto.CommandToAdmin_Answers:
			g.answers(s, body.Answers.GetAnswers())
		case *proto.CommandToAdmin_Started:
			g.opt.Sink.Started(s, body.Started.GetStarted())
		case *proto.CommandToAdmin_Results:
			g.results(s, body.Results.GetResults())
		}
	}
}

func (g *Gateway) answers(s *Session, answers []*proto.Answer) {
	s.mu.Lock()
	s.pulse.answered(time.Now(), len(answers))
	s.mu.Unlock()
	freed := 0
	for _, a := range answers {
		if !a.Accepted {
			freed += s.ended(attemptKey{a.ExecutionId, a.Fence})
		}
	}
	g.opt.Sink.Answered(s, answers)
	if freed > 0 {
		g.opt.Sink.Freed(s, freed)
	}
}

func (g *Gateway) results(s *Session, results []*proto.Result) {
	keys := make([]attemptKey, 0, len(results))
	for _, r := range results {
		if !r.StillRunning {
			keys = append(keys, attemptKey{r.ExecutionId, r.Fence})
		}
	}
	freed := s.ended(keys...)
	g.opt.Sink.Finished(s, results)
	if freed > 0 {
		g.opt.Sink.Freed(s, freed)
	}
}
