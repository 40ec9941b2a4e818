package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/carillon-sched/carillon/admin/verify"
	"github.com/carillon-sched/carillon/tools/faults/netns"
)

// openOnBridges puts every admin node on a bridge of its own and every
// executor into a network namespace with a cable to each of them.
func (s *stage) openOnBridges(ctx context.Context, admins, executors int) (*netns.Net, error) {
	net, err := netns.New(admins, executors)
	var no *netns.Unable
	if errors.As(err, &no) {
		return nil, &unableError{no.Error()}
	}
	if err != nil {
		return nil, err
	}
	s.defers(net.Close)
	return net, s.open(ctx, fleetPlan{admins: admins, executors: executors, host: net.Address, space: net.Space})
}

// f12 cuts one admin node from all executors for longer than a lease, while
// both reach everybody else.
func f12(ctx context.Context, s *stage) error {
	net, err := s.openOnBridges(ctx, 2, 2)
	if err != nil {
		return err
	}
	if err := s.work(ctx, 20, time.Second, 4000); err != nil {
		return err
	}
	var cuts []cut
	for range s.rounds(3, 1) {
		c := cut{from: verify.At(time.Now())}
		err := s.fault("isolated from the executors", "admin-1", func() error {
			err := errors.Join(net.Pull(0, 0), net.Pull(1, 0))
			err = errors.Join(err, wait(ctx, 30*time.Second))
			return errors.Join(err, net.Plug(0, 0), net.Plug(1, 0))
		})
		if err != nil {
			return err
		}
		c.to = verify.At(time.Now())
		cuts = append(cuts, c)
		if err := wait(ctx, 20*time.Second); err != nil {
			return err
		}
	}
	j, err := s.finish(ctx)
	if j == nil {
		return err
	}
	survived, lost := leases(j, cuts)
	s.result.Figures["leasesLost"], s.result.Figures["runsOverTheCut"] = lost, survived+lost
	s.figure("%d leases lost of %d runs under way in the cut (goal 0); lateness %s", lost, survived+lost, j.inside)
	if lost > 0 {
		err = errors.Join(err, fmt.Errorf("%d leases lost", lost))
	}
	if survived+lost == 0 {
		err = errors.Join(err, errors.New("no run was under way: not enough evidence"))
	}
	return err
}

// cut is the time in which something was cut off.
type cut struct{ from, to verify.Time }

// leases counts the runs that were under way when a cut began or during it, by
// whether they went on to their end.
func leases(j *judged, cuts []cut) (kept, lost int) {
	for _, r := range j.runs {
		for _, c := range cuts {
			if r.Start > c.to || r.End != 0 && r.End < c.from {
				continue
			}
			if r.End == 0 || r.Cancelled || j.rows[r.Key].State != "succeeded" {
				lost++
			} else {
				kept++
			}
			break
		}
	}
	return kept, lost
}
