package api

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// Maintenance is a time in which nothing of a scope starts, or of which people are
// told.
type Maintenance struct {
	ID      string   `json:"id" doc:"Id, a decimal string"`
	Kind    string   `json:"kind" enum:"cluster,tenant,executor" doc:"What is under maintenance"`
	Subject *web.Ref `json:"subject" doc:"The tenant, or the executor; null of the cluster"`
	Mode    string   `json:"mode" enum:"wait,skip,continue" doc:"wait: nothing starts, and what is due waits; skip: nothing starts, and fire times of schedules are excluded; continue: it is announced only"`
	Reason  string   `json:"reason" doc:"What for; empty: not said"`
	By      string   `json:"by" doc:"Who switched it on"`
	Since   string   `json:"since" format:"date-time" doc:"When it began"`
	Until   *string  `json:"until" format:"date-time" doc:"When it ends by itself, or ended; null: when it is switched off"`
	Active  bool     `json:"active" doc:"It is on"`
	EndedBy string   `json:"endedBy" doc:"Who switched it off; empty: nobody, or not yet"`
}

// MaintenanceRequest switches maintenance on.
type MaintenanceRequest struct {
	Mode   string  `json:"mode" enum:"wait,skip,continue" doc:"What becomes of what is due; see the modes of a maintenance"`
	Reason string  `json:"reason,omitempty" maxLength:"500" doc:"What for; shown on every page of the console"`
	Until  *string `json:"until,omitempty" format:"date-time" doc:"When it ends by itself; default: when it is switched off"`
}

type maintenanceInput struct{ Body MaintenanceRequest }

type maintenanceOfInput struct {
	ID   string `path:"id" doc:"Id of what the address names, a decimal string"`
	Body MaintenanceRequest
}

type maintenanceOutput struct{ Body Maintenance }

type listMaintenanceInput struct {
	web.ShortPage
	Ended bool `query:"ended" doc:"Also those that are over"`
}

// maxMaintenanceListed bounds a list of them.
const maxMaintenanceListed = 1000

// maintenance is switched on and off, and holds back runs that people ask for.
type maintenance struct {
	// fixed after construction
	store interface {
		store.Maintenance
		store.Executors
		store.MaintenanceView
	}
	now         func() time.Time
	jobsChanged func()
	log         *slog.Logger
}

func (mt *maintenance) register(server *web.Server) {
	const (
		on = "Nothing is offered or let start any more, on all nodes at the latest a second later; attempts that run go on. " +
			"What is on for the same scope ends then. Modes: wait, skip, continue."
		off = "What has waited starts within two seconds. 404 when none is on."
	)
	web.Register(server, web.May(domain.PermRead), web.Operation{
		Method: http.MethodGet, Path: web.Base + "/maintenance", ID: "list-maintenance", Tag: "maintenance",
		Summary:     "List the maintenance of the tenant, its executors and the cluster, newest first",
		Description: "That is on; with ended also what was.",
	}, mt.listMaintenance)
	mt.registerScope(server, web.PlatformAdmin, "/cluster/maintenance", "cluster", "the whole cluster", on, off, func(auth.Identity) domain.MaintenanceScope { return domain.MaintenanceScope{} })
	mt.registerScope(server, web.May(domain.PermAdmin), "/maintenance", "tenant", "the tenant", on, off, func(id auth.Identity) domain.MaintenanceScope {
		return domain.MaintenanceScope{Tenant: id.Tenant}
	})
	web.Register(server, web.May(domain.PermAdmin), web.Operation{
		Method: http.MethodPut, Path: web.Base + "/executors/{id}/maintenance", ID: "start-executor-maintenance", Tag: "maintenance",
		Summary: "Switch maintenance of an executor on", Description: on,
	}, func(ctx context.Context, id auth.Identity, in *maintenanceOfInput) (*maintenanceOutput, error) {
		e, err := web.ByID(ctx, id.Tenant, in.ID, mt.store.FindExecutor)
		if err != nil {
			return nil, err
		}
		return mt.startMaintenance(ctx, id, domain.MaintenanceScope{Tenant: id.Tenant, Executor: e.ID}, in.Body)
	})
	web.Register(server, web.May(domain.PermAdmin), web.Operation{
		Method: http.MethodDelete, Path: web.Base + "/executors/{id}/maintenance", ID: "end-executor-maintenance", Tag: "maintenance",
		Summary: "Switch maintenance of an executor off", Description: off,
	}, func(ctx context.Context, id auth.Identity, in *web.IDInput) (*maintenanceOutput, error) {
		e, err := web.ByID(ctx, id.Tenant, in.ID, mt.store.FindExecutor)
		if err != nil {
			return nil, err
		}
		return mt.endMaintenance(ctx, id, domain.MaintenanceScope{Tenant: id.Tenant, Executor: e.ID})
	})
}

// maintainWith registers the routes of a scope that its address names alone.
func (mt *maintenance) registerScope(server *web.Server, policy web.Policy, path, kind, what, on, off string, scope func(auth.Identity) domain.MaintenanceScope) {
	web.Register(server, policy, web.Operation{
		Method: http.MethodPut, Path: web.Base + path, ID: "start-" + kind + "-maintenance", Tag: "maintenance",
		Summary: "Switch maintenance of " + what + " on", Description: on,
	}, func(ctx context.Context, id auth.Identity, in *maintenanceInput) (*maintenanceOutput, error) {
		return mt.startMaintenance(ctx, id, scope(id), in.Body)
	})
	web.Register(server, policy, web.Operation{
		Method: http.MethodDelete, Path: web.Base + path, ID: "end-" + kind + "-maintenance", Tag: "maintenance",
		Summary: "Switch maintenance of " + what + " off", Description: off,
	}, func(ctx context.Context, id auth.Identity, _ *struct{}) (*maintenanceOutput, error) {
		return mt.endMaintenance(ctx, id, scope(id))
	})
}

