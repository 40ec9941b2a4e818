package bulk

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/cli"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/settings"
	"github.com/carillon-sched/carillon/internal/apiclient"
)

// many is what a command does with a selection.
type many struct {
	action string
	// taken are flags of the command for one item that count for a selection, too.
	taken []string
	// chooses are flags of also that are a condition by themselves. together are flags of also
	// with which jobs that are named are one selection, too.
	chooses, together []string
	// also adds flags, and returns how they change the request.
	also func(*cli.App, *cobra.Command) func(*apiclient.BulkRequest) error
}

// extend lets commands of jobs and runs take a selection, or several names.
func extend(a *cli.App, find func(path ...string) *cobra.Command) {
	jobs := find("job")
	for _, m := range []many{
		{action: "pause", taken: []string{"note"}, also: pauseFlags, together: []string{"for", "until"}},
		{action: "resume", taken: []string{"mine"}, also: resumeFlags, chooses: []string{"paused-by"}},
		{action: "run", taken: []string{"note", "during-maintenance"}},
		{action: "delete"},
	} {
		m.extend(a, find("job", m.action), false)
	}
	for _, m := range []many{{action: "retry", taken: []string{"during-maintenance"}}, {action: "cancel", taken: []string{"reason"}}} {
		m.extend(a, find("run", m.action), true)
	}
	jobs.AddCommand(label(a), setOwner(a))
}

// resumeFlags are those of a selection. Without them it is of the caller's pauses.
func resumeFlags(_ *cli.App, cmd *cobra.Command) func(*apiclient.BulkRequest) error {
	var all bool
	var pausedBy string
	cmd.Flags().BoolVar(&all, "all", false, "of a selection: also jobs that others have paused (default: only those that you have)")
	cmd.Flags().StringVar(&pausedBy, "paused-by", "", "of a selection: jobs that this operation has paused (carillon bulk list)")
	return func(r *apiclient.BulkRequest) error {
		r.All, r.PausedBy = all, pausedBy
		return nil
	}
}

// pauseFlags give a pause an end.
func pauseFlags(a *cli.App, cmd *cobra.Command) func(*apiclient.BulkRequest) error {
	var span time.Duration
	var until string
	settings.SpanVar(cmd.Flags(), &span, "for", 0, "resume the jobs after this span, such as 2h (default: they stay paused)")
	cmd.Flags().StringVar(&until, "until", "", "resume the jobs at this instant: RFC 3339, or a time such as 06:00 or 'tomorrow 06:00'")
	return func(r *apiclient.BulkRequest) error {
		switch {
		case span < 0 || cmd.Flags().Changed("for") && span == 0:
			return cli.Usagef("--for must be a span such as 2h")
		case span > 0 && until != "":
			return cli.Usagef("give --for or --until, not both")
		case span > 0:
			at := a.Now().Add(span)
			r.Until = &at
		case until != "":
			at, err := a.InstantAfter("--until", until, a.Now())
			if err != nil {
				return err
			}
			r.Until = &at
		}
		return nil
	}
}

func (m *many) extend(a *cli.App, cmd *cobra.Command, runs bool) {
	c := &selector{}
	takesMany := strings.HasSuffix(cmd.Use, "...")
	alone, own := cmd.RunE, cmd.LocalFlags()
	mine := map[string]bool{} // flags of the command for one item
	own.VisitAll(func(f *pflag.Flag) { mine[f.Name] = true })
	c.add(a, cmd, runs)
	c.flags = append(c.flags, m.chooses...)
	change := func(*apiclient.BulkRequest) error { return nil }
	if m.also != nil {
		change = m.also(a, cmd)
	}
	if !takesMany {
		cmd.Use += "..."
	}
	cmd.Example += fmt.Sprintf("\n  carillon %s --label team=pay", cmd.CommandPath())
	cmd.Args = c.args
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !c.used(cmd) && !slices.ContainsFunc(m.together, cmd.Flags().Changed) {
			if takesMany {
				return alone(cmd, args)
			}
			return each(a, cmd, args, alone)
		}
		for name := range mine {
			if cmd.Flags().Changed(name) && name != "yes" && !slices.Contains(m.taken, name) {
				return cli.Usagef("--%s is not for a selection: name the %s", name, noun(m.action))
			}
		}
		s, err := a.Connect()
		if err != nil {
			return err
		}
		filter, err := c.resolve(a, cmd, s)
		if err == nil {
			filter.Ids, err = idsOf(cmd, s, args)
		}
		if err != nil {
			return err
		}
		r := apiclient.BulkRequest{Action: m.action, Filter: &filter}
		for _, name := range []string{"note", "reason"} {
			if f := cmd.Flags().Lookup(name); f != nil {
				r.Note = f.Value.String()
			}
		}
		if f := cmd.Flags().Lookup("during-maintenance"); f != nil {
			r.DuringMaintenance = f.Value.String() == "true"
		}
		if err := change(&r); err != nil {
			return err
		}
		return ask(cmd.Context(), a, s, r, cmd.Flags().Changed("yes") || len(args) > 0)
	}
}

