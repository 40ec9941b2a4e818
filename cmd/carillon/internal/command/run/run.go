package run

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/cli"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/output"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/settings"
	"github.com/carillon-sched/carillon/internal/apiclient"
)

// Commands are those about runs; JobRun, JobExplain and JobOverdue are below carillon job.
func Commands(a *cli.App) []*cobra.Command {
	return []*cobra.Command{runCommand(a), statistics(a)}
}

func runCommand(a *cli.App) *cobra.Command {
	return a.ServerFlags(cli.Group("run", "Look at runs, read their logs, stop and repeat them",
		"  carillon run list --state failed,lost --since 24h\n  carillon run logs 7301 --follow",
		runList(a), runGet(a), runShards(a), runExplain(a), runLogs(a), runCancel(a), runRetry(a), runPurge(a)))
}

// runStates are those that a run can be in, live ones first.
var runStates = []string{
	"due", "offered", "running", "cancelling", "retry_wait",
	"succeeded", "failed", "timed_out", "cancelled", "lost", "missed", "discarded", "excluded",
}

const succeeded = "succeeded" // the one good end

// finished reports whether a run's state is final. States that this version does
// not know count as final, so that nobody waits for ever.
func finished(state string) bool { return !slices.Contains(runStates[:5], state) }

// runCauses are the reasons why a run exists.
var runCauses = []string{"schedule", "misfire", "manual", "api", "retry", "parent", "backfill", "timer", "import"}

func runView(now time.Time) output.View[apiclient.Run] {
	return output.View[apiclient.Run]{
		Name: func(r apiclient.Run) string { return r.ID },
		Columns: []output.Column[apiclient.Run]{
			{Title: "RUN", Value: func(r apiclient.Run) string { return r.ID }},
			{Title: "JOB", Value: func(r apiclient.Run) string { return r.JobName }},
			{Title: "STATE", Value: stateCell},
			{Title: "FIRE TIME", Value: func(r apiclient.Run) string { return output.Stamp(r.FireAt) }, Drop: 2},
			{Title: "WHEN", Value: func(r apiclient.Run) string { return output.When(&r.FireAt, now) }, Drop: 6},
			{Title: "LATE", Value: func(r apiclient.Run) string { return output.Millis(r.LatenessMs) }, Drop: 5, Right: true},
			{Title: "TOOK", Value: func(r apiclient.Run) string { return output.Millis(r.DurationMs) }, Drop: 3, Right: true},
			{Title: "TRY", Value: func(r apiclient.Run) string { return fmt.Sprintf("%d/%d", r.Attempt, r.MaxAttempts) }, Drop: 7, Right: true},
			{Title: "INSTANCE", Value: instanceCell, Drop: 8},
			{Title: "CAUSE", Value: func(r apiclient.Run) string { return r.Cause }, Drop: 9},
			{Title: "BY", Value: func(r apiclient.Run) string { return r.RequestedBy }, Wide: true},
			{Title: "HANDLER", Value: func(r apiclient.Run) string { return r.Handler }, Wide: true},
			{Title: "WHY", Value: whyCell, Drop: 4},
			{Title: "REASON", Value: func(r apiclient.Run) string { return r.Reason }, Wide: true},
			{Title: "MESSAGE", Value: func(r apiclient.Run) string { return r.Message }, Wide: true},
		},
	}
}

// maxWhy is how many characters of an error a list shows.
const maxWhy = 80

// whyCell is the first line of the handler's error, or else the reason.
func whyCell(r apiclient.Run) string {
	line := cli.FirstLine(r.Error)
	if line == "" {
		return r.Reason
	}
	if runes := []rune(line); len(runes) > maxWhy {
		line = string(runes[:maxWhy-1]) + "…"
	}
	return line
}

// stateCell adds that the handler of an ended run still runs.
func stateCell(r apiclient.Run) string {
	if r.Lingers {
		return r.State + ", lingers"
	}
	return r.State
}

func instanceCell(r apiclient.Run) string {
	if r.Instance == nil {
		return ""
	}
	return r.Instance.Name
}

