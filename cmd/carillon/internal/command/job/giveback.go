package job

import (
	"github.com/spf13/cobra"

	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/cli"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/output"
	"github.com/carillon-sched/carillon/internal/apiclient"
)

func jobGiveBack(a *cli.App) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use: "give-back JOB", Short: "Give a job that was edited in the console back to the code that declares it",
		Long: "The job becomes what the code declares now, and follows the code again. Labels, alerts and its state stay.\n" +
			"What changes is shown before you are asked.",
		Args: cobra.ExactArgs(1), ValidArgsFunction: a.CompleteJobs,
		Example: "  carillon job give-back close-day\n  carillon job give-back close-day --yes",
		RunE: cli.About(a, cli.FindJob, func(cmd *cobra.Command, s *cli.Session, job apiclient.Doc[apiclient.Job], _ []string) error {
			declaration, err := s.GetJobDeclaration(cmd.Context(), job.Value.ID)
			if err != nil {
				return err
			}
			d := declaration.Value
			if d.GiveBack && !yes {
				if d.EditedAt != nil {
					a.Say("Edited in the console by %s, %s.", output.Clean(d.EditedBy), output.When(d.EditedAt, a.Now()))
				}
				if err := writeChanges(a.Err, d.Changes); err != nil {
					return err
				}
				if len(d.Changes) == 0 {
					a.Say("The code declares the same; the job follows it again from now on.")
				}
				question := "Give job " + output.Clean(job.Value.Name) + " back to the code"
				if d.Version != "" {
					question += " (version " + output.Clean(d.Version) + ")"
				}
				if err := a.Confirm(question + "?"); err != nil {
					return err
				}
			}
			back, err := s.GiveJobBack(cmd.Context(), job.Value.ID, apiclient.GiveBackInputBody{Hash: d.Hash})
			if err != nil {
				return err
			}
			a.Say("Job %s is the code's again, at revision %d.", output.Clean(back.Value.Name), back.Value.Revision)
			return output.One(s.Printer, jobView(a.Now()), back)
		}),
	}
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return cmd
}
