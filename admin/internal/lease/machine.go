package lease

import (
	"slices"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// Times of a lease. A node that is killed is noticed by its connection within
// LookEvery, and what it had planned is fired by others; its partitions move
// when their leases have run out, which has to be sooner than planning looks
// ahead (3 s), so that nothing is late that was not planned.
const (
	TTL        = 2 * time.Second
	RenewEvery = 500 * time.Millisecond
	LookEvery  = 250 * time.Millisecond
	// Margin is how much earlier than the lease a node's own trust ends. It
	// covers clocks that run at different speeds, by far.
	Margin = 200 * time.Millisecond
	// Grace is how long a node has to have seen the table without a gap before
	// it believes that others are dead: after a standstill of the database all
	// leases have run out, and everybody gets the time to renew.
	Grace = time.Second
	// SilentAfter is how old a node's last sign of life has to be for others to
	// fire what it had planned while its lease still lasts: it is frozen, or cut
	// off from the database, and kept its connection. Two renewals are missing
	// then, and if it lives all the same, two fire and one offers.
	SilentAfter = 1250 * time.Millisecond
	// plansLast is how long a node that gave a partition up goes on firing what
	// it had planned: as far as planning looks ahead, and the grace of sweeps.
	plansLast = 3*time.Second + domain.PickupGrace
)

// Config says whose machine it is. The zero times are the constants above.
type Config struct {
	Node   domain.NodeID
	BootID string
	TTL    time.Duration
}

// Event is what happened.
type Event interface{ event() }

type (
	// Tick: it is time to look again.
	Tick struct{}
	// Seen is the answer to Renew and Look. SentAt is the instant before the
	// statement was sent; Renewed is what the Renew had named.
	Seen struct {
		SentAt  time.Duration
		Renewed []domain.PartitionTerm
		Table   domain.PartitionTable
	}
	// Acquired is the answer to Acquire.
	Acquired struct {
		SentAt time.Duration
		Leases []domain.PartitionLease
	}
	// Released is the answer to Release.
	Released struct{ Terms []domain.PartitionTerm }
	// Refused: a claim was refused because of its terms.
	Refused struct{}
	// Stop: hand everything over.
	Stop struct{}
)

func (Tick) event()     {}
func (Seen) event()     {}
func (Acquired) event() {}
func (Released) event() {}
func (Refused) event()  {}
func (Stop) event()     {}

// Effect is what to do. An effect that fails needs no event: the next look
// shows what became of it.
type Effect interface{ effect() }

type (
	// Renew gives the sign of life, renews and looks.
	Renew struct{ Held []domain.PartitionTerm }
	// Look reads the table.
	Look struct{}
	// Acquire takes free partitions; the terms are those of the last holders.
	Acquire struct{ Want []domain.PartitionTerm }
	// Release gives partitions up. They are not used any more since before.
	Release struct {
		Held    []domain.PartitionTerm
		Leaving bool
	}
	// Adopt: fire what was planned in Partitions, because their holder does
	// not; and in these and in Offers give back what the Dead have offered, and
	// send their one-step offers again. Offers are partitions that fire here
	// already, and in which a node that died since may have offered: it fired
	// them for the holder before. Two nodes that fire the same execution do no
	// harm: one offers it.
	Adopt struct {
		Partitions, Offers []int
		Dead               []domain.NodeID
	}
	// Changed tells people and the planner.
	Changed struct{ Gained, Lost []domain.PartitionTerm }
)

func (Renew) effect()   {}
func (Look) effect()    {}
func (Acquire) effect() {}
func (Release) effect() {}
func (Adopt) effect()   {}
func (Changed) effect() {}

// tenure is one partition as this node knows it.
type tenure struct {
	term  int64         // 0: not ours
	trust time.Duration // ours until then
	// releasing is the term that is to be given up; it is not used any more.
	releasing int64
	// adopted is the highest term whose planned executions were taken over.
	adopted int64

	// before is the holder who gave this partition to us and still fires what
	// it planned, which ends at firesUntil.
	before     domain.PartitionLease
	firesUntil time.Duration

	// What the table said last, and since when it has been saying so.
	row   domain.PartitionLease
	since time.Duration
}

// Machine is the state of one node. It is not safe for concurrent use, and it
// reads no clock: now is the time since any fixed instant, monotonic.
type Machine struct {
	cfg      Config
	tenures  [domain.Partitions]tenure
	table    domain.PartitionTable
	renewed  time.Duration // when the last Renew was asked for
	began    bool
	lastSeen time.Duration // when the last table was sent for
	steady   time.Duration // since when tables have come without a gap
	// shown is until when others take this node for alive, shownSince since
	// when without a gap.
	shown, shownSince time.Duration
	stopping          bool
	// buried are the nodes whose offers were looked for since they fell silent.
	buried map[string]bool
}

// New returns a Machine that holds nothing.
func New(cfg Config) *Machine {
	if cfg.TTL <= 0 {
		cfg.TTL = TTL
	}
	return &Machine{cfg: cfg, buried: map[string]bool{}}
}

// Held returns what may be planned now.
func (m *Machine) Held(now time.Duration) []domain.PartitionTerm {
	var out []domain.PartitionTerm
	for p := range m.tenures {
		if t := &m.tenures[p]; t.term != 0 && now < t.trust {
			out = append(out, domain.PartitionTerm{Partition: p, Term: t.term})
		}
	}
	return out
}

// Stopped reports whether all has been handed over after a Stop.
func (m *Machine) Stopped() bool {
	if !m.stopping {
		return false
	}
	for p := range m.tenures {
		if m.tenures[p].releasing != 0 {
			return false
		}
	}
	return true
}

// Step takes one event and returns what is to be done, in this order.
func (m *Machine) Step(now time.Duration, ev Event) []Effect {
	switch ev := ev.(type) {
	case Tick:
		return m.tick(now)
	case Refused:
		if m.stopping {
			return nil
		}
		return []Effect{m.renew(now)}
	case Seen:
		return m.seen(now, ev)
	case Acquired:
		return m.acquired(ev)
	case Released:
		for _, r := range ev.Terms {
			if t := &m.tenures[r.Partition]; t.releasing == r.Term {
				t.releasing = 0
			}
		}
		return nil
	case Stop:
		return m.stop()
	default:
		return nil
	}
}

func (m *Machine) tick(now time.Duration) []Effect {
	switch {
	case m.stopping:
		if m.Stopped() {
			return nil
		}
		return []Effect{m.release(), Look{}}
	case !m.began || now-m.renewed >= RenewEvery:
		return []Effect{m.renew(now)}
	default:
		return []Effect{Look{}}
	}
}

// renew names everything that was not given up, also what is not trusted any
// more: as long as nobody has taken it, it may go on.
func (m *Machine) renew(now time.Duration) Renew {
	m.began, m.renewed = true, now
	var r Renew
	for p := range m.tenures {
		if t := &m.tenures[p]; t.term != 0 {
			r.Held = append(r.Held, domain.PartitionTerm{Partition: p, Term: t.term})
		}
	}
	return r
}

func (m *Machine) release() Release {
	r := Release{Leaving: m.stopping}
	for p := range m.tenures {
		if t := &m.tenures[p]; t.releasing != 0 {
			r.Held = append(r.Held, domain.PartitionTerm{Partition: p, Term: t.releasing})
		}
	}
	return r
}

func (m *Machine) stop() []Effect {
	m.stopping = true
	var lost []domain.PartitionTerm
	for p := range m.tenures {
		lost = m.giveUp(p, lost)
	}
	return []Effect{Changed{Lost: lost}, m.release()}
}

// giveUp ends the use of a partition, to be released.
func (m *Machine) giveUp(p int, lost []domain.PartitionTerm) []domain.PartitionTerm {
	t := &m.tenures[p]
	if t.term == 0 {
		return lost
	}
	lost = append(lost, domain.PartitionTerm{Partition: p, Term: t.term})
	t.releasing, t.term, t.trust = t.term, 0, 0
	return lost
}

// seen compares the table with what this node believes, and then decides.
func (m *Machine) seen(now time.Duration, ev Seen) []Effect {
	if m.lastSeen == 0 || now-m.lastSeen > Grace {
		m.steady = now
	}
	m.lastSeen, m.table = now, ev.Table
	m.noteShown(now, ev.SentAt)
	lost := m.compare(now)
	for _, r := range ev.Renewed {
		t := &m.tenures[r.Partition]
		if t.term == r.Term { // the table shows that it still is
			t.trust = max(t.trust, ev.SentAt+m.cfg.TTL-Margin)
		}
	}
	if m.stopping {
		return nil
	}
	effects := m.decide(now, &lost)
	if len(lost) > 0 {
		effects = append([]Effect{Changed{Lost: lost}}, effects...)
	}
	return effects
}

// compare takes the table over and returns what it shows to be lost.
func (m *Machine) compare(now time.Duration) (lost []domain.PartitionTerm) {
	known := m.known()
	for p := range m.tenures {
		t, row := &m.tenures[p], m.table.Leases[p]
		if row != t.row {
			t.row, t.since = row, now
		}
		mine := known && row.BootID == m.cfg.BootID && !row.Until.IsZero()
		if t.releasing != 0 && (!mine || row.Term != t.releasing) {
			t.releasing = 0
		}
		switch {
		case t.term != 0 && (!mine || row.Term != t.term):
			lost = append(lost, domain.PartitionTerm{Partition: p, Term: t.term})
			t.term, t.trust = 0, 0
		case t.term == 0 && t.releasing == 0 && mine && !m.stopping:
			t.term, t.trust = row.Term, 0 // acquired, but the answer was lost; the next renewal makes it ours
		}
	}
	return lost
}

// known reports whether this process is still on the list of nodes. If its
// number was given away, it has to stop.
func (m *Machine) known() bool {
	for i := range m.table.Nodes {
		if m.table.Nodes[i].BootID == m.cfg.BootID {
			return true
		}
	}
	return false
}

func (m *Machine) acquired(ev Acquired) []Effect {
	var gained []domain.PartitionTerm
	var adopt Adopt
	for _, l := range ev.Leases {
		t := &m.tenures[l.Partition]
		if m.stopping {
			t.releasing = l.Term // too late: give it back
			continue
		}
		t.before = domain.PartitionLease{}
		if m.fires(t.row.BootID) && t.row.BootID != m.cfg.BootID {
			t.before, t.firesUntil = t.row, ev.SentAt+plansLast
		} else if t.adopted < l.Term-1 || t.row.Term == 0 {
			adopt.add(l.Partition, t.row)
		}
		t.adopted = l.Term - 1
		t.term, t.trust, t.row, t.since = l.Term, ev.SentAt+m.cfg.TTL-Margin, l, ev.SentAt
		gained = append(gained, l.PartitionTerm)
	}
	var effects []Effect
	if m.stopping {
		return append(effects, m.release())
	}
	if len(adopt.Partitions) > 0 {
		effects = append(effects, adopt)
	}
	if len(gained) > 0 {
		effects = append(effects, Changed{Gained: gained})
	}
	return effects
}

// add names a partition and the node that last held it, if that did not leave.
func (a *Adopt) add(partition int, last domain.PartitionLease) {
	a.Partitions = append(a.Partitions, partition)
	if last.BootID != "" {
		a.addDead(last.Node)
	}
}

func (a *Adopt) addDead(n domain.NodeID) {
	if !slices.Contains(a.Dead, n) {
		a.Dead = append(a.Dead, n)
	}
}
