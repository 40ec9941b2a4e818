package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/carillon-sched/carillon/admin/verify"
	"github.com/carillon-sched/carillon/internal/testenv/lab"
)

// f27 freezes the whole group, database included, as a suspended machine does.
// Leases are dead when it wakes up.
func f27(ctx context.Context, s *stage) error {
	if err := s.open(ctx, fleetPlan{admins: 2, executors: 2}); err != nil {
		return err
	}
	if err := s.work(ctx, 20, time.Second, 3000); err != nil {
		return err
	}
	var cuts []cut
	for range s.rounds(3, 1) {
		c := cut{from: verify.At(time.Now())}
		err := s.fault("whole group frozen", "all", func() error {
			group := make([]*lab.Process, 0, len(s.fleet.Admins)+len(s.executors))
			for _, a := range s.fleet.Admins {
				group = append(group, a.Process())
			}
			for _, w := range s.executors {
				group = append(group, w.Process)
			}
			var err error
			for _, p := range group {
				err = errors.Join(err, p.Freeze())
			}
			err = errors.Join(err, s.server.Freeze(), wait(ctx, time.Minute), s.server.Thaw())
			c.to = verify.At(time.Now())
			for _, p := range group {
				err = errors.Join(err, p.Thaw())
			}
			return err
		})
		if err != nil {
			return err
		}
		cuts = append(cuts, c)
		if err := wait(ctx, 15*time.Second); err != nil {
			return err
		}
		for _, a := range s.fleet.Admins {
			if err := s.revive(ctx, a); err != nil {
				return err
			}
		}
	}
	j, err := s.finish(ctx)
	if j == nil {
		return err
	}
	stale := 0
	newest := map[string]int64{}
	for _, r := range j.runs { // in the order of their file, hence of time, per process
		newest[r.Key] = max(newest[r.Key], r.Fence)
	}
	var wake []float64
	for _, r := range j.runs {
		for _, c := range cuts {
			if r.Start > c.to && r.Fence < newest[r.Key] && nextStart(j, r) < r.Start {
				stale++
			}
			if r.Start < c.from && r.End > c.to && r.Cancelled {
				wake = append(wake, float64(r.End-c.to)/1000)
			}
		}
	}
	w := summary(wake)
	s.result.Figures["startsByStaleOwners"], s.result.Figures["wakeToCancelMs"] = stale, w
	s.figure("%d starts by stale owners (goal 0); %d old handlers cancelled within max %.0f ms of waking; lateness %s", stale, w.Count, w.Max, j.inside)
	if stale > 0 {
		err = errors.Join(err, fmt.Errorf("%d starts by stale owners", stale))
	}
	return err
}
