package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/carillon-sched/carillon/admin/verify"
	"github.com/carillon-sched/carillon/internal/apiclient"
	"github.com/carillon-sched/carillon/internal/testenv/lab"
)

// stopID is not of the matrix: it shows how soon a handler ends that is told to.
const stopID = "STOP"

// stopped is one run that is to be stopped.
type stopped struct {
	how, key string
	at       verify.Time // when it was told, or, with a timeout, when it was up
}

const (
	stopKill     = "kill"
	stopTimeout  = "timeout"
	stopCover    = "cover"
	stopStubborn = "kill, not listening"
	// stopAfter is the timeout of the runs that have one.
	stopAfter = 300 * time.Millisecond
	// deafFor is how long those that do not listen work: longer than the grace.
	deafFor = 14 * time.Second
)

// stop kills runs, lets them time out and has others take their place: those
// that listen to their context, and those that do not.
func stop(ctx context.Context, s *stage) error {
	if err := s.open(ctx, fleetPlan{admins: 2, executors: 2}); err != nil {
		return err
	}
	s.from = time.Now()
	if err := s.rest(ctx); err != nil {
		return err
	}
	n := s.rounds(200, 25)
	var all []stopped
	for _, how := range []string{stopKill, stopTimeout, stopCover} {
		some, err := s.stopSome(ctx, how, n)
		if err != nil {
			return err
		}
		all = append(all, some...)
	}
	deaf, err := s.stopDeaf(ctx, min(n, 10))
	if err != nil {
		return err
	}
	s.result.Injected = len(all) + len(deaf)
	j, err := s.finish(ctx)
	if j == nil {
		return err
	}
	return errors.Join(err, s.judgeStopped(j, append(all, deaf...)))
}

// stopSome stops n runs in one way, a few at a time.
func (s *stage) stopSome(ctx context.Context, how string, n int) ([]stopped, error) {
	out := make([]stopped, n)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(5)
	for i := range out {
		group.Go(func() (err error) {
			if out[i], err = s.stopOne(ctx, how, i); err != nil {
				err = fmt.Errorf("%s %d: %w", how, i, err)
			}
			return err
		})
	}
	return out, group.Wait()
}

// ask asks for a run of the job through admin i and does not wait for it.
func (s *stage) ask(ctx context.Context, i int, job string) (key string, err error) {
	call := &verify.Call{Op: verify.OpTrigger, Tenant: s.tenant.id, Job: job, Invoke: verify.At(time.Now())}
	if key, err = s.tenant.api(i).RunNow(ctx, job); err != nil {
		return "", err
	}
	call.Key, call.Ack = key, verify.At(time.Now())
	return key, s.history.Append(call)
}

func (s *stage) runState(ctx context.Context, i int, key string) (apiclient.RunDetail, error) {
	d, err := s.tenant.api(i).GetRun(ctx, key)
	return d.Value, err
}

// began waits until the handler of a run is known to run.
func (s *stage) began(ctx context.Context, i int, key string) error {
	return lab.Until(ctx, 30*time.Second, "the run "+key+" has started", func(ctx context.Context) error {
		r, err := s.runState(ctx, i, key)
		if err == nil && r.StartedAt == nil {
			err = fmt.Errorf("it is %s", r.State)
		}
		return err
	})
}

func (s *stage) stopOne(ctx context.Context, how string, i int) (stopped, error) {
	one := job{name: fmt.Sprintf("%s-%03d", how, i), handler: handlerWork, input: workInput{Ms: 60_000}}
	switch how {
	case stopTimeout:
		one.timeout = stopAfter
	case stopCover:
		one.blocking = "cover_early"
	}
	ids, err := s.create(ctx, s.tenant, []job{one})
	if err != nil {
		return stopped{}, err
	}
	out := stopped{how: how}
	if out.key, err = s.ask(ctx, i, ids[0]); err != nil {
		return out, err
	}
	if how == stopTimeout {
		return out, s.over(ctx, i, out.key)
	}
	if err := s.began(ctx, i, out.key); err != nil {
		return out, err
	}
	out.at = verify.At(time.Now())
	if how == stopKill {
		err = s.kill(ctx, i+1, out.key)
		return out, errors.Join(err, s.over(ctx, i, out.key))
	}
	next, err := s.ask(ctx, i+1, ids[0])
	if err != nil {
		return out, err
	}
	if err := s.began(ctx, i, next); err != nil {
		return out, err
	}
	return out, errors.Join(s.kill(ctx, i, next), s.over(ctx, i, next))
}

