package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/benchdata"
	"github.com/carillon-sched/carillon/internal/apiclient"
	"github.com/carillon-sched/carillon/internal/testenv"
	"github.com/carillon-sched/carillon/internal/testenv/proxy"
)

const (
	// settleLimit is how long after the load and the disturbance runs may still wait.
	settleLimit = time.Minute
	// tooMuchLimit is the same where more is due than can be done.
	tooMuchLimit = 6 * time.Minute
	// standsAfter is for how long nothing changes until the remaining runs count as standing.
	standsAfter = 15 * time.Second
	// calmBefore is from the first fire time to the disturbance, and serverEvery from one
	// disturbance of the database to the next.
	calmBefore  = 8 * time.Second
	serverEvery = 25 * time.Second
	awayFor     = 12 * time.Second
	frozenFor   = 6 * time.Second
	slowFor     = 20 * time.Second
)

// play is one shape while it is played.
type play struct {
	*fleet
	shape  *waitShape
	server *testenv.Server // of its own; nil = none
	path   *proxy.Proxy    // from the nodes to that server
	watch  *watch
	seats  map[place]seat
	// first is the first fire time after the load; fire times are before last.
	first, last time.Time
	due         []due
}

// due are the fire times of one flow.
type due struct {
	flow
	jobs  []domain.JobID
	from  time.Time
	times int // of each job
	every time.Duration
}

// play loads the flows, disturbs the fleet, waits until the runs have ended, and judges.
func (p *play) play(ctx context.Context, r *Result) error {
	if err := p.prepare(ctx, r); err != nil {
		return err
	}
	p.watch = newWatch(p.lab.Admins)
	watching, stop := context.WithCancel(ctx)
	var group errgroup.Group
	group.Go(func() error { p.watch.run(watching); return nil })
	err := p.underway(ctx, r)
	stop()
	if err := errors.Join(err, group.Wait()); err != nil {
		return err
	}
	for _, a := range p.watch.admins() {
		if a.Process().Ended() {
			r.Shape.Wrong = append(r.Shape.Wrong, a.Name+" ended by itself")
		}
	}
	p.lab.Close()
	var seats []seat
	for _, at := range p.seats {
		seats = append(seats, at)
	}
	seen, err := p.observeAll(ctx, seats...)
	if err != nil {
		return err
	}
	r.Fires, r.Lateness = seen.judgeShape(p.due, p.watch, r.Shape)
	return nil
}

// prepare makes the executors of the shape and loads its flows.
func (p *play) prepare(ctx context.Context, r *Result) error {
	p.seats = map[place]seat{onFirst: {p.tenant, p.executor}}
	if p.shape.maxRunning > 0 {
		if _, err := p.lab.Admins[0].API.SetExecutorLimit(ctx, p.executor.String(), apiclient.SetLimitInputBody{MaxRunning: p.shape.maxRunning}); err != nil {
			return err
		}
	}
	jobs := 0
	for _, fl := range p.shape.flows {
		if _, known := p.seats[fl.place]; !known {
			if err := p.addSeat(ctx, fl.place); err != nil {
				return err
			}
		}
		jobs += fl.count(p.b.o.Quick, p.b.o.Size)
	}
	r.Shape, r.Jobs, r.Window = &Shape{}, jobs, seconds(p.shape.lasts)
	p.first = time.Now().Add(lead + timerLead + time.Duration(jobs)*500*time.Microsecond).Truncate(time.Second).UTC()
	p.last = p.first.Add(max(p.shape.lasts, time.Millisecond))
	for i, fl := range p.shape.flows {
		if err := p.loadFlow(ctx, i, fl); err != nil {
			return err
		}
	}
	if time.Until(p.first) < 0 {
		return fmt.Errorf("loading %d jobs took longer than there was time", jobs)
	}
	return nil
}

// addSeat makes one more executor, with one process.
func (p *play) addSeat(ctx context.Context, at place) error {
	api, tenant := p.lab.Admins[0].API, p.tenant
	if at == otherTenant {
		root, err := api.AsOperator(ctx, auth.FirstUser, p.lab.Password)
		if err != nil {
			return err
		}
		made, err := root.CreateTenant(ctx, apiclient.CreateTenantInputBody{Name: "other"})
		if err != nil {
			return err
		}
		if tenant, err = domain.ParseID[domain.TenantID](made.Value.ID); err != nil {
			return err
		}
		api = api.As("")
		if err := api.SignIn(ctx, auth.FirstUser, p.lab.Password, "other"); err != nil {
			return err
		}
	}
	id, token, err := api.MakeExecutor(ctx, "beside")
	if err != nil {
		return err
	}
	executor, err := domain.ParseID[domain.ExecutorID](id)
	if err != nil {
		return err
	}
	p.seats[at] = seat{tenant, executor}
	if _, err := p.lab.StartExecutor(p.executorCommand("beside", "beside", token, 0)); err != nil {
		return err
	}
	return p.connected(ctx, p.shape.processes()+1)
}

