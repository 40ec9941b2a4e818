package admin

import (
	"context"
	"fmt"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/store"
)

// StatisticsConfig bounds how long it is known how runs have ended, whether they are
// kept or not; each run counts once in a minute, then in an hour, and then in a day.
type StatisticsConfig struct {
	// Minutes is how long it is known by minute; default 48 hours, at least 1 hour.
	Minutes time.Duration
	// Hours is how long it is known by hour; default 60 days, at least 1 day.
	Hours time.Duration
	// Days is how long it is known by day; default 3 years, at least 2 days.
	Days time.Duration
	// Off: ends are not counted. All nodes of a cluster should have the same.
	Off bool
}

func (c *StatisticsConfig) fill() error {
	const day = 24 * time.Hour
	for _, kept := range []struct {
		name           string
		keep           *time.Duration
		otherwise, min time.Duration
	}{{"minutes", &c.Minutes, 48 * time.Hour, time.Hour}, {"hours", &c.Hours, 60 * day, day}, {"days", &c.Days, 3 * 365 * day, 2 * day}} {
		if *kept.keep == 0 {
			*kept.keep = kept.otherwise
		}
		if *kept.keep < kept.min {
			return fmt.Errorf("statistics by %s: %s is less than %s", kept.name, *kept.keep, kept.min)
		}
	}
	if c.Minutes > c.Hours || c.Hours > c.Days {
		return fmt.Errorf("statistics: kept by minute for %s, by hour for %s and by day for %s: each must be no longer than the next", c.Minutes, c.Hours, c.Days)
	}
	return nil
}

func (c *StatisticsConfig) kept() store.StatisticsKept {
	return store.StatisticsKept{Minutes: c.Minutes, Hours: c.Hours, Days: c.Days}
}

const (
	// countEndsEvery is how long ends gather before they are counted: the more of a job
	// come together, the fewer rows are written. Whoever reads sees them at once.
	countEndsEvery = 10 * time.Second
	// widenEvery and widenLimit bound how much is widened at once: 30,000 rows a minute.
	widenEvery = time.Minute
	widenLimit = 1000
	widenTurns = 30
)

// countEnds is done by any node, each time by one.
func (a *Admin) countEnds(ctx context.Context) error {
	every := countEndsEvery * 9 / 10
	for {
		more, err := a.store.CountEnds(ctx, every)
		if err != nil || !more {
			return err
		}
		every = 0
	}
}

func (a *Admin) widenStatistics(ctx context.Context) error {
	for range widenTurns {
		n, err := a.store.WidenStatistics(ctx, a.config.Statistics.kept(), widenLimit)
		if err != nil || n < widenLimit {
			return err
		}
	}
	return nil
}
