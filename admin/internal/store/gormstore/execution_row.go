package gormstore

import (
	"strings"
	"time"
	"unicode/utf8"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
)

// Sizes of text columns, in characters (sql/mysql/00005_executions.sql).
const (
	messageSize   = 1024
	reasonSize    = 32
	nameSize      = 190
	errorKindSize = 64
	traceSize     = 64
)

type executionRow struct {
	id, tenantID, jobID, revision, executorID, part int64
	cause                                           string
	fireAt                                          int64
	occurrenceKey                                   string
	state                                           int64
	reason, message, input, note, requestedBy       string
	fence, attempt, maxAttempts                     int64
	notBefore, wakeAt, expireAt                     int64
	nodeID, instanceID, idempotent, holdsSlot       int64
	deadline                                        int64
	plannedAt, offeredAt, grantedAt                 int64
	startedAt, finishedAt                           int64
	output, errorKind, error, stack                 string
	logLines, priority                              int64
	delays                                          string
	lingers, returnedAt                             int64
	parentID, role, shardIndex, shardTotal          int64
	boundID, stage                                  int64
	picks                                           string
	traceparent                                     string
	passed, lostAttempts, timeout                   int64
	// version counts the writes; phase is derived from the state (phaseOf).
	version, phase int64
}

// versionColumn makes an update find a row only as it was when it was read.
var versionColumn = db.IntColumn("version", func(r *executionRow) *int64 { return &r.version })

var executionTable = db.Table[executionRow]{
	Name: "executions", Keys: 2, Required: 10, Version: &versionColumn,
	Columns: func() []db.Column[executionRow] {
		type r = executionRow
		wake := db.IntColumn("wake_at", func(r *r) *int64 { return &r.wakeAt })
		wake.Nullable = true
		lines := db.IntColumn("log_lines", func(r *r) *int64 { return &r.logLines })
		lines.Def = -1
		return []db.Column[r]{
			db.IntColumn("id", func(r *r) *int64 { return &r.id }),
			db.IntColumn("tenant_id", func(r *r) *int64 { return &r.tenantID }),
			db.IntColumn("job_id", func(r *r) *int64 { return &r.jobID }),
			db.IntColumn("revision", func(r *r) *int64 { return &r.revision }),
			db.IntColumn("executor_id", func(r *r) *int64 { return &r.executorID }),
			db.IntColumn("part", func(r *r) *int64 { return &r.part }),
			db.TextColumn("cause", 16, func(r *r) *string { return &r.cause }),
			db.IntColumn("fire_at", func(r *r) *int64 { return &r.fireAt }),
			db.TextColumn("occurrence_key", nameSize, func(r *r) *string { return &r.occurrenceKey }),
			db.IntColumn("state", func(r *r) *int64 { return &r.state }),
			db.TextColumn("reason", reasonSize, func(r *r) *string { return &r.reason }),
			db.TextColumn("message", messageSize, func(r *r) *string { return &r.message }),
			db.LongColumn("input", db.KindBytes, func(r *r) *string { return &r.input }),
			db.TextColumn("note", messageSize, func(r *r) *string { return &r.note }),
			db.TextColumn("requested_by", nameSize, func(r *r) *string { return &r.requestedBy }),
			db.IntColumn("fence", func(r *r) *int64 { return &r.fence }),
			db.IntColumn("attempt", func(r *r) *int64 { return &r.attempt }),
			db.IntColumn("max_attempts", func(r *r) *int64 { return &r.maxAttempts }),
			db.IntColumn("not_before", func(r *r) *int64 { return &r.notBefore }),
			wake,
			db.IntColumn("expire_at", func(r *r) *int64 { return &r.expireAt }),
			db.IntColumn("node_id", func(r *r) *int64 { return &r.nodeID }),
			db.IntColumn("instance_id", func(r *r) *int64 { return &r.instanceID }),
			db.IntColumn("idempotent", func(r *r) *int64 { return &r.idempotent }),
			db.IntColumn("holds_slot", func(r *r) *int64 { return &r.holdsSlot }),
			db.IntColumn("deadline", func(r *r) *int64 { return &r.deadline }),
			db.IntColumn("planned_at", func(r *r) *int64 { return &r.plannedAt }),
			db.IntColumn("offered_at", func(r *r) *int64 { return &r.offeredAt }),
			db.IntColumn("granted_at", func(r *r) *int64 { return &r.grantedAt }),
			db.IntColumn("started_at", func(r *r) *int64 { return &r.startedAt }),
			db.IntColumn("finished_at", func(r *r) *int64 { return &r.finishedAt }),
			db.LongColumn("output", db.KindBytes, func(r *r) *string { return &r.output }),
			db.TextColumn("error_kind", errorKindSize, func(r *r) *string { return &r.errorKind }),
			db.LongColumn("error", db.KindLongText, func(r *r) *string { return &r.error }),
			db.LongColumn("stack", db.KindLongText, func(r *r) *string { return &r.stack }),
			lines,
			versionColumn,
			db.IntColumn("phase", func(r *r) *int64 { return &r.phase }),
			db.IntColumn("priority", func(r *r) *int64 { return &r.priority }),
			db.LongColumn("delays", db.KindLongText, func(r *r) *string { return &r.delays }),
			db.IntColumn("lingers", func(r *r) *int64 { return &r.lingers }),
			db.IntColumn("returned_at", func(r *r) *int64 { return &r.returnedAt }),
			db.IntColumn("parent_id", func(r *r) *int64 { return &r.parentID }),
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
		}
	}(),
}

