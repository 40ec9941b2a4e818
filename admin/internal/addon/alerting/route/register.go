package route

import (
	"context"
	"log/slog"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/notify"
	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/noun"
	"github.com/carillon-sched/carillon/admin/internal/api/document"
	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/resource"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// Store is what is asked of the database.
type Store interface {
	notify.Alerts
	notify.AlertChannels
	notify.AlertRules
	FindTenant(ctx context.Context, id domain.TenantID) (domain.Tenant, error)
	FindExecutorByName(ctx context.Context, tenant domain.TenantID, name string) (domain.Executor, error)
	FindJobByName(ctx context.Context, tenant domain.TenantID, name string) (store.JobView, error)
	FindExecutor(ctx context.Context, tenant domain.TenantID, id domain.ExecutorID) (domain.Executor, error)
	FindJob(ctx context.Context, tenant domain.TenantID, id domain.JobID) (store.JobView, error)
	FindExecution(ctx context.Context, tenant domain.TenantID, id domain.ExecutionID) (store.ExecutionView, error)
}

// Deps is what the operations need. Secrets, NewID and Now are those of the API.
type Deps struct {
	Store   Store
	Secrets resource.Sealer
	// Kept are the tables of documents.
	Kept Kept
	// Channels renders and tries alert channels.
	Channels Channels
	NewID    func() int64
	Now      func() time.Time
	Log      *slog.Logger // of the API
}

// api are the operations of this package.
type api struct {
	*web.Server // fixed after construction
	deps        Deps
	channels    *resource.Documents
	rules       *resource.Documents
}

// Names names executors and jobs by id. Deleted ones are marked as such.
type Names interface {
	ExecutorNames(ctx context.Context, tenant domain.TenantID, ids []int64) (map[int64]string, error)
	JobNames(ctx context.Context, tenant domain.TenantID, ids []int64) (map[int64]string, error)
}

// Kept are the tables of documents of alerting.
type Kept struct {
	Channels, Rules resource.Store
	Names           Names
	// RulesChanged is called after each change of a rule.
	RulesChanged func()
}

// Register adds the operations.
func Register(s *web.Server, deps Deps) {
	a := &api{Server: s, deps: deps}
	a.channels = resource.New(resource.Options{
		Kind: noun.AlertChannelKind, Store: deps.Kept.Channels, Secrets: deps.Secrets, NewID: deps.NewID, Log: deps.Log, Check: a.checkAlertChannel,
	})
	changed := func(context.Context, *resource.Row) { deps.Kept.RulesChanged() }
	a.rules = resource.New(resource.Options{
		Kind: noun.AlertRuleKind, Store: deps.Kept.Rules, Uses: append(a.engineTargets(), a.channels.Target()), NewID: deps.NewID, Log: deps.Log,
		Changed: changed, Deleted: changed,
	})
	a.registerIncidents()
	a.registerAlertChannels()
	document.Register(s, a.rules)
	a.registerSilences()
	a.registerDeliveries()
}
