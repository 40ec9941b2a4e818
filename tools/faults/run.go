package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/carillon-sched/carillon/internal/testenv"
	"github.com/carillon-sched/carillon/internal/testenv/lab"
)

// row is one line of the fault matrix.
type row struct {
	id, title string
	// ci: it belongs to the selection for CI.
	ci bool
	// run injects the fault and fills the stage's result. An *unableError says
	// that this machine cannot do it.
	run func(context.Context, *stage) error
}

// verdict of a row.
type verdict string

const (
	passed verdict = "pass"
	failed verdict = "FAIL"
	unable verdict = "unable"
)

// result is what a row showed.
type result struct {
	ID       string  `json:"id"`
	Title    string  `json:"title"`
	Database string  `json:"database,omitempty"` // its server's product and version
	Verdict  verdict `json:"verdict"`
	Reason   string  `json:"reason,omitempty"`
	Injected int     `json:"injected"`
	Targets  int     `json:"targets"`
	Missed   int     `json:"missed"`
	Double   int     `json:"double"`
	// Figure is the row's own figure in words, Figures the numbers behind it.
	Figure  string         `json:"figure"`
	Figures map[string]any `json:"figures,omitempty"`
	// Over are the figures that are over their goal. They fail no row: how
	// fast a machine is decides on them, too.
	Over    []string `json:"over,omitempty"`
	Seconds float64  `json:"seconds"`
	// Stalls are the machine's own while the row ran.
	Stalls *lab.Stalls `json:"stalls,omitempty"`
	Dir    string      `json:"dir,omitempty"` // kept when it failed
}

// unableError: the machine, not the product, is the reason.
type unableError struct{ reason string }

func (e *unableError) Error() string { return e.reason }

func runRows(ctx context.Context, args []string) error {
	s, err := parse(args)
	if err != nil {
		return err
	}
	rows, err := selected(s)
	if err != nil {
		return err
	}
	own := s.dir == ""
	if own {
		if s.dir, err = os.MkdirTemp("", "carillon-faults-"); err != nil {
			return err
		}
	}
	if s.dir, err = filepath.Abs(s.dir); err != nil {
		return err
	}
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return err
	}
	if s.self, err = os.Executable(); err != nil {
		return err
	}
	if s.binary, err = lab.Build(ctx, s.dir, "carillon"); err != nil {
		return err
	}
	stalls, err := lab.WatchStalls(context.WithoutCancel(ctx), s.dir)
	if err != nil {
		return err
	}
	results := play(rows, s.lanes, func(r row) *result {
		if ctx.Err() != nil {
			return nil
		}
		began := time.Now()
		one := runRow(ctx, s, r)
		one.Stalls = stalls.Since(began)
		return &one
	})
	if err := stalls.Close(); err != nil {
		return err
	}
	if err := report(s, results); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return errors.New("interrupted")
	}
	return conclude(s, own, results)
}

// play runs as many rows at once as there are lanes, long ones first, and after
// them those that need the machine for themselves. The results are in the order of
// the rows; nil is none.
func play(rows []row, lanes int, run func(row) *result) []result {
	all := make([]*result, len(rows))
	next := make(chan int)
	var wg sync.WaitGroup
	for range lanes {
		wg.Go(func() {
			for i := range next {
				all[i] = run(rows[i])
			}
		})
	}
	for _, first := range []bool{true, false} {
		for i, r := range rows {
			if !slices.Contains(alone, r.id) && slices.Contains(long, r.id) == first {
				next <- i
			}
		}
	}
	close(next)
	wg.Wait()
	var results []result
	for i, r := range rows {
		if slices.Contains(alone, r.id) {
			all[i] = run(r)
		}
		if all[i] != nil {
			results = append(results, *all[i])
		}
	}
	return results
}

// conclude is nil when every row passed, or could not be run here.
func conclude(s *settings, own bool, results []result) error {
	var bad []string
	for _, r := range results {
		if r.Verdict == failed {
			bad = append(bad, r.ID)
		}
	}
	if len(bad) > 0 {
		return fmt.Errorf("%s failed (logs and histories in %s)", strings.Join(bad, ", "), s.dir)
	}
	if own && !s.keep {
		return os.RemoveAll(s.dir)
	}
	return nil
}

func selected(s *settings) ([]row, error) {
	all := matrix()
	if len(s.only) == 0 {
		if s.onMySQL() {
			return slices.DeleteFunc(all, func(r row) bool { return !slices.Contains(onMySQL, r.id) }), nil
		}
		if s.ci {
			all = slices.DeleteFunc(all, func(r row) bool { return !r.ci })
		}
		return slices.DeleteFunc(all, func(r row) bool { return r.id == proofID }), nil
	}
	var out []row
	for _, id := range s.only {
		i := slices.IndexFunc(all, func(r row) bool { return r.id == id })
		if i < 0 {
			return nil, fmt.Errorf("there is no row %s (go run ./tools/faults list)", id)
		}
		out = append(out, all[i])
	}
	return out, nil
}

// runRow runs one row on a database server of its own.
func runRow(ctx context.Context, s *settings, r row) (out result) {
	began := time.Now()
	say("%s %s", r.id, r.title)
	st := &stage{set: s, row: r, dir: filepath.Join(s.dir, r.id), result: result{ID: r.id, Title: r.title, Figures: map[string]any{}}}
	err := errors.Join(os.RemoveAll(st.dir), os.MkdirAll(st.dir, 0o755)) // of an earlier run
	if err == nil {
		err = r.run(ctx, st)
	}
	err = errors.Join(err, st.close())
	out = st.result
	out.Seconds = time.Since(began).Seconds()
	var cannot *unableError
	switch {
	case err == nil:
		out.Verdict = passed
		if !s.keep {
			_ = os.RemoveAll(st.dir) // what passed needs no evidence
		}
	case errors.As(err, &cannot):
		out.Verdict, out.Reason = unable, cannot.reason
	default:
		out.Verdict, out.Reason, out.Dir = failed, err.Error(), st.dir
	}
	say("%s %s: %s %s", r.id, out.Verdict, out.Figure, out.Reason)
	return out
}

// serverDir is on disk where figures are taken, for a commit costs there what it
// does in production, and in memory in CI, which looks for what is missed and
// doubled: a server that is killed loses as little there.
func (s *settings) serverDir() string { return pick(s, s.dir, testenv.DefaultDir()) }

// newServer starts a database server fit for a long run.
func (s *settings) newServer(extra ...string) (*testenv.Server, error) {
	return testenv.NewServer(testenv.Options{
		Product: s.product,
		Dir:     s.serverDir(),
		Args:    append([]string{"--innodb-buffer-pool-size=512M", "--innodb-log-file-size=128M"}, extra...),
	})
}

func report(s *settings, results []result) error {
	raw, err := json.MarshalIndent(results, "", "  ")
	if err != nil {
		return err
	}
	if s.json == "-" {
		_, err = fmt.Fprintln(os.Stdout, string(raw))
		return err
	}
	printTable(os.Stdout, results)
	if s.md != "" {
		if err := os.WriteFile(s.md, []byte(markdown(results)), 0o600); err != nil {
			return err
		}
	}
	if s.json == "" {
		return nil
	}
	return os.WriteFile(s.json, append(raw, '\n'), 0o600)
}

func say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, time.Now().Format("15:04:05.000")+" "+strings.TrimSpace(format)+"\n", args...)
}
