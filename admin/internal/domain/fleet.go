package domain

import (
	"strconv"
	"strings"
	"time"
)

// Executor is a named group of interchangeable processes.
type Executor struct {
	ID          ExecutorID
	TenantID    TenantID
	Name        string
	Description string
	// BuiltIn: the admin nodes are its instances; no process joins it.
	BuiltIn bool
	State   ExecutorState // 0 counts as ExecutorEnabled where one is made
	Note    string        // why it is disabled
	// CallbacksTo are the executors, by name, that callbacks of jobs declared in its code may use
	// beside itself; BuiltInExecutor stands for addresses and connections.
	CallbacksTo []string
	// Version grows with each change of name, description and state.
	Version   int64
	CreatedAt time.Time
	// ChangedAt is when its state changed; zero = never.
	ChangedAt time.Time
}

// ExecutorState is whether an executor takes work.
type ExecutorState uint8

const (
	ExecutorEnabled ExecutorState = 1
	// ExecutorDisabled lets no process register and starts nothing, until it is
	// enabled again.
	ExecutorDisabled ExecutorState = 2
	// ExecutorDeleted is final. Its row stays while jobs and runs name it.
	ExecutorDeleted ExecutorState = 3
)

func (s ExecutorState) String() string {
	switch s {
	case ExecutorDisabled:
		return "disabled"
	case ExecutorDeleted:
		return "deleted"
	default:
		return "enabled"
	}
}

// MaxExecutorAliases is how many names an executor keeps that it had before.
const MaxExecutorAliases = 10

// BuiltInExecutor is the name of a tenant's executor whose instances are the admin
// nodes (docs/adr/0070). Nobody else may have it.
const BuiltInExecutor = "carillon"

// CallbackHandler is the handler of that executor that calls an address.
const CallbackHandler = "http"

// LeaseRanOut is the reason of an instance's end that it did not announce.
const LeaseRanOut = "its lease ran out"

// Instance is one live process of an executor (one boot).
type Instance struct {
	ID       InstanceID
	TenantID TenantID
	Executor ExecutorID
	BootID   string
	Name     string
	Host     string
	// Address is the remote address of its newest session, without a port. Empty = unknown.
	Address    string
	PID        int
	AppVersion string
	Build      string // digest of what it registered; empty = not known
	Client     string
	Labels     map[string]string
	Handlers   []string
	Slots      int
	Running    int
	Draining   bool
	// DrainingAt is since when it takes nothing new; zero while it does.
	DrainingAt time.Time
	Refusing   bool // it takes nothing for now: its journal cannot be written
	StartedAt  time.Time
	// ConnectedAt is the first registration, LastSeenAt the last heartbeat
	// that a node has written down (a few seconds behind).
	ConnectedAt time.Time
	LastSeenAt  time.Time
	// LeaseUntil is the end, in database time, of the right of this instance's
	// attempts to be alive. Renewed by any node that hears its heartbeats.
	LeaseUntil time.Time
	// GoneAt is when it left or was declared dead; zero while it lives.
	GoneAt     time.Time
	GoneReason string
	// DrainedAt is since when somebody wants it to take nothing new, and DrainedBy is
	// who; zero: nobody does. It is of the process: the next one is not drained.
	DrainedAt time.Time
	DrainedBy string
}

// LostOf splits instances that have gone into lost ones and others. A lost one said
// nothing of its end, and no process of its name has come since.
func LostOf(gone, living []Instance) (lost, others []Instance) {
	type name struct {
		executor ExecutorID
		name     string
	}
	newest := map[name]InstanceID{}
	for _, list := range [][]Instance{gone, living} {
		for n := range list {
			of := name{list[n].Executor, list[n].Name}
			newest[of] = max(newest[of], list[n].ID)
		}
	}
	for n := range gone {
		i := &gone[n]
		if i.GoneReason == LeaseRanOut && newest[name{i.Executor, i.Name}] == i.ID && !i.Draining {
			lost = append(lost, *i)
		} else {
			others = append(others, *i)
		}
	}
	return lost, others
}

