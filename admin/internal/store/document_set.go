package store

import (
	"context"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/resource"
)

// MaxSetMembers bounds the documents of all sets of a tenant.
const MaxSetMembers = 50_000

// MaxSetNames bounds the sets that are listed.
const MaxSetNames = 100

// DocumentSets keeps which documents belong to which set. A document belongs to one set at most.
type DocumentSets interface {
	// ListDocumentSetNames lists the names of sets that have documents, at most MaxSetNames.
	ListDocumentSetNames(ctx context.Context, tenant domain.TenantID) ([]string, error)
	// ListDocumentSet lists the documents of a set by kind and id. Some may be gone.
	ListDocumentSet(ctx context.Context, tenant domain.TenantID, set string) ([]resource.SetMember, error)
	// SaveDocumentSet lets documents join a set, from whatever set, and others leave it.
	// CodeConflict: the tenant's sets would have more than MaxSetMembers.
	SaveDocumentSet(ctx context.Context, tenant domain.TenantID, set string, join, leave []resource.SetMember) error
}
