package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/carillon-sched/carillon/admin/verify"
	"github.com/carillon-sched/carillon/internal/lab"
)

// f33 lets one tenant have thousands of fire times on one second, and looks at
// another one whose jobs fire all the time.
func f33(ctx context.Context, s *stage) error {
	if err := s.open(ctx, fleetPlan{admins: 2, executors: 2, slots: 200}); err != nil {
		return err
	}
	noisy := s.tenant
	quiet, err := s.addTenant(ctx, "quiet")
	if err != nil {
		return err
	}
	s.tenant = quiet
	if err := s.load(ctx, 50); err != nil {
		return err
	}
	alone := cut{from: verify.At(time.Now())}
	if err := wait(ctx, pick(s.set, 30*time.Second, 10*time.Second)); err != nil {
		return err
	}
	alone.to = verify.At(time.Now())
	n := s.rounds(20_000, 2_000)
	burst := time.Now().Add(time.Duration(n)*15*time.Millisecond + 25*time.Second).Truncate(time.Second)
	jobs := make([]job, n)
	for i := range jobs {
		jobs[i] = job{name: fmt.Sprintf("burst-%05d", i), kind: "once", at: burst}
	}
	if _, err := s.create(ctx, noisy, jobs); err != nil {
		return err
	}
	if time.Until(burst) < 3*time.Second {
		return fmt.Errorf("creating %d jobs took longer than there was time", n)
	}
	if err := waitUntil(ctx, burst); err != nil {
		return err
	}
	if err := s.fault(fmt.Sprintf("%d due in one second", n), "tenant A", func() error { return s.ended(ctx, burst, settleLimit) }); err != nil {
		return err
	}
	during := cut{verify.At(burst), verify.At(time.Now())}
	s.tenant = noisy
	j, err := s.finish(ctx)
	if j == nil {
		return err
	}
	before, after := j.latenessOf(quiet.id, alone), j.latenessOf(quiet.id, during)
	own := j.latenessOf(noisy.id, during)
	ratio := after.P99 / max(before.P99, 1)
	s.result.Figures["quietAloneMs"], s.result.Figures["quietDuringMs"], s.result.Figures["noisyMs"], s.result.Figures["ratio"] = before, after, own, ratio
	s.figure("B's p99 %.1f × quiet (goal 2): alone %s, during A's %d %s; A itself %s", ratio, before, n, after, own)
	if after.Count == 0 || before.Count == 0 {
		err = errors.Join(err, errors.New("the other tenant had no starts to compare: not enough evidence"))
	}
	// The goal is 2; five times is more than the noise of a busy machine.
	if ratio > 5 {
		err = errors.Join(err, fmt.Errorf("the other tenant's p99 is %.1f times what it is alone", ratio))
	}
	return err
}

// latenessOf is that of one tenant's fire times in a span.
func (j *judged) latenessOf(tenant string, c cut) lateness {
	var ms []float64
	for _, r := range j.runs {
		if r.Tenant == tenant && r.FireAt >= c.from && r.FireAt <= c.to && r.Attempt == 1 {
			ms = append(ms, float64(r.Start-r.FireAt)/1000)
		}
	}
	return summary(ms)
}

// addTenant makes a second tenant with an executor process of its own.
func (s *stage) addTenant(ctx context.Context, name string) (*tenant, error) {
	root := s.fleet.Admins[0].API.As("")
	var session struct{ AccessToken string }
	login := map[string]string{"username": "admin", "password": s.fleet.Password}
	if err := root.Call(ctx, http.MethodPost, "/api/v1/auth/login", login, &session); err != nil {
		return nil, err
	}
	root.Token = session.AccessToken
	var made struct{ ID string }
	if err := root.Call(ctx, http.MethodPost, "/api/v1/tenants", map[string]string{"name": name}, &made); err != nil {
		return nil, err
	}
	if err := root.SignIn(ctx, "admin", s.fleet.Password, name); err != nil {
		return nil, err
	}
	t := &tenant{id: made.ID, api: func(i int) *lab.API { return s.fleet.Admins[i%len(s.fleet.Admins)].API.As(root.Token) }}
	var err error
	if t.executorID, t.token, err = root.CreateExecutor(ctx, "witness"); err != nil {
		return nil, err
	}
	w, err := s.startWitness("executor-of-"+name, t, nil)
	if err != nil {
		return nil, err
	}
	s.others = append(s.others, w)
	return t, root.Online(ctx, t.executorID, 1, time.Minute)
}
