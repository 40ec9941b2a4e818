package runner

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/carillon-sched/carillon/proto"
)

// tick is the event that time passed. Runner sends it several times a second
// while there are attempts.
func (m *machine) tick(now time.Time) {
	m.checkLease(now)
	m.lease.tickedAt = now
	for _, a := range m.attempts.pick(func(a *attempt) bool {
		return a.phase == accepted && Elapsed(a.answeredAt, now) > m.limits.AcceptTTL
	}) {
		m.neverStarted(now, a, "no grant came in time")
	}
	for _, a := range m.attempts.pick(func(a *attempt) bool { return a.phase == running }) {
		m.watchHandler(now, a)
	}
	m.watchStuck(now)
	for _, a := range m.attempts.pick(func(a *attempt) bool {
		return a.result != nil && a.via != nil && now.Sub(a.sentAt) >= m.limits.resendAfter(a.sends)
	}) {
		m.send(now, []*attempt{a}, a.via)
	}
}

func (m *machine) watchHandler(now time.Time, a *attempt) {
	if a.cause == nil && !a.deadline.IsZero() && !now.Before(a.deadline) {
		a.cause, a.cancelledAt = ErrTimeout, a.deadline // the context ended by itself
	}
	if limit := m.limits.ExitIfIgnored; limit > 0 && errors.Is(a.cause, ErrLeaseLost) && Elapsed(a.cancelledAt, now) >= limit {
		m.emit(effect{exit: true})
	}
	if a.cause == nil || a.abandoned || now.Sub(a.cancelledAt) < a.stuck.Grace {
		return
	}
	a.abandoned = true
	if errors.Is(a.cause, ErrStopping) {
		return // the process ends soon; until then the handler may still return
	}
	text := fmt.Sprintf("the handler still runs %s after its context was cancelled", a.stuck.Grace)
	o, r := outcome(Return{Kind: KindRetryable, Error: text, Interrupted: true}, a.cause)
	result := a.message(o, r, now)
	result.StillRunning = true
	m.writeNow(a, result)
}

// watchStuck ends the process for a handler that asks for it and goes on
// beyond its grace: nothing else frees its slot. Nothing new is taken from then
// on, and what runs beside it may end. If the handler returns before that, the
// process goes on as before.
func (m *machine) watchStuck(now time.Time) {
	stuck, writing := false, false
	for _, a := range m.attempts {
		stuck = stuck || a.phase == running && a.abandoned && a.stuck.Exit
		writing = writing || a.writes > 0
	}
	switch {
	case !stuck:
		m.exitAt = time.Time{}
	case m.exitAt.IsZero():
		m.exitAt = now.Add(max(m.limits.ExitWait, 0))
	case m.attempts.active() == 0 && !writing, !now.Before(m.exitAt):
		m.emit(effect{exit: true})
	}
}

// checkLease cancels everything when no node renewed the lease in time: from
// its end on, another instance may run what runs here.
func (m *machine) checkLease(now time.Time) {
	if m.lease.fenced || m.lease.renewedAt.IsZero() || !m.lease.lapsed(m.lease.renewedAt, now) {
		return
	}
	m.lease.fenced = true
	if len(m.attempts) > 0 {
		m.emit(effect{lost: true})
	}
	cause := ErrLeaseLost
	if !m.lease.tickedAt.IsZero() && Elapsed(m.lease.tickedAt, now) >= m.lease.ttl/2 {
		cause = errStalled
	}
	m.interruptAll(now, cause)
}

// alive is the question whether an attempt may act.
func (m *machine) alive(now time.Time, k Key) error {
	m.checkLease(now)
	a := m.attempts[k]
	switch {
	case a == nil || a.phase != running:
		return errNotRunning
	case a.cause == nil && !a.deadline.IsZero() && !now.Before(a.deadline):
		return ErrTimeout
	}
	return a.cause
}

func (m *machine) interruptAll(now time.Time, cause error) {
	for _, a := range m.attempts.pick(func(a *attempt) bool { return a.phase != ended }) {
		m.interrupt(now, a, cause)
	}
}

