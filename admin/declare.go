package admin

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"time"

	gproto "google.golang.org/protobuf/proto"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/proto"
)

// declarer makes jobs from what applications declare in code. A declared job
// follows its declaration until somebody edits it in the console: from then on
// it belongs to the console, and a different declaration is answered with a
// notice.
type declarer struct {
	jobs store.Jobs
	// calendars finds what declarations name; nil where none does.
	calendars store.Calendars
	newID     func() int64
	check     func(domain.ScheduleSpec) error
	next      func(id domain.JobID) store.NextFireFunc
	plan      store.PlanFunc
	changed   func()
	now       func() time.Time
	log       *slog.Logger
}

const declaredBy = "application"

// Declare implements gateway.Declarer.
func (d *declarer) Declare(ctx context.Context, tenant domain.TenantID, executor domain.ExecutorID, handlers []*proto.Handler) []*proto.Notice {
	var notices []*proto.Notice
	for _, h := range handlers {
		for _, decl := range h.Jobs {
			if err := d.declare(ctx, tenant, executor, h, decl); err != nil {
				notices = append(notices, &proto.Notice{
					Code: string(domain.CodeOf(err)), Subject: decl.Name, Message: err.Error(),
				})
			}
		}
	}
	return notices
}

func (d *declarer) declare(ctx context.Context, tenant domain.TenantID, executor domain.ExecutorID, h *proto.Handler, decl *proto.JobDeclaration) error {
	hash, err := declarationHash(h.Name, decl)
	if err != nil {
		return err
	}
	found, err := d.jobs.FindJobByName(ctx, tenant, decl.Name)
	switch {
	case domain.Is(err, domain.CodeNotFound):
		return d.create(ctx, tenant, executor, h, decl, hash)
	case err != nil:
		return err
	case found.DeclarationHash == hash && found.Executor == executor:
		return nil
	case found.Executor != executor:
		return domain.Errorf(domain.CodeConflict, "a job %q exists already and belongs to the executor %q", decl.Name, found.ExecutorName)
	case found.Source != domain.SourceCode:
		return domain.Errorf(domain.CodeConflict, "the job %q was edited in the console; the declaration in code is not applied", decl.Name)
	}
	spec, err := d.specOf(ctx, tenant, h, decl)
	if err != nil {
		return err
	}
	spec.Alert, spec.Labels = found.Spec.Alert, found.Spec.Labels
	if decl.OwnerEmail == "" {
		spec.Owner = found.Spec.Owner
	}
	_, err = d.jobs.UpdateJob(ctx, store.UpdateJobParams{
		Tenant: tenant, ID: found.ID, IfRevision: found.Revision, Spec: spec,
		Source: domain.SourceCode, DeclarationHash: hash, By: declaredBy, Next: d.next(found.ID), Plan: d.plan,
	})
	if domain.Is(err, domain.CodeRevisionMismatch) {
		return nil // another instance of the same version was quicker
	}
	if err == nil {
		d.log.Info("job follows its changed declaration", "tenant_id", tenant, "job_id", found.ID, "job", decl.Name)
		d.changed()
	}
	return err
}

func (d *declarer) create(ctx context.Context, tenant domain.TenantID, executor domain.ExecutorID, h *proto.Handler, decl *proto.JobDeclaration, hash string) error {
	spec, err := d.specOf(ctx, tenant, h, decl)
	if err != nil {
		return err
	}
	id := domain.JobID(d.newID())
	now := d.now()
	_, err = d.jobs.CreateJob(ctx, domain.Job{
		ID: id, TenantID: tenant, Executor: executor, Partition: domain.PartitionOf(id),
		State: domain.JobEnabled, Source: domain.SourceCode, DeclarationHash: hash, Revision: 1,
		Spec: spec, CreatedAt: now, UpdatedAt: now, CreatedBy: declaredBy, UpdatedBy: declaredBy,
	}, d.next(id))
	if domain.Is(err, domain.CodeConflict) {
		return nil // another instance of the same application was quicker
	}
	if err == nil {
		d.log.Info("job declared by the application", "tenant_id", tenant, "job_id", id, "job", decl.Name)
		d.changed()
	}
	return err
}

