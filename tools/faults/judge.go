package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/admin/verify"
)

// settleLimit is how long after the load everything may take to come to its
// end: longer than any lease, timeout and pause in the matrix.
const settleLimit = 2 * time.Minute

// finish ends a row of the ordinary kind: the last fire time to judge is now;
// the load is paused, what was due has to end, the fleet has to be healthy,
// and the judge speaks.
func (s *stage) finish(ctx context.Context) (*judged, error) {
	to := time.Now().Truncate(time.Second)
	if err := s.pauseAll(ctx); err != nil {
		return nil, err
	}
	if err := s.ended(ctx, farFuture, settleLimit); err != nil {
		return nil, err
	}
	if err := s.healthy(ctx); err != nil {
		return nil, err
	}
	return s.judge(ctx, to)
}

// farFuture comes after every fire time, and before "never".
var farFuture = time.Date(2900, 1, 1, 0, 0, 0, 0, time.UTC)

// judged is what the history showed.
type judged struct {
	history *verify.History
	report  *verify.Report
	// runs and rows are those of fire times that are judged: what was due
	// later may be under way yet.
	runs   []verify.Run
	rows   map[string]verify.Row // by key
	quiet  lateness              // of starts that no fault explains
	inside lateness              // of the others
}

// lateness of starts by the handlers' own clock, in ms.
type lateness struct {
	Count int     `json:"count"`
	P50   float64 `json:"p50"`
	P99   float64 `json:"p99"`
	Max   float64 `json:"max"`
}

func (l lateness) String() string { return fmt.Sprintf("p99 %.0f ms, max %.0f ms", l.P99, l.Max) }

func summary(ms []float64) lateness {
	if len(ms) == 0 {
		return lateness{}
	}
	slices.Sort(ms)
	at := func(q float64) float64 { return ms[min(len(ms)-1, int(q*float64(len(ms))))] }
	return lateness{Count: len(ms), P50: at(0.5), P99: at(0.99), Max: ms[len(ms)-1]}
}

// goals are those of a lateness, in ms.
func (s *stage) goals(l lateness, p99, most float64) {
	s.goal("p99", l.P99, p99, "ms")
	s.goal("max", l.Max, most, "ms")
}

// judge hands the history to the checker.
func (s *stage) judge(ctx context.Context, to time.Time) (*judged, error) {
	if err := s.exportRows(ctx); err != nil {
		return nil, err
	}
	p := s.judged
	p.Name = s.row.id + " " + s.row.title
	p.From, p.To = verify.At(s.from), verify.At(to)
	p.MinRuns, p.MinFaults, p.MinNodes = 1, s.recorded, len(s.fleet.Admins)
	if err := s.history.Append(&p); err != nil {
		return nil, err
	}
	h, err := verify.ReadPaths(s.historyDir())
	if err != nil {
		return nil, err
	}
	if len(s.unjudged) > 0 {
		h.Runs = slices.DeleteFunc(h.Runs, func(r verify.Run) bool { return s.unjudged[r.Job] })
		h.Rows = slices.DeleteFunc(h.Rows, func(r verify.Row) bool { return s.unjudged[r.Job] })
		h.Calls = slices.DeleteFunc(h.Calls, func(c verify.Call) bool { return s.unjudged[c.Job] })
	}
	out := &judged{history: h, rows: map[string]verify.Row{}}
	for _, r := range h.Runs {
		if r.FireAt <= p.To {
			out.runs = append(out.runs, r)
		}
	}
	for _, r := range h.Rows {
		if r.FireAt <= p.To {
			out.rows[r.Key] = r
		}
	}
	if out.report, err = verify.Check(h); err != nil {
		return nil, err
	}
	return out, s.sentence(out)
}

// sentence takes the checker's answer over into the result.
func (s *stage) sentence(j *judged) error {
	r := j.report
	s.result.Targets, s.result.Missed, s.result.Double = r.Expected, r.Counts[verify.Missed], r.Counts[verify.Double]
	j.quiet, j.inside = latenessOf(r.Outside), latenessOf(r.Inside)
	s.result.Figures["latenessQuietMs"], s.result.Figures["latenessFaultMs"] = j.quiet, j.inside
	s.result.Figures["explained"] = r.Explained
	var wrong problems
	for kind, n := range r.Counts {
		for _, f := range r.Examples {
			if f.Kind == kind {
				wrong.add(string(kind), "job %s, run %s at %s: %s", f.Job, f.Key, f.At.Format(time.TimeOnly), f.Detail)
			}
		}
		if n > 0 {
			wrong.count[string(kind)] = n // the examples are not all
		}
	}
	for _, e := range r.Short {
		wrong.add("kinds of evidence missing", "%s: %d of %d", e.What, e.Seen, e.Want)
	}
	return wrong.err()
}

func latenessOf(s verify.Stats) lateness {
	return lateness{Count: s.Count, P50: ms(s.P50), P99: ms(s.P99), Max: ms(s.Max)}
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// executorOf names the executor that a run ran on.
func executorOf(r verify.Run) string {
	name, _, _ := strings.Cut(r.Boot, ".")
	return name
}

// problems collects what is wrong, by kind, with a few examples of each.
type problems struct {
	kinds []string
	count map[string]int
	first map[string][]string
}

func (p *problems) add(kind, format string, args ...any) {
	if p.count == nil {
		p.count, p.first = map[string]int{}, map[string][]string{}
	}
	if p.count[kind]++; p.count[kind] == 1 {
		p.kinds = append(p.kinds, kind)
	}
	if len(p.first[kind]) < 3 {
		p.first[kind] = append(p.first[kind], fmt.Sprintf(format, args...))
	}
}

func (p *problems) err() error {
	var errs []error
	for _, kind := range p.kinds {
		errs = append(errs, fmt.Errorf("%d %s, for example %s", p.count[kind], kind, strings.Join(p.first[kind], "; ")))
	}
	return errors.Join(errs...)
}
