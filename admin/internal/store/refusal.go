package store

import (
	"context"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// Refusals remembers who was turned away at the executors' port, for the people
// who look for an executor that does not come. It belongs to no tenant: nothing
// of what strangers say is proven.
type Refusals interface {
	// NoteRefusals adds up what was refused: the times of one code, remote,
	// executor and instance count in one row, whichever node noted them. Of the
	// rows, keep stay at most; those whose last time is longest ago go. After an
	// error some may have been counted, and are counted again when the list is
	// noted again.
	NoteRefusals(ctx context.Context, list []domain.Refusal, keep int) error
	// ListRefusals returns them, the last one first.
	ListRefusals(ctx context.Context, limit int) ([]domain.Refusal, error)
}
