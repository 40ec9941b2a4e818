package verify

import "time"

// Time is an instant in microseconds since 1970 UTC. 0 stands for "none" or
// "not known". Durations in a history are in microseconds too.
type Time int64

// At turns an instant into a Time; the zero time becomes 0.
func At(t time.Time) Time {
	if t.IsZero() {
		return 0
	}
	return Time(t.UnixMicro())
}

// Span turns a duration into microseconds.
func Span(d time.Duration) Time { return Time(d.Microseconds()) }

// Std turns a Time back; 0 becomes the zero time.
func (t Time) Std() time.Time {
	if t == 0 {
		return time.Time{}
	}
	return time.UnixMicro(int64(t)).UTC()
}

// Duration reads a Time as a duration.
func (t Time) Duration() time.Duration { return time.Duration(t) * time.Microsecond }

// Record is one line of a history: a Plan, Call, Run, Row, Fault or Node.
type Record interface{ kind() string }

// Plan says what the history was meant to hold. A history has one Plan; the
// checker answers "not enough evidence" when less was seen than planned.
type Plan struct {
	// From and To bound the fire times that are judged, both included. The
	// history has to go on after To until what was due has ended.
	From Time `json:"from"`
	To   Time `json:"to"`
	// MinRuns, MinFaults and MinNodes are the evidence that has to be there:
	// witness runs, faults with a start and an end, nodes by name.
	MinRuns   int `json:"minRuns"`
	MinFaults int `json:"minFaults,omitempty"`
	MinNodes  int `json:"minNodes,omitempty"`
	// LateAfter is how long after its due time a start counts as late;
	// 0 = 1 s. Lateness is reported, and is a violation only beyond MaxLate.
	LateAfter Time `json:"lateAfter,omitempty"`
	// MaxLate makes a start that is later than this a violation when no fault
	// explains it (a fault explains what was due from its start until Settle
	// after its end); 0 = lateness is never a violation.
	MaxLate Time `json:"maxLate,omitempty"`
	// Settle is how long after a fault's end its effects may last; 0 = 30 s.
	Settle Time `json:"settle,omitempty"`
	// CallLimit is how long after its invoke a call without an answer may still
	// take effect; 0 = 60 s.
	CallLimit Time `json:"callLimit,omitempty"`
	// Name is shown as the report's title.
	Name string `json:"name,omitempty"`
}

// Op is what a Call asked for.
type Op string

// The operations.
const (
	OpCreate  Op = "create"  // carries Spec; revision 1
	OpEdit    Op = "edit"    // carries Spec; the next revision
	OpPause   Op = "pause"   //
	OpResume  Op = "resume"  //
	OpDelete  Op = "delete"  //
	OpTrigger Op = "trigger" // run now; Key is the run's key when the answer told it
)

// Call is one change that somebody asked of the admin.
type Call struct {
	Op     Op     `json:"op"`
	Tenant string `json:"tenant"`
	Job    string `json:"job"`
	// Revision is the job's revision after OpCreate and OpEdit; 0 when the
	// answer did not come.
	Revision int64 `json:"revision,omitempty"`
	// Invoke is the instant just before the request left, Ack the one just
	// after its answer came. Ack is 0 when none came: it may have happened.
	Invoke Time `json:"invoke"`
	Ack    Time `json:"ack,omitempty"`
	// Refused: the answer was an error; nothing changed.
	Refused bool `json:"refused,omitempty"`
	// Spec belongs to OpCreate and OpEdit.
	Spec *Spec `json:"spec,omitempty"`
	// Paused: OpCreate made the job paused.
	Paused bool `json:"paused,omitempty"`
	// Key is the key of the run that OpTrigger made, when known; Request is
	// the idempotency key that was sent.
	Key     string `json:"key,omitempty"`
	Request string `json:"request,omitempty"`
}

