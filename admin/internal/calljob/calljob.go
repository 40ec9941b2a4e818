// Package calljob answers: which job do the runs of a handler belong to that
// is called, without a job of its own?
//
// Every run belongs to a job: its history, its alerts and its settings hang on
// it. For calls, callbacks and timers there is one each per executor and
// handler, made when it is needed first. It is not among people's jobs: lists show
// it when they are asked for its kind, and it counts against no quota.
//
// It has the settings that the handler's declaration gives to its calls
// (domain.Handler.Calls), and follows them until somebody edits one of these
// settings in the console: from then on they are the console's. When it is made, its
// owner is that of the handler's or the executor's other jobs.
package calljob

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/nodehandler"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// Kind is why the handler is called.
type Kind = domain.JobKind

const (
	// Call: a program asked for the run and wants its result. Nothing is
	// repeated that neither the caller nor the handler asked for.
	Call = domain.JobCall
	// Callback: the end of a run. It is repeated until it succeeds, ten times
	// unless its handler says otherwise. No callback follows it.
	Callback = domain.JobCallback
	// Timer: an application wanted it at an instant. It is repeated as its handler
	// says, and waits for an instance for a day unless the handler says otherwise:
	// nobody waits for it.
	Timer = domain.JobTimer
)

// Jobs finds and makes such jobs.
type Jobs struct {
	Store store.Jobs
	NewID func() int64
	Now   func() time.Time
	// Handlers are those of the tenants' built-in executors.
	Handlers nodehandler.List
}

// For returns the job. Of handler its name and its Calls count. CodeConflict:
// somebody made another job of that name.
func (j Jobs) For(ctx context.Context, executor domain.Executor, handler domain.Handler, kind Kind) (store.JobView, error) {
	want := j.specOf(executor.Name, handler, kind)
	found, err := j.Store.FindJobByName(ctx, executor.TenantID, want.Name)
	if domain.Is(err, domain.CodeNotFound) {
		err = j.make(ctx, executor, want, kind)
		if err != nil && !domain.Is(err, domain.CodeConflict) { // else another node was quicker
			return found, err
		}
		found, err = j.Store.FindJobByName(ctx, executor.TenantID, want.Name)
	}
	if err != nil {
		return found, err
	}
	if found.Executor != executor.ID || found.Spec.Handler != handler.Name || found.Kind != kind {
		return found, domain.Errorf(domain.CodeConflict,
			"the job %q, which calls of this handler belong to, was made or changed by somebody; rename or delete it", want.Name)
	}
	return j.follow(ctx, found, want)
}

// follow gives the job the settings that it is to have, unless somebody has
// edited those that it had.
func (j Jobs) follow(ctx context.Context, found store.JobView, want domain.JobSpec) (store.JobView, error) {
	is, wanted := digest(&found.Spec), digest(&want)
	if is == wanted || is != found.DeclarationHash {
		return found, nil
	}
	next := found.Spec
	next.DispatchTimeout = want.DispatchTimeout
	next.Timeout, next.Retry, next.OnLost, next.OnSuccess, next.OnFailure = want.Timeout, want.Retry, want.OnLost, want.OnSuccess, want.OnFailure
	next.Routing, next.RoutingKey, next.Require, next.Prefer, next.SendRetry = want.Routing, want.RoutingKey, want.Require, want.Prefer, want.SendRetry
	next.Blocking, next.Parallelism, next.Priority = want.Blocking, want.Parallelism, want.Priority
	changed, err := j.Store.UpdateJob(ctx, store.UpdateJobParams{
		Tenant: found.TenantID, ID: found.ID, IfRevision: found.Revision, Spec: next, Source: found.Source,
		DeclarationHash: wanted, By: madeBy, Next: never,
	})
	if domain.Is(err, domain.CodeRevisionMismatch) { // another node, or somebody, was quicker
		return j.Store.FindJobByName(ctx, found.TenantID, want.Name)
	}
	return changed, err
}

// digest tells the settings that follow the handler's declaration from others.
// An edit of anything else writes a dispatch timeout of 0 as what it means.
func digest(s *domain.JobSpec) string {
	wait := cmp.Or(s.DispatchTimeout, domain.DefaultDispatchTimeout)
	sum := sha256.Sum256(fmt.Append(nil, s.Timeout, s.Retry, s.OnLost, s.SendRetry, s.Blocking, s.Parallelism, s.Priority, s.Routing, wait,
		fmt.Sprintf(" %q %q %q %q %q", s.RoutingKey, s.Require.Text, s.Prefer.Text, s.OnSuccess.Handler, s.OnFailure.Handler)))
	for _, f := range []domain.FollowUp{s.OnSuccess, s.OnFailure} {
		if f.Executor != 0 { // others have the digest that they always had
			sum = sha256.Sum256(fmt.Appendf(sum[:], " %d %q %d", f.Executor, f.Request, f.Connection))
		}
	}
	return hex.EncodeToString(sum[:16])
}

const madeBy = "carillon"