func (s *stage) kill(ctx context.Context, i int, key string) error {
	_, err := s.tenant.api(i).CancelRun(ctx, key, apiclient.CancelRunInputBody{})
	return err
}

// over waits until the run has ended.
func (s *stage) over(ctx context.Context, i int, key string) error {
	return lab.Until(ctx, time.Minute, "the run "+key+" has ended", func(ctx context.Context) error {
		r, err := s.runState(ctx, i, key)
		if err == nil && r.State != "cancelled" && r.State != "timed_out" {
			err = fmt.Errorf("it is %s", r.State)
		}
		return err
	})
}

// stopDeaf kills runs that do not listen, and sees that they are told to linger
// until they have returned.
func (s *stage) stopDeaf(ctx context.Context, n int) ([]stopped, error) {
	jobs := make([]job, n)
	for i := range jobs {
		jobs[i] = job{name: fmt.Sprintf("deaf-%03d", i), handler: handlerWork, input: workInput{Ms: deafFor.Milliseconds(), Stubborn: true}}
	}
	ids, err := s.create(ctx, s.tenant, jobs)
	if err != nil {
		return nil, err
	}
	out := make([]stopped, n)
	group, ctx := errgroup.WithContext(ctx)
	for i := range out {
		group.Go(func() error {
			key, err := s.ask(ctx, i, ids[i])
			if err == nil {
				err = s.began(ctx, i, key)
			}
			if err != nil {
				return err
			}
			out[i] = stopped{how: stopStubborn, key: key, at: verify.At(time.Now())}
			if err := s.kill(ctx, i, key); err != nil {
				return err
			}
			if err := s.over(ctx, i, key); err != nil {
				return err
			}
			r, err := s.runState(ctx, i, key)
			if err == nil && !r.Lingers {
				err = fmt.Errorf("run %s has ended and is not said to linger", key)
			}
			if err != nil {
				return err
			}
			return lab.Until(ctx, time.Minute, "the handler of "+key+" has returned", func(ctx context.Context) error {
				r, err := s.runState(ctx, i, key)
				if err == nil && (r.Lingers || r.ReturnedAt == nil) {
					err = errors.New("it lingers")
				}
				return err
			})
		})
	}
	return out, group.Wait()
}

// judgeStopped holds what the rows say against what the handlers wrote down,
// and measures.
func (s *stage) judgeStopped(j *judged, all []stopped) error {
	runs := map[string]verify.Run{}
	for _, r := range j.history.Runs {
		runs[r.Key] = r
	}
	var wrong problems
	ended, told := map[string][]float64{}, map[string][]float64{}
	for _, one := range all {
		run, row := runs[one.key], j.rows[one.key]
		if one.how == stopTimeout {
			one.at = run.Start + verify.Time(stopAfter.Microseconds())
		}
		want := "cancelled"
		if one.how == stopTimeout {
			want = "timed_out"
		}
		deaf := one.how == stopStubborn
		const stamp = 1000 // rows have milliseconds
		switch {
		case run.End == 0:
			wrong.add("handlers that did not end", "run %s (%s)", one.key, one.how)
			continue
		case row.State != want:
			wrong.add("wrong outcomes", "run %s (%s) is %s", one.key, one.how, row.State)
		case deaf == run.Cancelled:
			wrong.add("handlers that were not told as planned", "run %s (%s)", one.key, one.how)
		case !deaf && row.FinishedAt+stamp < run.End:
			wrong.add("runs that are said to have ended before their handler", "run %s (%s)", one.key, one.how)
		case deaf && row.FinishedAt > run.End:
			wrong.add("runs that were not reported while their handler went on", "run %s", one.key)
		}
		ended[one.how] = append(ended[one.how], float64(run.End-one.at)/1000)
		told[one.how] = append(told[one.how], float64(row.FinishedAt-one.at)/1000)
	}
	var words []string
	for _, how := range []string{stopKill, stopTimeout, stopCover, stopStubborn} {
		e, t := summary(ended[how]), summary(told[how])
		s.result.Figures[how+": handler ended, ms"], s.result.Figures[how+": said, ms"] = e, t
		words = append(words, fmt.Sprintf("%s: the handler ended after p50 %.0f ms, max %.0f ms, which was known after p50 %.0f ms, max %.0f ms", how, e.P50, e.Max, t.P50, t.Max))
	}
	s.figure("%s", strings.Join(words, "; "))
	return wrong.err()
}
