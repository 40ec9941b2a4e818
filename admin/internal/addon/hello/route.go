package hello

import (
	"context"
	"net/http"
	"time"

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
	Executor string   `json:"executor" doc:"Name of the built-in executor, which jobs name"`
	Handlers []string `json:"handlers" doc:"Names of the sample handlers"`
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
		err := deps.DB.RunRepeatableAt(ctx, "make the samples available", func(t *db.Tx, now time.Time) error {
			t.Audited(domain.AuditObject{Kind: "executor", Name: domain.BuiltInExecutor})
			return deps.EnsureBuiltIn(t, id.Tenant, db.Millis(now))
		})
		if err != nil {
			return nil, err
		}
		deps.Changed(ctx, id.Tenant)
		return &struct{ Body Samples }{Samples{Executor: domain.BuiltInExecutor, Handlers: []string{Hello, Sleep, Fail}}}, nil
	})
}
