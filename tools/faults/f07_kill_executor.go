package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/carillon-sched/carillon/admin/verify"
)

// work starts n jobs that fire at that pace, spread over it, and whose handler
// works for a while; half of them may be repeated when they are lost.
func (s *stage) work(ctx context.Context, n int, every time.Duration, ms int64) error {
	if err := s.begin(ctx, workJobs(n, every, ms, time.Now().Truncate(time.Second))); err != nil {
		return err
	}
	return wait(ctx, time.Duration(ms)*time.Millisecond)
}

// workJobs are the jobs of work.
func workJobs(n int, every time.Duration, ms int64, start time.Time) []job {
	jobs := make([]job, n)
	for i := range jobs {
		jobs[i] = job{
			name: fmt.Sprintf("work-%03d", i), handler: handlerWork, input: workInput{Ms: ms}, kind: "fixed_rate", every: every,
			startAt: start.Add(time.Duration(i) * every / time.Duration(n)).Truncate(time.Millisecond),
		}
		if i%2 == 1 {
			jobs[i].handler, jobs[i].onLost = handlerWorkIdem, "retry"
		}
	}
	return jobs
}

// kill is one SIGKILL of one executor.
type kill struct {
	executor string
	at       verify.Time
	atOnce   bool // its successor came at once
}

// f07 kills executors in the middle of runs. Every other one comes back at
// once (its successor has the journal's lock: the old leases end), the others
// after their leases have run out.
func f07(ctx context.Context, s *stage) error {
	if err := s.open(ctx, fleetPlan{admins: 2, executors: 3}); err != nil {
		return err
	}
	if err := s.work(ctx, pick(s.set, 30, 20), time.Second, 1500); err != nil {
		return err
	}
	var kills []kill
	for i := range s.rounds(12, 4) {
		w := s.executors[i%len(s.executors)]
		k := kill{w.name, verify.At(time.Now()), i%2 == 0}
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
	return errors.Join(err, s.killedRuns(ctx, j, kills))
}

// killedRuns checks what became of the runs whose process was killed.
func (s *stage) killedRuns(ctx context.Context, j *judged, kills []kill) error {
	alerts, err := s.alerts(ctx, "run_lost")
	if err != nil {
		return err
	}
	var wrong problems
	var silent, back []float64
	lost, reruns := 0, 0
	for _, run := range j.runs {
		if run.End != 0 {
			continue
		}
		row := j.rows[run.Key]
		verdict := row.FinishedAt
		switch {
		case row.State == "lost":
			lost++
			if n := alerts[run.Key]; n != 1 {
				wrong.add("lost runs without exactly one alert", "run %s has %d", run.Key, n)
			}
		case row.State == "succeeded" && row.Fence > run.Fence:
			reruns++
			verdict = nextStart(j, run) // another kill may have hit that one, too
		default:
			wrong.add("killed runs without a verdict", "run %s had fence %d and is %s with fence %d", run.Key, run.Fence, row.State, row.Fence)
			continue
		}
		i := slices.IndexFunc(kills, func(k kill) bool { return k.executor == executorOf(run) && k.at >= run.Start })
		if i < 0 {
			wrong.add("runs without an end whose process nobody killed", "run %s on %s", run.Key, run.Boot)
			continue
		}
		if took := float64(verdict-kills[i].at) / 1000; kills[i].atOnce {
			back = append(back, took)
		} else {
			silent = append(silent, took)
		}
	}
	quiet, prompt := summary(silent), summary(back)
	s.result.Figures["lost"], s.result.Figures["reruns"] = lost, reruns
	s.result.Figures["verdictWhenSilentMs"], s.result.Figures["verdictWhenBackMs"] = quiet, prompt
	s.figure("%d lost with one alert each, %d rerun; verdict p50 %.1f s, max %.1f s (goal 18 s); back at once: p50 %.2f s, max %.2f s (goal 1 s)",
		lost, reruns, quiet.P50/1000, quiet.Max/1000, prompt.P50/1000, prompt.Max/1000)
	s.goal("verdict", quiet.Max/1000, 18, "s")
	s.goal("verdict of one that is back", prompt.Max/1000, 1, "s")
	if lost == 0 || reruns == 0 {
		wrong.add("kinds of runs not seen", "%d lost, %d rerun: not enough evidence", lost, reruns)
	}
	return wrong.err()
}

// nextStart is the first start of a later attempt.
func nextStart(j *judged, old verify.Run) verify.Time {
	at := verify.Time(1 << 62)
	for _, r := range j.runs {
		if r.Key == old.Key && r.Fence > old.Fence {
			at = min(at, r.Start)
		}
	}
	return at
}

// alerts counts the alert events of a kind by execution.
func (s *stage) alerts(ctx context.Context, kind string) (map[string]int, error) {
	db, err := s.db.Open()
	if err != nil {
		return nil, err
	}
	defer db.Close()
	events, err := readEvents(ctx, db)
	out := map[string]int{}
	for _, e := range events {
		if e.Kind == kind {
			out[e.Run]++
		}
	}
	return out, err
}
