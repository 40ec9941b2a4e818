package gormstore

import (
	"strings"
	"time"
	"unicode/utf8"

	"github.com/carillon-sched/carillon/admin/internal/domain"
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
var versionColumn = intColumn("version", func(r *executionRow) *int64 { return &r.version })

var executionTable = table[executionRow]{
	name: "executions", keys: 2, required: 10, version: &versionColumn,
	columns: func() []column[executionRow] {
		type r = executionRow
		wake := intColumn("wake_at", func(r *r) *int64 { return &r.wakeAt })
		wake.nullable = true
		lines := intColumn("log_lines", func(r *r) *int64 { return &r.logLines })
		lines.def = -1
		return []column[r]{
			intColumn("id", func(r *r) *int64 { return &r.id }),
			intColumn("tenant_id", func(r *r) *int64 { return &r.tenantID }),
			intColumn("job_id", func(r *r) *int64 { return &r.jobID }),
			intColumn("revision", func(r *r) *int64 { return &r.revision }),
			intColumn("executor_id", func(r *r) *int64 { return &r.executorID }),
			intColumn("part", func(r *r) *int64 { return &r.part }),
			textColumn("cause", 16, func(r *r) *string { return &r.cause }),
			intColumn("fire_at", func(r *r) *int64 { return &r.fireAt }),
			textColumn("occurrence_key", nameSize, func(r *r) *string { return &r.occurrenceKey }),
			intColumn("state", func(r *r) *int64 { return &r.state }),
			textColumn("reason", reasonSize, func(r *r) *string { return &r.reason }),
			textColumn("message", messageSize, func(r *r) *string { return &r.message }),
			longColumn("input", kindBytes, func(r *r) *string { return &r.input }),
			textColumn("note", messageSize, func(r *r) *string { return &r.note }),
			textColumn("requested_by", nameSize, func(r *r) *string { return &r.requestedBy }),
			intColumn("fence", func(r *r) *int64 { return &r.fence }),
			intColumn("attempt", func(r *r) *int64 { return &r.attempt }),
			intColumn("max_attempts", func(r *r) *int64 { return &r.maxAttempts }),
			intColumn("not_before", func(r *r) *int64 { return &r.notBefore }),
			wake,
			intColumn("expire_at", func(r *r) *int64 { return &r.expireAt }),
			intColumn("node_id", func(r *r) *int64 { return &r.nodeID }),
			intColumn("instance_id", func(r *r) *int64 { return &r.instanceID }),
			intColumn("idempotent", func(r *r) *int64 { return &r.idempotent }),
			intColumn("holds_slot", func(r *r) *int64 { return &r.holdsSlot }),
			intColumn("deadline", func(r *r) *int64 { return &r.deadline }),
			intColumn("planned_at", func(r *r) *int64 { return &r.plannedAt }),
			intColumn("offered_at", func(r *r) *int64 { return &r.offeredAt }),
			intColumn("granted_at", func(r *r) *int64 { return &r.grantedAt }),
			intColumn("started_at", func(r *r) *int64 { return &r.startedAt }),
			intColumn("finished_at", func(r *r) *int64 { return &r.finishedAt }),
			longColumn("output", kindBytes, func(r *r) *string { return &r.output }),
			textColumn("error_kind", errorKindSize, func(r *r) *string { return &r.errorKind }),
			longColumn("error", kindLongText, func(r *r) *string { return &r.error }),
			longColumn("stack", kindLongText, func(r *r) *string { return &r.stack }),
			lines,
			versionColumn,
			intColumn("phase", func(r *r) *int64 { return &r.phase }),
			intColumn("priority", func(r *r) *int64 { return &r.priority }),
			longColumn("delays", kindLongText, func(r *r) *string { return &r.delays }),
			intColumn("lingers", func(r *r) *int64 { return &r.lingers }),
			intColumn("returned_at", func(r *r) *int64 { return &r.returnedAt }),
			intColumn("parent_id", func(r *r) *int64 { return &r.parentID }),
			intColumn("role", func(r *r) *int64 { return &r.role }),
			intColumn("shard_index", func(r *r) *int64 { return &r.shardIndex }),
			intColumn("shard_total", func(r *r) *int64 { return &r.shardTotal }),
			intColumn("bound_id", func(r *r) *int64 { return &r.boundID }),
			intColumn("stage", func(r *r) *int64 { return &r.stage }),
			longColumn("picks", kindLongText, func(r *r) *string { return &r.picks }),
			textColumn("traceparent", traceSize, func(r *r) *string { return &r.traceparent }),
			intColumn("passed", func(r *r) *int64 { return &r.passed }),
			intColumn("lost_attempts", func(r *r) *int64 { return &r.lostAttempts }),
			intColumn("timeout_ms", func(r *r) *int64 { return &r.timeout }),
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

var executionColumns = executionTable.list("")

// toExecutionRow maps to the stored shape: milliseconds, and text that fits.
func toExecutionRow(e *domain.Execution) *executionRow {
	r := &executionRow{
		id: int64(e.ID), tenantID: int64(e.TenantID), jobID: int64(e.JobID), revision: e.Revision,
		executorID: int64(e.Executor), part: int64(e.Partition), cause: string(e.Cause),
		fireAt: millis(e.FireAt), occurrenceKey: e.OccurrenceKey,
		state: int64(e.State), reason: string(e.Reason), message: clip(e.Message, messageSize),
		input: string(e.Input), note: clip(e.Note, messageSize), requestedBy: clip(e.RequestedBy, nameSize),
		fence: e.Fence, attempt: int64(e.Attempt), maxAttempts: int64(e.MaxAttempts),
		notBefore: millis(e.NotBefore), wakeAt: millis(e.WakeAt), expireAt: millis(e.ExpireAt),
		nodeID: int64(e.Node), instanceID: int64(e.Instance), idempotent: flag(e.Idempotent), holdsSlot: flag(e.HoldsSlot),
		deadline: millis(e.Deadline), plannedAt: millis(e.PlannedAt), offeredAt: millis(e.OfferedAt),
		grantedAt: millis(e.GrantedAt), startedAt: millis(e.StartedAt), finishedAt: millis(e.FinishedAt),
		output: string(e.Output), errorKind: clip(e.ErrorKind, errorKindSize),
		error: valid(e.Error), stack: valid(e.Stack), logLines: e.LogLines,
		priority: int64(e.Priority), delays: delaysText(e.Delays),
		lingers: flag(e.Lingers), returnedAt: millis(e.ReturnedAt),
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
		FireAt: instant(r.fireAt), OccurrenceKey: r.occurrenceKey,
		State: domain.State(r.state), Reason: domain.Reason(r.reason), Message: r.message,
		Input: blob(r.input), Note: r.note, RequestedBy: r.requestedBy,
		Fence: r.fence, Attempt: int(r.attempt), MaxAttempts: int(r.maxAttempts),
		NotBefore: instant(r.notBefore), WakeAt: instant(r.wakeAt), ExpireAt: instant(r.expireAt),
		Node: domain.NodeID(r.nodeID), Instance: domain.InstanceID(r.instanceID),
		Idempotent: r.idempotent != 0, HoldsSlot: r.holdsSlot != 0,
		Deadline: instant(r.deadline), PlannedAt: instant(r.plannedAt), OfferedAt: instant(r.offeredAt),
		GrantedAt: instant(r.grantedAt), StartedAt: instant(r.startedAt), FinishedAt: instant(r.finishedAt),
		Output: blob(r.output), ErrorKind: r.errorKind, Error: r.error, Stack: r.stack, LogLines: r.logLines,
		Priority: int(r.priority), Delays: delaysOf(r.delays),
		Lingers: r.lingers != 0, ReturnedAt: instant(r.returnedAt),
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

var attemptTable = table[attemptRow]{
	name: "attempts", keys: 2, required: 6,
	columns: func() []column[attemptRow] {
		type r = attemptRow
		lines := intColumn("log_lines", func(r *r) *int64 { return &r.logLines })
		lines.def = -1
		return []column[r]{
			intColumn("execution_id", func(r *r) *int64 { return &r.executionID }),
			intColumn("fence", func(r *r) *int64 { return &r.fence }),
			intColumn("tenant_id", func(r *r) *int64 { return &r.tenantID }),
			intColumn("number", func(r *r) *int64 { return &r.number }),
			intColumn("instance_id", func(r *r) *int64 { return &r.instanceID }),
			intColumn("state", func(r *r) *int64 { return &r.state }),
			textColumn("reason", reasonSize, func(r *r) *string { return &r.reason }),
			intColumn("offered_at", func(r *r) *int64 { return &r.offeredAt }),
			intColumn("granted_at", func(r *r) *int64 { return &r.grantedAt }),
			intColumn("started_at", func(r *r) *int64 { return &r.startedAt }),
			intColumn("finished_at", func(r *r) *int64 { return &r.finishedAt }),
			longColumn("output", kindBytes, func(r *r) *string { return &r.output }),
			textColumn("error_kind", errorKindSize, func(r *r) *string { return &r.errorKind }),
			longColumn("error", kindLongText, func(r *r) *string { return &r.error }),
			longColumn("stack", kindLongText, func(r *r) *string { return &r.stack }),
			lines,
		}
	}(),
}

var attemptColumns = attemptTable.list("")

func toAttemptRow(a *domain.Attempt) *attemptRow {
	return &attemptRow{
		executionID: int64(a.ExecutionID), fence: a.Fence, tenantID: int64(a.TenantID), number: int64(a.Number),
		instanceID: int64(a.Instance), state: int64(a.State), reason: string(a.Reason),
		offeredAt: millis(a.OfferedAt), grantedAt: millis(a.GrantedAt), startedAt: millis(a.StartedAt), finishedAt: millis(a.FinishedAt),
		output: string(a.Output), errorKind: clip(a.ErrorKind, errorKindSize), error: valid(a.Error), stack: valid(a.Stack),
		logLines: a.LogLines,
	}
}

func (r *attemptRow) attempt() domain.Attempt {
	return domain.Attempt{
		TenantID: domain.TenantID(r.tenantID), ExecutionID: domain.ExecutionID(r.executionID), Number: int(r.number),
		Fence: r.fence, Instance: domain.InstanceID(r.instanceID), State: domain.State(r.state), Reason: domain.Reason(r.reason),
		OfferedAt: instant(r.offeredAt), GrantedAt: instant(r.grantedAt), StartedAt: instant(r.startedAt), FinishedAt: instant(r.finishedAt),
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
