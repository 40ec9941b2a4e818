package runner

import (
	"errors"
	"time"

	gproto "google.golang.org/protobuf/proto"

	"github.com/carillon-sched/carillon/executor-sdk/internal/journal"
	"github.com/carillon-sched/carillon/proto"
)

// returned is the event that the handler came back. It frees the slot and
// gives the result, which the caller encodes and hands to write.
func (m *machine) returned(now time.Time, a *attempt, r Return) *proto.Result {
	if a.cause == nil && !a.deadline.IsZero() && !now.Before(a.deadline) {
		a.cause = ErrTimeout
	}
	a.phase = ended
	m.used -= a.slots
	a.writes++
	if a.stuck.Exit {
		m.watchStuck(now) // it may have been what the process was to end for
	}
	a.offer, a.ctx = nil, nil // an input may be large, and the ack may take long
	o, r := outcome(r, a.cause)
	return a.message(o, r, now)
}

// write puts a result into the journal, and sends it as soon as the next process
// would find it there. The fsync goes on meanwhile: should the machine fail
// before it is done, the journal says less than the admin may know already, and
// what it says then is a duplicate, or unknown, as it would be had the machine
// failed a moment sooner (docs/adr/0027). The caller has counted it in a.writes.
func (m *machine) write(a *attempt, result *proto.Result, body []byte) {
	r := record(journal.Done, a.key)
	r.Body = body
	owed := true
	a.told = false
	owe := func(now time.Time) {
		owed = false
		if a.result != nil {
			a.next = result
			return
		}
		a.result, a.via, a.sends = result, nil, 0
		m.send(now, []*attempt{a}, nil)
	}
	m.emit(effect{records: []journal.Record{r}, written: owe, done: func(now time.Time, _ error) {
		a.writes--
		if owed {
			// A journal that refuses costs safety against a crash, but no result:
			// it is sent all the same, and the journal takes it when it can.
			owe(now)
			return
		}
		if m.settle(a) {
			m.append([]journal.Record{record(journal.Settled, a.key)})
		}
	}})
}

// settle forgets an attempt of which everything is acknowledged and nothing is
// on its way to the journal.
func (m *machine) settle(a *attempt) bool {
	if a.phase != ended || a.writes > 0 || a.result != nil {
		return false
	}
	delete(m.attempts, a.key)
	m.forgotten(a)
	return true
}

// forgotten tells those who asked that nothing is owed for the attempt any more.
func (m *machine) forgotten(a *attempt) {
	if a.onSettled != nil {
		m.emit(effect{tell: a.onSettled})
		a.onSettled = nil
	}
}

// writeNow is write for the results that the machine makes itself.
func (m *machine) writeNow(a *attempt, result *proto.Result) {
	body, err := gproto.Marshal(result)
	if err != nil {
		panic(err) // only invalid UTF-8 can fail, and clip removed it
	}
	a.writes++
	m.write(a, result, body)
}

// endUnstarted ends an attempt with a cause before its handler was called.
// Only a kill is an end of the run; other causes leave it to the admin.
func (m *machine) endUnstarted(now time.Time, a *attempt) {
	if !errors.Is(a.cause, ErrKilled) {
		m.neverStarted(now, a, a.cause.Error())
		return
	}
	m.used -= a.slots
	a.phase = ended
	m.writeNow(a, a.message(proto.Outcome_OUTCOME_CANCELLED,
		Return{Kind: KindCancelled, Error: a.cause.Error() + " before it started"}, now))
}

// neverStarted gives an accepted attempt back.
func (m *machine) neverStarted(now time.Time, a *attempt, why string) {
	m.used -= a.slots
	a.phase = ended
	m.writeNow(a, a.message(proto.Outcome_OUTCOME_NEVER_STARTED, Return{Error: why}, now))
}

// interrupt is the event that an attempt has to end early. The first cause counts.
func (m *machine) interrupt(now time.Time, a *attempt, cause error) {
	if a == nil || a.phase == ended || a.cause != nil {
		return
	}
	a.cause = cause
	switch a.phase {
	case accepted:
		m.endUnstarted(now, a)
	case running:
		a.cancelledAt = now
		m.emit(effect{cancel: a})
	}
	// In between, the journal's answer finds the cause.
}

func (m *machine) cancels(now time.Time, list []*proto.Cancel) {
	for _, c := range list {
		k := Key{c.GetExecutionId(), c.GetFence()}
		if a := m.attempts[k]; a != nil {
			m.interrupt(now, a, causeOf(c))
		} else if seen, known := m.history.seen[k.Execution]; !known || seen < k.Fence {
			m.neverTaken(now, k)
		}
	}
}

// neverTaken answers the cancel of an attempt whose offer did not arrive, or
// was refused: it is not taken any more, and nothing has started.
func (m *machine) neverTaken(now time.Time, k Key) {
	a := &attempt{key: k, boot: m.boot, phase: ended}
	m.attempts[k] = a
	m.history.take(k)
	m.writeNow(a, a.message(proto.Outcome_OUTCOME_NEVER_STARTED, Return{Error: "cancelled before its offer was taken"}, now))
}

// acks is the event that an admin node took results over, whatever its verdict.
func (m *machine) acks(now time.Time, list []*proto.ResultAck) {
	var settled []journal.Record
	var follow []*attempt
	for _, ack := range list {
		a := m.attempts[Key{ack.GetExecutionId(), ack.GetFence()}]
		if a == nil || a.result == nil || a.sends == 0 {
			continue
		}
		if ack.GetStillRunning() && !a.result.GetStillRunning() {
			continue // it was sent twice, and this is for the first of two results
		}
		a.result, a.next, a.via, a.sends = a.next, nil, nil, 0
		a.told = a.result == nil
		switch {
		case a.result != nil:
			follow = append(follow, a)
		case m.settle(a):
			settled = append(settled, record(journal.Settled, a.key))
		}
	}
	if len(settled) > 0 {
		m.append(settled)
	}
	m.send(now, follow, nil)
}

// send hands results to a session: to the one that offered the attempt if it
// is there, else to another, and rather not to avoid. Without a session they
// wait for the next to register.
func (m *machine) send(now time.Time, list []*attempt, avoid Link) {
	byLink := map[Link][]*proto.Result{}
	var links []Link
	for _, a := range list {
		link := m.links.choose(a.origin, avoid)
		a.via = link
		if link == nil {
			continue
		}
		a.sentAt = now
		a.sends++
		if byLink[link] == nil {
			links = append(links, link)
		}
		byLink[link] = append(byLink[link], a.result)
	}
	for _, link := range links {
		m.emit(effect{link: link, results: byLink[link]})
	}
}
