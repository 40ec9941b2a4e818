package executor

import "time"

// Delay fires the job again when d has passed since the end of its last run.
// It first fires d after the job was made.
func Delay(d time.Duration) JobOption { return jobOption(func(j *job) { j.delay = d }) }

// At fires the job once.
func At(t time.Time) JobOption { return jobOption(func(j *job) { j.at = t }) }

// Instants fires the job at each of the instants.
func Instants(list ...time.Time) JobOption {
	return jobOption(func(j *job) { j.instants = append([]time.Time(nil), list...) })
}

// Window keeps Every to a part of each day: the first fire is at from, the
// last one not later than to, both as "HH:MM" or "HH:MM:SS" of Zone. A to
// before from is on the next day.
func Window(from, to string) JobOption {
	return jobOption(func(j *job) { j.windowFrom, j.windowTo = from, to })
}

// Between bounds the schedule: it fires neither before start nor after end.
// The zero time is no bound.
func Between(start, end time.Time) JobOption {
	return jobOption(func(j *job) { j.startAt, j.endAt = start, end })
}

// Jitter starts each run up to d after its fire time, so that many jobs of one
// minute do not start at once. The admin refuses one that is longer than Every.
// Default: none.
func Jitter(d time.Duration) JobOption { return jobOption(func(j *job) { j.jitter = d }) }

// GapPolicy is what happens to a time that the clock jumps over.
type GapPolicy string

// The policies for a gap.
const (
	RunAtGapEnd GapPolicy = "run_at_gap_end" // once, when the gap ends; the default
	SkipGap     GapPolicy = "skip"
)

// OverlapPolicy is what happens to a time that the clock shows twice.
type OverlapPolicy string

// The policies for an overlap.
const (
	OverlapOnce OverlapPolicy = "once" // at the first of the two; the default
	OverlapBoth OverlapPolicy = "both"
)

// ClockChanges says what a change of the clock does to a Cron schedule that names times
// of day. One that fires in every hour goes by elapsed time: neither policy has an
// effect. One of certain hours whose minutes step through the whole hour (*, */30, 5/20)
// goes by gap, but fires in both passes of an hour that comes twice, whatever overlap
// is: "*/30 2 * * *" fires four times on such a night, "0,30 2 * * *" twice. With a
// Window only gap has a meaning, and overlap is empty: its fires go by elapsed
// time, so that an hour which comes twice is served twice.
func ClockChanges(gap GapPolicy, overlap OverlapPolicy) JobOption {
	return jobOption(func(j *job) { j.gap, j.overlap = gap, overlap })
}

// Calendars names calendars of the admin that keep the job from firing: on
// their holidays, unless Days says otherwise, and in their blackouts.
func Calendars(names ...string) JobOption {
	return jobOption(func(j *job) { j.calendars = append([]string(nil), names...) })
}

// CalendarDays says which days calendars leave to a job.
type CalendarDays string

// The rules. Blackouts count under all of them.
const (
	NotHolidays CalendarDays = "not_holidays" // all but holidays; the default
	Workdays    CalendarDays = "workdays"     // neither holidays nor weekends, but make-up days
	AllDays     CalendarDays = "all"
)

// Days says which days the job's Calendars leave to it. Default NotHolidays.
func Days(rule CalendarDays) JobOption { return jobOption(func(j *job) { j.days = rule }) }

// MisfireThreshold is how late a fire time still counts as on time. Default:
// the admin's, 5 s.
func MisfireThreshold(d time.Duration) JobOption { return jobOption(func(j *job) { j.late = d }) }

// MisfireLimit bounds what AllMisfires makes up: fire times not older than
// window, and the newest maxRuns of them. 0 is the admin's default: 1 h, 100. The
// admin refuses it with another policy.
func MisfireLimit(window time.Duration, maxRuns int) JobOption {
	return jobOption(func(j *job) { j.window, j.maxRuns = window, maxRuns })
}
