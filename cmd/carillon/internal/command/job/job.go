package job

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/cli"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/document"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/run"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/output"
	"github.com/carillon-sched/carillon/internal/apiclient"
	"github.com/carillon-sched/carillon/internal/spelling"
)

// Command is carillon job with what is below it.
func Command(a *cli.App) *cobra.Command {
	return a.ServerFlags(cli.Group("job", "Look at jobs, change, start and stop them",
		"  carillon job list\n  carillon job run close-day --follow",
		jobList(a), jobGet(a), jobCreate(a), jobEdit(a), run.JobRun(a),
		jobPause(a), jobResume(a), jobDelete(a), jobRestore(a), jobNext(a), jobFires(a), jobClashes(a), jobBackfill(a), run.JobExplain(a), run.JobOverdue(a), jobEvents(a), jobRevisions(a), jobGiveBack(a), jobTryCallback(a), proposalCommand(a)))
}

// jobView shows jobs; now makes times relative.
func jobView(now time.Time) output.View[apiclient.Job] {
	return output.View[apiclient.Job]{
		Name: func(j apiclient.Job) string { return j.Name },
		Columns: []output.Column[apiclient.Job]{
			{Title: "ID", Value: func(j apiclient.Job) string { return j.ID }, Wide: true},
			{Title: "NAME", Value: func(j apiclient.Job) string { return j.Name }},
			{Title: "STATE", Value: func(j apiclient.Job) string { return j.State }},
			{Title: "PAUSED BY", Value: pausedCell, Drop: 1},
			{Title: "SCHEDULE", Value: func(j apiclient.Job) string { return scheduleCell(j.Schedule) }, Drop: 2},
			{Title: "ZONE", Value: func(j apiclient.Job) string { return j.Schedule.Zone }, Drop: 5},
			{Title: "NEXT", Value: func(j apiclient.Job) string { return nextCell(j, now) }},
			{Title: "LAST", Value: func(j apiclient.Job) string { return lastCell(j) }, Drop: 3},
			{Title: "WAITING", Value: waitingCell, Drop: 1},
			{Title: "EXECUTOR", Value: func(j apiclient.Job) string { return j.Executor.Name }, Drop: 4},
			{Title: "ONLINE", Value: func(j apiclient.Job) string { return cli.Number(j.ExecutorOnline) }, Drop: 6, Right: true},
			{Title: "HANDLER", Value: func(j apiclient.Job) string { return j.Handler }, Wide: true},
			{Title: "OWNER", Value: func(j apiclient.Job) string { return j.Owner.Email }, Wide: true},
			{Title: "REVISION", Value: func(j apiclient.Job) string { return cli.Number(j.Revision) }, Wide: true, Right: true},
			{Title: "UPDATED", Value: func(j apiclient.Job) string { return output.Stamp(j.UpdatedAt) }, Wide: true},
		},
	}
}

func inWords(text *apiclient.Bilingual) string {
	if text == nil {
		return ""
	}
	return text.En
}

func scheduleCell(s apiclient.Schedule) string {
	switch s.Kind {
	case "cron":
		return s.Expr
	case "fixed_rate":
		return "every " + s.Every
	case "fixed_delay":
		return s.Every + " after the end"
	case "instants":
		return spelling.Count(len(s.Instants), "instant", "")
	case "daily_window":
		return s.WindowFrom + "-" + s.WindowTo + " every " + s.Every
	case "once":
		if s.At != nil {
			return "at " + output.Stamp(*s.At)
		}
		return "once"
	case "none":
		return "on demand"
	default:
		return s.Kind
	}
}

// pausedCell is the author of a pause and the reason.
func pausedCell(j apiclient.Job) string {
	if note := cli.FirstLine(j.PauseNote); note != "" {
		return strings.TrimSpace(j.PausedBy + " (" + note + ")")
	}
	return j.PausedBy
}

// waitingCell is how many runs wait for earlier ones, and why they pile up.
func waitingCell(j apiclient.Job) string {
	switch {
	case j.PilesUp:
		return cli.Number(j.Waiting) + ", runs take longer than the interval"
	case j.Waiting > 0:
		return cli.Number(j.Waiting)
	}
	return ""
}

func stampOrNone(at *time.Time) string {
	if at == nil {
		return ""
	}
	return output.Stamp(*at)
}

func nextCell(j apiclient.Job, now time.Time) string {
	switch {
	case j.State == "paused":
		return ""
	case j.AwaitsRun != "":
		return "after run " + j.AwaitsRun
	case j.NeverFires:
		return "never"
	default:
		return output.When(j.NextFireAt, now)
	}
}

func lastCell(j apiclient.Job) string {
	if j.LastRun == nil {
		return ""
	}
	return j.LastRun.State
}

