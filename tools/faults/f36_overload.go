package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/admin/verify"
	"github.com/carillon-sched/carillon/internal/testenv/lab"
)

const (
	// shortWork is how long a run of the overload holds its slot.
	shortWork = 200 * time.Millisecond
	// recoveryLimit is how long after a load's or the faults' end fresh runs may
	// be late.
	recoveryLimit = time.Minute
	// leastGoodput is the part of what can be done that is done under overload.
	leastGoodput = 0.9
)

// overload is a way in which more is due than can be done.
type overload struct {
	name string
	// begin and heal are what is wrong beside the load.
	begin, heal func() error
	// none: nothing can be done meanwhile.
	none bool

	capacity, goodput float64 // runs per second
	again             time.Duration
	well              bool // again within the limit
}

// f36 has three times more due than can be done for some minutes, then a tenth:
// because executors have few slots, with a database that is ten times slower
// beside it, and with no executor. What counts is what is done meanwhile, and
// how soon fresh runs are on time afterwards. Of three jobs one does not want
// its runs late; a run that is given up has a row that says so.
func f36(ctx context.Context, s *stage) error {
	paths, via := s.databasePaths(2, nil)
	slots := pick(s.set, 32, 16)
	if err := s.open(ctx, fleetPlan{admins: 2, executors: 2, slots: slots, database: via}); err != nil {
		return err
	}
	fine := func() error { return nil }
	// The database answers a statement within 1 ms: with 10 more it is ten
	// times slower.
	slow := func(way time.Duration) func() error {
		return func() error {
			for _, p := range paths {
				p.Delay(way)
			}
			return nil
		}
	}
	kinds := []*overload{
		{name: "few slots", begin: fine, heal: fine},
		{name: "slow database", begin: slow(5 * time.Millisecond), heal: slow(0)},
		{name: "executors away", begin: s.killExecutors, heal: s.startExecutors, none: true},
	}
	s.from = time.Now().Truncate(time.Second)
	if err := s.rest(ctx); err != nil {
		return err
	}
	bound := float64(2*slots) / shortWork.Seconds()
	for _, o := range kinds {
		if err := s.overload(ctx, o, bound); err != nil {
			return fmt.Errorf("%s: %w", o.name, err)
		}
	}
	j, err := s.finish(ctx)
	if j == nil {
		return err
	}
	return errors.Join(err, s.judgeOverload(j, kinds))
}

// overload plays one kind, and ends with nothing left to run.
func (s *stage) overload(ctx context.Context, o *overload, bound float64) (err error) {
	due := bound
	if !o.none {
		if err := s.capacity(ctx, o, bound); err != nil {
			return err
		}
		due = o.capacity
	}
	few, n, lasts := int(due)/10, int(3*due), s.lasts(7*time.Minute, 40*time.Second)
	ids, from, err := s.shortJobs(ctx, "overload by "+o.name, n, few, lasts)
	if err != nil {
		return err
	}
	to := from.Add(lasts)
	var tail *lab.Tail
	err = s.fault(fmt.Sprintf("3 × capacity for %s, %s", lasts, o.name), "load", func() error {
		begun := errors.Join(o.begin(), waitUntil(ctx, to.Add(-time.Second)))
		tail, err = lab.Follow(s.historyDir())
		return errors.Join(begun, err, waitUntil(ctx, to), o.heal())
	})
	if err != nil {
		return err
	}
	if o.again, o.well, err = s.recovery(ctx, tail, to, few); err != nil {
		return err
	}
	if !o.none {
		if o.goodput, err = s.doneIn(ids, from.Add(lasts/5), to); err != nil {
			return err
		}
		say("%s: %.0f runs a second were done", o.name, o.goodput)
	}
	return s.endLoad(ctx)
}

// shortJobs makes n jobs of short work that fire each second from an instant
// on; all but the first few of them for so long only.
func (s *stage) shortJobs(ctx context.Context, name string, n, few int, lasts time.Duration) (ids []string, from time.Time, err error) {
	from = time.Now().Add(5*time.Second + time.Duration(n)*20*time.Millisecond).Truncate(time.Second)
	jobs := make([]job, n)
	for i := range jobs {
		j := steadyJob(i, n, from)
		j.name = fmt.Sprintf("%s-%04d", name, i)
		j.input, j.wait = workInput{Ms: shortWork.Milliseconds()}, 5*time.Minute
		if j.handler = handlerWork; i%3 == 0 {
			j.handler = handlerWorkIdem
		}
		if i%3 == 1 && few > 0 { // all of what is measured first is to run
			j.wait = max(lasts/4, time.Second)
		}
		if i >= few {
			j.endAt = from.Add(lasts - time.Millisecond)
		}
		jobs[i] = j
	}
	if ids, err = s.create(ctx, s.tenant, jobs); err == nil && time.Now().After(from) {
		err = fmt.Errorf("creating %d jobs took longer than there was time", n)
	}
	return ids, from, err
}

