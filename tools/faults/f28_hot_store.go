package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/carillon-sched/carillon/admin/verify"
	"github.com/carillon-sched/carillon/internal/apiclient"
	"github.com/carillon-sched/carillon/internal/testenv"
	"github.com/carillon-sched/carillon/internal/testenv/lab"
	"github.com/carillon-sched/carillon/internal/testenv/proxy"
)

// How timers of F28 are set: each second so many, due at once and up to after the
// longest time that nodes copy ahead.
const timersASecond = 60

var timersAhead = []time.Duration{0, 3 * time.Second, 20 * time.Second, 80 * time.Second}

// afterRedis is how long a fault of Redis may show after its end: nodes leave it
// alone for 5 s.
const afterRedis = 6 * time.Second

// wrongValues makes half of the timers in Redis due long ago, and puts ids of nobody
// in the place of the others.
const wrongValues = `EVAL "for _, k in ipairs(redis.call('KEYS', 'carillon:*')) do for i, m in ipairs(redis.call('ZRANGE', k, 0, -1)) do ` +
	`if i % 2 == 0 then redis.call('ZADD', k, 1, m) else redis.call('ZREM', k, m) redis.call('ZADD', k, 1, i) end end end return 1" 0`

// f28 breaks the Redis that names due timers, under a steady load of jobs and of
// timers: flushes it, kills it, has it answer 5 s late, and writes wrong values.
func f28(ctx context.Context, s *stage) error {
	server, err := testenv.StartRedis()
	if err != nil {
		return &unableError{err.Error()}
	}
	s.defers(server.Close)
	path, err := proxy.New(server.Addr, proxy.Options{})
	if err != nil {
		return err
	}
	s.defers(path.Close)
	address := (&url.URL{Scheme: "redis", User: url.UserPassword("default", server.Password), Host: path.Addr(), Path: "/0"}).String()
	err = s.open(ctx, fleetPlan{admins: 2, executors: 2, env: func(int) []string { return []string{"CARILLON_HOT_STORE=" + address} }})
	if err != nil {
		return err
	}
	if err := s.load(ctx, s.rate()/2); err != nil {
		return err
	}
	timers := newTimerLoad(s)
	stop := timers.start(ctx)
	err = s.breakRedis(ctx, server, path)
	if err := errors.Join(err, stop()); err != nil {
		return err
	}
	if err := timers.ended(ctx); err != nil {
		return err
	}
	redis := map[string]float64{}
	for _, a := range s.fleet.Admins {
		m, err := a.API.MetricBy(ctx, "carillon_hot_store_timers_total", "result")
		if err != nil {
			return err
		}
		for result, n := range m {
			redis[result] += n
		}
	}
	if s.unjudged, err = timers.jobs(ctx); err != nil {
		return err
	}
	j, err := s.finish(ctx)
	if j == nil {
		return err
	}
	h, readErr := verify.ReadPaths(s.historyDir())
	if readErr != nil {
		return errors.Join(err, readErr)
	}
	return errors.Join(err, timers.judge(h, redis))
}

// breakRedis injects the faults one after the other, with a time between them that
// shows how it goes without.
func (s *stage) breakRedis(ctx context.Context, server *testenv.Broker, path *proxy.Proxy) error {
	quiet := pick(s.set, 20*time.Second, 15*time.Second)
	if err := wait(ctx, quiet); err != nil {
		return err
	}
	for range s.rounds(10, 1) {
		for _, f := range []struct {
			kind string
			do   func() error
		}{
			{"FLUSHALL", func() error { _, err := askRedis(ctx, server, "FLUSHALL"); return err }},
			{"Redis killed for 5 s", func() error {
				return errors.Join(server.Kill(), wait(ctx, 5*time.Second), server.Start())
			}},
			{"Redis 5 s late, for 10 s", func() error {
				path.Delay(5 * time.Second)
				err := wait(ctx, 10*time.Second)
				path.Delay(0)
				path.Reset()
				return err
			}},
			{"wrong values in Redis", func() error { _, err := askRedis(ctx, server, wrongValues); return err }},
		} {
			if err := s.fault(f.kind, "redis", f.do); err != nil {
				return err
			}
			if err := wait(ctx, quiet); err != nil {
				return err
			}
		}
	}
	return nil
}

// timerLoad sets timers, and knows when each of them is due.
type timerLoad struct {
	s *stage

	mu   sync.Mutex
	due  map[string]time.Time // guarded by mu: by key
	last time.Time            // guarded by mu
}

func newTimerLoad(s *stage) *timerLoad { return &timerLoad{s: s, due: map[string]time.Time{}} }

