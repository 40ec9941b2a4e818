package record

import (
	"database/sql"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
)

// Occurrence is the unique key of executions.
type Occurrence struct {
	Job, FireAt int64
	Key         string
}

// Occurrence is what no other run has.
func (r *ExecutionRow) Occurrence() Occurrence { return Occurrence{r.JobID, r.FireAt, r.OccurrenceKey} }

// ParkedFrom is from when on, in milliseconds, nothing is to be looked at at all: a move of
// a tenant between two databases puts off by that what clocks wake, by 35,000 years.
const ParkedFrom = 1 << 50

// Parked reports whether the run waits, and its tenant is on its way to another database.
// It must not change any more, because it is copied and compared with its copy.
func (r *ExecutionRow) Parked() bool {
	state := domain.State(r.State)
	return r.wakeAt >= ParkedFrom && (state == domain.Due || state == domain.RetryWait) && r.lingers == 0
}

// RequestKeyRow is a row of request_keys.
type RequestKeyRow struct {
	TenantID    int64  `gorm:"column:tenant_id;primaryKey"`
	JobID       int64  `gorm:"column:job_id;primaryKey"`
	RequestKey  string `gorm:"column:request_key;primaryKey"`
	ExecutionID int64  `gorm:"column:execution_id"`
}

func (RequestKeyRow) TableName() string { return "request_keys" }

// FillFromJob checks that the job lives and copies what the caller left out.
func (c *SpecCache) FillFromJob(t *db.Tx, e *domain.Execution) (now time.Time, err error) {
	var state, part, executor, revision, at int64
	row := t.SQL.QueryRowContext(t.Ctx, "SELECT j.state, tr.part, tr.executor_id, tr.revision, "+t.Dialect.Clock()+
		" FROM triggers AS tr JOIN jobs AS j ON j.id = tr.job_id WHERE tr.job_id = ? AND tr.tenant_id = ?"+t.Dialect.ForShare(),
		int64(e.JobID), int64(e.TenantID))
	if err := row.Scan(&state, &part, &executor, &revision, &at); err == sql.ErrNoRows || err == nil && domain.JobState(state) == domain.JobDeleted {
		return now, db.NotFound("job", e.JobID)
	} else if err != nil {
		return now, err
	}
	e.Partition = int(part)
	if e.Executor == 0 {
		e.Executor = domain.ExecutorID(executor)
	}
	if e.Revision == 0 {
		e.Revision = revision
	}
	specs, err := c.Load(t.Ctx, t.Conn, []RevisionKey{{e.JobID, e.Revision}})
	if err != nil {
		return now, err
	}
	if len(specs) == 0 {
		return now, domain.Errorf(domain.CodeNotFound, "job %s has no revision %d", e.JobID, e.Revision)
	}
	e.Priority = specs[RevisionKey{e.JobID, e.Revision}].Spec.Priority
	return db.Instant(at), nil
}

// FindExecution reads a run of a tenant.
func FindExecution(t *db.Tx, tenant domain.TenantID, id domain.ExecutionID) (*domain.Execution, error) {
	rows, err := ExecutionTable.SelectRows(t, "SELECT "+ExecutionColumns+" FROM executions WHERE id = ? AND tenant_id = ?", int64(id), int64(tenant))
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	e := rows[0].Execution()
	return &e, nil
}

// Sizes of text columns, in characters (sql/mysql/00005_executions.sql).
const (
	MessageSize   = 1024
	reasonSize    = 32
	NameSize      = 190
	ErrorKindSize = 64
	traceSize     = 64
)

// ExecutionRow is a row of executions.
type ExecutionRow struct {
	ID, TenantID, JobID, Revision, ExecutorID, Part int64
	Cause                                           string
	FireAt                                          int64
	OccurrenceKey                                   string
	State                                           int64
	reason, message, input, note, requestedBy       string
	Fence, Attempt, maxAttempts                     int64
	notBefore, wakeAt, expireAt                     int64
	nodeID, InstanceID, idempotent, holdsSlot       int64
	deadline                                        int64
	PlannedAt, OfferedAt, grantedAt                 int64
	startedAt, finishedAt                           int64
	output, errorKind, error, stack                 string
	logLines, priority                              int64
	delays                                          string
	lingers, returnedAt                             int64
	ParentID, role, shardIndex, shardTotal          int64
	boundID, stage                                  int64
	picks                                           string
	traceparent                                     string
	passed, lostAttempts, timeout, took             int64
	// Version counts the writes; phase is derived from the state (PhaseOf).
	Version, phase int64
}

