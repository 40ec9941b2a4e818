package verify

import (
	"cmp"
	"slices"
	"time"
)

// Kind names a sort of violation. The values are stable.
type Kind string

// The kinds.
const (
	Missed       Kind = "missed"       // a fire time came to nothing: no run and no row
	Double       Kind = "double"       // one start was allowed, and there were more
	Early        Kind = "early"        // started before its fire time
	Late         Kind = "late"         // later than the plan allows, and no fault explains it
	Overlap      Kind = "overlap"      // more runs at once than the blocking strategy allows
	Fence        Kind = "fence"        // a fence that did not grow, or an old one that was believed
	Phantom      Kind = "phantom"      // a start that nobody asked for: paused, deleted, foreign, not in the schedule
	LostResult   Kind = "lost_result"  // the handler ended well, and the row does not know
	FalseResult  Kind = "false_result" // the row tells of an end that no handler saw
	Gap          Kind = "gap"          // a fire time did not run, and its reason does not hold
	Unfinished   Kind = "unfinished"   // a run that should have ended long ago
	Disagreement Kind = "disagreement" // the labels and the clock tell different stories
)

// Kinds lists all of them, worst first.
var Kinds = []Kind{Missed, Double, Phantom, Fence, FalseResult, LostResult, Overlap, Early, Gap, Late, Unfinished, Disagreement}

// MaxExamples is how many findings of a kind a report holds in full.
const MaxExamples = 20

// Finding is one violation.
type Finding struct {
	Kind Kind   `json:"kind"`
	Job  string `json:"job,omitempty"`
	Key  string `json:"key,omitempty"`
	// At is when it happened, or should have.
	At     time.Time `json:"at"`
	Detail string    `json:"detail"`
}

// Stats describes lateness at the start of handlers.
type Stats struct {
	Count int           `json:"count"`
	P50   time.Duration `json:"p50Ns"`
	P99   time.Duration `json:"p99Ns"`
	Max   time.Duration `json:"maxNs"`
}

// FaultReport is what a fault did to what was due.
type FaultReport struct {
	ID     string    `json:"id"`
	Kind   string    `json:"kind"`
	Target string    `json:"target,omitempty"`
	Start  time.Time `json:"start"`
	End    time.Time `json:"end"`
	// Due counts the starts that were due from its start until its effects had
	// to be over; Late those of them that came late.
	Due  int `json:"due"`
	Late int `json:"late"`
	// MaxLate is the latest of them. Recovery is how long after the end of the
	// fault the last late one started; 0 when all was well by then.
	MaxLate  time.Duration `json:"maxLateNs"`
	Recovery time.Duration `json:"recoveryNs"`
}

// Evidence is a least number of the plan and what was there.
type Evidence struct {
	What string `json:"what"`
	Want int    `json:"want"`
	Seen int    `json:"seen"`
}

// Report is the checker's answer.
type Report struct {
	Name string    `json:"name,omitempty"`
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
	Jobs int       `json:"jobs"`
	// Expected counts the targets that must have come to something. Each is
	// accounted for by a start (Ran) or by a row that says why not (Explained,
	// by reason), or missed. Possible targets are those where a call's time
	// does not tell whether they had to.
	Expected  int            `json:"expected"`
	Accounted int            `json:"accounted"`
	Ran       int            `json:"ran"`
	Explained map[string]int `json:"explained"`
	Possible  int            `json:"possible"`
	// Asked counts runs that somebody asked for; Repeats further attempts.
	Asked   int `json:"asked"`
	Repeats int `json:"repeats"`
	Runs    int `json:"runs"` // witness runs
	Rows    int `json:"rows"`

	Counts   map[Kind]int `json:"counts"`
	Examples []Finding    `json:"examples"`

	Outside Stats `json:"latenessOutsideFaults"`
	Inside  Stats `json:"latenessInsideFaults"`
	// Waited is that of runs of which it is on record what they waited for: their
	// slot, a limit or an instance. Only rows tell (package ledger).
	Waited Stats         `json:"latenessOfWaiting"`
	Faults []FaultReport `json:"faults"`
	// BothAlive is the longest time in which two attempts of one run were alive,
	// where the job allows a lost attempt to be repeated.
	BothAlive time.Duration `json:"bothAliveNs"`
	// Unknowable counts results that a fault took between the end of the
	// handler and its report: nobody can tell.
	Unknowable int `json:"unknowable"`

	// Short lists the evidence that is missing; Notes what limits the answer.
	Short []Evidence `json:"notEnough"`
	Notes []string   `json:"notes"`

	bins [Bins]Bin // of the timeline
}

// Verdict is the answer in one word.
type Verdict string

// The verdicts. A violation counts even where evidence is missing.
const (
	Clean     Verdict = "clean"
	Violated  Verdict = "violation"
	NotEnough Verdict = "not enough evidence"
)

// Violations counts all of them.
func (r *Report) Violations() int {
	n := 0
	for _, count := range r.Counts {
		n += count
	}
	return n
}

// Verdict sums up.
func (r *Report) Verdict() Verdict {
	switch {
	case r.Violations() > 0:
		return Violated
	case len(r.Short) > 0:
		return NotEnough
	}
	return Clean
}

// ExitCode is 0 for clean, 1 for a violation, 2 for not enough evidence.
func (r *Report) ExitCode() int {
	switch r.Verdict() {
	case Violated:
		return 1
	case NotEnough:
		return 2
	}
	return 0
}

// NewReport returns an empty one.
func NewReport() *Report {
	return &Report{Explained: map[string]int{}, Counts: map[Kind]int{}, Examples: []Finding{}, Faults: []FaultReport{}, Short: []Evidence{}, Notes: []string{}}
}

// Find adds a violation.
func (r *Report) Find(f Finding) {
	r.Counts[f.Kind]++
	if r.Counts[f.Kind] <= MaxExamples {
		r.Examples = append(r.Examples, f)
	}
}

// Need adds missing evidence when less was seen than wanted.
func (r *Report) Need(what string, want, seen int) {
	if seen < want {
		r.Short = append(r.Short, Evidence{what, want, seen})
	}
}

// Sort puts the examples in the order of Kinds and time.
func (r *Report) Sort() {
	slices.SortStableFunc(r.Examples, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(slices.Index(Kinds, a.Kind), slices.Index(Kinds, b.Kind)), a.At.Compare(b.At))
	})
}

// statsOf sorts the durations.
func statsOf(list []time.Duration) Stats {
	if len(list) == 0 {
		return Stats{}
	}
	slices.Sort(list)
	nth := func(percent int) time.Duration { return list[(len(list)-1)*percent/100] }
	return Stats{Count: len(list), P50: nth(50), P99: nth(99), Max: list[len(list)-1]}
}
