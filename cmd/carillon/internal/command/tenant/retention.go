package tenant

import (
	"github.com/spf13/cobra"

	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/cli"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/output"
	"github.com/carillon-sched/carillon/internal/apiclient"
)

func retentionCommand(a *cli.App) *cobra.Command {
	return a.ServerFlags(cli.Group("retention", "Say how long ended runs and their logs are kept",
		"  carillon retention show\n  carillon retention set --run-days 30 --log-days 7\n  carillon retention set --job close-day --run-count 100",
		retentionShow(a), retentionSet(a), retentionClear(a)))
}

var retentionView = output.View[apiclient.Retention]{
	Name: retentionOf,
	Columns: []output.Column[apiclient.Retention]{
		{Title: "OF", Value: retentionOf},
		{Title: "RUN DAYS", Value: func(r apiclient.Retention) string { return numberOrDash(r.RunDays) }, Right: true},
		{Title: "LOG DAYS", Value: func(r apiclient.Retention) string { return numberOrDash(r.LogDays) }, Right: true},
		{Title: "RUNS OF A JOB", Value: func(r apiclient.Retention) string { return numberOrDash(r.RunCount) }, Right: true},
		{Title: "HOLDS", Value: retentionHolds},
		{Title: "DELETED BEFORE", Value: func(r apiclient.Retention) string { return cli.StampOrEmpty(r.RunsFrom) }, Wide: true},
		{Title: "VERSION", Value: func(r apiclient.Retention) string { return cli.Number(r.Version) }, Wide: true},
		{Title: "BY", Value: func(r apiclient.Retention) string { return r.UpdatedBy }, Drop: 1},
	},
}

func retentionOf(r apiclient.Retention) string {
	if r.JobID == "" {
		return "tenant"
	}
	return "job " + r.JobName
}

// numberOrDash shows what a rule does not say.
func numberOrDash(n int64) string {
	if n == 0 {
		return "-"
	}
	return cli.Number(n)
}

// retentionHolds says what the rules come to.
func retentionHolds(r apiclient.Retention) string {
	text := "runs " + r.Effective.Runs + ", logs " + r.Effective.Logs
	if r.Effective.RunCount > 0 {
		text += ", " + cli.Number(r.Effective.RunCount) + " runs of a job"
	}
	return text
}

func retentionShow(a *cli.App) *cobra.Command {
	var job string
	cmd := &cobra.Command{
		Use: "show", Short: "Show the rules of your tenant and its jobs, and what holds", Args: cobra.NoArgs,
		Example: "  carillon retention show\n  carillon retention show --job close-day",
		RunE: a.WithSession(func(cmd *cobra.Command, s *cli.Session, _ []string) error {
			if job != "" {
				j, err := cli.FindJob(cmd.Context(), s, job)
				if err != nil {
					return err
				}
				r, err := s.GetJobRetention(cmd.Context(), j.Value.ID)
				return cli.PrintOne(s, retentionView, r, err)
			}
			list, err := apiclient.List[apiclient.Retention](cmd.Context(), 0, s.ListRetention, apiclient.ListRetentionParams{})
			if err != nil {
				return err
			}
			if len(list) == 0 {
				a.Say("No rules: what the server keeps.")
				r, err := s.GetRetention(cmd.Context())
				return cli.PrintOne(s, retentionView, r, err)
			}
			return output.List(s.Printer, retentionView, list)
		}),
	}
	retentionJob(a, cmd, &job)
	return cmd
}

func retentionJob(a *cli.App, cmd *cobra.Command, job *string) {
	cmd.Flags().StringVar(job, "job", "", "of one job, by name or id (default: of your tenant)")
	a.CompleteFlag(cmd, "job", a.CompleteJobs)
}

func retentionSet(a *cli.App) *cobra.Command {
	var job, version string
	var w apiclient.RetentionWrite
	cmd := &cobra.Command{
		Use: "set", Short: "Keep ended runs for less long than the server does", Args: cobra.NoArgs,
		Long: `Runs go by whichever is reached first, days or number; logs by days. What is said
of a job holds instead of what is said of the tenant, but logs are kept no longer
than the tenant says. The server's settings are the most. A flag that is left out
stays as it is; 0 takes it away. A run stays for an hour after its end, one with an
Idempotency-Key for a day.`,
		Example: "  carillon retention set --run-days 30 --log-days 7\n  carillon retention set --job close-day --run-count 100",
		RunE: func(cmd *cobra.Command, _ []string) error {
			days, logs, count := cmd.Flags().Changed("run-days"), cmd.Flags().Changed("log-days"), cmd.Flags().Changed("run-count")
			if !days && !logs && !count {
				return cli.Usagef("say what to keep: --run-days, --log-days or --run-count")
			}
			return changeRetention(a, cmd, job, version, func(is apiclient.Retention) apiclient.RetentionWrite {
				if !days {
					w.RunDays = is.RunDays
				}
				if !logs {
					w.LogDays = is.LogDays
				}
				if !count {
					w.RunCount = is.RunCount
				}
				return w
			})
		},
	}
	retentionJob(a, cmd, &job)
	cli.NumberFlag(cmd.Flags(), &w.RunDays, "run-days", "", 0, 0, 0, "how many days runs are kept after their end")
	cli.NumberFlag(cmd.Flags(), &w.LogDays, "log-days", "", 0, 0, 0, "how many days their logs are kept")
	cli.NumberFlag(cmd.Flags(), &w.RunCount, "run-count", "", 0, 0, 0, "how many of the newest ended runs of each job are kept")
	cmd.Flags().StringVar(&version, "if-version", "", "only if the rule is at this version (default: as it was read)")
	return cmd
}

func retentionClear(a *cli.App) *cobra.Command {
	var job string
	cmd := &cobra.Command{
		Use: "clear", Short: "Take a rule away", Args: cobra.NoArgs, Example: "  carillon retention clear --job close-day",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return changeRetention(a, cmd, job, "", func(apiclient.Retention) apiclient.RetentionWrite { return apiclient.RetentionWrite{} })
		},
	}
	retentionJob(a, cmd, &job)
	return cmd
}

// changeRetention reads a rule and writes it, if nobody has written it meanwhile.
func changeRetention(a *cli.App, cmd *cobra.Command, job, version string, change func(apiclient.Retention) apiclient.RetentionWrite) error {
	s, err := a.Connect()
	if err != nil {
		return err
	}
	ctx, id := cmd.Context(), ""
	if job != "" {
		j, err := cli.FindJob(ctx, s, job)
		if err != nil {
			return err
		}
		id = j.Value.ID
	}
	var is apiclient.Doc[apiclient.Retention]
	if id != "" {
		is, err = s.GetJobRetention(ctx, id)
	} else {
		is, err = s.GetRetention(ctx)
	}
	if err != nil {
		return err
	}
	match := ""
	switch {
	case version != "":
		match = `"` + version + `"`
	case is.Value.Version > 0:
		match = `"` + cli.Number(is.Value.Version) + `"`
	}
	var out apiclient.Doc[apiclient.Retention]
	if id != "" {
		out, err = s.SetJobRetention(ctx, id, apiclient.SetJobRetentionParams{IfMatch: match}, change(is.Value))
	} else {
		out, err = s.SetRetention(ctx, apiclient.SetRetentionParams{IfMatch: match}, change(is.Value))
	}
	if err != nil {
		return err
	}
	return output.One(s.Printer, retentionView, out)
}
