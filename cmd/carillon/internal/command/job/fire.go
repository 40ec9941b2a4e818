package job

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/cli"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/output"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/settings"
	"github.com/carillon-sched/carillon/internal/apiclient"
	"github.com/carillon-sched/carillon/internal/spelling"
)

var bucketView = output.View[apiclient.FireBucket]{
	Name: func(b apiclient.FireBucket) string { return output.Stamp(b.At) },
	Columns: []output.Column[apiclient.FireBucket]{
		{Title: "FROM", Value: func(b apiclient.FireBucket) string { return output.Stamp(b.At) }},
		{Title: "FIRES", Value: func(b apiclient.FireBucket) string { return cli.Number(b.Fires) }, Right: true},
		{Title: "JOBS", Value: func(b apiclient.FireBucket) string { return cli.Number(b.Jobs) }, Right: true},
	},
}

var firesView = output.View[apiclient.JobFires]{
	Name: func(j apiclient.JobFires) string { return j.JobName },
	Columns: []output.Column[apiclient.JobFires]{
		{Title: "FIRST", Value: func(j apiclient.JobFires) string { return output.Stamp(j.At[0]) }},
		{Title: "FIRES", Value: func(j apiclient.JobFires) string { return cli.Number(j.Fires) }, Right: true},
		{Title: "EXECUTOR", Value: func(j apiclient.JobFires) string { return j.Executor.Name }, Drop: 1},
		{Title: "JOB", Value: func(j apiclient.JobFires) string { return j.JobName }},
	},
}

