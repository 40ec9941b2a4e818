package timing_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/timing"
)

func TestPlan(t *testing.T) {
	now := time.Date(2026, 11, 21, 4, 0, 0, 0, time.UTC)
	at := func(seconds int) time.Time { return now.Add(time.Duration(seconds) * time.Second) }
	every10 := domain.ScheduleSpec{Kind: domain.ScheduleFixedRate, Every: 10 * time.Second, Anchor: now.Add(-time.Hour)}
	once := domain.ScheduleSpec{Kind: domain.ScheduleOnce, At: at(-60)}
	missed, coalesced := domain.ReasonMisfire, domain.ReasonCoalesced

	for name, c := range map[string]struct {
		schedule  domain.ScheduleSpec
		misfire   domain.Misfire
		next      time.Time
		limit     int
		want      []timing.Fire
		following time.Time
	}{
		"nothing inside the horizon": {every10, domain.Misfire{}, at(10), 32, nil, at(10)},
		"a fire ahead":               {every10, domain.Misfire{}, at(0), 32, []timing.Fire{{At: at(0)}}, at(10)},
		"late but below the threshold runs": {
			every10, domain.Misfire{Policy: domain.MisfireSkip, Threshold: 10 * time.Second}, at(-10), 32,
			[]timing.Fire{{At: at(-10)}, {At: at(0)}}, at(10),
		},
		"skip misses what passed": {
			every10, domain.Misfire{Policy: domain.MisfireSkip}, at(-30), 32,
			[]timing.Fire{{At: at(-30), Missed: missed}, {At: at(-20), Missed: missed}, {At: at(-10), Missed: missed}, {At: at(0)}}, at(10),
		},
		"once now: a fire that is on time stands for those that passed": {
			every10, domain.Misfire{Policy: domain.MisfireOnceNow}, at(-20), 32,
			[]timing.Fire{{At: at(-20), Missed: coalesced}, {At: at(-10), Missed: coalesced}, {At: at(0)}}, at(10),
		},
		"once now: the newest that passed runs": {
			once, domain.Misfire{Policy: domain.MisfireOnceNow}, at(-60), 32,
			[]timing.Fire{{At: at(-60), Misfire: true}}, domain.Never,
		},
		"skip: a one-shot that passed is missed and fires never again": {
			once, domain.Misfire{Policy: domain.MisfireSkip}, at(-60), 32,
			[]timing.Fire{{At: at(-60), Missed: missed}}, domain.Never,
		},
		"all: what is older than the window is missed": {
			every10, domain.Misfire{Policy: domain.MisfireAll, Window: 20 * time.Second}, at(-30), 32,
			[]timing.Fire{{At: at(-30), Missed: domain.ReasonMisfireWindow}, {At: at(-20), Misfire: true}, {At: at(-10), Misfire: true}, {At: at(0)}}, at(10),
		},
		"all: the newest run, up to the cap": {
			every10, domain.Misfire{Policy: domain.MisfireAll, MaxRuns: 2}, at(-40), 32,
			[]timing.Fire{
				{At: at(-40), Missed: domain.ReasonMisfireCap}, {At: at(-30), Missed: domain.ReasonMisfireCap},
				{At: at(-20), Misfire: true}, {At: at(-10), Misfire: true}, {At: at(0)},
			}, at(10),
		},
		"the limit leaves the rest for the next claim": {
			every10, domain.Misfire{Policy: domain.MisfireSkip}, at(-30), 2,
			[]timing.Fire{{At: at(-30), Missed: missed}, {At: at(-20), Missed: missed}}, at(-10),
		},
	} {
		t.Run(name, func(t *testing.T) {
			cache, err := timing.NewCache(8)
			require.NoError(t, err)
			spec := &domain.JobSpec{Schedule: c.schedule, Misfire: c.misfire}
			for range 2 { // the second time from the cache
				planned := cache.Plan(1, 1, spec, c.next, now, now.Add(3*time.Second), c.limit)
				fires, following := planned.Fires, planned.Next
				require.Len(t, fires, len(c.want))
				for i, f := range fires {
					require.True(t, f.At.Equal(c.want[i].At), "%d: %s", i, f.At)
					require.Equal(t, c.want[i].Missed, f.Missed)
					require.Equal(t, c.want[i].Misfire, f.Misfire)
					require.Equal(t, f.Missed == "", !f.RunAt.IsZero())
					require.Equal(t, f.Missed == coalesced, !f.Into.IsZero())
				}
				require.True(t, following.Equal(c.following), "%s", following)
			}
		})
	}
}
