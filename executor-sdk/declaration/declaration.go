// Package declaration answers: when does a job fire that an application's code
// declares? The server asks it when the application registers, and executortest
// when the application is tested.
package declaration

import (
	"time"

	"github.com/carillon-sched/carillon/proto"
	"github.com/carillon-sched/carillon/schedule"
)

// Schedule is all that the declaration says; of that, the first that is set makes
// the kind. What does not belong to the kind is there too, for whoever refuses it.
// Calendars and the seed of the jitter are the caller's to fill in. A fixed rate
// without a start counts from now.
func Schedule(d *proto.JobDeclaration, now time.Time) schedule.Spec {
	spec := schedule.Spec{
		Kind: schedule.KindNone, Expr: d.GetCron(), Dialect: schedule.Dialect(d.GetDialect()),
		Every: ms(d.GetEveryMs() + d.GetDelayMs()), At: instant(d.GetAtMs()),
		WindowFrom: d.GetWindowFrom(), WindowTo: d.GetWindowTo(), Zone: d.GetZone(),
		StartAt: instant(d.GetStartAtMs()), EndAt: instant(d.GetEndAtMs()),
		DST:  schedule.DST{Gap: schedule.GapPolicy(d.GetDstGap()), Overlap: schedule.OverlapPolicy(d.GetDstOverlap())},
		Days: schedule.DayRule(d.GetCalendarDays()), JitterMax: ms(d.GetJitterMs()),
	}
	for _, at := range d.GetInstantsMs() {
		spec.Instants = append(spec.Instants, instant(at))
	}
	switch {
	case spec.Expr != "":
		spec.Kind = schedule.KindCron
	case spec.WindowFrom != "" || spec.WindowTo != "":
		spec.Kind = schedule.KindDailyWindow
	case d.GetEveryMs() != 0:
		spec.Kind = schedule.KindFixedRate
		if spec.Anchor = spec.StartAt; spec.Anchor.IsZero() {
			spec.Anchor = now.Truncate(time.Second)
		}
	case d.GetDelayMs() != 0:
		spec.Kind = schedule.KindFixedDelay
	case d.GetAtMs() != 0:
		spec.Kind = schedule.KindOnce
	case len(spec.Instants) > 0:
		spec.Kind = schedule.KindInstants
	}
	return spec
}

func ms(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// instant is a time in UTC; 0 is the zero time.
func instant(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
