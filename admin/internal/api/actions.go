package api

import (
	"context"

	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// Actions begin, repeat and end runs for who asked for many of them in one request, after
// that request has ended. Each does what the operation for one run does.
type Actions struct {
	starter *starter
	runs    *runs
}

// ActionKey names an action, so that its repetition changes nothing.
type ActionKey struct {
	// Unique is the same for actions of which one job gets one run. By is who acts, and part
	// of no more than the answer. They have no dot.
	Unique, By string
}

// ActionOptions are those of a request for one run.
type ActionOptions struct {
	Note string
	// During: the run starts although nothing is to start because of maintenance.
	During bool
}

// RunJob runs a job now. by is the key's By of the operation that made the run. It may be an
// earlier operation with the same key.
func (a *Actions) RunJob(ctx context.Context, id auth.Identity, job domain.JobID, key ActionKey, o ActionOptions) (run domain.ExecutionID, by string, err error) {
	v, err := a.starter.store.FindJob(ctx, id.Tenant, job)
	if err == nil {
		err = a.starter.mayStart(ctx, v)
	}
	if err != nil {
		return 0, "", err
	}
	e := a.starter.newRun(id, v, a.starter.now())
	e.Note = o.Note
	return a.begin(ctx, e, key, o)
}

// RetryRun repeats a run that has ended; see RunJob.
func (a *Actions) RetryRun(ctx context.Context, id auth.Identity, old domain.ExecutionID, key ActionKey, o ActionOptions) (run domain.ExecutionID, by string, err error) {
	v, err := a.runs.store.FindExecution(ctx, id.Tenant, old)
	if err != nil {
		return 0, "", err
	}
	e, _, err := a.runs.again(ctx, id, &v, false)
	if err != nil {
		return 0, "", err
	}
	if o.Note != "" {
		e.Note += ": " + o.Note
	}
	return a.begin(ctx, e, key, o)
}

func (a *Actions) begin(ctx context.Context, e domain.Execution, key ActionKey, o ActionOptions) (run domain.ExecutionID, by string, err error) {
	e.OccurrenceKey = domain.RequestKey(key.Unique, key.By)
	if err := a.runs.maintenance.checkMaintenance(ctx, &e, o.During); err != nil {
		return 0, "", err
	}
	begun, _, err := a.starter.begin(ctx, e)
	if err != nil {
		return 0, "", err
	}
	_, by = domain.SplitRequestKey(begun.OccurrenceKey)
	return begun.ID, by, nil
}

// CancelRun ends a run. Repeated by the same actor it changes nothing.
// CodeAlreadyFinished: it has ended otherwise.
func (a *Actions) CancelRun(ctx context.Context, id auth.Identity, run domain.ExecutionID, reason string) error {
	message := cancelledBy(id, reason)
	err := a.runs.cancel(ctx, id, run, message)
	if !domain.Is(err, domain.CodeAlreadyFinished) {
		return err
	}
	v, found := a.runs.store.FindExecution(ctx, id.Tenant, run)
	if found == nil && v.State == domain.Cancelled && v.Message == message {
		return nil
	}
	return err
}
