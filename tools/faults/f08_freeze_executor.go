package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/carillon-sched/carillon/admin/verify"
)

// f08 freezes an executor in the middle of runs for shorter and for longer
// than its leases. While its old handlers stand still others may take over;
// what counts is that it notices when it wakes up.
func f08(ctx context.Context, s *stage) error {
	if err := s.open(ctx, fleetPlan{admins: 2, executors: 2}); err != nil {
		return err
	}
	if err := s.work(ctx, pick(s.set, 20, 10), time.Second, 4000); err != nil {
		return err
	}
	pauses := pick(s.set, []time.Duration{5 * time.Second, 11 * time.Second, 14 * time.Second, 16 * time.Second, time.Minute},
		[]time.Duration{5 * time.Second, 20 * time.Second})
	type frozen struct{ from, to verify.Time }
	var times []frozen
	for i := range s.rounds(len(pauses), len(pauses)) {
		w, pause := s.executors[i%len(s.executors)], pauses[i%len(pauses)]
		err := s.fault("sigstop "+pause.String(), w.name, func() error {
			f := frozen{from: verify.At(time.Now())}
			if err := w.Freeze(); err != nil {
				return err
			}
			err := wait(ctx, pause)
			f.to = verify.At(time.Now())
			times = append(times, f)
			return errors.Join(err, w.Thaw())
		})
		if err != nil {
			return err
		}
		if err := wait(ctx, 6*time.Second); err != nil {
			return err
		}
	}
	j, err := s.finish(ctx)
	if j == nil {
		return err
	}
	// Both live: the old handler goes on after it woke up while a newer
	// attempt of the same run has started and not ended.
	newest := map[string]verify.Run{}
	for _, r := range j.runs {
		if r.Fence > newest[r.Key].Fence {
			newest[r.Key] = r
		}
	}
	var both, cancels []float64
	for _, old := range j.runs {
		for _, f := range times {
			if old.Start >= f.from || old.End != 0 && old.End < f.to {
				continue // it was not frozen here
			}
			if old.Cancelled {
				cancels = append(cancels, float64(old.End-f.to)/1000)
			}
			next := newest[old.Key]
			if next.Fence > old.Fence && old.End != 0 {
				from, to := max(f.to, next.Start), old.End
				if next.End != 0 {
					to = min(to, next.End)
				}
				both = append(both, max(0, float64(to-from)/1000))
			}
			break
		}
	}
	over := 0
	for _, ms := range both {
		if ms > 50 {
			over++
		}
	}
	late := 0
	for _, r := range j.rows {
		if r.State == "lost" {
			late++
		}
	}
	b, c := summary(both), summary(cancels)
	s.result.Figures["bothLiveMs"], s.result.Figures["resumeToCancelMs"], s.result.Figures["stillLost"] = b, c, late
	s.figure("both live max %.0f ms in %d take-overs; resume→cancel p50 %.0f ms, max %.0f ms (goal 50 ms) of %d; %d runs stayed lost",
		b.Max, b.Count, c.P50, c.Max, c.Count, late)
	s.goal("resume→cancel", c.Max, 50, "ms")
	if over > 0 {
		err = errors.Join(err, fmt.Errorf("%d handlers went on for more than 50 ms beside their successor", over))
	}
	if b.Count == 0 || c.Count == 0 {
		err = errors.Join(err, fmt.Errorf("%d take-overs, %d cancelled: not enough evidence", b.Count, c.Count))
	}
	return err
}
