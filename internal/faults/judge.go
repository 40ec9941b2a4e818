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
// what was due has to end, the fleet has to be healthy, and the judge speaks.
func (s *stage) finish(ctx context.Context) (*judged, error) {
	to := time.Now().Truncate(time.Second)
	if err := s.ended(ctx, to, settleLimit); err != nil {
		return nil, err
	}
	if err := s.healthy(ctx); err != nil {
		return nil, err
	}
	return s.judge(ctx, to)
}

// judged is what the history showed.
type judged struct {
	history *verify.History
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

// judge hands the history to the checker.
func (s *stage) judge(ctx context.Context, to time.Time) (*judged, error) {
	if err := s.exportRows(ctx); err != nil {
		return nil, err
	}
	h, err := verify.ReadPaths(s.historyDir())
	if err != nil {
		return nil, err
	}
	out := &judged{history: h, rows: map[string]verify.Row{}}
	for _, r := range h.Runs {
		if r.FireAt <= verify.At(to) {
			out.runs = append(out.runs, r)
		}
	}
	for _, r := range h.Rows {
		if r.FireAt <= verify.At(to) {
			out.rows[r.Key] = r
		}
	}
	return out, s.tally(out, to)
}

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

type occurrence struct {
	job string
	at  verify.Time
}

// tally joins targets, runs and rows by their labels.
func (s *stage) tally(out *judged, to time.Time) error {
	h := out.history
	targets := map[occurrence]bool{}
	specs := map[string]*verify.Spec{}
	for _, c := range h.Calls {
		if c.Op != verify.OpCreate {
			continue
		}
		specs[c.Job] = c.Spec
		step := verify.Span(time.Second)
		switch {
		case c.Spec.Kind == "none":
			continue
		case c.Spec.Kind == "once":
			targets[occurrence{c.Job, c.Spec.At}] = true
			continue
		case c.Spec.Every > 0:
			step = c.Spec.Every
		}
		for at := c.Spec.StartAt; at <= verify.At(to); at += step {
			if at >= verify.At(s.from) && (c.Spec.EndAt == 0 || at <= c.Spec.EndAt) {
				targets[occurrence{c.Job, at}] = true
			}
		}
	}
	starts := map[occurrence][]verify.Run{}
	for _, r := range h.Runs {
		k := occurrence{r.Job, r.FireAt}
		if targets[k] {
			starts[k] = append(starts[k], r)
		}
	}
	rows := map[occurrence]verify.Row{}
	for _, r := range h.Rows {
		rows[occurrence{r.Job, r.FireAt}] = r
	}
	var quiet, inside []float64
	early := 0
	for k := range targets {
		runs := starts[k]
		row, found := rows[k]
		if !found || len(runs) == 0 && row.State == "succeeded" {
			s.result.Missed++
			continue
		}
		if specs[k.job].OnLost == "fail" && len(runs) > 1 {
			s.result.Double += len(runs) - 1
		}
		if len(runs) == 0 {
			continue
		}
		first := slices.MinFunc(runs, func(a, b verify.Run) int { return int(a.Start - b.Start) })
		late := float64(first.Start-k.at) / 1000
		if late < 0 {
			early++
		}
		if s.explained(h, k.at) {
			inside = append(inside, late)
		} else {
			quiet = append(quiet, late)
		}
	}
	s.result.Targets = len(targets)
	out.quiet, out.inside = summary(quiet), summary(inside)
	s.result.Figures["latenessQuietMs"], s.result.Figures["latenessFaultMs"] = out.quiet, out.inside
	var errs []error
	bad := func(n int, what string) {
		if n > 0 {
			errs = append(errs, fmt.Errorf("%d %s", n, what))
		}
	}
	bad(s.result.Missed, "missed")
	bad(s.result.Double, "doubled")
	bad(early, "early")
	if len(targets) == 0 {
		errs = append(errs, errors.New("nothing was expected: not enough evidence"))
	}
	return errors.Join(errs...)
}

// explained: a fault was there, or had just gone.
func (s *stage) explained(h *verify.History, at verify.Time) bool {
	settle := s.judged.Settle
	if settle == 0 {
		settle = verify.Span(5 * time.Second)
	}
	return slices.ContainsFunc(h.Faults, func(f verify.Fault) bool {
		return at >= f.Start-verify.Span(time.Second) && at <= f.End+settle
	})
}
