package domain

import (
	"fmt"
	"time"
)

// FreeLosses is how many lost attempts of one run cost it none of its attempts,
// where a lost attempt may be repeated (docs/adr/0039). It is bounded because an
// input that kills its process loses each attempt: from the next one on, losses
// count like failures.
const FreeLosses = 3

// Lose ends an attempt whose instance went silent or died (arrow 8): lost, or
// a retry when the job allows to repeat an unknown outcome and another instance
// may. The first FreeLosses retries use up no attempt.
func (e *Execution) Lose(now time.Time, reason Reason, message string, p Policy) (Effects, error) {
	if e.State == Cancelling {
		e.FinishedAt = now
		return e.end(now, Cancelled, ReasonCancelForced, message), nil
	}
	if e.State != Running {
		return Effects{}, e.illegal("declare it lost")
	}
	e.FinishedAt = now
	switch {
	case p.RetryLost && e.LostAttempts < FreeLosses && !p.retryOnlyThere(e):
		return e.loseFree(now, reason, message, p), nil
	case !p.RetryLost || e.Attempt >= e.MaxAttempts:
		switch e.LostAttempts {
		case 0:
		case 1:
			message += "; an attempt before was lost too"
		default:
			message += fmt.Sprintf("; %d attempts before were lost too", e.LostAttempts)
		}
		return e.end(now, Lost, reason, message), nil
	}
	e.LostAttempts++
	fx := e.retry(now, Lost, reason, message, p.Retry.DelayAfter(p.counted(e)), p)
	if p.retryOnlyThere(e) {
		over, err := e.Miss(now, ReasonInstanceGone, goneMessage)
		over.Archive, over.ReleaseSlot = fx.Archive, fx.ReleaseSlot
		return over, err
	}
	return fx, nil
}

// loseFree lets the run go on elsewhere after an attempt that was lost: the
// attempt keeps its number and does not count, as one that was interrupted. The
// first time it goes on at once; then an attempt that was lost early waits.
func (e *Execution) loseFree(now time.Time, reason Reason, message string, p Policy) Effects {
	pause := time.Duration(e.LostAttempts)*minSnooze - now.Sub(e.GrantedAt)
	e.LostAttempts++
	e.MaxAttempts++
	return e.retry(now, Lost, reason, message, max(pause, 0), p)
}

// unlose lets a run go on whose attempt was lost and, as is known now, never
// began. It may wait for an instance until its dispatch timeout, which goes on.
func (f finish) unlose() {
	f.found()
	if f.e.Attempt--; f.e.Attempt == 0 {
		f.e.FinishedAt = time.Time{}
	}
	f.e.backToDue(f.now, ReasonNotStarted, f.r.Error, 0)
}

// Unheard takes a one-step attempt from an instance that does not answer, or
// whose connection broke, when nobody has heard that its offer arrived, and it can
// start there no more (arrow 5, docs/adr/0056). It may have started before: so it is
// lost, at no cost, and only where it may be repeated. A run that holds its job's
// slot, or a part of one, stays until the lease of its instance is over. If it ended
// elsewhere sooner, the next run of the job could start beside it (promise P6).
func (e *Execution) Unheard(now time.Time, fence int64, message string, p Policy) (Effects, error) {
	if e.Fence != fence {
		return Effects{}, Errorf(CodeStaleFence, "run %s was offered again", e.ID)
	}
	if e.State != Running || !e.Idempotent || !e.StartedAt.IsZero() || !p.RetryLost || e.LostAttempts >= FreeLosses || e.Bound != 0 || e.HoldsSlot || p.PartOfSlot {
		return Effects{}, e.illegal("take it from its instance")
	}
	e.FinishedAt = now
	return e.loseFree(now, ReasonSessionLost, message, p), nil
}

// found takes back that the current attempt was lost: its result has come
// before the next attempt was offered.
func (f finish) found() {
	if f.e.State != RetryWait || f.e.reported() || f.e.LostAttempts == 0 {
		return
	}
	if f.e.LostAttempts <= FreeLosses {
		f.e.MaxAttempts--
	}
	f.e.LostAttempts--
}

const (
	// AbsentAfter is the silence of all admin nodes after which they count as absent.
	// Instances renew every five seconds, so the shortest lease then has as much left.
	AbsentAfter = LeaseTTL - 5*time.Second
	// ReturnTime is how long after an absence no lease counts as over. Executors connect
	// again within 15 seconds.
	ReturnTime = LeaseTTL + 5*time.Second
)

// SignsOfLife are those of all admin nodes together, by the database's clock. No lease can
// be renewed during an absence of all nodes or of the database.
type SignsOfLife struct {
	// Seen is the last one. It is zero if no node was ever there.
	Seen time.Time
	// Returned is the end of the last absence of all nodes. It is zero if there was none.
	Returned time.Time
}

// Absent reports whether all nodes have been away until now.
func (s SignsOfLife) Absent(now time.Time) bool {
	return !s.Seen.IsZero() && now.Sub(s.Seen) > AbsentAfter
}

// LeasesHold returns an instant. No lease of an instance that is not gone ends before it. If
// it is zero, each lease ends at its own time. The clock may have been set back since the return.
func (s SignsOfLife) LeasesHold(now time.Time) time.Time {
	switch {
	case s.Absent(now):
		return now.Add(ReturnTime)
	case s.Returned.IsZero() || s.Returned.After(now):
		return time.Time{}
	default:
		return s.Returned.Add(ReturnTime)
	}
}
