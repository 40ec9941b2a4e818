package run

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/cli"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/output"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/settings"
	"github.com/carillon-sched/carillon/internal/apiclient"
	"github.com/carillon-sched/carillon/internal/spelling"
)

// StatisticsText explains tables of statistics.
const StatisticsText = `Shows how runs have ended, also those that are deleted since, the newest first.
Minutes, hours and days are those of UTC, and of a run's end. LATE is how long
after their fire time runs started, TOOK how long they ran: half of them no
longer (P50), 95 of 100 no longer (P95), off by 5 % at most.`

var statisticsView = output.View[apiclient.RunEndings]{
	Name: func(o apiclient.RunEndings) string { return output.Stamp(o.At) },
	Columns: []output.Column[apiclient.RunEndings]{
		{Title: "FROM", Value: func(o apiclient.RunEndings) string { return output.Stamp(o.At) }},
		{Title: "RUNS", Value: func(o apiclient.RunEndings) string { return cli.Number(o.Runs) }, Right: true},
		{Title: "SUCCEEDED", Value: func(o apiclient.RunEndings) string { return cli.Number(o.Succeeded) }, Right: true},
		{Title: "FAILED", Value: func(o apiclient.RunEndings) string { return cli.Number(o.Failed) }, Right: true},
		{Title: "TIMED OUT", Value: func(o apiclient.RunEndings) string { return cli.Number(o.TimedOut) }, Right: true},
		{Title: "LOST", Value: func(o apiclient.RunEndings) string { return cli.Number(o.Lost) }, Right: true},
		{Title: "MISSED", Value: func(o apiclient.RunEndings) string { return cli.Number(o.Missed) }, Right: true},
		{Title: "CANCELLED", Value: func(o apiclient.RunEndings) string { return cli.Number(o.Cancelled) }, Right: true, Drop: 3},
		{Title: "SKIPPED", Value: func(o apiclient.RunEndings) string { return cli.Number(o.Discarded + o.Excluded) }, Right: true, Drop: 4},
		{Title: "LATE P50", Value: func(o apiclient.RunEndings) string {
			return spreadCell(o.Lateness, func(s *apiclient.Spread) int64 { return s.P50Ms })
		}, Right: true, Drop: 2},
		{Title: "LATE P95", Value: func(o apiclient.RunEndings) string {
			return spreadCell(o.Lateness, func(s *apiclient.Spread) int64 { return s.P95Ms })
		}, Right: true},
		{Title: "TOOK P50", Value: func(o apiclient.RunEndings) string {
			return spreadCell(o.Duration, func(s *apiclient.Spread) int64 { return s.P50Ms })
		}, Right: true, Drop: 1},
		{Title: "TOOK P95", Value: func(o apiclient.RunEndings) string {
			return spreadCell(o.Duration, func(s *apiclient.Spread) int64 { return s.P95Ms })
		}, Right: true},
	},
}

func spreadCell(s *apiclient.Spread, of func(*apiclient.Spread) int64) string {
	if s == nil {
		return "-"
	}
	return (time.Duration(of(s)) * time.Millisecond).String()
}

// StepFlags are those of all that shows statistics.
func StepFlags(cmd *cobra.Command, step *string) {
	cli.ChoiceFlag(cmd, step, "step", "", []string{"minute", "hour", "day"}, "minute, hour or day (default: hour)")
	cmd.Flags().String("since", "", "ended in this span before now, or from this RFC 3339 instant (default: an hour, a day or 30 days, by step)")
}

// SinceOf reads --since; empty: the server's default.
func SinceOf(a *cli.App, cmd *cobra.Command) (string, error) {
	since, err := cmd.Flags().GetString("since")
	if err != nil || since == "" {
		return "", err
	}
	return a.InstantBefore("--since", since)
}

