package store

import (
	"context"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// Backfills keeps backfills and writes their runs.
type Backfills interface {
	// CreateBackfill writes it, to be driven on at once. CodeNotFound: no such
	// job in this tenant.
	CreateBackfill(ctx context.Context, b domain.Backfill) (domain.Backfill, error)
	FindBackfill(ctx context.Context, tenant domain.TenantID, id domain.BackfillID) (domain.Backfill, error)
	// ListBackfills lists the newest first.
	ListBackfills(ctx context.Context, p ListBackfillsParams) ([]domain.Backfill, error)
	// CancelBackfill keeps further runs from being written. CodeAlreadyFinished:
	// it has ended.
	CancelBackfill(ctx context.Context, tenant domain.TenantID, id domain.BackfillID, message string) (domain.Backfill, error)
	// ListOccurred tells what is known of a job's fire times with From ≤ fire
	// time < To, by Unix milliseconds.
	ListOccurred(ctx context.Context, tenant domain.TenantID, job domain.JobID, from, to time.Time) (map[int64]domain.Occurred, error)
	// DriveBackfills takes backfills whose WakeAt has come, one short
	// transaction each: it counts which of their runs have ended and writes the
	// next ones. Those that other nodes work on are passed over.
	DriveBackfills(ctx context.Context, p DriveBackfillsParams) (DrivenBackfills, error)
}

type ListBackfillsParams struct {
	Tenant domain.TenantID
	Job    domain.JobID      // 0 = all
	Before domain.BackfillID // cursor: ids below this one; 0 = from the newest
	Limit  int
}

type DriveBackfillsParams struct {
	Limit int
	// Pause is the time until a backfill is looked at again.
	Pause time.Duration
	// Fires returns the job's first fire times in [from, to), at most limit, in
	// order. It is pure.
	Fires func(spec *domain.JobSpec, from, to time.Time, limit int) []time.Time
	NewID func() int64
	// Begin hears of each run before it is written, again when the transaction
	// is repeated, and may set its Trace; nil = nothing.
	Begin func(b *domain.Backfill, e *domain.Execution)
}

type DrivenBackfills struct {
	Seen int                // backfills worked on
	Runs []domain.Execution // written by it
}
