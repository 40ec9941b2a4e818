package runner

import (
	"cmp"
	"slices"
	"time"

	gproto "google.golang.org/protobuf/proto"

	"github.com/carillon-sched/carillon/executor-sdk/internal/journal"
	"github.com/carillon-sched/carillon/proto"
)

// Link is one registered session to an admin node. Its methods only queue,
// and do nothing when the session has ended.
type Link interface {
	Answer([]*proto.Answer)
	// Accept is Answer for one-step offers that were taken: they may wait a little
	// for something urgent to go with.
	Accept([]*proto.Answer)
	Started([]*proto.Started)
	Results([]*proto.Result)
	// Ask sends attempts whose own session has ended; the answer is Verdicts.
	Ask([]*proto.InventoryItem)
	// LeaseFrom returns from when the lease counts that a heartbeat renewed, or for
	// 0 the registration, and when that was sent; zero times when it is not known
	// any more.
	LeaseFrom(seq int64) (from, sent time.Time)
}

// Limits of a machine, fixed after construction.
type Limits struct {
	// Slots is how many slots attempts may hold at a time.
	Slots int
	// Weight is how many of them an attempt of the handler holds, at least 1;
	// nil: 1 for all.
	Weight func(handler string) int
	// KillGrace is how long a cancelled handler may go on before it is
	// reported as still running.
	KillGrace time.Duration
	// Stuck is what a handler says of runs that ignore their cancel; nil: nothing.
	Stuck func(handler string) Stuck
	// ExitWait is how long the runs beside a stuck handler may go on before the
	// process ends, see Stuck.Exit. Below 0 is 0.
	ExitWait time.Duration
	// ExitIfIgnored is how long a handler may go on after the lease was lost,
	// before the process has to end; 0 = it need not.
	ExitIfIgnored time.Duration
	// AwaitDisk has acceptances answered and granted attempts started only when
	// that is durable; else when it stands in the journal's file
	// (journal.Journal.Outlasts).
	AwaitDisk bool
	// AcceptTTL is how long an answer may wait for its grant.
	AcceptTTL time.Duration
	// LeaseMargin is how much before its end the lease counts as lost.
	LeaseMargin time.Duration
	// ResendAfter is the first pause before an unacknowledged result is sent
	// again; it doubles up to maxResend.
	ResendAfter time.Duration
}

// Stuck is about the runs of a handler that ignore their cancel.
type Stuck struct {
	// Grace takes the place of Limits.KillGrace; 0 = it does not.
	Grace time.Duration
	// Exit ends the process when a run goes on beyond its grace: it takes nothing
	// new, and the other runs have Limits.ExitWait to end.
	Exit bool
}

const maxResend = time.Minute

// maxSeen bounds the executions remembered for refusing repeated offers.
const maxSeen = 1 << 17

// effect is one thing that Runner has to do. Exactly one field group is set.
type effect struct {
	link    Link
	answers []*proto.Answer
	accepts []*proto.Answer
	started []*proto.Started
	results []*proto.Result
	ask     []*proto.InventoryItem

	records []journal.Record
	written func(now time.Time)            // event when they would survive this process; nil = nobody waits
	done    func(now time.Time, err error) // event when they are durable; nil = nobody waits

	start  *attempt // call the handler
	cancel *attempt // cancel the context with its cause

	tell func() // the attempt is settled

	lost bool // report once that the lease was lost
	exit bool // end the process: a handler ignores that the lease was lost
}

// linkState is what the machine knows of a session.
type linkState struct {
	link    Link
	renewed bool // its node renewed the lease when last asked
}

// machine is the state of all attempts.
type machine struct {
	limits Limits
	boot   string
	known  func(handler string) bool

	attempts map[Key]*attempt
	used     int             // slots taken
	seen     map[int64]int64 // execution → highest fence that was taken
	order    []Key           // of arrival in seen, for forgetting
	maxSeen  int
	// refused are one-step offers that were refused. Their copies are refused
	// as well: the admin gives the run to another one for the first answer.
	refused      map[Key]bool
	refusedOrder []Key        // of arrival
	links        []*linkState // in the order they registered

	leaseTTL  time.Duration
	renewedAt time.Time // when the heartbeat was sent that renewed it last
	fenced    bool      // the lease is lost, and everything was cancelled
	tickedAt  time.Time // the last tick; long ago: this process stood still

	draining bool      // refuse offers
	exitAt   time.Time // when the process ends for a stuck handler; zero = it need not
	effects  []effect  // of the event that just happened
}

func newMachine(boot string, limits Limits, known func(string) bool) *machine {
	return &machine{
		limits: limits, boot: boot, known: known,
		attempts: map[Key]*attempt{}, seen: map[int64]int64{}, maxSeen: maxSeen, refused: map[Key]bool{},
		leaseTTL: proto.LeaseTTL,
	}
}

