package schedule

import (
	"time"

	"github.com/robfig/cron/v3"
)

// Cron is a parsed expression. It knows wall-clock times, not zones: the zone
// and the policy for clock changes come with each question, because they
// belong to the job. A Cron is immutable and safe for concurrent use.
type Cron struct {
	expr    string
	dialect Dialect // resolved, never Auto

	every time.Duration // of @every; the fields below are unused then

	second, minute uint64 // bit n = n
	hour           uint32
	month          uint16   // bits 1-12
	years          *yearSet // nil: every year
	days           days

	hourly  bool // fires in every hour of the day
	repeats bool // hourly, or minutes that repeat through the hour: goes by elapsed time in an overlap
	never   bool // no day of a 400-year cycle matches, or no year is left

	warnings []WarningCode
}

// Cron takes the place of robfig's own schedules wherever those are used.
var _ cron.Schedule = (*Cron)(nil)

// newCron turns what our own parser read into bits.
func newCron(expr string, dialect Dialect, auto bool, f *fieldSet) *Cron {
	c := &Cron{expr: expr, dialect: dialect, second: 1}
	if f.rule[FieldSecond] != nil {
		c.second = f.bits(FieldSecond)
	}
	c.minute = f.bits(FieldMinute)
	c.hour = uint32(f.bits(FieldHour))
	c.month = uint16(f.bits(FieldMonth))
	if f.rule[FieldYear] != nil {
		c.years = newYearSet(f)
	}
	c.days = newDays(dialect, f)
	return c.complete(f.writing(auto && dialect == DialectSeconds))
}

// complete fills in what follows from the fields and from how they are written.
func (c *Cron) complete(w writing) *Cron {
	c.days.january = c.month>>time.January&1 == 1
	c.hourly = c.hour == 1<<24-1
	c.repeats = c.hourly || w.evenMinutes
	_, fires := c.nextWall(0)
	c.never = !fires
	c.warnings = findWarnings(c, w)
	return c
}

// writing is what matters of an expression's text besides the values.
type writing struct {
	evenMinutes bool // a part of the minutes repeats through the whole hour
	uneven      bool // */7: a step through seconds, minutes or hours that is no divisor
	dayNumbers  bool // days are numbers, in a dialect that was guessed
	ignoredStep bool // quartz: MAR/3
	ignoredDays bool // quartz: 1W,15W
}

// bits collects a field whose values fit 0-63.
func (f *fieldSet) bits(field Field) uint64 {
	var set uint64
	for _, it := range f.items[field] {
		it.expand(f.rule[field], func(v int) { set |= 1 << v })
	}
	return set
}

// Next returns the first fire time strictly after t, in the location of t and
// with the default policy for clock changes. It returns the zero time when
// the expression never fires again. This is robfig's cron.Schedule.
func (c *Cron) Next(t time.Time) time.Time {
	next, _ := c.NextIn(t, t.Location(), DST{})
	return next
}

// Expr is the expression as it was given.
func (c *Cron) Expr() string { return c.expr }

// String is the expression as it was given.
func (c *Cron) String() string { return c.expr }

// Dialect is the dialect in which the expression was read; never DialectAuto.
// Store this one with the job.
func (c *Cron) Dialect() Dialect { return c.dialect }

// Interval is the interval of an "@every" expression, else 0.
func (c *Cron) Interval() time.Duration { return c.every }

// Never reports that no instant matches, in any zone: 31 February, or a year
// before 1970.
func (c *Cron) Never() bool { return c.never }

// yearSet has bit n for the year 1970+n.
type yearSet [3]uint64

func newYearSet(f *fieldSet) *yearSet {
	var set yearSet
	all := true
	for _, it := range f.items[FieldYear] {
		all = all && it.kind == itemStar && it.step == 1
		it.expand(f.rule[FieldYear], func(y int) { set[(y-minYear)/64] |= 1 << ((y - minYear) % 64) })
	}
	if all {
		return nil
	}
	return &set
}

// from returns the first year of the set that is not before y.
func (s *yearSet) from(y int) (int, bool) {
	if s == nil {
		return y, y <= lastYear
	}
	for y = max(y, minYear); y <= maxYear; y++ {
		if s[(y-minYear)/64]>>((y-minYear)%64)&1 == 1 {
			return y, true
		}
	}
	return 0, false
}

// values lists the years.
func (s *yearSet) values() []int {
	var list []int
	for y, ok := s.from(minYear); ok; y, ok = s.from(y + 1) {
		list = append(list, y)
	}
	return list
}

// evenly returns the distance of the years from each other, 0 when it varies.
func evenly(years []int) int {
	if len(years) < 2 {
		return 0
	}
	step := years[1] - years[0]
	for i := 2; i < len(years); i++ {
		if years[i]-years[i-1] != step {
			return 0
		}
	}
	return step
}
