package runner

import (
	"fmt"
	"time"

	"github.com/carillon-sched/carillon/executor-sdk/internal/journal"
	"github.com/carillon-sched/carillon/proto"
)

// The words of proto's Answer.reject_code.
const (
	RejectBusy           = "busy"
	RejectDraining       = "draining"
	RejectUnknownHandler = "unknown_handler"
	RejectJournal        = "journal_unavailable"
	RejectDuplicate      = "duplicate"
	RejectVoid           = "void"
	RejectOld            = "old"
)

func reject(k Key, code, message string) *proto.Answer {
	return &proto.Answer{ExecutionId: k.Execution, Fence: k.Fence, RejectCode: code, Message: message}
}

func accept(k Key) *proto.Answer {
	return &proto.Answer{ExecutionId: k.Execution, Fence: k.Fence, Accepted: true}
}

// offers is the event that an admin offered attempts. journalErr says why the
// journal takes nothing, or is nil.
func (m *machine) offers(now time.Time, link Link, list []*proto.Offer, journalErr error) {
	m.checkLease(now)
	if len(m.attempts) == 0 {
		m.lease.tickedAt = now // nothing ticked while there was nothing to watch
	}
	var answers, accepts []*proto.Answer
	var started []*proto.Started
	var records []journal.Record
	var wait, start []*attempt
	for _, o := range list {
		k := Key{o.GetExecutionId(), o.GetFence()}
		no := m.refuse(k, o, journalErr)
		var good bound
		if no == nil && o.GetGranted() {
			good, no = m.boundOf(now, link, k, o)
		}
		if no != nil {
			answers = append(answers, no)
			if o.GetGranted() && no.GetRejectCode() != RejectDuplicate {
				m.history.refuse(k)
			}
			if a := m.attempts[k]; a != nil && a.phase == running {
				started = append(started, a.startedMessage()) // the first word of it was lost
			}
			continue
		}
		// A higher fence means that the older attempt was given up.
		if older, ok := m.history.seen[k.Execution]; ok {
			m.interrupt(now, m.attempts[Key{k.Execution, older}], &causeError{ErrLeaseLost, "a newer attempt was offered"})
		}
		a := &attempt{key: k, boot: m.boot, offer: o, slots: m.limits.weight(o.GetHandler()), stuck: m.limits.stuck(o.GetHandler()), origin: link, phase: accepting}
		m.attempts[k] = a
		m.used += a.slots
		m.history.take(k)
		if o.GetGranted() {
			a.grantedAt, a.good = now, good
			accepts = append(accepts, accept(k))
			start = append(start, a)
			continue
		}
		a.writes++
		wait = append(wait, a)
		records = append(records, record(journal.Accepted, k))
	}
	if len(answers) > 0 {
		m.emit(effect{link: link, answers: answers})
	}
	if len(accepts) > 0 {
		m.emit(effect{link: link, accepts: accepts})
	}
	if len(started) > 0 {
		m.emit(effect{link: link, started: started})
	}
	m.start(now, start)
	if len(wait) > 0 {
		m.enter(records, func(now time.Time, err error) { m.acceptanceWritten(now, link, wait, err) })
	}
}

// boundOf returns until when a one-step offer may be started, or why it must not
// be any more. The offer may have waited for longer than its run stays with this
// process: in a socket while the process was frozen, or on a path that was cut.
func (m *machine) boundOf(now time.Time, link Link, k Key, o *proto.Offer) (bound, *proto.Answer) {
	from, sent := link.LeaseFrom(o.GetLeaseSeq())
	good := bound{sent, time.Duration(o.GetGoodMs()) * time.Millisecond}
	switch {
	case m.lease.lapsed(from, now):
		return good, reject(k, RejectBusy, "the offer came late: the lease that it was made under may be over")
	case good.lasts < 0:
		return good, reject(k, RejectOld, "the offer has not come before")
	case good.over(now):
		return good, reject(k, RejectOld, fmt.Sprintf("the offer came too late, %s after the heartbeat that it counts from", Elapsed(sent, now).Round(time.Millisecond)))
	case good.lasts == 0:
		good = bound{from, m.lease.lasts()}
	}
	return good, nil
}

// refuse returns why an offer cannot be taken, or nil.
func (m *machine) refuse(k Key, o *proto.Offer, journalErr error) *proto.Answer {
	seen, known := m.history.seen[k.Execution]
	switch {
	case m.attempts[k] != nil, known && seen == k.Fence:
		return reject(k, RejectDuplicate, "")
	case m.history.refused[k]:
		return reject(k, RejectBusy, "it was refused before")
	case known && k.Fence < seen:
		return reject(k, RejectVoid, fmt.Sprintf("fence %d was offered already", seen))
	case !m.known(o.GetHandler()):
		return reject(k, RejectUnknownHandler, fmt.Sprintf("no handler %q is registered", o.GetHandler()))
	case m.leaving():
		return reject(k, RejectDraining, "")
	case m.lease.fenced:
		return reject(k, RejectBusy, "the lease is not renewed")
	case journalErr != nil:
		return reject(k, RejectJournal, journalErr.Error())
	case m.used+m.limits.weight(o.GetHandler()) > m.limits.Slots:
		return reject(k, RejectBusy, "")
	}
	return nil
}

