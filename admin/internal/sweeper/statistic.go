package sweeper

import (
	"context"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/store"
)

const (
	// countEndsEvery is how long ends gather before they are counted: the more of a job
	// come together, the fewer rows are written. Readers see them at once.
	countEndsEvery = 10 * time.Second
	// widenEvery, widenLimit and widenTurns bound how much is widened at once: 30,000 rows
	// a minute.
	widenEvery = time.Minute
	widenLimit = 1000
	widenTurns = 30
)

// Statistics counts ends of runs, and makes hours of old minutes and days of old hours.
type Statistics struct {
	Store interface {
		CountEnds(ctx context.Context, every time.Duration) (more bool, err error)
		WidenStatistics(ctx context.Context, keep store.StatisticsKept, limit int) (int, error)
	}
	Kept store.StatisticsKept
}

// Chores are done by any node, each time by one.
func (s *Statistics) Chores() []Chore {
	return []Chore{
		{Name: "count ends of runs", Every: countEndsEvery, Do: s.count},
		{Name: "widen statistics", Every: widenEvery, Do: s.widen},
	}
}

func (s *Statistics) count(ctx context.Context) error {
	every := countEndsEvery * 9 / 10
	for {
		more, err := s.Store.CountEnds(ctx, every)
		if err != nil || !more {
			return err
		}
		every = 0
	}
}

func (s *Statistics) widen(ctx context.Context) error {
	for range widenTurns {
		n, err := s.Store.WidenStatistics(ctx, s.Kept, widenLimit)
		if err != nil || n < widenLimit {
			return err
		}
	}
	return nil
}