// Spec is what a revision says about when and how the job runs. Durations and
// instants are microseconds, as everywhere.
type Spec struct {
	// Kind is none, cron, fixed_rate, fixed_delay, once, instants or daily_window.
	Kind       string `json:"kind"`
	Expr       string `json:"expr,omitempty"`
	Dialect    string `json:"dialect,omitempty"` // standard, seconds, quartz; "" or auto: by shape
	Every      Time   `json:"every,omitempty"`
	Anchor     Time   `json:"anchor,omitempty"`
	At         Time   `json:"at,omitempty"`
	Instants   []Time `json:"instants,omitempty"`
	WindowFrom string `json:"windowFrom,omitempty"`
	WindowTo   string `json:"windowTo,omitempty"`
	Zone       string `json:"zone,omitempty"` // "" = UTC
	StartAt    Time   `json:"startAt,omitempty"`
	EndAt      Time   `json:"endAt,omitempty"`
	Gap        string `json:"gap,omitempty"`     // run_at_gap_end (default), skip
	Overlap    string `json:"overlap,omitempty"` // once (default), both
	JitterMax  Time   `json:"jitterMax,omitempty"`
	// Calendars exclude fire times, which then get a row and no run; Days says
	// by which of their days: not_holidays (default), workdays, all.
	Calendars []Calendar `json:"calendars,omitempty"`
	Days      string     `json:"days,omitempty"`

	// Misfire is skip (default), once_now or all; Threshold is how late a fire
	// time still counts as on time, 0 = 5 s.
	Misfire   string `json:"misfire,omitempty"`
	Threshold Time   `json:"threshold,omitempty"`
	// Blocking is serial (default), discard_later, cover_early or parallel;
	// Parallelism bounds the last one, 0 = no limit.
	Blocking    string `json:"blocking,omitempty"`
	Parallelism int    `json:"parallelism,omitempty"`
	// MaxAttempts counts the first one; 0 = 1.
	MaxAttempts int `json:"maxAttempts,omitempty"`
	// OnLost is fail, retry, or auto (default), which is retry for a handler
	// that is registered Idempotent and fail for others.
	OnLost     string `json:"onLost,omitempty"`
	Idempotent bool   `json:"idempotent,omitempty"`
	// Wait is how long a due run waits for an instance before it is missed;
	// 0 = 5 min.
	Wait Time `json:"wait,omitempty"`
	// Shards is the number of targets of one fire time, where it is fixed; 0 = 1.
	// What a fire's row says of it counts more.
	Shards int `json:"shards,omitempty"`
}

// Calendar is one version of a calendar, as a revision is planned with.
type Calendar struct {
	Zone       string         `json:"zone,omitempty"` // "" = that of the schedule
	Weekend    []time.Weekday `json:"weekend"`        // null = Saturday and Sunday; 0 is Sunday
	Holidays   []string       `json:"holidays,omitempty"`
	MakeUpDays []string       `json:"makeUpDays,omitempty"`
	Blackouts  []Blackout     `json:"blackouts,omitempty"`
}

// Blackout is From ≤ fire < To.
type Blackout struct {
	From Time `json:"from"`
	To   Time `json:"to"`
}

// Run is what a handler wrote down about itself: a witness. It writes one line
// before it does anything else (without End), and a second one, equal but for
// End, when it is about to return. One without an End was killed, or runs yet.
type Run struct {
	Job    string `json:"job"`
	Key    string `json:"key"` // the execution's id
	Fence  int64  `json:"fence"`
	Boot   string `json:"boot"` // one value per life of the executor's process
	Tenant string `json:"tenant"`
	// Shard is the index of a shard, else 0.
	Shard   int  `json:"shard"`
	Start   Time `json:"start"`
	End     Time `json:"end,omitempty"`
	Attempt int  `json:"attempt"` // from 1
	FireAt  Time `json:"fireAt"`  // the nominal fire time, as the task told it
	// Node names the machine or process whose clock wrote Start and End;
	// Node records correct it by its offset. "" = the reference clock.
	Node string `json:"node,omitempty"`
	// Cancelled: the handler ended because its context was cancelled. Failed:
	// it returned an error. These and the next two belong to the second line.
	Cancelled bool `json:"cancelled,omitempty"`
	Failed    bool `json:"failed,omitempty"`
	// Stopped: it was cancelled because its process stopped or had lost its lease.
	// Where a lost attempt may be repeated, this one does not count.
	Stopped bool `json:"stopped,omitempty"`
	// Snoozed: it asked for the run again later. It does not count.
	Snoozed bool `json:"snoozed,omitempty"`
}