// versionColumn makes an update find a row only as it was when it was read.
var versionColumn = db.IntColumn("version", func(r *ExecutionRow) *int64 { return &r.Version })

var ExecutionTable = db.Table[ExecutionRow]{
	Name: "executions", Keys: 2, Required: 10, Version: &versionColumn,
	Columns: func() []db.Column[ExecutionRow] {
		type r = ExecutionRow
		wake := db.IntColumn("wake_at", func(r *r) *int64 { return &r.wakeAt })
		wake.Nullable = true
		lines := db.IntColumn("log_lines", func(r *r) *int64 { return &r.logLines })
		lines.Def = -1
		return []db.Column[r]{
			db.IntColumn("id", func(r *r) *int64 { return &r.ID }),
			db.IntColumn("tenant_id", func(r *r) *int64 { return &r.TenantID }),
			db.IntColumn("job_id", func(r *r) *int64 { return &r.JobID }),
			db.IntColumn("revision", func(r *r) *int64 { return &r.Revision }),
			db.IntColumn("executor_id", func(r *r) *int64 { return &r.ExecutorID }),
			db.IntColumn("part", func(r *r) *int64 { return &r.Part }),
			db.TextColumn("cause", 16, func(r *r) *string { return &r.Cause }),
			db.IntColumn("fire_at", func(r *r) *int64 { return &r.FireAt }),
			db.TextColumn("occurrence_key", NameSize, func(r *r) *string { return &r.OccurrenceKey }),
			db.IntColumn("state", func(r *r) *int64 { return &r.State }),
			db.TextColumn("reason", reasonSize, func(r *r) *string { return &r.reason }),
			db.TextColumn("message", MessageSize, func(r *r) *string { return &r.message }),
			db.LongColumn("input", db.KindBytes, func(r *r) *string { return &r.input }),
			db.TextColumn("note", MessageSize, func(r *r) *string { return &r.note }),
			db.TextColumn("requested_by", NameSize, func(r *r) *string { return &r.requestedBy }),
			db.IntColumn("fence", func(r *r) *int64 { return &r.Fence }),
			db.IntColumn("attempt", func(r *r) *int64 { return &r.Attempt }),
			db.IntColumn("max_attempts", func(r *r) *int64 { return &r.maxAttempts }),
			db.IntColumn("not_before", func(r *r) *int64 { return &r.notBefore }),
			wake,
			db.IntColumn("expire_at", func(r *r) *int64 { return &r.expireAt }),
			db.IntColumn("node_id", func(r *r) *int64 { return &r.nodeID }),
			db.IntColumn("instance_id", func(r *r) *int64 { return &r.InstanceID }),
			db.IntColumn("idempotent", func(r *r) *int64 { return &r.idempotent }),
			db.IntColumn("holds_slot", func(r *r) *int64 { return &r.holdsSlot }),
			db.IntColumn("deadline", func(r *r) *int64 { return &r.deadline }),
			db.IntColumn("planned_at", func(r *r) *int64 { return &r.PlannedAt }),
			db.IntColumn("offered_at", func(r *r) *int64 { return &r.OfferedAt }),
			db.IntColumn("granted_at", func(r *r) *int64 { return &r.grantedAt }),
			db.IntColumn("started_at", func(r *r) *int64 { return &r.startedAt }),
			db.IntColumn("finished_at", func(r *r) *int64 { return &r.finishedAt }),
			db.LongColumn("output", db.KindBytes, func(r *r) *string { return &r.output }),
			db.TextColumn("error_kind", ErrorKindSize, func(r *r) *string { return &r.errorKind }),
			db.LongColumn("error", db.KindLongText, func(r *r) *string { return &r.error }),
			db.LongColumn("stack", db.KindLongText, func(r *r) *string { return &r.stack }),
			lines,
			versionColumn,
			db.IntColumn("phase", func(r *r) *int64 { return &r.phase }),
			db.IntColumn("priority", func(r *r) *int64 { return &r.priority }),
			db.LongColumn("delays", db.KindLongText, func(r *r) *string { return &r.delays }),
			db.IntColumn("lingers", func(r *r) *int64 { return &r.lingers }),
			db.IntColumn("returned_at", func(r *r) *int64 { return &r.returnedAt }),
			db.IntColumn("parent_id", func(r *r) *int64 { return &r.ParentID }),
			db.IntColumn("role", func(r *r) *int64 { return &r.role }),
			db.IntColumn("shard_index", func(r *r) *int64 { return &r.shardIndex }),
			db.IntColumn("shard_total", func(r *r) *int64 { return &r.shardTotal }),
			db.IntColumn("bound_id", func(r *r) *int64 { return &r.boundID }),
			db.IntColumn("stage", func(r *r) *int64 { return &r.stage }),
			db.LongColumn("picks", db.KindLongText, func(r *r) *string { return &r.picks }),
			db.TextColumn("traceparent", traceSize, func(r *r) *string { return &r.traceparent }),
			db.IntColumn("passed", func(r *r) *int64 { return &r.passed }),
			db.IntColumn("lost_attempts", func(r *r) *int64 { return &r.lostAttempts }),
			db.IntColumn("timeout_ms", func(r *r) *int64 { return &r.timeout }),
			db.IntColumn("took_us", func(r *r) *int64 { return &r.took }),
		}
	}(),
}

