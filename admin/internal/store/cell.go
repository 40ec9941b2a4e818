package store

import (
	"context"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// Cells keeps where tenants live that do not live here.
type Cells interface {
	// ListCells lists all by name.
	ListCells(ctx context.Context) ([]domain.Cell, error)
	// SaveCell adds a cell, or changes its addresses. CodeConflict: there are
	// domain.MaxCells.
	SaveCell(ctx context.Context, c domain.Cell) error
	// DeleteCell: CodeInUse while tenants live there or go there.
	DeleteCell(ctx context.Context, name string) error
}