// Phases beside the final states, which stand for themselves.
const (
	phaseAlive = 0
	// phaseCold is a run that waits far ahead of its time; the sweep that warms
	// it up moves its WakeAt behind its NotBefore.
	phaseCold = 1
	// phaseLingering is a run that has ended while its handler still runs.
	phaseLingering = 2
	// phasePart is added for the parts of a parent: lists and counts of runs pass
	// over them.
	phasePart = 64
)

// phaseOf is the state as the index for lists has it: runs move through their
// living states without touching it.
func phaseOf(r *executionRow) int64 {
	if r.parentID != 0 {
		return phasePart + runPhase(r)
	}
	return runPhase(r)
}

func runPhase(r *executionRow) int64 {
	switch {
	case r.lingers != 0:
		return phaseLingering
	case domain.State(r.state).Terminal():
		return r.state
	case domain.State(r.state) == domain.Due && r.wakeAt < r.notBefore:
		return phaseCold
	default:
		return phaseAlive
	}
}

var executionColumns = executionTable.List("")

// toExecutionRow maps to the stored shape: milliseconds, and text that fits.
func toExecutionRow(e *domain.Execution) *executionRow {
	r := &executionRow{
		id: int64(e.ID), tenantID: int64(e.TenantID), jobID: int64(e.JobID), revision: e.Revision,
		executorID: int64(e.Executor), part: int64(e.Partition), cause: string(e.Cause),
		fireAt: db.Millis(e.FireAt), occurrenceKey: e.OccurrenceKey,
		state: int64(e.State), reason: string(e.Reason), message: clip(e.Message, messageSize),
		input: string(e.Input), note: clip(e.Note, messageSize), requestedBy: clip(e.RequestedBy, nameSize),
		fence: e.Fence, attempt: int64(e.Attempt), maxAttempts: int64(e.MaxAttempts),
		notBefore: db.Millis(e.NotBefore), wakeAt: db.Millis(e.WakeAt), expireAt: db.Millis(e.ExpireAt),
		nodeID: int64(e.Node), instanceID: int64(e.Instance), idempotent: db.Flag(e.Idempotent), holdsSlot: db.Flag(e.HoldsSlot),
		deadline: db.Millis(e.Deadline), plannedAt: db.Millis(e.PlannedAt), offeredAt: db.Millis(e.OfferedAt),
		grantedAt: db.Millis(e.GrantedAt), startedAt: db.Millis(e.StartedAt), finishedAt: db.Millis(e.FinishedAt),
		output: string(e.Output), errorKind: clip(e.ErrorKind, errorKindSize),
		error: valid(e.Error), stack: valid(e.Stack), logLines: e.LogLines,
		priority: int64(e.Priority), delays: delaysText(e.Delays),
		lingers: db.Flag(e.Lingers), returnedAt: db.Millis(e.ReturnedAt),
		parentID: int64(e.Parent), role: int64(e.Part), shardIndex: int64(e.Shard), shardTotal: int64(e.Shards),
		boundID: int64(e.Bound), stage: int64(e.Stage), picks: picksText(e.Picks),
		traceparent: string(e.Trace), passed: int64(e.Passed), lostAttempts: int64(e.LostAttempts), timeout: e.Timeout.Milliseconds(),
	}
	r.phase = phaseOf(r)
	return r
}

// next returns the row after the move that e made: r itself when nothing
// changed, else with the next version.
func (r *executionRow) next(e *domain.Execution) *executionRow {
	after := toExecutionRow(e)
	after.version = r.version
	if *after == *r {
		return r
	}
	after.version++
	return after
}

