package job

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/cli"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/document"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/output"
	"github.com/carillon-sched/carillon/internal/apiclient"
)

// deletedKind are the operations of deleted jobs, which are those of documents.
var deletedKind = document.Kind{Noun: "job", Path: "jobs"}

func jobRestore(a *cli.App) *cobra.Command {
	var executor string
	cmd := &cobra.Command{
		Use: "restore [JOB]", Short: "Bring a deleted job back, within 30 days", Args: cobra.MaximumNArgs(1),
		Long: "Brings a deleted job back with its id, its revisions and its runs. It is paused if it was. What it names must\n" +
			"be there: its executor, calendars, script and callbacks. With --executor all deleted jobs of an executor\ncome back. Of several jobs of one name, the last deleted comes back.",
		Example: "  carillon job list --deleted\n  carillon job restore close-day\n  carillon job restore --executor shop",
		RunE: a.WithSession(func(cmd *cobra.Command, s *cli.Session, args []string) error {
			if (len(args) == 1) == (executor != "") {
				return cli.Usagef("name one deleted job, or an executor with --executor")
			}
			if executor != "" {
				return restoreOf(cmd.Context(), a, s, executor)
			}
			gone, err := deletedKind.FindDeleted(cmd.Context(), s, args[0])
			if err != nil {
				return err
			}
			back, err := s.RestoreJob(cmd.Context(), gone.Value.ID)
			if err != nil {
				return err
			}
			a.Say("Job %s is back, %s.", output.Clean(back.Value.Name), back.Value.State)
			return output.One(s.Printer, jobView(a.Now()), back)
		}),
	}
	cmd.Flags().StringVar(&executor, "executor", "", "all deleted jobs of the executor of this name")
	return cmd
}

// restoreOf restores the deleted jobs of an executor. Of several jobs of one name only the last
// deleted is tried. One that cannot come back keeps no other one from it.
func restoreOf(ctx context.Context, a *cli.App, s *cli.Session, executor string) error {
	list, err := deletedKind.Of(s).Deleted(ctx)
	if err != nil {
		return err
	}
	var done []apiclient.Doc[apiclient.Job]
	var failed error
	tried := map[string]bool{}
	for _, gone := range list {
		if gone.Value.Executor != executor || tried[gone.Value.Name] {
			continue
		}
		tried[gone.Value.Name] = true
		back, err := s.RestoreJob(ctx, gone.Value.ID)
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", output.Clean(gone.Value.Name), err))
			continue
		}
		done = append(done, back)
	}
	a.Say("%d of %d deleted jobs of the executor %s are back.", len(done), len(tried), output.Clean(executor))
	return errors.Join(failed, output.List(s.Printer, jobView(a.Now()), done))
}
