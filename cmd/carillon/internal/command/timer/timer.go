package timer

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/cli"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/run"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/output"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/settings"
	"github.com/carillon-sched/carillon/internal/apiclient"
	"github.com/carillon-sched/carillon/internal/spelling"
)

// timerView shows timers; the column WHY explains one that did not run.
var timerView = output.View[apiclient.Timer]{
	Name: func(t apiclient.Timer) string { return t.Key },
	Columns: []output.Column[apiclient.Timer]{
		{Title: "HANDLER", Value: func(t apiclient.Timer) string { return t.Executor + "/" + t.Handler }},
		{Title: "KEY", Value: func(t apiclient.Timer) string { return t.Key }},
		{Title: "STATE", Value: func(t apiclient.Timer) string { return t.State }},
		{Title: "FIRES AT", Value: func(t apiclient.Timer) string { return output.Stamp(t.FireAt) }},
		{Title: "RUN", Value: func(t apiclient.Timer) string {
			if t.Run == nil {
				return "-"
			}
			return *t.Run
		}},
		{Title: "WHY", Value: func(t apiclient.Timer) string { return cmp.Or(t.Error, t.Message, t.Reason, "-") }, Drop: 1},
		{Title: "BY", Value: func(t apiclient.Timer) string { return t.CreatedBy }, Drop: 2},
		{Title: "SET AT", Value: func(t apiclient.Timer) string { return output.Stamp(t.CreatedAt) }, Drop: 3},
	},
}

var timerCountView = output.View[apiclient.HandlerTimerCount]{
	Name: func(c apiclient.HandlerTimerCount) string { return c.Executor + "/" + c.Handler },
	Columns: []output.Column[apiclient.HandlerTimerCount]{
		{Title: "HANDLER", Value: func(c apiclient.HandlerTimerCount) string { return c.Executor + "/" + c.Handler }},
		{Title: "PENDING", Value: func(c apiclient.HandlerTimerCount) string { return cli.Number(c.Pending) }, Right: true},
	},
}

var timerCancellationView = output.View[apiclient.TimerCancellation]{
	Name: func(c apiclient.TimerCancellation) string { return c.ID },
	Columns: []output.Column[apiclient.TimerCancellation]{
		{Title: "ID", Value: func(c apiclient.TimerCancellation) string { return cmp.Or(c.ID, "-") }},
		{Title: "HANDLER", Value: func(c apiclient.TimerCancellation) string { return c.Executor + "/" + c.Handler }},
		{Title: "FOUND", Value: func(c apiclient.TimerCancellation) string { return cli.Number(c.Found) }, Right: true},
		{Title: "CANCELLED", Value: func(c apiclient.TimerCancellation) string { return cli.Number(c.Cancelled) }, Right: true},
		{Title: "DONE", Value: func(c apiclient.TimerCancellation) string { return map[bool]string{true: "yes", false: "no"}[c.Done] }},
	},
}

// Command is carillon timer with what is below it.
func Command(a *cli.App) *cobra.Command {
	return a.ServerFlags(cli.Group("timer", "Set, see, move and cancel single runs of handlers at an instant",
		"  carillon timer set shop/cancel-order --key order-77 --after 30m\n  carillon timer list shop/cancel-order",
		timerSet(a), timerGet(a), timerList(a), timerCount(a), timerStatistics(a), timerCancel(a), timerReschedule(a)))
}

// splitTarget reads EXECUTOR/HANDLER; handlers' names may have a slash.
func splitTarget(text string) (executor, handler string, err error) {
	executor, handler, found := strings.Cut(text, "/")
	if !found || executor == "" || handler == "" {
		return "", "", cli.Usagef("%q is no EXECUTOR/HANDLER, such as shop/cancel-order", text)
	}
	return executor, handler, nil
}

// exists refuses an executor that is not there. Callers that may see no executors get nil.
func exists(ctx context.Context, s *cli.Session, executor string) error {
	if executor == "" {
		return nil
	}
	if _, err := cli.FindExecutor(ctx, s, executor); cli.CodeOf(err) == cli.ExitNotFound {
		return err
	}
	return nil
}

