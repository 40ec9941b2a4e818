// Package sweeper answers: what went silent, or grew old?
//
// Each node sweeps the partitions that it holds, and of the others what has
// been overdue for seconds; rows locked by another are skipped. What it finds due again
// it hands to the timer; what it finds dead it ends, by the rules of package
// domain and in one transaction with the alert about it.
package sweeper

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/panics"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// Sweep constants.
const (
	sweepEvery = 500 * time.Millisecond
	sweepLimit = 500
	// sweepHold is how long a due execution that was swept is left to this node.
	sweepHold  = 3 * time.Second
	admitEvery = time.Second
	// A foreign partition is one that another node holds. Swept here is only what
	// that node hands over, which are runs that wait for an instance and that it
	// has none for, and what has been overdue for longer than any node's work takes
	// (foreignOverdue), so that every row is looked at, whoever holds what. What is
	// overdue where nobody holds the partition (ownerlessOverdue) is left by a node
	// that has died.
	foreignSweepEvery = 500 * time.Millisecond
	foreignOverdue    = 5 * time.Minute
	ownerlessOverdue  = 3 * time.Second
	instanceEvery     = 2 * time.Second
	// delayEvery bounds how long a fixed delay may stand still whose run ended
	// without setting it, which is not known to happen.
	delayEvery = 10 * time.Second
)

// Store is what maintenance asks of the database.
type Store interface {
	SweepExecutions(ctx context.Context, p store.SweepParams) (store.Swept, error)
	AdmitWaiting(ctx context.Context, keys []domain.LimitKey) ([]domain.Execution, error)
	ExpireInstances(ctx context.Context, limit int, latest func() time.Time) ([]domain.Instance, error)
	RearmDelays(ctx context.Context, limit int) (int, error)
	Now(ctx context.Context) (time.Time, error)
}

// Options configures a Sweeper.
type Options struct {
	Store Store
	// Retention removes what has grown old.
	Retention store.Retention
	// Held returns the partitions that this node looks after.
	Held func() []domain.PartitionTerm
	// Ownerless returns the partitions that no node holds; nil: there are none.
	Ownerless func() []int
	// Unattended leaves out what waits in a queue of this node's (see
	// store.SweepParams); nil: nothing does.
	Unattended func([]domain.ExecutionID) []domain.ExecutionID
	// Reported names runs whose results wait here to be stored; nil: none do.
	Reported func([]domain.ExecutionID) []store.ReportedRun
	// Latest is the latest time that is believed of the database's clock; nil: any.
	Latest func() time.Time
	// Later takes executions that are due now or soon.
	Later func(...domain.Execution)
	// Cancel sends a cancel again, Resend one-step offers.
	Cancel func(domain.Execution)
	Resend func([]store.OfferResult)
	// Ended is called for executions that the sweep ended.
	Ended func([]domain.Execution)
	// RunRetention is how long ended runs and alerts are kept, and jobs after they
	// were deleted; 0 = 90 days.
	RunRetention time.Duration
	// TimerRetention is how long ended timers are kept; 0 = 72 hours.
	TimerRetention time.Duration
	// LogRetention is how long handlers' logs are kept; 0 = 30 days. Logs never
	// outlive their run.
	LogRetention time.Duration
	// LogBytes is how many bytes a tenant's logs may take after compression,
	// before the oldest go; 0 = any number.
	LogBytes int64
	Logger   *slog.Logger
	// Chores are done beside all this.
	Chores []Chore
}

// Chore is something that any node does from time to time.
type Chore struct {
	Name  string
	Every time.Duration
	Do    func(ctx context.Context) error
}

// Sweeper looks after what nobody else does.
type Sweeper struct {
	opt Options
	log *slog.Logger
}

// New returns a Sweeper; it starts nothing.
func New(opt Options) *Sweeper {
	if opt.RunRetention <= 0 {
		opt.RunRetention = 90 * 24 * time.Hour
	}
	if opt.TimerRetention <= 0 {
		opt.TimerRetention = 72 * time.Hour
	}
	if opt.LogRetention <= 0 {
		opt.LogRetention = 30 * 24 * time.Hour
	}
	opt.LogRetention = min(opt.LogRetention, opt.RunRetention)
	if opt.Latest == nil {
		opt.Latest = func() time.Time { return time.Time{} }
	}
	if opt.Ownerless == nil {
		opt.Ownerless = func() []int { return nil }
	}
	return &Sweeper{opt: opt, log: opt.Logger.With("component", "maintenance")}
}