// SilentAfter is how long after its last written heartbeat an instance counts
// as silent: two heartbeats, which come every 3 s and are written within half a
// second, are missing. An instance that may rest for longer has a lease that is
// longer by as much.
const SilentAfter = 7 * time.Second

// Silent reports whether an instance that has not gone is not heard, which is
// told to people; what it runs is left to its lease.
func (i *Instance) Silent(now time.Time) bool {
	rest := max(0, i.LeaseUntil.Sub(i.LastSeenAt)-LeaseTTL)
	return now.After(i.LeaseUntil) || now.After(i.LastSeenAt.Add(SilentAfter+rest))
}

// Handler is one entry of an executor's catalogue: the union of what its
// builds registered, each as the newest build that is present has it.
type Handler struct {
	TenantID     TenantID
	Executor     ExecutorID
	Name         string
	Description  string
	InputSchema  []byte
	OutputSchema []byte
	Idempotent   bool
	// Calls is what its declaration says of runs that belong to no declared job
	// (package calljob), of a job's settings those of how a run runs; nil = nothing.
	// Retry.MaxAttempts 0: the caller decides. Retry.Delay 0: nothing is said.
	Calls       *JobSpec
	FirstSeenAt time.Time
	LastSeenAt  time.Time
}

// Node is one admin process.
type Node struct {
	ID     NodeID // number inside ids, free again after the node is gone
	BootID string
	Name   string
	// ExecutorAddress is what executors dial, host:port.
	ExecutorAddress string
	Version         string
	StartedAt       time.Time
	HeartbeatAt     time.Time
	Sessions        int
	// Zones are the rules of time zones that it plans with.
	Zones ZoneRules
	// Numbers bound the number that it gets; the zero value is all there are.
	Numbers NodeNumbers
}

// NodeNumbers are those from First to Last; zero = 1 and MaxNodeID. Cells have
// different ones, so that the ids that they make are different.
type NodeNumbers struct{ First, Last NodeID }

// ParseNodeNumbers reads "17-32"; empty = all.
func ParseNodeNumbers(text string) (n NodeNumbers, err error) {
	if text == "" {
		return n, nil
	}
	first, last, _ := strings.Cut(text, "-")
	from, err1 := strconv.Atoi(first)
	to, err2 := strconv.Atoi(last)
	if err1 != nil || err2 != nil || from < 1 || to < from || to > MaxNodeID {
		return n, Errorf(CodeInvalid, "node numbers %q: want a range within 1-%d, such as 17-32", text, MaxNodeID)
	}
	return NodeNumbers{NodeID(from), NodeID(to)}, nil
}

// ZoneRules says which rules of time zones a process has (schedule.ZoneRules).
type ZoneRules struct {
	Source, Version string
	// Digest is the same where the rules are.
	Digest string
}

func (r ZoneRules) String() string {
	if r.Version == "" {
		return r.Source + ", rules " + r.Digest
	}
	return r.Version + " (" + r.Source + "), rules " + r.Digest
}

// LogChunk is a run of consecutive log lines of one attempt as stored.
type LogChunk struct {
	TenantID    TenantID
	ExecutionID ExecutionID
	Attempt     int
	FirstLine   int64 // from 1
	Lines       []LogLine
}

// LogLine is one line that a handler wrote.
type LogLine struct {
	Number  int64
	Attempt int
	At      time.Time
	Level   int // slog levels
	Message string
	Attrs   []byte // JSON object or nil
	TraceID string // of the span that the line was written in; empty = none
}

// RefusalUnheard is the code of connections that were closed before their hello
// was complete, because there were too many. All of them are one Refusal, which
// names nobody.
const RefusalUnheard = "unheard"

// Refusal is a process that was turned away, as often as for the same reason.
// Who it is, is what it says of itself: nothing of it is proven.
type Refusal struct {
	Code     string // as it crosses the wire, or "flood", or RefusalUnheard
	Message  string // of the last time
	Remote   string // address; of IPv6 the network of 64 bits; empty = several
	Executor string // the name it gave; empty = none, or several
	Instance string // the name it gave, if any
	Node     string // the name of the node that turned it away last
	Times    int
	// By the clocks of the nodes.
	FirstAt time.Time
	LastAt  time.Time
}