func timerSet(a *cli.App) *cobra.Command {
	var r apiclient.TimerRequest
	var input string
	cmd := &cobra.Command{
		Use: "set EXECUTOR/HANDLER", Short: "Set a timer", Args: cobra.ExactArgs(1), ValidArgsFunction: completeTimers(a, false),
		Long: `Sets a timer: one run of a handler at an instant. Where its key is in use, the
timer that is there is kept and shown, unless --policy says otherwise. That holds for
one that has ended, too, until it is deleted (--timer-retention of the server): then
nothing will run, which is said. --policy replace sets it anew.`,
		Example: "  carillon timer set shop/cancel-order --key order-77 --after 30m --input '{\"order\":77}'\n" +
			"  carillon timer set shop/cancel-order --key order-77 --at 2027-01-01T08:00:00Z --policy replace",
		RunE: a.WithSession(func(cmd *cobra.Command, s *cli.Session, args []string) (err error) {
			if r.Executor, r.Handler, err = splitTarget(args[0]); err != nil {
				return err
			}
			if (r.At == "") == (r.After == "") {
				return cli.Usagef("say when, with --at or --after")
			}
			if r.Input, err = a.JSONInput(input); err != nil {
				return err
			}
			t, err := s.SetTimer(cmd.Context(), r)
			if err != nil {
				return err
			}
			a.Say("%s", setText(t.Value))
			return output.One(s.Printer, timerView, t)
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&r.Key, "key", "", "names it among the timers of its handler (default: the server makes one)")
	flags.StringVar(&r.At, "at", "", "when, RFC 3339")
	settings.SpanTextVar(flags, &r.After, "after", "how long from now, for example 30m")
	flags.StringVar(&input, "input", "", "JSON, @FILE, or @- for standard input")
	cli.ChoiceFlag(cmd, &r.Policy, "policy", "", []string{"keep", "replace", "reject"}, "where the key is in use: keep, replace or reject (default: keep)")
	flags.StringSliceVar(&r.Labels, "label", nil, "words to find it and to cancel it by")
	cli.NumberFlag(flags, &r.MaxAttempts, "max-attempts", "", 0, 0, 0, "at most as many as the handler declares (default: as many)")
	settings.SpanTextVar(flags, &r.Timeout, "timeout", "of one attempt (default: as the handler declares)")
	settings.SpanTextVar(flags, &r.StartWithin, "start-within", "how long it may wait for an instance (default: as the handler declares)")
	flags.StringVar(&r.Note, "note", "", "why; shown beside the run")
	return cmd
}

// setText says what setting a timer has done. A kept one may have ended: then nothing
// is going to run.
func setText(t apiclient.Timer) string {
	text := fmt.Sprintf("The timer %s was %s", t.Key, t.Outcome)
	if t.Outcome != "kept" || t.FinishedAt == nil {
		return text + "."
	}
	return fmt.Sprintf("%s, and it has ended already: %s at %s. Nothing will run. To set it anew: --policy replace",
		text, strings.ReplaceAll(t.State, "_", " "), output.Stamp(*t.FinishedAt))
}

func timerGet(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "get EXECUTOR/HANDLER KEY", Short: "Show one timer, and why it did not run", Args: cobra.ExactArgs(2), ValidArgsFunction: completeTimers(a, true),
		Example: "  carillon timer get shop/cancel-order order-77\n  carillon timer get shop/cancel-order order-77 -o json | jq .input",
		RunE: a.WithSession(func(cmd *cobra.Command, s *cli.Session, args []string) error {
			executor, handler, err := splitTarget(args[0])
			if err != nil {
				return err
			}
			t, err := s.GetTimer(cmd.Context(), executor, handler, args[1])
			return cli.PrintOne(s, timerView, t, err)
		}),
	}
}

func timerList(a *cli.App) *cobra.Command {
	var p apiclient.ListTimersParams
	var limit int
	cmd := &cobra.Command{
		Use: "list [EXECUTOR/HANDLER]", Aliases: []string{"ls"}, Short: "List timers", Args: cobra.MaximumNArgs(1), ValidArgsFunction: completeTimers(a, false),
		Example: "  carillon timer list shop/cancel-order --prefix order-\n  carillon timer list --state ended --label eu",
		RunE: a.WithSession(func(cmd *cobra.Command, s *cli.Session, args []string) (err error) {
			if len(args) == 1 {
				if p.Executor, p.Handler, err = splitTarget(args[0]); err != nil {
					return err
				}
			}
			timers, err := apiclient.List[apiclient.Timer](cmd.Context(), limit, s.ListTimers, p)
			if err == nil && len(timers) == 0 {
				err = exists(cmd.Context(), s, p.Executor)
			}
			return cli.PrintList(a, s, timerView, timers, err, "No timers. Set one with: carillon timer set EXECUTOR/HANDLER --after 30m")
		}),
	}
	flags := cmd.Flags()
	cli.ChoiceFlag(cmd, &p.State, "state", "", []string{"pending", "claimed", "ended"}, "pending, claimed or ended (default: pending)")
	flags.StringVar(&p.KeyPrefix, "prefix", "", "beginning of the key")
	flags.StringVar(&p.Label, "label", "", "one of the labels")
	flags.StringVar(&p.From, "from", "", "set for this instant or later, RFC 3339")
	flags.StringVar(&p.To, "to", "", "set for an earlier instant, RFC 3339")
	cli.LimitFlag(cmd, &limit, 50, "at most this many")
	return cmd
}

func timerCount(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "count [EXECUTOR/HANDLER]", Short: "Count the pending timers, by handler", Args: cobra.MaximumNArgs(1), ValidArgsFunction: completeTimers(a, false),
		Example: "  carillon timer count\n  carillon timer count shop/cancel-order -o json | jq .pending",
		RunE: a.WithSession(func(cmd *cobra.Command, s *cli.Session, args []string) (err error) {
			var p apiclient.CountTimersParams
			if len(args) == 1 {
				if p.Executor, p.Handler, err = splitTarget(args[0]); err != nil {
					return err
				}
			}
			count, err := s.CountTimers(cmd.Context(), p)
			if done, err := cli.PrintMachine(s, count, err); done {
				return err
			}
			if count.Value.Pending == 0 {
				if err := exists(cmd.Context(), s, p.Executor); err != nil {
					return err
				}
			}
			a.Say("%s pending.", spelling.Count(count.Value.Pending, "timer is", "timers are"))
			rows := make([]apiclient.Doc[apiclient.HandlerTimerCount], len(count.Value.ByHandler))
			for i, c := range count.Value.ByHandler {
				rows[i].Value = c
			}
			return output.List(s.Printer, timerCountView, rows)
		}),
	}
}

