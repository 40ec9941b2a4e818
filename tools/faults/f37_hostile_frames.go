package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/carillon-sched/carillon/admin/verify"
	"github.com/carillon-sched/carillon/internal/apiclient"
	"github.com/carillon-sched/carillon/internal/testenv/lab"
	"github.com/carillon-sched/carillon/tools/faults/hostile"
)

// What a flood may change (docs/dev/reliability.md, P14).
const (
	floodGrowth = 64 << 20
	floodRatio  = 2 // the goal; five times is more than the noise of a busy machine
	// floodFloor is what counts as the ordinary figure when it is less, in ms:
	// attacker, database and node share the processors.
	floodFloor = 250
	// slowLogConns is how many log connections send a byte a second.
	slowLogConns = 240
)

// f37 has the holder of a valid token of one tenant send every type of frame at
// its largest and at its most frequent, read nothing, and send byte by byte on
// many connections. What counts is the other tenant: its runs, its log lines, a
// log-in, its session; and the node's memory. The attacker stands for other
// machines and has to run on this one: so the figures before the flood are taken
// beside a process that takes the processors as it does, and sends nothing, for as
// long.
func f37(ctx context.Context, s *stage) error {
	return s.attacked(ctx, attack{what: "every frame, from a valid token", where: "the executors' port"})
}

// attack is what one tenant does to another one.
type attack struct {
	what, where string
	// prepare fills the attacker's tenant, and returns arguments of the attacker; nil: none.
	prepare func(ctx context.Context, of *tenant) ([]string, error)
	// judge says what else was wrong; nil: nothing.
	judge func() error
}

// attacked compares the other tenant before and during an attack.
func (s *stage) attacked(ctx context.Context, a attack) error {
	if err := s.open(ctx, fleetPlan{admins: 1, executors: 1}); err != nil {
		return err
	}
	hostile, err := s.addTenant(ctx, "hostile")
	if err != nil {
		return err
	}
	var args []string
	if a.prepare != nil {
		if args, err = a.prepare(ctx, hostile); err != nil {
			return err
		}
	}
	if err := s.load(ctx, pick(s.set, 50, 20)); err != nil {
		return err
	}
	ids, err := s.create(ctx, s.tenant, []job{{name: "tail", handler: handlerSay}})
	if err != nil {
		return err
	}
	length := s.lasts(60*time.Second, 10*time.Second)
	alone, err := s.besideAttacker(ctx, "busy", hostile.token, ids[0], length, "-quiet")
	if err != nil {
		return err
	}
	var during besides
	err = s.fault(a.what, a.where, func() (err error) {
		during, err = s.besideAttacker(ctx, "hostile", hostile.token, ids[0], length, args...)
		return err
	})
	if err != nil {
		return err
	}
	j, err := s.finish(ctx)
	if j == nil {
		return err
	}
	err = errors.Join(err, s.judgeHostile(j, alone, during))
	if a.judge != nil {
		err = errors.Join(err, a.judge())
	}
	return err
}

// besideAttacker is what the other tenant sees while an attacker runs.
func (s *stage) besideAttacker(ctx context.Context, name, token, jobID string, length time.Duration, args ...string) (besides, error) {
	attack, err := s.fleet.StartExecutor(lab.Command{
		Name: name, Program: s.set.self, Env: []string{"CARILLON_EXECUTOR_TOKEN=" + token},
		Args: append([]string{"hostile", "-addr", s.fleet.Admins[0].Wire, "-for", length.String()}, args...),
	})
	if err != nil {
		return besides{}, err
	}
	b, err := s.beside(ctx, jobID, length)
	if !attack.Ended() {
		attack.Stop()
	}
	if err == nil && attack.ExitCode() != 0 {
		err = fmt.Errorf("the attacker ended before its time: not enough evidence (%s.log)", name)
	}
	return b, err
}

// besides is what the other tenant saw, and the most that the node had in memory.
type besides struct {
	cut
	tail, login lateness
	watch       logWatch
	rss         int64
}

