package store

import (
	"context"
	"time"
)

// Retention removes what has grown old, in bounded steps: callers repeat them
// until less than limit was removed. An instant is compared with the time
// inside the id, which is when the row was planned.
type Retention interface {
	// DeleteRunsBefore removes ended runs with their attempts and request
	// keys. Runs that have not ended stay, however old they are.
	DeleteRunsBefore(ctx context.Context, before time.Time, limit int) (int64, error)
	// DeleteLogsBefore removes chunks of executions that were planned before
	// the instant.
	DeleteLogsBefore(ctx context.Context, before time.Time, limit int) (int64, error)
	// TrimLogs removes the oldest chunks of tenants whose logs take more than
	// most bytes (after compression), until they take a tenth less.
	TrimLogs(ctx context.Context, most int64, limit int) (int64, error)
	// DeleteAlertsBefore removes alert events and their deliveries.
	DeleteAlertsBefore(ctx context.Context, before time.Time, limit int) (int64, error)
	// DeleteInstancesBefore removes instances that had gone before the instant.
	DeleteInstancesBefore(ctx context.Context, before time.Time, limit int) (int64, error)
	// DeleteJoinTokenBootsBefore forgets which boots their tokens let in before
	// the instant, but for those that have an instance: a process that lives, or
	// went lately, is never counted as another use of its token.
	DeleteJoinTokenBootsBefore(ctx context.Context, before time.Time, limit int) (int64, error)
	// DeleteRefusalsBefore forgets who was turned away before the instant for the
	// last time.
	DeleteRefusalsBefore(ctx context.Context, before time.Time, limit int) (int64, error)
	// DeleteJobsBefore removes jobs that were deleted before the instant and of
	// which no run is kept, with their revisions, events, trigger and slot.
	DeleteJobsBefore(ctx context.Context, before time.Time, limit int) (int64, error)
	// DeleteScriptsBefore removes scripts that were deleted before the instant,
	// with their revisions. Nothing runs them: what names one finds it gone.
	DeleteScriptsBefore(ctx context.Context, before time.Time, limit int) (int64, error)
	// DeleteRefreshTokensBefore removes tokens that expired before the instant.
	DeleteRefreshTokensBefore(ctx context.Context, before time.Time, limit int) (int64, error)
}
