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

// beat sends heartbeats: one at once, then one per interval, or later while the
// node lets it rest, and in between when the load has news or a question waits.
func (l *Link) beat(done <-chan struct{}) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		if err := l.heartbeat(); err != nil {
			return err
		}
		for due := false; !due; {
			timer.Reset(time.Until(l.nextBeat()))
			select {
			case <-done:
				return nil
			case <-timer.C:
				due = true
			case <-l.beatNow:
				due = true
			case <-l.retime:
			}
		}
	}
}

// nextBeat is when the next heartbeat is due.
func (l *Link) nextBeat() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.restUntil.IsZero() {
		return l.restUntil
	}
	return l.beatAt.Add(l.interval)
}

// rest is the node's leave to send no heartbeat for d, given for the last one.
// It does not count when something was offered since. mu is held.
func (l *Link) rest(d time.Duration) {
	if d > 0 && !l.stirred {
		l.restUntil = time.Now().Add(d)
		l.retimeLocked()
	}
}

// stir ends the rest, and that which may be on its way: something was offered.
func (l *Link) stir() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stirred = true
	if !l.restUntil.IsZero() {
		l.restUntil = time.Time{}
		l.retimeLocked()
	}
}

func (l *Link) retimeLocked() {
	select {
	case l.retime <- struct{}{}:
	default:
	}
}

func (l *Link) heartbeat() error {
	if err := l.ask(); err != nil {
		return err
	}
	l.mu.Lock()
	// What is taken from here on may be missing in the load, and stirs later.
	l.stirred = false
	l.mu.Unlock()
	m := l.events.Load()
	m.Parked, m.Paced = l.isParked(l.node), true
	l.mu.Lock()
	unanswered := len(l.sent)
	l.seq++
	m.Seq = l.seq
	// The lease counts from here: before the bytes leave, not after.
	now := time.Now()
	l.beatAt, l.restUntil = now, time.Time{}
	l.sent[m.Seq] = now
	l.beats = append(l.beats, beatAt{m.Seq, now, now})
	if last := len(l.beats) - 1; l.beats[last/2].at.Add(proto.LeaseTTL).Before(now) {
		l.beats = append(l.beats[:0], l.beats[last/2:]...) // offers made under older ones come too late
	}
	l.mu.Unlock()
	if unanswered >= silence {
		return errSilent
	}
	return l.sendControl(&proto.ControlToAdmin{Body: &proto.ControlToAdmin_Heartbeat{Heartbeat: m}})
}

// beatAt says when a heartbeat was sent. at is the same, or with a longer lease, how
// much later one would have been that renewed it for the usual time.
type beatAt struct {
	seq      int64
	at, sent time.Time
}

// LeaseFrom implements runner.Link, by beatAt. Heartbeats older than a lease are
// forgotten.
func (l *Link) LeaseFrom(seq int64) (from, sent time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i, ok := l.beatLocked(seq); ok {
		return l.beats[i].at, l.beats[i].sent
	}
	return time.Time{}, time.Time{}
}

func (l *Link) beatLocked(seq int64) (i int, ok bool) {
	return slices.BinarySearchFunc(l.beats, seq, func(b beatAt, seq int64) int { return cmp.Compare(b.seq, seq) })
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
			l.adminDrains.Store(true)
			l.logger.Info("admin node is draining", "reason", body.Drain.GetReason())
		case *proto.ControlToExecutor_Error:
			return refusal(body.Error)
		}
	}
}

func (l *Link) acknowledged(ack *proto.HeartbeatAck) {
	extra := time.Duration(max(0, ack.GetLeaseExtraMs())) * time.Millisecond
	l.mu.Lock()
	sentAt, ok := l.sent[ack.GetSeq()]
	// A lease that lasts longer is one that was renewed so much later.
	sentAt = sentAt.Add(extra)
	if i, known := l.beatLocked(ack.GetSeq()); known && ack.GetLeaseRenewed() {
		l.beats[i].at = sentAt
	}
	for seq := range l.sent {
		if seq <= ack.GetSeq() {
			delete(l.sent, seq)
		}
	}
	if ack.GetSeq() == l.seq {
		l.rest(time.Duration(ack.GetNextMs()) * time.Millisecond)
	}
	l.mu.Unlock()
	if ok {
		l.events.Renewed(l, sentAt, ack.GetLeaseRenewed())
	}
}
