package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/internal/testenv/lab"
)

// Options say what is measured, and with what.
type Options struct {
	// Binary is the carillon under test; admin nodes are started from it.
	Binary string
	// Executor is the program whose commands "executor" and "sink" are started:
	// this one.
	Executor string
	// Dir takes data and logs; it has to exist.
	Dir string
	// MySQL is the data source name of a server on which databases may be
	// made and dropped; empty: SQLite only.
	MySQL string
	// Databases to measure, in order; empty: all that there are.
	Databases []string
	// Scenarios to run, in order; empty: all.
	Scenarios []string
	// Quick measures a selection for a short while: about five minutes.
	Quick bool
	// Window is how long rates are measured, after the warm-up; 0 = 20 s
	// (steady: 60 s), quick 8 s.
	Window time.Duration
	// Jobs are the numbers of enabled jobs of scale and idle; empty: 10 k,
	// 100 k and 1 M for scale, 100 k and 1 M for idle (quick: 10 k).
	Jobs []int
	// Admins are the numbers of nodes of scale; empty: 1, 2, 4. SQLite takes
	// the first one.
	Admins []int
	// Rows is the number of finished runs of scale; 0 = 10 M, quick 200 k.
	Rows int
	// Shapes are those that shapes plays, by name; empty: all.
	Shapes []string
	// Size multiplies the numbers of jobs and timers of shapes; 0 = 1.
	Size float64
	// Profiles is a folder for pprof profiles of the processes, taken while
	// rates are measured; empty: none.
	Profiles string
	// Budget is how long each part of a scenario may take before it is given
	// up and the next one begins; 0 = three times what is usual for it, at
	// least two minutes.
	Budget time.Duration
	// Save gets the report as far as it is, after each part; an error ends the
	// run. It may be nil.
	Save func(*Report) error
	// Say tells what goes on.
	Say func(format string, args ...any)
}

// bench is one run.
type bench struct {
	o      Options
	report *Report
	floors map[floorKey]*floor // measured in this run
	// carried are the rates that throughput measured, where scale begins.
	carried map[floorKey]float64
	// steadyFloors are those of few runs at a time, by database.
	steadyFloors map[string]*Spread
	stalls       *lab.StallWatch
}

type floorKey struct {
	kind, handler string
}

// scenario is one name of --scenario.
type scenario struct {
	name  string
	says  string
	long  bool // not part of a quick run, unless it is named
	parts func(*bench) []part
	named bool // part of no run, unless it is named
}

func scenarios() []scenario {
	return []scenario{
		{"throughput", "sustained fires per second, end to end", false, (*bench).throughput, false},
		{"burst", "1,000, 5,000 and 20,000 jobs on the same second", false, (*bench).burst, false},
		{"steady", "1,000 fires per second", false, (*bench).steady, false},
		{"edges", "many cron jobs on the edge of each second, with default and with many slots", true, (*bench).edges, false},
		{"overload", "three times what can be done, then a tenth of it", true, (*bench).overload, false},
		{"idle", "many enabled jobs that do not fire", false, (*bench).idle, false},
		{"dispatch", "commands and results through gateway and SDK, without a database", false, (*bench).dispatch, false},
		{"cancel", "handlers that are killed, meet their timeout, or are covered, until their row says so", true, (*bench).cancel, false},
		{"tail", "from a line that a handler writes to somebody who follows the log", true, (*bench).tail, false},
		{"alert-latency", "from a run that fails or is missed to the receiver of the alert, at 1,000 fires per second", true, (*bench).alertLatency, false},
		{"sessions", "instances that are connected, idle, silent, cut off, and come back", true, (*bench).sessions, false},
		{"timers-create", "timers that are set and cancelled through the API, in batches and one by one", true, (*bench).timersCreate, false},
		{"timers-fire", "timers that are due on the same second, and 5,000 a second", true, (*bench).timersFire, false},
		{"timers-failover", "timers while one of two nodes is killed", true, (*bench).timersFailover, false},
		{"timers-callbacks", "timers that the admin nodes call 100 receivers for, 5,000 a second", true, (*bench).timersCallbacks, false},
		{"timers-pending", "timers that are set, cancelled and fired beside many that are pending", true, (*bench).timersPending, false},
		{"timers-peers", "5,000 timers a second beside asynq on Redis and RabbitMQ's delayed delivery", true, (*bench).timersPeers, false},
		{"scale", "steady and throughput with more nodes, more jobs, more finished runs", true, (*bench).scale, false},
		{"shapes", "shapes of waiting work, of which an invariant is judged and no time", true, (*bench).shapes, true},
	}
}