func runList(a *cli.App) *cobra.Command {
	var f apiclient.ListRunsParams
	var job, executor, since, until string
	var limit int
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List runs, newest first", Args: cobra.NoArgs,
		Long: `Lists runs, the newest first. Those of timers are left out, unless --cause timer
asks for them; "carillon timer list" shows timers by their keys.`,
		Example: "  carillon run list --job close-day\n  carillon run list --state failed,timed_out,lost --since 24h",
		RunE: a.WithSession(func(cmd *cobra.Command, s *cli.Session, _ []string) (err error) {
			if since != "" {
				if f.From, err = a.InstantBefore("--since", since); err != nil {
					return err
				}
			}
			if until != "" {
				if f.To, err = a.InstantBefore("--until", until); err != nil {
					return err
				}
			}
			if job != "" {
				j, err := cli.FindJob(cmd.Context(), s, job)
				if err != nil {
					return err
				}
				f.JobID = j.Value.ID
			}
			if executor != "" {
				e, err := cli.FindExecutor(cmd.Context(), s, executor)
				if err != nil {
					return err
				}
				f.ExecutorID = e.ID
			}
			runs, err := apiclient.List[apiclient.Run](cmd.Context(), limit, s.ListRuns, f)
			if err != nil {
				return err
			}
			if len(runs) == 0 {
				a.Say("No runs match.")
			} else if len(runs) == limit {
				f.Limit, f.Total = 1, true
				page, err := s.ListRuns(cmd.Context(), f)
				if err != nil {
					return err
				}
				a.SayTotal(limit, page.Value.Total, "runs, the newest first")
			}
			if f.Fingerprint != "" && len(runs) > 0 {
				a.Say("Of each hour and job this is the newest run with the error. All runs with a part of it: carillon run list --error TEXT")
			}
			return output.List(s.Printer, runView(a.Now()), runs)
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&job, "job", "", "job by name or id")
	flags.StringVar(&executor, "executor", "", "executor by name or id")
	flags.StringVar(&f.InstanceID, "instance", "", "instance by id")
	cli.ChoicesFlag(cmd, &f.State, "state", runStates, "states, separated by commas: "+strings.Join(runStates, ", "))
	cli.ChoiceFlag(cmd, &f.Cause, "cause", "", runCauses, cli.OrList(runCauses))
	flags.StringVar(&since, "since", "", "planned in this span before now (24h), or from this RFC 3339 instant")
	flags.StringVar(&until, "until", "", "planned before this span before now (1h), or before this RFC 3339 instant")
	flags.StringVarP(&f.Q, "query", "q", "", "part of the job's name")
	flags.StringVar(&f.Name, "name", "", "name of the job, in which * stands for any text")
	cli.LabelFlag(cmd, &f.Label, "labels of the job")
	flags.StringVar(&f.Owner, "owner", "", "part of the job's owner")
	flags.StringVar(&f.Error, "error", "", "part of the handler's error")
	flags.StringVar(&f.Fingerprint, "fingerprint", "", "of each hour and job, the newest run with this error (carillon stats --by error)")
	cli.LimitFlag(cmd, &limit, 50, "at most this many")
	a.CompleteFlag(cmd, "job", a.CompleteJobs)
	a.CompleteFlag(cmd, "executor", a.CompleteExecutors)
	return cmd
}

func runGet(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "get RUN", Short: "Show one run with its attempts", Args: cobra.ExactArgs(1),
		Example: "  carillon run get 7301\n  carillon run get 7301 -o json | jq .output",
		RunE: a.WithSession(func(cmd *cobra.Command, s *cli.Session, args []string) error {
			run, err := s.GetRun(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return describeRun(a, s, run)
		}),
	}
}

// describeRun tells all that is known of a run, in the format asked for.
func describeRun(a *cli.App, s *cli.Session, details apiclient.Doc[apiclient.RunDetail]) error {
	run, err := apiclient.As[apiclient.Run](details)
	if err != nil {
		return err
	}
	if s.Format != output.Table {
		return output.One(s.Printer, runView(a.Now()), run)
	}
	r, d := run.Value, details.Value
	err = s.Fields(
		"Run", r.ID, "Job", r.JobName, "State", stateCell(r), "Error", r.Error, "Reason", r.Reason, "Message", r.Message, "Handler returned", cli.StampOrEmpty(r.ReturnedAt),
		"Cause", strings.TrimSpace(r.Cause+" "+r.RequestedBy), "Note", r.Note,
		"Fire time", output.Stamp(r.FireAt), "Late", output.Millis(r.LatenessMs), "Took", output.Millis(r.DurationMs),
		"Executor", r.Executor.Name, "Instance", instanceCell(r), "Handler", r.Handler,
		"Attempt", fmt.Sprintf("%d of %d", r.Attempt, r.MaxAttempts), "Progress", progressCell(d.Progress), "Part", partCell(r), "Shards", shardsCell(r),
		"Input", jsonCell(d.Input), "Output", jsonCell(d.Output))
	if err == nil {
		err = tableBelow(a, s, attemptColumns, d.Attempts)
	}
	if err == nil {
		err = tableBelow(a, s, stepColumns, d.Steps)
	}
	return err
}

// tableBelow prints rows after an empty line; nothing when there are none.
func tableBelow[T any](a *cli.App, s *cli.Session, columns []output.Column[T], rows []T) error {
	if len(rows) == 0 {
		return nil
	}
	if _, err := fmt.Fprintln(a.Out); err != nil {
		return err
	}
	return output.Rows(s.Printer, columns, rows)
}

func progressCell(p *apiclient.Progress) string {
	if p == nil {
		return ""
	}
	return strings.TrimSpace(fmt.Sprintf("%g %% %s", p.Percent, p.Message)) + " (" + output.Stamp(p.UpdatedAt) + ")"
}

var stepColumns = []output.Column[apiclient.Step]{
	{Title: "STEP", Value: func(t apiclient.Step) string { return t.Name }},
	{Title: "STORED", Value: func(t apiclient.Step) string { return output.Stamp(t.StoredAt) }, Drop: 2},
	{Title: "OUTPUT", Value: func(t apiclient.Step) string { return jsonCell(t.Output) }},
}

func jsonCell(raw []byte) string {
	if string(raw) == "null" {
		return ""
	}
	return string(raw)
}

var attemptColumns = []output.Column[apiclient.Attempt]{
	{Title: "TRY", Value: func(t apiclient.Attempt) string { return fmt.Sprint(t.Number) }, Right: true},
	{Title: "STATE", Value: func(t apiclient.Attempt) string { return t.State }},
	{Title: "STARTED", Value: func(t apiclient.Attempt) string { return cli.StampOrEmpty(t.StartedAt) }, Drop: 3},
	{Title: "TOOK", Value: attemptTook, Drop: 2, Right: true},
	{Title: "INSTANCE", Value: func(t apiclient.Attempt) string {
		if t.Instance == nil {
			return ""
		}
		return t.Instance.Name
	}, Drop: 4},
	{Title: "ERROR", Value: func(t apiclient.Attempt) string { return t.Error }},
}

func attemptTook(t apiclient.Attempt) string {
	if t.StartedAt == nil || t.FinishedAt == nil {
		return ""
	}
	return output.Span(t.FinishedAt.Sub(*t.StartedAt))
}

func runCancel(a *cli.App) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use: "cancel RUN", Short: "Stop a run; a running handler is asked to stop", Args: cobra.ExactArgs(1),
		Example: "  carillon run cancel 7301\n  carillon run cancel 7301 --reason 'wrong input'",
		RunE: a.WithSession(func(cmd *cobra.Command, s *cli.Session, args []string) error {
			run, err := s.CancelRun(cmd.Context(), args[0], apiclient.CancelRunInputBody{Reason: reason})
			return cli.PrintOne(s, runView(a.Now()), run, err)
		}),
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why; the handler sees it")
	return cmd
}

