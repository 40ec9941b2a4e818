package executortest

import (
	"time"

	"github.com/carillon-sched/carillon/proto"
	"github.com/carillon-sched/carillon/proto/schedule"
)

// scheduleOf says when a declared job fires; as with the admin, the first that is
// set makes the kind. Its calendars are looked up when it fires (job.excluded):
// the test may make and replace them.
func scheduleOf(d *proto.JobDeclaration, now time.Time) (*schedule.Schedule, error) {
	ms := func(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
	spec := schedule.Spec{
		Kind: schedule.KindNone, Expr: d.GetCron(), Dialect: schedule.Dialect(d.GetDialect()),
		Every: ms(d.GetEveryMs() + d.GetDelayMs()), At: instant(d.GetAtMs()),
		WindowFrom: d.GetWindowFrom(), WindowTo: d.GetWindowTo(), Zone: d.GetZone(),
		StartAt: instant(d.GetStartAtMs()), EndAt: instant(d.GetEndAtMs()),
		DST:  schedule.DST{Gap: schedule.GapPolicy(d.GetDstGap()), Overlap: schedule.OverlapPolicy(d.GetDstOverlap())},
		Days: schedule.DayRule(d.GetCalendarDays()), JitterMax: ms(d.GetJitterMs()), JitterSeed: d.GetName(),
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
	return schedule.Compile(spec)
}

func instant(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}
