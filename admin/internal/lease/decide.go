package lease

import (
	"maps"
	"slices"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// member is a node that takes part in sharing the partitions out.
type member struct {
	id    domain.NodeID
	boot  string
	count int // valid leases
	// young: it has not watched for long enough to judge others.
	young bool
}

// decide compares this node's share with what it holds: it gives up what is
// too much and takes what is free and falls to it. All nodes that see the same
// table come to the same division; where they saw different ones, the guards
// of the statements let one win, and the next look sets it right.
func (m *Machine) decide(now time.Duration, lost *[]domain.PartitionTerm) []Effect {
	if !m.known() {
		return nil
	}
	members := m.members()
	var effects []Effect
	before := len(*lost)
	if extra := m.count() - target(members, m.cfg.BootID); extra > 0 {
		for p := domain.Partitions - 1; p >= 0 && len(*lost)-before < extra; p-- {
			*lost = m.giveUp(p, *lost)
		}
	}
	if r := m.release(); len(r.Held) > 0 {
		effects = append(effects, r)
	}
	if want := m.want(now, members); len(want) > 0 {
		effects = append(effects, Acquire{want})
	}
	if adopt := m.orphans(now, members); len(adopt.Partitions)+len(adopt.Offers) > 0 {
		effects = append(effects, adopt)
	}
	return effects
}

// count is how many partitions this node holds, trusted or not.
func (m *Machine) count() int {
	n := 0
	for p := range m.tenures {
		if m.tenures[p].term != 0 {
			n++
		}
	}
	return n
}

// members are the nodes that take part, by id: whose last sign of life is
// younger than a lease, and which executors are connected to, unless that is
// true of nobody. A node that no executor reaches could only plan, not start. A sign from the future is one from before the database's clock was set
// back; whoever lives gives a new one soon.
func (m *Machine) members() []member {
	var out []member
	anybody := m.anySessions()
	for i := range m.table.Nodes {
		n := &m.table.Nodes[i]
		if (m.alive(n) || n.BootID == m.cfg.BootID) && (n.Sessions > 0 || !anybody) {
			began := n.StartedAt.Add(-n.ClockSkew)
			out = append(out, member{id: n.ID, boot: n.BootID, young: m.table.Now.Sub(began) < 2*Grace})
		}
	}
	for i := range m.table.Leases {
		l := &m.table.Leases[i]
		if !l.Until.After(m.table.Now) {
			continue
		}
		for j := range out {
			if out[j].boot == l.BootID && l.BootID != m.cfg.BootID {
				out[j].count++
			}
		}
	}
	for j := range out {
		if out[j].boot == m.cfg.BootID {
			out[j].count = m.count()
		}
	}
	return out
}

func (m *Machine) anySessions() bool {
	for i := range m.table.Nodes {
		if n := &m.table.Nodes[i]; n.Sessions > 0 && m.alive(n) {
			return true
		}
	}
	return false
}

func (m *Machine) alive(n *domain.NodeStatus) bool {
	age := m.table.Now.Sub(n.RenewedAt)
	return age < m.cfg.TTL && age > -m.cfg.TTL
}

// target is the fair share of a node: the partitions divided by the members,
// and where that leaves a rest, one more for those who hold most already, so
// that the least has to move.
func target(members []member, boot string) int {
	order := slices.Clone(members)
	slices.SortStableFunc(order, func(a, b member) int {
		if a.count != b.count {
			return b.count - a.count
		}
		return int(a.id - b.id)
	})
	if len(order) == 0 {
		return 0
	}
	share, rest := domain.Partitions/len(order), domain.Partitions%len(order)
	for i, o := range order {
		if o.boot == boot {
			if i < rest {
				return share + 1
			}
			return share
		}
	}
	return 0
}

// assign gives each of the partitions to the member that has least, and
// returns those that fall to boot.
func assign(parts []int, members []member, boot string) (mine []int) {
	counts := slices.Clone(members)
	for _, p := range parts {
		least := -1
		for i := range counts {
			if least < 0 || counts[i].count < counts[least].count {
				least = i
			}
		}
		if least < 0 {
			return mine
		}
		counts[least].count++
		if counts[least].boot == boot {
			mine = append(mine, p)
		}
	}
	return mine
}

// want names the free partitions that fall to this node.
func (m *Machine) want(now time.Duration, members []member) (out []domain.PartitionTerm) {
	var free []int
	for p := range m.tenures {
		if t := &m.tenures[p]; t.term == 0 && t.releasing == 0 && m.free(now, t) {
			free = append(free, p)
		}
	}
	for _, p := range assign(free, members, m.cfg.BootID) {
		out = append(out, m.tenures[p].row.PartitionTerm)
	}
	return out
}

// free says whether a partition may be taken: at once when it was released;
// when its lease has run out, or lasts longer than any lease can and does not
// change, only by a node that has watched for a while.
func (m *Machine) free(now time.Duration, t *tenure) bool {
	left := t.row.Until.Sub(m.table.Now)
	switch {
	case t.row.Until.IsZero():
		return true
	case !m.steadyFor(now, Grace):
		return false
	case left <= 0:
		return true
	default:
		return left > 2*m.cfg.TTL && now-t.since > 2*m.cfg.TTL
	}
}

func (m *Machine) steadyFor(now, d time.Duration) bool { return now-m.steady >= d }

// fires says whether a node fires what it has planned: it lives, is not about
// to stop, and reaches executors if anybody does.
func (m *Machine) fires(boot string) bool {
	for i := range m.table.Nodes {
		if n := &m.table.Nodes[i]; n.BootID == boot {
			return m.alive(n) && !m.silent(boot) && (n.Sessions > 0 || !m.anySessions())
		}
	}
	return false
}

// orphans are partitions whose holder seems to be dead though its lease lasts,
// and which will fall to this node. What was planned in them is fired from
// here meanwhile. Each is named once per term.
func (m *Machine) orphans(now time.Duration, members []member) (out Adopt) {
	if !m.steadyFor(now, Grace) {
		return out
	}
	var parts []int
	heirs := slices.DeleteFunc(slices.Clone(members), func(o member) bool {
		return o.boot != m.cfg.BootID && (o.young || m.silent(o.boot))
	})
	for p := range m.tenures {
		row := &m.tenures[p].row
		if row.BootID != m.cfg.BootID && row.Until.After(m.table.Now) && m.silent(row.BootID) {
			parts = append(parts, p)
		}
	}
	for _, p := range assign(parts, heirs, m.cfg.BootID) {
		if t := &m.tenures[p]; t.adopted < t.row.Term {
			t.adopted = t.row.Term
			out.add(p, t.row)
		}
	}
	for p := range m.tenures { // ours, or just given up, whose last holder died soon after
		if t := &m.tenures[p]; t.before.BootID != "" && now < t.firesUntil && !m.fires(t.before.BootID) {
			out.add(p, t.before)
			t.before = domain.PartitionLease{}
		}
	}
	m.bury(&out)
	return out
}

// bury has the offers of nodes that died since the last look looked for, in
// all that fires here. A node fires more than what it holds: what it has
// adopted, and what it had planned before it gave it up. The offers that it
// had just committed there would wait until they are swept.
func (m *Machine) bury(out *Adopt) {
	var died bool
	for i := range m.table.Nodes {
		n := &m.table.Nodes[i]
		switch dead := m.silent(n.BootID) && !(n.Connected && n.RenewedAt.IsZero()); {
		case !dead || n.BootID == m.cfg.BootID:
			delete(m.buried, n.BootID)
		case !m.buried[n.BootID]:
			m.buried[n.BootID], died = true, true
			out.addDead(n.ID)
		}
	}
	maps.DeleteFunc(m.buried, func(boot string, _ bool) bool {
		return !slices.ContainsFunc(m.table.Nodes, func(n domain.NodeStatus) bool { return n.BootID == boot })
	})
	if !died {
		return
	}
	for p := range m.tenures {
		t := &m.tenures[p]
		fires := t.term != 0 || t.row.Term > 0 && t.adopted == t.row.Term
		if fires && !slices.Contains(out.Partitions, p) {
			out.Offers = append(out.Offers, p)
		}
	}
}

// silent says whether a node seems to be dead: it has no session with the
// database, or gives no sign of life through it.
func (m *Machine) silent(boot string) bool {
	for i := range m.table.Nodes {
		if n := &m.table.Nodes[i]; n.BootID == boot {
			return !n.Connected || m.table.Now.Sub(n.RenewedAt) > SilentAfter
		}
	}
	return true // off the list
}