// Phases beside the final states, which stand for themselves.
const (
	PhaseAlive = 0
	// PhaseCold is a run that waits far ahead of its time; the sweep that warms
	// it up moves its WakeAt behind its NotBefore.
	PhaseCold = 1
	// PhaseLingering is a run that has ended while its handler still runs.
	PhaseLingering = 2
	// PhaseTimer is added for the runs of timers, which have lists of their own.
	PhaseTimer = 32
	// PhasePart is added for the parts of a parent: lists and counts of runs pass
	// over them.
	PhasePart = 64
)

// PhaseOf is the state as the index for lists has it: runs move through their
// living states without touching it.
func PhaseOf(r *ExecutionRow) int64 {
	switch {
	case r.ParentID != 0:
		return PhasePart + runPhase(r)
	case r.Cause == string(domain.CauseTimer):
		return PhaseTimer + runPhase(r)
	}
	return runPhase(r)
}

func runPhase(r *ExecutionRow) int64 {
	switch {
	case r.lingers != 0:
		return PhaseLingering
	case domain.State(r.State).Terminal():
		return r.State
	case domain.State(r.State) == domain.Due && r.wakeAt < r.notBefore:
		return PhaseCold
	default:
		return PhaseAlive
	}
}

var ExecutionColumns = ExecutionTable.List("")

// ExecutionListColumns are ExecutionColumns without what is large. A list has the first
// 1,024 characters of the error, and no input, output or stack.
var ExecutionListColumns = ExecutionTable.ListBut("", map[string]string{
	"input": "''", "output": "''", "stack": "''", "error": "SUBSTR(COALESCE(error, ''), 1, 1024)",
})

// ToExecutionRow maps to the stored shape: milliseconds, and text that fits.
func ToExecutionRow(e *domain.Execution) *ExecutionRow {
	r := &ExecutionRow{
		ID: int64(e.ID), TenantID: int64(e.TenantID), JobID: int64(e.JobID), Revision: e.Revision,
		ExecutorID: int64(e.Executor), Part: int64(e.Partition), Cause: string(e.Cause),
		FireAt: db.Millis(e.FireAt), OccurrenceKey: e.OccurrenceKey,
		State: int64(e.State), reason: string(e.Reason), message: Clip(e.Message, MessageSize),
		input: string(e.Input), note: Clip(e.Note, MessageSize), requestedBy: Clip(e.RequestedBy, NameSize),
		Fence: e.Fence, Attempt: int64(e.Attempt), maxAttempts: int64(e.MaxAttempts),
		notBefore: db.Millis(e.NotBefore), wakeAt: db.Millis(e.WakeAt), expireAt: db.Millis(e.ExpireAt),
		nodeID: int64(e.Node), InstanceID: int64(e.Instance), idempotent: db.Flag(e.Idempotent), holdsSlot: db.Flag(e.HoldsSlot),
		deadline: db.Millis(e.Deadline), PlannedAt: db.Millis(e.PlannedAt), OfferedAt: db.Millis(e.OfferedAt),
		grantedAt: db.Millis(e.GrantedAt), startedAt: db.Millis(e.StartedAt), finishedAt: db.Millis(e.FinishedAt),
		output: string(e.Output), errorKind: Clip(e.ErrorKind, ErrorKindSize),
		error: Valid(e.Error), stack: Valid(e.Stack), logLines: e.LogLines,
		priority: int64(e.Priority), delays: delaysText(e.Delays),
		lingers: db.Flag(e.Lingers), returnedAt: db.Millis(e.ReturnedAt),
		ParentID: int64(e.Parent), role: int64(e.Part), shardIndex: int64(e.Shard), shardTotal: int64(e.Shards),
		boundID: int64(e.Bound), stage: int64(e.Stage), picks: picksText(e.Picks),
		traceparent: string(e.Trace), passed: int64(e.Passed), lostAttempts: int64(e.LostAttempts), timeout: e.Timeout.Milliseconds(),
		took: e.Took.Microseconds(),
	}
	r.phase = PhaseOf(r)
	return r
}

