package expand

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"time"
)

// cron is an expression as questions that can be asked of one second.
type cron struct {
	second, minute, hour, month field
	day                         func(date) bool
	year                        field
	every                       time.Duration // of @every; nothing else counts then

	// hourly: fires in every hour of the day. repeats: also where its minutes
	// go through the whole hour. Such rules go by elapsed time.
	hourly, repeats bool

	seconds [daySeconds / 64]uint64 // one bit per second of a day that matches
}

const daySeconds = 86400

// date is one day of the calendar.
type date struct {
	year    int
	month   time.Month
	day     int
	weekday time.Weekday
	last    int // length of the month
}

// dateOf turns days since 1970 into a date.
func dateOf(days int64) date {
	t := time.Unix(days*daySeconds, 0).UTC()
	d := date{weekday: t.Weekday()}
	d.year, d.month, d.day = t.Date()
	d.last = time.Date(d.year, d.month+1, 0, 0, 0, 0, 0, time.UTC).Day()
	return d
}

// aliases are the descriptors of crontab(5).
var aliases = map[string]string{
	"@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0",
	"@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@hourly": "0 * * * *",
}

// parse reads an expression of a dialect. It takes what package schedule takes
// and need not refuse all that it refuses: a stored expression was checked.
func parse(expr, dialect string) (*cron, error) {
	words := strings.Fields(strings.ToUpper(expr))
	if len(words) == 2 && words[0] == "@EVERY" {
		every, err := time.ParseDuration(strings.ToLower(words[1]))
		if err != nil || every < time.Millisecond {
			return nil, fmt.Errorf("%q is no interval", words[1])
		}
		return &cron{every: every}, nil
	}
	if len(words) == 1 {
		if plain, ok := aliases[strings.ToLower(words[0])]; ok {
			words, dialect = strings.Fields(plain), "standard"
		}
	}
	quartz, err := isQuartz(words, dialect)
	if err != nil {
		return nil, err
	}
	if len(words) == 5 {
		words = append([]string{"0"}, words...)
	}
	if len(words) == 6 {
		words = append(words, "*")
	}
	return build(words, quartz)
}

// isQuartz settles the dialect and checks the number of fields.
func isQuartz(words []string, dialect string) (bool, error) {
	n := len(words)
	switch dialect {
	case "", "auto":
		if n == 7 || n == 6 && looksQuartz(words) {
			return true, nil
		}
		if n == 5 || n == 6 {
			return false, nil
		}
	case "standard":
		if n == 5 {
			return false, nil
		}
	case "seconds":
		if n == 6 {
			return false, nil
		}
	case "quartz":
		if n == 6 || n == 7 {
			return true, nil
		}
	default:
		return false, fmt.Errorf("%q is no dialect", dialect)
	}
	return false, fmt.Errorf("%d fields are not the dialect %q", n, dialect)
}

// looksQuartz: a ?, a #, or an L or W that is not of a name.
func looksQuartz(words []string) bool {
	if strings.ContainsAny(strings.Join(words, " "), "?#") || strings.ContainsAny(words[3], "LW") {
		return true
	}
	rest := words[5]
	for i := range weekdays {
		rest = strings.ReplaceAll(rest, weekdays[i], " ")
	}
	return strings.ContainsAny(rest, "LW")
}

// build makes the questions of seven fields.
func build(words []string, quartz bool) (*cron, error) {
	c := &cron{}
	for i, target := range []*field{&c.second, &c.minute, &c.hour, nil, &c.month, nil, &c.year} {
		if target == nil {
			continue
		}
		f, err := readField(words[i], kinds[i], quartz)
		if err != nil {
			return nil, err
		}
		*target = f
	}
	var err error
	if quartz {
		c.day, err = quartzDays(words[3], words[5], c.month.has(1))
	} else {
		c.day, err = unixDays(words[3], words[5])
	}
	if err != nil {
		return nil, err
	}
	c.hourly = !slices.Contains(c.hour.set, false)
	c.repeats = c.hourly || c.minute.through
	for s := 0; s < daySeconds; s++ {
		if !c.hour.has(s / 3600) {
			s += 3599
		} else if c.minute.has(s/60%60) && c.second.has(s%60) {
			c.seconds[s/64] |= 1 << (s % 64)
		}
	}
	return c, nil
}

// onDay asks whether the rule fires at all on a day.
func (c *cron) onDay(days int64) bool {
	d := dateOf(days)
	return c.month.has(int(d.month)) && (c.year.all || c.year.has(d.year)) && c.day(d)
}

// walls calls yield with each matching wall second in [from, to), in order,
// until it returns false.
func (c *cron) walls(from, to int64, yield func(int64) bool) bool {
	for day := floorDiv(from, daySeconds); day*daySeconds < to; day++ {
		if !c.onDay(day) {
			continue
		}
		midnight := day * daySeconds
		lo, hi := max(from-midnight, 0), min(to-midnight, daySeconds)
		for word := lo / 64; word*64 < hi; word++ {
			for rest := c.seconds[word]; rest != 0; rest &= rest - 1 {
				s := word*64 + int64(bits.TrailingZeros64(rest))
				if s >= lo && s < hi && !yield(midnight+s) {
					return false
				}
			}
		}
	}
	return true
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
