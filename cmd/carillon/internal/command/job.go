package command

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/carillon-sched/carillon/cmd/carillon/internal/output"
	"github.com/carillon-sched/carillon/internal/apiclient"
)

func (a *App) jobCommand() *cobra.Command {
	return a.serverFlags(group("job", "Look at jobs, change, start and stop them",
		"  carillon job list\n  carillon job run close-day --follow",
		a.jobList(), a.jobGet(), a.jobCreate(), a.jobEdit(), a.jobRun(),
		a.jobPause(), a.jobResume(), a.jobDelete(), a.jobNext(), a.jobBackfill(), a.jobExplain(), a.jobGiveBack(), a.proposalCommand()))
}

// jobView shows jobs; now makes times relative.
func jobView(now time.Time) output.View[apiclient.Job] {
	return output.View[apiclient.Job]{
		Name: func(j apiclient.Job) string { return j.Name },
		Columns: []output.Column[apiclient.Job]{
			{Title: "ID", Value: func(j apiclient.Job) string { return j.ID }, Wide: true},
			{Title: "NAME", Value: func(j apiclient.Job) string { return j.Name }},
			{Title: "STATE", Value: func(j apiclient.Job) string { return j.State }},
			{Title: "SCHEDULE", Value: func(j apiclient.Job) string { return scheduleCell(j.Schedule) }, Drop: 2},
			{Title: "ZONE", Value: func(j apiclient.Job) string { return j.Schedule.Zone }, Drop: 5},
			{Title: "NEXT", Value: func(j apiclient.Job) string { return nextCell(j, now) }},
			{Title: "LAST", Value: func(j apiclient.Job) string { return lastCell(j) }, Drop: 3},
			{Title: "EXECUTOR", Value: func(j apiclient.Job) string { return j.Executor.Name }, Drop: 4},
			{Title: "ONLINE", Value: func(j apiclient.Job) string { return number(j.ExecutorOnline) }, Drop: 6, Right: true},
			{Title: "HANDLER", Value: func(j apiclient.Job) string { return j.Handler }, Wide: true},
			{Title: "OWNER", Value: func(j apiclient.Job) string { return j.Owner.Email }, Wide: true},
			{Title: "REVISION", Value: func(j apiclient.Job) string { return number(j.Revision) }, Wide: true, Right: true},
			{Title: "UPDATED", Value: func(j apiclient.Job) string { return output.Stamp(j.UpdatedAt) }, Wide: true},
		},
	}
}

// number writes a number of the API.
func number(n int64) string { return strconv.FormatInt(n, 10) }

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
		return strconv.Itoa(len(s.Instants)) + " instants"
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

func (a *App) jobList() *cobra.Command {
	var f apiclient.ListJobsParams
	var executor string
	var limit int
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List jobs", Args: cobra.NoArgs,
		Example: "  carillon job list --state paused\n  carillon job list --executor shop -o name\n  carillon job list --never-fires",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit < 0 {
				return usagef("--limit must not be negative")
			}
			s, err := a.connect()
			if err != nil {
				return err
			}
			if executor != "" {
				e, err := findExecutor(cmd.Context(), s, executor)
				if err != nil {
					return err
				}
				f.ExecutorID = e.ID
			}
			jobs, err := apiclient.List[apiclient.Job](cmd.Context(), limit, s.ListJobs, f)
			if err != nil {
				return err
			}
			if len(jobs) == 0 {
				a.say("No jobs match.")
			}
			return output.List(s.Printer, jobView(a.now()), jobs)
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&f.Q, "query", "q", "", "part of name or description")
	flags.StringVar(&executor, "executor", "", "executor by name or id")
	flags.StringVar(&f.Handler, "handler", "", "handler")
	choiceFlag(cmd, &f.State, "state", "", []string{"enabled", "paused"}, "enabled or paused")
	choiceFlag(cmd, &f.Kind, "kind", "", []string{"job", "call", "callback", "all"}, "job, call, callback or all (default job)")
	flags.BoolVar(&f.NeverFires, "never-fires", false, "only enabled jobs whose schedule has no fire left")
	flags.StringVarP(&f.Label, "label", "l", "", "label as key or key=value")
	flags.StringVar(&f.Owner, "owner", "", "part of the owner's name or address")
	choiceFlag(cmd, &f.Sort, "sort", "", []string{"name", "nextFireAt", "updatedAt"}, "name, nextFireAt or updatedAt")
	flags.IntVarP(&limit, "limit", "n", 0, "at most this many (0 = all)")
	return cmd
}

