package main

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/internal/apiclient"
	"github.com/carillon-sched/carillon/internal/testenv/lab"
)

// receivers are how many addresses timers-callbacks calls, in turn.
const receivers = 100

// timersCallbacks measures how late calls by the admin node arrive, as the
// receivers saw them, and that one of these which never answers makes no other
// wait.
func (b *bench) timersCallbacks() (parts []part) {
	window := b.window(time.Minute)
	for _, kind := range b.o.databases(true) {
		for _, hangs := range []int{0, 1} {
			said := fmt.Sprintf("%s to %d receivers", timersEvenly, receivers)
			if hangs > 0 {
				said += fmt.Sprintf(", %d of which never answers: the others", hangs)
			}
			parts = append(parts, part{
				result: Result{Scenario: "timers-callbacks", Variant: said, Database: kind, Admins: 1},
				usual:  2*window + 30*time.Second,
				run: func(ctx context.Context, r *Result) error {
					return b.withFleet(ctx, kind, 1, func(f *fleet) error {
						return f.timersCallbacks(ctx, timersSteady*int(window/time.Second), hangs, r)
					})
				},
			})
		}
	}
	return parts
}

func (f *fleet) timersCallbacks(ctx context.Context, n, hangs int, r *Result) error {
	builtIn, to, err := f.startSink(ctx, hangs)
	if err != nil {
		return err
	}
	arrivals, err := lab.Follow(f.history)
	if err != nil {
		return err
	}
	first, last, err := f.timersDue(ctx, n, to, evenly(timersSteady), nil, r)
	if err != nil {
		return err
	}
	silent := n / receivers * hangs
	// The judge says how many are missing.
	for until := time.Now().Add(time.Minute); time.Now().Before(until); {
		seen, err := arrivals.Runs()
		if err != nil {
			return err
		}
		if err := pause(ctx, time.Second); err != nil { // also for what arrives twice
			return err
		}
		if len(seen) >= n-silent {
			break
		}
	}
	seen, err := f.observe(ctx, builtIn)
	if err != nil {
		return err
	}
	r.Fires, r.Lateness = seen.judge(grid{from: first, to: last.Add(time.Millisecond), exact: n})
	r.Fires.Expected -= silent
	r.Fires.Rows -= silent
	r.Fires.Missed -= silent
	perFire(r.Processes, r.Fires.Started)
	if err := r.Fires.broken(); err != nil {
		r.Failed, f.keep = err.Error(), true
	}
	return nil
}

// startSink starts the receivers, allows the node to call them, and returns what
// does, and how timers name it.
func (f *fleet) startSink(ctx context.Context, hangs int) (domain.ExecutorID, timerTarget, error) {
	address, err := lab.FreePort("127.0.0.1")
	if err != nil {
		return 0, timerTarget{}, err
	}
	_, text, _ := net.SplitHostPort(address)
	port, err := strconv.Atoi(text)
	if err != nil {
		return 0, timerTarget{}, err
	}
	p, err := f.lab.StartExecutor(lab.Command{
		Name: "sink", Program: f.b.o.Executor,
		Args: []string{"sink", "--port", text, "--receivers", strconv.Itoa(receivers), "--hangs", strconv.Itoa(hangs), "--history", f.history},
	})
	if err != nil {
		return 0, timerTarget{}, err
	}
	f.processes = append(f.processes, watched{"sink", p.PID()})
	err = lab.Until(ctx, 10*time.Second, "the sink listens", func(ctx context.Context) error {
		c, err := new(net.Dialer).DialContext(ctx, "tcp", receiver(receivers-1, port))
		if err == nil {
			err = c.Close()
		}
		return err
	})
	if err != nil {
		return 0, timerTarget{}, err
	}
	if err := f.lab.Admins[0].API.AllowCallbacks(ctx, "admin", f.lab.Password, apiclient.CallbackPolicyWrite{Hosts: []string{"*:" + text}}); err != nil {
		return 0, timerTarget{}, err
	}
	builtIn, err := f.store.FindExecutorByName(ctx, f.tenant, domain.BuiltInExecutor)
	return builtIn.ID, timerTarget{domain.BuiltInExecutor, domain.CallbackHandler, func(i int64) any {
		return map[string]any{
			"url": fmt.Sprintf("http://%s/orders/%d/cancel", receiver(int(i%receivers), port), i), "body": timerInput{i, "unpaid"},
		}
	}}, err
}
