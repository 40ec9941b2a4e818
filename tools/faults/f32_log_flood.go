package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/admin/verify"
	"github.com/carillon-sched/carillon/internal/apiclient"
	"github.com/carillon-sched/carillon/internal/testenv/lab"
)

// floodRate is what the flooding handler tries to log, in bytes a second.
const floodRate = 100 << 20

// f32 lets one handler log 100 MB/s in a process whose other handlers go on
// firing; some of those log a line each. What counts are the others: that they
// start when they should, that their lines are all there and can be read at
// once, on whatever node, and that nobody's memory grows.
func f32(ctx context.Context, s *stage) error {
	if err := s.open(ctx, fleetPlan{admins: 2, executors: 1}); err != nil {
		return err
	}
	if err := s.load(ctx, pick(s.set, 100, 50)); err != nil {
		return err
	}
	length := pick(s.set, 60*time.Second, 15*time.Second)
	lines, err := s.create(ctx, s.tenant, []job{{name: "tail", handler: handlerSay}})
	if err != nil {
		return err
	}
	first := time.Now().Truncate(time.Second).Add(2 * time.Second)
	saying := make([]job, 5)
	for i := range saying {
		saying[i] = job{name: fmt.Sprintf("say-%d", i), handler: handlerSay, kind: "fixed_rate", every: time.Second, startAt: first}
	}
	sayers, err := s.create(ctx, s.tenant, saying)
	if err != nil {
		return err
	}
	alone := cut{from: verify.At(time.Now())}
	tailAlone, _, err := s.watchLogs(ctx, lines[0], length/2)
	if err != nil {
		return err
	}
	alone.to = verify.At(time.Now())
	resting := s.memory(func(u lab.Usage) int64 { return u.RSS })
	began := time.Now()
	floods, err := s.create(ctx, s.tenant, []job{{
		name: "flood", handler: handlerFlood, input: workInput{Ms: length.Milliseconds()}, kind: "once", at: began.Add(time.Second).Truncate(time.Millisecond),
	}})
	if err != nil {
		return err
	}
	var tail lateness
	var watch logWatch
	err = s.fault("a handler logs 100 MB/s", "executor-1", func() (err error) {
		tail, watch, err = s.watchLogs(ctx, lines[0], length+time.Second)
		return err
	})
	if err != nil {
		return err
	}
	flooded := cut{verify.At(began), verify.At(time.Now())}
	grown := s.memory(func(u lab.Usage) int64 { return u.PeakRSS }).less(resting)
	j, err := s.finish(ctx)
	if j == nil {
		return err
	}
	return errors.Join(err, s.judgeFlood(ctx, j, floods[0], sayers, flooding{
		alone: alone, flooded: flooded, tailAlone: tailAlone, tail: tail, watch: watch, grown: grown, length: length,
	}))
}

// flooding is what was seen around the flood.
type flooding struct {
	alone, flooded  cut
	tailAlone, tail lateness
	watch           logWatch
	grown           footprint
	length          time.Duration
}

func (s *stage) judgeFlood(ctx context.Context, j *judged, flood string, sayers []string, f flooding) error {
	var wrong problems
	handed, kept, err := s.floodLog(ctx, j, flood)
	if err != nil {
		return err
	}
	missing := 0
	heard := map[string]bool{}
	for _, id := range sayers {
		heard[id] = true
	}
	for _, r := range j.runs {
		if !heard[r.Job] || !within(r.FireAt, []cut{f.flooded}) {
			continue
		}
		page, err := s.readLog(ctx, r.Key, apiclient.GetRunLogParams{})
		if err != nil {
			return err
		}
		if len(page.Lines) != 1 || page.Lines[0].Attrs.Key != r.Key {
			missing++
			wrong.add("runs beside the flood whose line is not there", "run %s has %d lines", r.Key, len(page.Lines))
		}
	}
	before, during := j.latenessOf(s.tenant.id, f.alone), j.latenessOf(s.tenant.id, f.flooded)
	rate := float64(handed) * floodLine / f.length.Seconds() / 1e6
	s.figure("%.0f MB/s handed over, %d lines of %d kept; others' lateness %s, alone %s; their lines read after %s, alone %s, %d missing; oldest heartbeat %.1f s; memory admin +%d MB, executor +%d MB",
		rate, kept, handed, during, before, f.tail, f.tailAlone, missing, f.watch.heartbeat.Seconds(), f.grown.admin>>20, f.grown.executor>>20)
	for name, value := range map[string]any{
		"floodMBps": rate, "floodLines": handed, "floodKept": kept, "othersDuringMs": during, "othersAloneMs": before, "tailDuringMs": f.tail, "tailAloneMs": f.tailAlone,
		"heartbeatMs": f.watch.heartbeat.Milliseconds(), "adminGrewBytes": f.grown.admin, "executorGrewBytes": f.grown.executor,
	} {
		s.result.Figures[name] = value
	}
	if during.Count == 0 || before.Count == 0 || f.tail.Count == 0 {
		wrong.add("kinds of runs not seen", "nothing ran beside the flood: not enough evidence")
	}
	if f.watch.offline > 0 {
		wrong.add("times the executor was not online", "%d of %d looks", f.watch.offline, f.watch.looks)
	}
	if handed == kept {
		wrong.add("floods that were none", "all of %d lines were kept", handed)
	}
	// The attack table of the security plan: memory +64 MB. The executor's log
	// buffer comes on top there.
	if f.grown.admin > 64<<20 || f.grown.executor > 128<<20 {
		wrong.add("processes that grew", "an admin by %d bytes, the executor by %d", f.grown.admin, f.grown.executor)
	}
	return wrong.err()
}

