package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/carillon-sched/carillon/admin/verify"
	"github.com/carillon-sched/carillon/internal/apiclient"
)

// trial is one change that ought to keep a job from starting.
type trial struct {
	job string
	op  verify.Op
	// asked and ack are the instants before the call and after its answer.
	asked, ack verify.Time
	next       verify.Time // the job may start again from here on; 0 = never
}

// f34 changes jobs around the instant at which they fire. Each of the jobs
// fires every second at an offset of its own; a trial pauses it, moves it far
// into the future, or deletes it within 5 ms of a fire time, watches for
// 2 seconds and puts it back.
func f34(ctx context.Context, s *stage) error {
	if err := s.open(ctx, fleetPlan{admins: 2, executors: 2}); err != nil {
		return err
	}
	want := s.rounds(10000, 600)
	n := min(pick(s.set, 120, 60), want)
	s.from = time.Now().Add(3 * time.Second).Truncate(time.Second)
	if err := s.rest(ctx); err != nil {
		return err
	}
	var mu sync.Mutex
	var trials []trial
	group, gctx := errgroup.WithContext(ctx)
	for i := range n {
		group.Go(func() error {
			one := &changer{s: s, i: i, offset: time.Duration(i) * time.Second / time.Duration(n)}
			for range (want + n - 1) / n {
				t, err := one.try(gctx)
				if err != nil {
					return err
				}
				mu.Lock()
				trials = append(trials, t)
				s.result.Injected++
				mu.Unlock()
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	j, err := s.finish(ctx)
	if j == nil {
		return err
	}
	worst, late := afterAck(j, trials)
	s.result.Figures["startsLaterThan1s"], s.result.Figures["worstAfterAckMs"] = late, worst
	s.figure("%d starts later than 1 s after the ack in %d trials; the latest %.0f ms after it", late, len(trials), worst)
	if late > 0 {
		err = errors.Join(err, fmt.Errorf("%d starts later than 1 s after the ack", late))
	}
	return err
}

// afterAck returns the latest start after an answered change, in ms, and how
// many came later than a second.
func afterAck(j *judged, trials []trial) (worst float64, late int) {
	runs := map[string][]verify.Run{}
	for _, r := range j.history.Runs {
		runs[r.Job] = append(runs[r.Job], r)
	}
	for _, t := range trials {
		for _, r := range runs[t.job] {
			if r.Start <= t.ack || t.next != 0 && r.Start >= t.next {
				continue
			}
			if t.op == verify.OpEdit && r.FireAt < t.asked {
				continue // the old schedule's, and it had its time before the edit
			}
			after := float64(r.Start-t.ack) / 1000
			worst = max(worst, after)
			if after > 1000 {
				late++
			}
		}
	}
	return worst, late
}

// changer has one job and changes it again and again.
type changer struct {
	s        *stage
	i        int
	offset   time.Duration
	made     int
	job      job
	id       string
	revision int64
}

func (c *changer) try(ctx context.Context) (trial, error) {
	if c.id == "" {
		if err := c.create(ctx); err != nil {
			return trial{}, err
		}
	}
	// The fire time after next, give or take 5 ms.
	fire := time.Now().Add(1500 * time.Millisecond).Truncate(time.Second).Add(c.offset)
	if err := waitUntil(ctx, fire.Add(time.Duration(rand.Int64N(10001)-5000)*time.Microsecond)); err != nil {
		return trial{}, err
	}
	t := trial{job: c.id, asked: verify.At(time.Now()), op: []verify.Op{verify.OpPause, verify.OpEdit, verify.OpDelete}[rand.IntN(3)]}
	ack, err := c.change(ctx, t.op, c.far())
	if err != nil {
		return t, err
	}
	t.ack = ack
	if err := wait(ctx, 2*time.Second); err != nil {
		return t, err
	}
	t.next = verify.At(time.Now())
	switch t.op {
	case verify.OpPause:
		_, err = c.change(ctx, verify.OpResume, job{})
	case verify.OpEdit:
		_, err = c.change(ctx, verify.OpEdit, c.job)
	case verify.OpDelete:
		c.s.firing.Delete(c.id)
		c.id, t.next = "", 0
	}
	return t, err
}

func (c *changer) create(ctx context.Context) error {
	c.made++
	c.job = job{
		name: fmt.Sprintf("changing-%03d-%d", c.i, c.made), kind: "fixed_rate", every: time.Second,
		startAt: time.Now().Add(time.Second).Truncate(time.Second).Add(c.offset),
	}.withDefaults()
	ids, err := c.s.create(ctx, c.s.tenant, []job{c.job})
	if err != nil {
		return err
	}
	c.id, c.revision = ids[0], 1
	return nil
}

// far is the job with a schedule that begins in a year.
func (c *changer) far() job {
	far := c.job
	far.startAt = far.startAt.AddDate(1, 0, 0)
	return far
}

// change asks for one change and writes the call down.
func (c *changer) change(ctx context.Context, op verify.Op, to job) (ack verify.Time, err error) {
	call := &verify.Call{Op: op, Tenant: c.s.tenant.id, Job: c.id, Invoke: verify.At(time.Now())}
	api := c.s.tenant.api(c.i + c.made)
	switch op {
	case verify.OpEdit:
		c.revision++
		call.Spec, call.Revision = to.spec(), c.revision
		_, err = api.UpdateJob(ctx, c.id, apiclient.UpdateJobParams{IfMatch: "*"}, to.body(c.s.tenant.executorID))
	case verify.OpDelete:
		_, err = api.DeleteJob(ctx, c.id)
	case verify.OpPause:
		_, err = api.PauseJob(ctx, c.id, apiclient.PauseInputBody{})
	default:
		_, err = api.ResumeJob(ctx, c.id, apiclient.ResumeJobParams{})
	}
	if err != nil {
		return 0, fmt.Errorf("%s job %s: %w", op, c.id, err)
	}
	call.Ack = verify.At(time.Now())
	return call.Ack, c.s.history.Append(call)
}
