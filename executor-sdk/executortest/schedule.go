package executortest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	executor "github.com/carillon-sched/carillon/executor-sdk"
	"github.com/carillon-sched/carillon/proto"
)

// nextFunc gives the first fire after an instant; zero = none.
type nextFunc func(after time.Time) time.Time

// schedule says when a declared job fires; nil = never by itself.
func schedule(d *proto.JobDeclaration, now time.Time) (nextFunc, error) {
	zone, err := time.LoadLocation(d.GetZone()) // "" is UTC
	if err != nil {
		return nil, fmt.Errorf("zone: %w", err)
	}
	var next nextFunc
	every := time.Duration(d.GetEveryMs()) * time.Millisecond
	switch {
	case d.GetCron() != "":
		next, err = cronOf(d, zone)
		if err != nil {
			return nil, err
		}
	case d.GetWindowFrom() != "":
		next, err = window(d, zone, every)
		if err != nil {
			return nil, err
		}
	case every > 0:
		from := now // or the start of its validity, which is a fire then
		if ms := d.GetStartAtMs(); ms > 0 {
			from = time.UnixMilli(ms)
		}
		next = rate(from, every)
	case d.GetDelayMs() > 0:
		next = func(t time.Time) time.Time { return t.Add(time.Duration(d.GetDelayMs()) * time.Millisecond) }
	default:
		next = instants(append([]int64{d.GetAtMs()}, d.GetInstantsMs()...))
	}
	return bounded(next, d), nil
}

func cronOf(d *proto.JobDeclaration, zone *time.Location) (nextFunc, error) {
	if text, ok := strings.CutPrefix(d.GetCron(), "@every "); ok {
		every, err := time.ParseDuration(strings.TrimSpace(text))
		if err != nil || every < time.Millisecond {
			return nil, fmt.Errorf("cron %q: %q is no interval", d.GetCron(), text)
		}
		return rate(time.UnixMilli(0), every), nil
	}
	parsed, err := parseCron(d.GetCron(), d.GetDialect())
	if err != nil {
		return nil, fmt.Errorf("cron %q: %w", d.GetCron(), err)
	}
	rule := clockRule{skipGap: d.GetDstGap() == string(executor.SkipGap), both: d.GetDstOverlap() == string(executor.OverlapBoth)}
	return func(t time.Time) time.Time { return parsed.next(t, zone, rule) }, nil
}

// rate fires at from and every so often after it.
func rate(from time.Time, every time.Duration) nextFunc {
	return func(t time.Time) time.Time {
		if t.Before(from) {
			return from
		}
		return t.Add(every - t.Sub(from)%every)
	}
}

// instants fires at each of the list; 0 stands for none.
func instants(list []int64) nextFunc {
	slices.Sort(list)
	return func(t time.Time) time.Time {
		for _, ms := range list {
			if ms > 0 && ms > t.UnixMilli() {
				return time.UnixMilli(ms)
			}
		}
		return time.Time{}
	}
}

// window fires from its beginning on each day, every so often, until its end.
func window(d *proto.JobDeclaration, zone *time.Location, every time.Duration) (nextFunc, error) {
	from, err := clock(d.GetWindowFrom())
	if err != nil {
		return nil, err
	}
	to, err := clock(d.GetWindowTo())
	if err != nil {
		return nil, err
	}
	if to <= from {
		to += 24 * time.Hour
	}
	skipGap := d.GetDstGap() == string(executor.SkipGap)
	return func(t time.Time) time.Time {
		y, m, today := t.In(zone).Date()
		for day := today - 2; day <= today+2; day++ {
			midnight := time.Date(y, m, day, 0, 0, 0, 0, time.UTC)
			open, last := opens(midnight.Add(from), zone), closes(midnight.Add(to), zone)
			if last.Before(open) && !skipGap {
				last = open // all of it lies where the clock jumps
			}
			fire := open
			if !t.Before(open) {
				fire = rate(open, every)(t)
			}
			if !fire.After(last) {
				return fire.In(zone)
			}
		}
		return time.Time{}
	}, nil
}

// farthest is more than any zone's distance from UTC.
const farthest = 16 * time.Hour

// opens is the first instant at which a zone's clocks show a time, written as
// UTC, or a later one.
func opens(wall time.Time, zone *time.Location) time.Time {
	for u := wall.Add(-farthest); ; {
		start, end := u.In(zone).ZoneBounds()
		offset := offsetAt(u, zone)
		if !end.IsZero() && !end.Add(offset).After(wall) {
			u = end
			continue
		}
		if at := wall.Add(-offset); start.IsZero() || at.After(start) {
			return at
		}
		return start
	}
}

// closes is the last millisecond at which they show that time or an earlier one.
func closes(wall time.Time, zone *time.Location) (last time.Time) {
	for u := wall.Add(-farthest); ; {
		start, end := u.In(zone).ZoneBounds()
		offset := offsetAt(u, zone)
		if start.IsZero() || !start.Add(offset).After(wall) {
			if last = wall.Add(-offset); !end.IsZero() && !last.Before(end) {
				last = end.Add(-time.Millisecond)
			}
		}
		if end.IsZero() || end.After(wall.Add(farthest)) {
			return last
		}
		u = end
	}
}

func clock(text string) (time.Duration, error) {
	if text == "24:00" {
		return 24 * time.Hour, nil
	}
	layout := "15:04"
	if strings.Count(text, ":") == 2 {
		layout = "15:04:05"
	}
	at, err := time.Parse(layout, text)
	if err != nil {
		return 0, fmt.Errorf("window: %w", err)
	}
	return at.Sub(time.Date(at.Year(), at.Month(), at.Day(), 0, 0, 0, 0, at.Location())), nil
}

// bounded keeps fires between the start and the end of the declaration.
func bounded(next nextFunc, d *proto.JobDeclaration) nextFunc {
	return func(t time.Time) time.Time {
		if start := d.GetStartAtMs(); start > 0 && t.UnixMilli() < start {
			t = time.UnixMilli(start - 1)
		}
		at := next(t)
		if end := d.GetEndAtMs(); end > 0 && at.UnixMilli() > end {
			return time.Time{}
		}
		return at
	}
}