// floodLog returns how many lines the flooding run handed over, and how many of
// them are kept. The lines that stand for dropped ones have to account for all.
func (s *stage) floodLog(ctx context.Context, j *judged, flood string) (handed, kept int64, err error) {
	key := ""
	for _, r := range j.runs {
		if r.Job == flood {
			key = r.Key
		}
	}
	if key == "" {
		return 0, 0, errors.New("the flood did not run: not enough evidence")
	}
	var dropped int64
	for after := int64(0); ; {
		page, err := s.readLog(ctx, key, apiclient.GetRunLogParams{Limit: 5000, After: after, Wait: "20s"})
		if err != nil {
			return 0, 0, err
		}
		for _, l := range page.Lines {
			if dropped += l.Attrs.Dropped; l.Attrs.Dropped == 0 {
				kept++
			}
		}
		if after = page.Next; after < page.LastLine {
			continue
		}
		if !page.Complete {
			return 0, 0, fmt.Errorf("the log of the flood is not complete at line %d", page.LastLine)
		}
		for _, m := range page.Counts.Missing {
			if m.Why == "lost" {
				return 0, 0, fmt.Errorf("%d lines of the flood are missing without a word", m.Lines)
			}
		}
		return kept + dropped, kept, nil
	}
}

// logPage is a piece of a log with the attributes that witnesses write.
type logPage struct {
	apiclient.LogPage
	Lines []struct {
		Attrs struct {
			Key     string
			Dropped int64
		}
	} `json:"lines"`
}

func (s *stage) readLog(ctx context.Context, run string, params apiclient.GetRunLogParams) (logPage, error) {
	d, err := s.tenant.api(0).GetRunLog(ctx, run, params)
	if err != nil {
		return logPage{}, err
	}
	page, err := apiclient.As[logPage](d)
	return page.Value, err
}

// logWatch is what was seen of the executor.
type logWatch struct {
	looks, offline int
	heartbeat      time.Duration // the oldest last sign of life
}

// watchLogs runs a job that logs a line, again and again, and follows its log
// on the other node: how long after it was written is the line there.
func (s *stage) watchLogs(ctx context.Context, jobID string, length time.Duration) (lateness, logWatch, error) {
	var ms []float64
	var w logWatch
	for i, end := 0, time.Now().Add(length); time.Now().Before(end); i++ {
		if err := w.look(ctx, s); err != nil {
			return lateness{}, w, err
		}
		run, err := s.runNow(ctx, s.tenant.api(i), jobID)
		if err != nil {
			return lateness{}, w, err
		}
		page, err := s.tenant.api(i+1).GetRunLog(ctx, run, apiclient.GetRunLogParams{Wait: "20s"})
		if err != nil {
			return lateness{}, w, err
		}
		if len(page.Value.Lines) == 0 {
			return lateness{}, w, fmt.Errorf("no line of run %s within 20 s", run)
		}
		ms = append(ms, float64(time.Since(page.Value.Lines[0].At).Microseconds())/1000)
		if err := wait(ctx, 100*time.Millisecond); err != nil {
			return lateness{}, w, err
		}
	}
	return summary(ms), w, nil
}

func (w *logWatch) look(ctx context.Context, s *stage) error {
	list, err := s.tenant.api(0).ListInstances(ctx, s.tenant.executorID, apiclient.ListInstancesParams{})
	if err != nil {
		return err
	}
	w.looks++
	for _, one := range list.Value.Items {
		w.heartbeat = max(w.heartbeat, time.Since(one.LastHeartbeatAt))
		if one.State != "online" {
			w.offline++
		}
	}
	return nil
}

// runNow starts a job and returns the run's id.
func (s *stage) runNow(ctx context.Context, api *lab.API, jobID string) (string, error) {
	call := &verify.Call{Op: verify.OpTrigger, Tenant: s.tenant.id, Job: jobID, Invoke: verify.At(time.Now())}
	run, err := api.RunNow(ctx, jobID)
	if err == nil {
		call.Key, call.Ack = run, verify.At(time.Now())
	}
	return run, errors.Join(err, s.history.Append(call))
}

// footprint is what processes have in memory, in bytes.
type footprint struct{ admin, executor int64 }

// memory is the largest admin's and the largest executor's.
func (s *stage) memory(of func(lab.Usage) int64) (f footprint) {
	for _, a := range s.fleet.Admins {
		f.admin = max(f.admin, of(a.Process().Usage()))
	}
	for _, w := range s.executors {
		f.executor = max(f.executor, of(w.Usage()))
	}
	return f
}

func (f footprint) less(o footprint) footprint {
	return footprint{f.admin - o.admin, f.executor - o.executor}
}

// floodLine is the length of a flood's line in bytes, without what stands around it.
const floodLine = 1000

var floodText = strings.Repeat("0123456789", floodLine/10)
