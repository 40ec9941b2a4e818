package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"

	"github.com/carillon-sched/carillon/admin"
	"github.com/carillon-sched/carillon/internal/testenv/lab"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := command(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil && !errors.Is(err, pflag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// command runs what the arguments name: a measurement when they begin with a
// flag, or are none.
func command(ctx context.Context, args []string, out, talk io.Writer) error {
	if len(args) == 0 || strings.HasPrefix(args[0], "-") {
		return measure(ctx, args, out, talk)
	}
	switch args[0] {
	case "table":
		return table(args[1:], out, talk)
	case "executor":
		return serveExecutor(ctx, args[1:])
	case "sink":
		return serveSink(ctx, args[1:])
	case "peer":
		return servePeer(ctx, args[1:])
	case "seed":
		return seed(ctx, args[1:], talk)
	default:
		return fmt.Errorf("there is no command %q: none to measure, table, or seed", args[0])
	}
}

// measure is the program without a command.
func measure(ctx context.Context, args []string, out, talk io.Writer) (err error) {
	o, f, err := parse(args, talk)
	if err != nil {
		return err
	}
	if o.Executor, err = os.Executable(); err != nil {
		return err
	}
	if o.Dir, err = os.MkdirTemp(o.Dir, "carillon-bench-"); err != nil {
		return err
	}
	o.Say = func(format string, args ...any) {
		fmt.Fprintf(talk, time.Now().Format(time.TimeOnly)+" "+format+"\n", args...)
	}
	if f.report != "" {
		o.Save = func(r *Report) error { return keepReport(f.report, r) }
		o.Say("the report is kept in %s", f.report)
	}
	if err := o.findCarillon(ctx); err != nil {
		return errors.Join(err, os.RemoveAll(o.Dir))
	}
	result, err := Run(ctx, *o)
	if err != nil && ctx.Err() == nil { // not by Ctrl-C
		o.Say("logs and data of what failed are in %s", o.Dir)
	} else if removeErr := os.RemoveAll(o.Dir); removeErr != nil {
		err = errors.Join(err, removeErr)
	}
	return errors.Join(err, f.write(out, result))
}

// findCarillon makes the binary under test when none was named: as releases
// are made, from the folder that this was started in.
func (o *Options) findCarillon(ctx context.Context) (err error) {
	if o.Binary == "" {
		o.Say("building carillon")
		o.Binary, err = lab.Build(ctx, o.Dir, "carillon", "-trimpath", "-tags=nomsgpack", "-ldflags=-s -w")
		return err
	}
	o.Binary, err = filepath.Abs(o.Binary) // it is started in other folders
	return err
}

// form is what becomes of the report.
type form struct {
	report string // file; empty = none
	output string // table, wide or json
}

func parse(args []string, talk io.Writer) (*Options, *form, error) {
	o, to := &Options{}, &form{}
	f := pflag.NewFlagSet("bench", pflag.ContinueOnError)
	f.SetOutput(talk)
	f.StringSliceVar(&o.Scenarios, "scenario", nil, "scenarios to measure, comma-separated (default: all)")
	f.BoolVar(&o.Quick, "quick", false, "a selection, for about five minutes")
	f.DurationVar(&o.Budget, "budget", 0, "how long one part of a scenario may take before the next begins (default three times the usual, at least 2m)")
	// A password is no flag where others can see the command line.
	f.StringVar(&o.MySQL, "mysql", os.Getenv("CARILLON_MYSQL"), "data source name of a server where databases may be made: user:password@tcp(host:port)/ (CARILLON_MYSQL)")
	f.Lookup("mysql").DefValue = "" // help does not print it
	f.StringSliceVar(&o.Databases, "database", nil, "mysql, sqlite (default: all that there are)")
	f.DurationVar(&o.Window, "window", 0, "how long rates are measured (default 20s, steady 1m, quick 8s)")
	f.IntSliceVar(&o.Jobs, "jobs", nil, "enabled jobs of scale and idle (default 10000,100000,1000000; idle 100000,1000000)")
	f.IntSliceVar(&o.Admins, "admins", nil, "admin nodes of scale (default 1,2,4)")
	f.IntVar(&o.Rows, "rows", 0, "finished runs in the table of scale (default 10,000,000; quick 200,000)")
	f.StringSliceVar(&o.Shapes, "shape", nil, "shapes that the scenario shapes plays, by name (default: all)")
	f.Float64Var(&o.Size, "size", 1, "factor for the numbers of jobs and timers of shapes")
	f.StringVar(&o.Profiles, "profiles", "", "folder for pprof profiles of all processes while rates are measured")
	f.StringVar(&o.Dir, "dir", "", "where the folder for data is made: the disk that is measured (default: the system's temporary folder)")
	f.StringVar(&o.Binary, "carillon", "", "the carillon that is measured, of the same commit as this program (default: built from the folder this was started in)")
	f.StringVar(&to.report, "report", "", "file for the report as JSON, written after each part, beside what is printed in the end")
	f.StringVarP(&to.output, "output", "o", formTable, "table, wide or json")
	asJSON := f.Bool("json", false, "the same as -o json")
	f.Usage = func() { fmt.Fprint(talk, usage()+f.FlagUsages()) }
	if err := f.Parse(args); err != nil {
		return nil, nil, err
	}
	if *asJSON {
		to.output = formJSON
	}
	if f.NArg() > 0 {
		return nil, nil, fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	if known := []string{formTable, formWide, formJSON}; !slices.Contains(known, to.output) {
		return nil, nil, fmt.Errorf("output format %q is none of %s", to.output, strings.Join(known, ", "))
	}
	return o, to, nil
}

func usage() string {
	var b strings.Builder
	b.WriteString(`Measures rate, lateness and price of carillon on this machine.

  go run ./admin/tools/bench [flags]
  go run ./admin/tools/bench table REPORT... [--into DOCUMENT]
  go run ./admin/tools/bench seed --database sqlite:DATA/carillon.db

Real admin nodes, of the binary that --carillon names, and executors are started
and stopped again, on empty databases, which are made and dropped again: on
SQLite, and on the MySQL or MariaDB server that --mysql names (never a production
one). Beside each figure stands its floor: the same SQL statements and nothing
else, in the same run. Ctrl-C stops everything.

Scenarios:
`)
	names, says := Scenarios()
	for i, name := range names {
		fmt.Fprintf(&b, "  %-18s%s\n", name, says[i])
	}
	b.WriteString("\nFlags:\n")
	return b.String()
}

// serveExecutor is what the bench starts as its executors.
func serveExecutor(ctx context.Context, args []string) error {
	o := ExecutorOptions{Token: os.Getenv("CARILLON_EXECUTOR_TOKEN")}
	f := pflag.NewFlagSet("bench executor", pflag.ContinueOnError)
	f.StringVar(&o.Name, "name", "", "executor")
	f.StringVar(&o.Addresses, "addresses", "", "admin nodes")
	f.StringVar(&o.Journal, "journal", "", "journal folder")
	f.StringVar(&o.History, "history", "", "folder of the witness file")
	f.IntVar(&o.Slots, "slots", 0, "handlers at once (default: the SDK's)")
	f.IntVar(&o.Crowd, "crowd", 0, "instances that do nothing, instead of one that works")
	profiles := f.String("profiles", "", "address for pprof")
	if err := f.Parse(args); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	if *profiles != "" {
		group.Go(func() error { return admin.ServeProfiles(ctx, *profiles) })
	}
	group.Go(func() error { return RunExecutor(ctx, o) })
	return group.Wait()
}
