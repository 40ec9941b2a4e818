package dispatch

import (
	"cmp"
	"slices"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// pool are the instances that runs of one batch may go to which serve a handler
// and have its labels, in the order of their ids. It is made once for a batch,
// and knows at once which of those with room is the best one, so that a choice
// costs hardly more among thousands of them than among three.
//
// It believes what was free when it was made, less what it gave away; an
// instance that has less by now refuses (Target.Reserve), and counts as full for
// the rest of the batch.
type pool struct {
	targets []Target
	ids     []domain.InstanceID
	free    []int32
	// up and down lead from each place to the next one with room, itself
	// included; they are shortened as they are walked. Place i of an instance is
	// i in up, which has one more at its end, and i+1 in down, with one more at
	// its begin.
	up, down []int32
	roomy    []int32 // those with room, in no order
	at       []int32 // where they stand in roomy; -1: full
	passed   domain.PassedBy
	loads    *loads // once it was needed
	scratch  []candidate
	names    []uint64 // of consistent hash, once they were needed
}

func newPool(targets []Target) *pool {
	targets = slices.Clone(targets)
	slices.SortFunc(targets, func(a, b Target) int { return cmp.Compare(a.InstanceID(), b.InstanceID()) })
	n := len(targets)
	p := &pool{
		targets: targets, ids: make([]domain.InstanceID, n), free: make([]int32, n), up: make([]int32, n+1), down: make([]int32, n+1),
		roomy: make([]int32, 0, n), at: make([]int32, n),
	}
	p.down[0], p.up[n] = 0, int32(n)
	for i, t := range targets {
		p.ids[i], p.free[i] = t.InstanceID(), int32(t.Free())
		p.up[i], p.down[i+1], p.at[i] = int32(i), int32(i+1), int32(len(p.roomy))
		p.roomy = append(p.roomy, int32(i))
	}
	p.passed = domain.NewPassedBy(p.ids)
	for i := range targets {
		if p.free[i] <= 0 {
			p.fill(int32(i))
		}
	}
	return p
}

// poolOf returns the pool for a run, or nil where the choice depends on more than
// what a pool knows: several slots, slots that are kept, preferred labels, an
// instance that was asked for or has failed the run.
func (ch *chooser) poolOf(l *lookup, e *domain.Execution, spec *domain.JobSpec, targets []Target) *pool {
	if len(targets) == 0 || e.Bound != 0 || !spec.Prefer.Empty() || e.Instance != 0 && e.Fence == 0 || ch.kept.count.Load() > 0 || e.Sends().Tried() {
		return nil
	}
	key := pooled{served{e.TenantID, e.Executor, spec.Handler}, spec.Require.Text}
	p, known := l.pools[key]
	if known {
		return p
	}
	if slices.ContainsFunc(targets, func(t Target) bool { return t.Weight(spec.Handler) != 1 }) {
		p = nil
	} else {
		if !spec.Require.Empty() {
			targets = slices.DeleteFunc(slices.Clone(targets), func(t Target) bool { return !spec.Require.Matches(t.Traits().Labels) })
		}
		p = newPool(targets)
	}
	if l.pools == nil {
		l.pools = map[pooled]*pool{}
	}
	l.pools[key] = p
	return p
}

type pooled struct {
	served
	require string
}

// above returns the first place from i on with room; len(ids): there is none.
func (p *pool) above(i int32) int32 { return follow(p.up, i) }

// below returns the last place up to i with room; -1: there is none.
func (p *pool) below(i int32) int32 { return follow(p.down, i+1) - 1 }

func follow(to []int32, i int32) int32 {
	for to[i] != i {
		to[i] = to[to[i]]
		i = to[i]
	}
	return i
}

// fill notes that the instance has no room any more.
func (p *pool) fill(i int32) {
	at := p.at[i]
	if at < 0 {
		return
	}
	last := p.roomy[len(p.roomy)-1]
	p.roomy[at], p.at[last] = last, at
	p.roomy, p.at[i] = p.roomy[:len(p.roomy)-1], -1
	p.up[i], p.down[i+1] = i+1, i
	p.passed.Fill(p.ids[i])
	if p.loads != nil {
		p.loads.remove(i)
	}
}

// took notes that the instance took one more.
func (p *pool) took(i int32) {
	if p.free[i]--; p.free[i] <= 0 {
		p.fill(i)
	} else if p.loads != nil {
		p.loads.put(i, p.targets[i].Load().rank())
	}
}

// pick returns the instance that the strategy takes, and whether another one was
// as good by its first measure; -1: none has room, or with one the best of all
// has none. It decides as rank and pick do.
func (p *pool) pick(in rankInput, one bool) (i int32, tied bool) {
	n := int32(len(p.ids))
	if len(p.roomy) == 0 {
		return -1, false
	}
	some := func(list []int32) int32 { return list[in.random%uint64(len(list))] }
	switch in.routing {
	case domain.RouteConsistentHash:
		return p.byHash(in.key, one), false
	case domain.RouteLeastFrequentlyUsed, domain.RouteLeastRecentlyUsed:
		return p.byUse(in)
	case domain.RouteLeastLoaded:
		if p.loads == nil {
			p.loads = newLoads(p)
		}
		list := p.loads.least()
		if in.last == 0 {
			return some(list), len(list) > 1
		}
		at, _ := slices.BinarySearchFunc(list, in.last+1, func(i int32, id domain.InstanceID) int { return cmp.Compare(p.ids[i], id) })
		return list[at%len(list)], len(list) > 1
	case domain.RouteRandom:
		return some(p.roomy), false
	case domain.RouteRoundRobin:
		if in.last == 0 {
			return some(p.roomy), false
		}
		at, _ := slices.BinarySearch(p.ids, in.last+1)
		if i = p.above(int32(at)); i == n {
			i = p.above(0)
		}
	case domain.RouteLast:
		if i = p.below(n - 1); one && i != n-1 {
			return -1, false
		}
	default:
		if i = p.above(0); one && i != 0 {
			return -1, false
		}
	}
	return i, false
}

// byHash asks each instance for the key: that is what the strategy is.
func (p *pool) byHash(key uint64, one bool) int32 {
	if p.names == nil {
		p.names = make([]uint64, len(p.ids))
		all := make([]candidate, len(p.ids))
		for i := range all {
			all[i] = candidate{at: i, id: p.ids[i]}
		}
		for i, name := range hashedNames(all, p.targets) {
			p.names[all[i].at] = name
		}
	}
	best, rank := int32(-1), uint64(0)
	for i, name := range p.names {
		if r := mix(name ^ key); (one || p.at[i] >= 0) && (best < 0 || r > rank) {
			best, rank = int32(i), r
		}
	}
	if p.at[best] < 0 {
		return -1
	}
	return best
}

// byUse takes one that was not used lately, by lot, if there is one: of more than
// domain.RoutingWindow there is, and as many have to be passed over at most.
func (p *pool) byUse(in rankInput) (i int32, tied bool) {
	found := int32(-1)
	from := int(in.random % uint64(len(p.roomy)))
	for k := 0; k < len(p.roomy) && len(p.roomy) > len(in.recent); k++ {
		i := p.roomy[(from+k)%len(p.roomy)]
		if slices.Contains(in.recent, p.ids[i]) {
			continue
		}
		if found >= 0 {
			return found, true
		}
		found = i
	}
	if found >= 0 {
		return found, false
	}
	all := p.scratch[:0]
	for _, i := range p.roomy {
		all = append(all, candidate{at: int(i), id: p.ids[i], free: 1})
	}
	p.scratch = all
	rankByUse(all, in)
	at := best(all, true)
	return int32(all[at].at), tiedWith(all, at)
}

// loads order those with room by their load.
type loads struct {
	ids   []domain.InstanceID
	of    []uint64 // the rank of each; only for those that stand in a list
	in    []bool
	ranks []uint64 // sorted; of the lists that are not empty
	lists map[uint64][]int32
}

func newLoads(p *pool) *loads {
	l := &loads{ids: p.ids, of: make([]uint64, len(p.ids)), in: make([]bool, len(p.ids)), lists: map[uint64][]int32{}}
	for i := range p.ids {
		if p.at[i] >= 0 {
			l.put(int32(i), p.targets[i].Load().rank())
		}
	}
	return l
}

// least is the list of those with the least load, by id.
func (l *loads) least() []int32 { return l.lists[l.ranks[0]] }

func (l *loads) put(i int32, rank uint64) {
	if l.in[i] && l.of[i] == rank {
		return
	}
	l.remove(i)
	list := l.lists[rank]
	if len(list) == 0 {
		at, _ := slices.BinarySearch(l.ranks, rank)
		l.ranks = slices.Insert(l.ranks, at, rank)
	}
	at, _ := slices.BinarySearch(list, i)
	l.lists[rank] = slices.Insert(list, at, i)
	l.in[i], l.of[i] = true, rank
}

func (l *loads) remove(i int32) {
	if !l.in[i] {
		return
	}
	rank := l.of[i]
	list := l.lists[rank]
	at, _ := slices.BinarySearch(list, i)
	list = slices.Delete(list, at, at+1)
	l.lists[rank], l.in[i] = list, false
	if len(list) == 0 {
		at, _ := slices.BinarySearch(l.ranks, rank)
		l.ranks = slices.Delete(l.ranks, at, at+1)
	}
}
