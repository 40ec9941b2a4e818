package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/admin/verify"
	"github.com/carillon-sched/carillon/internal/testenv"
)

// f41 is MySQL with Group Replication, f42 MariaDB with Galera.
func f41(ctx context.Context, s *stage) error { return s.breakCluster(ctx, testenv.MySQL) }

func f42(ctx context.Context, s *stage) error { return s.breakCluster(ctx, testenv.MariaDB) }

// outage is one fault of a cluster, and for how long nothing started.
type outage struct {
	name     string
	from, to verify.Time
	// most is the goal in ms: what the cluster needs to exclude a member, and ours.
	most float64
}

// breakCluster kills, freezes and cuts members of a cluster of three under load,
// and starts them anew one after the other.
func (s *stage) breakCluster(ctx context.Context, product testenv.Product) error {
	c, err := s.newCluster(product)
	if err != nil {
		return err
	}
	s.cluster = c // to be closed
	if err := s.open(ctx, fleetPlan{admins: 2, executors: 2, cluster: c}); err != nil {
		return err
	}
	s.result.Database = fmt.Sprintf("%s %s", product, strings.TrimPrefix(s.result.Database, string(s.set.product)+" "))
	if err := s.load(ctx, s.rate()); err != nil {
		return err
	}
	pause := pick(s.set, 20*time.Second, 12*time.Second)
	faults := []struct {
		name string
		most float64
		do   func() error
	}{
		{"writer killed", 10_000, func() error {
			w := c.Writer()
			return errors.Join(c.Members()[w].Kill(), wait(ctx, pause), c.Start(w))
		}},
		{"writer frozen", 12_000, func() error {
			w := c.Writer()
			return errors.Join(c.Members()[w].Freeze(), wait(ctx, pause), c.Members()[w].Thaw(), wait(ctx, 2*time.Second), c.Rejoin(w))
		}},
		{"writer cut off", 12_000, func() error {
			heal, err := c.cut(c.Writer(), clientNet, groupNet)
			return errors.Join(err, wait(ctx, pause), heal())
		}},
		{"writer in the minority", 12_000, func() error {
			heal, err := c.cut(c.Writer(), groupNet)
			return errors.Join(err, wait(ctx, pause), heal())
		}},
		{"another member in the minority", 12_000, func() error {
			heal, err := c.cut((c.Writer()+1)%len(c.Members()), groupNet)
			return errors.Join(err, wait(ctx, pause), heal())
		}},
		{"rolling restart", 6_000, func() error { return c.roll(ctx) }},
	}
	var outages []outage
	for range s.rounds(2, 1) {
		for _, f := range faults {
			o := outage{name: f.name, most: f.most, from: verify.At(time.Now())}
			if err := s.fault(f.name, "database cluster", f.do); err != nil {
				return fmt.Errorf("%s: %w", f.name, err)
			}
			o.to = verify.At(time.Now())
			outages = append(outages, o)
			if err := wait(ctx, 5*time.Second); err != nil {
				return err
			}
			for _, a := range s.fleet.Admins {
				if err := s.revive(ctx, a); err != nil {
					return err
				}
			}
		}
	}
	j, err := s.finish(ctx)
	if j == nil {
		return err
	}
	var words []string
	for _, o := range outages {
		ms := j.pause(o.from, o.to)
		words = append(words, fmt.Sprintf("%s %.1f s", o.name, ms/1000))
		s.result.Figures[o.name] = ms
		s.goal(o.name, ms, o.most, "ms")
	}
	s.figure("nothing started for: %s; lateness %s", strings.Join(words, ", "), j.inside)
	if err == nil {
		err = s.noStartWithoutRow(j)
	}
	return err
}

// roll restarts all members, the writer last, after another has taken its place:
// a primary of MySQL 9.7 that is told to end under load leaves its group a minute
// later.
func (c *cluster) roll(ctx context.Context) error {
	w, n := c.Writer(), len(c.Members())
	for k := 1; k <= n; k++ {
		i := (w + k) % n
		var err error
		if i == w {
			err = c.HandOver(i)
		}
		if err = errors.Join(err, c.Members()[i].Stop(), c.Start(i), wait(ctx, 2*time.Second)); err != nil {
			return fmt.Errorf("member %d: %w", i+1, err)
		}
	}
	return nil
}

// pause is the longest time, in ms, in which nothing started.
func (j *judged) pause(from, to verify.Time) float64 {
	var starts []verify.Time
	for _, r := range j.history.Runs {
		if r.Start >= from && r.Start <= to {
			starts = append(starts, r.Start)
		}
	}
	return longestGap(from, to, starts)
}

// longestGap is the longest of the times between two starts, in ms.
func longestGap(from, to verify.Time, starts []verify.Time) float64 {
	slices.Sort(starts)
	var longest verify.Time
	last := from
	for _, at := range append(starts, to) {
		longest = max(longest, at-last)
		last = at
	}
	return float64(longest) / 1000
}