// TextSize is about how many bytes the texts of the row have.
func (r *ExecutionRow) TextSize() int64 {
	return int64(len(r.message) + len(r.input) + len(r.note) + len(r.output) + len(r.error) + len(r.stack) + len(r.delays) + len(r.picks))
}

// Waits reports whether the run waits for an instance, or for the end of maintenance. Such
// runs have a row in waiting_runs.
func (r *ExecutionRow) Waits() bool {
	e := domain.Execution{State: domain.State(r.State), Reason: domain.Reason(r.reason)}
	return domain.AwaitsStart(&e)
}

// Next returns the row after the move that e made: r itself when nothing
// changed, else with the next version.
func (r *ExecutionRow) Next(e *domain.Execution) *ExecutionRow {
	after := ToExecutionRow(e)
	after.Version = r.Version
	if *after == *r {
		return r
	}
	after.Version++
	return after
}

// Execution is what the row means.
func (r *ExecutionRow) Execution() domain.Execution {
	return domain.Execution{
		ID: domain.ExecutionID(r.ID), TenantID: domain.TenantID(r.TenantID), JobID: domain.JobID(r.JobID), Revision: r.Revision,
		Executor: domain.ExecutorID(r.ExecutorID), Partition: int(r.Part), Cause: domain.Cause(r.Cause),
		FireAt: db.Instant(r.FireAt), OccurrenceKey: r.OccurrenceKey,
		State: domain.State(r.State), Reason: domain.Reason(r.reason), Message: r.message,
		Input: blob(r.input), Note: r.note, RequestedBy: r.requestedBy,
		Fence: r.Fence, Attempt: int(r.Attempt), MaxAttempts: int(r.maxAttempts),
		NotBefore: db.Instant(r.notBefore), WakeAt: db.Instant(r.wakeAt), ExpireAt: db.Instant(r.expireAt),
		Node: domain.NodeID(r.nodeID), Instance: domain.InstanceID(r.InstanceID),
		Idempotent: r.idempotent != 0, HoldsSlot: r.holdsSlot != 0,
		Deadline: db.Instant(r.deadline), PlannedAt: db.Instant(r.PlannedAt), OfferedAt: db.Instant(r.OfferedAt),
		GrantedAt: db.Instant(r.grantedAt), StartedAt: db.Instant(r.startedAt), FinishedAt: db.Instant(r.finishedAt),
		Output: blob(r.output), ErrorKind: r.errorKind, Error: r.error, Stack: r.stack, LogLines: r.logLines,
		Priority: int(r.priority), Delays: delaysOf(r.delays),
		Lingers: r.lingers != 0, ReturnedAt: db.Instant(r.returnedAt),
		Parent: domain.ExecutionID(r.ParentID), Part: domain.Part(r.role), Shard: int(r.shardIndex), Shards: int(r.shardTotal),
		Bound: domain.InstanceID(r.boundID), Stage: domain.Stage(r.stage), Picks: picksOf(r.picks),
		Trace: domain.Trace(r.traceparent), Passed: domain.Passed(r.passed), LostAttempts: int(r.lostAttempts), Timeout: time.Duration(r.timeout) * time.Millisecond,
		Took: time.Duration(r.took) * time.Microsecond,
	}
}

