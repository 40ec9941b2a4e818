package main

import (
	"context"
	"fmt"
	"time"
)

// f19 kills the database under load.
func f19(ctx context.Context, s *stage) error {
	if err := s.open(ctx, fleetPlan{admins: 2, executors: 2}); err != nil {
		return err
	}
	if err := s.load(ctx, s.rate()); err != nil {
		return err
	}
	var longest time.Duration
	for range s.rounds(50, 6) {
		var outage time.Duration
		err := s.fault("sigkill", "database server", func() error {
			began := time.Now()
			if err := s.server.Kill(); err != nil {
				return err
			}
			err := s.server.Start()
			outage = time.Since(began)
			return err
		})
		if err != nil {
			return err
		}
		longest = max(longest, outage)
		if err := wait(ctx, 2*time.Second); err != nil {
			return err
		}
	}
	j, err := s.finish(ctx)
	if j != nil {
		s.result.Figures["longestOutageMs"] = longest.Milliseconds()
		beyond := j.inside.Max - float64(longest.Milliseconds())
		s.figure("max lateness − outage %.0f ms (goal 2 s); longest outage %d ms; lateness %s", beyond, longest.Milliseconds(), j.inside)
		s.goal("lateness − outage", beyond, 2000, "ms")
		if err == nil {
			err = s.noStartWithoutRow(j)
		}
	}
	return err
}

// noStartWithoutRow: whatever a handler was started with has its row.
func (s *stage) noStartWithoutRow(j *judged) error {
	without := 0
	for _, r := range j.runs {
		if _, ok := j.rows[r.Key]; !ok {
			without++
		}
	}
	if without > 0 {
		return fmt.Errorf("%d starts without a row", without)
	}
	return nil
}
