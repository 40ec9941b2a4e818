package api

import (
	"errors"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/schedule"
)

// specFields are the API's names of the engine's fields.
var specFields = map[schedule.SpecField]string{
	schedule.SpecKind: "kind", schedule.SpecExpr: "expr", schedule.SpecDialect: "dialect", schedule.SpecEvery: "every",
	schedule.SpecAnchor: "every", schedule.SpecAt: "at", schedule.SpecZone: "zone",
	schedule.SpecStartAt: "startAt", schedule.SpecEndAt: "endAt",
}

// compile asks the engine about a schedule; what is wrong is collected in r,
// and then there is none. The dialect that was found replaces "auto", so that
// later edits of the expression are read in the same one.
func compile(r *reader, location string, s *domain.ScheduleSpec) *schedule.Schedule {
	out, err := schedule.Compile(schedule.Spec{
		Kind: schedule.Kind(s.Kind), Expr: s.Expr, Dialect: schedule.Dialect(s.Dialect), Every: s.Every, Anchor: s.Anchor,
		At: s.At, Zone: s.Zone, StartAt: s.StartAt, EndAt: s.EndAt,
	})
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
		r.fail(location+"."+specFields[f.Field], nil, "%s", f.Msg)
		return
	}
	r.wrongCron = true
	r.fields = append(r.fields, domain.FieldError{
		Location: location + "." + specFields[f.Field], Message: parse.Msg, Value: parse.Expr,
		Position: parse.Pos, Length: parse.Len, Hint: parse.Hint,
	})
}

// textOf says the schedule in words, in both languages of the UI.
func textOf(s *schedule.Schedule) Bilingual {
	return Bilingual{En: s.Explain("en"), Zh: s.Explain("zh")}
}

// fireNotes puts the engine's marks into the API's words.
var fireNotes = map[schedule.Mark]string{
	schedule.MarkGapEnd: "dst_gap", schedule.MarkFirstPass: "dst_overlap", schedule.MarkSecondPass: "dst_overlap",
}

// firesOf lists the next n fires after from.
func firesOf(s *schedule.Schedule, from time.Time, n int) []Fire {
	out := []Fire{}
	for _, o := range s.Preview(from, n) {
		out = append(out, Fire{At: instant(o.At), Zoned: o.At.Format(time.RFC3339), Note: fireNotes[o.Mark]})
	}
	return out
}
