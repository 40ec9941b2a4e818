package hello

import (
	"context"
	"net/http"

	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
)

// Deps of Routes. All but Off are needed.
type Deps struct {
	DB            *db.DB
	EnsureBuiltIn func(t *db.Tx, tenant domain.TenantID, now int64) error
	// Changed returns when this node is an instance of the tenant's built-in executor, or soon.
	Changed func(ctx context.Context, tenant domain.TenantID)
	// Off: the operator does not want the handlers.
	Off bool
}

// Samples is where the sample handlers are.
type Samples struct {
	ExecutorID string   `json:"executorId" doc:"Id of the built-in executor"`
	Executor   string   `json:"executor" doc:"Its name"`
	Handlers   []string `json:"handlers" doc:"Names of the sample handlers"`
}

// Routes adds the operation.
func Routes(s *web.Server, deps Deps) {
	web.Register(s, web.May(domain.PermEdit), web.Operation{
		Method: http.MethodPost, Path: web.Base + "/samples", ID: "start-samples", Tag: "executors", Summary: "Make the sample handlers available",
		Description: "Makes the tenant's built-in executor, unless it is there. The admin nodes are its instances, and have handlers to try jobs with before there is an application: sample.hello succeeds, sample.sleep takes some seconds, sample.fail fails. They reach nothing. denied: the operator has switched them off.",
	}, func(ctx context.Context, id auth.Identity, _ *struct{}) (*struct{ Body Samples }, error) {
		if deps.Off {
			return nil, domain.Errorf(domain.CodeDenied, "the operator of this server has switched the sample handlers off (--%s off): connect an application", setting)
		}
		executor, err := db.Value(ctx, deps.DB.RunRepeatable, "make the samples available", func(t *db.Tx) (domain.ExecutorID, error) {
			return ensure(t, deps.EnsureBuiltIn, id.Tenant)
		})
		if err != nil {
			return nil, err
		}
		deps.Changed(ctx, id.Tenant)
		return &struct{ Body Samples }{Samples{ExecutorID: executor.String(), Executor: domain.BuiltInExecutor, Handlers: []string{Hello, Sleep, Fail}}}, nil
	})
}

// ensure makes the built-in executor of a tenant, unless it is there, and returns its id.
func ensure(t *db.Tx, ensureBuiltIn func(*db.Tx, domain.TenantID, int64) error, tenant domain.TenantID) (id domain.ExecutorID, err error) {
	now, err := t.Clock()
	if err != nil {
		return 0, err
	}
	if err := ensureBuiltIn(t, tenant, db.Millis(now)); err != nil {
		return 0, err
	}
	err = t.SQL.QueryRowContext(t.Ctx, "SELECT id FROM executors WHERE tenant_id = ? AND name = ? AND state <> ?", int64(tenant), domain.BuiltInExecutor, int64(domain.ExecutorDeleted)).Scan(&id)
	t.Audited(domain.AuditObject{Kind: "executor", ID: id.String(), Name: domain.BuiltInExecutor})
	return id, err
}
