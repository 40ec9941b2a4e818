package main

import (
	"context"
	"strconv"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/benchdata"
	"github.com/carillon-sched/carillon/admin/verify"
)

// observed is what rows and witnesses say after a scenario.
type observed struct {
	rows   []benchdata.MeasuredRun
	starts map[domain.ExecutionID][]verify.Time
}

// observe reads everything of an executor once nothing runs any more.
func (f *fleet) observe(ctx context.Context, executor domain.ExecutorID) (*observed, error) {
	return f.observeAll(ctx, seat{f.tenant, executor})
}

// observeAll is observe for executors of any tenants.
func (f *fleet) observeAll(ctx context.Context, seats ...seat) (*observed, error) {
	o := &observed{starts: map[domain.ExecutionID][]verify.Time{}}
	for _, at := range seats {
		if err := benchdata.ReadRuns(ctx, f.store.DB, at.tenant, at.executor, func(r benchdata.MeasuredRun) { o.rows = append(o.rows, r) }); err != nil {
			return nil, err
		}
	}
	// Witnesses write a little later than they see.
	if err := pause(ctx, 2*witnessEvery); err != nil {
		return nil, err
	}
	h, err := verify.ReadPaths(f.history)
	if err != nil {
		return nil, err
	}
	for i := range h.Runs {
		id, err := strconv.ParseInt(h.Runs[i].Key, 10, 64)
		if err != nil {
			return nil, err
		}
		o.starts[domain.ExecutionID(id)] = append(o.starts[domain.ExecutionID(id)], h.Runs[i].Start)
	}
	return o, nil
}

// grid is the fire times that should have rows: of each job every so often.
type grid struct {
	every    time.Duration
	from, to time.Time // fire times at or after from and before to are judged
	// exact is how many there have to be; 0: from each job's first to its last
	// one in the table, without a gap (under overload nobody knows how far
	// planning comes).
	exact int
}

// judge compares rows, witnesses and what was due. Doubles, strangers and rows
// without proof are counted over everything that happened, the rest over the
// fire times of the grid.
func (o *observed) judge(g grid) (*Fires, *Spread) {
	out := &Fires{}
	type span struct {
		first, last time.Time
		n           int
	}
	jobs := map[domain.JobID]*span{}
	var late []float64
	known := make(map[domain.ExecutionID]bool, len(o.rows))
	for _, r := range o.rows {
		known[r.ID] = true
		starts := o.starts[r.ID]
		out.Doubled += max(0, len(starts)-1)
		if r.State == domain.Succeeded && len(starts) == 0 {
			out.Unproven++
		}
		if r.FireAt.Before(g.from) || !r.FireAt.Before(g.to) {
			continue
		}
		out.Rows++
		s := jobs[r.Job]
		if s == nil {
			s = &span{first: r.FireAt, last: r.FireAt}
			jobs[r.Job] = s
		}
		s.n++
		s.first, s.last = earlier(s.first, r.FireAt), later(s.last, r.FireAt)
		if len(starts) == 0 {
			continue
		}
		out.Started++
		ms := float64(starts[0]-verify.At(r.FireAt)) / 1000
		if ms < 0 {
			out.Early++
		}
		late = append(late, ms)
	}
	for id := range o.starts {
		if !known[id] {
			out.Foreign++
		}
	}
	out.Expected = g.exact
	if g.exact == 0 {
		for _, s := range jobs {
			out.Expected += int(s.last.Sub(s.first)/g.every) + 1
		}
	}
	out.Missed = out.Expected - out.Started
	return out, spreadOf(late)
}

// unfinished is judge for a fleet that was stopped in its midst, where runs
// still wait, and where those may have been given up that waited for too long
// (told): neither is lost. What waits is as late as it was when all stopped.
func (o *observed) unfinished(g grid, stopped time.Time) (fires *Fires, late *Spread, told, waiting int) {
	fires, _ = o.judge(g)
	var all []float64
	for _, r := range o.rows {
		if r.FireAt.Before(g.from) || !r.FireAt.Before(g.to) {
			continue
		}
		starts := o.starts[r.ID]
		switch {
		case len(starts) > 0:
			all = append(all, ms(starts[0].Std().Sub(r.FireAt)))
		case !r.State.Terminal():
			waiting++
			all = append(all, ms(stopped.Sub(r.FireAt)))
		case r.State != domain.Succeeded:
			told++
		}
	}
	fires.Missed -= told + waiting
	return fires, spreadOf(all), told, waiting
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// finishedIn counts the results that were committed in a window.
func (o *observed) finishedIn(from, to time.Time) (n int) {
	for _, r := range o.rows {
		if r.State == domain.Succeeded && !r.FinishedAt.Before(from) && r.FinishedAt.Before(to) {
			n++
		}
	}
	return n
}
