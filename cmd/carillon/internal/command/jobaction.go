package command

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/carillon-sched/carillon/cmd/carillon/internal/output"
	"github.com/carillon-sched/carillon/internal/apiclient"
)

func (a *App) jobPause() *cobra.Command {
	var note string
	cmd := &cobra.Command{
		Use: "pause JOB...", Short: "Stop a job's schedule", Args: cobra.MinimumNArgs(1), ValidArgsFunction: a.completeJobs,
		Example: "  carillon job pause close-day --note 'ledger is being moved'\n  carillon job list -o name -l team=pay | xargs carillon job pause",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.eachJob(cmd, args, func(s *session, j apiclient.Job) (apiclient.Doc[apiclient.Job], error) {
				return s.PauseJob(cmd.Context(), j.ID, apiclient.PauseInputBody{Note: note})
			})
		},
	}
	cmd.Flags().StringVar(&note, "note", "", "why; shown beside the job")
	return cmd
}

func (a *App) jobResume() *cobra.Command {
	return &cobra.Command{
		Use: "resume JOB...", Short: "Start a job's schedule again", Args: cobra.MinimumNArgs(1), ValidArgsFunction: a.completeJobs,
		Example: "  carillon job resume close-day\n  carillon job list --state paused -o name | xargs carillon job resume",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.eachJob(cmd, args, func(s *session, j apiclient.Job) (apiclient.Doc[apiclient.Job], error) {
				return s.ResumeJob(cmd.Context(), j.ID)
			})
		},
	}
}

// eachJob acts on every job named and prints what became of them. It goes on
// after a failure, tells about each, and ends with the first one's exit code.
func (a *App) eachJob(cmd *cobra.Command, names []string, act func(*session, apiclient.Job) (apiclient.Doc[apiclient.Job], error)) error {
	s, err := a.connect()
	if err != nil {
		return err
	}
	done := []apiclient.Doc[apiclient.Job]{}
	var failed error
	for _, name := range names {
		job, err := findJob(cmd.Context(), s, name)
		if err == nil {
			job, err = act(s, job.Value)
		}
		switch {
		case err == nil:
			done = append(done, job)
		case len(names) == 1:
			return err
		default:
			tell(a.err, cmd, fmt.Errorf("job %s: %w", name, err), codeOf(err))
			if failed == nil {
				failed = &exitError{codeOf(err), nil}
			}
		}
	}
	if len(done) == 0 {
		return failed
	}
	return errors.Join(failed, output.List(s.Printer, jobView(a.now()), done))
}

func (a *App) jobDelete() *cobra.Command {
	return a.deleteCommand("job", &cobra.Command{
		Use: "delete JOB", Short: "Delete a job; its runs can still be read", ValidArgsFunction: a.completeJobs,
		Example: "  carillon job delete close-day\n  carillon job delete close-day --yes",
	}, func(ctx context.Context, s *session, word string) (string, func() error, error) {
		job, err := findJob(ctx, s, word)
		return job.Value.Name, func() error { return gone(s.DeleteJob(ctx, job.Value.ID)) }, err
	})
}

// deleteCommand completes a command that finds an object by what its argument
// says, asks, and deletes it.
func (a *App) deleteCommand(noun string, cmd *cobra.Command, find func(context.Context, *session, string) (name string, remove func() error, err error)) *cobra.Command {
	var yes bool
	cmd.Aliases, cmd.Args = []string{"rm"}, cobra.ExactArgs(1)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		s, err := a.connect()
		if err != nil {
			return err
		}
		name, remove, err := find(cmd.Context(), s, args[0])
		if err != nil {
			return err
		}
		if !yes {
			if err := a.confirm("Delete " + noun + " " + output.Clean(name) + "?"); err != nil {
				return err
			}
		}
		if err := remove(); err != nil {
			return err
		}
		a.say("Deleted %s %s.", noun, output.Clean(name))
		return nil
	}
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return cmd
}

// gone drops an answer that says nothing.
func gone(_ apiclient.Doc[apiclient.None], err error) error { return err }

