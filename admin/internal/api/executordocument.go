package api

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/carillon-sched/carillon/admin/internal/api/document"
	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/resource"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// executorDocumentKind is the kind of documents that are executors.
var executorDocumentKind = resource.Of(resource.Kind{
	Name: "Executor", Component: "ExecutorDocument", Noun: "executor", Path: "executors", Read: domain.PermRead, Edit: domain.PermEdit, Partial: true,
}, resource.Rules[ExecutorSettings]{})

// ExecutorSettings are what is written of an executor beside its name.
type ExecutorSettings struct {
	Description string   `json:"description,omitempty" maxLength:"1024" doc:"What it is for, for people"`
	MaxRunning  int      `json:"maxRunning,omitempty" minimum:"0" maximum:"100000" doc:"Runs that may go on at once; 0: no limit"`
	CallbacksTo []string `json:"callbacksTo,omitempty" maxItems:"30" doc:"Executors that callbacks of jobs declared in its code may use beside its own, by name; carillon: addresses and connections"`
}

// registerDocuments adds executors as documents. The built-in one is none: the admin nodes are
// its instances, and a tenant gets it with its first connection or script.
func (xs *executors) registerDocuments(server *web.Server) {
	k := &document.Kept[ExecutorSettings]{Kind: executorDocumentKind, NewID: xs.newID, Read: xs.readDocuments, Check: checkExecutor, Write: xs.writeDocument, Removable: xs.removable, Remove: xs.removeDocument}
	xs.registerRestore(server)
	op := k.Add(server)
	op.Tag, op.Summary = "executors", "List executors as documents"
	op.Description = "By name, as apply-documents takes them. The built-in executor is left out."
	web.Register(server, web.May(domain.PermRead).InExecutors(), op, func(ctx context.Context, id auth.Identity, in *web.PageParams) (*document.List, error) {
		at, err := web.DecodeCursor(in.Cursor, op.ID)
		if err != nil {
			return nil, err
		}
		rows, err := xs.store.ListExecutors(ctx, store.ListExecutorsParams{Tenant: id.Tenant, Within: id.Reach, After: at.Name, Limit: in.Limit + 1})
		if err != nil {
			return nil, err
		}
		rows, more := web.Cut(rows, in.Limit)
		var next *string
		if more {
			next = web.Cursor{List: op.ID, Name: rows[len(rows)-1].Name}.Encode()
		}
		rows = slices.DeleteFunc(rows, func(e store.ExecutorSummary) bool { return e.BuiltIn })
		list := domain.Collect(rows, func(e *store.ExecutorSummary) *resource.Document[ExecutorSettings] {
			return executorDocument(&e.Executor)
		})
		if err := xs.addLimits(ctx, id.Tenant, list); err != nil {
			return nil, err
		}
		return k.Page(list, next)
	})
}

// DeletedExecutor is an executor that can be restored.
type DeletedExecutor struct {
	ID        string `json:"id" doc:"Id of the executor, a decimal string"`
	Name      string `json:"name" doc:"Its name"`
	Version   int64  `json:"version" doc:"Its version when it was deleted"`
	DeletedAt string `json:"deletedAt" format:"date-time" doc:"Time of its deletion"`
}

func (xs *executors) registerRestore(server *web.Server) {
	web.Register(server, web.May(domain.PermRead), web.Operation{
		Method: http.MethodGet, Path: web.Base + "/deleted-executors", ID: "list-deleted-executors", Tag: "executors",
		Summary: "List deleted executors", Description: "The newest 1,000 of the last 30 days, the last deleted first. They can be restored.",
	}, func(ctx context.Context, id auth.Identity, in *web.PageQuery) (*web.PageOutput[DeletedExecutor], error) {
		rows, err := xs.store.ListDeletedExecutors(ctx, store.ListDeletedParams{Tenant: id.Tenant, Within: id.Reach, Since: restorableSince(xs.now()), Limit: web.MaxListed})
		return web.ListPage(rows, err, func(r *store.Deleted) DeletedExecutor {
			return DeletedExecutor{domain.ExecutorID(r.ID).String(), r.Name, r.Version, web.Instant(r.At)}
		}, in.ShortPage, "deleted-executors")
	})
	web.Register(server, web.May(domain.PermEdit), web.Operation{
		Method: http.MethodPost, Path: web.Base + "/executors/{id}/restore", ID: "restore-executor", Tag: "executors", Errors: []int{http.StatusConflict},
		Summary: "Restore a deleted executor", Description: "By its id, which it keeps with its description, its limit and the reach of its callbacks. It is enabled. Its jobs are restored by restore-job." +
			" Join tokens, denials, former names and what its processes had registered are not restored. Refused if another executor has its name now.",
	}, func(ctx context.Context, id auth.Identity, in *web.IDInput) (*struct{ Body Executor }, error) {
		eid, err := domain.ParseID[domain.ExecutorID](in.ID)
		if err != nil {
			return nil, err
		}
		e, err := xs.store.RestoreExecutor(ctx, id.Tenant, eid, restorableSince(xs.now()))
		if err != nil {
			return nil, err
		}
		xs.log.Info("executor restored", "tenant_id", id.Tenant, "executor", e.Name, "executor_id", e.ID, "by", id.Actor())
		return &struct{ Body Executor }{executorOf(&store.ExecutorSummary{Executor: e})}, nil
	})
}

func executorDocument(e *domain.Executor) *resource.Document[ExecutorSettings] {
	return &resource.Document[ExecutorSettings]{
		Meta: resource.Meta{ID: int64(e.ID), Tenant: e.TenantID, Name: e.Name, Version: e.Version, CreatedAt: e.CreatedAt, UpdatedAt: e.CreatedAt},
		Spec: ExecutorSettings{Description: e.Description, CallbacksTo: e.CallbacksTo},
	}
}

