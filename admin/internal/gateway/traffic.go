package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/hashicorp/yamux"

	"github.com/carillon-sched/carillon/admin/internal/batch"
	"github.com/carillon-sched/carillon/admin/internal/store"
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

// renewedBy notes that a heartbeat that was heard at that time has renewed the
// instance's lease.
func (sl *Slots) renewedBy(seq int64, heard time.Time) {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	if seq > sl.leased {
		sl.leased, sl.leasedAt = seq, heard.Sub(sl.began)
	}
}

// Granted reports whether the attempt was offered here in one step.
func (sl *Slots) Granted(execution, fence int64) bool {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	return sl.inflight[attemptKey{execution, fence}].granted
}

// SendOffers sends offers in frames of bounded size, behind everything that is
// small. Their slots have been reserved under the fences they carry.
func (s *Session) SendOffers(offers []*proto.Offer) {
	items := make([]bulk, len(offers))
	s.mu.Lock()
	now := time.Now()
	first := s.idle.offered(now, len(offers))
	for i, o := range offers {
		items[i].offer = o
		k := attemptKey{o.ExecutionId, o.Fence}
		f, reserved := s.Slots.inflight[k]
		if !reserved { // a full instance refuses by itself
			f = reservation{lease: s.Slots.leased, leaseAt: s.Slots.leasedAt, since: now}
			s.Slots.bound(o, &f, now)
		} else {
			s.Slots.bound(o, &f, now)
			f.granted, f.answered = f.granted || o.Granted, false
			s.Slots.loading += offerSize(o) - f.loading
			f.loading = offerSize(o) // with its script
			s.Slots.inflight[k] = f
		}
		o.LeaseSeq = f.lease
	}
	s.mu.Unlock()
	if first {
		s.watch.within(answerAfter)
	}
	if err := s.command.putBulk(items); err != nil {
		s.close(err)
	}
}

// SendGrants tells which accepted offers may start and which are void.
func (s *Session) SendGrants(grants []*proto.Grant) {
	for _, g := range grants {
		if !g.Granted {
			s.Slots.ended(attemptKey{g.ExecutionId, g.Fence})
		}
	}
	defer s.endWork(func() { s.ungranted = max(0, s.ungranted-len(grants)) })
	s.sendCommand(&proto.CommandToExecutor{Body: &proto.CommandToExecutor_Grants{Grants: &proto.GrantBatch{Grants: grants}}})
}

// SendAcks acknowledges results that are stored. It is not urgent: until then
// the executor keeps them in its journal.
func (s *Session) SendAcks(acks []*proto.ResultAck) {
	defer s.endWork(func() { s.endOutstanding(&s.results, len(acks)) })
	err := s.command.put(&proto.CommandToExecutor{Body: &proto.CommandToExecutor_Acks{Acks: &proto.ResultAckBatch{Acks: acks}}})
	if err != nil {
		s.close(err)
	}
}

// SendStepAcks answers steps, behind everything that is small: a result may be
// large.
func (s *Session) SendStepAcks(acks []*proto.StepAck) {
	s.Unanswered(len(acks)) // not any more
	items := make([]bulk, len(acks))
	for i, a := range acks {
		items[i].step = a
	}
	if err := s.command.putBulk(items); err != nil {
		s.close(err)
	}
}

// Unacked is told how many results were handed over and will not be acknowledged.
func (s *Session) Unacked(n int) { s.endWork(func() { s.endOutstanding(&s.results, n) }) }

// Unanswered is told how many steps were handed over and will not be answered.
func (s *Session) Unanswered(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endOutstanding(&s.steps, n)
}

// accepted notes that an acceptance waits for its grant.
func (s *Session) accepted(k attemptKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f, ok := s.Slots.inflight[k]; ok && !f.granted {
		s.ungranted++
	}
}

// endWork changes what is under way, and lets Settle look.
func (s *Session) endWork(change func()) {
	s.mu.Lock()
	change()
	s.mu.Unlock()
	if s.wakeSettle != nil {
		s.wakeSettle()
	}
}

