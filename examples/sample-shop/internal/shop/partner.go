package shop

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	executor "github.com/carillon-sched/carillon/executor-sdk"
)

// Done says how much a job has done.
type Done struct {
	Rows int64 `json:"rows" doc:"Rows that were read or changed"`
}

// partner asks the system of another company, which answers after about typical: half of all
// answers come sooner, and one of twenty takes more than 1.8 times as long.
func partner(ctx context.Context, typical time.Duration) error {
	wait := time.NewTimer(time.Duration(float64(typical) * math.Exp(0.35*rand.NormFloat64())))
	defer wait.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-wait.C:
		return nil
	}
}

// moody reports whether a partner's system has a bad moment at this fire time: about one of n
// fire times, and always the same ones.
func moody(ctx context.Context, n int64) bool {
	return (executor.TaskFrom(ctx).FireTime.Unix()/60*2654435761>>8)%n == 0
}

// look counts rows.
func (s *Shop) look(ctx context.Context, query string, args ...any) (out Done, err error) {
	if err := s.db.QueryRowContext(ctx, query, args...).Scan(&out.Rows); err != nil {
		return out, fmt.Errorf("read the shop: %w", err)
	}
	executor.Logger(ctx).Info("looked", "rows", out.Rows)
	return out, nil
}

// change writes rows.
func (s *Shop) change(ctx context.Context, statement string, args ...any) (out Done, err error) {
	result, err := s.db.ExecContext(ctx, statement, args...)
	if err != nil {
		return out, fmt.Errorf("write to the shop: %w", err)
	}
	out.Rows, err = result.RowsAffected()
	executor.Logger(ctx).Info("changed", "rows", out.Rows)
	return out, err
}

// since is an instant before now, as the tables have it.
func (s *Shop) since(d time.Duration) int64 { return s.now().Add(-d).UnixMilli() }
