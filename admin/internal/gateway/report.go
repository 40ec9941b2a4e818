package gateway

import (
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/proto"
)

// ReportOf translates a result frame to the noun that moves an execution.
func ReportOf(r *proto.Result) domain.Report {
	out := domain.Report{
		ExecutionID: domain.ExecutionID(r.ExecutionId), Fence: r.Fence, Outcome: outcomeOf(r.Outcome),
		Output: r.Output, ErrorKind: r.ErrorKind,
		Error: r.Error, Stack: r.Stack,
		RetryAfter: time.Duration(r.RetryAfterMs) * time.Millisecond,
		LogLines:   r.LogLines, StillRunning: r.StillRunning,
	}
	if r.StartedAtMs > 0 {
		out.StartedAt = time.UnixMilli(r.StartedAtMs).UTC()
		out.Took = time.Duration(r.DurationUs) * time.Microsecond
	}
	return out
}

// outcomeOf maps the wire's outcomes; one that this version does not know is
// a failure, never a success.
func outcomeOf(o proto.Outcome) domain.Outcome {
	switch o {
	case proto.Outcome_OUTCOME_SUCCEEDED:
		return domain.OutcomeSucceeded
	case proto.Outcome_OUTCOME_TIMED_OUT:
		return domain.OutcomeTimedOut
	case proto.Outcome_OUTCOME_CANCELLED:
		return domain.OutcomeCancelled
	case proto.Outcome_OUTCOME_NEVER_STARTED:
		return domain.OutcomeNeverStarted
	case proto.Outcome_OUTCOME_UNKNOWN:
		return domain.OutcomeUnknown
	default:
		return domain.OutcomeFailed
	}
}
