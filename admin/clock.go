package admin

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/lease"
	"github.com/carillon-sched/carillon/admin/internal/scheduler"
)

// openClock begins to follow the database's clock.
func (a *Admin) openClock(ctx context.Context) error {
	value, err := a.store.ClusterValue(ctx, domain.ClockHoldValue, "")
	if err != nil {
		return fmt.Errorf("read the clock's state: %w", err)
	}
	doubt, _ := strconv.ParseInt(value, 10, 64)
	a.clock, err = scheduler.NewClock(ctx, scheduler.ClockOptions{
		Source: a.store, Doubt: time.Duration(doubt) * time.Millisecond,
		Confirmed: a.clockConfirmed, Changed: a.clockChanged,
	})
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
		a.metrics.clockJumps.Inc()
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

// partitionsHeld is what the node may plan: nothing while it does not believe
// the database's clock, or the database.
func (a *Admin) partitionsHeld() []domain.PartitionTerm {
	if a.clockHeld() || a.rolledBack() != 0 {
		return nil
	}
	return a.leases.Held()
}
