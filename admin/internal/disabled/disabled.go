// Package disabled answers: which executors and tenants start nothing, and what follows from it?
//
// An executor, or a tenant with all that it has, starts nothing and admits no process while
// it is disabled (docs/adr/0079, 0080). Each node reads the list. Any node pauses and resumes
// the jobs.
package disabled

import (
	"context"
	"sync/atomic"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// Source has the list.
type Source interface {
	ListDisabled(ctx context.Context) (store.Disabled, error)
}

// List is what this node knows of the list. It is safe for concurrent use.
type List struct {
	source Source
	list   atomic.Pointer[store.Disabled] // nil: not read yet
}

// NewList returns a List that knows nothing before Read.
func NewList(source Source) *List { return &List{source: source} }

// Read reads the list. If the database does not answer, the last one counts.
func (l *List) Read(ctx context.Context) error {
	list, err := l.source.ListDisabled(ctx)
	if err == nil {
		l.list.Store(&list)
	}
	return err
}

// Has reports whether an executor starts nothing.
func (l *List) Has(tenant domain.TenantID, executor domain.ExecutorID) bool {
	list := l.list.Load()
	return list != nil && (list.Executors[executor] || list.Tenants[tenant])
}

// NotHere is why a tenant is not served here although it is known: it is moving, or has
// moved to another cell; nil: it is here.
func (l *List) NotHere(tenant domain.TenantID) error {
	if list := l.list.Load(); list != nil {
		if place, ok := list.NotHere[tenant]; ok {
			return place.State.NotHere(&place.Cell)
		}
	}
	return nil
}

// Tenants are those that are disabled.
func (l *List) Tenants() (out []domain.TenantID) {
	if list := l.list.Load(); list != nil {
		for id := range list.Tenants {
			out = append(out, id)
		}
	}
	return out
}

// empty reports whether nothing is disabled, as far as this node knows.
func (l *List) empty() bool {
	list := l.list.Load()
	return list == nil || len(list.Executors)+len(list.Tenants) == 0
}
