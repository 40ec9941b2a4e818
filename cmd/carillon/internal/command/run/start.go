package run

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/spf13/cobra"

	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/cli"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/output"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/settings"
	"github.com/carillon-sched/carillon/internal/apiclient"
)

// runFlags are the flags of job run.
type runFlags struct {
	input, note, at, after, instance, key string
	wait, follow, unfit, during           bool
	waitTimeout                           time.Duration
}

// JobRun is carillon job run.
func JobRun(a *cli.App) *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use: "run JOB", Short: "Run a job now, or once later", Args: cobra.ExactArgs(1), ValidArgsFunction: a.CompleteJobs,
		Long: `Runs a job now. With --wait the exit code tells how the run ended (0 = succeeded,
124 = --wait-timeout passed; the run goes on). --follow shows the log while it
grows, on standard output, and waits too.`,
		Example: "  carillon job run close-day --input '{\"day\":\"2026-11-20\"}' --wait\n  carillon job run cancel-unpaid --after 30m --input @order.json",
		RunE: func(cmd *cobra.Command, args []string) error {
			return runJob(cmd.Context(), a, args[0], f)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.input, "input", "", "input as JSON, @FILE or @- for standard input (default: the job's own)")
	flags.StringVar(&f.note, "note", "", "why; shown beside the run")
	flags.StringVar(&f.at, "at", "", "run once at this instant, RFC 3339")
	settings.SpanTextVar(flags, &f.after, "after", "run once after this much time, for example 30m")
	flags.StringVar(&f.instance, "instance", "", "id of the instance to prefer")
	flags.StringVar(&f.key, "idempotency-key", "", "the same key with the same input, note and time on the same job gives the same run (default: a new one)")
	flags.BoolVar(&f.unfit, "allow-unfit-input", false, "accept an input that does not fit what is registered of the handler")
	flags.BoolVar(&f.during, "during-maintenance", false, "start it although nothing is to start because of maintenance")
	flags.BoolVarP(&f.wait, "wait", "w", false, "wait for the end; exit by the run's result")
	flags.BoolVarP(&f.follow, "follow", "f", false, "show the log while it grows; waits too")
	settings.SpanVar(flags, &f.waitTimeout, "wait-timeout", 0, "wait at most this long (0 = for ever); waits too")
	return cmd
}

func runJob(ctx context.Context, a *cli.App, name string, f runFlags) error {
	r := apiclient.RunRequest{Note: f.note, At: f.at, After: f.after, InstanceID: f.instance}
	var err error
	if r.Input, err = a.JSONInput(f.input); err != nil {
		return err
	}
	s, err := a.Connect()
	if err != nil {
		return err
	}
	job, err := cli.FindJob(ctx, s, name)
	if err != nil {
		return err
	}
	key := f.key
	if key == "" {
		key = "cli-" + rand.Text()
	}
	// The server is not asked to wait: the run's id must be known whatever
	// happens to the connection then.
	started, err := s.RunJob(ctx, job.Value.ID, apiclient.RunJobParams{AllowUnfitInput: f.unfit, DuringMaintenance: f.during, IdempotencyKey: key}, r)
	if err != nil {
		return err
	}
	run, err := apiclient.As[apiclient.Run](started)
	if err != nil {
		return err
	}
	if !f.wait && !f.follow && f.waitTimeout == 0 {
		a.Say("Follow it with: carillon run logs %s --follow", run.Value.ID)
		return output.One(s.Printer, runView(a.Now()), run)
	}
	a.Say("Run %s of job %s.", run.Value.ID, output.Clean(job.Value.Name))
	return await(ctx, a, s, run.Value.ID, f.follow, f.waitTimeout)
}
