package main

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/go-sql-driver/mysql"
)

// figures is what one run showed.
type figures struct {
	Jobs     int      `json:"jobs"`
	Seconds  int      `json:"seconds"`
	Expected int      `json:"expected"`
	Rows     int      `json:"rows"`
	Started  int      `json:"started"`
	Doubled  int      `json:"doubled"`
	Missed   int      `json:"missed"`
	Foreign  int      `json:"notExpected"`
	Early    int      `json:"early"`
	States   []string `json:"rowsByState"`
	Quiet    lateness `json:"latenessOutsideFaultMs"`
	Fault    lateness `json:"latenessInsideFaultMs"`
	DownMs   int64    `json:"adminDownMs"`
	Machine  string   `json:"machine"`
}

type lateness struct {
	Count int     `json:"count"`
	P50   float64 `json:"p50"`
	P99   float64 `json:"p99"`
	Max   float64 `json:"max"`
}

type key struct{ job, fire int64 }

// count compares expectation, rows and witness.
func (f *fleet) count(ctx context.Context, from, to time.Time, fault window) (*figures, error) {
	seconds := int(to.Sub(from) / time.Second)
	out := &figures{
		Jobs: f.plan.jobs, Seconds: seconds, Expected: f.plan.jobs * seconds,
		DownMs:  fault.to.Sub(fault.from).Milliseconds(),
		Machine: fmt.Sprintf("%s/%s, %d cores, database, admins and executors together", runtime.GOOS, runtime.GOARCH, runtime.NumCPU()),
	}
	jobs, err := f.readRows(ctx, from, to, out)
	if err != nil {
		return nil, err
	}
	starts, err := f.readWitness()
	if err != nil {
		return nil, err
	}
	var quiet, inside []float64
	for k, times := range starts {
		if !jobs[k.job] || k.fire < from.UnixMilli() || k.fire >= to.UnixMilli() || k.fire%1000 != 0 {
			out.Foreign++
			continue
		}
		out.Started++
		out.Doubled += len(times) - 1
		late := float64(slices.Min(times)-k.fire*1000) / 1000
		if late < 0 {
			out.Early++
		}
		// What fired shortly after the restart may still wait for the fault's backlog.
		if at := time.UnixMilli(k.fire); at.After(fault.from.Add(-f.plan.bound)) && at.Before(fault.to.Add(f.plan.bound)) {
			inside = append(inside, late)
		} else {
			quiet = append(quiet, late)
		}
	}
	out.Missed = out.Expected - out.Started
	out.Quiet, out.Fault = summary(quiet), summary(inside)
	return out, nil
}

func (f *fleet) readWitness() (map[key][]int64, error) {
	starts := map[key][]int64{}
	for i := range f.executors {
		file, err := os.Open(f.witnessFile(i))
		if err != nil {
			return nil, err
		}
		defer file.Close()
		lines := bufio.NewScanner(file)
		for lines.Scan() {
			var s sighting
			if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
				return nil, fmt.Errorf("witness line %q: %w", lines.Text(), err)
			}
			k := key{s.Job, s.Fire}
			starts[k] = append(starts[k], s.Start)
		}
		if err := lines.Err(); err != nil {
			return nil, err
		}
	}
	return starts, nil
}

// readRows counts our own rows and returns the jobs' ids.
func (f *fleet) readRows(ctx context.Context, from, to time.Time, out *figures) (map[int64]bool, error) {
	db, err := sql.Open("mysql", f.dsn())
	if err != nil {
		return nil, err
	}
	defer db.Close()
	rows, err := db.QueryContext(ctx, `SELECT job_id, state, COUNT(*) FROM executions
		WHERE fire_at >= ? AND fire_at < ? GROUP BY job_id, state`, from.UnixMilli(), to.UnixMilli())
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	jobs := map[int64]bool{}
	states := map[int]int{}
	for rows.Next() {
		var job int64
		var state, n int
		if err := rows.Scan(&job, &state, &n); err != nil {
			return nil, err
		}
		jobs[job] = true
		out.Rows += n
		states[state] += n
	}
	for state, n := range states {
		out.States = append(out.States, fmt.Sprintf("%s %d", stateName(state), n))
	}
	slices.Sort(out.States)
	return jobs, rows.Err()
}

// stateName mirrors the stored numbers (admin/internal/domain/execution.go).
func stateName(n int) string {
	names := map[int]string{1: "due", 2: "offered", 3: "running", 4: "cancelling", 5: "retry_wait", 10: "succeeded",
		11: "failed", 12: "timed_out", 13: "cancelled", 14: "lost", 15: "missed", 16: "discarded"}
	if s, ok := names[n]; ok {
		return s
	}
	return fmt.Sprint(n)
}

func (f *fleet) createDatabase(ctx context.Context) (string, error) {
	db, err := sql.Open("mysql", f.db.DSN())
	if err != nil {
		return "", err
	}
	defer db.Close()
	_, err = db.ExecContext(ctx, "CREATE DATABASE carillon CHARACTER SET utf8mb4")
	return f.dsn(), err
}

func (f *fleet) dsn() string {
	config, err := mysql.ParseDSN(f.db.DSN())
	if err != nil {
		panic(err) // made by ourselves
	}
	config.DBName = "carillon"
	return config.FormatDSN()
}

func summary(ms []float64) lateness {
	if len(ms) == 0 {
		return lateness{}
	}
	slices.Sort(ms)
	at := func(q float64) float64 { return ms[min(len(ms)-1, int(q*float64(len(ms))))] }
	return lateness{Count: len(ms), P50: at(0.5), P99: at(0.99), Max: ms[len(ms)-1]}
}

func (g *figures) print(w io.Writer, asJSON bool) {
	if asJSON {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		_ = e.Encode(g)
		return
	}
	fmt.Fprintf(w, "\n%d jobs every second for %d s, one of two admins killed (down %.1f s)\n%s\n\n", g.Jobs, g.Seconds, float64(g.DownMs)/1000, g.Machine)
	fmt.Fprintf(w, "fire times expected      %8d\nrows written             %8d   %v\nstarted (by witness)     %8d\n", g.Expected, g.Rows, g.States, g.Started)
	fmt.Fprintf(w, "missed                   %8d\ndoubled                  %8d\nearly                    %8d\nnot expected             %8d\n\n", g.Missed, g.Doubled, g.Early, g.Foreign)
	fmt.Fprintf(w, "lateness at start, ms        p50       p99       max\n")
	for _, l := range []struct {
		name string
		lateness
	}{{"outside the fault", g.Quiet}, {"around the fault", g.Fault}} {
		fmt.Fprintf(w, "  %-20s %9.1f %9.1f %9.1f   (%d)\n", l.name, l.P50, l.P99, l.Max, l.Count)
	}
}

// verdict is nil when every promise held.
func (g *figures) verdict(bound time.Duration) error {
	var bad []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			bad = append(bad, fmt.Errorf(format, args...))
		}
	}
	check(g.Expected > 0, "nothing was expected: not enough evidence")
	check(g.Rows == g.Expected, "%d rows for %d fire times", g.Rows, g.Expected)
	check(g.Missed == 0, "%d missed", g.Missed)
	check(g.Doubled == 0, "%d doubled", g.Doubled)
	check(g.Early == 0, "%d early", g.Early)
	check(g.Foreign == 0, "%d starts that nobody expected", g.Foreign)
	worst := max(g.Quiet.Max, g.Fault.Max)
	check(worst <= float64(bound.Milliseconds()), "the latest start was %.0f ms late, bound %d ms", worst, bound.Milliseconds())
	return errors.Join(bad...)
}
