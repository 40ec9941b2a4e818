// Package clockguard answers: may this node believe its database?
//
// A node starts nothing while it doubts the database's clock, which has leapt, or the
// database's history, which lacks commits. The guard follows the clock, tells operators and
// other nodes of each doubt, and writes down how far the history is known to reach.
package clockguard

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"strconv"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/lease"
	"github.com/carillon-sched/carillon/admin/internal/scheduler"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// Store is what a guard asks of the database.
type Store interface {
	store.History
	ClusterValue(ctx context.Context, key, initial string) (string, error)
	SetClusterValue(ctx context.Context, key, value string) error
	HoldClock(ctx context.Context, jump time.Duration, alert domain.AlertEvent) error
	DoubtHistory(ctx context.Context, r domain.Rollback, alert domain.AlertEvent) error
	ReadPartitions(ctx context.Context) (domain.PartitionTable, error)
}

// Options configures a Guard. All functions may be called from any goroutine.
type Options struct {
	Store Store
	// Source tells the database's time.
	Source interface {
		Now(ctx context.Context) (time.Time, error)
	}
	Node             string // its name, for the operators
	DataDir, Cluster string
	// Held and Table are those of the leases; they are not called before Open returns.
	Held  func() []domain.PartitionTerm
	Table func() domain.PartitionTable
	// RenewSessions ends the sessions of executors, which come back.
	RenewSessions func()
	// Told is called when an alert is in the outbox.
	Told func()
	// Jumped and RolledBack count findings.
	Jumped, RolledBack func()
	Logger             *slog.Logger
}

// Guard judges the database for one node. Open makes it, Run tells of doubts.
type Guard struct {
	opt   Options
	clock *scheduler.Clock
	path  string // of historyFile
	told  told   // owned by Run
}

// Open begins to follow the clock, with the doubts that living nodes, or the last ones,
// have left word of. It compares the database with the file that an earlier life of this
// node wrote.
func Open(ctx context.Context, o Options) (*Guard, error) {
	g := &Guard{opt: o, path: filepath.Join(o.DataDir, historyFile)}
	if err := g.openClock(ctx); err != nil {
		return nil, err
	}
	if err := g.openHistory(ctx); err != nil {
		return nil, err
	}
	return g, nil
}

func (g *Guard) openClock(ctx context.Context) error {
	var state [2]int64
	for i, key := range [...]string{domain.ClockHoldValue, domain.ClockHeldAtValue} {
		value, err := g.opt.Store.ClusterValue(ctx, key, "")
		if err != nil {
			return fmt.Errorf("read the clock's state: %w", err)
		}
		state[i], _ = strconv.ParseInt(value, 10, 64)
	}
	opt := scheduler.ClockOptions{
		Source: g.opt.Source, Doubt: time.Duration(state[0]) * time.Millisecond,
		Confirmed: g.confirmed, Changed: g.changed,
	}
	if state[1] != 0 {
		opt.HeldAt = time.UnixMilli(state[1]).UTC()
	}
	var err error
	if g.clock, err = scheduler.NewClock(ctx, opt); err != nil {
		return fmt.Errorf("read the database clock: %w", err)
	}
	return nil
}

// Clock is the database's clock as far as the node believes it.
func (g *Guard) Clock() *scheduler.Clock { return g.clock }

// ClockHeld reports whether the node does not believe the clock.
func (g *Guard) ClockHeld() bool {
	_, held := g.clock.Held()
	return held
}

// Hold is ClockHeld, with the last time that was believed, and how far the clock leapt.
func (g *Guard) Hold() (at time.Time, jump time.Duration, held bool) {
	h, held := g.clock.Held()
	return h.At, h.Jump, held
}

// HistoryHeld reports whether the database has lost commits, and no operator has accepted it.
func (g *Guard) HistoryHeld() bool {
	_, held := g.opt.Store.RolledBack()
	return held
}

// Held are the partitions that the node may plan: none while it doubts the database.
func (g *Guard) Held() []domain.PartitionTerm {
	if g.ClockHeld() || g.HistoryHeld() {
		return nil
	}
	return g.opt.Held()
}

// confirmed asks the other nodes' clocks and the operator.
func (g *Guard) confirmed(now time.Time, h scheduler.Hold) bool {
	table := g.opt.Table()
	if now.Sub(table.Now).Abs() > lease.TTL {
		return false // what is known of the others is older than the leap
	}
	leapt := h.At.Add(h.Jump)
	byOperator := !table.ClockConfirmedAt.Before(leapt) && !table.ClockConfirmedAt.After(now)
	return byOperator || table.ClockAgreed(lease.TTL, scheduler.MaxJump)
}

// changed is told at once; Run tells the others.
func (g *Guard) changed(h scheduler.Hold, held bool) {
	log := g.opt.Logger.With("component", "clock")
	if held {
		g.opt.Jumped()
		log.Error("clock_jump: the database's clock leapt forward and firing is held until most nodes' clocks agree with it, "+
			"it is set back, or an operator confirms it (carillon cluster confirm-clock)", "jump", h.Jump, "at", h.At)
	} else {
		log.Warn("firing goes on: the database's clock is believed again", "held_at", h.At, "jump", h.Jump)
	}
}