func (r *executionRow) execution() domain.Execution {
	return domain.Execution{
		ID: domain.ExecutionID(r.id), TenantID: domain.TenantID(r.tenantID), JobID: domain.JobID(r.jobID), Revision: r.revision,
		Executor: domain.ExecutorID(r.executorID), Partition: int(r.part), Cause: domain.Cause(r.cause),
		FireAt: db.Instant(r.fireAt), OccurrenceKey: r.occurrenceKey,
		State: domain.State(r.state), Reason: domain.Reason(r.reason), Message: r.message,
		Input: blob(r.input), Note: r.note, RequestedBy: r.requestedBy,
		Fence: r.fence, Attempt: int(r.attempt), MaxAttempts: int(r.maxAttempts),
		NotBefore: db.Instant(r.notBefore), WakeAt: db.Instant(r.wakeAt), ExpireAt: db.Instant(r.expireAt),
		Node: domain.NodeID(r.nodeID), Instance: domain.InstanceID(r.instanceID),
		Idempotent: r.idempotent != 0, HoldsSlot: r.holdsSlot != 0,
		Deadline: db.Instant(r.deadline), PlannedAt: db.Instant(r.plannedAt), OfferedAt: db.Instant(r.offeredAt),
		GrantedAt: db.Instant(r.grantedAt), StartedAt: db.Instant(r.startedAt), FinishedAt: db.Instant(r.finishedAt),
		Output: blob(r.output), ErrorKind: r.errorKind, Error: r.error, Stack: r.stack, LogLines: r.logLines,
		Priority: int(r.priority), Delays: delaysOf(r.delays),
		Lingers: r.lingers != 0, ReturnedAt: db.Instant(r.returnedAt),
		Parent: domain.ExecutionID(r.parentID), Part: domain.Part(r.role), Shard: int(r.shardIndex), Shards: int(r.shardTotal),
		Bound: domain.InstanceID(r.boundID), Stage: domain.Stage(r.stage), Picks: picksOf(r.picks),
		Trace: domain.Trace(r.traceparent), Passed: domain.Passed(r.passed), LostAttempts: int(r.lostAttempts), Timeout: time.Duration(r.timeout) * time.Millisecond,
	}
}

type attemptRow struct {
	executionID, fence, tenantID, number, instanceID, state int64
	reason                                                  string
	offeredAt, grantedAt, startedAt, finishedAt             int64
	output, errorKind, error, stack                         string
	logLines                                                int64
}

var attemptTable = db.Table[attemptRow]{
	Name: "attempts", Keys: 2, Required: 6,
	Columns: func() []db.Column[attemptRow] {
		type r = attemptRow
		lines := db.IntColumn("log_lines", func(r *r) *int64 { return &r.logLines })
		lines.Def = -1
		return []db.Column[r]{
			db.IntColumn("execution_id", func(r *r) *int64 { return &r.executionID }),
			db.IntColumn("fence", func(r *r) *int64 { return &r.fence }),
			db.IntColumn("tenant_id", func(r *r) *int64 { return &r.tenantID }),
			db.IntColumn("number", func(r *r) *int64 { return &r.number }),
			db.IntColumn("instance_id", func(r *r) *int64 { return &r.instanceID }),
			db.IntColumn("state", func(r *r) *int64 { return &r.state }),
			db.TextColumn("reason", reasonSize, func(r *r) *string { return &r.reason }),
			db.IntColumn("offered_at", func(r *r) *int64 { return &r.offeredAt }),
			db.IntColumn("granted_at", func(r *r) *int64 { return &r.grantedAt }),
			db.IntColumn("started_at", func(r *r) *int64 { return &r.startedAt }),
			db.IntColumn("finished_at", func(r *r) *int64 { return &r.finishedAt }),
			db.LongColumn("output", db.KindBytes, func(r *r) *string { return &r.output }),
			db.TextColumn("error_kind", errorKindSize, func(r *r) *string { return &r.errorKind }),
			db.LongColumn("error", db.KindLongText, func(r *r) *string { return &r.error }),
			db.LongColumn("stack", db.KindLongText, func(r *r) *string { return &r.stack }),
			lines,
		}
	}(),
}

var attemptColumns = attemptTable.List("")

func toAttemptRow(a *domain.Attempt) *attemptRow {
	return &attemptRow{
		executionID: int64(a.ExecutionID), fence: a.Fence, tenantID: int64(a.TenantID), number: int64(a.Number),
		instanceID: int64(a.Instance), state: int64(a.State), reason: string(a.Reason),
		offeredAt: db.Millis(a.OfferedAt), grantedAt: db.Millis(a.GrantedAt), startedAt: db.Millis(a.StartedAt), finishedAt: db.Millis(a.FinishedAt),
		output: string(a.Output), errorKind: clip(a.ErrorKind, errorKindSize), error: valid(a.Error), stack: valid(a.Stack),
		logLines: a.LogLines,
	}
}

func (r *attemptRow) attempt() domain.Attempt {
	return domain.Attempt{
		TenantID: domain.TenantID(r.tenantID), ExecutionID: domain.ExecutionID(r.executionID), Number: int(r.number),
		Fence: r.fence, Instance: domain.InstanceID(r.instanceID), State: domain.State(r.state), Reason: domain.Reason(r.reason),
		OfferedAt: db.Instant(r.offeredAt), GrantedAt: db.Instant(r.grantedAt), StartedAt: db.Instant(r.startedAt), FinishedAt: db.Instant(r.finishedAt),
		Output: blob(r.output), ErrorKind: r.errorKind, Error: r.error, Stack: r.stack, LogLines: r.logLines,
	}
}

// clip makes text fit its column. What comes from executors may be of any
// length and need not be UTF-8; a refused statement would cost a whole batch.
func clip(s string, size int) string {
	s = valid(s)
	if utf8.RuneCountInString(s) <= size {
		return s
	}
	return string([]rune(s)[:size-1]) + "…"
}

func valid(s string) string {
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