// loadFlow writes the jobs or timers of a flow.
func (p *play) loadFlow(ctx context.Context, i int, fl flow) error {
	d := due{flow: fl, from: p.first, times: 1, every: fl.every}
	n := fl.count(p.b.o.Quick, p.b.o.Size)
	if fl.timers {
		d.times = n
		set, err := p.timerSetter(ctx, p.timedHandler(), func(int64) time.Time { return p.first })
		if err != nil {
			return err
		}
		p.due = append(p.due, d)
		return set.many(ctx, n)
	}
	end := p.last
	switch {
	case fl.past > 0:
		d.times, d.every, end = max(1, int(float64(fl.past)*p.b.o.Size)), time.Second, p.first
		d.from = p.first.Add(-time.Duration(d.times) * time.Second)
	case fl.every == 0:
		d.every, end = time.Hour, p.first.Add(time.Second)
	default:
		d.times = int(p.shape.lasts / fl.every)
	}
	var err error
	d.jobs, err = p.loadAt(ctx, p.seats[fl.place], n, func(k int) domain.JobSpec {
		s := ticking(number(fmt.Sprintf("flow-%d", i), k), handlerOnce, d.every, d.from)
		s.Schedule.EndAt = end.Add(-time.Millisecond)
		if fl.past > 0 {
			s.Misfire = domain.Misfire{Policy: domain.MisfireAll, Window: 24 * time.Hour, MaxRuns: domain.MaxMisfireRuns}
		}
		if fl.change != nil {
			fl.change(&s)
		}
		return s
	}, func(int) time.Time { return d.from })
	p.due = append(p.due, d)
	return err
}

// underway plays the disturbance and waits for the end of the runs.
func (p *play) underway(ctx context.Context, r *Result) error {
	if p.shape.meanwhile != nil {
		if err := p.shape.meanwhile(ctx, p); err != nil {
			return fmt.Errorf("disturb the fleet: %w", err)
		}
	}
	if err := pauseUntil(ctx, p.last); err != nil {
		return err
	}
	return p.settle(ctx, r.Shape)
}

// settle waits until each fire time is planned and each run has ended. After settleLimit the
// rest may wait rightly. It gives up when the limit has passed, or when nothing has changed for
// standsAfter.
func (p *play) settle(ctx context.Context, s *Shape) error {
	began, moved, done, was := time.Now(), time.Now(), -1.0, int64(-1)
	limit := settleLimit
	if p.shape.tooMuch {
		limit = tooMuchLimit
	}
	for {
		left, err := p.left(ctx)
		s.SettledAfter = seconds(time.Since(began))
		if err == nil && left == 0 {
			return nil
		}
		if now := p.watch.ended(); now != done || left != was { // what is missed ends without an attempt
			moved, done, was = time.Now(), now, left
		}
		if time.Since(began) > settleLimit {
			unplanned, living, err := p.rest(ctx)
			switch {
			case err != nil: // the next look asks again
			case time.Since(began) > limit || time.Since(moved) > standsAfter:
				s.Wrong = append(s.Wrong, fmt.Sprintf("%.0f s after the load %d triggers and runs %v were left, and nothing had changed for %.0f s",
					float64(s.SettledAfter), unplanned, living, time.Since(moved).Seconds()))
				return nil
			case unplanned == 0 && rightly(living):
				return nil
			}
		}
		if err := pause(ctx, time.Second); err != nil {
			return err
		}
	}
}

// left counts triggers and timers that are to fire, and runs that have not ended.
func (p *play) left(ctx context.Context) (int64, error) {
	unplanned, err := benchdata.CountUnplanned(ctx, p.store.DB)
	if err != nil {
		return -1, err
	}
	for _, d := range p.due {
		if !d.timers {
			continue
		}
		count, err := p.countTimers(ctx, handlerTimed)
		if err != nil {
			return -1, err
		}
		unplanned += count.Pending
	}
	living, err := benchdata.CountLiving(ctx, p.store.DB)
	return unplanned + living, err
}

