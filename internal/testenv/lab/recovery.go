package lab

import (
	"time"

	"github.com/carillon-sched/carillon/admin/verify"
)

const (
	// onTime is how long after its fire time a run may start to be on time.
	onTime = verify.Time(1_000_000)
	// onTimeFor is for how many seconds all have to, so that one lucky moment
	// is no recovery.
	onTimeFor = 5
)

// OnTimeAgain tells how long after an instant the runs of jobs that have
// perSecond fire times in each second are on time again: from when on, for five
// seconds, each of those fire times has a start within a second. ok is false
// when the runs show no such time (promise P13).
func OnTimeAgain(runs []verify.Run, after verify.Time, perSecond int) (took time.Duration, ok bool) {
	type fire struct {
		job string
		at  verify.Time
	}
	seen := map[fire]bool{}
	var good []int // fire times that started on time, by second
	for _, r := range runs {
		f := fire{r.Job, r.FireAt}
		if r.FireAt < after || r.Start-r.FireAt > onTime || seen[f] {
			continue
		}
		seen[f] = true
		second := int((r.FireAt - after) / verify.Span(time.Second))
		for len(good) <= second {
			good = append(good, 0)
		}
		good[second]++
	}
	row := 0
	for second, n := range good {
		if n < perSecond {
			row = 0
		} else if row++; row == onTimeFor {
			return time.Duration(second+1-onTimeFor) * time.Second, true
		}
	}
	return 0, false
}
