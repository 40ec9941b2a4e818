package executor

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/cli"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/document"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/output"
	"github.com/carillon-sched/carillon/internal/apiclient"
)

// changeExecutor sends one field, also an empty one. There is nothing to merge: any
// version will do.
func changeExecutor(a *cli.App, cmd *cobra.Command, word, field string, value any) (apiclient.Doc[apiclient.ExecutorDetail], error) {
	s, err := a.Connect()
	if err != nil {
		return apiclient.Doc[apiclient.ExecutorDetail]{}, err
	}
	e, err := cli.FindExecutor(cmd.Context(), s, word)
	if err != nil {
		return apiclient.Doc[apiclient.ExecutorDetail]{}, err
	}
	return s.UpdateExecutor(cmd.Context(), e.ID, apiclient.UpdateExecutorParams{IfMatch: "*"}, apiclient.UpdateExecutorInputBody{},
		apiclient.Body(map[string]any{field: value}))
}

func executorRename(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "rename EXECUTOR NAME", Short: "Give an executor another name; the former one goes on to lead to it",
		Args: cobra.ExactArgs(2), ValidArgsFunction: a.CompleteExecutors,
		Example: "  carillon executor rename shop store\n  carillon executor forget store shop   # when nothing uses the former name any more",
		RunE: func(cmd *cobra.Command, args []string) error {
			e, err := changeExecutor(a, cmd, args[0], "name", args[1])
			if err != nil {
				return err
			}
			a.Say("Renamed %s to %s. Processes, programs and API keys may go on using %[1]s.", output.Clean(args[0]), output.Clean(e.Value.Name))
			return nil
		},
	}
}

func executorDescribe(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "describe EXECUTOR TEXT", Short: "Say what an executor is for", Args: cobra.ExactArgs(2), ValidArgsFunction: a.CompleteExecutors,
		Example: "  carillon executor describe shop 'Orders and stock'",
		RunE: func(cmd *cobra.Command, args []string) error {
			e, err := changeExecutor(a, cmd, args[0], "description", args[1])
			if err != nil {
				return err
			}
			a.Say("Described %s.", output.Clean(e.Value.Name))
			return nil
		},
	}
}

func executorCallbacks(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "callbacks EXECUTOR [OTHER]...", Short: "Say which executors callbacks of jobs declared in an executor's code may use",
		Long: "The list replaces the former one. Without OTHER the code may name handlers of its own executor alone. carillon stands for addresses and connections.",
		Args: cobra.MinimumNArgs(1), ValidArgsFunction: a.CompleteExecutors,
		Example: "  carillon executor callbacks shop billing carillon\n  carillon executor callbacks shop   # its own alone",
		RunE: func(cmd *cobra.Command, args []string) error {
			e, err := changeExecutor(a, cmd, args[0], "callbacksTo", args[1:])
			if err != nil {
				return err
			}
			reach := append([]string{e.Value.Name}, e.Value.CallbacksTo...)
			a.Say("Callbacks that the code of %s declares may use: %s.", output.Clean(e.Value.Name), output.Clean(strings.Join(reach, ", ")))
			return nil
		},
	}
}

func executorForget(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "forget EXECUTOR FORMER-NAME", Short: "Free a former name of an executor; what still uses it is refused", Args: cobra.ExactArgs(2),
		ValidArgsFunction: a.CompleteExecutors, Example: "  carillon executor forget store shop",
		RunE: cli.About(a, cli.FindExecutor, func(cmd *cobra.Command, s *cli.Session, e apiclient.Ref, args []string) error {
			if err := cli.Gone(s.RemoveFormerName(cmd.Context(), e.ID, args[1])); err != nil {
				return err
			}
			a.Say("%s is not known as %s any more.", output.Clean(e.Name), output.Clean(args[1]))
			return nil
		}),
	}
}

func executorDelete(a *cli.App) *cobra.Command {
	var p apiclient.DeleteExecutorParams
	var jobs, instances bool
	cmd := a.DeleteCommand("executor", &cobra.Command{
		Use: "delete EXECUTOR", Short: "Delete an executor; its ended runs can still be read", ValidArgsFunction: a.CompleteExecutors,
		Long:    "Delete an executor with its join tokens, former names, denials and handlers. While it has jobs, pending timers or instances it is refused, with how many, unless they are to go too.",
		Example: "  carillon executor delete old-shop\n  carillon executor delete old-shop --jobs --instances --yes",
	}, func(ctx context.Context, s *cli.Session, word string) (string, func() error, error) {
		e, err := cli.FindExecutor(ctx, s, word)
		if jobs {
			p.Jobs = "delete"
		}
		if instances {
			p.Instances = "end"
		}
		return e.Name, func() error { return cli.Gone(s.DeleteExecutor(ctx, e.ID, p)) }, err
	})
	cmd.Flags().BoolVar(&jobs, "jobs", false, "delete its jobs and cancel their pending timers")
	cmd.Flags().BoolVar(&instances, "instances", false, "end the sessions of its processes; what they run is lost")
	return cmd
}

// deletedKind are the operations of deleted executors, which are those of documents.
var deletedKind = document.Kind{Noun: "executor", Path: "executors"}

func executorRestore(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "restore EXECUTOR", Short: "Bring a deleted executor back, within 30 days", Args: cobra.ExactArgs(1),
		Long: "Brings a deleted executor back, enabled, with its id, description and limit. Join tokens, denials, former\n" +
			"names and handlers do not come back. Its jobs are restored by: carillon job restore --executor EXECUTOR",
		Example: "  carillon executor list --deleted\n  carillon executor restore shop",
		RunE: a.WithSession(func(cmd *cobra.Command, s *cli.Session, args []string) error {
			gone, err := deletedKind.FindDeleted(cmd.Context(), s, args[0])
			if err != nil {
				return err
			}
			back, err := s.RestoreExecutor(cmd.Context(), gone.Value.ID)
			if err != nil {
				return err
			}
			name := output.Clean(back.Value.Name)
			a.Say("Executor %s is back. Its processes need a join token: carillon executor token create %s", name, name)
			a.Say("If it had jobs, bring them back with: carillon job restore --executor %s", name)
			return output.One(s.Printer, executorView, back)
		}),
	}
}
