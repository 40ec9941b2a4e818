package domain

import "time"

// The misfire policy is asked when a fire time is planned, and a second time
// when the run that was planned in time is to start: all nodes may have been
// down since then, or the database away.

// inTimeUntil is until when a run of a schedule counts as in time; ok is false
// for all others, and for what has begun.
func (e *Execution) inTimeUntil(spec *JobSpec) (until time.Time, ok bool) {
	if e.Cause != CauseSchedule || e.IsPart() || e.begun() {
		return time.Time{}, false
	}
	threshold := spec.Misfire.Threshold
	if threshold == 0 {
		threshold = DefaultMisfireThreshold
	}
	return e.FireAt.Add(spec.Schedule.JitterMax + max(threshold, 0)), true
}

// Misfired reports whether the fire time of a run that has not started has
// passed by more than the misfire threshold, while nobody looked after the run.
// One that was found to wait within the threshold, for its slot or an instance,
// is bounded by its dispatch timeout instead.
func (e *Execution) Misfired(now time.Time, spec *JobSpec) bool {
	until, ok := e.inTimeUntil(spec)
	return ok && now.After(until) && (len(e.Delays) == 0 || e.Delays[0].At.After(until))
}

// WaitedSince notes since when a node knows that the execution waits for an
// instance, where the misfire policy could be asked about it before it starts.
// The zero time notes nothing.
func (e *Execution) WaitedSince(since, now time.Time, spec *JobSpec) {
	until, ok := e.inTimeUntil(spec)
	if !ok || len(e.Delays) > 0 || since.IsZero() || since.After(now) || since.After(until) || !now.Add(OfferTTL).After(until) {
		return
	}
	e.Delays = []Delay{{At: since, LastAt: now, Count: 1, Reason: ReasonWaitInstance}}
}

// Lapse does with a misfired execution that is due what the misfire policy
// says: it is missed for the reason, or runs now all the same when there is none.
func (e *Execution) Lapse(now time.Time, reason Reason, message string) (fx Effects, ended bool, err error) {
	if reason == "" {
		e.Cause = CauseMisfire
		return fx, false, nil
	}
	fx, err = e.Miss(now, reason, message)
	return fx, true, err
}

// LapseOffered is Lapse for one that is offered: the offer is taken back, and
// the next one ends it. That is no failed send.
func (e *Execution) LapseOffered(now time.Time, reason Reason, message string) error {
	if reason == "" {
		e.Cause = CauseMisfire
		return nil
	}
	err := e.GiveBack(now, e.Fence, ReasonMisfire, message, 0)
	if err == nil {
		e.SentToFull()
	}
	return err
}
