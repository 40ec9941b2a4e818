package admin

import (
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
