package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/carillon-sched/carillon/admin/verify"
	"github.com/carillon-sched/carillon/internal/testenv/lab"
	"github.com/carillon-sched/carillon/internal/testenv/proxy"
)

// trouble is what goes wrong with one target for a while.
type trouble struct {
	kind        string
	begin, heal func() error
}

// troubled is a target, and what may happen to it. One trouble of a target ends
// before the next begins; those of different targets overlap.
type troubled struct {
	name  string
	may   []trouble
	ended func() bool // by itself; nil = it cannot
	again func() error
}

// f39 breaks nodes, executors, their paths and the database's at random, several
// at a time, then heals all of it at once. All promises hold, and fresh runs are
// on time within a minute of the heal.
func f39(ctx context.Context, s *stage) error {
	const nodes, processes = 3, 3
	toDatabase, database := s.databasePaths(nodes, nil)
	toExecutors, advertise := s.executorPaths(nodes)
	if err := s.open(ctx, fleetPlan{admins: nodes, executors: processes, database: database, advertise: advertise}); err != nil {
		return err
	}
	rate := pick(s.set, 250, 60)
	if s.set.rate > 0 {
		rate = s.set.rate
	}
	if err := s.begin(ctx, mixedJobs(rate)); err != nil {
		return err
	}
	jobs := 0
	s.firing.Range(func(any, any) bool { jobs++; return true })
	seed := uint64(time.Now().UnixNano())
	s.result.Figures["seed"] = seed
	if err := s.nemesis(ctx, seed, s.targets(toDatabase, toExecutors), time.Now().Add(s.lasts(30*time.Minute, 2*time.Minute))); err != nil {
		return err
	}
	healed := time.Now()
	tail, err := lab.Follow(s.historyDir())
	if err != nil {
		return err
	}
	for _, a := range s.fleet.Admins {
		if err := s.revive(ctx, a); err != nil {
			return err
		}
	}
	again, well, err := s.recovery(ctx, tail, healed.Truncate(time.Second).Add(time.Second), jobs)
	if err != nil {
		return err
	}
	j, err := s.finish(ctx)
	if j == nil {
		return err
	}
	s.figure("%d faults; fresh runs on time %.0f s after the heal (goal 60 s); lateness %s", s.result.Injected, again.Seconds(), j.inside)
	s.result.Figures["onTimeAgainSeconds"] = again.Seconds()
	if !well {
		s.figure("%d faults; fresh runs not on time within %s of the heal; lateness %s", s.result.Injected, recoveryLimit, j.inside)
		s.result.Figures["onTimeAgainSeconds"] = -1.0
		err = errors.Join(err, fmt.Errorf("fresh runs were not on time within %s of the heal", recoveryLimit))
	}
	return errors.Join(err, s.lostAreTold(ctx, j))
}

// targets are all that may break, and how.
func (s *stage) targets(toDatabase, toExecutors []*proxy.Proxy) (all []troubled) {
	process := func(name string, now func() *lab.Process, start func() error) {
		all = append(all, troubled{name, []trouble{
			{verify.FaultKill, func() error { now().Kill(); return nil }, start},
			{"sigstop", func() error { return now().Freeze() }, func() error { return now().Thaw() }},
		}, func() bool { return now().Ended() }, start})
	}
	for _, a := range s.fleet.Admins {
		process(a.Name, a.Process, a.Launch)
	}
	for _, w := range s.executors {
		process(w.name, func() *lab.Process { return w.Process }, func() error { return s.startExecutor(w) })
	}
	never := func() bool { return false }
	path := func(name string, p *proxy.Proxy) {
		heal := func() error { p.Heal(); return nil }
		all = append(all, troubled{name, []trouble{
			{"silence", func() error { p.Silence(); return nil }, heal},
			{"reset", func() error { p.Reset(); return nil }, heal},
		}, never, nil})
	}
	slow := func(d time.Duration) func() error {
		return func() error {
			for _, p := range toDatabase {
				p.Delay(d)
			}
			return nil
		}
	}
	for i, p := range toDatabase {
		path(fmt.Sprintf("path from admin-%d to the database", i+1), p)
	}
	for i, p := range toExecutors {
		path(fmt.Sprintf("path from the executors to admin-%d", i+1), p)
	}
	return append(all, troubled{"database", []trouble{{"slow", slow(10 * time.Millisecond), slow(0)}}, never, nil})
}

// nemesis troubles all targets until an instant. When it returns nothing is
// broken any more, but that nodes and executors which were started may not be
// ready yet.
func (s *stage) nemesis(ctx context.Context, seed uint64, targets []troubled, until time.Time) error {
	group, ctx := errgroup.WithContext(ctx)
	for i, t := range targets {
		random := rand.New(rand.NewPCG(seed, uint64(i)))
		group.Go(func() error {
			for {
				// In trouble for a quarter of the time: about three targets at once.
				if err := waitUntil(ctx, earlier(until, time.Now().Add(between(random, time.Second, 35*time.Second)))); err != nil {
					return err
				}
				if t.ended() { // a node that was silent for too long ends by itself
					say("%s ended by itself and is started again", t.name)
					if err := t.again(); err != nil {
						return err
					}
				}
				if !time.Now().Before(until) {
					return nil
				}
				one := t.may[random.IntN(len(t.may))]
				err := s.fault(one.kind, t.name, func() error {
					if err := one.begin(); err != nil {
						return err
					}
					err := waitUntil(ctx, earlier(until, time.Now().Add(between(random, 200*time.Millisecond, 12*time.Second))))
					return errors.Join(err, one.heal())
				})
				if err != nil && !t.ended() {
					return fmt.Errorf("%s, %s: %w", t.name, one.kind, err)
				}
			}
		})
	}
	return group.Wait()
}

func between(random *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(random.Int64N(int64(most-least)))
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// lostAreTold: each run that is lost has an alert for that loss (P7). One that had
// been lost before, and went on when its instance said that it never began, has one
// for that as well.
func (s *stage) lostAreTold(ctx context.Context, j *judged) error {
	db, err := s.db.Open()
	if err != nil {
		return err
	}
	defer db.Close()
	events, err := readEvents(ctx, db)
	if err != nil {
		return err
	}
	told := map[string]bool{}
	for _, e := range events {
		told[e.Key] = true
	}
	var wrong problems
	for key, r := range j.rows {
		if r.State == "lost" && !told[fmt.Sprintf("run_lost:%s:%d", key, r.Fence)] {
			wrong.add("losses without an alert", "run %s with fence %d", key, r.Fence)
		}
	}
	return wrong.err()
}
