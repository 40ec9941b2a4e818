package executor

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/carillon-sched/carillon/executor-sdk/internal/runner"
	"github.com/carillon-sched/carillon/executor-sdk/internal/tally"
	"github.com/carillon-sched/carillon/proto"
)

// Stats is what an executor can tell of itself at a moment. Counts are since
// Run was called. Package metrics exports it for Prometheus.
type Stats struct {
	Name, Version string // of Config
	SDKVersion    string

	Ready     bool // Health says nothing
	Draining  bool
	LeaseLost bool // no admin node renews the lease: everything was cancelled

	Slots, Running int
	Sessions       int    // to admin nodes, now
	SessionsOpened uint64 // a number that grows tells of reconnects
	ResultsOwed    int    // attempts that no admin node has acknowledged the end of

	JournalFailing bool // nothing can be made durable: offers are refused
	JournalSyncs   Durations

	LogLines, LogLinesDropped uint64
	LogBuffered               int // bytes that no admin node has stored yet

	// Refused counts offers by proto's reject_code: busy, draining, …
	Refused map[string]uint64
	// Handlers has an entry for each registered handler, by name.
	Handlers []HandlerStats
}

// HandlerStats is what became of a handler's attempts.
type HandlerStats struct {
	Name string
	// Ended counts attempts by outcome: succeeded, failed, timed_out, cancelled.
	Ended map[string]uint64
	Took  Durations
}

// Durations says how many took how long.
type Durations struct {
	Bounds []time.Duration // upper ends, growing
	UpTo   []uint64        // how many took at most so long, for each of Bounds
	Count  uint64          // all of them
	Sum    time.Duration
}

func durationsOf(d *tally.Durations) Durations {
	out := Durations{Bounds: tally.Bounds[:]}
	out.UpTo, out.Count, out.Sum = d.Read()
	return out
}

// Outcomes of attempts whose handlers were called, and reasons to refuse an
// offer: the values of their labels, which are all there from the start.
var (
	outcomeNames = map[proto.Outcome]string{
		proto.Outcome_OUTCOME_SUCCEEDED: "succeeded", proto.Outcome_OUTCOME_FAILED: "failed",
		proto.Outcome_OUTCOME_TIMED_OUT: "timed_out", proto.Outcome_OUTCOME_CANCELLED: "cancelled",
	}
	refusals = []string{
		runner.RejectBusy, runner.RejectDraining, runner.RejectUnknownHandler, runner.RejectJournal, runner.RejectDuplicate, runner.RejectVoid,
	}
)

// counts is what a process counts beside its state.
type counts struct {
	handlers map[string]*handlerCounts // fixed after construction
	syncs    tally.Durations

	mu      sync.Mutex
	refused map[string]uint64 // guarded by mu
}

type handlerCounts struct {
	ended [7]atomic.Uint64 // by proto.Outcome
	took  tally.Durations
}

func newCounts(order []*handler) *counts {
	c := &counts{handlers: map[string]*handlerCounts{}, refused: map[string]uint64{}}
	for _, h := range order {
		c.handlers[h.name] = &handlerCounts{}
	}
	return c
}

// ended implements runner.Options.Ended.
func (c *counts) ended(name string, o proto.Outcome, took time.Duration) {
	if h := c.handlers[name]; h != nil && int(o) < len(h.ended) {
		h.ended[o].Add(1)
		h.took.Add(took)
	}
}

// refusedOffer implements runner.Options.Refused.
func (c *counts) refusedOffer(code string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refused[code]++
}

// Stats tells how the executor does; before Run, only what New knows. It is
// cheap enough for every scrape.
func (ex *Executor) Stats() Stats {
	out := Stats{Name: ex.config.Name, Version: ex.config.Version, SDKVersion: Version, Slots: ex.config.Slots, Refused: map[string]uint64{}}
	for _, code := range refusals {
		out.Refused[code] = 0
	}
	ex.mu.Lock()
	p := ex.process
	ex.mu.Unlock()
	if p != nil {
		p.stats(&out)
	}
	return out
}

func (p *process) stats(out *Stats) {
	out.Ready = p.health() == nil
	out.Running, out.Draining = p.runner.Load()
	out.ResultsOwed = p.runner.Unsettled()
	out.LeaseLost = p.runner.LeaseLost()
	out.Sessions, out.SessionsOpened = p.fleet.Sessions()
	out.JournalFailing = p.journal.Err() != nil
	out.JournalSyncs = durationsOf(&p.counts.syncs)
	out.LogLines, out.LogLinesDropped, out.LogBuffered = p.logs.Counts()
	p.counts.mu.Lock()
	for code, n := range p.counts.refused {
		out.Refused[code] = n
	}
	p.counts.mu.Unlock()
	for name, h := range p.counts.handlers {
		s := HandlerStats{Name: name, Ended: map[string]uint64{}, Took: durationsOf(&h.took)}
		for o, word := range outcomeNames {
			s.Ended[word] = h.ended[o].Load()
		}
		out.Handlers = append(out.Handlers, s)
	}
	slices.SortFunc(out.Handlers, func(a, b HandlerStats) int { return strings.Compare(a.Name, b.Name) })
}
