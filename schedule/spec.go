package schedule

import "time"

// Kind says what sort of schedule a Spec describes. The values are stable:
// they are stored with the job.
type Kind string

// The kinds.
const (
	KindNone        Kind = "none"         // never fires by itself; run by hand or by the API
	KindCron        Kind = "cron"         // Expr, at wall-clock times of Zone
	KindFixedRate   Kind = "fixed_rate"   // Anchor + n·Every, however long a run takes
	KindFixedDelay  Kind = "fixed_delay"  // Every after the last run has finished
	KindOnce        Kind = "once"         // at At
	KindInstants    Kind = "instants"     // at each of Instants
	KindDailyWindow Kind = "daily_window" // each day from WindowFrom to WindowTo, every Every
)

// Limits of a Spec.
const (
	MaxInstants = 10_000
	MaxJitter   = 24 * time.Hour
)

// Spec describes a schedule as a person enters it. It is plain data: Compile
// checks it and makes the Schedule that answers. A kind uses only its own
// fields and those marked "all kinds"; what other fields hold is ignored, so
// that a form may keep them while the kind is changed to and fro.
type Spec struct {
	Kind Kind // required

	// Expr and Dialect are the expression of KindCron. "" is DialectAuto;
	// store the dialect that Schedule.Cron().Dialect() tells (doc.go, Day numbers).
	Expr    string
	Dialect Dialect

	// Every is the interval of KindFixedRate, KindFixedDelay and
	// KindDailyWindow: whole milliseconds, MinEvery to MaxEvery; in a daily
	// window at most 24 hours.
	Every time.Duration

	// Anchor is the first fire of KindFixedRate (and of "@every") and, if it is
	// still to come, of KindFixedDelay. Zero means StartAt, or the Unix epoch
	// when that is zero too. Cut to milliseconds.
	Anchor time.Time

	// At is the one fire time of KindOnce. Cut to milliseconds.
	At time.Time

	// Instants are the fire times of KindInstants: 1 to MaxInstants, in any
	// order; doubles count once. Cut to milliseconds.
	Instants []time.Time

	// WindowFrom and WindowTo bound each day's fires of KindDailyWindow, both
	// included, as "HH:MM" or "HH:MM:SS" of Zone. The first fire is at
	// WindowFrom. A WindowTo before WindowFrom is on the next day; "24:00" is
	// the end of the day. They may not be equal.
	WindowFrom, WindowTo string

	// Zone is an IANA name; "" is UTC. All kinds: fire times are returned in it.
	Zone string

	// StartAt and EndAt bound the validity for all kinds: StartAt ≤ fire ≤
	// EndAt. Zero means unbounded.
	StartAt, EndAt time.Time

	// DST is the policy for clock changes of KindCron and KindDailyWindow.
	DST DST

	// Calendars exclude fires, and Days says by which days; "" is
	// DaysNotHolidays. All kinds. See Schedule.Excluded.
	Calendars []*Calendar
	Days      DayRule

	// JitterMax spreads runs: each is started 0 to JitterMax after its fire
	// time. All kinds; whole milliseconds up to MaxJitter; 0 is none. The fire
	// time itself, and with it the run's identity, does not change.
	JitterMax time.Duration

	// JitterSeed makes jobs differ: the job's id. See Schedule.RunAt.
	JitterSeed string
}

// SpecField names a field of a Spec in an error, in the form the API writes it.
type SpecField string

// The fields that can be wrong.
const (
	SpecKind       SpecField = "kind"
	SpecExpr       SpecField = "expr"
	SpecDialect    SpecField = "dialect"
	SpecEvery      SpecField = "every"
	SpecAnchor     SpecField = "anchor"
	SpecAt         SpecField = "at"
	SpecInstants   SpecField = "instants"
	SpecWindowFrom SpecField = "window_from"
	SpecWindowTo   SpecField = "window_to"
	SpecZone       SpecField = "zone"
	SpecStartAt    SpecField = "start_at"
	SpecEndAt      SpecField = "end_at"
	SpecGap        SpecField = "dst_gap"
	SpecOverlap    SpecField = "dst_overlap"
	SpecJitterMax  SpecField = "jitter_max"
	SpecCalendars  SpecField = "calendars"
	SpecDays       SpecField = "calendar_days"
)

// FieldError says what is wrong with one field of a Spec.
type FieldError struct {
	Field SpecField
	Msg   string // for people: one clause in English, without the field's name
	Err   error  // the *ParseError of an expression; else nil
}

// Error gives "field: message".
func (e *FieldError) Error() string { return string(e.Field) + ": " + e.Msg }

// Unwrap gives the cause, if there is one.
func (e *FieldError) Unwrap() error { return e.Err }

// SpecError lists everything that is wrong with a Spec, in the order of its fields.
type SpecError struct {
	Fields []*FieldError // at least one
}

// Error joins the messages.
func (e *SpecError) Error() string {
	text := "schedule: "
	for i, f := range e.Fields {
		if i > 0 {
			text += "; "
		}
		text += f.Error()
	}
	return text
}

// Unwrap lets errors.As find a field's error or an expression's ParseError.
func (e *SpecError) Unwrap() []error {
	list := make([]error, len(e.Fields))
	for i, f := range e.Fields {
		list[i] = f
	}
	return list
}
