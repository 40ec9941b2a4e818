package main

import (
	"context"
	"fmt"
	"time"

	"github.com/carillon-sched/carillon/admin/verify"
)

// f04 stops all admin nodes for longer than the threshold of half of the jobs;
// each job's misfire policy says what becomes of the fire times in between.
func f04(ctx context.Context, s *stage) error {
	if err := s.open(ctx, fleetPlan{admins: 3, executors: 2}); err != nil {
		return err
	}
	n := s.rate()
	start := time.Now().Truncate(time.Second)
	policies := []string{"skip", "once_now", "all"}
	jobs := make([]job, n)
	for i := range jobs {
		jobs[i] = steadyJob(i, n, start)
		jobs[i].misfire = policies[i%len(policies)]
		if i%2 == 0 {
			jobs[i].threshold = 5 * time.Second
		}
		if jobs[i].misfire == "all" {
			jobs[i].kind, jobs[i].expr, jobs[i].every = "fixed_rate", "", 5*time.Second
		}
	}
	if err := s.begin(ctx, jobs); err != nil {
		return err
	}
	down := cut{from: verify.At(time.Now())}
	err := s.fault("all admins down", "all", func() error {
		for _, a := range s.fleet.Admins {
			a.Process().Kill()
		}
		if err := wait(ctx, pick(s.set, 5*time.Minute, 30*time.Second)); err != nil {
			return err
		}
		for _, a := range s.fleet.Admins {
			if err := a.Launch(); err != nil {
				return err
			}
		}
		return s.fleet.Admins[0].API.Ready(ctx)
	})
	if err != nil {
		return err
	}
	down.to = verify.At(time.Now())
	if err := s.ended(ctx, down.to.Std(), settleLimit); err != nil {
		return err
	}
	caughtUp := time.Since(down.to.Std())
	if err := wait(ctx, 5*time.Second); err != nil {
		return err
	}
	j, err := s.finish(ctx)
	if j == nil {
		return err
	}
	perSecond := map[verify.Time]int{}
	peak, skipped := 0, 0
	for _, r := range j.runs {
		if second := r.Start / verify.Span(time.Second); r.Start >= down.to {
			perSecond[second]++
			peak = max(peak, perSecond[second])
		}
	}
	for _, r := range j.rows {
		if r.State == "missed" {
			skipped++
		}
	}
	s.result.Figures["catchUpMs"], s.result.Figures["peakStartsPerSecond"], s.result.Figures["missedWithReason"] = caughtUp.Milliseconds(), peak, skipped
	s.figure("caught up %.1f s after the first node was ready; peak %d starts/s; %d gaps with their row", caughtUp.Seconds(), peak, skipped)
	if skipped == 0 {
		return fmt.Errorf("no gap has a row: not enough evidence: %w", err)
	}
	return err
}
