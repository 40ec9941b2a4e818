package command

import (
	"github.com/spf13/cobra"

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

func (a *App) executorDeny() *cobra.Command {
	var r apiclient.CreateDenialInputBody
	cmd := &cobra.Command{
		Use: "deny EXECUTOR [INSTANCE]", Short: "Keep a process or a certificate of an executor out",
		Long: `Ends the sessions of a process on all nodes within seconds, and lets it in no
more, whatever it shows. What it runs goes on until its lease ends. A new process
is not concerned: revoke the join token to keep new ones out.`,
		Example: "  carillon executor deny shop 41 --reason 'token seen in a log'\n  carillon executor deny shop --serial 5e0c",
		Args:    cobra.RangeArgs(1, 2), ValidArgsFunction: a.completeExecutors,
		RunE: func(cmd *cobra.Command, args []string) error {
			if (len(args) == 2) == (r.Serial != "") {
				return usagef("name an instance, or a certificate with --serial")
			}
			if len(args) == 2 {
				r.InstanceID = args[1]
			}
			s, err := a.connect()
			if err != nil {
				return err
			}
			e, err := findExecutor(cmd.Context(), s, args[0])
			if err != nil {
				return err
			}
			d, err := s.CreateDenial(cmd.Context(), e.ID, r)
			if err != nil {
				return err
			}
			if done, err := output.Machine(s.Printer, d); done {
				return err
			}
			a.say("Denied %s %s of executor %s (denial %s).", d.Value.Kind, d.Value.Subject, output.Clean(e.Name), d.Value.ID)
			return nil
		},
	}
	cmd.Flags().StringVar(&r.Serial, "serial", "", "serial number of a certificate, in hexadecimal")
	cmd.Flags().StringVar(&r.Reason, "reason", "", "why, for those who read the list")
	return cmd
}

func (a *App) executorDenials() *cobra.Command {
	return &cobra.Command{
		Use: "denials EXECUTOR", Short: "List whom an executor keeps out",
		Args: cobra.ExactArgs(1), ValidArgsFunction: a.completeExecutors,
		Example: "  carillon executor denials shop\n  carillon executor denials shop -o json",
		RunE: a.onExecutor(func(cmd *cobra.Command, s *session, e apiclient.Ref, args []string) error {
			list, err := apiclient.ListOf[apiclient.Denial](cmd.Context(), 0, s.ListDenials, e.ID, apiclient.ListDenialsParams{})
			if err != nil {
				return err
			}
			if len(list) == 0 {
				a.say("Nobody is denied.")
			}
			return output.List(s.Printer, denialView, list)
		}),
	}
}

func (a *App) executorAllow() *cobra.Command {
	return &cobra.Command{
		Use: "allow EXECUTOR DENIAL", Short: "Take a denial back",
		Args: cobra.ExactArgs(2), ValidArgsFunction: a.completeExecutors,
		Example: "  carillon executor allow shop 12",
		RunE: a.onExecutor(func(cmd *cobra.Command, s *session, e apiclient.Ref, args []string) error {
			if _, err := s.DeleteDenial(cmd.Context(), e.ID, args[1]); err != nil {
				return err
			}
			a.say("Denial %s of executor %s is gone.", args[1], output.Clean(e.Name))
			return nil
		}),
	}
}
