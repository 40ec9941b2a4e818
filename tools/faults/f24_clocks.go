package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/admin/verify"
	"github.com/carillon-sched/carillon/internal/testenv"
	"github.com/carillon-sched/carillon/internal/testenv/lab"
)

// fakers are where distributions put libfaketime for threaded programs.
const fakers = "/usr/lib/*/faketime/libfaketimeMT.so.1"

// f24 lets the database's clock jump while the machine's goes on: five minutes
// ahead, five minutes back, a day ahead. Nothing may start before its time by
// the machine's clock.
func f24(ctx context.Context, s *stage) error {
	found, err := filepath.Glob(fakers)
	if err != nil || len(found) == 0 {
		return &unableError{"no libfaketime on this machine (Debian: apt-get install libfaketime)"}
	}
	clock := filepath.Join(s.dir, "clock")
	if err := os.WriteFile(clock, []byte("+0\n"), 0o600); err != nil {
		return err
	}
	// Only what the server tells as the time is moved: its own waits go on by
	// the monotonic clock, as on a machine whose clock was set.
	server, err := testenv.NewServer(testenv.Options{Product: s.set.product, Dir: s.set.serverDir(), Env: []string{
		"LD_PRELOAD=" + found[0], "FAKETIME_TIMESTAMP_FILE=" + clock, "FAKETIME_CACHE_DURATION=1",
		"FAKETIME_DONT_FAKE_MONOTONIC=1", "DONT_FAKE_MONOTONIC=1",
	}})
	if err != nil {
		return err
	}
	if err := s.open(ctx, fleetPlan{admins: 3, executors: 2, server: server}); err != nil {
		return err
	}
	if err := s.load(ctx, s.rate()); err != nil {
		return err
	}
	var cuts []cut
	jumps := []string{"+300", "-300", "+86400"}
	for _, jump := range jumps {
		c := cut{from: verify.At(time.Now())}
		err := s.fault("clock "+jump+" s", "database", func() error {
			if err := os.WriteFile(clock, []byte(jump+"\n"), 0o600); err != nil {
				return err
			}
			err := wait(ctx, pick(s.set, 40*time.Second, 15*time.Second))
			return errors.Join(err, os.WriteFile(clock, []byte("+0\n"), 0o600))
		})
		if err != nil {
			return err
		}
		c.to = verify.At(time.Now())
		cuts = append(cuts, c)
		// Sessions, leases and node rows that were written in the other time
		// have to be gone.
		if err := wait(ctx, 20*time.Second); err != nil {
			return err
		}
		for _, a := range s.fleet.Admins {
			if err := s.revive(ctx, a); err != nil {
				return err
			}
		}
	}
	alarms, err := s.clockJumps(ctx)
	if err != nil {
		return err
	}
	j, err := s.finish(ctx)
	if j == nil {
		return err
	}
	early := 0
	for _, r := range j.runs {
		if r.Start < r.FireAt {
			early++
		}
	}
	var words []string
	for i, c := range cuts {
		resumed, during := resume(j, c)
		words = append(words, fmt.Sprintf("%s s: %d starts meanwhile, first %.1f s after", jumps[i], during, resumed/1000))
	}
	s.result.Figures["early"], s.result.Figures["alarms"] = early, alarms
	s.figure("%d early starts (goal 0); %s; %.0f alarms clock_jump", early, strings.Join(words, "; "), alarms)
	if early > 0 {
		err = errors.Join(err, fmt.Errorf("%d early starts", early))
	}
	return err
}

// clockJumps is how often the nodes told that the database's clock leapt.
func (s *stage) clockJumps(ctx context.Context) (n float64, err error) {
	for _, a := range s.fleet.Admins {
		m, err := a.API.Metrics(ctx)
		if err != nil {
			return 0, err
		}
		n += m["carillon_clock_jumps_total"]
	}
	return n, nil
}

// f25 gives the admin nodes clocks that are half a minute wrong, in both
// directions: the binary is built once more with a standard library whose wall
// clock adds what a file says (the monotonic one stays). Lateness must not
// change.
func f25(ctx context.Context, s *stage) error {
	binary, err := buildWithShim(ctx, s.dir)
	if err != nil {
		return err
	}
	clock := func(i int) string { return filepath.Join(s.dir, fmt.Sprintf("clock-%d", i+1)) }
	offsets := []string{"0", "0"}
	set := func() error {
		var errs []error
		for i, o := range offsets {
			errs = append(errs, os.WriteFile(clock(i), []byte(o), 0o600))
		}
		return errors.Join(errs...)
	}
	if err := set(); err != nil {
		return err
	}
	err = s.open(ctx, fleetPlan{admins: 2, executors: 2, binary: binary, env: func(i int) []string {
		return []string{shimVariable + "=" + clock(i)}
	}})
	if err != nil {
		return err
	}
	if err := s.load(ctx, s.rate()); err != nil {
		return err
	}
	phase := pick(s.set, time.Minute, 20*time.Second)
	right := cut{from: verify.At(time.Now())}
	if err := wait(ctx, phase); err != nil {
		return err
	}
	right.to = verify.At(time.Now())
	offsets = []string{"30", "-30"}
	if err := set(); err != nil {
		return err
	}
	var wrong cut
	err = s.fault("clocks +30 s and -30 s", "admins", func() error {
		for _, a := range s.fleet.Admins {
			a.Process().Stop()
			if err := a.Start(ctx); err != nil {
				return err
			}
		}
		if err := wait(ctx, 5*time.Second); err != nil {
			return err
		}
		wrong.from = verify.At(time.Now())
		err := wait(ctx, phase)
		wrong.to = verify.At(time.Now())
		return err
	})
	if err != nil {
		return err
	}
	skew, err := s.skew(ctx)
	if err != nil {
		return err
	}
	j, err := s.finish(ctx)
	if j == nil {
		return err
	}
	before, after := j.latenessWithin(right), j.latenessWithin(wrong)
	s.result.Figures["rightMs"], s.result.Figures["wrongMs"], s.result.Figures["skewSeconds"] = before, after, skew
	s.figure("Δ p99 %.0f ms (right clocks %s; clocks off by %s s: %s)", after.P99-before.P99, before, skew, after)
	return err
}

// latenessWithin is that of the fire times in a span.
func (j *judged) latenessWithin(c cut) lateness {
	var ms []float64
	for _, r := range j.runs {
		if r.FireAt >= c.from && r.FireAt <= c.to && r.Attempt == 1 {
			ms = append(ms, float64(r.Start-r.FireAt)/1000)
		}
	}
	return summary(ms)
}

// skew shows that the clocks are really off: each node's own Date header
// against ours.
func (s *stage) skew(ctx context.Context) (string, error) {
	var words []string
	for _, a := range s.fleet.Admins {
		at, err := a.API.Date(ctx)
		if err != nil {
			return "", err
		}
		words = append(words, fmt.Sprintf("%+.0f", time.Until(at).Seconds()))
	}
	text := strings.Join(words, "/")
	if !strings.HasPrefix(text, "+") || !strings.Contains(text, "/-") {
		return "", fmt.Errorf("the nodes' clocks are off by %s s, not by +30 and -30: not enough evidence", text)
	}
	return text, nil
}

// shimVariable names the file with the offset in seconds.
const shimVariable = "CARILLON_FAULTS_CLOCK"

// buildWithShim builds the binary on a standard library whose time.Now adds
// an offset.
func buildWithShim(ctx context.Context, dir string) (string, error) {
	overlay, err := writeOverlay(ctx, dir)
	if err != nil {
		return "", err
	}
	return lab.Build(ctx, dir, "carillon-shim", "-overlay", overlay)
}
