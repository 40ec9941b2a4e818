package executortest

import (
	"fmt"
	"slices"
	"strings"
	"time"

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
		parsed, err := parseCron(d.GetCron())
		if err != nil {
			return nil, fmt.Errorf("cron %q: %w (jobs whose expressions are not known here are run with Fire)", d.GetCron(), err)
		}
		next = func(t time.Time) time.Time { return parsed.next(t.In(zone)) }
	case d.GetWindowFrom() != "":
		next, err = window(d, zone, every)
		if err != nil {
			return nil, err
		}
	case every > 0:
		next = func(t time.Time) time.Time { return t.Add(every - t.Sub(now)%every) }
	case d.GetDelayMs() > 0:
		next = func(t time.Time) time.Time { return t.Add(time.Duration(d.GetDelayMs()) * time.Millisecond) }
	default:
		next = instants(append([]int64{d.GetAtMs()}, d.GetInstantsMs()...))
	}
	return bounded(next, d), nil
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
	return func(t time.Time) time.Time {
		local := t.In(zone)
		for day := -1; day < 2; day++ {
			for at := from; at <= to; at += every {
				fire := time.Date(local.Year(), local.Month(), local.Day()+day, 0, 0, int(at/time.Second), 0, zone)
				if fire.After(t) {
					return fire
				}
			}
		}
		return time.Time{}
	}, nil
}

func clock(text string) (time.Duration, error) {
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