func jobFires(a *cli.App) *cobra.Command {
	var p apiclient.CountFiresParams
	var from, to string
	cmd := &cobra.Command{
		Use: "fires", Short: "Count the fire times of all jobs, and name the jobs that fire first", Args: cobra.NoArgs,
		Long: `Counts the fire times of enabled jobs by their present schedules, without those that
calendars exclude. --from and --to are instants (RFC 3339), spans from now such as 2h
or 1d, or times of day here. 02:00 is the next one from now, and for --to the next one
after --from. 'tomorrow 02:00' and '2026-12-24 02:00' name the day, too. The last line of
the answer says which days were counted. Buckets without a fire are left out, except
with -o json or yaml.`,
		Example: "  carillon job fires --from 02:00 --to 03:00\n  carillon job fires --from 'tomorrow 02:00' --to 03:00\n  carillon job fires --to 7d --bucket 1h --executor shop\n  carillon job fires --from 2026-12-01T02:00:00Z --to 2026-12-01T03:00:00Z --bucket 1m",
		RunE: a.WithSession(func(cmd *cobra.Command, s *cli.Session, _ []string) error {
			begin := a.Now()
			for _, given := range []struct {
				flag, text string
				into       *string
			}{{"--from", from, &p.From}, {"--to", to, &p.To}} {
				if given.text == "" {
					continue
				}
				at, err := a.InstantAfter(given.flag, given.text, begin)
				if err != nil {
					return err
				}
				*given.into, begin = output.Stamp(at), at
			}
			if p.Executor != "" {
				e, err := cli.FindExecutor(cmd.Context(), s, p.Executor)
				if err != nil {
					return err
				}
				p.Executor = e.Name
			}
			got, err := s.CountFires(cmd.Context(), p)
			if done, err := cli.PrintMachine(s, got, err); done {
				return err
			}
			return printFires(a, s, &got.Value)
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&from, "from", "", "fire times from this instant on (default: now, from the begin of the bucket on)")
	flags.StringVar(&to, "to", "", "fire times before this instant (default: a day after --from, at most 31 days)")
	settings.SpanTextVar(flags, &p.Bucket, "bucket", "count the fires of so long together, 1m to 24h (default 1h)")
	cli.NumberFlag(flags, &p.Limit, "limit", "n", 0, 0, 200, "how many jobs are named, up to 200 (default 50)")
	flags.StringVarP(&p.Q, "query", "q", "", "part of name or description")
	flags.StringVar(&p.Executor, "executor", "", "executor by name or id")
	a.CompleteFlag(cmd, "executor", a.CompleteExecutors)
	cli.LabelFlag(cmd, &p.Label, "labels of the job")
	flags.StringVar(&p.Owner, "owner", "", "part of the owner's name or address")
	return cmd
}

func printFires(a *cli.App, s *cli.Session, f *apiclient.Fires) error {
	var buckets []apiclient.Doc[apiclient.FireBucket]
	for _, b := range f.Items {
		if b.Fires > 0 {
			buckets = append(buckets, apiclient.Doc[apiclient.FireBucket]{Value: b})
		}
	}
	if err := output.List(s.Printer, bucketView, buckets); err != nil {
		return err
	}
	if len(f.First) > 0 {
		jobs := make([]apiclient.Doc[apiclient.JobFires], len(f.First))
		for i, j := range f.First {
			jobs[i].Value = j
		}
		if s.Format == output.Table {
			fmt.Fprintln(a.Out)
		}
		if err := output.List(s.Printer, firesView, jobs); err != nil {
			return err
		}
	}
	a.Say("%s %s from %s to %s.", spelling.Count(f.Jobs, "job fires", "jobs fire"), spelling.Count(f.Fires, "time", ""), output.Stamp(f.From), output.Stamp(f.To))
	if more := f.Jobs - int64(len(f.First)); more > 0 {
		a.Say("%s not named: --limit names up to 200.", spelling.Count(more, "of them is", "of them are"))
	}
	if f.Unpredicted > 0 {
		a.Say("Not counted: %s the ends of earlier runs.", spelling.Count(f.Unpredicted, "job whose fire times follow", "jobs whose fire times follow"))
	}
	return nil
}

func jobClashes(a *cli.App) *cobra.Command {
	var body apiclient.PreviewInputBody
	cmd := &cobra.Command{
		Use: "clashes EXPRESSION", Short: "Count the jobs that fire together with a cron expression", Args: cobra.ExactArgs(1),
		Long:    "Shows the next fire times of an expression. Beside each is how many enabled jobs fire in\nthe same second, and in the same minute. Of a job: carillon job next JOB --clashes.",
		Example: "  carillon job clashes '0 2 * * *' --tz Asia/Shanghai",
		RunE: a.WithSession(func(cmd *cobra.Command, s *cli.Session, args []string) error {
			body.Clashes, body.Schedule.Kind, body.Schedule.Expr = true, "cron", args[0]
			got, err := s.PreviewSchedule(cmd.Context(), body)
			if done, err := cli.PrintMachine(s, got, err); done {
				return err
			}
			return printFireTimes(a, got.Value.Fires, got.Value.NeverFires)
		}),
	}
	cli.ChoiceFlag(cmd, &body.Schedule.Dialect, "dialect", "", []string{"auto", "standard", "seconds", "quartz"}, "auto, standard, seconds or quartz (default auto)")
	cmd.Flags().StringVar(&body.Schedule.Zone, "tz", "", "IANA time zone (default UTC)")
	cli.NumberFlag(cmd.Flags(), &body.N, "count", "n", 10, 1, 20, "how many fire times, 1 to 20")
	return cmd
}

// printFireTimes writes a line for each fire time.
func printFireTimes(a *cli.App, fires []apiclient.Fire, never bool) error {
	for _, f := range fires {
		note := f.Note
		if f.Excluded != "" {
			note = "excluded: " + f.Excluded
		}
		if c := f.Clashes; c != nil {
			note = strings.TrimSpace(fmt.Sprintf("%s  same second: %d, same minute: %d", note, c.SameSecond, c.SameMinute))
		}
		if _, err := fmt.Fprintln(a.Out, output.Clean(strings.TrimSpace(f.Zoned+" "+note))); err != nil {
			return err
		}
	}
	if never {
		_, err := fmt.Fprintln(a.Out, "none")
		return err
	}
	return nil
}
