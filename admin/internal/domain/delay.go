package domain

import "time"

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

// delayed notes what kept the execution. The same thing again only counts.
func (e *Execution) delayed(now time.Time, reason Reason, message string, instance InstanceID) {
	e.noteDelay(Delay{At: now, LastAt: now, Count: 1, Reason: reason, Message: message, Instance: instance})
}

// stopping notes that the attempt is asked to stop.
func (e *Execution) stopping(now time.Time, reason Reason, message string) {
	e.noteDelay(Delay{At: now, LastAt: now, Count: 1, Reason: reason, Message: message, Stop: true})
}

func (e *Execution) noteDelay(d Delay) {
	if r := []rune(d.Message); len(r) > maxDelayMessage {
		d.Message = string(r[:maxDelayMessage-1]) + "…"
	}
	if n := len(e.Delays); n > 0 {
		last := e.Delays[n-1]
		if last.Reason == d.Reason && last.Message == d.Message && last.Instance == d.Instance && !last.Stop && !d.Stop {
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
