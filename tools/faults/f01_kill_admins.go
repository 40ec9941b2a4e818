package main

import (
	"context"
	"time"
)

// f01 kills one of three admins, again and again; each comes back after a
// second.
func f01(ctx context.Context, s *stage) error {
	if err := s.open(ctx, fleetPlan{admins: 3, executors: 2}); err != nil {
		return err
	}
	if err := s.loadWithShards(ctx, s.rate()); err != nil {
		return err
	}
	for i := range s.rounds(200, 12) {
		a := s.fleet.Admins[i%len(s.fleet.Admins)]
		err := s.fault("sigkill", a.Name, func() error {
			a.Process().Kill()
			if err := wait(ctx, time.Second); err != nil {
				return err
			}
			return a.Start(ctx)
		})
		if err != nil {
			return err
		}
		if err := wait(ctx, time.Second); err != nil {
			return err
		}
	}
	j, err := s.finish(ctx)
	if j != nil {
		s.figure("lateness %s (goal 1 s, 5 s)", j.inside)
		s.goals(j.inside, 1000, 5000)
	}
	return err
}

// proof is the failover of the first release: one kill in the middle.
func proof(ctx context.Context, s *stage) error {
	if err := s.open(ctx, fleetPlan{admins: 2, executors: 2}); err != nil {
		return err
	}
	n, half := s.set.rate, pick(s.set, 150*time.Second, 15*time.Second)
	if n == 0 {
		n = pick(s.set, 500, 50)
	}
	if err := s.load(ctx, n); err != nil {
		return err
	}
	if err := wait(ctx, half); err != nil {
		return err
	}
	a := s.fleet.Admins[0]
	err := s.fault("sigkill", a.Name, func() error {
		a.Process().Kill()
		if err := wait(ctx, min(15*time.Second, half/2)); err != nil {
			return err
		}
		return a.Start(ctx)
	})
	if err != nil {
		return err
	}
	if err := wait(ctx, half); err != nil {
		return err
	}
	j, err := s.finish(ctx)
	if j != nil {
		s.figure("lateness outside the fault %s; around it %s", j.quiet, j.inside)
	}
	return err
}