// weight is how many slots a run of the handler holds. One that asks for more
// than there are gets all of them.
func (m *machine) weight(handler string) int {
	if m.limits.Weight == nil {
		return 1
	}
	return max(1, min(m.limits.Weight(handler), m.limits.Slots))
}

// stuck is what counts for the runs of a handler.
func (m *machine) stuck(handler string) Stuck {
	var s Stuck
	if m.limits.Stuck != nil {
		s = m.limits.Stuck(handler)
	}
	if s.Grace == 0 {
		s.Grace = m.limits.KillGrace
	}
	return s
}

// leaving reports whether nothing new is taken.
func (m *machine) leaving() bool { return m.draining || !m.exitAt.IsZero() }

// forgetEffects makes room for those of the next event.
func (m *machine) forgetEffects() {
	clear(m.effects)
	m.effects = m.effects[:0]
}

func (m *machine) emit(e effect) { m.effects = append(m.effects, e) }

// append puts records into the journal that nobody waits for.
func (m *machine) append(records []journal.Record) { m.emit(effect{records: records}) }

// enter puts what happened to attempts into the journal; then is the event that
// it is safe to act on it, or that it could not be written.
func (m *machine) enter(records []journal.Record, then func(time.Time, error)) {
	if m.limits.AwaitDisk {
		m.emit(effect{records: records, done: then})
		return
	}
	stands := false
	m.emit(effect{
		records: records,
		written: func(now time.Time) { stands = true; then(now, nil) },
		done: func(now time.Time, err error) {
			if !stands {
				then(now, err)
			}
		},
	})
}

// pick returns the attempts that meet the condition, in an order that does not
// depend on chance.
func (m *machine) pick(condition func(*attempt) bool) []*attempt {
	var out []*attempt
	for _, a := range m.attempts {
		if condition(a) {
			out = append(out, a)
		}
	}
	slices.SortFunc(out, func(a, b *attempt) int {
		return cmp.Or(cmp.Compare(a.key.Execution, b.key.Execution), cmp.Compare(a.key.Fence, b.key.Fence))
	})
	return out
}

// recover takes over what earlier processes left in the journal: their
// results, and for attempts without one what the journal proves about them.
func (m *machine) recover(entries []journal.Entry) {
	for _, e := range entries {
		a := &attempt{key: Key{e.Execution, e.Fence}, boot: e.Boot, phase: ended}
		a.result = &proto.Result{}
		died := Return{Kind: KindProcessDied, Error: "the process died while the handler may have been running"}
		if e.Kind != journal.Done || gproto.Unmarshal(e.Result, a.result) != nil {
			o, r := proto.Outcome_OUTCOME_UNKNOWN, died
			if e.Kind == journal.Accepted {
				o, r = proto.Outcome_OUTCOME_NEVER_STARTED, Return{Error: "the process died before the handler was started"}
			}
			a.result = a.message(o, r, time.Time{})
		}
		if a.result.GetStillRunning() {
			// It runs no more; what it did after the report nobody knows.
			a.next = a.message(proto.Outcome_OUTCOME_UNKNOWN, died, time.Time{})
		}
		m.attempts[a.key] = a
		m.remember(a.key)
	}
}

// active is the number of attempts that run or may still start.
func (m *machine) active() int {
	n := 0
	for _, a := range m.attempts {
		if a.phase != ended && !a.abandoned {
			n++
		}
	}
	return n
}

// owed is the number of attempts that an admin node still has to hear about.
// Handlers that were given up, and whose end is all that is missing, do not count.
func (m *machine) owed() int {
	n := 0
	for _, a := range m.attempts {
		if !a.abandoned || a.phase == ended || a.result != nil || a.writes > 0 {
			n++
		}
	}
	return n
}

// unsettled is the number of attempts with a result, in the journal or on its
// way there, that no admin node has acknowledged.
func (m *machine) unsettled() int {
	n := 0
	for _, a := range m.attempts {
		if a.result != nil || a.phase == ended && !a.told {
			n++
		}
	}
	return n
}

// remember notes that the attempt was taken, so that it is never taken again.
func (m *machine) remember(k Key) {
	m.seen[k.Execution] = k.Fence
	m.order = append(m.order, k)
	if len(m.order) <= m.maxSeen {
		return
	}
	oldest := m.order[0]
	m.order = m.order[1:]
	if m.seen[oldest.Execution] == oldest.Fence {
		delete(m.seen, oldest.Execution)
	}
}

// maxRefused bounds the refusals remembered.
const maxRefused = 1 << 14

func (m *machine) rememberRefused(k Key) {
	if m.refused[k] {
		return
	}
	m.refused[k] = true
	m.refusedOrder = append(m.refusedOrder, k)
	if len(m.refusedOrder) > maxRefused {
		delete(m.refused, m.refusedOrder[0])
		m.refusedOrder = m.refusedOrder[1:]
	}
}

func record(kind journal.Kind, k Key) journal.Record {
	return journal.Record{Kind: kind, Execution: k.Execution, Fence: k.Fence}
}
