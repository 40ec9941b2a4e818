package executor

import (
	"github.com/spf13/cobra"

	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/cli"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/output"
	"github.com/carillon-sched/carillon/internal/apiclient"
)

func executorDisable(a *cli.App) *cobra.Command {
	var in apiclient.DisableInputBody
	cmd := &cobra.Command{
		Use: "disable EXECUTOR", Short: "Start nothing on an executor and admit no process, until it is enabled again",
		Args: cobra.ExactArgs(1), ValidArgsFunction: a.CompleteExecutors,
		Example: "  carillon executor disable shop --note 'moving to another data centre'",
		RunE: cli.About(a, cli.FindExecutor, func(cmd *cobra.Command, s *cli.Session, e apiclient.Ref, _ []string) error {
			if _, err := s.DisableExecutor(cmd.Context(), e.ID, apiclient.DisableExecutorParams{}, in); err != nil {
				return err
			}
			a.Say("Disabled %s: its jobs are paused, and what runs may end. Again: carillon executor enable %[1]s", output.Clean(e.Name))
			return nil
		}),
	}
	cmd.Flags().StringVar(&in.Note, "note", "", "why")
	return cmd
}

func executorEnable(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "enable EXECUTOR", Short: "Let an executor take part again", Args: cobra.ExactArgs(1), ValidArgsFunction: a.CompleteExecutors,
		Example: "  carillon executor enable shop",
		RunE: cli.About(a, cli.FindExecutor, func(cmd *cobra.Command, s *cli.Session, e apiclient.Ref, _ []string) error {
			if _, err := s.EnableExecutor(cmd.Context(), e.ID, apiclient.EnableExecutorParams{}); err != nil {
				return err
			}
			a.Say("Enabled %s: its jobs go on, and its processes come back within ten seconds.", output.Clean(e.Name))
			return nil
		}),
	}
}
