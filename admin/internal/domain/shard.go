package domain

import (
	"encoding/json"
	"fmt"
	"time"
)

// One fire of a job with sharding is a family (docs/adr/0022): the parent, which
// has the row of the fire time and holds the job's slot, and its parts, which
// are executions of their own: the shards, and a hook before and after them.
//
//	parent  due ─▶ running(before) ─▶ due(ready) ─▶ running(shards) ─▶ running(after) ─▶ ended
//	                 │ before hook ends    ▲ shards are made here        │ last shard ends
//
// The parent runs on no instance: it moves in the transactions that make its
// parts and in those in which the last of them end, always under its lock. What
// such a transaction may have left undone, the sweep finds by the same rule.

// Part is what an execution is in its family. The numbers are stored.
type Part uint8

const (
	PartNone   Part = 0 // stands for itself: a run without parts, or their parent
	PartShard  Part = 1
	PartBefore Part = 2 // the hook that has to succeed before there are shards
	PartAfter  Part = 3 // the hook that gets the shards' results
)

func (r Part) String() string { return [...]string{"run", "shard", "before", "after"}[r&3] }

// Stage is where a parent stands. The numbers are stored.
type Stage uint8

const (
	StageNone   Stage = 0 // it has no parts yet, or is no parent
	StageBefore Stage = 1 // running: its before hook has not ended
	StageReady  Stage = 2 // due: the before hook has succeeded, the shards are to be made
	StageShards Stage = 3 // running: not all shards have ended
	StageAfter  Stage = 4 // running: its after hook has not ended
)

func (s Stage) String() string { return [...]string{"", "before", "ready", "shards", "after"}[s%5] }

// ShardMode says into how many shards a fire is cut.
type ShardMode string

const (
	ShardNone      ShardMode = ""          // the job has no shards
	ShardBroadcast ShardMode = "broadcast" // one on each instance that serves the handler
	ShardFixed     ShardMode = "fixed"     // Sharding.Shards, on any instance
)

// OnGone says what becomes of a broadcast's shard whose instance goes before it
// has run there.
type OnGone string

const (
	GoneMiss OnGone = "miss" // it is missed (failed, when an attempt ran), and so the fire fails
	GoneMove OnGone = "move" // another instance takes it
)

// MaxShards bounds the shards of one fire.
const MaxShards = 1000

// FamilyCheck is how often the sweep looks after a parent with living parts, and
// after the instance of a shard that waits for a retry there.
const FamilyCheck = 10 * time.Second

// Sharding is a job's setting. Zero: one fire is one run.
type Sharding struct {
	Mode   ShardMode
	Shards int // fixed: how many
	OnGone OnGone
	// Before and After name handlers of the same executor; empty = no hook.
	Before, After string
	// Timeout bounds the whole fire from its first part to its end; 0 = none.
	// JobSpec.Timeout bounds each attempt of each part.
	Timeout time.Duration
}

// On reports whether the job's fires have shards.
func (s Sharding) On() bool { return s.Mode != ShardNone }

// ShardPick is one of the shards that a parent makes when it does not make all:
// it repeats those of an earlier fire that did not succeed.
type ShardPick struct {
	Index    int
	Instance InstanceID // broadcast: where it was; it moves when that has gone
}

// For returns the settings by which an execution as this part runs: parts
// hold no slot, and have no parts and no schedule of their own.
func (s *JobSpec) For(r Part) *JobSpec {
	if r == PartNone {
		return s
	}
	part := *s
	part.Blocking, part.Parallelism = BlockParallel, 0
	part.Schedule = ScheduleSpec{Kind: ScheduleNone}
	part.Sharding = Sharding{OnGone: s.Sharding.OnGone}
	switch r {
	case PartBefore:
		part.Handler = s.Sharding.Before
	case PartAfter:
		part.Handler = s.Sharding.After
	default:
		if part.Routing.Pinned() || part.Routing == RouteConsistentHash {
			part.Routing, part.RoutingKey = RouteRoundRobin, "" // they are there to be spread
		}
	}
	return &part
}

// WaitsForRoom lets a waiting part of a family have patience anew: the instances
// are there, and may be full of its own family. Only a wait for an instance that
// is not there ends with Missed.
func (e *Execution) WaitsForRoom(now time.Time, p Policy) {
	if e.IsPart() && !e.ExpireAt.IsZero() {
		e.ExpireAt = p.waitEnd(now)
	}
}

// IsPart reports whether it belongs to a parent.
func (e *Execution) IsPart() bool { return e.Parent != 0 }

// PartKeys returns the bounds (from, below) of the occurrence keys of a parent's
// parts. With the job and the fire time they are a range of the unique index.
func PartKeys(parent ExecutionID) (from, below string) {
	return "part:" + parent.String() + ":", "part:" + parent.String() + ";"
}

func partKey(parent ExecutionID, r Part, index int) string {
	from, _ := PartKeys(parent)
	return fmt.Sprintf("%s%d:%05d", from, r, index)
}

// NextPart is the role of the parts that a due parent needs next.
func (e *Execution) NextPart(s Sharding) Part {
	if s.Before != "" && e.Stage == StageNone {
		return PartBefore
	}
	return PartShard
}