// SendCancel asks the instance to stop an attempt.
func (s *Session) SendCancel(c *proto.Cancel) {
	if err := s.command.putCancel(c); err != nil {
		s.close(err)
	}
}

// intake reads what executors say in their sessions, and hands it on. Its methods are
// called by the readers of a session.
type intake struct {
	// fixed after construction
	sink        Sink
	inventories *inventories
	renewer     *renewer
	tasks       *tasks
	wakeSettle  func() // of the gateway
	log         *slog.Logger
	leaves      *batch.Calls[store.InstanceLeave, error]
}

// maxControl bounds the frames on the control stream, in a second. An honest
// executor sends a heartbeat every 3 s, and some more when its load changes.
const maxControl = 50

func (it *intake) readControl(ctx context.Context, s *Session, io streams) error {
	var pace allowance
	in := inbox{s, io.control, io.reader, 0}
	for {
		var m proto.ControlToAdmin
		err := in.next(&m, func(size int) int { return weightOf(size, smallControl, proto.MaxFrame) }, func() error {
			if !pace.take(maxControl, time.Now()) {
				return &excess{codeLimit, fmt.Sprintf("the executor sends more than %d control frames in a second", maxControl)}
			}
			return it.controlled(ctx, s, io, &m)
		})
		if err != nil {
			return err
		}
	}
}

// controlled does what a control frame says; an error ends the session.
func (it *intake) controlled(ctx context.Context, s *Session, io streams, m *proto.ControlToAdmin) error {
	switch body := m.Body.(type) {
	case *proto.ControlToAdmin_Heartbeat:
		it.heartbeat(s, body.Heartbeat)
		// What a burst has left behind; the next one takes it again.
		io.control.Shrink()
		io.command.Shrink()
	case *proto.ControlToAdmin_Inventory:
		it.inventories.answer(ctx, s, body.Inventory.GetItems())
	case *proto.ControlToAdmin_Drain:
		s.mu.Lock()
		first := !s.draining
		s.drainLocked()
		s.mu.Unlock()
		if first {
			it.sink.Draining(s)
			it.log.Info("executor drains", "instance_id", s.Instance, "reason", clipText(body.Drain.GetReason(), proto.MaxProgressText))
		}
	case *proto.ControlToAdmin_Leave:
		it.leave(ctx, s)
		return errLeft
	case *proto.ControlToAdmin_Register:
		return &excess{codeMalformed, "the executor registered twice in one session"}
	}
	return nil
}

var errLeft = errors.New("the executor has stopped")

// leave takes an instance off the list whose process ends with nothing left to
// tell. Without the database its lease runs out by itself.
func (it *intake) leave(ctx context.Context, s *Session) {
	s.mu.Lock()
	s.drainLocked()
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, proto.WriteTimeout)
	defer cancel()
	refused, err := it.leaves.Do(ctx, store.InstanceLeave{Tenant: s.Tenant, ID: s.Instance, Reason: "stopped"})
	if err == nil {
		err = refused
	}
	if err != nil {
		it.log.Warn("an instance that stopped could not be taken off the list; its lease runs out", "instance_id", s.Instance, "err", err)
		it.tasks.tellFault(err)
	}
}

func (it *intake) heartbeat(s *Session, b *proto.Heartbeat) {
	s.mu.Lock()
	s.idle.beatAt = time.Now()
	s.Slots.occupancy.Counted(int(b.Running))
	if b.Slots > 0 {
		s.Slots.occupancy.slots = int(b.Slots)
	}
	s.cpu, s.memory = share(int64(b.CpuMilli), int64(b.CpuLimitMilli)), share(b.MemoryBytes, b.MemoryLimitBytes)
	turned := s.refusing != b.Refusing
	s.refusing = b.Refusing
	leaves := b.Draining && !s.draining
	if b.Draining {
		s.drainLocked()
	}
	s.mu.Unlock()
	if leaves {
		it.sink.Draining(s)
	}
	if turned && b.Refusing {
		it.log.Warn("executor takes nothing: its journal cannot be written", "instance_id", s.Instance)
	} else if turned {
		it.log.Info("executor takes runs again", "instance_id", s.Instance)
	}
	it.renewer.renewals.add(s, b)
	if room := s.Free(); room > 0 { // attempts of other nodes may have ended
		it.sink.Freed(s, room)
	}
}

