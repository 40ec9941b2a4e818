package job

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/cli"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/output"
	"github.com/carillon-sched/carillon/internal/apiclient"
)

func jobPause(a *cli.App) *cobra.Command {
	var note string
	cmd := &cobra.Command{
		Use: "pause JOB...", Short: "Stop a job's schedule", Long: pauseHelp, Args: cobra.MinimumNArgs(1), ValidArgsFunction: a.CompleteJobs,
		Example: "  carillon job pause close-day --note 'ledger is being moved'\n  carillon job list -o name -l team=pay | xargs carillon job pause --note audit\n  carillon job pause close-day --for 2h --note 'ledger is being moved'",
		RunE: func(cmd *cobra.Command, args []string) error {
			return eachJob(a, cmd, args, func(s *cli.Session, j apiclient.Job) (apiclient.Doc[apiclient.Job], error) {
				if j.PausedBy != "" {
					a.Say("%s is paused already, by %s; that pause stays.", output.Clean(j.Name), output.Clean(pausedCell(j)))
				}
				return s.PauseJob(cmd.Context(), j.ID, apiclient.PauseInputBody{Note: note})
			})
		},
	}
	cmd.Flags().StringVar(&note, "note", "", "why; shown beside the job")
	return cmd
}

const pauseHelp = `Stop a job's schedule until it is resumed. A job that somebody has paused already
keeps that pause: who, when and why.

With --for or --until a bulk operation resumes the jobs by itself. It waits until then
(carillon bulk list), and leaves jobs alone that were resumed or paused anew meanwhile.

To stop a whole tenant or executor for a while, use carillon maintenance: it does not
touch the pauses of jobs.`

const resumeHelp = `Start a job's schedule again, with the first fire time from now. With --mine a
job that somebody else paused stays paused.

To stop many jobs for a while and let them go on, use carillon maintenance.`

func jobResume(a *cli.App) *cobra.Command {
	var params apiclient.ResumeJobParams
	cmd := &cobra.Command{
		Use: "resume JOB...", Short: "Start a job's schedule again", Long: resumeHelp, Args: cobra.MinimumNArgs(1), ValidArgsFunction: a.CompleteJobs,
		Example: "  carillon job resume close-day\n  carillon job list --state paused -o name | xargs carillon job resume --mine",
		RunE: func(cmd *cobra.Command, args []string) error {
			return eachJob(a, cmd, args, func(s *cli.Session, j apiclient.Job) (apiclient.Doc[apiclient.Job], error) {
				after, err := s.ResumeJob(cmd.Context(), j.ID, params)
				if err == nil && after.Value.State == "paused" {
					a.Say("%s stays paused: %s paused it.", output.Clean(j.Name), output.Clean(cmp.Or(pausedCell(after.Value), "somebody else")))
				}
				return after, err
			})
		},
	}
	cmd.Flags().BoolVar(&params.Mine, "mine", false, "only jobs that you paused; the others stay paused")
	return cmd
}

func jobEvents(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "events JOB", Short: "Say when a job was made, edited, paused and resumed, by whom and why", Args: cobra.ExactArgs(1), ValidArgsFunction: a.CompleteJobs,
		Example: "  carillon job events close-day",
		RunE: cli.About(a, cli.FindJob, func(cmd *cobra.Command, s *cli.Session, job apiclient.Doc[apiclient.Job], _ []string) error {
			list, err := apiclient.ListOf[apiclient.JobEvent](cmd.Context(), 0, s.ListJobEvents, job.Value.ID, apiclient.ListJobEventsParams{})
			return cli.PrintList(a, s, output.View[apiclient.JobEvent]{
				Name: func(e apiclient.JobEvent) string { return output.Stamp(e.At) },
				Columns: []output.Column[apiclient.JobEvent]{
					{Title: "AT", Value: func(e apiclient.JobEvent) string { return output.Stamp(e.At) }},
					{Title: "WHAT", Value: eventCell},
					{Title: "BY", Value: func(e apiclient.JobEvent) string { return e.By }},
					{Title: "WHY", Value: func(e apiclient.JobEvent) string { return cli.FirstLine(e.Note) }},
				},
			}, list, err, "")
		}),
	}
}

func eventCell(e apiclient.JobEvent) string {
	words := strings.ReplaceAll(e.What, "_", " ")
	switch {
	case e.What == "edited":
		return fmt.Sprintf("%s (revision %d)", words, e.Revision)
	case e.What == "created" && e.State == "paused":
		return "created, paused"
	}
	return words
}

// eachJob acts on every job named and prints what became of them. It goes on
// after a failure, tells about each, and ends with the first one's exit code.
func eachJob(a *cli.App, cmd *cobra.Command, names []string, act func(*cli.Session, apiclient.Job) (apiclient.Doc[apiclient.Job], error)) error {
	s, err := a.Connect()
	if err != nil {
		return err
	}
	done := []apiclient.Doc[apiclient.Job]{}
	var failed error
	for _, name := range names {
		job, err := cli.FindJob(cmd.Context(), s, name)
		if err == nil {
			job, err = act(s, job.Value)
		}
		switch {
		case err == nil:
			done = append(done, job)
		case len(names) == 1:
			return err
		default:
			cli.Tell(a.Err, cmd, fmt.Errorf("job %s: %w", name, err), cli.CodeFor(cmd, err))
			if failed == nil {
				failed = cli.Fail(cli.CodeFor(cmd, err), nil)
			}
		}
	}
	if len(done) == 0 {
		return failed
	}
	return errors.Join(failed, output.List(s.Printer, jobView(a.Now()), done))
}

func jobDelete(a *cli.App) *cobra.Command {
	return a.DeleteCommand("job", &cobra.Command{
		Use: "delete JOB", Short: "Delete a job; its runs can still be read", ValidArgsFunction: a.CompleteJobs,
		Example: "  carillon job delete close-day\n  carillon job delete close-day --yes",
	}, func(ctx context.Context, s *cli.Session, word string) (string, func() error, error) {
		job, err := cli.FindJob(ctx, s, word)
		if d := job.Value.Declared; err == nil && d != nil && d.Ownership != "code" {
			a.Say("The code of the executor %s declares this job. Once deleted it is not created again until somebody creates a job of its name.", output.Clean(d.Executor.Name))
		}
		return job.Value.Name, func() error { return cli.Gone(s.DeleteJob(ctx, job.Value.ID)) }, err
	})
}
