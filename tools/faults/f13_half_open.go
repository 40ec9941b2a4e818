package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/carillon-sched/carillon/admin/verify"
	"github.com/carillon-sched/carillon/internal/apiclient"
	"github.com/carillon-sched/carillon/internal/testenv/lab"
	"github.com/carillon-sched/carillon/tools/faults/netns"
)

// silence is a way in which an executor and an admin node hear nothing of each
// other, without an end of any connection.
type silence struct {
	kind string
	// deaf: what the executor says arrives all the same, heartbeats too, until
	// it gives its session up; the list calls it online for so much longer.
	deaf       bool
	begin, end func(net *netns.Net, k, b int) error
}

// f13 cuts an executor from everything: no byte comes or goes, and no end of a
// connection is told. Its handlers have to be cancelled before others take
// their runs over.
func f13(ctx context.Context, s *stage) error {
	return s.silent(ctx, silence{"blackhole", false, (*netns.Net).Pull, (*netns.Net).Plug})
}

// f14 is f13 in one direction only: what an executor says does not arrive, or
// what is said to it.
func f14(ctx context.Context, s *stage) error {
	return s.silent(ctx,
		silence{"nothing it says arrives", false, (*netns.Net).Mute, (*netns.Net).Hear},
		silence{"it hears nothing", true, (*netns.Net).Deafen, (*netns.Net).Hear})
}

func (s *stage) silent(ctx context.Context, kinds ...silence) error {
	net, err := s.openOnBridges(ctx, 2, 2)
	if err != nil {
		return err
	}
	if err := s.work(ctx, 20, 5*time.Second, 20_000); err != nil {
		return err
	}
	var gone, deaf []float64
	var cuts []cut
	for i := range s.rounds(4, len(kinds)) {
		k, one := i%2, kinds[i%len(kinds)]
		if len(kinds) > 1 {
			k = i / 2 % 2
		}
		c := cut{from: verify.At(time.Now())}
		err := s.fault(one.kind, s.executors[k].name, func() error {
			err := errors.Join(one.begin(net, k, 0), one.begin(net, k, 1))
			if err == nil {
				var took time.Duration
				took, err = s.untilOffline(ctx, s.executors[k].name)
				to := &gone
				if one.deaf {
					to = &deaf
				}
				*to = append(*to, float64(took.Milliseconds()))
			}
			err = errors.Join(err, waitUntil(ctx, c.from.Std().Add(40*time.Second)))
			return errors.Join(err, one.end(net, k, 0), one.end(net, k, 1))
		})
		if err != nil {
			return err
		}
		c.to = verify.At(time.Now())
		cuts = append(cuts, c)
		if err := wait(ctx, 25*time.Second); err != nil {
			return err
		}
	}
	j, err := s.finish(ctx)
	if j == nil {
		return err
	}
	var wrong problems
	var cancelled []float64
	takeovers := 0
	for _, r := range j.runs {
		i := slices.IndexFunc(cuts, func(c cut) bool { return r.Start < c.from && (r.End == 0 || r.End > c.from) })
		if i >= 0 && r.Cancelled {
			cancelled = append(cancelled, float64(r.End-cuts[i].from)/1000)
		}
		for _, next := range j.runs {
			if next.Key != r.Key || next.Fence <= r.Fence {
				continue
			}
			takeovers++
			if r.End == 0 || r.End > next.Start {
				wrong.add("take-overs before the old handler had ended", "run %s, fence %d and %d", r.Key, r.Fence, next.Fence)
			}
		}
	}
	g, c := summary(gone), summary(cancelled)
	s.result.Figures["offlineMs"], s.result.Figures["cancelledMs"], s.result.Figures["takeovers"] = g, c, takeovers
	heard := ""
	if len(deaf) > 0 {
		d := summary(deaf)
		s.result.Figures["deafOfflineMs"] = d
		heard = fmt.Sprintf(", one that is heard and hears nothing after max %.1f s", d.Max/1000)
	}
	s.figure("noticed after max %.1f s (goal 8 s)%s; %d handlers cancelled after max %.1f s, before all of %d take-overs",
		g.Max/1000, heard, c.Count, c.Max/1000, takeovers)
	s.goal("noticed", g.Max/1000, 8, "s")
	if c.Count == 0 || takeovers == 0 {
		wrong.add("kinds of runs not seen", "%d cancelled, %d taken over: not enough evidence", c.Count, takeovers)
	}
	return errors.Join(err, wrong.err())
}

// untilOffline waits until the instance is no longer said to be online.
func (s *stage) untilOffline(ctx context.Context, name string) (time.Duration, error) {
	began := time.Now()
	err := lab.Until(ctx, 35*time.Second, name+" noticed", func(ctx context.Context) error {
		list, err := s.fleet.Admins[0].API.ListInstances(ctx, s.tenant.executorID, apiclient.ListInstancesParams{})
		if err != nil {
			return err
		}
		for _, one := range list.Value.Items {
			if one.Name == name && one.State == "online" {
				return fmt.Errorf("it is %s", one.State)
			}
		}
		return nil
	})
	return time.Since(began), err
}