// confirm asks a person; without one the answer is no.
func (a *App) confirm(question string) error {
	f, ok := a.in.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return usagef("standard input is no terminal to ask on; pass --yes")
	}
	answer, err := a.ask(bufio.NewReader(a.in), question+" [y/N] ")
	if err == nil && (strings.EqualFold(answer, "y") || strings.EqualFold(answer, "yes")) {
		return nil
	}
	return &exitError{exitFailed, errors.New("nothing was done")}
}

// runFlags are the flags of job run.
type runFlags struct {
	input, note, at, after, instance, key string
	wait, follow, unfit                   bool
	waitTimeout                           time.Duration
}

func (a *App) jobRun() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use: "run JOB", Short: "Run a job now, or once later", Args: cobra.ExactArgs(1), ValidArgsFunction: a.completeJobs,
		Long: `Runs a job now. With --wait the exit code tells how the run ended (0 = succeeded,
124 = --wait-timeout passed; the run goes on). --follow shows the log while it
grows, on standard output, and waits too.`,
		Example: "  carillon job run close-day --input '{\"day\":\"2026-11-20\"}' --wait\n  carillon job run cancel-unpaid --after 30m --input @order.json",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.runJob(cmd.Context(), args[0], f)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.input, "input", "", "input as JSON, @FILE or @- for standard input (default: the job's own)")
	flags.StringVar(&f.note, "note", "", "why; shown beside the run")
	flags.StringVar(&f.at, "at", "", "run once at this instant, RFC 3339")
	flags.StringVar(&f.after, "after", "", "run once after this much time, for example 30m")
	flags.StringVar(&f.instance, "instance", "", "id of the instance to prefer")
	flags.StringVar(&f.key, "idempotency-key", "", "the same key with the same input, note and time on the same job gives the same run (default: a new one)")
	flags.BoolVar(&f.unfit, "allow-unfit-input", false, "accept an input that does not fit what is registered of the handler")
	flags.BoolVarP(&f.wait, "wait", "w", false, "wait for the end; exit by the run's result")
	flags.BoolVarP(&f.follow, "follow", "f", false, "show the log while it grows; waits too")
	flags.DurationVar(&f.waitTimeout, "wait-timeout", 0, "wait at most this long (0 = for ever); waits too")
	return cmd
}

func (a *App) runJob(ctx context.Context, name string, f runFlags) error {
	r := apiclient.RunRequest{Note: f.note, At: f.at, After: f.after, InstanceID: f.instance}
	var err error
	if r.Input, err = a.jsonInput(f.input); err != nil {
		return err
	}
	s, err := a.connect()
	if err != nil {
		return err
	}
	job, err := findJob(ctx, s, name)
	if err != nil {
		return err
	}
	key := f.key
	if key == "" {
		key = "cli-" + rand.Text()
	}
	// The server is not asked to wait: the run's id must be known whatever
	// happens to the connection then.
	started, err := s.RunJob(ctx, job.Value.ID, apiclient.RunJobParams{AllowUnfitInput: f.unfit, IdempotencyKey: key}, r)
	if err != nil {
		return err
	}
	run, err := apiclient.As[apiclient.Run](started)
	if err != nil {
		return err
	}
	if !f.wait && !f.follow && f.waitTimeout == 0 {
		a.say("Follow it with: carillon run logs %s --follow", run.Value.ID)
		return output.One(s.Printer, runView(a.now()), run)
	}
	a.say("Run %s of job %s.", run.Value.ID, output.Clean(job.Value.Name))
	return a.await(ctx, s, run.Value.ID, f.follow, f.waitTimeout)
}

// jsonInput reads the value of --input.
func (a *App) jsonInput(text string) (json.RawMessage, error) {
	if text == "" {
		return nil, nil
	}
	raw := []byte(text)
	if path, isFile := strings.CutPrefix(text, "@"); isFile {
		var err error
		if raw, err = a.readInput(path); err != nil {
			return nil, err
		}
	}
	if !json.Valid(raw) {
		var v any
		return nil, usagef("--input is no JSON: %w", json.Unmarshal(raw, &v))
	}
	return raw, nil
}
