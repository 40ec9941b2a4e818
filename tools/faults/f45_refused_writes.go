package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/carillon-sched/carillon/admin/verify"
)

// f45 has the database refuse all writes for longer than a lease, while handlers are under
// way. Executors whose leases cannot be stored stop their runs before another
// executor may start them.
func f45(ctx context.Context, s *stage) error {
	if err := s.open(ctx, fleetPlan{admins: 2, executors: 2}); err != nil {
		return err
	}
	if err := s.begin(ctx, mixedJobs(s.rate()/2)); err != nil {
		return err
	}
	db, err := s.db.Open()
	if err != nil {
		return err
	}
	defer db.Close()
	var cuts []cut
	for range s.rounds(3, 1) {
		c := cut{from: verify.At(time.Now())}
		if err := s.fault("read-only", "database", func() error { return readOnly(ctx, db, 40*time.Second) }); err != nil {
			return err
		}
		c.to = verify.At(time.Now())
		cuts = append(cuts, c)
		if err := wait(ctx, 8*time.Second); err != nil {
			return err
		}
	}
	j, err := s.finish(ctx)
	if j == nil {
		return err
	}
	var worst float64
	for _, c := range cuts {
		resumed, during := resume(j, c)
		worst = max(worst, resumed)
		if during > 0 {
			err = errors.Join(err, fmt.Errorf("%d starts while the database refused writes", during))
		}
	}
	s.figure("first start after heal: %.0f ms at most", worst)
	return err
}