// Scenarios returns the names that Options.Scenarios may hold, with what they
// measure.
func Scenarios() (names, says []string) {
	for _, s := range scenarios() {
		names, says = append(names, s.name), append(says, s.says)
	}
	return names, says
}

// Run measures. The report is there even when an error is: with what was
// measured before.
func Run(ctx context.Context, o Options) (_ *Report, err error) {
	b := &bench{o: o, floors: map[floorKey]*floor{}, carried: map[floorKey]float64{}, steadyFloors: map[string]*Spread{}}
	b.report = &Report{StartedAt: time.Now().UTC().Truncate(time.Second), Quick: o.Quick}
	defer func() { b.report.Took = seconds(time.Since(b.report.StartedAt)) }()
	chosen, err := b.prepare(ctx)
	if err != nil {
		return b.report, err
	}
	if b.stalls, err = lab.WatchStalls(ctx, o.Dir); err != nil {
		return b.report, err
	}
	defer func() { err = errors.Join(err, b.stalls.Close()) }()
	if err := b.runAll(ctx, b.plan(chosen)); err != nil {
		return b.report, err
	}
	return b.report, b.report.Err()
}

func (b *bench) prepare(ctx context.Context) (chosen []scenario, err error) {
	if b.o.Say == nil {
		b.o.Say = func(string, ...any) {}
	}
	if b.report.Machine, err = thisMachine(ctx, b.o.Binary); err != nil {
		return nil, err
	}
	if own := ownRevision(); own != "" && own != b.report.Machine.Revision {
		b.o.Say("%s is of commit %s, and this program of %s: its floors are those of another store", b.o.Binary, b.report.Machine.Revision, own)
	}
	if len(b.o.Databases) == 0 {
		if b.o.MySQL != "" {
			b.o.Databases = append(b.o.Databases, MySQL)
		}
		b.o.Databases = append(b.o.Databases, SQLite)
	}
	for _, kind := range b.o.Databases {
		switch {
		case kind == MySQL && b.o.MySQL == "":
			return nil, errors.New("no MySQL server was named")
		case kind == MySQL:
			b.report.Machine.MySQL, err = describeMySQL(ctx, b.o.MySQL)
		case kind == SQLite:
			b.report.Machine.SQLite, err = describeSQLite(ctx)
		default:
			return nil, fmt.Errorf("database %q is neither %s nor %s", kind, MySQL, SQLite)
		}
		if err != nil {
			return nil, err
		}
	}
	if b.o.Profiles != "" {
		if err := os.MkdirAll(b.o.Profiles, 0o750); err != nil {
			return nil, err
		}
	}
	return b.o.chosenScenarios()
}

