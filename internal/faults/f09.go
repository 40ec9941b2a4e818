package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/carillon-sched/carillon/internal/faults/proxy"
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
	if err := s.work(ctx, pick(s.set, 60, 30), handlerMs); err != nil {
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
	rows := rowsByKey(j)
	ended, lost := 0, 0
	for _, run := range j.history.Runs {
		if run.End == 0 {
			continue
		}
		ended++
		if rows[run.Key].State != "succeeded" {
			lost++
			err = errors.Join(err, fmt.Errorf("the handler of run %s ended, and the run is %s", run.Key, rows[run.Key].State))
		}
	}
	s.result.Figures["results"], s.result.Figures["lostResults"] = ended, lost
	s.figure("%d lost results of %d, over %d executors killed (goal 0)", lost, ended, 2*s.result.Injected)
	return err
}
