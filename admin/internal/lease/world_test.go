package lease

import (
	"slices"
	"strconv"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// world is a database with nodes around it, in which each message takes as
// long as the test says.
type world struct {
	now   time.Duration // everybody's monotonic clock
	clock time.Time     // the database's, at now = 0
	rows  [domain.Partitions]domain.PartitionLease
	nodes []*node
	// movedFrom counts, per partition, how often it got a new holder.
	moved [domain.Partitions]int
	down  bool
}

type node struct {
	id      domain.NodeID
	boot    string
	machine *Machine
	alive   bool // the process
	frozen  bool
	linked  bool // its session with the database
	renewed time.Time
	// sessions of executors; most tests have none anywhere.
	sessions int

	queue  []Effect
	call   Effect        // sent, not answered
	sent   time.Duration // when
	answer Event         // done, not heard of; nil with call: not done yet
	done   bool
	ticked time.Duration
	adopts []int
	// offers are the partitions in which it looked for the offers of each dead node.
	offers map[domain.NodeID][]int
}

func newWorld() *world {
	w := &world{clock: time.UnixMilli(1_800_000_000_000).UTC()}
	for p := range w.rows {
		w.rows[p].Partition = p
	}
	return w
}

func (w *world) db() time.Time { return w.clock.Add(w.now).Truncate(time.Millisecond) }

func (w *world) join() *node {
	n := &node{id: domain.NodeID(len(w.nodes) + 1), alive: true, linked: true, ticked: -LookEvery, offers: map[domain.NodeID][]int{}}
	n.boot = "boot-" + strconv.Itoa(len(w.nodes)+1)
	n.machine = New(Config{Node: n.id, BootID: n.boot})
	w.nodes = append(w.nodes, n)
	return n
}

func (w *world) kill(n *node) {
	n.alive, n.linked, n.queue, n.call, n.answer, n.done = false, false, nil, nil, nil, false
}

func (w *world) table() domain.PartitionTable {
	t := domain.PartitionTable{Now: w.db(), Leases: slices.Clone(w.rows[:])}
	for _, n := range w.nodes {
		if n.alive || w.db().Sub(n.renewed) < time.Minute {
			t.Nodes = append(t.Nodes, domain.NodeStatus{
				Node: domain.Node{ID: n.id, BootID: n.boot, Sessions: n.sessions}, Connected: n.linked, RenewedAt: n.renewed,
			})
		}
	}
	return t
}

// step moves a node one step on: it hears an answer, or its statement is
// carried out, or it sends the next one, or its ticker fires.
func (w *world) step(n *node) {
	switch {
	case !n.alive || n.frozen:
	case n.call != nil && n.done:
		answer := n.answer
		n.call, n.answer, n.done = nil, nil, false
		if answer != nil {
			n.queue = append(n.queue, n.machine.Step(w.now, answer)...)
		}
	case n.call != nil:
		n.answer, n.done = w.execute(n), true
	case len(n.queue) > 0:
		n.call, n.sent, n.queue = n.queue[0], w.now, n.queue[1:]
	case w.now-n.ticked >= LookEvery:
		n.ticked = w.now
		n.queue = n.machine.Step(w.now, Tick{})
	}
}

// lose drops what a node waits for, as a broken connection does: whether its
// statement was carried out depends on when.
func (w *world) lose(n *node) {
	n.call, n.answer, n.done, n.queue = nil, nil, false, nil
}

// execute is the database, by the contract of store.Partitions.
func (w *world) execute(n *node) Event {
	if w.down {
		n.queue = nil
		return nil
	}
	now := w.db()
	switch c := n.call.(type) {
	case Renew:
		n.renewed = now
		for _, h := range c.Held {
			if r := &w.rows[h.Partition]; r.Term == h.Term {
				r.Until = now.Add(TTL)
			}
		}
		return Seen{SentAt: n.sent, Renewed: c.Held, Table: w.table()}
	case Look:
		return Seen{SentAt: n.sent, Table: w.table()}
	case Acquire:
		var got []domain.PartitionLease
		for _, h := range c.Want {
			r := &w.rows[h.Partition]
			left := r.Until.Sub(now)
			if r.Term != h.Term || !r.Until.IsZero() && left > 0 && left <= 2*TTL {
				continue
			}
			if r.BootID != n.boot {
				w.moved[h.Partition]++
			}
			*r = domain.PartitionLease{
				PartitionTerm: domain.PartitionTerm{Partition: h.Partition, Term: h.Term + 1}, Node: n.id, BootID: n.boot, Until: now.Add(TTL),
			}
			got = append(got, *r)
		}
		return Acquired{SentAt: n.sent, Leases: got}
	case Release:
		if c.Leaving {
			n.renewed = time.Time{}
		}
		var ended []domain.PartitionTerm
		for _, h := range c.Held {
			r := &w.rows[h.Partition]
			if r.Term != h.Term || r.BootID != n.boot {
				continue
			}
			r.Until = time.Time{}
			if c.Leaving {
				r.BootID, r.Node = "", 0
			}
			ended = append(ended, h)
		}
		return Released{ended}
	case Adopt:
		n.adopts = append(n.adopts, c.Partitions...)
		for _, dead := range c.Dead {
			n.offers[dead] = append(append(n.offers[dead], c.Partitions...), c.Offers...)
		}
	}
	return nil
}

// calm lets everybody be quick for a while.
func (w *world) calm(d time.Duration) {
	w.down = false
	for end := w.now + d; w.now < end; w.now += 10 * time.Millisecond {
		for _, n := range w.nodes {
			for range 8 {
				w.step(n)
			}
		}
	}
}

// owners returns who believes to hold a partition now.
func (w *world) owners(p int) (out []*node) {
	for _, n := range w.nodes {
		if !n.alive {
			continue
		}
		for _, h := range n.machine.Held(w.now) {
			if h.Partition == p {
				out = append(out, n)
			}
		}
	}
	return out
}

func (w *world) living() (out []*node) {
	for _, n := range w.nodes {
		if n.alive && !n.machine.stopping {
			out = append(out, n)
		}
	}
	return out
}
