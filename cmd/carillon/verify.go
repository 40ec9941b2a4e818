package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/carillon-sched/carillon/admin"
	"github.com/carillon-sched/carillon/admin/verify"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/cli"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/settings"
)

func newVerifyCommand() *cobra.Command {
	var format, html string
	var since time.Duration
	var flags *pflag.FlagSet
	cmd := &cobra.Command{
		Use:   "verify DIR... | --since DURATION",
		Short: "Judge what ran: was every fire time run once, on time and by the rules?",
		Long: `Judge the history in folders or files of JSON lines, or with --since the rows of
a database (docs/guide/verify.md): was every fire time run once, on time and by the
rules? What should have happened is computed by an implementation of schedules
of its own. Nothing is written but --html.

Exit code 0: clean. 1: a violation. 2: not enough evidence, or a mistake.`,
		Example: `  carillon verify --since 24h --data /var/lib/carillon
  carillon verify --since 24h --database 'mysql://carillon:…@db:3306/carillon'
  carillon verify out/f01 --html f01.html
  carillon verify out/f01 -o json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			report, err := judge(cmd.Context(), flags, args, since)
			if err == nil {
				err = writeReport(cmd.OutOrStdout(), report, format, html)
			}
			if err != nil {
				return cli.Fail(notEvidence, err)
			}
			if code := report.ExitCode(); code != 0 {
				return cli.Fail(code, nil)
			}
			return nil
		},
	}
	flags = someServerFlags(cmd, "config", "data", "database", "database-password-file", "run-retention")
	settings.SpanVar(cmd.Flags(), &since, "since", 0, "judge the database's fire times since then, for example 24h")
	cli.FormatFlag(cmd, &format)
	cmd.Flags().StringVar(&html, "html", "", "write a timeline to this file")
	return cmd
}

// notEvidence is the exit code where nothing was judged.
const notEvidence = 2

// judge goes to the files or to the database.
func judge(ctx context.Context, flags *pflag.FlagSet, paths []string, since time.Duration) (*verify.Report, error) {
	switch {
	case since < 0, (since == 0) == (len(paths) == 0):
		return nil, errors.New("give folders with a history, or --since for the database")
	case since == 0:
		return verify.CheckPaths("", paths...)
	}
	k, err := serverSettings(flags)
	if err != nil {
		return nil, err
	}
	password, err := databasePassword(k)
	if err != nil {
		return nil, err
	}
	return admin.Account(ctx, admin.Config{
		DataDir: k.String("data"), Database: k.String("database"), DatabasePassword: password, RunRetention: k.Duration("run-retention"),
	}, since)
}

// writeReport writes the report in its format, and the timeline.
func writeReport(out io.Writer, report *verify.Report, format, html string) error {
	if html != "" {
		if err := writeTimeline(html, report); err != nil {
			return err
		}
	}
	if format == "json" {
		return writeJSON(out, report)
	}
	return report.WriteText(out)
}

func writeTimeline(path string, report *verify.Report) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("timeline: %w", err)
	}
	if err := report.WriteHTML(f); err != nil {
		_ = f.Close() // the first error is the one to tell
		return fmt.Errorf("timeline: %w", err)
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("timeline: %w", err)
	}
	return nil
}
