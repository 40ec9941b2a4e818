package timing

import "github.com/carillon-sched/carillon/schedule"

// FieldName is what the API calls a field of the engine.
func FieldName(f schedule.SpecField) string { return fieldNames[f] }

var fieldNames = map[schedule.SpecField]string{
	schedule.SpecKind: "kind", schedule.SpecExpr: "expr", schedule.SpecDialect: "dialect", schedule.SpecEvery: "every",
	schedule.SpecAnchor: "anchor", schedule.SpecAt: "at", schedule.SpecInstants: "instants",
	schedule.SpecWindowFrom: "windowFrom", schedule.SpecWindowTo: "windowTo", schedule.SpecZone: "zone",
	schedule.SpecStartAt: "startAt", schedule.SpecEndAt: "endAt",
	schedule.SpecGap: "dstGap", schedule.SpecOverlap: "dstOverlap", schedule.SpecJitterMax: "jitter",
	schedule.SpecCalendars: "calendars", schedule.SpecDays: "calendarDays",
}
