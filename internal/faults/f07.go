package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/carillon-sched/carillon/admin/verify"
)

// work starts n jobs per second whose handler works for a while; half of them
// may be repeated when they are lost.
func (s *stage) work(ctx context.Context, n int, ms int64) error {
	s.from = time.Now().Add(4 * time.Second).Truncate(time.Second)
	jobs := make([]job, n)
	for i := range jobs {
		jobs[i] = job{
			name: fmt.Sprintf("work-%03d", i), handler: handlerWork, input: workInput{Ms: ms}, kind: "fixed_rate", every: time.Second,
			startAt: s.from.Add(time.Duration(i) * time.Second / time.Duration(n)).Truncate(time.Millisecond),
		}
		if i%2 == 1 {
			jobs[i].handler, jobs[i].onLost, jobs[i].maxAttempts = handlerWorkIdem, "retry", 5
		}
	}
	if _, err := s.create(ctx, s.tenant, jobs); err != nil {
		return err
	}
	if err := waitUntil(ctx, s.from.Add(2*time.Second+time.Duration(ms)*time.Millisecond)); err != nil {
		return err
	}
	return s.rest(ctx)
}

// f07 kills executors in the middle of runs. Every other one comes back at
// once (its successor has the journal's lock: the old leases end), the others
// after their leases have run out.
func f07(ctx context.Context, s *stage) error {
	if err := s.open(ctx, fleetPlan{admins: 2, executors: 3}); err != nil {
		return err
	}
	if err := s.work(ctx, pick(s.set, 30, 20), 1500); err != nil {
		return err
	}
	type kill struct {
		at     verify.Time
		atOnce bool
	}
	var kills []kill
	for i := range s.rounds(12, 4) {
		w := s.executors[i%len(s.executors)]
		k := kill{verify.At(time.Now()), i%2 == 0}
		kills = append(kills, k)
		err := s.fault("sigkill", w.name, func() error {
			w.Kill()
			if k.atOnce {
				return s.startExecutor(w)
			}
			if err := wait(ctx, 22*time.Second); err != nil {
				return err
			}
			return s.startExecutor(w)
		})
		if err != nil {
			return err
		}
		if err := wait(ctx, 4*time.Second); err != nil {
			return err
		}
	}
	j, err := s.finish(ctx)
	if j == nil {
		return err
	}
	rows := rowsByKey(j)
	alerts, aerr := s.alerts(ctx, "lost")
	err = errors.Join(err, aerr)
	var silent, back []float64
	lost, reruns := 0, 0
	for _, run := range j.history.Runs {
		if run.End != 0 {
			continue
		}
		row := rows[run.Key]
		at := row.FinishedAt
		switch {
		case row.State == "lost":
			lost++
			if n := alerts[run.Key]; n != 1 {
				err = errors.Join(err, fmt.Errorf("run %s is lost and has %d alerts", run.Key, n))
			}
		case row.State == "succeeded" && row.Fence > run.Fence:
			reruns++
			at = row.StartedAt
		default:
			err = errors.Join(err, fmt.Errorf("run %s was killed with fence %d and is %s with fence %d", run.Key, run.Fence, row.State, row.Fence))
		}
		for i := len(kills) - 1; i >= 0; i-- {
			if kills[i].at >= run.Start {
				continue
			}
			if i+1 < len(kills) { // the kill after its start ended it
				took := float64(at-kills[i+1].at) / 1000
				if kills[i+1].atOnce {
					back = append(back, took)
				} else {
					silent = append(silent, took)
				}
			}
			break
		}
	}
	quiet, prompt := summary(silent), summary(back)
	s.result.Figures["lost"], s.result.Figures["reruns"] = lost, reruns
	s.result.Figures["verdictWhenSilentMs"], s.result.Figures["verdictWhenBackMs"] = quiet, prompt
	s.figure("%d lost with one alert each, %d rerun; verdict p50 %.1f s, max %.1f s (goal 18 s); back at once: p50 %.2f s, max %.2f s (goal 1 s)",
		lost, reruns, quiet.P50/1000, quiet.Max/1000, prompt.P50/1000, prompt.Max/1000)
	if err == nil && (lost == 0 || reruns == 0) {
		err = errors.New("no run was under way when an executor was killed: not enough evidence")
	}
	return err
}

func rowsByKey(j *judged) map[string]verify.Row {
	rows := make(map[string]verify.Row, len(j.history.Rows))
	for _, r := range j.history.Rows {
		rows[r.Key] = r
	}
	return rows
}

// alerts counts the alert events of a kind by execution.
func (s *stage) alerts(ctx context.Context, kind string) (map[string]int, error) {
	db, err := s.db.Open()
	if err != nil {
		return nil, err
	}
	defer db.Close()
	rows, err := db.QueryContext(ctx, "SELECT execution_id, COUNT(*) FROM alert_events WHERE kind = ? GROUP BY execution_id", kind)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	out := map[string]int{}
	for rows.Next() {
		var key string
		var n int
		if err := rows.Scan(&key, &n); err != nil {
			return nil, err
		}
		out[key] = n
	}
	return out, rows.Err()
}
