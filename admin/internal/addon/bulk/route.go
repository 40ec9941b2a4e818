package bulk

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/internal/spelling"
)

// Deps of Routes. All are needed.
type Deps struct {
	Selection
	NewID func() int64
	// Made lets a worker look for the new operation.
	Made func()
	Log  *slog.Logger
}

// routes are the operations of the API.
type routes struct{ Deps }

type bulkInput struct{ Body BulkRequest }

type bulkOutput struct {
	Status int
	Body   BulkOperation
}

// firstItems is how many items a dry run lists.
const firstItems = 100

// Routes adds the operations.
func Routes(s *web.Server, deps Deps) {
	r := &routes{deps}
	const tag = "bulk"
	web.Register(s, web.May(domain.PermOperate), web.Operation{
		Method: http.MethodPost, Path: web.Base + "/bulk", ID: "create-bulk", Computes: true, Tag: tag, Summary: "Do something with many jobs or runs",
		Description: "An action on the jobs or runs that a filter leaves. The caller needs the right to do it with one of them. The request has the number of items that the caller expects: if it is another one, nothing is done (count_mismatch, with the number). It is done in steps beside the work of others, and goes on when a node stops.",
		Status:      http.StatusAccepted, Errors: []int{http.StatusConflict},
		Also: map[int]string{http.StatusOK: "With dryRun: how many items there are, and the first of them; nothing was done"},
	}, r.create)
	web.Register(s, web.May(domain.PermRead), web.Operation{
		Method: http.MethodGet, Path: web.Base + "/bulk", ID: "list-bulk", Tag: tag, Summary: "Bulk operations, newest first",
		Description: "With how far each of them is. They are kept for 30 days, 100 of a tenant at most.",
	}, r.list)
	web.Register(s, web.May(domain.PermRead), web.Operation{
		Method: http.MethodGet, Path: web.Base + "/bulk/{id}", ID: "get-bulk", Tag: tag, Summary: "One bulk operation",
		Description: "How far it is: the numbers of items that are done, were skipped and have failed.",
	}, func(ctx context.Context, id auth.Identity, in *web.IDInput) (*struct{ Body BulkOperation }, error) {
		o, err := web.ByID(ctx, id.Tenant, in.ID, r.Table.Find)
		return web.AnswerOf(o, err, operationOf)
	})
	web.Register(s, web.May(domain.PermRead), web.Operation{
		Method: http.MethodGet, Path: web.Base + "/bulk/{id}/items", ID: "list-bulk-items", Tag: tag, Summary: "Answers of the items of a bulk operation",
		Description: "Those of items that were skipped or have failed, by id. Items that are done are counted only.",
	}, r.items)
	web.Register(s, web.May(domain.PermOperate), web.Operation{
		Method: http.MethodPost, Path: web.Base + "/bulk/{id}/cancel", ID: "cancel-bulk", Tag: tag, Summary: "End a bulk operation",
		Description: "The items that have an answer stay as they are. At most one page of items is done after the answer.", Errors: []int{http.StatusConflict},
	}, r.cancel)
	web.Register(s, web.May(domain.PermOperate), web.Operation{
		Method: http.MethodPost, Path: web.Base + "/bulk/{id}/retry", ID: "retry-bulk", Tag: tag, Summary: "Do it again with the items that have failed",
		Description: "A new operation of the caller, with the same action. The caller needs the right to do it with one item.",
		Status:      http.StatusAccepted, Errors: []int{http.StatusConflict},
	}, r.retry)
}

func (r *routes) create(ctx context.Context, id auth.Identity, in *bulkInput) (*bulkOutput, error) {
	order, err := in.Body.order(id, time.Now())
	if err != nil {
		return nil, err
	}
	o := Operation{ID: ID(r.NewID()), Tenant: id.Tenant, Order: order, State: Running}
	if err := mayDo(id, o.Action); err != nil {
		return nil, err
	}
	listed := 0
	if in.Body.DryRun {
		domain.AuditOf(ctx).Drop()
		listed = firstItems
	}
	n, first, err := r.count(ctx, &o, listed)
	if err != nil {
		return nil, err
	}
	if o.Total = n; in.Body.DryRun {
		out := operationOf(&o)
		out.ID, out.State, out.CreatedAt = "", "dry_run", ""
		out.Items, out.TotalMore = domain.Collect(first, itemOf), n > MaxItems
		out.Total = min(n, MaxItems)
		return &bulkOutput{Status: http.StatusOK, Body: out}, nil
	}
	switch {
	case n > MaxItems:
		return nil, domain.Invalid("body.filter", "more than %d items match, which is the most; narrow the filter", MaxItems)
	case !in.Body.AnyCount && in.Body.Expected == nil:
		return nil, domain.Invalid("body.expected", "is needed: %s now; give that number, or anyCount", spelling.Count(n, "item matches", "items match"))
	case !in.Body.AnyCount && *in.Body.Expected != n:
		p := web.NewProblem(ctx, http.StatusConflict, domain.CodeCountMismatch, fmt.Sprintf("%s now, not %d: nothing was done", spelling.Count(n, "item matches", "items match"), *in.Body.Expected))
		p.Count = &n
		return nil, p
	}
	return r.make(ctx, id, o)
}

