package main

import (
	"context"
	"fmt"
	"time"
)

// f10 has handlers that do not listen: some ignore their context, some wait
// for themselves for ever. The connection answers pings all the while.
func f10(ctx context.Context, s *stage) error {
	if err := s.open(ctx, fleetPlan{admins: 2, executors: 2}); err != nil {
		return err
	}
	const timeout = 2 * time.Second
	stubborn := pick(s.set, 10*time.Minute, 30*time.Second)
	s.from = time.Now().Add(4 * time.Second).Truncate(time.Second)
	n := s.rounds(20, 10)
	jobs := make([]job, n)
	for i := range jobs {
		in := workInput{Ms: stubborn.Milliseconds(), Stubborn: i%2 == 0, Deadlock: i%2 == 1}
		// The second fire time has to wait for the first one's handler.
		jobs[i] = job{
			name: fmt.Sprintf("stubborn-%02d", i), handler: handlerWork, input: in, timeout: timeout, blocking: "serial",
			kind: "fixed_rate", every: 5 * time.Second, startAt: s.from, endAt: s.from.Add(6 * time.Second),
		}
	}
	if _, err := s.create(ctx, s.tenant, jobs); err != nil {
		return err
	}
	if err := s.rest(ctx); err != nil {
		return err
	}
	if err := waitUntil(ctx, s.from); err != nil {
		return err
	}
	began := time.Now()
	if err := wait(ctx, stubborn+timeout); err != nil {
		return err
	}
	if err := s.faults("handler does not listen", "executors", began, time.Now(), n); err != nil {
		return err
	}
	// The second handlers are as stubborn as the first.
	if err := wait(ctx, stubborn+5*time.Second); err != nil {
		return err
	}
	j, err := s.finish(ctx)
	if j == nil {
		return err
	}
	var wrong problems
	var detection []float64
	overlaps := 0
	for _, r := range j.runs {
		row := j.rows[r.Key]
		if row.State != "timed_out" {
			wrong.add("stubborn runs that did not time out", "run %s is %s", r.Key, row.State)
			continue
		}
		detection = append(detection, float64(row.FinishedAt-r.Start)/1000)
		for _, other := range j.runs {
			if other.Job == r.Job && other.Key != r.Key && other.Start >= r.Start && other.Start < r.End {
				overlaps++
				wrong.add("runs beside a handler that still runs, in a serial job", "runs %s and %s", r.Key, other.Key)
			}
		}
	}
	d := summary(detection)
	s.result.Figures["detectionMs"], s.result.Figures["overlaps"] = d, overlaps
	s.figure("timed out %.1f s after the start at p50, max %.1f s (timeout 2 s, then 10 s of grace); %d overlaps", d.P50/1000, d.Max/1000, overlaps)
	if d.Count == 0 {
		wrong.add("kinds of runs not seen", "no run timed out: not enough evidence")
	}
	if err != nil {
		return err
	}
	return wrong.err()
}
