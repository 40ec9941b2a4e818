package main

import (
	"context"
	"fmt"
	"time"

	"github.com/carillon-sched/carillon/internal/testenv/proxy"
)

// f21 cuts connections between COMMIT and its OK, in both truths: the commit
// happened and nobody heard, or it never arrived.
func f21(ctx context.Context, s *stage) error {
	cutter := &proxy.CommitCutter{}
	_, via := s.databasePaths(2, func(int) *proxy.CommitCutter { return cutter })
	if err := s.open(ctx, fleetPlan{admins: 2, executors: 2, database: via}); err != nil {
		return err
	}
	if err := s.load(ctx, s.rate()); err != nil {
		return err
	}
	want := int64(s.rounds(10000, 600))
	began := time.Now()
	cutter.Every(6)
	for limit := began.Add(15 * time.Minute); ; {
		committed, lost, _ := cutter.Trials()
		if committed+lost >= want {
			break
		}
		if time.Now().After(limit) {
			return fmt.Errorf("%d trials within 15 min: not enough evidence", committed+lost)
		}
		if err := wait(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
	cutter.Every(0)
	committed, lost, seen := cutter.Trials()
	if err := s.faults("cut at COMMIT", "database", began, time.Now(), int(committed+lost)); err != nil {
		return err
	}
	j, err := s.finish(ctx)
	if j != nil {
		s.result.Figures["committedUnheard"], s.result.Figures["neverCommitted"], s.result.Figures["commits"] = committed, lost, seen
		s.figure("%d trials: %d committed unheard, %d never arrived, of %d commits; lateness %s", committed+lost, committed, lost, seen, j.inside)
	}
	return err
}
