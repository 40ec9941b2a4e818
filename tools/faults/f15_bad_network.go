package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/carillon-sched/carillon/internal/testenv/proxy"
)

// f15 makes the paths between executors and admins bad in three ways, one after
// the other. They are slow then, and nobody is dead.
func f15(ctx context.Context, s *stage) error {
	paths, via := s.executorPaths(2)
	if err := s.open(ctx, fleetPlan{admins: 2, executors: 2, advertise: via}); err != nil {
		return err
	}
	if err := s.load(ctx, 20); err != nil {
		return err
	}
	each := func(do func(p *proxy.Proxy)) {
		for _, p := range paths {
			do(p)
		}
	}
	lasts := pick(s.set, 2*time.Minute, 30*time.Second)
	for _, bad := range []struct {
		kind        string
		begin, heal func(p *proxy.Proxy)
	}{
		{"30 % loss", func(p *proxy.Proxy) { p.Impair(&proxy.Poor{Loss: 0.3}) }, func(p *proxy.Proxy) { p.Impair(nil) }},
		{"1 Mbit/s", func(p *proxy.Proxy) { p.Impair(&proxy.Poor{BytesPerSecond: 125_000}) }, func(p *proxy.Proxy) { p.Impair(nil) }},
		{"300 ms delay", func(p *proxy.Proxy) { p.Delay(300 * time.Millisecond) }, func(p *proxy.Proxy) { p.Delay(0) }},
	} {
		err := s.fault(bad.kind, "admin-executor", func() error {
			each(bad.begin)
			defer each(bad.heal)
			return wait(ctx, lasts)
		})
		if err != nil {
			return err
		}
		if err := wait(ctx, 5*time.Second); err != nil {
			return err
		}
	}
	dead, err := s.deaths(ctx)
	if err != nil {
		return err
	}
	connections := int64(0)
	each(func(p *proxy.Proxy) { connections += p.Accepted() })
	j, err := s.finish(ctx)
	if j != nil {
		s.result.Figures["falseDeaths"], s.result.Figures["connections"] = dead, connections
		s.figure("%d false deaths (goal 0) in three times %s; %d connections in all; lateness %s", dead, lasts, connections, j.inside)
	}
	if dead > 0 {
		err = errors.Join(err, fmt.Errorf("%d instances were declared gone, or lost a run, while they lived", dead))
	}
	return err
}

// deaths counts the living instances that were declared gone, and the runs that
// were lost with one.
func (s *stage) deaths(ctx context.Context) (n int, err error) {
	db, err := s.db.Open()
	if err != nil {
		return 0, err
	}
	defer db.Close()
	err = db.QueryRowContext(ctx, `SELECT (SELECT COUNT(*) FROM instances WHERE gone_at > 0)
		+ (SELECT COUNT(*) FROM executions WHERE state = 14)`).Scan(&n)
	return n, err
}