// share is a part of a limit in thousandths; 0 when there is no limit, or when
// what was reported makes no sense.
func share(part, limit int64) int {
	if part <= 0 || limit <= 0 {
		return 0
	}
	return int(min(float64(part)/float64(limit), 100) * 1000)
}

func (it *intake) readCommands(s *Session, stream *yamux.Stream) error {
	in := inbox{s, stream, proto.NewReader(stream, proto.MaxFrame), commandCost}
	for {
		var m proto.CommandToAdmin
		err := in.next(&m, func(size int) int { return weightOf(size, smallFrame, size) }, func() error {
			it.command(s, &m)
			return nil
		})
		if err != nil {
			return err
		}
	}
}

func (it *intake) command(s *Session, m *proto.CommandToAdmin) {
	trim(m)
	switch body := m.Body.(type) {
	case *proto.CommandToAdmin_Answers:
		it.answers(s, body.Answers.GetAnswers())
	case *proto.CommandToAdmin_Started:
		it.sink.Started(s, body.Started.GetStarted())
	case *proto.CommandToAdmin_Results:
		it.results(s, body.Results.GetResults())
	case *proto.CommandToAdmin_Progress:
		it.sink.Progress(s, body.Progress.GetProgress())
	case *proto.CommandToAdmin_Steps:
		if list := body.Steps.GetSteps(); s.addOutstanding(&s.steps, len(list), sizeOfSteps(list)) {
			it.sink.Steps(s, list)
		}
	}
}

// unexpectedAnswers is how many answers to offers that were not made through this
// session are taken in a second. A full instance refuses what is sent again
// without a place; what is dropped is taken back when its offer expires.
const unexpectedAnswers = 200

// expected leaves out answers that come twice, or too many that nobody asked for.
func (s *Session) expected(answers []*proto.Answer, now time.Time) []*proto.Answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.idle.answered(now, len(answers))
	return slices.DeleteFunc(answers, func(a *proto.Answer) bool {
		k := attemptKey{a.ExecutionId, a.Fence}
		f, offered := s.Slots.inflight[k]
		if !offered {
			return !s.unexpected.take(unexpectedAnswers, now)
		}
		again := f.answered
		f.answered = true
		s.Slots.inflight[k] = f
		return again
	})
}

func (it *intake) answers(s *Session, answers []*proto.Answer) {
	answers = s.expected(answers, time.Now())
	defer it.wakeSettle() // when what they ask for has been handed on
	freed := 0
	for _, a := range answers {
		k := attemptKey{a.ExecutionId, a.Fence}
		switch {
		case a.Accepted:
			s.accepted(k)
		case a.RejectCode == rejectBusy:
			s.Slots.full(k)
		case a.RejectCode == rejectOld:
			s.Slots.cameLate(k, time.Now())
			freed += s.Slots.ended(k)
		default:
			freed += s.Slots.ended(k)
		}
	}
	it.sink.Answered(s, answers)
	if freed > 0 {
		it.sink.Freed(s, freed)
	}
}

func (it *intake) results(s *Session, results []*proto.Result) {
	keys := make([]attemptKey, 0, len(results))
	for _, r := range results {
		if !r.StillRunning {
			keys = append(keys, attemptKey{r.ExecutionId, r.Fence})
		}
	}
	if !s.addOutstanding(&s.results, len(results), sizeOfResults(results)) {
		return
	}
	freed := s.Slots.ended(keys...)
	it.sink.Finished(s, results)
	if freed > 0 {
		it.sink.Freed(s, freed)
	}
}
