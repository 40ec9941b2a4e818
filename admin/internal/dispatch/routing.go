package dispatch

import (
	"cmp"
	"hash/fnv"
	"slices"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// Traits are what an instance said of itself when it registered; they do not
// change.
type Traits struct {
	Name   string
	Labels map[string]string
}

// Load is how busy an instance is, in thousandths of what it may use; 0 also
// for what it does not report.
type Load struct {
	Slots, CPU, Memory int
	// Taken of so many slots; 0 = not known.
	Taken, Of int
	// Refusing: it takes nothing, whatever its slots say, because its journal
	// cannot be written.
	Refusing bool
}

// rank is the load as a number: the share of the slots, or of the CPU in steps of
// a twentieth, whichever is more; then the memory in steps of a tenth. Smaller
// differences are noise, and would send every run to the same instance.
func (l Load) rank() uint64 {
	return uint64(max(l.Slots, l.CPU/50*50, 0))<<16 | uint64(max(l.Memory, 0)/100)
}

// candidate is an instance that may get a run. It holds no pointers: there is
// one for each instance and run, and the collector need not look at them.
type candidate struct {
	at   int // of its target
	id   domain.InstanceID
	free int // how many runs like this one it has room for
	// tier counts what speaks against it and may be overcome: see tierOf.
	tier int
	// rank is the place that the strategy gives it, lowest first; then second.
	rank, second uint64
}

// The tiers: whoever lacks a preferred label, and whoever did not take this run
// when it was sent there. Others with room come first.
const (
	tierUnpreferred = 1
	tierTried       = 2
)

func tierOf(e *domain.Execution, spec *domain.JobSpec, t Target) (tier int) {
	if !spec.Prefer.Empty() && !spec.Prefer.Matches(t.Traits().Labels) {
		tier += tierUnpreferred
	}
	if len(e.Delays) > 0 && e.Sends().TriedOn(t.InstanceID()) && spec.Routing != domain.RouteFirst && spec.Routing != domain.RouteLast {
		tier += tierTried
	}
	return tier
}

// pinned reports whether the run has one instance only, and waits for it while
// it is full. Failover moves on once a send has led to nothing.
func pinned(e *domain.Execution, spec *domain.JobSpec) bool {
	return spec.Routing.Pinned() && (spec.Routing != domain.RouteFailover || !e.Sends().Tried())
}

// pick returns the best candidate, or -1 when none of them has room. With one,
// the best of all is taken or nobody.
func pick(all []candidate, one bool) int {
	at := best(all, !one)
	if at >= 0 && all[at].free <= 0 {
		return -1
	}
	return at
}

// best returns the best candidate, of those with room if roomy; -1: there is none.
func best(all []candidate, roomy bool) int {
	best := -1
	for i := range all {
		c := &all[i]
		if c.free <= 0 && roomy {
			continue
		}
		if best < 0 || c.tier == all[best].tier && c.rank < all[best].rank || c.before(&all[best]) {
			best = i
		}
	}
	return best
}

func (c *candidate) before(o *candidate) bool {
	switch {
	case c.tier != o.tier:
		return c.tier < o.tier
	case c.rank != o.rank:
		return c.rank < o.rank
	case c.second != o.second:
		return c.second < o.second
	}
	return c.id < o.id
}

// rankInput is what a strategy decides by, beside the candidates.
type rankInput struct {
	routing domain.Routing
	random  uint64
	key     uint64              // consistent hash
	last    domain.InstanceID   // of the job's last run; 0 = unknown
	recent  []domain.InstanceID // of the job's last runs, newest first
}

// rank gives each candidate its place. The order of registration is that of the
// ids: they grow with time, and are the same on every node.
func rank(all []candidate, targets []Target, in rankInput) {
	switch in.routing {
	case domain.RouteConsistentHash:
		rankByHash(all, targets, in.key)
	case domain.RouteLeastFrequentlyUsed, domain.RouteLeastRecentlyUsed:
		rankByUse(all, in)
	case domain.RouteRoundRobin:
		for i := range all {
			all[i].rank = turn(all[i].id, &in)
		}
	case domain.RouteRandom:
		for i := range all {
			all[i].rank = mix(uint64(all[i].id) ^ in.random)
		}
	case domain.RouteLeastLoaded:
		for i := range all {
			all[i].rank, all[i].second = targets[all[i].at].Load().rank(), turn(all[i].id, &in)
		}
	case domain.RouteLast:
		for i := range all {
			all[i].rank = ^uint64(all[i].id)
		}
	default:
		for i := range all {
			all[i].rank = uint64(all[i].id)
		}
	}
}

// turn is how far an instance is behind the last one in the ring: the next
// higher id first, and from the highest on to the lowest. Without a last one
// the begin is random, so that many jobs do not all begin at one instance.
func turn(id domain.InstanceID, in *rankInput) uint64 {
	if in.last == 0 {
		return mix(uint64(id) ^ in.random)
	}
	return uint64(id) - uint64(in.last) - 1
}

// rankByHash is rendezvous hashing (Thaler and Ravishankar 1998): each instance
// draws a number from the key and its own name, and the highest number has the
// key. Who leaves takes nothing but its own keys along. Names outlive their
// processes; those with the same name are told apart by their order.
func rankByHash(all []candidate, targets []Target, key uint64) {
	for i, name := range hashedNames(all, targets) {
		all[i].rank = ^mix(name ^ key)
	}
}

// hashedNames sorts the candidates, and returns the number of each name.
func hashedNames(all []candidate, targets []Target) []uint64 {
	for i := range all {
		all[i].rank = hashOf(targets[all[i].at].Traits().Name)
	}
	slices.SortFunc(all, func(a, b candidate) int { return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.id, b.id)) })
	out := make([]uint64, len(all))
	var name, same uint64
	for i := range all {
		if i > 0 && all[i].rank == name {
			same++
		} else {
			name, same = all[i].rank, 0
		}
		out[i] = mix(name + same*0x9e3779b97f4a7c15)
	}
	return out
}

// rankByUse counts the job's last runs. Ties go to the one whose last use is
// the oldest; who was not used among them comes before all, by lot.
func rankByUse(all []candidate, in rankInput) {
	for i := range all {
		c := &all[i]
		var count, age uint64 = 0, 0
		for n, id := range in.recent {
			if id == c.id {
				if count == 0 {
					age = uint64(len(in.recent) - n) // the newest has the highest
				}
				count++
			}
		}
		c.rank, c.second = age, age
		if in.routing == domain.RouteLeastFrequentlyUsed {
			c.rank = count
		}
		if count == 0 {
			c.second = mix(uint64(c.id) ^ in.random) // many jobs do not all begin at one instance
		}
	}
}

// hashKey is the key of a run under consistent hash: the value in its input that
// the job names, or else the job.
func hashKey(e *domain.Execution, spec *domain.JobSpec) uint64 {
	if spec.RoutingKey != "" {
		if v, ok := domain.PointerValue(spec.InputOf(e), spec.RoutingKey); ok {
			return hashOf(v)
		}
	}
	return mix(uint64(e.JobID))
}

// hashOf is the same on all nodes and in all versions: keys must not move with
// an upgrade.
func hashOf(text string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(text))
	return mix(h.Sum64())
}

// mix is the finalizer of SplitMix64 (Steele, Lea and Flood 2014): every bit of
// the input changes half of the output.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
