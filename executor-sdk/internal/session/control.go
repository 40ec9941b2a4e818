package session

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/carillon-sched/carillon/proto"
)

// silence is how many heartbeats in a row may stay without an answer. They are
// counted, not timed: a process that was frozen has sent none meanwhile, and
// the answers to the last ones may be waiting to be read.
const silence = 3

// beat sends heartbeats: one at once, then one per interval, and in between
// when the load has news or a question waits.
func (l *Link) beat(done <-chan struct{}) error {
	ticker := time.NewTicker(l.interval)
	defer ticker.Stop()
	for {
		if err := l.heartbeat(); err != nil {
			return err
		}
		select {
		case <-done:
			return nil
		case <-ticker.C:
		case <-l.beatNow:
		}
	}
}

func (l *Link) heartbeat() error {
	if err := l.ask(); err != nil {
		return err
	}
	m := l.events.Load()
	m.Parked = l.isParked(l.node)
	l.mu.Lock()
	unanswered := len(l.sent)
	l.seq++
	m.Seq = l.seq
	// The lease counts from here: before the bytes leave, not after.
	now := time.Now()
	l.sent[m.Seq] = now
	l.beats = append(l.beats, beatAt{m.Seq, now})
	if last := len(l.beats) - 1; l.beats[last/2].at.Add(proto.LeaseTTL).Before(now) {
		l.beats = append(l.beats[:0], l.beats[last/2:]...) // offers made under older ones come too late
	}
	l.mu.Unlock()
	if unanswered >= silence {
		return errSilent
	}
	return l.sendControl(&proto.ControlToAdmin{Body: &proto.ControlToAdmin_Heartbeat{Heartbeat: m}})
}

// beatAt says when a heartbeat was sent.
type beatAt struct {
	seq int64
	at  time.Time
}

// LeaseFrom implements runner.Link. Heartbeats older than a lease are
// forgotten.
func (l *Link) LeaseFrom(seq int64) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i, ok := slices.BinarySearchFunc(l.beats, seq, func(b beatAt, seq int64) int { return cmp.Compare(b.seq, seq) }); ok {
		return l.beats[i].at
	}
	return time.Time{}
}

func (l *Link) sendControl(m *proto.ControlToAdmin) error {
	frame, err := proto.AppendFrame(nil, m, proto.MaxFrame)
	if err != nil {
		return fmt.Errorf("write control: %w", err)
	}
	l.writeMu.Lock()
	defer l.writeMu.Unlock()
	if err := writeChunks(l.control, frame); err != nil {
		return fmt.Errorf("write control: %w", err)
	}
	return nil
}

// ask sends the attempts that wait for a verdict.
func (l *Link) ask() error {
	l.askMu.Lock()
	items := l.asking
	l.asking = nil
	l.askMu.Unlock()
	if len(items) == 0 {
		return nil
	}
	return l.sendControl(&proto.ControlToAdmin{Body: &proto.ControlToAdmin_Inventory{Inventory: &proto.Inventory{Items: items}}})
}

// drain tells the admin to offer nothing more.
func (l *Link) drain(reason string, grace time.Duration) {
	l.drainSent.Do(func() {
		err := l.sendControl(&proto.ControlToAdmin{Body: &proto.ControlToAdmin_Drain{
			Drain: &proto.Drain{Reason: reason, GraceMs: grace.Milliseconds()},
		}})
		if err != nil {
			l.fail(err)
		}
	})
	l.beatSoon()
}

// beatSoon sends a heartbeat at once.
func (l *Link) beatSoon() {
	select {
	case l.beatNow <- struct{}{}:
	default:
	}
}

// Beat sends heartbeats at once: what Events.Load says has changed.
func (f *Fleet) Beat() {
	for _, l := range f.current() {
		l.beatSoon()
	}
}

// leave is the last word. A node that does not hear it waits for the end of the
// lease.
func (l *Link) leave() {
	if err := l.sendControl(&proto.ControlToAdmin{Body: &proto.ControlToAdmin_Leave{Leave: &proto.Leave{}}}); err != nil {
		l.fail(err)
	}
}

// readControl handles what the admin sends on the control stream.
func (l *Link) readControl(<-chan struct{}) error {
	for {
		var m proto.ControlToExecutor
		if err := l.reader.Next(&m); err != nil {
			return readError("control", err)
		}
		switch body := m.GetBody().(type) {
		case *proto.ControlToExecutor_HeartbeatAck:
			l.acknowledged(body.HeartbeatAck)
		case *proto.ControlToExecutor_Verdicts:
			l.events.Verdicts(l, body.Verdicts.GetVerdicts())
		case *proto.ControlToExecutor_Nodes:
			l.onNodes(body.Nodes.GetNodes())
		case *proto.ControlToExecutor_Wake:
			l.onWake()
		case *proto.ControlToExecutor_Drain:
			// The session stays for results until the admin closes it.
			l.logger.Info("admin node is draining", "reason", body.Drain.GetReason())
		case *proto.ControlToExecutor_Error:
			return refusal(body.Error)
		}
	}
}

func (l *Link) acknowledged(ack *proto.HeartbeatAck) {
	l.mu.Lock()
	sentAt, ok := l.sent[ack.GetSeq()]
	for seq := range l.sent {
		if seq <= ack.GetSeq() {
			delete(l.sent, seq)
		}
	}
	l.mu.Unlock()
	if ok {
		l.events.Renewed(l, sentAt, ack.GetLeaseRenewed())
	}
}