// Spread moves a due parent to running, and returns its next parts: the before
// hook, or the shards. For a broadcast, instances are those that serve the
// handler now, at least one; those that come later are not in this fire.
func (e *Execution) Spread(now time.Time, spec *JobSpec, instances []InstanceID, newID func() (ExecutionID, error)) ([]Execution, error) {
	if e.State != Due || e.IsPart() || e.OnlyPartsMove() {
		return nil, e.illegal("spread it")
	}
	if now.Before(e.NotBefore) {
		return nil, Errorf(CodeIllegalMove, "execution %s is not due before %s", e.ID, e.NotBefore.UTC().Format(time.RFC3339Nano))
	}
	parts := []Execution{{Part: PartBefore}}
	stage := StageBefore
	if e.NextPart(spec.Sharding) == PartShard {
		stage, parts = StageShards, e.shards(spec.Sharding, instances)
		if len(parts) == 0 {
			return nil, Errorf(CodeIllegalMove, "execution %s: there is no instance to spread it over", e.ID)
		}
	}
	for i := range parts {
		if err := e.bear(now, &parts[i], spec, newID); err != nil {
			return nil, err
		}
	}
	e.State, e.Reason, e.Message = Running, "", ""
	e.Fence++
	e.Stage, e.Instance = stage, 0
	if e.StartedAt.IsZero() {
		e.StartedAt = now
		if spec.Sharding.Timeout > 0 {
			e.Deadline = now.Add(spec.Sharding.Timeout)
		}
	}
	e.WakeAt = e.nextCheck(now.Add(FamilyCheck))
	return parts, nil
}

// shards lists the shards to make, and sets how many there are of them in all.
func (e *Execution) shards(s Sharding, instances []InstanceID) (parts []Execution) {
	if len(e.Picks) > 0 { // e.Shards is the earlier fire's
		for _, p := range e.Picks {
			part := Execution{Part: PartShard, Shard: p.Index, Shards: e.Shards}
			for _, i := range instances {
				if i == p.Instance {
					part.Bound = i
				}
			}
			parts = append(parts, part)
		}
		return parts
	}
	e.Shards = s.Shards
	if s.Mode == ShardBroadcast {
		e.Shards = min(len(instances), MaxShards)
	}
	for i := range e.Shards {
		part := Execution{Part: PartShard, Shard: i, Shards: e.Shards}
		if s.Mode == ShardBroadcast {
			part.Bound = instances[i]
		}
		parts = append(parts, part)
	}
	return parts
}

// bear fills in what a part has from its parent.
func (e *Execution) bear(now time.Time, part *Execution, spec *JobSpec, newID func() (ExecutionID, error)) error {
	id, err := newID()
	if err != nil {
		return err
	}
	part.ID, part.Parent = id, e.ID
	part.TenantID, part.JobID, part.Revision, part.Executor, part.Partition = e.TenantID, e.JobID, e.Revision, e.Executor, e.Partition
	part.Cause, part.Priority, part.FireAt = e.Cause, e.Priority, e.FireAt
	part.OccurrenceKey = partKey(e.ID, part.Part, part.Shard)
	part.State, part.Note, part.RequestedBy, part.Trace = Due, e.Note, e.RequestedBy, e.Trace
	if part.Input == nil {
		part.Input = e.Input
	}
	part.MaxAttempts, part.NotBefore, part.PlannedAt = e.MaxAttempts, now, now
	part.WakeAt = now.Add(PickupGrace)
	part.ExpireAt = PolicyOf(spec, false).waitEnd(now)
	part.LogLines = -1
	return nil
}

// MaxShardResults bounds what an after hook gets, in bytes. Each shard's state
// is told in any case; outputs and errors go in as long as there is room.
const MaxShardResults = 64 << 10

// ShardResults is the input of an after hook. Its form is part of the API.
type ShardResults struct {
	RunID     string        `json:"runId"`
	FireAt    time.Time     `json:"fireAt"`
	Total     int           `json:"total"`
	Succeeded int           `json:"succeeded"`
	Shards    []ShardResult `json:"shards"`
	// Omitted counts the shards whose output or error had no room.
	Omitted int `json:"omitted,omitempty"`

	room int
}

// ShardResult is what became of one shard.
type ShardResult struct {
	Index  int             `json:"index"`
	State  string          `json:"state"`
	Output json.RawMessage `json:"output,omitempty"`
	Error  string          `json:"error,omitempty"`
}

// NewShardResults begins the results of a parent.
func NewShardResults(parent *Execution, f Family) *ShardResults {
	_, succeeded := f.count()
	return &ShardResults{
		RunID: parent.ID.String(), FireAt: parent.FireAt.UTC(), Total: parent.Shards, Succeeded: succeeded,
		Shards: []ShardResult{}, room: MaxShardResults - 64*parent.Shards,
	}
}

// Add tells of one shard; they come in order.
func (s *ShardResults) Add(e *Execution) {
	r := ShardResult{Index: e.Shard, State: e.State.String()}
	output := json.RawMessage(e.Output)
	if len(output) > 0 && !json.Valid(output) {
		output, _ = json.Marshal(string(e.Output)) // of another language's executor
	}
	message := e.Error
	if message == "" && e.State != Succeeded {
		message = e.Message
	}
	size := len(output) + 2*len(message)
	switch {
	case size > s.room:
		s.Omitted++
	default:
		s.room -= size
		r.Output, r.Error = output, message
	}
	s.Shards = append(s.Shards, r)
}

// JSON is the input as the hook gets it.
func (s *ShardResults) JSON() ([]byte, error) { return json.Marshal(s) }
