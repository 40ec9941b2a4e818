package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/carillon-sched/carillon/admin/verify"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/command"
)

func newVerifyCommand() *cobra.Command {
	var format, html string
	cmd := &cobra.Command{
		Use:   "verify DIR...",
		Short: "Judge a history: was every fire time run once, on time and by the rules?",
		Long: `Judge the history in folders or files of JSON lines (docs/verify.md): was every
fire time run once, on time and by the rules? What should have happened is
computed by an implementation of schedules of its own.

Exit code 0: clean. 1: a violation. 2: not enough evidence, or a mistake.`,
		Example: `  carillon verify out/f01 --html f01.html
  carillon verify out/f01 -o json`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			report, err := judgeFiles(args)
			if err == nil {
				err = writeReport(cmd.OutOrStdout(), report, format, html)
			}
			if err != nil {
				return command.Fail(notEvidence, err)
			}
			if code := report.ExitCode(); code != 0 {
				return command.Fail(code, nil)
			}
			return nil
		},
	}
	cmd.Flags().StringVarP(&format, "output", "o", "text", "format: text or json")
	cmd.Flags().StringVar(&html, "html", "", "write a timeline to this file")
	return cmd
}

// notEvidence is the exit code where nothing was judged.
const notEvidence = 2

func judgeFiles(paths []string) (*verify.Report, error) {
	history, err := verify.ReadPaths(paths...)
	if err != nil {
		return nil, err
	}
	return verify.Check(history)
}

// writeReport writes the report in its format, and the timeline.
func writeReport(out io.Writer, report *verify.Report, format, html string) error {
	if html != "" {
		if err := writeTimeline(html, report); err != nil {
			return err
		}
	}
	switch format {
	case "text":
		return report.WriteText(out)
	case "json":
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(report)
	}
	return fmt.Errorf("output %q is neither text nor json", format)
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