// chosenScenarios are the named scenarios, or those of a whole or a quick run.
func (o *Options) chosenScenarios() (chosen []scenario, err error) {
	all := scenarios()
	if len(o.Scenarios) == 0 {
		return slices.DeleteFunc(all, func(s scenario) bool { return s.named || s.long && o.Quick }), nil
	}
	names, _ := Scenarios()
	for _, name := range o.Scenarios {
		i := slices.Index(names, name)
		if i < 0 {
			return nil, fmt.Errorf("there is no scenario %q: %s", name, strings.Join(names, ", "))
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}

// databases are those to measure: the first one only, or all.
func (o *Options) databases(first bool) []string {
	if first {
		return o.Databases[:1]
	}
	return o.Databases
}

// window is how long a rate is measured.
func (b *bench) window(usual time.Duration) time.Duration {
	switch {
	case b.o.Window > 0:
		return b.o.Window
	case b.o.Quick:
		return 8 * time.Second
	default:
		return usual
	}
}

// quickOr is the usual time of a part.
func (b *bench) quickOr(quick, usual time.Duration) time.Duration {
	if b.o.Quick {
		return quick
	}
	return usual
}

// floorOf measures the floor of a database and a kind of handler, once a run.
func (b *bench) floorOf(ctx context.Context, kind, handler string) (*floor, error) {
	key := floorKey{kind, handler}
	if b.floors[key] == nil {
		n := 40_000
		if b.o.Quick {
			n = 20_000
		}
		f, err := b.measureFloor(ctx, floorPlan{kind: kind, handler: handler, shape: fullShape(), lives: n})
		if err != nil {
			return nil, err
		}
		b.floors[key] = f
		b.o.Say("  floor of %s, %s: %.0f whole lives a second", kind, handler, f.perSecond())
	}
	return b.floors[key], nil
}

// line is a result in one line, while the run goes on.
func (r *Result) line() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %s", r.Scenario, r.Variant)
	if r.Database != "" {
		b.WriteString(", " + r.Database)
	}
	if t := r.Throughput; t != nil {
		fmt.Fprintf(&b, ": %.0f fires/s of %.0f offered, floor %.0f (%.0f %%)", t.PerSecond, t.Offered, t.Floor, t.FloorPercent)
	}
	if s := r.Shape; s != nil {
		b.WriteString(": " + s.line())
	}
	if f := r.Fires; f != nil {
		fmt.Fprintf(&b, "; %d due, %d missed, %d doubled", f.Expected, f.Missed, f.Doubled)
	}
	if l := r.Lateness; l != nil {
		fmt.Fprintf(&b, "; late p50 %.1f p99 %.1f max %.1f ms", l.P50, l.P99, l.Max)
	}
	if l := r.FloorLateness; l != nil {
		fmt.Fprintf(&b, " (floor %.1f, %.1f, %.1f)", l.P50, l.P99, l.Max)
	}
	if t := r.RoundTrip; t != nil {
		fmt.Fprintf(&b, "; there and back p50 %.0f p99 %.0f max %.0f µs", t.P50, t.P99, t.Max)
		if f := r.FloorRoundTrip; f != nil {
			fmt.Fprintf(&b, " (floor %.0f, %.0f, %.0f)", f.P50, f.P99, f.Max)
		}
	}
	if e := r.Elapsed; e != nil {
		fmt.Fprintf(&b, "; took p50 %.0f p99 %.0f max %.0f ms", e.P50, e.P99, e.Max)
	}
	if o := r.Overload; o != nil {
		fmt.Fprintf(&b, "; missed with a reason %d, still waiting %d; on time again after %.0f s; %d jobs paused meanwhile, %.1f a second",
			o.Told, o.Waiting, float64(o.OnTimeAgain), o.Paused, o.PausesPerSecond)
	}
	for _, p := range r.Processes {
		fmt.Fprintf(&b, "; %s %.0f %% %d MiB", p.Name, p.Core, p.RSS>>20)
		if p.PerFire > 0 {
			fmt.Fprintf(&b, " %.0f µs/fire", p.PerFire)
		}
	}
	if s := r.Stalls; s != nil && max(s.Disk, s.Processor) > 0 {
		fmt.Fprintf(&b, "; the machine stood still for up to %.0f ms (disk), %.0f ms (processors)", s.Disk, s.Processor)
	}
	if r.Failed != "" {
		b.WriteString("; FAILED: " + r.Failed)
	}
	return b.String()
}