// acceptanceWritten is the event that ACCEPTED stands in the journal, or not.
func (m *machine) acceptanceWritten(now time.Time, link Link, list []*attempt, err error) {
	var answers []*proto.Answer
	var orphans []*attempt
	for _, a := range list {
		a.writes--
		switch {
		case err != nil:
			answers = append(answers, reject(a.key, RejectJournal, err.Error()))
			m.forget(a)
		case a.cause != nil: // cancelled meanwhile
			answers = append(answers, reject(a.key, RejectVoid, a.cause.Error()))
			m.endUnstarted(now, a)
		default:
			a.phase, a.answeredAt = accepted, now
			if !m.links.up(link) {
				orphans = append(orphans, a)
				continue
			}
			answers = append(answers, accept(a.key))
		}
	}
	if len(answers) > 0 {
		m.emit(effect{link: link, answers: answers})
	}
	m.ask(orphans)
}

// forget drops an attempt that nothing is owed for.
func (m *machine) forget(a *attempt) {
	if a.phase < ended {
		m.used -= a.slots
	}
	a.phase = ended
	delete(m.attempts, a.key)
	m.forgotten(a)
	m.append([]journal.Record{record(journal.Settled, a.key)})
}

// grants is the event that an admin decided about accepted attempts.
func (m *machine) grants(now time.Time, link Link, list []*proto.Grant) {
	var answers []*proto.Answer
	var granted []*attempt
	for _, g := range list {
		k := Key{g.GetExecutionId(), g.GetFence()}
		a := m.attempts[k]
		switch {
		case !g.GetGranted():
			if a != nil && a.phase == accepted {
				m.forget(a)
			}
		case a == nil:
			answers = append(answers, reject(k, RejectVoid, "not known here"))
		case a.phase == ended && a.startedAt.IsZero():
			answers = append(answers, reject(k, RejectVoid, "it ended before it started"))
		case a.phase != accepted: // a repeated grant
		case Elapsed(a.answeredAt, now) > m.limits.AcceptTTL:
			answers = append(answers, reject(k, RejectVoid, "the grant came too late"))
			m.neverStarted(now, a, "the grant came too late")
		default:
			a.phase, a.grantedAt, a.origin = granting, now, link
			granted = append(granted, a)
		}
	}
	if len(answers) > 0 {
		m.emit(effect{link: link, answers: answers})
	}
	m.writeGrants(granted)
}

func (m *machine) writeGrants(granted []*attempt) {
	if len(granted) == 0 {
		return
	}
	records := make([]journal.Record, len(granted))
	for i, a := range granted {
		a.writes++
		records[i] = record(journal.Granted, a.key)
	}
	m.enter(records, func(now time.Time, err error) { m.grantWritten(now, granted, err) })
}

// grantWritten is the event that GRANTED stands in the journal, or not.
func (m *machine) grantWritten(now time.Time, list []*attempt, err error) {
	m.checkLease(now)
	var start []*attempt
	for _, a := range list {
		a.writes--
		switch {
		case err != nil:
			m.neverStarted(now, a, err.Error())
		case a.cause != nil: // cancelled meanwhile
			m.endUnstarted(now, a)
		case m.lease.fenced:
			m.neverStarted(now, a, ErrLeaseLost.Error())
		default:
			if !m.lease.renewedAt.IsZero() {
				a.good = bound{m.lease.renewedAt, m.lease.lasts()}
			}
			start = append(start, a)
		}
	}
	m.start(now, start)
}

// start calls the handlers. The caller made sure that nothing speaks against it.
func (m *machine) start(now time.Time, list []*attempt) {
	if len(list) == 0 {
		return
	}
	byLink := map[Link][]*proto.Started{}
	var links []Link
	for _, a := range list {
		a.phase, a.startedAt = running, now
		if d := a.timeout(); d > 0 {
			a.deadline = now.Add(d)
		}
		if byLink[a.origin] == nil {
			links = append(links, a.origin)
		}
		byLink[a.origin] = append(byLink[a.origin], a.startedMessage())
	}
	for _, link := range links {
		m.emit(effect{link: link, started: byLink[link]})
	}
	for _, a := range list {
		m.emit(effect{start: a})
	}
}

// tooLate is the event that an attempt was about to call its handler later than it
// may: its process stood still since the offer or the grant was looked at. It is
// as if the handler had not been chosen, unless it was reported meanwhile.
func (m *machine) tooLate(now time.Time, a *attempt) (ended bool) {
	if a.abandoned {
		return false
	}
	a.offer, a.ctx, a.startedAt = nil, nil, time.Time{}
	if a.cause == nil {
		a.cause = errTooLate
	}
	m.endUnstarted(now, a)
	return true
}

func (a *attempt) startedMessage() *proto.Started {
	return &proto.Started{
		ExecutionId: a.key.Execution, Fence: a.key.Fence,
		StartedAtMs: a.startedAt.UnixMilli(), StartDelayUs: a.startedAt.Sub(a.grantedAt).Microseconds(),
	}
}