func declarationHash(handler string, decl *proto.JobDeclaration) (string, error) {
	raw, err := gproto.MarshalOptions{Deterministic: true}.Marshal(decl)
	if err != nil {
		return "", fmt.Errorf("hash declaration: %w", err)
	}
	sum := sha256.Sum256(append([]byte(handler+"\x00"), raw...))
	return hex.EncodeToString(sum[:16]), nil
}

func (d *declarer) specOf(ctx context.Context, tenant domain.TenantID, h *proto.Handler, decl *proto.JobDeclaration) (domain.JobSpec, error) {
	spec := domain.JobSpec{
		Name: decl.Name, Description: first(decl.Description, h.Description), Handler: h.Name, Input: decl.Input,
		Schedule: domain.ScheduleSpec{Kind: domain.ScheduleNone, Zone: first(decl.Zone, "UTC"), Dialect: first(decl.Dialect, "auto")},
		Misfire:  domain.Misfire{Policy: domain.MisfirePolicy(first(decl.Misfire, string(domain.MisfireSkip)))},
		Routing:  domain.Routing(first(decl.Routing, string(domain.RouteRoundRobin))),
		Blocking: domain.Blocking(first(decl.Blocking, string(domain.BlockSerial))), Parallelism: int(decl.Parallelism), Priority: int(decl.Priority),
		Retry: domain.Retry{
			MaxAttempts: max(1, int(decl.MaxAttempts)), Backoff: 1,
			Delay: time.Duration(decl.RetryDelayMs) * time.Millisecond,
		},
		Timeout: time.Duration(decl.TimeoutMs) * time.Millisecond,
		OnLost:  domain.OnLostAuto,
		Owner:   domain.Owner{Email: decl.OwnerEmail},

		OnSuccess: decl.OnSuccess, OnFailure: decl.OnFailure,
		Alert: domain.Alert{OnFailure: true, IncludeNoExecutor: true},
	}
	if err := declaredRouting(&spec, decl); err != nil {
		return spec, err
	}
	spec.Misfire.Threshold = time.Duration(decl.MisfireThresholdMs) * time.Millisecond
	spec.Misfire.Window = time.Duration(decl.MisfireWindowMs) * time.Millisecond
	spec.Misfire.MaxRuns = int(decl.MisfireMaxRuns)
	spec.Sharding = declaredSharding(decl.Sharding)
	declaredSchedule(&spec.Schedule, decl, d.now())
	var err error
	if spec.Schedule.Calendars, err = d.declaredCalendars(ctx, tenant, decl.Calendars); err != nil {
		return spec, err
	}
	if decl.Name == "" || len(decl.Name) > proto.MaxName {
		return spec, domain.Invalid("job.name", "must have 1 to %d bytes", proto.MaxName)
	}
	if domain.IsAgentHandler(spec.Handler) {
		return spec, domain.Invalid("job.handler", "handlers of agents take no jobs that are declared in code")
	}
	if err := domain.CheckSpec(&spec); err != nil {
		return spec, err
	}
	return spec, d.check(spec.Schedule)
}

// declaredRouting reads which instances get the runs, and how often they are sent.
func declaredRouting(spec *domain.JobSpec, decl *proto.JobDeclaration) (err error) {
	spec.RoutingKey = decl.RoutingKey
	spec.SendRetry = domain.SendRetry{
		MaxSends: int(decl.MaxSends), Backoff: float64(decl.SendBackoffPermille) / 1000, Delay: time.Duration(decl.SendDelayMs) * time.Millisecond,
	}
	if spec.Require, err = domain.ParseSelector(decl.RequireLabels); err != nil {
		return domain.Invalid("job.requireLabels", "%s", err.Error())
	}
	if spec.Prefer, err = domain.ParseSelector(decl.PreferLabels); err != nil {
		return domain.Invalid("job.preferLabels", "%s", err.Error())
	}
	return nil
}

func first(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}
