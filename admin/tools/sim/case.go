package sim

import (
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Case is one run of the world. It is what a regression file holds.
type Case struct {
	Seed uint64 `json:"seed"`
	// Only, unless nil, names the faults that are injected: those that the seed
	// alone would inject beside them are left out.
	Only []string `json:"only,omitempty"`
	// Shards: some of the jobs have shards.
	Shards bool `json:"shards,omitempty"`
	// Timers: an application sets timers.
	Timers bool `json:"timers,omitempty"`
	// Note says what it found.
	Note string `json:"note,omitempty"`
}

// Kinds of faults. Each seed has a random part of them.
const (
	faultDelay     = "delay"     // a message takes long
	faultDrop      = "drop"      // a message is lost inside of a session
	faultDuplicate = "duplicate" // a message comes twice
	faultReorder   = "reorder"   // a message overtakes others
	faultReset     = "reset"     // a session breaks
	faultCut       = "cut"       // nothing passes between a node and an executor, in one direction or both
	faultCommit    = "commit"    // committed, but the answer is lost
	faultTx        = "tx"        // not executed
	faultSlow      = "slow"      // a transaction waits long
	faultDown      = "down"      // the database is away
	faultClock     = "clock"     // the database's clock is set
	faultNode      = "node"      // a node crashes
	faultFreeze    = "freeze"    // a process stands still
	faultExecutor  = "executor"  // an executor crashes, or its machine does
	faultJournal   = "journal"   // a journal cannot be written
	faultHandler   = "handler"   // a handler is slow, fails or ignores its context
	faultCancel    = "cancel"    // somebody cancels a run
	faultPause     = "pause"     // somebody pauses a job, and resumes it
	faultEdit      = "edit"      // somebody edits a job
	faultDelete    = "delete"    // somebody deletes a job
	faultLimit     = "limit"     // somebody sets a limit
	faultStop      = "stop"      // an executor is asked to stop
	faultMaintain  = "maintain"  // somebody switches maintenance on
)

var faultKinds = []string{
	faultDelay, faultDrop, faultDuplicate, faultReorder, faultReset, faultCut, faultCommit, faultTx, faultSlow, faultDown,
	faultClock, faultNode, faultFreeze, faultExecutor, faultJournal, faultHandler, faultCancel, faultPause, faultEdit, faultDelete, faultLimit,
	faultStop, faultMaintain,
}

// faults decides what goes wrong. Every source of chance has a name and a
// sequence of its own, so that leaving one fault out disturbs others little.
type faults struct {
	seed     uint64
	on       map[string]bool
	rate     map[string]float64
	only     map[string]bool // nil: everything
	streams  map[string]*stream
	injected []string
	over     bool // the world heals
}

type stream struct {
	rng *rand.Rand
	n   int
}

func newFaults(c Case) *faults {
	f := &faults{seed: c.Seed, on: map[string]bool{}, rate: map[string]float64{}, streams: map[string]*stream{}}
	if c.Only != nil {
		f.only = map[string]bool{}
		for _, name := range c.Only {
			f.only[name] = true
		}
	}
	pick := f.chance("swarm")
	share := pick.Float64()
	for _, kind := range faultKinds {
		f.on[kind] = pick.Float64() < share
		f.rate[kind] = []float64{0.002, 0.01, 0.04}[pick.IntN(3)]
	}
	return f
}

func streamSeed(name string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	return h.Sum64()
}

func (f *faults) stream(name string) *stream {
	s := f.streams[name]
	if s == nil {
		s = &stream{rng: rand.New(rand.NewPCG(f.seed, streamSeed(name)))}
		f.streams[name] = s
	}
	return s
}

// chance is the source of that name.
func (f *faults) chance(name string) *rand.Rand { return f.stream(name).rng }

// hit says whether a fault of this kind happens here and now, with the usual rate.
func (f *faults) hit(kind, where string) bool { return f.hitAt(kind, where, f.rate[kind]) }

func (f *faults) hitAt(kind, where string, rate float64) bool {
	s := f.stream(kind + " " + where)
	s.n++
	return s.rng.Float64() < rate && f.allow(kind, where, s.n)
}

// allow enters a fault that is to happen, unless the case leaves it out.
func (f *faults) allow(kind, where string, n int) bool {
	if !f.on[kind] || f.over {
		return false
	}
	name := kind + " " + where + " " + strconv.Itoa(n)
	if f.only != nil && !f.only[name] {
		return false
	}
	f.injected = append(f.injected, name)
	return true
}

// between returns a duration from low to high, mostly near low.
func between(r *rand.Rand, low, high time.Duration) time.Duration {
	x := r.Float64()
	return low + time.Duration(x*x*float64(high-low))
}

func oneOf[T any](r *rand.Rand, list ...T) T { return list[r.IntN(len(list))] }

// mayPlan says whether a fault of this kind may come in this case at all.
func (f *faults) mayPlan(kind string) bool {
	named := f.only == nil
	for name := range f.only {
		named = named || strings.HasPrefix(name, kind+" ")
	}
	return f.on[kind] && named
}

// Kinds returns the kinds of faults that a seed has.
func (f *faults) kinds() []string {
	var out []string
	for _, k := range faultKinds {
		if f.on[k] {
			out = append(out, k)
		}
	}
	slices.Sort(out)
	return out
}