func (xs *executors) addLimits(ctx context.Context, tenant domain.TenantID, list []*resource.Document[ExecutorSettings]) error {
	limits, err := xs.store.ListLimits(ctx, tenant)
	most := map[int64]int{}
	for _, l := range limits {
		most[int64(l.Executor)] = l.Max
	}
	for _, d := range list {
		if d != nil {
			d.Spec.MaxRunning = most[d.ID]
		}
	}
	return err
}

func (xs *executors) readDocuments(ctx context.Context, id auth.Identity, names []string, ids []int64) ([]*resource.Document[ExecutorSettings], error) {
	out := make([]*resource.Document[ExecutorSettings], 0, len(names)+len(ids))
	add := func(e domain.Executor, err error) error {
		if err == nil {
			out = append(out, executorDocument(&e))
		} else if domain.Is(err, domain.CodeNotFound) {
			out, err = append(out, nil), nil
		}
		return err
	}
	for _, name := range names {
		if err := add(xs.store.FindExecutorByName(ctx, id.Tenant, name)); err != nil {
			return nil, err
		}
	}
	for _, one := range ids {
		if err := add(xs.store.FindExecutor(ctx, id.Tenant, domain.ExecutorID(one))); err != nil {
			return nil, err
		}
	}
	return out, xs.addLimits(ctx, id.Tenant, out)
}

func checkExecutor(_ context.Context, _ auth.Identity, d *resource.Draft[ExecutorSettings], _ resource.Coming) error {
	switch {
	case !domain.ExecutorNames.MatchString(d.Name):
		return errExecutorName()
	case d.Name == domain.BuiltInExecutor:
		return domain.Invalid("body.name", "is the name of the executor that belongs to the admin nodes")
	case d.Old != nil && d.Old.Name != d.Name:
		return domain.Invalid("body.name", "is a former name of the executor %q: use that one, or remove the former name", d.Old.Name)
	}
	list, err := readCallbacksTo("body.spec.callbacksTo", d.Spec.CallbacksTo)
	d.Spec.CallbacksTo = list
	return err
}

// writeDocument writes the executor, and then its limit. If it ends in between, the next apply
// writes the limit.
func (xs *executors) writeDocument(ctx context.Context, id auth.Identity, meta resource.Meta, old *resource.Document[ExecutorSettings], spec *ExecutorSettings) (version int64, err error) {
	e := domain.Executor{ID: domain.ExecutorID(meta.ID), TenantID: id.Tenant, Name: meta.Name, Description: spec.Description, CallbacksTo: spec.CallbacksTo, Version: 1, CreatedAt: xs.now()}
	switch {
	case old == nil:
		err = xs.store.CreateExecutor(ctx, e)
	case old.Spec.Description != spec.Description || !slices.Equal(old.Spec.CallbacksTo, spec.CallbacksTo):
		e, err = xs.store.UpdateExecutor(ctx, store.UpdateExecutorParams{Tenant: id.Tenant, ID: e.ID, IfVersion: old.Version, Description: &spec.Description, CallbacksTo: &spec.CallbacksTo})
	default:
		e.Version = old.Version
	}
	if err != nil {
		return 0, err
	}
	if most := spec.MaxRunning; old == nil && most > 0 || old != nil && old.Spec.MaxRunning != most {
		if err := xs.store.SetLimit(ctx, domain.Limit{LimitKey: domain.LimitKey{Tenant: id.Tenant, Executor: e.ID}, Max: most}); err != nil {
			return 0, fmt.Errorf("set the limit of the executor: %w", err)
		}
	}
	if old != nil && !slices.Equal(old.Spec.CallbacksTo, spec.CallbacksTo) {
		xs.codeAllowed(ctx, id.Tenant, e.ID)
	}
	xs.log.Info("executor applied", "tenant_id", id.Tenant, "executor", meta.Name, "version", e.Version, "by", id.Actor())
	return e.Version, nil
}

// removable refuses the deletion of an executor that has more than the going jobs.
func (xs *executors) removable(ctx context.Context, id auth.Identity, old *resource.Document[ExecutorSettings], going resource.Going) error {
	use, err := xs.store.ExecutorUse(ctx, id.Tenant, domain.ExecutorID(old.ID))
	if err != nil {
		return err
	}
	var ids []domain.JobID
	for m := range going {
		if m.Kind == jobKind.Name {
			ids = append(ids, domain.JobID(m.ID))
		}
	}
	if use.Jobs+use.Callbacks > 0 && len(ids) > 0 {
		jobs, err := xs.store.FindJobsByID(ctx, id.Tenant, ids)
		if err != nil {
			return err
		}
		for i := range jobs {
			if int64(jobs[i].Executor) == old.ID {
				use.Jobs--
			}
			if jobs[i].Spec.OnSuccess != (domain.FollowUp{}) || jobs[i].Spec.OnFailure != (domain.FollowUp{}) {
				use.Callbacks--
			}
		}
	}
	if err := use.InTheWay(old.Name, false); err != nil {
		return domain.Errorf(domain.CodeInUse, "%s: carillon executor delete %s --jobs --instances", err, old.Name)
	}
	return nil
}

func (xs *executors) removeDocument(ctx context.Context, id auth.Identity, old *resource.Document[ExecutorSettings]) error {
	err := xs.store.DeleteExecutor(ctx, store.DeleteExecutorParams{Tenant: id.Tenant, ID: domain.ExecutorID(old.ID), IfVersion: old.Version})
	if err == nil {
		xs.log.Info("executor deleted", "tenant_id", id.Tenant, "executor", old.Name, "executor_id", old.ID, "by", id.Actor())
	}
	return err
}
