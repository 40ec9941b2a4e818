package main

import (
	"context"
	"errors"
	"time"

	"github.com/carillon-sched/carillon/internal/faults/proxy"
	"github.com/carillon-sched/carillon/internal/lab"
)

// f03 freezes an admin node, once at any instant and once between the last
// statement of a claim and its COMMIT, while it holds row locks, for each
// length of pause. The others have to go on; what it still
// believes when it wakes up must start nothing.
func f03(ctx context.Context, s *stage) error {
	cutters := []*proxy.CommitCutter{{}, {}, {}}
	_, via := s.databasePaths(3, func(i int) *proxy.CommitCutter { return cutters[i] })
	if err := s.open(ctx, fleetPlan{admins: 3, executors: 2, database: via}); err != nil {
		return err
	}
	if err := s.load(ctx, s.rate()); err != nil {
		return err
	}
	pauses := pick(s.set, []time.Duration{time.Second, 5 * time.Second, 20 * time.Second, time.Minute},
		[]time.Duration{time.Second, 5 * time.Second})
	withLocks := 0
	for i := range s.rounds(2*len(pauses), 2*len(pauses)) {
		pause, locks := pauses[i/2%len(pauses)], i%2 == 1
		a, cutter := s.fleet.Admins[i%len(s.fleet.Admins)], cutters[i%len(s.fleet.Admins)]
		held, err := s.freeze(ctx, a, cutter, pause, locks)
		if err != nil {
			return err
		}
		if held {
			withLocks++
		}
		if err := wait(ctx, 3*time.Second); err != nil {
			return err
		}
		if err := s.revive(ctx, a); err != nil {
			return err
		}
	}
	j, err := s.finish(ctx)
	if j != nil {
		s.result.Figures["frozenWithLocks"] = withLocks
		s.figure("lateness %s (goal 250 ms, 3 s); %d times frozen with locks held; %d offers of a dead hand given back",
			j.inside, withLocks, refences(j))
	}
	if err == nil && withLocks == 0 {
		err = errors.New("no admin could be frozen while it held locks: not enough evidence")
	}
	return err
}

// freeze halts the node for a while; locks: while it holds row locks on
// triggers, if it comes to that within 20 s. held tells whether it did.
func (s *stage) freeze(ctx context.Context, a *lab.Admin, cutter *proxy.CommitCutter, pause time.Duration, locks bool) (held bool, err error) {
	kind := "sigstop " + pause.String()
	if locks {
		kind += " with row locks"
		commit := cutter.Hold("triggers")
		defer commit.Release() // after it has woken up
		select {
		case <-commit.Caught():
			held = true
		case <-time.After(20 * time.Second):
		case <-ctx.Done():
		}
	}
	return held, s.fault(kind, a.Name, func() error {
		if err := a.Process().Freeze(); err != nil {
			return err
		}
		return errors.Join(wait(ctx, pause), a.Process().Thaw())
	})
}

// revive starts a node again that ended by itself, as its supervisor would: a
// node that was silent for longer than its place on the list ends.
func (s *stage) revive(ctx context.Context, a *lab.Admin) error {
	if !a.Process().Ended() {
		return nil
	}
	say("%s ended by itself and is started again", a.Name)
	return a.Start(ctx)
}

// refences counts the runs that were offered more often than they were
// attempted: offers that came to nothing because somebody else was quicker.
func refences(j *judged) int {
	n := 0
	for _, r := range j.rows {
		if r.Fence > int64(r.Attempt) {
			n++
		}
	}
	return n
}
