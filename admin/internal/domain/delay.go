package domain

import (
	"slices"
	"time"
)

// Delay is something that kept an execution from starting when it was due: a
// wait, or an offer that led to nothing; or the word to an attempt that it has to
// stop. An execution that started in time and was let run has none, so that
// explaining costs nothing on the way of most runs.
type Delay struct {
	At       time.Time // the first time
	LastAt   time.Time // the last time; the same for one that came once
	Count    int       // how often in a row
	Reason   Reason
	Message  string
	Instance InstanceID // that the offer went to; 0 for waits and stops
	Stop     bool       // At is when the attempt was asked to stop
	// Busy is how many sends to full instances stand here, and stood where this
	// one took the place of another: the sum of all is exact.
	Busy int
}

// MaxDelays bounds what one execution keeps: the first ones, and the newest,
// which takes the last place.
const MaxDelays = 12

// maxDelayMessage keeps a row with all its delays small.
const maxDelayMessage = 200

// Delays are those of one execution, oldest first, over all its attempts.
type Delays []Delay

// add notes what kept the execution. The same thing again only counts.
func (all *Delays) add(now time.Time, reason Reason, message string, instance InstanceID) {
	all.note(Delay{At: now, LastAt: now, Count: 1, Reason: reason, Message: message, Instance: instance})
}

// addStop notes that the attempt is asked to stop.
func (all *Delays) addStop(now time.Time, reason Reason, message string) {
	all.note(Delay{At: now, LastAt: now, Count: 1, Reason: reason, Message: message, Stop: true})
}

func (all *Delays) note(d Delay) {
	if r := []rune(d.Message); len(r) > maxDelayMessage {
		d.Message = string(r[:maxDelayMessage-1]) + "…"
	}
	n := len(*all)
	if n > 0 {
		last := (*all)[n-1]
		switch {
		case last.Reason == d.Reason && last.Message == d.Message && last.Instance == d.Instance && !last.Stop && !d.Stop:
			d.At, d.Count, d.Busy, n = last.At, last.Count+1, last.Busy, n-1
		case n >= MaxDelays:
			d.Busy, n = last.Busy, n-1
		}
	}
	*all = append((*all)[:n:n], d)
}

// givenBack reports whether an offer led to nothing.
func (all Delays) givenBack() bool {
	return slices.ContainsFunc(all, func(d Delay) bool { return d.Instance != 0 && !d.Stop })
}
