package executor

import (
	"github.com/spf13/cobra"

	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/cli"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/output"
	"github.com/carillon-sched/carillon/internal/apiclient"
)

var denialView = output.View[apiclient.Denial]{
	Name: func(d apiclient.Denial) string { return d.ID },
	Columns: []output.Column[apiclient.Denial]{
		{Title: "DENIAL", Value: func(d apiclient.Denial) string { return d.ID }},
		{Title: "KIND", Value: func(d apiclient.Denial) string { return d.Kind }},
		{Title: "SUBJECT", Value: func(d apiclient.Denial) string { return d.Subject }},
		{Title: "INSTANCE", Value: func(d apiclient.Denial) string { return d.Instance }, Drop: 2},
		{Title: "REASON", Value: func(d apiclient.Denial) string { return d.Reason }, Drop: 1},
		{Title: "CREATED", Value: func(d apiclient.Denial) string { return output.Stamp(d.CreatedAt) }, Drop: 3},
		{Title: "BY", Value: func(d apiclient.Denial) string { return d.CreatedBy }, Drop: 4},
	},
}

func executorDeny(a *cli.App) *cobra.Command {
	var r apiclient.CreateDenialInputBody
	cmd := &cobra.Command{
		Use: "deny EXECUTOR --serial SERIAL", Short: "Keep a certificate of an executor out",
		Long: `Ends the sessions that showed a certificate on all nodes within seconds, and lets
it open none any more. What their processes run goes on until their leases end.
A process is kept out, whatever it shows, by removing it: carillon executor remove.`,
		Example: "  carillon executor deny shop --serial 5e0c --reason 'key seen in a log'",
		Args:    cobra.RangeArgs(1, 2), ValidArgsFunction: a.CompleteExecutors,
		RunE: a.WithSession(func(cmd *cobra.Command, s *cli.Session, args []string) error {
			if len(args) == 2 {
				return cli.Usagef("an instance is kept out by removing it: carillon executor remove %s", args[1])
			}
			if r.Serial == "" {
				return cli.Usagef("name the certificate with --serial; a process is kept out by: carillon executor remove INSTANCE")
			}
			e, err := cli.FindExecutor(cmd.Context(), s, args[0])
			if err != nil {
				return err
			}
			d, err := s.CreateDenial(cmd.Context(), e.ID, r)
			if done, err := cli.PrintMachine(s, d, err); done {
				return err
			}
			a.Say("Denied %s %s of executor %s (denial %s).", d.Value.Kind, d.Value.Subject, output.Clean(e.Name), d.Value.ID)
			return nil
		}),
	}
	cmd.Flags().StringVar(&r.Serial, "serial", "", "serial number of a certificate, in hexadecimal")
	cmd.Flags().StringVar(&r.Reason, "reason", "", "why, for those who read the list")
	return cmd
}

func executorDenials(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "denials EXECUTOR", Short: "List whom an executor keeps out",
		Args: cobra.ExactArgs(1), ValidArgsFunction: a.CompleteExecutors,
		Example: "  carillon executor denials shop\n  carillon executor denials shop -o json",
		RunE: cli.About(a, cli.FindExecutor, func(cmd *cobra.Command, s *cli.Session, e apiclient.Ref, args []string) error {
			list, err := apiclient.ListOf[apiclient.Denial](cmd.Context(), 0, s.ListDenials, e.ID, apiclient.ListDenialsParams{})
			return cli.PrintList(a, s, denialView, list, err, "Nobody is denied.")
		}),
	}
}

func executorAllow(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "allow EXECUTOR DENIAL", Short: "Take a denial back",
		Args: cobra.ExactArgs(2), ValidArgsFunction: a.CompleteExecutors,
		Example: "  carillon executor allow shop 12",
		RunE: cli.About(a, cli.FindExecutor, func(cmd *cobra.Command, s *cli.Session, e apiclient.Ref, args []string) error {
			if _, err := s.DeleteDenial(cmd.Context(), e.ID, args[1]); err != nil {
				return err
			}
			a.Say("Denial %s of executor %s is gone.", args[1], output.Clean(e.Name))
			return nil
		}),
	}
}
