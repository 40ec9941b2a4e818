package admin

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/lease"
	"github.com/carillon-sched/carillon/admin/internal/scheduler"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// openClock begins to follow the clock of source, with the doubts that living
// nodes, or the last ones, have left word of.
func (a *Admin) openClock(ctx context.Context, source store.Nodes) error {
	var state [2]int64
	for i, key := range [...]string{domain.ClockHoldValue, domain.ClockHeldAtValue} {
		value, err := a.store.ClusterValue(ctx, key, "")
		if err != nil {
			return fmt.Errorf("read the clock's state: %w", err)
		}
		state[i], _ = strconv.ParseInt(value, 10, 64)
	}
	opt := scheduler.ClockOptions{
		Source: source, Doubt: time.Duration(state[0]) * time.Millisecond,
		Confirmed: a.clockConfirmed, Changed: a.clockChanged,
	}
	if state[1] != 0 {
		opt.HeldAt = time.UnixMilli(state[1]).UTC()
	}
	var err error
	a.clock, err = scheduler.NewClock(ctx, opt)
	if err != nil {
		return fmt.Errorf("read the database clock: %w", err)
	}
	return nil
}

// clockConfirmed asks the other nodes' clocks and the operator.
func (a *Admin) clockConfirmed(now time.Time, h scheduler.Hold) bool {
	table := a.leases.Table()
	if now.Sub(table.Now).Abs() > lease.TTL {
		return false // what is known of the others is older than the leap
	}
	leapt := h.At.Add(h.Jump)
	byOperator := !table.ClockConfirmedAt.Before(leapt) && !table.ClockConfirmedAt.After(now)
	return byOperator || table.ClockAgreed(lease.TTL, scheduler.MaxJump)
}

// clockChanged is told at once; watchHolds tells the others.
func (a *Admin) clockChanged(h scheduler.Hold, held bool) {
	log := a.log.With("component", "clock")
	if held {
		a.metrics.ClockJumped()
		log.Error("clock_jump: the database's clock leapt forward and firing is held until most nodes' clocks agree with it, "+
			"it is set back, or an operator confirms it (carillon cluster confirm-clock)", "jump", h.Jump, "at", h.At)
	} else {
		log.Warn("firing goes on: the database's clock is believed again", "held_at", h.At, "jump", h.Jump)
	}
}

// clockHeld is what the node says of its clock.
func (a *Admin) clockHeld() bool {
	_, held := a.clock.Held()
	return held
}