func statistics(a *cli.App) *cobra.Command {
	var job, executor, step, by string
	var top int64
	cmd := &cobra.Command{
		Use: "stats", Aliases: []string{"statistics"}, Short: "Show how runs have ended, by minute, hour or day", Args: cobra.NoArgs,
		Long:    StatisticsText,
		Example: "  carillon stats\n  carillon stats --job close-day --since 720h --step day\n  carillon stats --executor shop --step minute\n  carillon stats --by error --since 7d --top 5",
		RunE: a.WithSession(func(cmd *cobra.Command, s *cli.Session, _ []string) error {
			from, err := SinceOf(a, cmd)
			if err != nil {
				return err
			}
			var got apiclient.Doc[apiclient.Statistics]
			switch {
			case by != "":
				got, err = s.TenantStatistics(cmd.Context(), apiclient.TenantStatisticsParams{From: from, Step: step, GroupBy: by, Top: top})
				return printFailures(a, s, by, got, err)
			case job != "":
				j, err := cli.FindJob(cmd.Context(), s, job)
				if err != nil {
					return err
				}
				got, err = s.JobStatistics(cmd.Context(), j.Value.ID, apiclient.JobStatisticsParams{From: from, Step: step})
				return PrintStatistics(a, s, got, err)
			case executor != "":
				e, err := cli.FindExecutor(cmd.Context(), s, executor)
				if err != nil {
					return err
				}
				got, err = s.ExecutorStatistics(cmd.Context(), e.ID, apiclient.ExecutorStatisticsParams{From: from, Step: step})
				return PrintStatistics(a, s, got, err)
			default:
				got, err = s.TenantStatistics(cmd.Context(), apiclient.TenantStatisticsParams{From: from, Step: step})
				return PrintStatistics(a, s, got, err)
			}
		}),
	}
	cmd.Flags().StringVar(&job, "job", "", "name or id of a job")
	cmd.Flags().StringVar(&executor, "executor", "", "name or id of an executor")
	cli.ChoiceFlag(cmd, &by, "by", "", []string{"job", "executor", "label", "error"}, "show which job, executor, label or error failed most")
	cli.NumberFlag(cmd.Flags(), &top, "top", "", 0, 0, 50, "with --by: how many at most, up to 50 (default 10)")
	cmd.MarkFlagsMutuallyExclusive("job", "executor", "by")
	StepFlags(cmd, &step)
	return a.ServerFlags(cmd)
}

// failureView shows what failed most.
func failureView(by string) output.View[apiclient.FailureGroup] {
	name := func(g apiclient.FailureGroup) string { return cmp.Or(g.Name, g.Fingerprint, g.ID, "(others)") }
	view := output.View[apiclient.FailureGroup]{
		Name: name,
		Columns: []output.Column[apiclient.FailureGroup]{
			{Title: "FAILURES", Value: func(g apiclient.FailureGroup) string { return cli.Number(g.Failures) }, Right: true},
			{Title: "JOBS", Value: func(g apiclient.FailureGroup) string { return cli.Number(g.Jobs) }, Right: true, Drop: 2},
			{Title: "LAST", Value: func(g apiclient.FailureGroup) string { return output.Stamp(g.LastAt) }},
			{Title: "LAST RUN", Value: func(g apiclient.FailureGroup) string { return g.LastRunID }, Drop: 1},
		},
	}
	switch by {
	case "job", "executor":
		view.Columns[1] = output.Column[apiclient.FailureGroup]{Title: "ENDED", Value: func(g apiclient.FailureGroup) string { return cli.Number(g.Ended) }, Right: true}
	case "error":
		view.Columns = append(view.Columns, output.Column[apiclient.FailureGroup]{Title: "FINGERPRINT", Value: func(g apiclient.FailureGroup) string { return g.Fingerprint }})
	}
	view.Columns = append(view.Columns, output.Column[apiclient.FailureGroup]{Title: strings.ToUpper(by), Value: name})
	return view
}

func printFailures(a *cli.App, s *cli.Session, by string, got apiclient.Doc[apiclient.Statistics], err error) error {
	if done, err := cli.PrintMachine(s, got, err); done {
		return err
	}
	if len(got.Value.Groups) == 0 {
		a.Say("Nothing has failed since %s.", output.Stamp(got.Value.From))
		return nil
	}
	rows := make([]apiclient.Doc[apiclient.FailureGroup], len(got.Value.Groups))
	for i, g := range got.Value.Groups {
		rows[i].Value = g
	}
	if err := output.List(s.Printer, failureView(by), rows); err != nil {
		return err
	}
	t := got.Value.Total
	a.Say("In all %d of %s since %s failed, timed out or were lost.", t.Failed+t.TimedOut+t.Lost, spelling.Count(t.Runs, "run", ""), output.Stamp(got.Value.From))
	return nil
}

// PrintStatistics prints the steps and, when there are several, their sum at the end.
func PrintStatistics(a *cli.App, s *cli.Session, got apiclient.Doc[apiclient.Statistics], err error) error {
	if done, err := cli.PrintMachine(s, got, err); done {
		return err
	}
	if len(got.Value.Items) == 0 {
		a.Say("Nothing has ended since %s.", output.Stamp(got.Value.From))
		return nil
	}
	rows := make([]apiclient.Doc[apiclient.RunEndings], len(got.Value.Items))
	for i, o := range got.Value.Items {
		rows[i].Value = o
	}
	if err := output.List(s.Printer, statisticsView, rows); err != nil || len(rows) == 1 {
		return err
	}
	t := got.Value.Total
	a.Say("In all %s since %s: %d succeeded, %d failed, timed out, lost or missed.", spelling.Count(t.Runs, "run", ""), output.Stamp(got.Value.From), t.Succeeded, t.Failed+t.TimedOut+t.Lost+t.Missed)
	return nil
}

