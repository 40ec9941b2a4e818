package runner

import (
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

// weight is how many slots a run of the handler holds. One that asks for more
// than there are gets all of them.
func (l *Limits) weight(handler string) int {
	if l.Weight == nil {
		return 1
	}
	return max(1, min(l.Weight(handler), l.Slots))
}

// stuck is what counts for the runs of a handler.
func (l *Limits) stuck(handler string) Stuck {
	var s Stuck
	if l.Stuck != nil {
		s = l.Stuck(handler)
	}
	if s.Grace == 0 {
		s.Grace = l.KillGrace
	}
	return s
}

// resendAfter is the pause after the n-th time a result was sent.
func (l *Limits) resendAfter(sends int) time.Duration {
	return min(l.ResendAfter<<min(sends-1, 10), maxResend)
}

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

// machine is the state of all attempts.
type machine struct {
	limits Limits
	boot   string
	known  func(handler string) bool

	attempts attempts
	used     int // slots taken
	history  history
	links    links
	lease    lease

	draining bool      // refuse offers
	exitAt   time.Time // when the process ends for a stuck handler; zero = it need not
	effects  []effect  // of the event that just happened
}

func newMachine(boot string, limits Limits, known func(string) bool) *machine {
	return &machine{
		limits: limits, boot: boot, known: known,
		attempts: attempts{}, history: newHistory(maxSeen),
		lease: lease{ttl: proto.LeaseTTL, margin: limits.LeaseMargin},
	}
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
		m.history.take(a.key)
	}
}

func record(kind journal.Kind, k Key) journal.Record {
	return journal.Record{Kind: kind, Execution: k.Execution, Fence: k.Fence}
}
