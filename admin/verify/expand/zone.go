package expand

import (
	"fmt"
	"sync"
	"time"
)

// stretch is a time in which a zone's clock runs straight: [from, to) in Unix
// seconds, at one offset east of UTC. Wall seconds are instant + offset.
type stretch struct {
	from, to, offset int64
}

// zone keeps the clock changes that were found, by year.
type zone struct {
	loc *time.Location

	mu    sync.Mutex
	years map[int][]change // guarded by mu
}

// change is the first second of a new offset.
type change struct {
	at, offset int64
}

// zones keeps one zone per name: names come from the tz database, so that it
// cannot grow past that.
var zones sync.Map // string to *zone

func loadZone(name string) (*zone, error) {
	if name == "" {
		name = "UTC"
	}
	if z, ok := zones.Load(name); ok {
		return z.(*zone), nil
	}
	if name == "Local" {
		return nil, fmt.Errorf("zone %q is another one on another machine", name)
	}
	loc, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("zone %q: %w", name, err)
	}
	z, _ := zones.LoadOrStore(name, &zone{loc: loc, years: map[int][]change{}})
	return z.(*zone), nil
}

// offset reads the zone's clock.
func (z *zone) offset(second int64) int64 {
	_, offset := time.Unix(second, 0).In(z.loc).Zone()
	return int64(offset)
}

// lookEvery is the distance at which the clock is looked at, in seconds. No
// zone has ever changed its clock and changed it back within it.
const lookEvery = 900

// changes finds the clock changes of a year (of UTC).
func (z *zone) changes(year int) []change {
	z.mu.Lock()
	defer z.mu.Unlock()
	if found, ok := z.years[year]; ok {
		return found
	}
	begin := time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
	end := time.Date(year+1, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
	var found []change
	before := z.offset(begin - 1)
	for look := begin; look < end+lookEvery; look += lookEvery {
		last := min(look, end-1)
		now := z.offset(last)
		if now == before {
			continue
		}
		first := max(begin, last-lookEvery) // the change lies in [first, last]
		for z.offset(first) == before {
			first++
		}
		found, before = append(found, change{first, now}), now
	}
	z.years[year] = found
	return found
}

// straight lists the stretches that cover [from, to], in order. The first one
// begins at from, the last one ends after to.
func (z *zone) straight(from, to int64) []stretch {
	list := []stretch{{from, to + 1, z.offset(from)}}
	for year := time.Unix(from, 0).UTC().Year(); year <= time.Unix(to, 0).UTC().Year(); year++ {
		for _, c := range z.changes(year) {
			if c.at <= from || c.at > to {
				continue
			}
			list[len(list)-1].to = c.at
			list = append(list, stretch{c.at, to + 1, c.offset})
		}
	}
	return list
}
