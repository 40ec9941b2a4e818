package domain

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
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
	part.PartOfSlot = s.SlotLimit() > 0
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

// ExtendWait lets a waiting part of a family have patience anew: the instances
// are there, and may be full of its own family. Only a wait for an instance that
// is not there ends with Missed.
func (p Policy) ExtendWait(e *Execution, now time.Time) {
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

// Parent is an execution with parts. Its moves make the parts and follow them.
type Parent struct{ e *Execution }

// AsParent returns the execution with the moves of a parent.
func (e *Execution) AsParent() Parent { return Parent{e} }

// NextPart is the role of the parts that a due parent needs next.
func (p Parent) NextPart(s Sharding) Part {
	if s.Before != "" && p.e.Stage == StageNone {
		return PartBefore
	}
	return PartShard
}

// Spread moves a due parent to running, and returns its next parts: the before
// hook, or the shards. For a broadcast, instances are those that serve the
// handler now, at least one; those that come later are not in this fire.
func (p Parent) Spread(now time.Time, spec *JobSpec, instances []InstanceID, newID func() (ExecutionID, error)) ([]Execution, error) {
	if p.e.State != Due || p.e.IsPart() || p.e.OnlyPartsMove() {
		return nil, p.e.illegal("spread it")
	}
	if now.Before(p.e.NotBefore) {
		return nil, Errorf(CodeIllegalMove, "run %s is not due before %s", p.e.ID, p.e.NotBefore.UTC().Format(time.RFC3339Nano))
	}
	parts := []Execution{{Part: PartBefore}}
	stage := StageBefore
	if p.NextPart(spec.Sharding) == PartShard {
		stage, parts = StageShards, p.shards(spec.Sharding, instances)
		if len(parts) == 0 {
			return nil, Errorf(CodeIllegalMove, "run %s: there is no instance to spread it over", p.e.ID)
		}
	}
	for i := range parts {
		if err := p.bear(now, &parts[i], spec, newID); err != nil {
			return nil, err
		}
	}
	p.e.State, p.e.Reason, p.e.Message = Running, "", ""
	p.e.Fence++
	p.e.Stage, p.e.Instance = stage, 0
	if p.e.StartedAt.IsZero() {
		p.e.StartedAt = now
		if spec.Sharding.Timeout > 0 {
			p.e.Deadline = now.Add(spec.Sharding.Timeout)
		}
	}
	p.e.WakeAt = p.e.nextCheck(now.Add(FamilyCheck))
	return parts, nil
}

// shards lists the shards to make, and sets how many there are of them in all.
func (p Parent) shards(s Sharding, instances []InstanceID) (parts []Execution) {
	if len(p.e.Picks) > 0 { // e.Shards is the earlier fire's
		for _, pick := range p.e.Picks {
			part := Execution{Part: PartShard, Shard: pick.Index, Shards: p.e.Shards}
			if slices.Contains(instances, pick.Instance) {
				part.Bound = pick.Instance
			}
			parts = append(parts, part)
		}
		return parts
	}
	p.e.Shards = s.Shards
	if s.Mode == ShardBroadcast {
		p.e.Shards = min(len(instances), MaxShards)
	}
	for i := range p.e.Shards {
		part := Execution{Part: PartShard, Shard: i, Shards: p.e.Shards}
		if s.Mode == ShardBroadcast {
			part.Bound = instances[i]
		}
		parts = append(parts, part)
	}
	return parts
}

// bear fills in what a part has from its parent.
func (p Parent) bear(now time.Time, part *Execution, spec *JobSpec, newID func() (ExecutionID, error)) error {
	id, err := newID()
	if err != nil {
		return err
	}
	part.ID, part.Parent = id, p.e.ID
	part.TenantID, part.JobID, part.Revision, part.Executor, part.Partition = p.e.TenantID, p.e.JobID, p.e.Revision, p.e.Executor, p.e.Partition
	part.Cause, part.Priority, part.FireAt = p.e.Cause, p.e.Priority, p.e.FireAt
	part.OccurrenceKey = partKey(p.e.ID, part.Part, part.Shard)
	part.State, part.Note, part.RequestedBy, part.Trace = Due, p.e.Note, p.e.RequestedBy, p.e.Trace
	if part.Input == nil {
		part.Input = p.e.Input
	}
	part.MaxAttempts, part.NotBefore, part.PlannedAt = p.e.MaxAttempts, now, now
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
	output := json.RawMessage(bytes.ToValidUTF8(e.Output, []byte("\uFFFD")))
	if len(output) > 0 && !json.Valid(output) {
		output, _ = json.Marshal(string(output)) // of another language's executor
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

// OnlyPartsMove reports whether the execution is a running parent: no instance
// has it, and its parts say what becomes of it.
func (e *Execution) OnlyPartsMove() bool {
	return e.Stage == StageBefore || e.Stage == StageShards || e.Stage == StageAfter
}

// Family is what a parent's parts say, as they are in the database.
type Family struct {
	Living        int           // parts that have not ended, of all kinds
	Lingering     int           // parts that have ended while their handler still runs
	Shards        map[State]int // ended shards
	Before, After State         // 0: there is none
}

// count returns how many shards there are, and how many of them succeeded.
func (f Family) count() (all, succeeded int) {
	for s, n := range f.Shards {
		all += n
		if s == Succeeded {
			succeeded += n
		}
	}
	return all, succeeded
}

// Results says how the shards ended, for people: "3 of 5 shards succeeded, 1
// failed, 1 lost".
func (f Family) Results() string {
	all, succeeded := f.count()
	var b strings.Builder
	fmt.Fprintf(&b, "%d of %d shards succeeded", succeeded, all)
	for _, s := range States {
		if n := f.Shards[s]; n > 0 && s != Succeeded {
			fmt.Fprintf(&b, ", %d %s", n, s)
		}
	}
	return b.String()
}

// Step is what has to follow when a parent's parts have ended.
type Step uint8

const (
	StepNone     Step = iota
	StepReady         // the shards are to be made: dispatch it
	StepAfter         // the after hook is to be made in this transaction: BearAfter
	StepEnded         // it has ended
	StepReturned      // it had ended, and none of its handlers runs any more
)

// Advance moves a running parent on when none of its parts lives. A parent that
// ends while a part lingers does so, too: it keeps the slot.
func (p Parent) Advance(now time.Time, f Family, spec *JobSpec) (Step, Effects) {
	switch {
	case !p.e.OnlyPartsMove():
		return StepNone, Effects{}
	case p.e.Lingers && f.Lingering == 0:
		return StepReturned, p.e.returned(now)
	case p.e.State.Terminal():
		if p.e.Lingers {
			p.e.WakeAt = now.Add(FamilyCheck)
		}
		return StepNone, Effects{}
	case f.Living > 0:
		return StepNone, Effects{}
	}
	if step := p.nextStage(now, f, spec); step != StepEnded {
		return step, Effects{}
	}
	state, reason, message := p.verdict(f)
	fx := p.e.end(now, state, reason, message)
	if f.Lingering > 0 {
		fx = p.e.linger(now, fx)
		p.e.WakeAt = now.Add(FamilyCheck)
	}
	return StepEnded, fx
}

// nextStage moves a parent without living parts to its next stage, if there is
// one: StepEnded if not. What has no parts, which cannot be, gets them again.
func (p Parent) nextStage(now time.Time, f Family, spec *JobSpec) Step {
	all, _ := f.count()
	switch {
	case p.e.State == Cancelling:
		return StepEnded
	case p.e.Stage == StageBefore && f.Before == 0:
		p.dueAgain(now, StageNone, spec)
		return StepReady
	case p.e.Stage == StageBefore && f.Before == Succeeded, p.e.Stage == StageShards && all == 0:
		p.dueAgain(now, StageReady, spec)
		return StepReady
	case p.e.Stage == StageShards && spec.Sharding.After != "", p.e.Stage == StageAfter && f.After == 0:
		p.e.Stage = StageAfter
		p.e.WakeAt = p.e.nextCheck(now.Add(FamilyCheck))
		return StepAfter
	}
	return StepEnded
}

func (p Parent) dueAgain(now time.Time, stage Stage, spec *JobSpec) {
	p.e.State, p.e.Stage, p.e.NotBefore = Due, stage, now
	p.e.WakeAt, p.e.ExpireAt = now.Add(PickupGrace), PolicyOf(spec, false).waitEnd(now)
}

// verdict says how a parent ends whose parts have.
func (p Parent) verdict(f Family) (State, Reason, string) {
	all, succeeded := f.count()
	switch {
	case p.e.State == Cancelling && p.e.Reason == ReasonTimeout:
		return TimedOut, ReasonTimeout, p.e.Message
	case p.e.State == Cancelling:
		return Cancelled, p.e.Reason, p.e.Message
	case p.e.Stage == StageBefore:
		return Failed, ReasonBeforeHook, "the hook before the shards ended as " + f.Before.String()
	case p.e.Stage == StageAfter && f.After != Succeeded:
		return Failed, ReasonAfterHook, f.Results() + "; the hook after them ended as " + f.After.String()
	case succeeded < all:
		return Failed, ReasonShards, f.Results()
	}
	return Succeeded, "", f.Results()
}

// BearAfter returns the after hook of a parent, with the shards' results as its input.
func (p Parent) BearAfter(now time.Time, spec *JobSpec, results []byte, newID func() (ExecutionID, error)) (Execution, error) {
	part := Execution{Part: PartAfter, Input: results}
	err := p.bear(now, &part, spec, newID)
	return part, err
}

// family looks after a running parent: past its deadline its parts are to
// be cancelled. The caller lets it Advance by what its parts say.
func (s sweep) family() SweepAction {
	if s.e.State == Running && !s.e.Deadline.IsZero() && !s.now.Before(s.e.Deadline) {
		s.e.State, s.e.Reason, s.e.Message = Cancelling, ReasonTimeout, "the shards had not ended when the time for all of them was over"
		s.e.Delays.addStop(s.now, s.e.Reason, s.e.Message)
		s.e.Deadline = time.Time{}
	}
	if s.e.State == Cancelling {
		s.e.WakeAt = s.now.Add(CancelResend)
		return SweepCancel
	}
	s.e.WakeAt = s.e.nextCheck(s.now.Add(FamilyCheck))
	return SweepNothing
}

// goneMessage is the message of ReasonInstanceGone.
const goneMessage = "the instance that the shard was for has gone"

// instanceGone ends or frees a waiting part of a broadcast whose instance is
// dead: its lease ended at leaseUntil. Retries go to the same instance, too.
func (s sweep) instanceGone() (ended bool, fx Effects, err error) {
	if s.e.Bound == 0 || !s.now.After(s.leaseUntil.Add(LeaseMargin)) {
		return false, Effects{}, nil
	}
	if s.p.MoveGone {
		s.e.Delays.add(s.now, ReasonInstanceGone, "another instance takes the shard", s.e.Bound)
		s.e.Bound = 0
		return false, Effects{}, nil
	}
	fx, err = s.e.Miss(s.now, ReasonInstanceGone, goneMessage)
	return true, fx, err
}

// retryOnlyThere reports whether a retry can run on the instance of the attempt
// before and on no other.
func (p Policy) retryOnlyThere(e *Execution) bool { return e.Bound != 0 && !p.MoveGone }

// retryCheck is when the sweep looks at what waits for its retry: when nobody
// has taken it, and before that where it is given up with its instance.
func (p Policy) retryCheck(e *Execution, now time.Time) time.Time {
	if check := now.Add(FamilyCheck); p.retryOnlyThere(e) && check.Before(e.NotBefore) {
		return check
	}
	return e.NotBefore.Add(PickupGrace)
}

// Add counts a part.
func (f *Family) Add(e *Execution) {
	if e.Lingers {
		f.Lingering++
	}
	switch {
	case !e.State.Terminal():
		f.Living++
	case e.Part == PartShard:
		f.Shards[e.State]++
	}
	switch e.Part {
	case PartBefore:
		f.Before = e.State
	case PartAfter:
		f.After = e.State
	}
}
