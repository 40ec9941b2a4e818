package domain

import "time"

// Held is what an instance says about one attempt of its own when it connects,
// or when the node that offered it is gone.
type Held struct {
	ID    ExecutionID
	Fence int64
	Phase HeldPhase
}

// HeldPhase is how far an attempt is at its instance.
type HeldPhase uint8

const (
	// HeldAccepted: in its journal; the handler was not called, and is not
	// unless a grant comes within the executor's AcceptTTL.
	HeldAccepted HeldPhase = iota + 1
	// HeldRunning: granted; the handler runs or is about to.
	HeldRunning
)

// Verdict is what an instance has to do with an attempt.
type Verdict uint8

const (
	// VerdictKeep: go on; also for what nobody can say anything about.
	VerdictKeep Verdict = iota
	// VerdictGrant: start it, if the acceptance is still valid.
	VerdictGrant
	// VerdictDrop: forget it, or cancel it when it runs: another attempt
	// exists, or the execution is over.
	VerdictDrop
)

// EndOrphaned ends an orphan: an attempt that the database calls under way on an
// instance that does not have it (arrow 8). Its end was among the commits that
// the database has lost, and nobody will tell it again. An offer ends by itself.
// A result that comes all the same settles it, like that of any lost attempt.
func EndOrphaned(e *Execution, now time.Time, p Policy) (fx Effects, ended bool) {
	if e.Lingers {
		return e.returned(now), true
	}
	fx, err := e.Lose(now, ReasonRollback, "the database was put back to where it ran, and its instance does not have it any more", p)
	return fx, err == nil
}

// Reconcile compares an attempt at an instance with the execution, and moves
// the execution where that helps (arrows 4 and 5).
//
//	            accepted        running
//	offered     grant, or drop and due again when the offer's time is over
//	running     grant           keep
//	cancelling  keep            keep          the cancel is sent again anyhow
//	lost        drop            keep          its result settles it
//	retry_wait  drop            keep          likewise, until the next offer
//	lingering   keep            keep          its end has still to be heard of
//	else        drop            drop
//
// A running execution whose instance has only accepted was granted by a node
// that could not say so any more. Granting it again is safe: the executor takes
// one grant, and none that is later than AcceptTTL after its acceptance.
func (h Held) Reconcile(e *Execution, now time.Time, instance InstanceID, p Policy) Verdict {
	if e.Fence != h.Fence || e.Instance != instance {
		return VerdictDrop
	}
	if e.Lingers {
		return VerdictKeep
	}
	accepted := h.Phase == HeldAccepted
	switch e.State {
	case Offered:
		if e.Grant(now, h.Fence, instance, p) == nil {
			return VerdictGrant
		}
		if accepted {
			_ = e.GiveBack(now, h.Fence, ReasonOfferExpired, "the grant could not be sent in time", 0)
		}
		return VerdictDrop
	case Running:
		if accepted {
			return VerdictGrant
		}
		if e.StartedAt.IsZero() {
			e.StartedAt = now // what is heard of is not taken from its instance (Unheard)
		}
		return VerdictKeep
	case Cancelling:
		return VerdictKeep
	case Lost, RetryWait:
		if accepted || e.reported() {
			return VerdictDrop
		}
		return VerdictKeep
	}
	return VerdictDrop
}

// SettledInventory is what an instance has to do with what it holds, in that order.
type SettledInventory struct {
	Verdicts []Verdict
	Err      error
}