func timerStatistics(a *cli.App) *cobra.Command {
	var p apiclient.SumTimersParams
	cmd := &cobra.Command{
		Use: "statistics [EXECUTOR/HANDLER]", Short: "Show how timers have ended, by minute, hour or day", Args: cobra.MaximumNArgs(1), ValidArgsFunction: completeTimers(a, false),
		Long:    run.StatisticsText,
		Example: "  carillon timer statistics\n  carillon timer statistics shop/cancel-order --step day --since 2160h",
		RunE: a.WithSession(func(cmd *cobra.Command, s *cli.Session, args []string) (err error) {
			if len(args) == 1 {
				if p.Executor, p.Handler, err = splitTarget(args[0]); err != nil {
					return err
				}
			}
			if p.From, err = run.SinceOf(a, cmd); err != nil {
				return err
			}
			got, err := s.SumTimers(cmd.Context(), p)
			if err == nil && len(got.Value.Items) == 0 {
				err = exists(cmd.Context(), s, p.Executor)
			}
			return run.PrintStatistics(a, s, got, err)
		}),
	}
	run.StepFlags(cmd, &p.Step)
	return cmd
}

func timerCancel(a *cli.App) *cobra.Command {
	var r apiclient.CancelTimersRequest
	var status string
	var yes bool
	cmd := &cobra.Command{
		Use: "cancel EXECUTOR/HANDLER [KEY...]", Short: "Cancel timers by key, or all with a prefix or label", Args: cobra.MinimumNArgs(1), ValidArgsFunction: completeTimers(a, true),
		Long: `Cancels timers. A pending one ends at once; a running handler is asked to stop.
With --prefix or --label it is done in steps by the server; --status says how far
one of those is.`,
		Example: "  carillon timer cancel shop/cancel-order order-77\n  carillon timer cancel shop/cancel-order --prefix order- --yes\n" +
			"  carillon timer cancel shop/cancel-order --status 117554306365788160",
		RunE: a.WithSession(func(cmd *cobra.Command, s *cli.Session, args []string) (err error) {
			if r.Executor, r.Handler, err = splitTarget(args[0]); err != nil {
				return err
			}
			r.Keys = args[1:]
			many := r.KeyPrefix != "" || r.Label != ""
			given := 0
			for _, is := range []bool{len(r.Keys) > 0, r.KeyPrefix != "", r.Label != "", status != ""} {
				if is {
					given++
				}
			}
			if given != 1 {
				return cli.Usagef("name the timers by their keys, or with --prefix or --label, or ask with --status: one of the four")
			}
			if status != "" {
				c, err := s.GetTimerCancellation(cmd.Context(), status)
				return cli.PrintOne(s, timerCancellationView, c, err)
			}
			if many && !yes {
				if err := a.Confirm(fmt.Sprintf("Cancel all timers of %s that match?", args[0])); err != nil {
					return err
				}
			}
			if len(r.Keys) == 1 {
				t, err := s.CancelTimer(cmd.Context(), r.Executor, r.Handler, r.Keys[0])
				return cli.PrintOne(s, timerView, t, err)
			}
			c, err := s.CancelTimers(cmd.Context(), r)
			if err != nil {
				return err
			}
			refused, unknown := 0, 0
			for _, item := range c.Value.Items {
				if item.Outcome == "cancelled" || item.Outcome == "cancelling" {
					continue
				}
				refused++
				if item.Outcome == "not_found" {
					unknown++
				}
				a.Say("%s", notCancelled(args[0], item))
			}
			if err := output.One(s.Printer, timerCancellationView, c); err != nil || refused == 0 {
				return err
			}
			code := cli.ExitFailed
			if unknown == len(r.Keys) {
				code = cli.ExitNotFound
			}
			return cli.Fail(code, fmt.Errorf("%d of %s not cancelled", refused, spelling.Count(len(r.Keys), "timer was", "timers were")))
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&r.KeyPrefix, "prefix", "", "all whose keys begin so")
	flags.StringVar(&r.Label, "label", "", "all that have this label")
	flags.StringVar(&status, "status", "", "say how far the cancel with this id is")
	flags.BoolVarP(&yes, "yes", "y", false, "do not ask")
	return cmd
}

// notCancelled says why the timer of a key was not cancelled.
func notCancelled(target string, item apiclient.CancelledTimer) string {
	why := ""
	if item.Problem != nil {
		why = item.Problem.Detail
		if place, what, found := strings.Cut(why, ": "); found && strings.HasPrefix(place, "body.") {
			why = what
		}
		why = ": " + why
	}
	switch item.Outcome {
	case "not_found":
		return fmt.Sprintf("There is no timer %q of %s.", item.Key, target)
	case "already_finished":
		return fmt.Sprintf("The timer %q of %s has ended already.", item.Key, target)
	case "invalid":
		return fmt.Sprintf("%q cannot be the key of a timer%s", item.Key, why)
	default:
		return fmt.Sprintf("The timer %q of %s was not cancelled%s", item.Key, target, why)
	}
}

func timerReschedule(a *cli.App) *cobra.Command {
	var r apiclient.RescheduleTimerInputBody
	cmd := &cobra.Command{
		Use: "reschedule EXECUTOR/HANDLER KEY", Short: "Move a timer that has not started to another instant", Args: cobra.ExactArgs(2), ValidArgsFunction: completeTimers(a, true),
		Example: "  carillon timer reschedule shop/cancel-order order-77 --after 2h\n  carillon timer reschedule shop/cancel-order order-77 --at 2027-01-01T08:00:00Z",
		RunE: a.WithSession(func(cmd *cobra.Command, s *cli.Session, args []string) error {
			executor, handler, err := splitTarget(args[0])
			if err != nil {
				return err
			}
			if (r.At == "") == (r.After == "") {
				return cli.Usagef("say when, with --at or --after")
			}
			t, err := s.RescheduleTimer(cmd.Context(), executor, handler, args[1], r)
			return cli.PrintOne(s, timerView, t, err)
		}),
	}
	cmd.Flags().StringVar(&r.At, "at", "", "when, RFC 3339")
	settings.SpanTextVar(cmd.Flags(), &r.After, "after", "how long from now, for example 30m")
	return cmd
}
