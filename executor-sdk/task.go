package executor

import (
	"context"
	"strconv"
	"time"

	"github.com/carillon-sched/carillon/proto"
)

// Task tells a handler what it runs for. Get it with TaskFrom.
type Task struct {
	// ExecutionID is the run: one planned fire of one job, whatever number of
	// attempts it takes.
	ExecutionID int64
	// Fence grows with every attempt of the run. A system that remembers the
	// highest one it saw can refuse writes of an attempt that was given up.
	Fence int64
	// Attempt counts from 1 to MaxAttempts, which grows with each attempt that
	// was snoozed, that the stop of its process interrupted, or that was lost (the
	// first three of a run), and that therefore does not count.
	Attempt, MaxAttempts int

	TenantID int64
	JobID    int64
	JobName  string
	Handler  string
	// FireTime is the instant the run was planned for (not when it started), in UTC.
	FireTime time.Time
	// Cause is why the run exists: schedule, manual, api, misfire, retry, …
	Cause string
	// ShardIndex and ShardTotal are this run's slice of a fire with shards, index
	// from 0; see Shard. ShardTotal is 0 when the run is no shard.
	ShardIndex, ShardTotal int
	// RequestedBy is who asked for the run: a user, or "key:" and the name of an
	// API key. Empty for scheduled ones.
	RequestedBy string
	// Part is "shard", "before" or "after" (BeforeShards, AfterShards) for a part
	// of the run ParentID, and empty for a run of its own.
	Part     string
	ParentID int64
	// Note is what the person who started the run by hand wrote.
	Note string
	// Traceparent is the W3C trace context that the handler belongs below, or empty.
	Traceparent string
	// Script is what an agent runs; nil for the handlers of applications.
	Script *Script
}

// Key is the run's idempotency key: the same for every attempt of the run and
// different for every other run. Hand it to whatever the handler calls.
func (t Task) Key() string { return strconv.FormatInt(t.ExecutionID, 10) }

// TraceID is the id of the trace in Traceparent, 32 hex digits, or "". It is
// what log lines carry to be found from a trace, and a trace from them.
func (t Task) TraceID() string {
	const from, to, size = 3, 35, 55 // version-trace-span-flags
	if len(t.Traceparent) < size {
		return ""
	}
	return t.Traceparent[from:to]
}

// TaskFrom returns the task that ctx belongs to. Outside of a handler it
// returns the zero Task, whose ExecutionID is 0.
func TaskFrom(ctx context.Context) Task {
	if r := runFrom(ctx); r != nil {
		return r.task
	}
	return Task{}
}

func taskOf(o *proto.Offer) Task {
	return Task{
		ExecutionID: o.GetExecutionId(),
		Fence:       o.GetFence(),
		Attempt:     int(o.GetAttempt()),
		MaxAttempts: int(o.GetMaxAttempts()),
		TenantID:    o.GetTenantId(),
		JobID:       o.GetJobId(),
		JobName:     o.GetJobName(),
		Handler:     o.GetHandler(),
		FireTime:    time.UnixMilli(o.GetFireAtMs()).UTC(),
		Cause:       o.GetCause(),
		ShardIndex:  int(o.GetShardIndex()),
		ShardTotal:  int(o.GetShardTotal()),
		RequestedBy: o.GetRequestedBy(),
		Part:        o.GetPart(),
		ParentID:    o.GetParentId(),
		Note:        o.GetNote(),
		Traceparent: o.GetTraceparent(),
		Script:      scriptOf(o),
	}
}
