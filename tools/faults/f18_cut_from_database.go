package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/carillon-sched/carillon/admin/verify"
)

// f18 cuts one admin node from the database and leaves its executors
// connected: once silently, once with resets.
func f18(ctx context.Context, s *stage) error {
	paths, via := s.databasePaths(2, nil)
	if err := s.open(ctx, fleetPlan{admins: 2, executors: 2, database: via}); err != nil {
		return err
	}
	if err := s.work(ctx, 20, time.Second, 4000); err != nil {
		return err
	}
	var cuts []cut
	for i := range s.rounds(4, 2) {
		kind := "silent path to the database"
		if i%2 == 1 {
			kind = "reset path to the database"
		}
		c := cut{from: verify.At(time.Now())}
		err := s.fault(kind, "admin-1", func() error {
			paths[0].Silence()
			if i%2 == 1 {
				paths[0].Reset()
			}
			err := wait(ctx, 25*time.Second)
			paths[0].Heal()
			return err
		})
		if err != nil {
			return err
		}
		c.to = verify.At(time.Now())
		cuts = append(cuts, c)
		if err := wait(ctx, 8*time.Second); err != nil {
			return err
		}
		if err := s.revive(ctx, s.fleet.Admins[0]); err != nil {
			return err
		}
	}
	j, err := s.finish(ctx)
	if j == nil {
		return err
	}
	granted := 0
	for _, r := range j.rows {
		for _, c := range cuts {
			// What was on its way when the cut came has until a second later.
			if r.Node == "admin-1" && r.GrantedAt > c.from+verify.Span(time.Second) && r.GrantedAt < c.to {
				granted++
			}
		}
	}
	kept, lost := leases(j, cuts)
	s.result.Figures["leasesLost"], s.result.Figures["grantedByIt"] = lost, granted
	s.figure("%d leases lost of %d runs under way (goal 0); granted by it: %d; lateness %s", lost, kept+lost, granted, j.inside)
	if lost > 0 {
		err = errors.Join(err, fmt.Errorf("%d leases lost", lost))
	}
	if granted > 0 {
		err = errors.Join(err, fmt.Errorf("%d runs granted by the node without a database", granted))
	}
	return err
}