// Row is one execution as the admin's table has it at the end of the history.
// States, causes and reasons are the names of the API.
type Row struct {
	Key      string `json:"key"`
	Tenant   string `json:"tenant"`
	Job      string `json:"job"`
	Revision int64  `json:"revision"`
	Cause    string `json:"cause"`
	FireAt   Time   `json:"fireAt"`
	// Request is the occurrence key of runs that were asked for.
	Request string `json:"request,omitempty"`
	State   string `json:"state"`
	Reason  string `json:"reason,omitempty"`
	Fence   int64  `json:"fence,omitempty"`
	Attempt int    `json:"attempt,omitempty"`
	// The stamps; StartedAt is the executor's clock, the others the database's.
	PlannedAt  Time `json:"plannedAt,omitempty"`
	OfferedAt  Time `json:"offeredAt,omitempty"`
	GrantedAt  Time `json:"grantedAt,omitempty"`
	StartedAt  Time `json:"startedAt,omitempty"`
	FinishedAt Time `json:"finishedAt,omitempty"`
	// Node names the admin node that granted it last.
	Node string `json:"node,omitempty"`
	// Parent is the key of the row that it is a part of: Part is shard, before
	// or after. Shard is its index of Shards; a parent has Shards too, once it
	// was cut into them. Picked: it repeats some of an earlier run's only.
	Parent string `json:"parent,omitempty"`
	Part   string `json:"part,omitempty"`
	Shard  int    `json:"shard,omitempty"`
	Shards int    `json:"shards,omitempty"`
	Picked bool   `json:"picked,omitempty"`
}

// Fault is one injected fault. It counts as seen when it has both times.
type Fault struct {
	// ID is the matrix's number (F01), Kind what was done: FaultKill, or any
	// other word.
	ID   string `json:"id"`
	Kind string `json:"kind"`
	// Target names what was hit: a node, a database, a link. For a killed
	// executor it is the Node or the Boot of its runs.
	Target string `json:"target,omitempty"`
	Start  Time   `json:"start"`
	End    Time   `json:"end,omitempty"`
	Note   string `json:"note,omitempty"`
}

// FaultKill is the Kind of a fault that ends a process: a handler that ended
// just then may have lost its result without anybody's mistake.
const FaultKill = "sigkill"

// Node tells that a node was there and how far its clock was off. Write it
// only after the node answered.
type Node struct {
	Node string `json:"node"`
	Role string `json:"role"` // admin, executor, database
	// At is the reference clock's time of the measurement; Offset is the
	// node's clock minus the reference, Error its bound (both ways).
	At     Time `json:"at"`
	Offset Time `json:"offset,omitempty"`
	Error  Time `json:"error,omitempty"`
}

func (*Plan) kind() string  { return "plan" }
func (*Call) kind() string  { return "call" }
func (*Run) kind() string   { return "run" }
func (*Row) kind() string   { return "row" }
func (*Fault) kind() string { return "fault" }
func (*Node) kind() string  { return "node" }

// History is all that was read. The order within a slice is that of reading.
type History struct {
	Plan   *Plan
	Calls  []Call
	Runs   []Run // start and end lines are joined
	Rows   []Row
	Faults []Fault
	Nodes  []Node
	// Torn counts files whose last line has no end: their process was killed
	// while it wrote.
	Torn int
}