// each does a command with one word at a time. It goes on after a failure, tells about each,
// and ends with the exit code of the first one.
func each(a *cli.App, cmd *cobra.Command, args []string, alone func(*cobra.Command, []string) error) error {
	if len(args) == 1 {
		return alone(cmd, args)
	}
	var failed error
	for _, word := range args {
		if err := alone(cmd, []string{word}); err != nil {
			cli.Tell(a.Err, cmd, fmt.Errorf("%s: %w", word, err), cli.CodeFor(cmd, err))
			if failed == nil {
				failed = cli.Fail(cli.CodeFor(cmd, err), nil)
			}
		}
	}
	return failed
}

func label(a *cli.App) *cobra.Command {
	return edit(a, &cobra.Command{
		Use: "label LABELS [JOB...]", Short: "Set labels of jobs, or take them away",
		Long: `Sets labels of jobs, or takes them away. LABELS are separated by commas: key=value
sets a label, key- takes it away. The jobs are named, or chosen by conditions.`,
		Example: "  carillon job label team=pay,tier=gold close-day\n  carillon job label legacy- --label legacy --yes",
	}, func(word string) (r apiclient.BulkRequest, err error) {
		r.Action, r.Labels = "label", map[string]string{}
		for part := range strings.SplitSeq(word, ",") {
			key, value, sets := strings.Cut(part, "=")
			switch gone, takes := strings.CutSuffix(part, "-"); {
			case sets:
				r.Labels[key] = value
			case takes:
				r.RemoveLabels = append(r.RemoveLabels, gone)
			default:
				return r, cli.Usagef("%q is no label: write key=value to set one, or key- to take one away", part)
			}
		}
		return r, nil
	})
}

func setOwner(a *cli.App) *cobra.Command {
	var email string
	var clear bool
	cmd := edit(a, &cobra.Command{
		Use: "set-owner NAME [JOB...]", Short: "Give jobs another owner, who gets their alerts",
		Long: `Gives jobs another owner: the name of a person or a team, and the address that
alerts go to. The jobs are named, or chosen by conditions.`,
		Example: "  carillon job set-owner 'Payments team' --email pay@example.com close-day\n  carillon job set-owner 'Payments team' --email pay@example.com --label team=pay",
	}, func(word string) (apiclient.BulkRequest, error) {
		if strings.TrimSpace(word) == "" && !clear {
			return apiclient.BulkRequest{}, cli.Usagef("NAME is empty: name the owner, or take the owner away with --clear")
		}
		return apiclient.BulkRequest{Action: "set-owner", Owner: &apiclient.BulkOwner{Name: word, Email: email}}, nil
	})
	cmd.Flags().StringVar(&email, "email", "", "address that alerts go to (default: none)")
	cmd.Flags().BoolVar(&clear, "clear", false, "with the NAME '': take the owner away")
	return cmd
}

// edit completes a command whose first word says what becomes of the jobs.
func edit(a *cli.App, cmd *cobra.Command, read func(word string) (apiclient.BulkRequest, error)) *cobra.Command {
	c := &selector{}
	c.add(a, cmd, false)
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cli.Usagef("say what becomes of the jobs: %s", cmd.Use)
		}
		return c.args(cmd, args[1:])
	}
	cmd.RunE = a.WithSession(func(cmd *cobra.Command, s *cli.Session, args []string) error {
		r, err := read(args[0])
		if err != nil {
			return err
		}
		filter, err := c.resolve(a, cmd, s)
		var failed error
		filter.Ids, failed = idsOf(cmd, s, args[1:])
		if err = errors.Join(err, failed); err != nil {
			return err
		}
		r.Filter = &filter
		return ask(cmd.Context(), a, s, r, c.yes || len(args) > 1)
	})
	return cmd
}

// idsOf finds jobs by their names or ids. All that are not found are told.
func idsOf(cmd *cobra.Command, s *cli.Session, words []string) (ids []string, failed error) {
	for _, word := range words {
		job, err := cli.FindJob(cmd.Context(), s, word)
		failed = errors.Join(failed, err)
		ids = append(ids, job.Value.ID)
	}
	return ids, failed
}
