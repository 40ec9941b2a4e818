package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/gateway"
	"github.com/carillon-sched/carillon/internal/testenv/lab"
)

const (
	// connectedSessions is how many instances are connected at once.
	connectedSessions      = 5000
	connectedSessionsQuick = 1000
	// sessionsWindow is how long they are watched while they do nothing: each has
	// one heartbeat in it.
	sessionsWindow = gateway.MaxIdleInterval
	// sessionsWithin bounds the wait for all of them.
	sessionsWithin = 2 * time.Minute
	// comeBackWithin is the goal, and how long profiles of the return are taken.
	comeBackWithin = 15 * time.Second
)

// sessions measures what connected instances cost that do nothing, and how
// soon they are back when the node was killed.
func (b *bench) sessions() (parts []part) {
	n := connectedSessions
	if b.o.Quick {
		n = connectedSessionsQuick
	}
	for _, kind := range b.o.databases(true) {
		parts = append(parts, part{
			result: Result{Scenario: "sessions", Variant: fmt.Sprintf("%d idle instances", n), Database: kind, Admins: 1},
			usual:  b.window(sessionsWindow) + gateway.MaxIdleInterval + 90*time.Second,
			run: func(ctx context.Context, r *Result) error {
				return b.withFleet(ctx, kind, 1, func(f *fleet) error { return f.sessions(ctx, n, r) })
			},
		})
	}
	return append(parts, b.brokenPaths()...)
}

func (f *fleet) sessions(ctx context.Context, n int, r *Result) (err error) {
	alone := lab.UsageOf(f.processes[0].pid).RSS
	began := time.Now()
	if err := f.startCrowd(n); err != nil {
		return err
	}
	all := n + executorsPerFleet
	if _, err := f.untilSessions(ctx, all); err != nil {
		return err
	}
	r.Notes = append(r.Notes, fmt.Sprintf("connected in %.1f s, with their start", time.Since(began).Seconds()))
	// Those who came first were told to rest as long as they are few. After one
	// rest all have heard how many they are.
	if err := pause(ctx, gateway.MaxIdleInterval); err != nil {
		return err
	}
	window := f.b.window(sessionsWindow)
	r.Window = seconds(window)
	if err := f.measure(ctx, time.Now().Add(window), r); err != nil {
		return err
	}
	r.Processes[0].Alone = alone
	r.Notes = append(r.Notes, fmt.Sprintf("the node alone %d MiB; %.1f KiB a session", alone>>20, float64(r.admin().RSS-alone)/1024/float64(n)))

	again := Result{Scenario: "sessions", Variant: fmt.Sprintf("%d instances after the node was killed", n), Database: r.Database, Admins: 1}
	f.b.add(again, f.comeBack(ctx, all, &again))
	return nil
}

// startCrowd starts n instances in one process.
func (f *fleet) startCrowd(n int) error {
	p, err := f.lab.StartExecutor(lab.Command{
		Name: "crowd", Program: f.b.o.Executor, Env: []string{"CARILLON_EXECUTOR_TOKEN=" + f.joinToken},
		Args: append([]string{
			"executor", "--name", "bench", "--addresses", f.lab.Admins[0].Wire,
			"--journal", filepath.Join(f.dir, "crowd"), "--history", f.history, "--crowd", fmt.Sprint(n),
		}, f.profileFlags("crowd", "--profiles")...),
	})
	if err == nil {
		f.processes = append(f.processes, watched{"crowd", p.PID()})
	}
	return err
}

// back is when a share of the sessions stood.
type back struct{ half, most, all time.Duration }

// untilSessions waits for n sessions on the first node, counted from now.
func (f *fleet) untilSessions(ctx context.Context, n int) (b back, err error) {
	began := time.Now()
	err = lab.Until(ctx, sessionsWithin, fmt.Sprintf("%d sessions", n), func(ctx context.Context) error {
		m, err := f.lab.Admins[0].API.Metrics(ctx)
		if err != nil {
			return err
		}
		now, have := time.Since(began), int(m["carillon_sessions"])
		if have >= n/2 && b.half == 0 {
			b.half = now
		}
		if have >= n-n/100 && b.most == 0 {
			b.most = now
		}
		if have < n {
			return fmt.Errorf("%d stand", have)
		}
		b.all = now
		return nil
	})
	return b, err
}

// comeBack kills the node, lets its executors notice, starts it again, and
// measures from there.
func (f *fleet) comeBack(ctx context.Context, n int, r *Result) error {
	node := f.lab.Admins[0]
	node.Process().Kill()
	if err := pause(ctx, 5*time.Second); err != nil {
		return err
	}
	began := time.Now()
	if err := node.Start(ctx); err != nil {
		return err
	}
	f.processes[0].pid = node.Process().PID()
	ready := time.Since(began)
	var profiles sync.WaitGroup
	var failed error
	if len(f.profiles) > 0 {
		profiles.Go(func() {
			// The node may be ready before it serves its profiles.
			failed = lab.Until(ctx, 2*comeBackWithin, "profiles of the return", func(ctx context.Context) error {
				return f.takeProfiles(ctx, comeBackWithin, r.profileName())
			})
		})
	}
	b, err := f.untilSessions(ctx, n)
	profiles.Wait()
	if err = errors.Join(err, failed); err != nil {
		return err
	}
	m, err := node.API.Metrics(ctx)
	if err != nil {
		return err
	}
	r.Elapsed = &Spread{Count: n, P50: millisOf(ready + b.half), P99: millisOf(ready + b.most), Max: millisOf(ready + b.all)}
	r.Notes = append(r.Notes, fmt.Sprintf("counted from the node's start; it was ready after %.1f s, and turned %.0f connections away",
		ready.Seconds(), m["carillon_connections_turned_away_total"]))
	used := lab.UsageOf(f.processes[0].pid)
	r.Processes = []Process{{Name: node.Name, CPU: seconds(used.CPU), Core: 100 * used.CPU.Seconds() / time.Since(began).Seconds(), RSS: used.PeakRSS}}
	return nil
}

func millisOf(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
