package api

import (
	"errors"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/timing"
	"github.com/carillon-sched/carillon/proto/schedule"
)

// compile asks the engine about a schedule; what is wrong is collected in r,
// and then there is none. The dialect that was found replaces "auto", so that
// later edits of the expression are read in the same one. seed is timing.Seed,
// or empty where there is no job yet.
func compile(r *reader, location string, s *domain.ScheduleSpec, seed string) *schedule.Schedule {
	out, err := timing.Compile(s, seed)
	var wrong *schedule.SpecError
	if errors.As(err, &wrong) {
		for _, f := range wrong.Fields {
			r.scheduleFault(location, f)
		}
		return nil
	}
	if err != nil {
		r.fail(location, nil, "%s", err.Error())
		return nil
	}
	if out.Cron() != nil {
		s.Dialect = string(out.Cron().Dialect())
	}
	return out
}

func (r *reader) scheduleFault(location string, f *schedule.FieldError) {
	var parse *schedule.ParseError
	if !errors.As(f.Err, &parse) {
		r.fail(location+"."+timing.FieldName(f.Field), nil, "%s", f.Msg)
		return
	}
	r.wrongCron = true
	r.fields = append(r.fields, domain.FieldError{
		Location: location + "." + timing.FieldName(f.Field), Message: parse.Msg, Value: parse.Expr,
		Position: parse.Pos, Length: parse.Len, Hint: parse.Hint,
	})
}

// textOf says the schedule in words, in both languages of the UI.
func textOf(s *schedule.Schedule) Bilingual {
	en, zh := s.Texts()
	return Bilingual{En: en, Zh: zh}
}

// warningsOf lists what is odd about a cron expression.
func warningsOf(s *schedule.Schedule) []Warning {
	out := []Warning{}
	if s.Cron() == nil {
		return out
	}
	for _, w := range s.Cron().Warnings() {
		out = append(out, Warning{Code: string(w), Text: Bilingual{En: w.Text("en"), Zh: w.Text("zh")}})
	}
	return out
}

// fireNotes puts the engine's marks into the API's words.
var fireNotes = map[schedule.Mark]string{
	schedule.MarkGapEnd: "dst_gap", schedule.MarkFirstPass: "dst_overlap", schedule.MarkSecondPass: "dst_overlap",
}

// firesOf lists the next n runs after from, and among them the fire times that
// calendars exclude.
func firesOf(spec *domain.ScheduleSpec, s *schedule.Schedule, from time.Time, n int) []Fire {
	out := []Fire{}
	for _, o := range s.Preview(from, n) {
		f := Fire{At: instant(o.At), Zoned: o.At.Format(time.RFC3339), Note: fireNotes[o.Mark]}
		if !o.RunAt.Equal(o.At) {
			f.RunAt = instant(o.RunAt)
		}
		if o.Excluded != nil {
			f.Excluded, f.Exclusion = timing.ExcludedText(spec, *o.Excluded), exclusionOf(spec, *o.Excluded)
		}
		out = append(out, f)
	}
	return out
}

func exclusionOf(spec *domain.ScheduleSpec, e schedule.Exclusion) *Exclusion {
	u := spec.Calendars[e.Calendar]
	out := &Exclusion{
		Calendar: CalendarRef{ID: u.ID.String(), Name: u.Content.Name, Version: u.Version},
		Kind:     string(e.Kind), Date: e.Date, Name: timing.ExclusionName(spec, e),
	}
	if e.Kind == schedule.ExcludedBlackout {
		out.Until = instant(e.To)
	}
	return out
}

// neverRuns reports that nothing in a list of fires runs.
func neverRuns(fires []Fire) bool {
	for _, f := range fires {
		if f.Excluded == "" {
			return false
		}
	}
	return true
}