func never(time.Time, *domain.JobSpec) time.Time { return domain.Never }

// jobName stays under the limit for names whatever the parts are.
func jobName(executor, handler string, kind Kind) string {
	name := kind.NamePrefix() + executor + "/" + handler
	if len(name) <= domain.MaxNameLength {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return kind.NamePrefix() + hex.EncodeToString(sum[:16])
}

// specOf is what the job is to be.
func (j Jobs) specOf(executor string, handler domain.Handler, kind Kind) domain.JobSpec {
	spec := domain.JobSpec{
		Name: jobName(executor, handler.Name, kind), Description: "Calls of the handler " + handler.Name,
		Handler: handler.Name, Schedule: domain.ScheduleSpec{Kind: domain.ScheduleNone, Zone: "UTC", Dialect: "auto"},
		Misfire: domain.Misfire{Policy: domain.MisfireSkip}, Routing: domain.RouteRoundRobin, Blocking: domain.BlockParallel,
		Retry: domain.Retry{MaxAttempts: 1, Delay: time.Second, Backoff: 2, MaxDelay: time.Minute}, OnLost: domain.OnLostAuto,
		Alert: domain.Alert{OnFailure: true}, // its caller sees by itself that no executor is there
	}
	if kind == Callback {
		spec.Description = "Runs of the callback " + handler.Name
		spec.Retry = domain.Retry{MaxAttempts: 10, Delay: 5 * time.Second, Backoff: 2, MaxDelay: 10 * time.Minute}
		spec.OnLost, spec.DispatchTimeout = domain.OnLostRetry, 24*time.Hour
		spec.Alert = domain.Alert{OnFailure: true, IncludeNoExecutor: true}
	}
	if kind == Timer {
		spec.Description = "Timers of the handler " + handler.Name
		spec.DispatchTimeout = 24 * time.Hour
		spec.Alert = domain.Alert{OnFailure: true, IncludeNoExecutor: true}
	}
	if own, is := j.Handlers.Find(handler.Name); is && executor == domain.BuiltInExecutor && own.CallRetry != (domain.Retry{}) {
		spec.Retry = own.CallRetry
	}
	said := handler.Calls
	if said == nil {
		return spec
	}
	attempts := spec.Retry.MaxAttempts
	if said.Retry != (domain.Retry{}) {
		spec.Retry = said.Retry
	}
	if said.Retry.MaxAttempts == 0 {
		spec.Retry.MaxAttempts = attempts
	}
	if said.DispatchTimeout > 0 {
		spec.DispatchTimeout = said.DispatchTimeout
	}
	spec.Timeout, spec.SendRetry, spec.Priority = said.Timeout, said.SendRetry, said.Priority
	spec.Routing, spec.RoutingKey, spec.Require, spec.Prefer = said.Routing, said.RoutingKey, said.Require, said.Prefer
	spec.Blocking, spec.Parallelism = said.Blocking, said.Parallelism
	if kind != Callback { // a callback runs at least once; one that is followed by itself would never end
		spec.OnLost, spec.OnSuccess, spec.OnFailure = said.OnLost, said.OnSuccess, said.OnFailure
	}
	return spec
}

// maxLooked is how many jobs of an executor are looked at for their owner.
const maxLooked = 200

// owner is the owner of the handler's other jobs, if they have one and the same, or else of
// the executor's other jobs. Without such an owner the tenant's default channels get the
// alerts.
func (j Jobs) owner(ctx context.Context, executor domain.Executor, handler string) (domain.Owner, error) {
	for _, of := range []string{handler, ""} {
		jobs, err := j.Store.ListJobs(ctx, store.ListJobsParams{
			Tenant: executor.TenantID, Executor: executor.ID, Handler: of, Sort: store.SortByName, Limit: maxLooked,
		})
		if err != nil {
			return domain.Owner{}, fmt.Errorf("look for an owner: %w", err)
		}
		owners := map[string]domain.Owner{}
		for n := range jobs {
			if o := jobs[n].Spec.Owner; o.Email != "" {
				owners[o.Email] = o
			}
		}
		for _, o := range owners {
			if len(owners) == 1 {
				return o, nil
			}
		}
	}
	return domain.Owner{}, nil
}

func (j Jobs) make(ctx context.Context, executor domain.Executor, spec domain.JobSpec, kind Kind) (err error) {
	if spec.Owner, err = j.owner(ctx, executor, spec.Handler); err != nil {
		return err
	}
	if err := domain.CheckSpec(&spec); err != nil {
		return err
	}
	id, now := domain.JobID(j.NewID()), j.Now()
	_, err = j.Store.CreateJob(ctx, domain.Job{
		ID: id, TenantID: executor.TenantID, Executor: executor.ID, Partition: domain.PartitionOf(id),
		State: domain.JobEnabled, Kind: kind, Source: domain.SourceConsole, DeclarationHash: digest(&spec), Revision: 1,
		Spec: spec, CreatedAt: now, UpdatedAt: now, CreatedBy: madeBy, UpdatedBy: madeBy,
	}, never)
	return err
}
