package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/carillon-sched/carillon/admin/verify"
	"github.com/carillon-sched/carillon/internal/testenv"
	"github.com/carillon-sched/carillon/internal/testenv/lab"
	"github.com/carillon-sched/carillon/internal/testenv/proxy"
)

// chain is database servers that follow one another: the next one is promoted when
// the first is killed. All nodes find the primary by one endpoint.
type chain struct {
	*stage
	servers  []*testenv.Server // those that are left; the first is the primary
	endpoint *proxy.Proxy
	outages  []float64 // ms from the kill until the endpoint leads to the next one
}

// f20 kills the primary and promotes its replica: some times with semi-synchronous
// replication, by which nothing that was answered is lost, and then once without
// it, when the replica has missed the last commits.
func f20(ctx context.Context, s *stage) error {
	c := &chain{stage: s}
	rounds := s.rounds(4, 1)
	if err := c.start(ctx, rounds+2); err != nil {
		return err
	}
	if err := s.open(ctx, fleetPlan{admins: 2, executors: 2, server: c.servers[0], database: func(int, string) (string, error) { return c.endpoint.Addr(), nil }}); err != nil {
		return err
	}
	if err := c.servers[0].AwaitReplica(ctx, true); err != nil {
		return err
	}
	if err := s.load(ctx, s.rate()); err != nil {
		return err
	}
	cuts := make([]cut, rounds)
	for i := range cuts {
		cuts[i].from = verify.At(time.Now())
		if err := s.fault("killed, semi-synchronous replica promoted", "primary", func() error { return c.promote(ctx, true) }); err != nil {
			return err
		}
		cuts[i].to = verify.At(time.Now())
		if err := wait(ctx, 8*time.Second); err != nil {
			return err
		}
		for _, a := range s.fleet.Admins {
			if held, err := c.held(ctx, a); err != nil || held != "" {
				return errors.Join(fmt.Errorf("%s holds (%s) though nothing was lost", a.Name, held), err)
			}
		}
	}
	lossy, err := c.loseCommits(ctx)
	if err != nil {
		return err
	}
	return c.judge(ctx, cuts, lossy)
}

// start starts the servers, each a replica of the one before it.
func (c *chain) start(ctx context.Context, n int) error {
	c.defers(func() error {
		var errs []error
		for _, server := range c.servers[min(1, len(c.servers)):] { // the first one is the stage's
			errs = append(errs, server.Close())
		}
		return errors.Join(errs...)
	})
	for i := range n {
		server, err := testenv.NewServer(testenv.Options{Product: c.set.product, Dir: c.set.serverDir(),
			Args: append(testenv.ReplicaArgs(c.set.product, i+1), "--innodb-buffer-pool-size=128M", "--innodb-log-file-size=64M")})
		if err != nil {
			return err
		}
		c.servers = append(c.servers, server)
		if i > 0 {
			if err := server.Follow(ctx, c.servers[i-1]); err != nil {
				return err
			}
		}
	}
	var err error
	if c.endpoint, err = proxy.New(c.servers[0].Addr(), proxy.Options{}); err != nil {
		return err
	}
	c.defers(c.endpoint.Close)
	return nil
}

// promote kills the primary and makes its replica the next one. await: its own
// replica has to have each commit of it.
func (c *chain) promote(ctx context.Context, await bool) error {
	began := time.Now()
	old, next := c.servers[0], c.servers[1]
	if err := old.Kill(); err != nil {
		return err
	}
	if err := next.Promote(ctx); err != nil {
		return err
	}
	if await {
		if err := next.AwaitReplica(ctx, true); err != nil {
			return err
		}
	}
	c.endpoint.Follow(next.Addr())
	c.outages = append(c.outages, ms(time.Since(began)))
	c.servers, c.server, c.db.Server = c.servers[1:], next, next
	return old.Close()
}

// lossy is what is known of the commits that were lost.
type lossy struct {
	from, to verify.Time // starts in between may be lost
	noticed  float64     // ms from the endpoint's lead until all nodes held
	resumed  cut
}