// overdueView shows fire times that have passed.
var overdueView = output.View[apiclient.OverdueJob]{
	Name: func(o apiclient.OverdueJob) string { return o.JobName },
	Columns: []output.Column[apiclient.OverdueJob]{
		{Title: "JOB", Value: func(o apiclient.OverdueJob) string { return o.JobName }},
		{Title: "EXECUTOR", Value: func(o apiclient.OverdueJob) string { return o.Executor.Name }, Drop: 1},
		{Title: "FIRE TIME", Value: func(o apiclient.OverdueJob) string { return output.Stamp(o.FireAt) }},
		{Title: "OVERDUE", Value: func(o apiclient.OverdueJob) string {
			return (time.Duration(o.OverdueMs) * time.Millisecond).Round(time.Second).String()
		}, Right: true},
		{Title: "RUN", Value: func(o apiclient.OverdueJob) string {
			if o.RunID == nil {
				return "not planned"
			}
			return *o.RunID
		}},
		{Title: "REASON", Value: func(o apiclient.OverdueJob) string { return o.Reason }},
	},
}

// JobOverdue is carillon job overdue.
func JobOverdue(a *cli.App) *cobra.Command {
	var p apiclient.ListOverdueParams
	cmd := &cobra.Command{
		Use: "overdue", Short: "List jobs whose fire time has passed and that have not started", Args: cobra.NoArgs,
		Long: `Lists fire times that have passed without an attempt having started, those of
which there is not even a run first. What waits as its job says, for a slot or
behind a limit, is listed too, with the reason. "carillon run explain" says more.
Timers are not in the list. How many of them are overdue is said below it, except
with -o json or yaml; "carillon timer list" shows them.`,
		Example: "  carillon job overdue\n  carillon job overdue --by 10m",
		RunE: a.WithSession(func(cmd *cobra.Command, s *cli.Session, _ []string) error {
			got, err := s.ListOverdue(cmd.Context(), p)
			if done, err := cli.PrintMachine(s, got, err); done {
				return err
			}
			timers := overdueTimers(cmd.Context(), a, s, p.By)
			if len(got.Value.Items) == 0 {
				if len(timers) == 0 {
					timers = []string{"Nothing is overdue."}
				}
				a.Say("%s", strings.Join(timers, "\n"))
				return nil
			}
			rows := make([]apiclient.Doc[apiclient.OverdueJob], len(got.Value.Items))
			for i, o := range got.Value.Items {
				rows[i].Value = o
			}
			if err := output.List(s.Printer, overdueView, rows); err != nil {
				return err
			}
			if got.Value.More {
				a.Say("There are more: --limit shows up to 200.")
			}
			for _, line := range timers {
				a.Say("%s", line)
			}
			return nil
		}),
	}
	settings.SpanTextVar(cmd.Flags(), &p.By, "by", "overdue by longer than that (default 1m)")
	cli.NumberFlag(cmd.Flags(), &p.Limit, "limit", "n", 0, 0, 200, "how many at most, up to 200 (default 100)")
	return cmd
}

// overdueTimers says how many timers have not started although their instant has
// passed by that long, and which command lists them. It is empty as well when who asks
// may not see timers.
func overdueTimers(ctx context.Context, a *cli.App, s *cli.Session, by string) (lines []string) {
	span, err := settings.ParseSpan(cmp.Or(by, "1m"))
	if err != nil {
		return nil
	}
	const limit = 200
	to := output.Stamp(a.Now().Add(-span))
	for _, state := range []string{"pending", "claimed"} {
		list, err := apiclient.List[apiclient.Timer](ctx, limit, s.ListTimers, apiclient.ListTimersParams{State: state, To: to})
		if err != nil {
			return nil
		}
		waiting := 0
		for _, t := range list {
			if slices.Contains([]string{"pending", "due", "offered"}, t.Value.State) {
				waiting++
			}
		}
		if waiting == 0 {
			continue
		}
		atLeast := ""
		if len(list) == limit {
			atLeast = "at least "
		}
		lines = append(lines, fmt.Sprintf("Timers that are overdue: %s%d. See: carillon timer list --state %s --to %s", atLeast, waiting, state, to))
	}
	return lines
}
