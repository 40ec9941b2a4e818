package store

import (
	"context"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// Progress keeps what handlers tell and ask while they run.
type Progress interface {
	// SaveProgress keeps the newest progress of each run: by fence, then by
	// number. Of runs that are not the executor's nothing is kept.
	SaveProgress(ctx context.Context, list []ProgressReport) error
	// TakeSteps stores and reads results of steps, in the order of the requests.
	TakeSteps(ctx context.Context, list []StepRequest) ([]StepAnswer, error)
}

// ProgressReport is a progress with the identity of the session it came in on.
type ProgressReport struct {
	Tenant   domain.TenantID
	Executor domain.ExecutorID
	domain.Progress
}

// StepRequest asks about one step of an attempt.
type StepRequest struct {
	Tenant   domain.TenantID
	Executor domain.ExecutorID
	ID       domain.ExecutionID
	Fence    int64
	// Name is empty when only the attempt's right to act is asked for.
	Name string
	// Store keeps Output under the name, unless there is a result.
	Store  bool
	Output []byte
}

// StepCode is what became of a request; the wire has the same words.
type StepCode string

const (
	StepStored     StepCode = "stored"
	StepFound      StepCode = "found"
	StepNone       StepCode = "none"
	StepNotRunning StepCode = "not_running"
	StepTooLarge   StepCode = "too_large"
)

// StepAnswer: Output is what is stored, with StepFound.
type StepAnswer struct {
	Code    StepCode
	Message string
	Output  []byte
}