// AttemptRow is a row of attempts.
type AttemptRow struct {
	ExecutionID, Fence, TenantID, number, instanceID, state int64
	reason                                                  string
	offeredAt, grantedAt, startedAt, finishedAt             int64
	output, errorKind, error, stack                         string
	logLines                                                int64
}

var AttemptTable = db.Table[AttemptRow]{
	Name: "attempts", Keys: 2, Required: 6,
	Columns: func() []db.Column[AttemptRow] {
		type r = AttemptRow
		lines := db.IntColumn("log_lines", func(r *r) *int64 { return &r.logLines })
		lines.Def = -1
		return []db.Column[r]{
			db.IntColumn("execution_id", func(r *r) *int64 { return &r.ExecutionID }),
			db.IntColumn("fence", func(r *r) *int64 { return &r.Fence }),
			db.IntColumn("tenant_id", func(r *r) *int64 { return &r.TenantID }),
			db.IntColumn("number", func(r *r) *int64 { return &r.number }),
			db.IntColumn("instance_id", func(r *r) *int64 { return &r.instanceID }),
			db.IntColumn("state", func(r *r) *int64 { return &r.state }),
			db.TextColumn("reason", reasonSize, func(r *r) *string { return &r.reason }),
			db.IntColumn("offered_at", func(r *r) *int64 { return &r.offeredAt }),
			db.IntColumn("granted_at", func(r *r) *int64 { return &r.grantedAt }),
			db.IntColumn("started_at", func(r *r) *int64 { return &r.startedAt }),
			db.IntColumn("finished_at", func(r *r) *int64 { return &r.finishedAt }),
			db.LongColumn("output", db.KindBytes, func(r *r) *string { return &r.output }),
			db.TextColumn("error_kind", ErrorKindSize, func(r *r) *string { return &r.errorKind }),
			db.LongColumn("error", db.KindLongText, func(r *r) *string { return &r.error }),
			db.LongColumn("stack", db.KindLongText, func(r *r) *string { return &r.stack }),
			lines,
		}
	}(),
}

var AttemptColumns = AttemptTable.List("")

// ToAttemptRow is the row of an attempt.
func ToAttemptRow(a *domain.Attempt) *AttemptRow {
	return &AttemptRow{
		ExecutionID: int64(a.ExecutionID), Fence: a.Fence, TenantID: int64(a.TenantID), number: int64(a.Number),
		instanceID: int64(a.Instance), state: int64(a.State), reason: string(a.Reason),
		offeredAt: db.Millis(a.OfferedAt), grantedAt: db.Millis(a.GrantedAt), startedAt: db.Millis(a.StartedAt), finishedAt: db.Millis(a.FinishedAt),
		output: string(a.Output), errorKind: Clip(a.ErrorKind, ErrorKindSize), error: Valid(a.Error), stack: Valid(a.Stack),
		logLines: a.LogLines,
	}
}

// Attempt is what the row means.
func (r *AttemptRow) Attempt() domain.Attempt {
	return domain.Attempt{
		TenantID: domain.TenantID(r.TenantID), ExecutionID: domain.ExecutionID(r.ExecutionID), Number: int(r.number),
		Fence: r.Fence, Instance: domain.InstanceID(r.instanceID), State: domain.State(r.state), Reason: domain.Reason(r.reason),
		OfferedAt: db.Instant(r.offeredAt), GrantedAt: db.Instant(r.grantedAt), StartedAt: db.Instant(r.startedAt), FinishedAt: db.Instant(r.finishedAt),
		Output: blob(r.output), ErrorKind: r.errorKind, Error: r.error, Stack: r.stack, LogLines: r.logLines,
	}
}

// Clip makes text fit its column. What comes from executors may be of any
// length and need not be UTF-8; a refused statement would cost a whole batch.
func Clip(s string, size int) string {
	s = Valid(s)
	if utf8.RuneCountInString(s) <= size {
		return s
	}
	return string([]rune(s)[:size-1]) + "…"
}

// Valid is s with what is no UTF-8 replaced.
func Valid(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// blob maps an empty column to nil.
func blob(s string) []byte {
	if s == "" {
		return nil
	}
	return []byte(s)
}

// OnInstance are the states of domain.State.OnInstance.
var OnInstance = fmt.Sprintf("%d, %d, %d", domain.Offered, domain.Running, domain.Cancelling)