func jobList(a *cli.App) *cobra.Command {
	var f apiclient.ListJobsParams
	var executor string
	var limit int
	var deleted bool
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List jobs", Args: cobra.NoArgs,
		Long:    "List jobs, without their inputs.\n\nThe list is for people and programs that read. Jobs that apply takes are written by: carillon export Job",
		Example: "  carillon job list --state paused\n  carillon job list --executor shop -o name\n  carillon job list --never-fires",
		RunE: a.WithSession(func(cmd *cobra.Command, s *cli.Session, _ []string) error {
			if deleted {
				return deletedKind.ListDeleted(cmd.Context(), a, s)
			}
			if executor != "" {
				e, err := cli.FindExecutor(cmd.Context(), s, executor)
				if err != nil {
					return err
				}
				f.ExecutorID = e.ID
			}
			jobs, err := apiclient.List[apiclient.Job](cmd.Context(), limit, s.ListJobs, f)
			if err == nil && limit > 0 && len(jobs) == limit {
				f.Limit, f.Total = 1, true
				page, err := s.ListJobs(cmd.Context(), f)
				if err != nil {
					return err
				}
				a.SayTotal(limit, page.Value.Total, "jobs")
			}
			if s.Printer.Format == output.YAML {
				a.Say("These jobs have no inputs, and apply does not take them. For that use: carillon export Job")
			}
			return cli.PrintList(a, s, jobView(a.Now()), jobs, err, "No jobs match.")
		}),
	}
	document.DeletedFlag(cmd, &deleted)
	flags := cmd.Flags()
	flags.StringVarP(&f.Q, "query", "q", "", "part of name or description")
	flags.StringVar(&executor, "executor", "", "executor by name or id")
	flags.StringVar(&f.Handler, "handler", "", "handler")
	cli.ChoiceFlag(cmd, &f.State, "state", "", []string{"enabled", "paused", "failing", "late", "never_fires"}, "enabled, paused, failing, late or never_fires")
	cli.ChoiceFlag(cmd, &f.Kind, "kind", "", []string{"job", "call", "callback", "all"}, "job, call, callback or all (default job)")
	flags.BoolVar(&f.NeverFires, "never-fires", false, "only enabled jobs whose schedule has no fire left")
	cli.LabelFlag(cmd, &f.Label, "labels of the job")
	flags.StringVar(&f.Owner, "owner", "", "part of the owner's name or address")
	cli.ChoiceFlag(cmd, &f.Sort, "sort", "", []string{"name", "nextFireAt", "updatedAt", "failures", "lateness", "p95"}, "name, nextFireAt, updatedAt, or by the last 7 days: failures, lateness or p95")
	cli.LimitFlag(cmd, &limit, 0, "at most this many")
	return cmd
}

func jobGet(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "get JOB", Short: "Show one job", Args: cobra.ExactArgs(1), ValidArgsFunction: a.CompleteJobs,
		Example: "  carillon job get close-day\n  carillon job get close-day -o yaml > close-day.yaml",
		RunE: cli.About(a, cli.FindJob, func(_ *cobra.Command, s *cli.Session, job apiclient.Doc[apiclient.Job], _ []string) error {
			if s.Format == output.Table {
				return describeJob(a, s, job.Value)
			}
			return output.One(s.Printer, jobView(a.Now()), job)
		}),
	}
}

func describeJob(a *cli.App, s *cli.Session, j apiclient.Job) error {
	last := ""
	if j.LastRun != nil {
		last = j.LastRun.State + " (run " + j.LastRun.ID + ")"
	}
	schedule := scheduleCell(j.Schedule)
	if j.Schedule.Dialect != "" {
		schedule += " (" + j.Schedule.Dialect + ")"
	}
	return s.Fields(
		"Name", j.Name, "Id", j.ID, "Description", j.Description,
		"State", j.State, "Paused by", j.PausedBy, "Paused at", stampOrNone(j.PausedAt), "Pause note", j.PauseNote,
		"Schedule", schedule, "In words", inWords(j.Schedule.Text), "Zone", j.Schedule.Zone,
		"Next fire", nextCell(j, a.Now()), "Last run", last,
		"Executor", fmt.Sprintf("%s (%d online)", j.Executor.Name, j.ExecutorOnline), "Handler", j.Handler,
		"On success", callbackCell(j.OnSuccess), "On failure", callbackCell(j.OnFailure),
		"Owner", strings.TrimSpace(j.Owner.Name+" "+j.Owner.Email), "Source", j.Source, "Declared", declaredCell(j.Declared),
		"Revision", fmt.Sprintf("%d, %s by %s", j.Revision, output.Stamp(j.UpdatedAt), j.UpdatedBy))
}

// declaredCell says whose code declares a job, and who decides about it.
func declaredCell(d *apiclient.Declared) string {
	if d == nil {
		return ""
	}
	by := "by the code of " + d.Executor.Name
	if d.Version != "" {
		by += " " + d.Version
	}
	if d.Gone {
		return by + ", but no version declares it any more"
	}
	return by + "; " + map[string]string{
		"until_edited": "it follows the code until somebody edits it", "code": "the code decides",
		"console": "the console decides", "propose": "the code proposes",
	}[d.Ownership]
}

func jobNext(a *cli.App) *cobra.Command {
	var params apiclient.NextFiresParams
	var from string
	cmd := &cobra.Command{
		Use: "next JOB", Short: "Show a job's next fire times", Args: cobra.ExactArgs(1), ValidArgsFunction: a.CompleteJobs,
		Example: "  carillon job next close-day\n  carillon job next close-day -n 3 --from 'tomorrow 02:00'",
		RunE: cli.About(a, cli.FindJob, func(cmd *cobra.Command, s *cli.Session, job apiclient.Doc[apiclient.Job], _ []string) error {
			if from != "" {
				at, err := a.InstantAfter("--from", from, a.Now())
				if err != nil {
					return err
				}
				params.From = output.Stamp(at)
			}
			fires, err := s.NextFires(cmd.Context(), job.Value.ID, params)
			if done, err := cli.PrintMachine(s, fires, err); done {
				return err
			}
			if job.Value.State == "paused" {
				a.Say("The job is paused: these are the times it would fire at.")
			}
			return printFireTimes(a, fires.Value.Fires, fires.Value.NeverFires)
		}),
	}
	cli.NumberFlag(cmd.Flags(), &params.N, "count", "n", 10, 1, 100, "how many, 1 to 100")
	cmd.Flags().StringVar(&from, "from", "", "after this instant: RFC 3339, a span from now, or a time such as 'tomorrow 02:00' (default: now)")
	cmd.Flags().BoolVar(&params.Clashes, "clashes", false, "count the other jobs that fire together with it, at the first 20")
	return cmd
}
