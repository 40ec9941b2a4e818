package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/carillon-sched/carillon/admin"
	"github.com/carillon-sched/carillon/admin/bench"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/output"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/settings"
)

func newBenchCommand() *cobra.Command {
	var o bench.Options
	var format, report string
	var asJSON bool
	names, says := bench.Scenarios()
	var list strings.Builder
	for i, name := range names {
		fmt.Fprintf(&list, "  %-12s%s\n", name, says[i])
	}
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure rate, lateness and price of this program on this machine",
		Long: `Measures with real admin nodes and executors, which it starts from this program
and stops again, on empty databases, which it makes and drops again: on SQLite,
and on the MySQL or MariaDB server that --mysql names (never a production one).
Beside each figure stands its floor: the same SQL statements and nothing else,
in the same run. Ctrl-C stops everything.

Scenarios:
` + list.String(),
		Example: `  make bench ARGS=--quick
  carillon bench --quick --database sqlite
  carillon bench --scenario throughput --mysql 'root:…@tcp(127.0.0.1:3306)/' --profiles /tmp/profiles`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			k, err := settings.Load(cmd.Flags(), "")
			if err != nil {
				return err
			}
			// A password is no flag where others can see the command line.
			o.MySQL, o.Version = k.String("mysql"), version
			form, err := output.ParseFormat(format)
			if err != nil {
				return err
			}
			if asJSON {
				form = output.JSON
			}
			if o.Binary, err = os.Executable(); err != nil {
				return err
			}
			if o.Dir, err = os.MkdirTemp(o.Dir, "carillon-bench-"); err != nil {
				return err
			}
			o.Say = func(format string, args ...any) {
				fmt.Fprintf(cmd.ErrOrStderr(), time.Now().Format(time.TimeOnly)+" "+format+"\n", args...)
			}
			if report != "" {
				o.Save = func(r *bench.Report) error { return keepReport(report, r) }
				o.Say("the report is kept in %s", report)
			}
			result, err := bench.Run(cmd.Context(), o)
			if err != nil && cmd.Context().Err() == nil { // not by Ctrl-C
				o.Say("logs and data of what failed are in %s", o.Dir)
			} else if removeErr := os.RemoveAll(o.Dir); removeErr != nil {
				err = errors.Join(err, removeErr)
			}
			return errors.Join(err, writeBench(cmd.OutOrStdout(), form, result))
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&o.Scenarios, "scenario", nil, "scenarios to measure, comma-separated (default: all)")
	f.BoolVar(&o.Quick, "quick", false, "a selection, for about five minutes")
	f.DurationVar(&o.Budget, "budget", 0, "how long one part of a scenario may take before the next begins (default three times the usual, at least 2m)")
	f.String("mysql", "", "data source name of a server where databases may be made: user:password@tcp(host:port)/ (CARILLON_MYSQL)")
	f.StringSliceVar(&o.Databases, "database", nil, "mysql, sqlite (default: all that there are)")
	f.DurationVar(&o.Window, "window", 0, "how long rates are measured (default 20s, steady 1m, quick 8s)")
	f.IntSliceVar(&o.Jobs, "jobs", nil, "enabled jobs of scale and idle (default 10000,100000,1000000; idle 100000,1000000)")
	f.IntSliceVar(&o.Admins, "admins", nil, "admin nodes of scale (default 1,2,4)")
	f.IntVar(&o.Rows, "rows", 0, "finished runs in the table of scale (default 10,000,000; quick 200,000)")
	f.StringVar(&o.Profiles, "profiles", "", "folder for pprof profiles of all processes while rates are measured")
	f.StringVar(&o.Dir, "dir", "", "where the folder for data is made: the disk that is measured (default: the system's temporary folder)")
	f.StringVar(&report, "report", "", "file for the report as JSON, written after each part, beside what is printed in the end")
	f.StringVarP(&format, "output", "o", string(output.Table), "table, wide or json")
	f.BoolVar(&asJSON, "json", false, "the same as -o json")
	cmd.AddCommand(newBenchExecutorCommand(), newBenchTableCommand())
	return cmd
}

// newBenchExecutorCommand is what the bench starts as its executors.
func newBenchExecutorCommand() *cobra.Command {
	var o bench.ExecutorOptions
	var profiles string
	cmd := &cobra.Command{
		Use: "executor", Hidden: true, Args: cobra.NoArgs,
		Short: "An executor whose handlers return at once (used by bench itself)",
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Token = os.Getenv(settings.Prefix + "EXECUTOR_TOKEN")
			group, ctx := errgroup.WithContext(cmd.Context())
			if profiles != "" {
				group.Go(func() error { return admin.ServeProfiles(ctx, profiles) })
			}
			group.Go(func() error { return bench.RunExecutor(ctx, o) })
			return group.Wait()
		},
	}
	cmd.Flags().StringVar(&o.Name, "name", "", "executor")
	cmd.Flags().StringVar(&o.Addresses, "addresses", "", "admin nodes")
	cmd.Flags().StringVar(&o.Journal, "journal", "", "journal folder")
	cmd.Flags().StringVar(&o.History, "history", "", "folder of the witness file")
	cmd.Flags().IntVar(&o.Slots, "slots", 0, "handlers at once (default: the SDK's)")
	cmd.Flags().IntVar(&o.Crowd, "crowd", 0, "instances that do nothing, instead of one that works")
	cmd.Flags().StringVar(&profiles, "profiles", "", "address for pprof")
	return cmd
}

// keepReport writes the report as far as it is. The file is whole at any time:
// an interruption leaves the last one.
func keepReport(file string, r *bench.Report) error {
	raw, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
		return err
	}
	next := file + ".next"
	if err := os.WriteFile(next, append(raw, '\n'), 0o644); err != nil { //nolint:gosec // a report is for everybody
		return err
	}
	return os.Rename(next, file)
}

// writeBench prints the report.
func writeBench(w io.Writer, format output.Format, r *bench.Report) error {
	if format == output.JSON {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(r)
	}
	return printBench(&output.Printer{Out: w, Format: format}, r)
}