// beside runs a job that logs, again and again, and signs in each second.
func (s *stage) beside(ctx context.Context, jobID string, length time.Duration) (b besides, err error) {
	b.from = verify.At(time.Now())
	end := time.Now().Add(length)
	var logins []float64
	err = everyOne(3, func(i int) (err error) {
		switch i {
		case 0:
			b.tail, b.watch, err = s.watchLogs(ctx, jobID, length)
		case 1:
			logins, err = s.signIns(ctx, end)
		default:
			for time.Now().Before(end) && err == nil {
				b.rss = max(b.rss, s.fleet.Admins[0].Process().Usage().RSS)
				err = wait(ctx, 100*time.Millisecond)
			}
		}
		return err
	})
	b.to, b.login = verify.At(time.Now()), summary(logins)
	return b, err
}

func (s *stage) signIns(ctx context.Context, end time.Time) (ms []float64, err error) {
	who := apiclient.LoginInputBody{Username: "admin", Password: s.fleet.Password}
	for time.Now().Before(end) {
		began := time.Now()
		if _, err := s.fleet.Admins[0].API.As("").Login(ctx, who); err != nil {
			return ms, fmt.Errorf("log in: %w", err)
		}
		ms = append(ms, float64(time.Since(began).Microseconds())/1000)
		if err := wait(ctx, time.Second); err != nil {
			return ms, err
		}
	}
	return ms, nil
}

func (s *stage) judgeHostile(j *judged, alone, during besides) error {
	var wrong problems
	before, after := j.latenessOf(s.tenant.id, alone.cut), j.latenessOf(s.tenant.id, during.cut)
	grown := during.rss - alone.rss
	s.figure("memory +%d MB; the other tenant's lateness %s, alone %s; its lines read after %s, alone %s; log-in %s, alone %s",
		grown>>20, after, before, during.tail, alone.tail, during.login, alone.login)
	for name, value := range map[string]any{
		"grewBytes": grown, "othersDuringMs": after, "othersAloneMs": before, "tailDuringMs": during.tail, "tailAloneMs": alone.tail,
		"loginDuringMs": during.login, "loginAloneMs": alone.login,
	} {
		s.result.Figures[name] = value
	}
	for what, pair := range map[string][2]lateness{"starts": {before, after}, "lines": {alone.tail, during.tail}, "log-ins": {alone.login, during.login}} {
		if pair[0].Count == 0 || pair[1].Count == 0 {
			wrong.add("kinds of evidence missing", "%s", what)
		}
		ordinary := max(pair[0].P99, floodFloor)
		s.goal("p99 of "+what, pair[1].P99, floodRatio*ordinary, "ms")
		if limit := 5 * ordinary; pair[1].P99 > limit {
			wrong.add("figures of the other tenant that suffered", "%s: p99 %.0f ms, more than %.0f", what, pair[1].P99, limit)
		}
	}
	if n := during.watch.offline + alone.watch.offline; n > 0 {
		wrong.add("times the other tenant's executor was not online", "%d looks", n)
	}
	if grown > floodGrowth {
		wrong.add("figures of the node over their bounds", "it grew by %d MB", grown>>20)
	}
	return wrong.err()
}

// attacker is the process that floods. It leaves the processors to others, as if
// it were on another machine.
func attacker(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("hostile", flag.ContinueOnError)
	o := hostile.Options{Executor: "witness", Token: os.Getenv("CARILLON_EXECUTOR_TOKEN"), Slow: slowLogConns}
	flags.StringVar(&o.Address, "addr", "", "the executors' port of a node")
	length := flags.Duration("for", 10*time.Second, "how long")
	quiet := flags.Bool("quiet", false, "take the processors only, and send nothing")
	requests := flags.String("requests", "", "send the requests that this file says (F46)")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if err := syscall.Setpriority(syscall.PRIO_PROCESS, 0, 19); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, *length)
	defer cancel()
	if *quiet {
		hostile.Busy(ctx)
		return nil
	}
	if *requests != "" {
		return sendRequests(ctx, *requests)
	}
	var done hostile.Done
	hostile.Flood(ctx, o, &done)
	say("%d sessions, %d frames, %d bytes were sent; %d sessions were ended", done.Sessions.Load(), done.Frames.Load(), done.Bytes.Load(), done.Ended.Load())
	if done.Sessions.Load() == 0 || done.Frames.Load() == 0 {
		return errors.New("nothing was flooded")
	}
	return nil
}