// capacity is what is done per second when a little more is due than the slots
// can do.
func (s *stage) capacity(ctx context.Context, o *overload, bound float64) error {
	const lasts = 10 * time.Second
	ids, from, err := s.shortJobs(ctx, "capacity with "+o.name, int(1.1*bound), 0, lasts)
	if err != nil {
		return err
	}
	if err := errors.Join(o.begin(), waitUntil(ctx, from.Add(lasts)), o.heal()); err != nil {
		return err
	}
	if err := s.ended(ctx, farFuture, settleLimit); err != nil {
		return err
	}
	s.firing.Clear() // they are over
	o.capacity, err = s.doneIn(ids, from.Add(2*time.Second), from.Add(lasts))
	say("%s: %.0f runs a second can be done, %.0f by slots", o.name, o.capacity, bound)
	if err == nil && o.capacity < bound/10 {
		err = errors.New("too few to measure")
	}
	return err
}

func (s *stage) killExecutors() error {
	for _, w := range s.executors {
		w.Kill()
	}
	return nil
}

func (s *stage) startExecutors() error {
	for _, w := range s.executors {
		if err := s.startExecutor(w); err != nil {
			return err
		}
	}
	return nil
}

// doneIn is how many handlers of some jobs returned per second, by what they
// wrote down.
func (s *stage) doneIn(ids []string, from, to time.Time) (float64, error) {
	h, err := verify.ReadPaths(s.historyDir())
	if err != nil {
		return 0, err
	}
	n := 0
	for _, r := range h.Runs {
		if r.End >= verify.At(from) && r.End < verify.At(to) && !r.Failed && slices.Contains(ids, r.Job) {
			n++
		}
	}
	return float64(n) / to.Sub(from).Seconds(), nil
}

// recovery waits until the fresh runs of so many jobs, which fire each second,
// are on time again, for as long as that may take. The tail began before the end.
func (s *stage) recovery(ctx context.Context, tail *lab.Tail, end time.Time, jobs int) (took time.Duration, ok bool, err error) {
	const look = 2 * time.Second
	for limit := end.Add(recoveryLimit + look); !ok && time.Now().Before(limit); {
		if err := wait(ctx, look); err != nil {
			return 0, false, err
		}
		runs, err := tail.Runs()
		if err != nil {
			return 0, false, err
		}
		took, ok = lab.OnTimeAgain(runs, verify.At(end), jobs)
	}
	say("on time again: %v, after %s", ok, took)
	return took, ok && took <= recoveryLimit, nil
}

// endLoad pauses what fires, and waits until nothing is left to run.
func (s *stage) endLoad(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	if err := s.pauseAll(ctx); err != nil {
		return err
	}
	s.firing.Clear()
	return s.ended(ctx, farFuture, settleLimit)
}

// judgeOverload says what of promise P13 was not kept.
func (s *stage) judgeOverload(j *judged, kinds []*overload) error {
	var wrong problems
	var words []string
	told := 0
	for _, r := range j.rows {
		if r.State == "missed" && r.Reason == "no_executor" {
			told++
		}
	}
	for _, o := range kinds {
		text := o.name + ":"
		figures := map[string]any{"onTimeAgainSeconds": -1.0}
		if !o.none {
			part := o.goodput / o.capacity
			text += fmt.Sprintf(" %.0f %% of %.0f/s done;", 100*part, o.capacity)
			figures["capacityPerSecond"], figures["goodputPerSecond"] = o.capacity, o.goodput
			if part < leastGoodput {
				wrong.add("overloads under which too little was done", "%s: %.0f %% of what can be done", o.name, 100*part)
			}
		}
		if o.well {
			text += fmt.Sprintf(" on time after %.0f s", o.again.Seconds())
			figures["onTimeAgainSeconds"] = o.again.Seconds()
		} else {
			text += fmt.Sprintf(" not on time within %s", recoveryLimit)
			wrong.add("overloads after which fresh runs stayed late", "%s: for more than %s", o.name, recoveryLimit)
		}
		words = append(words, text)
		s.result.Figures[o.name] = figures
	}
	s.result.Figures["givenUp"] = told
	s.figure("%s; %d runs given up with a reason", strings.Join(words, "; "), told)
	return wrong.err()
}