// Run sweeps until ctx ends.
func (s *Sweeper) Run(ctx context.Context) error {
	housekeeping, err := s.housekeeping(ctx)
	if err != nil {
		return err
	}
	housekeeping.Start()
	var wg sync.WaitGroup
	for _, c := range s.Rounds() {
		wg.Go(func() { s.every(ctx, c.Name, c.Every, c.Do) })
	}
	wg.Wait()
	return housekeeping.Shutdown()
}

// Rounds are all that Run does, each at once and then every so often.
func (s *Sweeper) Rounds() []Chore {
	return append([]Chore{
		{"sweep executions", sweepEvery, s.sweep},
		{"sweep executions of foreign partitions", foreignSweepEvery, s.sweepForeign},
		{"admit waiting executions", admitEvery, s.admit},
		{"expire instances", instanceEvery, s.expireInstances},
		{"rearm fixed delays", delayEvery, s.rearmDelays},
	}, s.opt.Chores...)
}

// every runs f at once and then at each tick; an error is told when it changes.
func (s *Sweeper) every(ctx context.Context, step string, interval time.Duration, f func(context.Context) error) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	broken := false
	for {
		err := panics.Catch(func() error { return f(ctx) })
		if ctx.Err() != nil {
			return
		}
		if (err != nil) != broken {
			broken = err != nil
			if broken {
				s.log.Warn("maintenance does not work", "step", step, "err", err)
			} else {
				s.log.Info("maintenance works again", "step", step)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (s *Sweeper) sweep(ctx context.Context) error {
	return s.sweepAll(ctx, 0, func() []int {
		var held []int
		for _, h := range s.opt.Held() {
			held = append(held, h.Partition)
		}
		return held
	})
}

func (s *Sweeper) sweepForeign(ctx context.Context) error {
	if err := s.sweepAll(ctx, ownerlessOverdue, s.opt.Ownerless); err != nil {
		return err
	}
	return s.sweepAll(ctx, foreignOverdue, func() []int {
		var mine [domain.Partitions]bool
		for _, h := range s.opt.Held() {
			mine[h.Partition] = true
		}
		for _, p := range s.opt.Ownerless() {
			mine[p] = true
		}
		var others []int
		for p := range mine {
			if !mine[p] {
				others = append(others, p)
			}
		}
		return others
	})
}

// sweepAll sweeps what has been overdue for some time. Sweeping needs no
// lease: the row's lock and state decide, whoever looks.
func (s *Sweeper) sweepAll(ctx context.Context, overdue time.Duration, partitions func() []int) error {
	for ctx.Err() == nil {
		list := partitions()
		if len(list) == 0 {
			return nil
		}
		swept, err := s.opt.Store.SweepExecutions(ctx, store.SweepParams{
			Partitions: list, Limit: sweepLimit, Hold: sweepHold, Overdue: overdue, Latest: s.opt.Latest,
			Unattended: s.opt.Unattended, Reported: s.opt.Reported,
		})
		if err != nil {
			return err
		}
		for _, e := range swept.Ended {
			s.log.Debug("execution swept", "execution_id", e.ID, "state", e.State, "reason", e.Reason)
			if e.State == domain.RetryWait {
				s.opt.Later(e)
			}
		}
		s.opt.Later(swept.Dispatch...)
		for _, e := range swept.Cancel {
			s.opt.Cancel(e)
		}
		if len(swept.Resend) > 0 {
			s.opt.Resend(swept.Resend)
		}
		s.opt.Ended(swept.Ended)
		if swept.Seen < sweepLimit {
			return nil
		}
	}
	return nil
}

// admit wakes runs that wait under a limit which has room, when whoever made
// room did not.
func (s *Sweeper) admit(ctx context.Context) error {
	woken, err := s.opt.Store.AdmitWaiting(ctx, nil)
	if len(woken) > 0 {
		s.opt.Later(woken...)
	}
	return err
}

func (s *Sweeper) expireInstances(ctx context.Context) error {
	gone, err := s.opt.Store.ExpireInstances(ctx, sweepLimit, s.opt.Latest)
	for _, i := range gone {
		s.log.Warn("instance gone", "instance_id", i.ID, "instance", i.Name, "last_seen", i.LastSeenAt)
	}
	return err
}

func (s *Sweeper) rearmDelays(ctx context.Context) error {
	n, err := s.opt.Store.RearmDelays(ctx, sweepLimit)
	if n > 0 {
		s.log.Warn("fixed delays stood still", "triggers", n)
	}
	return err
}