// start sets timers every second until the returned function is called.
func (l *timerLoad) start(ctx context.Context) (stop func() error) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() {
		for n := 0; ; n++ {
			err := l.set(ctx, n)
			if err == nil {
				err = wait(ctx, time.Second)
			}
			if err != nil {
				if ctx.Err() != nil {
					err = nil
				}
				done <- err
				return
			}
		}
	}()
	return func() error { cancel(); return <-done }
}

// set sets the timers of one second, through one node or the other.
func (l *timerLoad) set(ctx context.Context, second int) error {
	now := time.Now().Truncate(time.Millisecond)
	var body apiclient.SetTimersInputBody
	for i := range timersASecond {
		at := now.Add(timersAhead[i%len(timersAhead)] + time.Duration(i)*time.Second/timersASecond)
		body.Timers = append(body.Timers, apiclient.TimerRequest{
			Executor: "witness", Handler: handlerTick, Key: fmt.Sprintf("%d-%d", second, i), At: at.UTC().Format(time.RFC3339Nano),
		})
	}
	answer, err := l.s.tenant.api(second%len(l.s.fleet.Admins)).SetTimers(context.WithoutCancel(ctx), body)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, item := range answer.Value.Items {
		if item.FireAt == nil {
			return fmt.Errorf("timer %s was not set: %s", item.Key, item.Outcome)
		}
		if l.due[item.Key] = *item.FireAt; item.FireAt.After(l.last) {
			l.last = *item.FireAt
		}
	}
	return nil
}

// ended waits until no timer is pending.
func (l *timerLoad) ended(ctx context.Context) error {
	if err := waitUntil(ctx, l.last); err != nil {
		return err
	}
	return lab.Until(ctx, settleLimit, "no timer pending", func(ctx context.Context) error {
		count, err := l.s.tenant.api(0).CountTimers(ctx, apiclient.CountTimersParams{})
		if err == nil && count.Value.Pending > 0 {
			err = fmt.Errorf("%d are", count.Value.Pending)
		}
		return err
	})
}

// jobs are those of timers: the judge knows schedules only.
func (l *timerLoad) jobs(ctx context.Context) (map[string]bool, error) {
	db, err := l.s.db.Open()
	if err != nil {
		return nil, err
	}
	defer db.Close()
	rows, err := db.QueryContext(ctx, "SELECT DISTINCT job_id FROM executions WHERE cause = 'timer'")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	out := map[string]bool{}
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		out[id] = true
	}
	return out, rows.Err()
}

// judge looks at each timer: one row, one start, not before its time.
func (l *timerLoad) judge(h *verify.History, redis map[string]float64) error {
	var wrong problems
	rows, starts := map[string]verify.Row{}, map[string][]verify.Run{}
	for _, r := range h.Rows {
		if r.Cause == "timer" {
			_, rest, _ := strings.Cut(r.Request, ":")
			_, key, _ := strings.Cut(rest, ":")
			if _, ok := rows[key]; ok {
				wrong.add("timers with two runs", "%s", key)
			}
			rows[key] = r
		}
	}
	for _, r := range h.Runs {
		starts[r.Key] = append(starts[r.Key], r)
	}
	var without, with []float64
	for key, due := range l.due {
		row, ok := rows[key]
		if !ok {
			wrong.add("timers without a run", "%s, due at %s", key, due.Format(time.TimeOnly))
			continue
		}
		if row.State != "succeeded" || row.FireAt != verify.At(due) {
			wrong.add("timers whose run is not as it should be", "%s is %s (%s), at %d", key, row.State, row.Reason, row.FireAt)
		}
		if len(starts[row.Key]) != 1 {
			wrong.add("timers that did not start once", "%s: %d times", key, len(starts[row.Key]))
			continue
		}
		late := float64(starts[row.Key][0].Start-row.FireAt) / 1000
		if late < 0 {
			wrong.add("timers that started early", "%s by %.3f ms", key, -late)
		}
		if faulty(h.Faults, row.FireAt) {
			with = append(with, late)
		} else {
			without = append(without, late)
		}
	}
	for _, result := range []string{"copied", "added", "named"} {
		if redis[result] == 0 {
			wrong.add("kinds of evidence missing", "no timer was %s by Redis", result)
		}
	}
	a, b := summary(without), summary(with)
	l.s.result.Figures["timers"], l.s.result.Figures["timersQuietMs"], l.s.result.Figures["timersFaultMs"] = len(l.due), a, b
	l.s.figure("%d timers, each once and none early; lateness without a fault %s, with one %s", len(l.due), a, b)
	return wrong.err()
}

// faulty tells whether a fault was there at that time, or shortly before.
func faulty(faults []verify.Fault, at verify.Time) bool {
	for _, f := range faults {
		if at >= f.Start && at <= f.End+verify.Span(afterRedis) {
			return true
		}
	}
	return false
}