func runRetry(a *cli.App) *cobra.Command {
	var f runFlags
	var onlyFailed bool
	cmd := &cobra.Command{
		Use: "retry RUN", Short: "Run a finished run again, with its input or another one", Args: cobra.ExactArgs(1),
		Example: "  carillon run retry 7301 --follow\n  carillon run retry 7301 --input '{\"day\":\"2026-11-20\"}' --wait",
		RunE: a.WithSession(func(cmd *cobra.Command, s *cli.Session, args []string) error {
			input, err := a.JSONInput(f.input)
			if err != nil {
				return err
			}
			started, err := s.RetryRun(cmd.Context(), args[0], apiclient.RetryRunParams{DuringMaintenance: f.during}, apiclient.RetryRunInputBody{Input: input, OnlyFailed: onlyFailed})
			if err != nil {
				return err
			}
			run, err := apiclient.As[apiclient.Run](started)
			if err != nil {
				return err
			}
			if !f.wait && !f.follow && f.waitTimeout == 0 {
				return output.One(s.Printer, runView(a.Now()), run)
			}
			a.Say("Run %s repeats run %s.", run.Value.ID, args[0])
			return await(cmd.Context(), a, s, run.Value.ID, f.follow, f.waitTimeout)
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&f.input, "input", "", "input as JSON, @FILE or @- for standard input (default: that run's own)")
	flags.BoolVar(&f.during, "during-maintenance", false, "start it although nothing is to start because of maintenance")
	flags.BoolVar(&onlyFailed, "only-failed", false, "of a run with shards: those that did not succeed")
	flags.BoolVarP(&f.wait, "wait", "w", false, "wait for the end; exit by the run's result")
	flags.BoolVarP(&f.follow, "follow", "f", false, "show the log while it grows; waits too")
	settings.SpanVar(flags, &f.waitTimeout, "wait-timeout", 0, "wait at most this long (0 = for ever); waits too")
	return cmd
}