// renewed is the event that a node answered a heartbeat: with ok it renewed
// the lease, counted from when the heartbeat was sent.
func (m *machine) renewed(link Link, sentAt time.Time, ok bool) {
	for _, l := range m.links {
		if l.link == link {
			l.renewed = ok
		}
	}
	if ok && sentAt.After(m.lease.renewedAt) {
		m.lease.renewedAt, m.lease.fenced = sentAt, false
	}
}

// drain is the event that the process stops soon.
func (m *machine) drain() { m.draining = true }

// stop is the event that the time for draining is over.
func (m *machine) stop(now time.Time) {
	m.draining = true
	m.interruptAll(now, ErrStopping)
}

// linkUp is the event that a session registered; sentAt is when its
// registration was sent, which renewed the lease.
func (m *machine) linkUp(now time.Time, link Link, sentAt time.Time, r *proto.Registered) {
	if ms := r.GetLeaseTtlMs(); ms > 0 {
		m.lease.ttl = time.Duration(ms) * time.Millisecond
	}
	m.links = append(m.links, &linkState{link: link, renewed: true})
	m.renewed(link, sentAt, true)
	m.verdicts(now, link, r.GetVerdicts())
	m.send(now, m.attempts.pick(func(a *attempt) bool { return a.result != nil && a.via == nil }), nil)
	judged := map[Key]bool{}
	for _, v := range r.GetVerdicts() {
		judged[Key{v.GetExecutionId(), v.GetFence()}] = true
	}
	// Accepted after this session had sent its inventory, through one that ended
	// before this one stood.
	m.ask(m.attempts.pick(func(a *attempt) bool { return a.phase == accepted && !m.links.up(a.origin) && !judged[a.key] }))
}

// verdicts is the event that a node said what is to become of attempts.
func (m *machine) verdicts(now time.Time, link Link, list []*proto.InventoryVerdict) {
	var granted []*proto.Grant
	for _, v := range list {
		switch v.GetVerdict() {
		case proto.Verdict_VERDICT_GRANT:
			granted = append(granted, &proto.Grant{ExecutionId: v.GetExecutionId(), Fence: v.GetFence(), Granted: true})
		case proto.Verdict_VERDICT_DROP:
			m.dropped(now, m.attempts[Key{v.GetExecutionId(), v.GetFence()}])
		}
	}
	m.grants(now, link, granted)
}

// dropped is the verdict that an attempt is not ours any more. What runs is
// cancelled; its result, or one that waits, is sent all the same, since the
// acknowledgement costs little and a result thrown away cannot be had again.
func (m *machine) dropped(now time.Time, a *attempt) {
	if a != nil && a.phase == accepted {
		m.forget(a)
		return
	}
	m.interrupt(now, a, &causeError{ErrLeaseLost, "the run was given away"})
}

// linkDown is the event that a session ended. Results sent through it may be
// lost and go out again through another one.
func (m *machine) linkDown(now time.Time, link Link) {
	m.links = slices.DeleteFunc(m.links, func(l *linkState) bool { return l.link == link })
	m.send(now, m.attempts.pick(func(a *attempt) bool { return a.via == link }), nil)
	m.ask(m.attempts.pick(func(a *attempt) bool {
		return a.origin == link && (a.phase == accepted || a.phase == running && a.offer.GetGranted() && now.Sub(a.startedAt) < maybeUnheard)
	}))
}

// maybeUnheard is how long after its start the first word of a one-step attempt may
// have been lost with its session: an admin that heard nothing of it for longer
// has given it to another instance, or has it asked for.
const maybeUnheard = proto.OfferTTL

// ask looks for another node that may know of a grant for attempts that were
// accepted, and whose own session has ended, or that has to hear of one-step
// attempts that have just started. Without one the registration of
// the next session asks; what nobody grants in time is given back.
func (m *machine) ask(list []*attempt) {
	link := m.links.choose(nil, nil)
	if link == nil || len(list) == 0 {
		return
	}
	for part := range slices.Chunk(list, proto.MaxBatch) {
		items := make([]*proto.InventoryItem, len(part))
		for i, a := range part {
			a.origin = link
			items[i] = a.item()
		}
		m.emit(effect{link: link, ask: items})
	}
}
