package declare

import (
	"context"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// Store is what this room asks of the store. Package store documents the methods.
type Store interface {
	Builds
	Jobs
	Proposals
	FindHandler(ctx context.Context, tenant domain.TenantID, executor domain.ExecutorID, name string) (domain.Handler, error)
	FindCalendarByName(ctx context.Context, tenant domain.TenantID, name string) (domain.Calendar, error)
}

// Builds are the builds of executors, with their catalogues.
type Builds interface {
	ListBuilds(ctx context.Context, tenant domain.TenantID, executor domain.ExecutorID) ([]domain.Build, error)
	ListUnsettled(ctx context.Context, limit int) ([]store.ExecutorKey, error)
	ReadCatalogues(ctx context.Context, tenant domain.TenantID, executor domain.ExecutorID, digests []string) (map[string][]byte, error)
	DefineHandlers(ctx context.Context, tenant domain.TenantID, executor domain.ExecutorID, handlers []domain.Handler) error
	SettleBuilds(ctx context.Context, p store.SettleBuildsParams) error
}

// Jobs are the jobs that code has declared or may take.
type Jobs interface {
	FindJobByName(ctx context.Context, tenant domain.TenantID, name string) (store.JobView, error)
	FindDeclaredJob(ctx context.Context, tenant domain.TenantID, executor domain.ExecutorID, name string) (store.JobView, error)
	ListDeclaredJobs(ctx context.Context, tenant domain.TenantID, executor domain.ExecutorID) ([]store.JobView, error)
	WasDeclared(ctx context.Context, tenant domain.TenantID, executor domain.ExecutorID, name string) (bool, error)
	ListRevisions(ctx context.Context, p store.ListRevisionsParams) (store.Page[store.Revision], error)
	WriteDeclared(ctx context.Context, tenant domain.TenantID, writes []store.DeclaredWrite) error
}

// Proposals are the declarations that a person decides about.
type Proposals interface {
	ListProposals(ctx context.Context, p store.ListProposalsParams) (store.Page[store.ProposalView], error)
	DropProposals(ctx context.Context, tenant domain.TenantID, executor domain.ExecutorID, names []string) error
}
