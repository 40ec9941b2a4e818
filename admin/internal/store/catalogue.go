package store

import (
	"context"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// Catalogue keeps what applications declare: their builds, the handlers that
// are in force, and which jobs code owns or proposes.
type Catalogue interface {
	// ListBuilds returns the builds that are remembered of an executor, each
	// with whether it is present.
	ListBuilds(ctx context.Context, tenant domain.TenantID, executor domain.ExecutorID) ([]domain.Build, error)
	// ReadCatalogues returns the catalogues of builds by their digests.
	ReadCatalogues(ctx context.Context, tenant domain.TenantID, executor domain.ExecutorID, digests []string) (map[string][]byte, error)
	// DefineHandlers sets the definitions of handlers, and adds new ones. CodeQuotaExceeded:
	// those in use leave no room for them (MaxHandlers).
	DefineHandlers(ctx context.Context, tenant domain.TenantID, executor domain.ExecutorID, handlers []domain.Handler) error
	// SettleBuilds notes that the catalogues of exactly these builds are in
	// force, and which of the jobs that they declare were not taken: they
	// replace all that were known.
	SettleBuilds(ctx context.Context, p SettleBuildsParams) error
	// ListRefusedDeclarations returns what SettleBuilds was told last, by name.
	ListRefusedDeclarations(ctx context.Context, tenant domain.TenantID, executor domain.ExecutorID) ([]domain.RefusedDeclaration, error)
	// ListUnsettled returns executors with other builds present than in force. It also
	// returns executors with a refused declaration if its name is free now.
	ListUnsettled(ctx context.Context, limit int) ([]ExecutorKey, error)

	// ListDeclaredJobs returns the living jobs that code of the executor has
	// declared.
	ListDeclaredJobs(ctx context.Context, tenant domain.TenantID, executor domain.ExecutorID) ([]JobView, error)
	// FindDeclaredJob finds the living job that code of the executor declares by
	// this name, whatever the job is called now.
	FindDeclaredJob(ctx context.Context, tenant domain.TenantID, executor domain.ExecutorID, name string) (JobView, error)
	// WasDeclared reports whether somebody deleted a job that code of the executor
	// declared by this name. It does not end with the retention of deleted jobs.
	WasDeclared(ctx context.Context, tenant domain.TenantID, executor domain.ExecutorID, name string) (bool, error)

	// WriteDeclared does all writes in one transaction, or none of them. Their growth counts
	// together against the tenant's quotas. The error with CodeQuotaExceeded names each
	// quota that they would exceed.
	WriteDeclared(ctx context.Context, tenant domain.TenantID, writes []DeclaredWrite) error

	// Propose writes a pending proposal in place of any other of its name. A
	// declined one with the same hash stays declined.
	Propose(ctx context.Context, p domain.Proposal) error
	// ListProposals returns the pending ones, the oldest first.
	ListProposals(ctx context.Context, p ListProposalsParams) (Page[ProposalView], error)
	FindProposal(ctx context.Context, tenant domain.TenantID, id int64) (ProposalView, error)
	// DeclineProposal settles a pending proposal. CodeConflict: another one has
	// taken its place meanwhile (hash), or it was declined before.
	DeclineProposal(ctx context.Context, tenant domain.TenantID, id int64, hash, by string) error
	// DropProposals removes proposals of the executor by job name, whatever
	// their state.
	DropProposals(ctx context.Context, tenant domain.TenantID, executor domain.ExecutorID, names []string) error
}

// ExecutorKey names an executor of any tenant.
type ExecutorKey struct {
	Tenant   domain.TenantID
	Executor domain.ExecutorID
}

type SettleBuildsParams struct {
	ExecutorKey
	Digests []string
	// Refused: the builds are contested if there is any. Only the first
	// MaxRefusedDeclarations are kept, without their At, which is the database's.
	Refused []domain.RefusedDeclaration
}

// MaxRefusedDeclarations bounds what is kept of an executor.
const MaxRefusedDeclarations = 200

// DeclaredMark replaces what a job notes about its declaration.
type DeclaredMark struct {
	Job      domain.JobID
	Declared domain.Declared
	// Hash of the declaration; empty = keep.
	Hash string
}

// DeclaredWrite is one step of WriteDeclared. One field is set. All steps are of one tenant.
// The state of a job is set before its update, which reads the job anew.
type DeclaredWrite struct {
	Create  *NewJob
	State   *SetJobStateParams
	Update  *UpdateJobParams
	Mark    *DeclaredMark
	Propose *domain.Proposal
}

type ListProposalsParams struct {
	Tenant   domain.TenantID
	Within   domain.Reach
	Executor domain.ExecutorID // 0 = all
	After    int64             // id of the last one seen
	Limit    int
	// Brief: calendars may lack their days and windows.
	Brief bool
}

// ProposalView is a proposal with the job that it is about, if there is one.
type ProposalView struct {
	domain.Proposal
	ExecutorName string
	Job          *JobView
}

// BuildLastSeen is how old the time may be at which a build, and its handlers,
// were last seen: registrations in between write nothing about them.
const BuildLastSeen = 10 * time.Minute

// MaxBuilds is how many builds of an executor are kept. For a new one that goes
// of which no instance runs and that was seen longest ago; when instances of all
// of them run, its instances are refused with CodeQuotaExceeded.
const MaxBuilds = 200

// MaxBuildNames bounds the names of the handlers of all builds of an executor, in bytes. The
// rules of MaxBuilds hold for it. Each build has proto.MaxHandlers at most.
const MaxBuildNames = 8 << 20

// MaxHandlers and MaxHandlerBytes bound the catalogue of an executor: its handlers, and
// their descriptions and schemas. New handlers take the place of handlers without a present
// instance, enabled job or pending timer, the one that was seen longest ago first. If all are
// in use, a registration that adds more is refused with CodeQuotaExceeded. Two builds of
// proto.MaxHandlers, as at a rollout, have room.
const (
	MaxHandlers     = 2000
	MaxHandlerBytes = 8 << 20
)