// rest returns the triggers that are to fire, and the runs that have not ended by state and
// reason.
func (p *play) rest(ctx context.Context) (unplanned int64, living map[string]int, err error) {
	if unplanned, err = benchdata.CountUnplanned(ctx, p.store.DB); err != nil {
		return 0, nil, err
	}
	living, err = benchdata.Living(ctx, p.store.DB)
	return unplanned, living, err
}

// rightly reports whether each due run waits for an earlier run, a limit or the end of
// maintenance.
func rightly(living map[string]int) bool {
	for name := range living {
		state, reason, _ := strings.Cut(name, " ")
		switch domain.Reason(reason) {
		case domain.ReasonWaitSlot, domain.ReasonWaitLimit, domain.ReasonMaintenance:
		default:
			if state == domain.Due.String() {
				return false
			}
		}
	}
	return true
}

// executorAway stops the processes of the first executor and starts them again.
func executorAway(away time.Duration) func(context.Context, *play) error {
	return func(ctx context.Context, p *play) error {
		if err := pauseUntil(ctx, p.first.Add(calmBefore)); err != nil {
			return err
		}
		for _, x := range p.executors {
			x.Stop()
		}
		if err := pause(ctx, away); err != nil {
			return err
		}
		for _, x := range p.executors {
			var err error
			if x.Process, err = p.lab.StartExecutor(x.command); err != nil {
				return err
			}
		}
		return nil
	}
}

// maintenanceOnOff puts the first executor under maintenance twice.
func maintenanceOnOff(ctx context.Context, p *play) error {
	api, id := p.lab.Admins[0].API, p.executor.String()
	for range 2 {
		if err := pause(ctx, max(calmBefore, time.Until(p.first.Add(calmBefore)))); err != nil {
			return err
		}
		if _, err := api.StartExecutorMaintenance(ctx, id, apiclient.MaintenanceRequest{Mode: string(domain.MaintenanceWait)}); err != nil {
			return err
		}
		if err := pause(ctx, awayFor); err != nil {
			return err
		}
		if _, err := api.EndExecutorMaintenance(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// nodeJoins starts one more node and stops it again.
func nodeJoins(ctx context.Context, p *play) error {
	if err := pauseUntil(ctx, p.first.Add(calmBefore)); err != nil {
		return err
	}
	known := p.watch.admins()
	a, err := p.lab.AddAdmin(ctx)
	if err != nil {
		return err
	}
	p.watch.follow(append(known, a))
	if err := pause(ctx, awayFor); err != nil {
		return err
	}
	p.watch.follow(known)
	a.Process().Stop()
	return nil
}

// nodesStopped stops all nodes and starts them again.
func nodesStopped(ctx context.Context, p *play) error {
	if err := pauseUntil(ctx, p.first.Add(calmBefore)); err != nil {
		return err
	}
	return p.watch.unwell(func() error {
		for _, a := range p.lab.Admins {
			a.Process().Stop()
		}
		if err := pause(ctx, awayFor); err != nil {
			return err
		}
		for _, a := range p.lab.Admins {
			if err := a.Start(ctx); err != nil {
				return err
			}
		}
		return nil
	})
}

// breakServer breaks the database server every 25 seconds while fire times are due.
func breakServer(ctx context.Context, p *play, do func() error) error {
	for at := p.first.Add(calmBefore); at.Before(p.last.Add(-calmBefore)); at = at.Add(serverEvery) {
		if err := pauseUntil(ctx, at); err != nil {
			return err
		}
		if err := p.watch.unwell(do); err != nil {
			return err
		}
	}
	return nil
}

func databaseKilled(ctx context.Context, p *play) error {
	return breakServer(ctx, p, func() error {
		if err := p.server.Kill(); err != nil {
			return err
		}
		return p.server.Start()
	})
}

func databaseFrozen(ctx context.Context, p *play) error {
	return breakServer(ctx, p, func() error {
		if err := p.server.Freeze(); err != nil {
			return err
		}
		return errors.Join(pause(ctx, frozenFor), p.server.Thaw())
	})
}

// databaseSlow has each statement take 50 ms more for a while.
func databaseSlow(ctx context.Context, p *play) error {
	if err := pauseUntil(ctx, p.first.Add(calmBefore)); err != nil {
		return err
	}
	return p.watch.unwell(func() error {
		p.path.Delay(25 * time.Millisecond)
		defer p.path.Delay(0)
		return pause(ctx, slowFor)
	})
}
