package sim

import (
	"context"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/lease"
	"github.com/carillon-sched/carillon/admin/internal/scheduler"
)

// What package admin does about the database's clock (admin/internal/clockguard).

const holdLook = 250 * time.Millisecond

// tellHold leaves word for nodes that start later.
func (n *node) tellHold() {
	h, held := n.clock.Held()
	if h == n.toldHold {
		return
	}
	jump, at := time.Duration(0), n.w.db.heldAt
	if held {
		jump, at = h.Jump.Truncate(time.Millisecond), h.At.Truncate(time.Millisecond)
	}
	n.w.trace(n.name, "clock held", int64(jump), 0)
	if n.call("tell clock hold", anyCall, func() { n.w.db.clockHold, n.w.db.heldAt = jump, at }) == nil {
		n.toldHold = h
	}
}

func (n *node) openClock() (err error) {
	var doubt time.Duration
	var at time.Time
	if err := n.call("read clock hold", anyCall, func() { doubt, at = n.w.db.clockHold, n.w.db.heldAt }); err != nil {
		return err
	}
	n.clock, err = scheduler.NewClock(context.Background(), scheduler.ClockOptions{
		Source: &nodeStore{n: n}, Doubt: doubt, HeldAt: at, Confirmed: n.clockConfirmed, Elapsed: n.elapsed,
	})
	if err == nil && doubt == 0 {
		// Nobody has doubted it before: a process that starts has nothing to
		// compare it with.
		n.w.believed = max(n.w.believed, n.w.dbOffset)
	}
	return err
}

func (n *node) clockConfirmed(now time.Time, h scheduler.Hold) bool {
	table := n.leases.Table()
	if now.Sub(table.Now).Abs() > lease.TTL {
		return false
	}
	if n.w.db.rules.believeAll {
		return true
	}
	leapt := h.At.Add(h.Jump)
	byOperator := !table.ClockConfirmedAt.Before(leapt) && !table.ClockConfirmedAt.After(now)
	return byOperator || table.ClockAgreed(lease.TTL, scheduler.MaxJump)
}

func (n *node) clockHeld() bool {
	_, held := n.clock.Held()
	return held
}

func (n *node) partitions() []domain.PartitionTerm {
	if n.clockHeld() {
		return nil
	}
	return n.leases.Held()
}

// wall is the node's own clock.
func (n *node) wall() time.Time { return n.w.epoch.Add(n.w.now + n.skew) }
