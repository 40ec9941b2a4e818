package store

import (
	"context"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// LogAppender stores what handlers wrote.
type LogAppender interface {
	// AppendLogs stores chunks of several executors in one transaction. Lines
	// with numbers up to the last one stored for their attempt are a resend and
	// are ignored. Chunks of an execution that does not belong to tenant and
	// executor are dropped and counted. Of the lines over a limit of LogLimits
	// the newest few are kept; a line that says how many are missing stands before them.
	AppendLogs(ctx context.Context, list []LogAppend) (dropped int, err error)
}

// Logs keeps what handlers wrote, in compressed chunks. It is all that the rest
// of the server knows of where logs are: one that keeps the bodies of chunks in
// an object storage implements the same methods (docs/adr/0025).
type Logs interface {
	// ReadLog returns lines of one attempt in the order of their numbers.
	ReadLog(ctx context.Context, p ReadLogParams) (LogPage, error)
	// LogEnd returns the highest attempt of a run that has lines, and the
	// number of its last line; zeros when there are none. It is cheap.
	LogEnd(ctx context.Context, tenant domain.TenantID, execution domain.ExecutionID) (attempt int, line int64, err error)
	// CountLog says of each attempt of a run that has lines how many are there,
	// and how many were not kept for which limit.
	CountLog(ctx context.Context, tenant domain.TenantID, execution domain.ExecutionID) ([]LogCount, error)
}

// LogCount counts the lines of an attempt.
type LogCount struct {
	Attempt int
	// LastLine is the highest number, and Kept how many lines there are up to it.
	LastLine, Kept int64
	// CutByRun and CutByDay were not kept for the run's limit and for the tenant's
	// of a day. Others that are missing were dropped by the executor.
	CutByRun, CutByDay int64
}

// LogAppend is what one executor sent.
type LogAppend struct {
	Tenant   domain.TenantID
	Executor domain.ExecutorID
	Chunks   []domain.LogChunk
}

// LogLimits bound what is kept. Bytes are counted before compression. Zero
// means no limit. They are looked at before an append and hold to within it.
type LogLimits struct {
	// RunLines and RunBytes are of all attempts of a run together.
	RunLines, RunBytes int64
	// TenantDayBytes is what all runs of a tenant may write in a day (UTC).
	TenantDayBytes int64
}

type ReadLogParams struct {
	Tenant    domain.TenantID
	Execution domain.ExecutionID
	Attempt   int
	// After asks for lines with higher numbers, from the lowest on. Before, when
	// it is not 0, asks for lines with lower numbers, from the highest down.
	After, Before int64
	// Limit bounds the lines of the page; 0 = 1000.
	Limit int
	// MinLevel chooses lines of this level (of slog) and above; nil = all.
	MinLevel *int
	// Text is a part of message, attributes or trace id, in any case; empty = any.
	Text string
}

type LogPage struct {
	Lines []domain.LogLine
	// LastLine is the highest number stored for the attempt.
	LastLine int64
	// Reached is how far was looked: all lines that were asked for between the
	// cursor and it, itself included, are in Lines. A reader goes on from there
	// (as After or Before); it is LastLine, or 0 backwards, at the end.
	Reached int64
	// Read is how many bytes were inflated, before compression.
	Read int
}
