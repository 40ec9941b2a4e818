// Package calling answers: which job do the runs of a handler belong to that
// is called, without a job of its own?
//
// Every run belongs to a job: its history, its alerts and its settings hang on
// it. For calls and callbacks there is one per executor and handler, made when
// it is needed first. People see it among the others, labelled with its kind.
package calling

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// Label is the label of such jobs; its value is the kind.
const Label = "carillon.kind"

// Kind is why the handler is called.
type Kind string

const (
	// Call: a program asked for the run and wants its result. Nothing is
	// repeated that the caller did not ask for.
	Call Kind = "call"
	// Callback: the end of a run. It is repeated until it succeeds, ten times.
	Callback Kind = "callback"
)

// Jobs finds and makes such jobs.
type Jobs struct {
	Store store.Jobs
	NewID func() int64
	Now   func() time.Time
}

// For returns the job. CodeConflict: somebody made another job of that name.
func (j Jobs) For(ctx context.Context, executor domain.Executor, handler string, kind Kind) (store.JobView, error) {
	name := jobName(executor.Name, handler, kind)
	found, err := j.Store.FindJobByName(ctx, executor.TenantID, name)
	if domain.Is(err, domain.CodeNotFound) {
		err = j.make(ctx, executor, handler, name, kind)
		if err != nil && !domain.Is(err, domain.CodeConflict) { // else another node was quicker
			return found, err
		}
		found, err = j.Store.FindJobByName(ctx, executor.TenantID, name)
	}
	if err != nil {
		return found, err
	}
	if found.Executor != executor.ID || found.Spec.Handler != handler || found.Spec.Labels[Label] != string(kind) {
		return found, domain.Errorf(domain.CodeConflict,
			"the job %q, which calls of this handler belong to, was made or changed by somebody; rename or delete it", name)
	}
	return found, nil
}

// Is reports whether a spec is that of such a job.
func Is(spec *domain.JobSpec, kind Kind) bool { return spec.Labels[Label] == string(kind) }

// jobName stays under the limit for names whatever the parts are.
func jobName(executor, handler string, kind Kind) string {
	name := string(kind) + ":" + executor + "/" + handler
	if len(name) <= domain.MaxNameLength {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return string(kind) + ":" + hex.EncodeToString(sum[:16])
}

func (j Jobs) make(ctx context.Context, executor domain.Executor, handler, name string, kind Kind) error {
	spec := domain.JobSpec{
		Name: name, Description: "Calls of the handler " + handler, Labels: map[string]string{Label: string(kind)}, Handler: handler,
		Schedule: domain.ScheduleSpec{Kind: domain.ScheduleNone, Zone: "UTC", Dialect: "auto"},
		Misfire:  domain.Misfire{Policy: domain.MisfireSkip}, Routing: domain.RouteRoundRobin, Blocking: domain.BlockParallel,
		Retry: domain.Retry{MaxAttempts: 1, Delay: time.Second, Backoff: 2, MaxDelay: time.Minute}, OnLost: domain.OnLostAuto,
	}
	if kind == Callback {
		spec.Description = "Runs of the callback " + handler
		spec.Retry = domain.Retry{MaxAttempts: 10, Delay: 5 * time.Second, Backoff: 2, MaxDelay: 10 * time.Minute}
		spec.OnLost, spec.DispatchTimeout = domain.OnLostRetry, 24*time.Hour
		spec.Alert = domain.Alert{OnFailure: true, IncludeNoExecutor: true}
	}
	if err := domain.CheckSpec(&spec); err != nil {
		return err
	}
	id, now := domain.JobID(j.NewID()), j.Now()
	_, err := j.Store.CreateJob(ctx, domain.Job{
		ID: id, TenantID: executor.TenantID, Executor: executor.ID, Partition: domain.PartitionOf(id),
		State: domain.JobEnabled, Source: domain.SourceConsole, Revision: 1,
		Spec: spec, CreatedAt: now, UpdatedAt: now, CreatedBy: "carillon", UpdatedBy: "carillon",
	}, func(time.Time, *domain.JobSpec) time.Time { return domain.Never })
	return err
}