func (a *App) jobGet() *cobra.Command {
	return &cobra.Command{
		Use: "get JOB", Short: "Show one job", Args: cobra.ExactArgs(1), ValidArgsFunction: a.completeJobs,
		Example: "  carillon job get close-day\n  carillon job get close-day -o yaml > close-day.yaml",
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := a.connect()
			if err != nil {
				return err
			}
			job, err := findJob(cmd.Context(), s, args[0])
			if err != nil {
				return err
			}
			if s.Format == output.Table {
				return a.describeJob(s, job.Value)
			}
			return output.One(s.Printer, jobView(a.now()), job)
		},
	}
}

func (a *App) describeJob(s *session, j apiclient.Job) error {
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
		"State", j.State, "Pause note", j.PauseNote,
		"Schedule", schedule, "In words", inWords(j.Schedule.Text), "Zone", j.Schedule.Zone,
		"Next fire", nextCell(j, a.now()), "Last run", last,
		"Executor", fmt.Sprintf("%s (%d online)", j.Executor.Name, j.ExecutorOnline), "Handler", j.Handler,
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

// findJob takes an id or a name. Names are unique, and win: a job may be
// called 2026.
func findJob(ctx context.Context, s *session, word string) (apiclient.Doc[apiclient.Job], error) {
	jobs, err := apiclient.List[apiclient.Job](ctx, 0, s.ListJobs, apiclient.ListJobsParams{Q: word, Kind: "all"})
	if err != nil {
		return apiclient.Doc[apiclient.Job]{}, err
	}
	near := []string{}
	for _, j := range jobs {
		if j.Value.Name == word {
			return s.GetJob(ctx, j.Value.ID) // lists leave the input out
		}
		near = append(near, j.Value.Name)
	}
	if isID(word) {
		return s.GetJob(ctx, word)
	}
	return apiclient.Doc[apiclient.Job]{}, notFound("job", word, near)
}

// isID: ids are decimal numbers.
func isID(word string) bool {
	n, err := strconv.ParseInt(word, 10, 64)
	return err == nil && n > 0
}

func notFound(kind, word string, near []string) error {
	text := fmt.Sprintf("there is no %s %q", kind, word)
	if len(near) > 0 {
		text += "; did you mean " + strings.Join(near[:min(3, len(near))], " or ") + "?"
	} else {
		text += fmt.Sprintf("; see: carillon %s list", kind)
	}
	return &exitError{exitNotFound, errors.New(text)}
}

func (a *App) jobNext() *cobra.Command {
	var params apiclient.NextFiresParams
	cmd := &cobra.Command{
		Use: "next JOB", Short: "Show a job's next fire times", Args: cobra.ExactArgs(1), ValidArgsFunction: a.completeJobs,
		Example: "  carillon job next close-day\n  carillon job next close-day -n 3 --from 2027-01-01T00:00:00Z",
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := a.connect()
			if err != nil {
				return err
			}
			job, err := findJob(cmd.Context(), s, args[0])
			if err != nil {
				return err
			}
			fires, err := s.NextFires(cmd.Context(), job.Value.ID, params)
			if err != nil {
				return err
			}
			if done, err := output.Machine(s.Printer, fires); done {
				return err
			}
			if job.Value.State == "paused" {
				a.say("The job is paused: these are the times it would fire at.")
			}
			for _, f := range fires.Value.Fires {
				note := f.Note
				if f.Excluded != "" {
					note = "excluded: " + f.Excluded
				}
				if _, err := fmt.Fprintln(a.out, output.Clean(strings.TrimSpace(f.Zoned+" "+note))); err != nil {
					return err
				}
			}
			if fires.Value.NeverFires {
				_, err = fmt.Fprintln(a.out, "none")
			}
			return err
		},
	}
	cmd.Flags().Int64VarP(&params.N, "count", "n", 10, "how many, 1 to 100")
	cmd.Flags().StringVar(&params.From, "from", "", "after this instant, RFC 3339 (default: now)")
	return cmd
}
