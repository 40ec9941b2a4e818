package api

import (
	"errors"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/schedule"
)

// compiled is a schedule that can be asked for its fires.
type compiled struct {
	loc          *time.Location
	startAt, end time.Time
	next         func(after time.Time) (time.Time, bool)
}

// compile checks a schedule; what is wrong is collected in r. The dialect that
// was found replaces "auto", so that later edits are read in the same one.
func compile(r *reader, location string, s *domain.ScheduleSpec) compiled {
	c := compiled{startAt: s.StartAt, end: s.EndAt, next: func(time.Time) (time.Time, bool) { return time.Time{}, false }}
	var err error
	if c.loc, err = time.LoadLocation(s.Zone); err != nil || s.Zone == "Local" {
		r.fail(location+".zone", s.Zone, "is not an IANA time zone such as Asia/Shanghai")
		c.loc = time.UTC
	}
	if !s.StartAt.IsZero() && !s.EndAt.IsZero() && !s.EndAt.After(s.StartAt) {
		r.fail(location+".endAt", instant(s.EndAt), "must be later than startAt")
	}
	switch s.Kind {
	case domain.ScheduleCron:
		cron, err := schedule.Parse(s.Expr, schedule.Dialect(s.Dialect))
		if err != nil {
			r.cron(location+".expr", err)
			return c
		}
		s.Dialect = string(cron.Dialect())
		c.next = func(after time.Time) (time.Time, bool) { return cron.NextIn(after, c.loc, schedule.DST{}) }
	case domain.ScheduleFixedRate:
		if s.Every < schedule.MinEvery || s.Every > schedule.MaxEvery {
			r.fail(location+".every", durationText(s.Every), "must be from 100ms to ten years")
			return c
		}
		c.next = func(after time.Time) (time.Time, bool) {
			if after.Before(s.Anchor) {
				return s.Anchor, true
			}
			return s.Anchor.Add((after.Sub(s.Anchor)/s.Every + 1) * s.Every), true
		}
	case domain.ScheduleOnce:
		c.next = func(after time.Time) (time.Time, bool) { return s.At, s.At.After(after) }
	}
	return c
}

// cron adds a fault of a cron expression, with its place.
func (r *reader) cron(location string, err error) {
	var pe *schedule.ParseError
	if !errors.As(err, &pe) {
		r.fail(location, nil, "%s", err.Error())
		return
	}
	r.wrongCron = true
	r.fields = append(r.fields, domain.FieldError{
		Location: location, Message: pe.Msg, Value: pe.Expr, Position: pe.Pos, Length: pe.Len, Hint: pe.Hint,
	})
}

// fires lists the next n after from, within the schedule's validity.
func (c compiled) fires(from time.Time, n int) []Fire {
	out := []Fire{}
	if before := c.startAt.Add(-time.Millisecond); !c.startAt.IsZero() && from.Before(before) {
		from = before // a fire at the very begin is one
	}
	for len(out) < n {
		at, ok := c.next(from)
		if !ok || !c.end.IsZero() && !at.Before(c.end) {
			break
		}
		out = append(out, Fire{At: instant(at), Zoned: at.In(c.loc).Format(time.RFC3339)})
		from = at
	}
	return out
}

func scheduleText(domain.ScheduleSpec) *Bilingual { return nil }
