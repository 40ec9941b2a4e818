package domain

import "time"

// Delay is something that kept an execution from starting when it was due: a
// wait, or an offer that led to nothing. An execution that started in time has
// none, so that explaining costs nothing on the way of most runs.
type Delay struct {
	At       time.Time // the first time
	LastAt   time.Time // the last time; the same for one that came once
	Count    int       // how often in a row
	Reason   Reason
	Message  string
	Instance InstanceID // that the offer went to; 0 for waits
	// Busy is how many sends to full instances stand here, and stood where this
	// one took the place of another: the sum of all is exact.
	Busy int
}

// MaxDelays bounds what one execution keeps: the first ones, and the newest,
// which takes the last place.
const MaxDelays = 12

// maxDelayMessage keeps a row with all its delays small.
const maxDelayMessage = 200

// delayed notes what kept the execution. The same thing again only counts.
func (e *Execution) delayed(now time.Time, reason Reason, message string, instance InstanceID) {
	if r := []rune(message); len(r) > maxDelayMessage {
		message = string(r[:maxDelayMessage-1]) + "…"
	}
	d := Delay{At: now, LastAt: now, Count: 1, Reason: reason, Message: message, Instance: instance}
	if n := len(e.Delays); n > 0 {
		last := e.Delays[n-1]
		if last.Reason == reason && last.Message == message && last.Instance == instance {
			d.At, d.Count, d.Busy = last.At, last.Count+1, last.Busy
			e.Delays = append(e.Delays[:n-1:n-1], d)
			return
		}
		if n >= MaxDelays {
			d.Busy = last.Busy
			e.Delays = append(e.Delays[:n-1:n-1], d)
			return
		}
	}
	e.Delays = append(e.Delays[:len(e.Delays):len(e.Delays)], d)
}
