package run

import (
	"bufio"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/cli"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/output"
	"github.com/carillon-sched/carillon/internal/apiclient"
	"github.com/carillon-sched/carillon/internal/spelling"
)

var runPurgeView = output.View[apiclient.RunPurge]{
	Name: func(p apiclient.RunPurge) string { return p.ID },
	Columns: []output.Column[apiclient.RunPurge]{
		{Title: "ID", Value: func(p apiclient.RunPurge) string { return p.ID }},
		{Title: "STATE", Value: func(p apiclient.RunPurge) string { return p.State }},
		{Title: "JOB", Value: func(p apiclient.RunPurge) string {
			if p.JobID == "" {
				return "all"
			}
			return p.JobID
		}},
		{Title: "BEFORE", Value: func(p apiclient.RunPurge) string { return output.Stamp(p.Before) }},
		{Title: "DELETED", Value: func(p apiclient.RunPurge) string { return cli.Number(p.Deleted) }, Right: true},
		{Title: "ASKED FOR", Value: func(p apiclient.RunPurge) string { return cli.StampOrEmpty(p.CreatedAt) }, Drop: 2},
		{Title: "BY", Value: func(p apiclient.RunPurge) string { return p.CreatedBy }, Drop: 1},
	},
}

func runPurge(a *cli.App) *cobra.Command {
	var r apiclient.RunPurgeRequest
	var job, before, cancel string
	var all, yes, list, wait bool
	cmd := &cobra.Command{
		Use: "purge", Short: "Delete ended runs with their logs, as an administrator of the tenant", Args: cobra.NoArgs,
		Long: `Deletes the runs of a job, or of all jobs of your tenant, that fired and had ended
before an instant. It is done in steps beside the work of others, and goes on when
the command has ended. First it says how many would go, and asks.
A run stays for an hour after its end, one with an Idempotency-Key for a day, and so
does what others still need: living runs, parts of a run that stays, and a run whose
callback has not begun. Timers have a retention of their own.`,
		Example: "  carillon run purge --job close-day --before 2026-11-01T00:00:00Z --dry-run\n  carillon run purge --all --before 720h --yes\n  carillon run purge --list",
		RunE: a.WithSession(func(cmd *cobra.Command, s *cli.Session, _ []string) (err error) {
			ctx := cmd.Context()
			switch {
			case list:
				purges, err := apiclient.List[apiclient.RunPurge](ctx, 0, s.ListRunPurges, apiclient.ListRunPurgesParams{})
				return cli.PrintList(a, s, runPurgeView, purges, err, "")
			case cancel != "":
				p, err := s.CancelRunPurge(ctx, cancel)
				return cli.PrintOne(s, runPurgeView, p, err)
			case (job == "") == !all:
				return cli.Usagef("say of what: --job JOB, or --all")
			case before == "":
				return cli.Usagef("say until when: --before, an instant such as 2026-11-01T00:00:00Z or an age such as 720h")
			}
			if before, err = a.InstantBefore("--before", before); err == nil {
				r.Before, err = time.Parse(time.RFC3339, before)
			}
			if err != nil {
				return err
			}
			if job != "" {
				j, err := cli.FindJob(ctx, s, job)
				if err != nil {
					return err
				}
				r.JobID = j.Value.ID
			}
			dry := r
			dry.DryRun = true
			if r.DryRun || !yes {
				p, err := s.PurgeRuns(ctx, dry)
				if err != nil {
					return err
				}
				text := spelling.Count(p.Value.Found, "run", "")
				be := spelling.Word(p.Value.Found, "is", "are")
				if p.Value.FoundMore {
					text, be = "more than "+text, "are"
				}
				if r.DryRun && s.Format != output.Table {
					return output.One(s.Printer, runPurgeView, p)
				}
				if r.DryRun {
					_, err := fmt.Fprintf(a.Out, "%s would be deleted.\n", text)
					return err
				}
				answer, err := a.Ask(bufio.NewReader(a.In), fmt.Sprintf("%s %s deleted for good. Type yes to go on: ", text, be))
				if err != nil {
					return err
				}
				if answer != "yes" {
					return cli.Usagef("nothing was deleted")
				}
			}
			p, err := s.PurgeRuns(ctx, r)
			for err == nil && wait && p.Value.State == "running" {
				select {
				case <-ctx.Done():
					return ctx.Err()
				case <-time.After(time.Second):
				}
				p, err = s.GetRunPurge(ctx, p.Value.ID)
			}
			if err != nil {
				return err
			}
			return output.One(s.Printer, runPurgeView, p)
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&job, "job", "", "of this job, by name or id")
	flags.BoolVar(&all, "all", false, "of all jobs of your tenant")
	flags.StringVar(&before, "before", "", "runs that fired and had ended before this RFC 3339 instant, or this long ago (720h)")
	flags.BoolVar(&r.DryRun, "dry-run", false, "say how many would go, and delete nothing")
	flags.BoolVarP(&yes, "yes", "y", false, "do not ask")
	flags.BoolVar(&wait, "wait", false, "wait until all are gone")
	flags.BoolVar(&list, "list", false, "list who deleted what instead")
	flags.StringVar(&cancel, "cancel", "", "delete no more for the clean-up with this id")
	a.CompleteFlag(cmd, "job", a.CompleteJobs)
	return cmd
}