// mayDo refuses who may not do it with one item.
func mayDo(id auth.Identity, a Action) error {
	if id.May(a.Needs()) {
		return nil
	}
	return domain.Errorf(domain.CodeDenied, "your role %q does not allow this (%s needs %q)", id.Role, a, web.PermissionNames(a.Needs())[0])
}

func (r *routes) make(ctx context.Context, id auth.Identity, o Operation) (*bulkOutput, error) {
	var after []Operation
	if !o.Until.IsZero() {
		o.Then = ID(r.NewID())
		after = append(after, o.resume(o.Then))
	}
	o, err := r.Table.Create(ctx, o, after...)
	if err != nil {
		return nil, err
	}
	r.Made()
	r.Log.Info("bulk operation requested", "tenant_id", id.Tenant, "bulk_id", o.ID, "action", string(o.Action), "items", o.Total, "by", id.Actor())
	return &bulkOutput{Status: http.StatusAccepted, Body: operationOf(&o)}, nil
}

type listInput struct{ web.PageParams }

func (r *routes) list(ctx context.Context, id auth.Identity, in *listInput) (*web.PageOutput[BulkOperation], error) {
	at, err := web.DecodeCursor(in.Cursor, "bulk")
	if err != nil {
		return nil, err
	}
	rows, err := r.Table.List(ctx, id.Tenant, ID(at.ID), in.Limit+1)
	return web.RowsPage(rows, err, in.Limit, operationOf, func(last *Operation) web.Cursor {
		return web.Cursor{List: "bulk", ID: int64(last.ID)}
	})
}

type itemsInput struct {
	ID string `path:"id" doc:"Id of what the address names, a decimal string"`
	web.PageParams
	Outcome string `query:"outcome" enum:"skipped,failed" doc:"Only these; default: both"`
}

func (r *routes) items(ctx context.Context, id auth.Identity, in *itemsInput) (*web.PageOutput[BulkItem], error) {
	o, err := web.ByID(ctx, id.Tenant, in.ID, r.Table.Find)
	if err != nil {
		return nil, err
	}
	at, err := web.DecodeCursor(in.Cursor, "bulk-items")
	if err != nil {
		return nil, err
	}
	rows, err := r.Table.Items(ctx, id.Tenant, o.ID, Outcome(in.Outcome), at.ID, in.Limit+1)
	return web.RowsPage(rows, err, in.Limit, itemOf, func(last *Item) web.Cursor {
		return web.Cursor{List: "bulk-items", ID: last.ID}
	})
}

func (r *routes) cancel(ctx context.Context, id auth.Identity, in *web.IDInput) (*struct{ Body BulkOperation }, error) {
	bid, err := domain.ParseID[ID](in.ID)
	if err != nil {
		return nil, err
	}
	o, err := r.Table.Stop(ctx, id.Tenant, bid, "cancelled by "+id.Actor())
	return web.AnswerOf(o, err, operationOf)
}

func (r *routes) retry(ctx context.Context, id auth.Identity, in *web.IDInput) (*bulkOutput, error) {
	old, err := web.ByID(ctx, id.Tenant, in.ID, r.Table.Find)
	if err != nil {
		return nil, err
	}
	switch {
	case old.State == Running:
		return nil, domain.Errorf(domain.CodeConflict, "the bulk operation %s is still running; wait for its end, or cancel it", old.ID)
	case !old.Until.IsZero() && !old.Until.After(time.Now()):
		return nil, domain.Errorf(domain.CodeConflict, "the pause of the bulk operation %s has ended; ask for a new one", old.ID)
	case old.Failed == 0:
		return nil, domain.Errorf(domain.CodeConflict, "no item of the bulk operation %s has failed", old.ID)
	}
	if err := mayDo(id, old.Action); err != nil {
		return nil, err
	}
	o := Operation{ID: ID(r.NewID()), Tenant: id.Tenant, Order: old.Order, State: Running, RetryOf: old.ID, Total: old.Failed}
	o.By = personOf(id)
	return r.make(ctx, id, o)
}
