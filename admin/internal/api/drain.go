package api

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// RemovedInstance says what comes of an instance that is not to come back.
type RemovedInstance struct {
	Instance   Instance     `json:"instance" doc:"As it was"`
	DenialID   string       `json:"denialId" doc:"The denial that keeps the process out; deleting it lets the process in again"`
	LeaseUntil string       `json:"leaseUntil" format:"date-time" doc:"Until then the process may go on with what it runs, and stops it; shortly after that the runs are decided"`
	Runs       []RemovedRun `json:"runs" doc:"What it ran, at most 1,000"`
}

// RemovedRun is a run of a removed instance.
type RemovedRun struct {
	ID      string `json:"id" doc:"Id of the run"`
	JobName string `json:"jobName" doc:"Name of its job"`
	State   string `json:"state" enum:"offered,running,cancelling" doc:"State of the run"`
	Then    string `json:"then" enum:"retried,lost,cancelled" doc:"What becomes of it unless its result still comes: retried on another instance; lost, because its job does not allow to repeat what may have happened; cancelled, as was asked for"`
}

type removeInstanceInput struct {
	ID     string `path:"id" doc:"Id of what the address names, a decimal string"`
	Reason string `query:"reason" maxLength:"1000" doc:"Why; for those who read the list of denials"`
}

// maxRemovedRuns bounds how many runs a removal names.
const maxRemovedRuns = 1000

// drains take instances out of service, for a while or for good.
type drains struct {
	// fixed after construction
	store interface {
		store.Executors
		store.Trust
		store.Runs
		store.Specs
	}
	newID         func() int64
	now           func() time.Time
	denied        func()
	drainsChanged func(ctx context.Context)
	log           *slog.Logger
}

func (ds *drains) register(server *web.Server) {
	web.Register(server, web.May(domain.PermOperate).InExecutors(), web.Operation{
		Method: http.MethodPut, Path: web.Base + "/instances/{id}/drain", ID: "drain-instance", Tag: "executors", Summary: "Let an instance take nothing new",
		Description: "From a second later on it gets no runs; what it runs goes on to its end. It stays drained, also when it connects again, until it is undone or the process ends: a new process is not drained. 409 when it has gone.",
		Errors:      []int{http.StatusConflict},
	}, func(ctx context.Context, id auth.Identity, in *web.IDInput) (*struct{ Body Instance }, error) {
		return ds.drainInstance(ctx, id, in.ID, false)
	})
	web.Register(server, web.May(domain.PermOperate).InExecutors(), web.Operation{
		Method: http.MethodDelete, Path: web.Base + "/instances/{id}/drain", ID: "undrain-instance", Tag: "executors", Summary: "Let an instance take runs again",
		Description: "Within a second. One that its own process drains goes on draining. 409 when it has gone.",
		Errors:      []int{http.StatusConflict},
	}, func(ctx context.Context, id auth.Identity, in *web.IDInput) (*struct{ Body Instance }, error) {
		return ds.drainInstance(ctx, id, in.ID, true)
	})
	web.Register(server, web.May(domain.PermAdmin), web.Operation{
		Method: http.MethodDelete, Path: web.Base + "/instances/{id}", ID: "remove-instance", Tag: "executors", Summary: "Remove an instance, with what it runs",
		Description: "Its sessions end on all nodes within seconds, and the process cannot connect again, whatever it shows, until the denial that the answer names is deleted. It stops what it runs when its lease is over; then the runs are retried or lost, as their jobs say. The answer names them. Drain it first to lose nothing. " +
			"One that has gone is kept out as well. A new process is not concerned: revoke the join token to keep new ones out.",
	}, ds.removeInstance)
}

func (ds *drains) drainInstance(ctx context.Context, id auth.Identity, text string, undo bool) (*struct{ Body Instance }, error) {
	iid, err := domain.ParseID[domain.InstanceID](text)
	if err != nil {
		return nil, err
	}
	i, err := ds.store.DrainInstance(ctx, store.DrainInstanceParams{Tenant: id.Tenant, ID: iid, By: id.Actor(), Undo: undo})
	if err != nil {
		return nil, err
	}
	ds.drainsChanged(ctx)
	ds.log.Info("instance drained", "tenant_id", id.Tenant, "instance_id", iid, "instance", i.Name, "undone", undo, "by", id.Actor())
	return &struct{ Body Instance }{instanceOf(i, ds.now())}, nil
}

func (ds *drains) removeInstance(ctx context.Context, id auth.Identity, in *removeInstanceInput) (*struct{ Body RemovedInstance }, error) {
	iid, err := domain.ParseID[domain.InstanceID](in.ID)
	if err != nil {
		return nil, err
	}
	// Drained first, so that nothing is added to what the answer names.
	i, err := ds.store.DrainInstance(ctx, store.DrainInstanceParams{Tenant: id.Tenant, ID: iid, By: id.Actor()})
	if domain.Is(err, domain.CodeConflict) { // it has gone, and may come back
		i, err = ds.store.FindInstance(ctx, id.Tenant, iid)
	}
	if err != nil {
		return nil, err
	}
	ds.drainsChanged(ctx)
	denial, err := ds.store.CreateDenial(ctx, domain.Denial{
		ID: ds.newID(), TenantID: id.Tenant, Executor: i.Executor, Kind: domain.DenyInstance, Subject: i.BootID, Label: i.Name,
		Reason: strings.TrimSpace(in.Reason), CreatedBy: id.Actor(),
	})
	if err != nil {
		return nil, err
	}
	ds.denied()
	now := ds.now()
	out := RemovedInstance{Instance: instanceOf(i, now), DenialID: domain.UserID(denial.ID).String(), LeaseUntil: web.Instant(i.LeaseUntil), Runs: []RemovedRun{}}
	rows, err := ds.store.ListExecutions(ctx, store.ListExecutionsParams{
		Tenant: id.Tenant, Instance: iid, States: []domain.State{domain.Offered, domain.Running, domain.Cancelling}, Limit: maxRemovedRuns,
	})
	if err != nil {
		return nil, err
	}
	for i := range rows {
		run := RemovedRun{ID: rows[i].ID.String(), JobName: rows[i].JobName, State: rows[i].State.String()}
		if run.Then, err = ds.lossOf(ctx, rows[i].Execution, now); err != nil {
			return nil, err
		}
		out.Runs = append(out.Runs, run)
	}
	ds.log.Warn("instance removed", "tenant_id", id.Tenant, "instance_id", iid, "instance", out.Instance.Name, "runs", len(out.Runs), "by", id.Actor())
	return &struct{ Body RemovedInstance }{out}, nil
}

// lossOf is what becomes of a run when its instance is gone.
func (ds *drains) lossOf(ctx context.Context, e domain.Execution, now time.Time) (string, error) {
	if e.State == domain.Offered {
		return "retried", nil
	}
	spec, err := ds.store.JobSpec(ctx, e.TenantID, e.JobID, e.Revision)
	if err != nil {
		return "", err
	}
	_, err = e.Lose(now, domain.ReasonLeaseExpired, "", domain.PolicyOf(spec.For(e.Part), e.Idempotent))
	switch e.State {
	case domain.RetryWait, domain.Due:
		return "retried", err
	case domain.Cancelled:
		return "cancelled", err
	}
	return "lost", err
}