// loseCommits kills the primary when its replica has missed what it did for a
// second. All nodes have to hold, and to go on when an operator says so.
func (c *chain) loseCommits(ctx context.Context) (l lossy, err error) {
	primary, replica := c.servers[0], c.servers[1]
	if err := primary.AwaitReplica(ctx, false); err != nil {
		return l, err
	}
	err = c.fault("killed, replica promoted that lacks the last second", "primary", func() error {
		if err := replica.StopReceiving(ctx); err != nil {
			return err
		}
		l.from = verify.At(time.Now())
		if err := wait(ctx, time.Second); err != nil {
			return err
		}
		l.to = verify.At(time.Now())
		return c.promote(ctx, false)
	})
	if err != nil {
		return l, err
	}
	began := time.Now()
	for _, a := range c.fleet.Admins {
		err := lab.Until(ctx, 20*time.Second, a.Name+" holds", func(ctx context.Context) error {
			held, err := c.held(ctx, a)
			if err == nil && held != "db_rollback" {
				err = fmt.Errorf("held is %q", held)
			}
			return err
		})
		if err != nil {
			return l, err
		}
	}
	l.noticed = ms(time.Since(began))
	l.resumed.from = verify.At(time.Now())
	if err := wait(ctx, 5*time.Second); err != nil {
		return l, err
	}
	operator, err := c.fleet.Admins[0].API.AsOperator(ctx, "admin", c.fleet.Password)
	if err != nil {
		return l, err
	}
	l.resumed.to = verify.At(time.Now())
	if _, err := operator.AcceptHistory(ctx); err != nil {
		return l, err
	}
	return l, wait(ctx, 8*time.Second)
}

// held is why the node holds its fire; empty = it does not.
func (c *chain) held(ctx context.Context, a *lab.Admin) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, a.API.Base+"/readyz", http.NoBody)
	if err != nil {
		return "", err
	}
	answer, err := a.API.Do(request)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	raw, err := io.ReadAll(answer.Body)
	if err != nil {
		return "", err
	}
	var ready struct{ Held string }
	return ready.Held, json.Unmarshal(raw, &ready)
}

// hides tells whether the replica may not know what happened then.
func (l lossy) hides(at verify.Time) bool {
	return at >= l.from-verify.Span(lookBack) && at < l.resumed.from
}

// lookBack is how long before the last commit that a replica has a run may have
// started of which it knows nothing, or less than happened.
const lookBack = 2 * time.Second

// judge takes what lost commits explain out of what the checker found.
func (c *chain) judge(ctx context.Context, cuts []cut, l lossy) error {
	j, found := c.finish(ctx)
	if j == nil {
		return found
	}
	var wrong problems
	type occurrence struct {
		job  string
		fire verify.Time
	}
	starts := map[occurrence][]verify.Run{}
	touched := 0 // runs that started or ended when the replica had missed the last commits
	for _, r := range j.runs {
		at := occurrence{r.Job, r.FireAt}
		starts[at] = append(starts[at], r)
		if l.hides(r.Start) || l.hides(r.End) {
			touched++
		}
		if _, row := j.rows[r.Key]; !row && !l.hides(r.Start) {
			wrong.add("starts without a row that no lost commit explains", "run %s of job %s at %s", r.Key, r.Job, r.Start.Std().Format(time.TimeOnly))
		}
	}
	again := 0
	for _, of := range starts {
		first := slices.MinFunc(of, func(a, b verify.Run) int { return cmp.Compare(a.Start, b.Start) })
		if len(of) > 1 && l.hides(first.Start) {
			again++
		}
	}
	if n := j.report.Counts[verify.Double]; n > again {
		wrong.add("kinds of doubles that no lost commit explains", "%d of %d", n-again, n)
	}
	var resumed []float64
	for _, one := range cuts {
		after, _ := resume(j, one)
		resumed = append(resumed, after+float64(one.to-one.from)/1000)
	}
	if _, during := resume(j, l.resumed); during > 0 {
		wrong.add("starts while firing was held", "%d", during)
	}
	on, outage := summary(resumed), summary(c.outages[:len(cuts)])
	figures := c.result.Figures
	figures["resumeMs"], figures["outageMs"], figures["again"], figures["touched"], figures["noticedMs"] = on, outage, again, touched, l.noticed
	figures["found"] = j.report.Counts
	c.figure("semi-synchronous: first start %.0f ms after the kill at most, %.0f of them for the switch, 0 lost, 0 doubled; without: held on all nodes after %.0f ms, nothing started until the acceptance, then %d fire times of the lost second again",
		on.Max, outage.Max, l.noticed, again)
	if !explains(j.report, touched) {
		return errors.Join(wrong.err(), found)
	}
	c.result.Double = 0 // those that there are stand in the figure
	return wrong.err()
}

// explains tells whether lost commits of so many runs explain all that the
// checker found: what has run and is not known, runs again, or is not known to
// have ended. They explain nothing that was missed.
func explains(r *verify.Report, runs int) bool {
	for kind, n := range r.Counts {
		switch kind {
		case verify.Double, verify.Phantom, verify.LostResult, verify.FalseResult, verify.Fence, verify.Gap, verify.Disagreement:
			if n > runs {
				return false
			}
		default:
			if n > 0 {
				return false
			}
		}
	}
	return len(r.Short) == 0
}
