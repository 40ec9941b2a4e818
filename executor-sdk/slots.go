package executor

import "github.com/carillon-sched/carillon/executor-sdk/internal/runner"

// defaultSlots are the slots of a process that runs on so many cores, and how
// many of them count while its CPU is used up (docs/adr/0047): what waits needs
// many, what computes gains nothing from more than a few for each core, and
// would keep heartbeats from their turn.
func defaultSlots(cores int) (slots, busy int) {
	return min(max(32*cores, 512), runner.MaxSlots), min(max(4*cores, 32), runner.MaxSlots)
}

// Shares of the CPU, in percent, at which the process counts as busy, and as
// busy no more.
const (
	busyFrom  = 90
	busyUntil = 70
)

// slotsAt is how many slots the admin nodes may count on, when the process uses
// so much of the CPU that it may use. What runs already runs on.
func (p *process) slotsAt(cpu, limit int32) int {
	if p.config.busySlots == 0 || limit <= 0 {
		return p.config.Slots
	}
	share := int64(cpu) * 100 / int64(limit)
	p.mu.Lock()
	was := p.busy
	p.busy = share >= busyFrom || was && share >= busyUntil
	busy := p.busy
	p.mu.Unlock()
	switch {
	case busy && !was:
		p.logger.Info("the CPU is used up: fewer runs are taken until it is not", "slots", p.config.busySlots, "of", p.config.Slots)
	case was && !busy:
		p.logger.Info("the CPU has room again: all slots count", "slots", p.config.Slots)
	}
	if busy {
		return p.config.busySlots
	}
	return p.config.Slots
}
