package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/knadh/koanf/v2"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/carillon-sched/carillon/admin"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/cli"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/output"
)

func newDoctorCommand() *cobra.Command {
	var format string
	var strict bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Look whether a node works here with these settings, and say what to do",
		Long: `Looks at settings, files, ports, certificates, the database, clocks, rules of time
zones, secrets, mail, webhook, brokers and Redis with the settings of a server:
flags, CARILLON_ variables and the file of --config. It starts no node, writes
nothing, and ends within 5 s. Run it on the node's machine, as the server's user.
What each check means: docs/guide/doctor.md.

Exit code 0: nothing failed. 1: a check failed, or with --strict warned. 2: the
command line is wrong.`,
		Example: `  sudo -u carillon carillon doctor --config /etc/carillon/server.yaml
  carillon doctor --database 'mysql://carillon:…@db:3306/carillon' -o json`,
		Args: cobra.NoArgs,
	}
	flags := newServerCommand().Flags() // all of them, so that the server's own command line can be given
	cmd.Flags().AddFlagSet(flags)
	cli.FormatFlag(cmd, &format)
	cmd.Flags().BoolVar(&strict, "strict", false, "a warning is a failure, too")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		report := examine(cmd.Context(), flags)
		if err := diagnosisFormats[format](cmd.OutOrStdout(), report); err != nil {
			return err
		}
		if report.Counts[admin.DiagnosisFailed] > 0 || strict && report.Counts[admin.DiagnosisWarning] > 0 {
			return cli.Fail(1, nil)
		}
		return nil
	}
	return cmd
}

// examine asks also who has this machine's ports.
func examine(ctx context.Context, flags *pflag.FlagSet) *admin.Diagnosis {
	var o admin.Diagnosing
	if o.Config, o.ConfigErr = serverConfig(io.Discard, flags); o.ConfigErr == nil {
		var k *koanf.Koanf
		var node *readiness
		if k, o.ConfigErr = serverSettings(flags); o.ConfigErr == nil {
			if node, o.ConfigErr = newReadiness(k); o.ConfigErr == nil {
				o.Ask = node.ask
			}
		}
	}
	return admin.Diagnose(ctx, o)
}

var diagnosisFormats = map[string]func(io.Writer, *admin.Diagnosis) error{"text": writeDiagnosisText, "json": func(w io.Writer, report *admin.Diagnosis) error { return writeJSON(w, report) }}

// writeDiagnosisText puts what is to be done under what was found.
func writeDiagnosisText(w io.Writer, report *admin.Diagnosis) error {
	width := 0
	for _, r := range report.Results {
		width = max(width, len(r.Check))
	}
	var b strings.Builder
	for _, r := range report.Results {
		fmt.Fprintf(&b, "%-7s  %-*s  %s\n", r.Status, width, r.Check, output.Clean(r.Found))
		if r.Do != "" {
			fmt.Fprintf(&b, "%*s  → %s\n", 7+2+width, "", output.Clean(r.Do))
		}
	}
	c := report.Counts
	fmt.Fprintf(&b, "\n%d ok, %d warn, %d fail, %d skipped, in %s\n", c[admin.DiagnosisOK], c[admin.DiagnosisWarning],
		c[admin.DiagnosisFailed], c[admin.DiagnosisSkipped], report.Duration.Round(time.Millisecond))
	_, err := io.WriteString(w, b.String())
	return err
}
