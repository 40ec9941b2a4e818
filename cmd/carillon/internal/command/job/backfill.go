package job

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/cli"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/output"
	"github.com/carillon-sched/carillon/internal/apiclient"
	"github.com/carillon-sched/carillon/internal/spelling"
)

// backfillView shows backfills.
func backfillView() output.View[apiclient.Backfill] {
	return output.View[apiclient.Backfill]{
		Name: func(b apiclient.Backfill) string { return b.ID },
		Columns: []output.Column[apiclient.Backfill]{
			{Title: "ID", Value: func(b apiclient.Backfill) string { return b.ID }},
			{Title: "STATE", Value: func(b apiclient.Backfill) string { return b.State }},
			{Title: "FROM", Value: func(b apiclient.Backfill) string { return output.Stamp(b.From) }, Drop: 2},
			{Title: "TO", Value: func(b apiclient.Backfill) string { return output.Stamp(b.To) }, Drop: 2},
			{Title: "FIRES", Value: func(b apiclient.Backfill) string { return cli.Number(b.Planned) }, Right: true},
			{Title: "CREATED", Value: func(b apiclient.Backfill) string { return cli.Number(b.Created) }, Right: true},
			{Title: "SKIPPED", Value: func(b apiclient.Backfill) string { return cli.Number(b.Skipped) }, Right: true, Drop: 1},
			{Title: "SUCCEEDED", Value: func(b apiclient.Backfill) string { return cli.Number(b.Succeeded) }, Right: true},
			{Title: "FAILED", Value: func(b apiclient.Backfill) string { return cli.Number(b.Failed) }, Right: true},
		},
	}
}

func jobBackfill(a *cli.App) *cobra.Command {
	var r apiclient.BackfillRequest
	var list bool
	var cancel string
	cmd := &cobra.Command{
		Use: "backfill JOB", Short: "Run a job for the fire times of a past range", Args: cobra.ExactArgs(1), ValidArgsFunction: a.CompleteJobs,
		Long: `Runs a job for the fire times of a past range; each run gets its fire time as
logical date. With --dry-run nothing is done: the fire times that would run are
printed, one per line, or none.`,
		Example: "  carillon job backfill close-day --from 2026-03-01T00:00:00Z --to 2026-03-08T00:00:00Z --dry-run\n" +
			"  carillon job backfill close-day --list\n  carillon job backfill close-day --cancel 117554306365788160",
		RunE: cli.About(a, cli.FindJob, func(cmd *cobra.Command, s *cli.Session, job apiclient.Doc[apiclient.Job], _ []string) error {
			switch {
			case list:
				all, err := apiclient.ListOf[apiclient.Backfill](cmd.Context(), 0, s.ListBackfills, job.Value.ID, apiclient.ListBackfillsParams{})
				return cli.PrintList(a, s, backfillView(), all, err, "")
			case cancel != "":
				b, err := s.CancelBackfill(cmd.Context(), cancel)
				return cli.PrintOne(s, backfillView(), b, err)
			case r.From == "" || r.To == "":
				return cli.Usagef("name the range with --from and --to, as instants such as 2026-03-01T00:00:00Z")
			}
			b, err := s.BackfillJob(cmd.Context(), job.Value.ID, r)
			if err != nil {
				return err
			}
			if r.DryRun && s.Format == output.Table {
				return dryRun(a, b.Value)
			}
			return output.One(s.Printer, backfillView(), b)
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&r.From, "from", "", "first instant, RFC 3339")
	flags.StringVar(&r.To, "to", "", "end, not included, RFC 3339; not later than now")
	cli.ChoiceFlag(cmd, &r.Scope, "scope", "", []string{"missing", "unsuccessful", "all"}, "missing, unsuccessful or all (default: missing)")
	cli.NumberFlag(flags, &r.Concurrency, "concurrency", "", 0, 0, 0, "runs under way at once (default: 1)")
	flags.BoolVar(&r.DryRun, "dry-run", false, "say what would be done, and do nothing")
	flags.StringVar(&r.Note, "note", "", "why; shown beside the runs")
	flags.BoolVar(&list, "list", false, "list the job's backfills instead")
	flags.StringVar(&cancel, "cancel", "", "write no more runs of the backfill with this id")
	return cmd
}

// dryRun prints what a backfill would run.
func dryRun(a *cli.App, b apiclient.Backfill) error {
	a.Say("%s in the range, %d would run, %d need not.", spelling.Count(b.Planned, "fire time", ""), b.Created, b.Skipped)
	for _, f := range b.Fires {
		if _, err := fmt.Fprintln(a.Out, output.Clean(f.Zoned)); err != nil {
			return err
		}
	}
	switch {
	case b.Created == 0:
		_, err := fmt.Fprintln(a.Out, "none")
		return err
	case b.Created > int64(len(b.Fires)):
		a.Say("… and %d more.", b.Created-int64(len(b.Fires)))
	}
	return nil
}
