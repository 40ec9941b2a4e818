package executor

import (
	"fmt"
	"time"

	"github.com/carillon-sched/carillon/proto"
)

// MaxResult bounds what the handler's runs give, in bytes of JSON: a larger
// output fails the run, which is not retried (KindOutputTooLarge). From 1 to
// DefaultMaxResult, which is what the wire takes. Keep large results where they
// belong and return their address.
func MaxResult(bytes int) HandlerOption {
	return handlerOption(func(h *handler) { h.maxResult = bytes })
}

// DefaultMaxResult is how many bytes of output a run may give, at most.
const DefaultMaxResult = proto.MaxOutput

// KillGrace takes the place of Config.KillGrace for the handler's runs: how long
// one may go on after its context was cancelled, before it is reported as ended
// and still running. Longer for handlers that have much to put in order, shorter
// for those that must not hold anything up. At least 1 ms.
func KillGrace(d time.Duration) HandlerOption {
	return handlerOption(func(h *handler) { h.killGrace, h.hasKillGrace = d, true })
}

// Stuck says what to do about a run of the handler that still goes on KillGrace
// after its context was cancelled, whatever it was cancelled for. Default
// KeepSlot.
func Stuck(p StuckPolicy) HandlerOption {
	return handlerOption(func(h *handler) { h.stuck = p })
}

// StuckPolicy is what becomes of a run that ignores its cancel. Go cannot stop a
// function from outside, so there are two choices only.
type StuckPolicy string

// The policies.
const (
	// KeepSlot: the run is reported as ended, and as still running. Until it
	// returns it keeps its slot here, and its place as a run of its job.
	KeepSlot StuckPolicy = "keep_slot"
	// RestartProcess is KeepSlot, and the process takes no more runs, lets the
	// other ones end for at most Config.DrainTimeout, and ends with the code
	// ExitIgnored, for its supervisor to start it anew. If the run returns before
	// that, the process goes on. It is for applications that do nothing
	// else in the process: their other work ends as in a crash.
	RestartProcess StuckPolicy = "restart_process"
)

// checkLimits finds options that make no sense.
func (h *handler) checkLimits() error {
	switch {
	case h.maxResult < 1 || h.maxResult > DefaultMaxResult:
		return fmt.Errorf("MaxResult must be from 1 to %d", DefaultMaxResult)
	case h.hasKillGrace && h.killGrace < time.Millisecond:
		return fmt.Errorf("KillGrace must be at least 1 ms")
	case h.stuck != "" && h.stuck != KeepSlot && h.stuck != RestartProcess:
		return fmt.Errorf("Stuck(%q) is not known", h.stuck)
	}
	return nil
}
