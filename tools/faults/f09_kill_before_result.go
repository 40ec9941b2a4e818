package main

import (
	"context"
	"errors"
	"time"

	"github.com/carillon-sched/carillon/internal/testenv/proxy"
)

// f09 kills executors that hold results which no admin has heard of: the path
// goes silent, the handlers end, the processes die, their successors start on
// the same journals.
func f09(ctx context.Context, s *stage) error {
	paths := make([]*proxy.Proxy, 2)
	err := s.open(ctx, fleetPlan{admins: 2, executors: 2, advertise: func(i int, listens string) (string, error) {
		p, err := proxy.New(listens, proxy.Options{})
		if err != nil {
			return "", err
		}
		s.defers(p.Close)
		paths[i] = p
		return p.Addr(), nil
	}})
	if err != nil {
		return err
	}
	const handlerMs = 200
	if err := s.work(ctx, pick(s.set, 60, 30), time.Second, handlerMs); err != nil {
		return err
	}
	for range s.rounds(50, 8) {
		err := s.fault("sigkill before the result", "executors", func() error {
			for _, p := range paths {
				p.Silence()
			}
			// Handlers end and their results reach the journal; no new ones start.
			if err := wait(ctx, 3*handlerMs*time.Millisecond); err != nil {
				return err
			}
			for _, w := range s.executors {
				w.Kill()
			}
			for _, p := range paths {
				p.Reset()
				p.Heal()
			}
			for _, w := range s.executors {
				if err := s.startExecutor(w); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		if err := wait(ctx, 2*time.Second); err != nil {
			return err
		}
	}
	j, err := s.finish(ctx)
	if j == nil {
		return err
	}
	var wrong problems
	ended, lost := 0, 0
	for _, run := range j.runs {
		if run.End == 0 {
			continue
		}
		ended++
		if state := j.rows[run.Key].State; state != "succeeded" {
			lost++
			wrong.add("lost results", "run %s, whose handler ended, is %s", run.Key, state)
		}
	}
	err = errors.Join(err, wrong.err())
	s.result.Figures["results"], s.result.Figures["lostResults"] = ended, lost
	s.figure("%d lost results of %d, over %d executors killed (goal 0)", lost, ended, 2*s.result.Injected)
	return err
}