func (mt *maintenance) startMaintenance(ctx context.Context, id auth.Identity, scope domain.MaintenanceScope, in MaintenanceRequest) (*maintenanceOutput, error) {
	var r reader
	m := domain.Maintenance{MaintenanceScope: scope, Mode: domain.MaintenanceMode(in.Mode), Reason: strings.TrimSpace(in.Reason), By: id.Actor(), EndsAt: r.Instant("body.until", in.Until)}
	if domain.HasControl(m.Reason) {
		r.Fail("body.reason", nil, "must not contain control characters")
	}
	if err := r.Err(); err != nil {
		return nil, err
	}
	m, err := mt.store.StartMaintenance(ctx, m)
	if err != nil {
		return nil, err
	}
	mt.log.Warn("maintenance switched on", "scope", scope.Kind(), "tenant_id", scope.Tenant, "executor_id", scope.Executor, "mode", string(m.Mode),
		"reason", m.Reason, "until", until(&m), "by", m.By)
	return mt.maintenanceAnswer(ctx, m)
}

func (mt *maintenance) endMaintenance(ctx context.Context, id auth.Identity, scope domain.MaintenanceScope) (*maintenanceOutput, error) {
	m, err := mt.store.EndMaintenance(ctx, scope, id.Actor())
	if err != nil {
		return nil, err
	}
	mt.jobsChanged()
	mt.log.Warn("maintenance switched off", "scope", scope.Kind(), "tenant_id", scope.Tenant, "executor_id", scope.Executor, "by", id.Actor())
	return mt.maintenanceAnswer(ctx, m)
}

// maintenanceAnswer finds the entry, with its names.
func (mt *maintenance) maintenanceAnswer(ctx context.Context, m domain.Maintenance) (*maintenanceOutput, error) {
	list, err := mt.store.ListMaintenance(ctx, store.ListMaintenanceParams{Tenant: m.Tenant, Ended: true, Limit: maxMaintenanceListed})
	if err != nil {
		return nil, err
	}
	for i := range list {
		if list[i].ID == m.ID {
			return &maintenanceOutput{maintenanceOf(&list[i])}, nil
		}
	}
	return &maintenanceOutput{maintenanceOf(&store.MaintenanceEntry{Maintenance: m})}, nil
}

func maintenanceOf(e *store.MaintenanceEntry) Maintenance {
	out := Maintenance{
		ID: strconv.FormatInt(e.ID, 10), Kind: e.Kind(), Mode: string(e.Mode), Reason: e.Reason, By: e.By, Since: web.Instant(e.Since), Active: e.Active, EndedBy: e.EndedBy,
	}
	if e.EndsAt.Before(domain.Never) {
		out.Until = web.InstantOrNull(e.EndsAt)
	}
	switch {
	case e.Executor != 0:
		out.Subject = &web.Ref{ID: e.Executor.String(), Name: e.ExecutorName}
	case e.Tenant != 0:
		out.Subject = &web.Ref{ID: e.Tenant.String(), Name: e.TenantName}
	}
	return out
}

func (mt *maintenance) listMaintenance(ctx context.Context, id auth.Identity, in *listMaintenanceInput) (*web.PageOutput[Maintenance], error) {
	items, err := mt.maintenances(ctx, id, in.Ended)
	if err != nil {
		return nil, err
	}
	return web.SlicePage(items, in.ShortPage, "maintenance")
}

func (mt *maintenance) maintenances(ctx context.Context, id auth.Identity, ended bool) ([]Maintenance, error) {
	list, err := mt.store.ListMaintenance(ctx, store.ListMaintenanceParams{Tenant: id.Tenant, Ended: ended, Limit: maxMaintenanceListed})
	out := make([]Maintenance, 0, len(list))
	for i := range list {
		if e := list[i].Executor; e == 0 || id.Reach.Has(e) {
			out = append(out, maintenanceOf(&list[i]))
		}
	}
	return out, err
}

// maintenancesOn are those that are on, for what is asked often: their names are
// read where there are any.
func (mt *maintenance) maintenancesOn(ctx context.Context, id auth.Identity) ([]Maintenance, error) {
	all, err := mt.store.Maintenances(ctx)
	if err != nil {
		return nil, err
	}
	now := mt.now()
	for scope, list := range all {
		on := func(m domain.Maintenance) bool { return m.At(now) }
		if (scope.Tenant == 0 || scope.Tenant == id.Tenant) && slices.ContainsFunc(list, on) {
			return mt.maintenances(ctx, id, false)
		}
	}
	return []Maintenance{}, nil
}

// checkMaintenance refuses a run that a person asks for and that is not to start now,
// unless he says that he knows. What an API key asks for waits.
func (mt *maintenance) checkMaintenance(ctx context.Context, e *domain.Execution, meant bool) error {
	if e.Cause == domain.CauseAPI || meant {
		return nil
	}
	waits := *e
	waits.Cause = domain.CauseAPI
	all, err := mt.store.Maintenances(ctx)
	x := all.Holds(mt.now(), &waits)
	if err != nil || x == nil {
		return err
	}
	return domain.Errorf(domain.CodeMaintenance, "nothing is to start until %s: %s; add duringMaintenance=true to run it all the same", until(x), x.Message())
}

// until says when maintenance ends, for people.
func until(m *domain.Maintenance) string {
	if m.EndsAt.Before(domain.Never) {
		return m.EndsAt.UTC().Format(time.RFC3339)
	}
	return "it is switched off"
}
