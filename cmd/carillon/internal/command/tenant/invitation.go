package tenant

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/cli"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/output"
	"github.com/carillon-sched/carillon/internal/apiclient"
)

// userRoles are the roles that a user may have, the least first.
var userRoles = []string{"viewer", "operator", "editor", "scripter", "admin"}

// invitation is one of the tenant's, or one for the own account: the username is
// empty of those, the tenant of the others.
type invitation struct {
	apiclient.Invitation
	Tenant apiclient.TenantRef `json:"tenant"`
}

func invitationView(mine bool) output.View[invitation] {
	who := output.Column[invitation]{Title: "USER", Value: func(i invitation) string { return i.Username }}
	if mine {
		who = output.Column[invitation]{Title: "TENANT", Value: func(i invitation) string { return i.Tenant.Name }}
	}
	return output.View[invitation]{
		Name: func(i invitation) string { return i.ID },
		Columns: []output.Column[invitation]{
			{Title: "INVITATION", Value: func(i invitation) string { return i.ID }},
			who,
			{Title: "ROLE", Value: func(i invitation) string { return i.Role }},
			{Title: "EXECUTORS", Value: func(i invitation) string { return boundTo(i.Executors...) }, Drop: 2},
			{Title: "EXPIRES", Value: func(i invitation) string { return output.Stamp(i.ExpiresAt) }},
			{Title: "BY", Value: func(i invitation) string { return i.InvitedBy }, Drop: 1},
		},
	}
}

func invitationCommand(a *cli.App) *cobra.Command {
	return a.ServerFlags(cli.Group("invitation", "Invite accounts of other tenants, and answer invitations",
		"  carillon invitation create paula --role operator\n  carillon invitation mine",
		invitationCreate(a), invitationList(a, false), invitationTakeBack(a),
		invitationList(a, true), invitationAnswer(a, true), invitationAnswer(a, false)))
}

func invitationCreate(a *cli.App) *cobra.Command {
	var role string
	var executors []string
	cmd := &cobra.Command{
		Use: "create USER", Short: "Invite an account of another tenant", Args: cobra.ExactArgs(1),
		Long: "Invites an account that exists in another tenant. Nothing changes until its owner accepts,\n" +
			"within 7 days. Whether there is an account of that name is not told.",
		Example: "  carillon invitation create paula --role operator\n  carillon invitation create mei --role viewer --executor shop",
		RunE: a.WithSession(func(cmd *cobra.Command, s *cli.Session, args []string) error {
			if !slices.Contains(userRoles, role) {
				return cli.Usagef("--role must be one of %s", strings.Join(userRoles, ", "))
			}
			made, err := s.CreateInvitation(cmd.Context(), apiclient.CreateInvitationInputBody{Username: args[0], Role: role, Executors: executors})
			if done, err := cli.PrintMachine(s, made, err); done {
				return err
			}
			i := made.Value
			a.Say("Invited %s as %s, until %s: invitation %s.", output.Clean(i.Username), i.Role, output.Stamp(i.ExpiresAt), i.ID)
			return nil
		}),
	}
	cmd.Flags().StringVar(&role, "role", "viewer", "what the user may do: "+strings.Join(userRoles, ", "))
	executorFlag(cmd, &executors, "bind the role")
	_ = cmd.RegisterFlagCompletionFunc("role", cobra.FixedCompletions(userRoles, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func invitationList(a *cli.App, mine bool) *cobra.Command {
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List the tenant's open invitations", Args: cobra.NoArgs,
		Example: "  carillon invitation list",
		RunE: a.WithSession(func(cmd *cobra.Command, s *cli.Session, _ []string) (err error) {
			var list []apiclient.Doc[invitation]
			if mine {
				list, err = apiclient.List[invitation](cmd.Context(), 0, s.ListMyInvitations, apiclient.ListMyInvitationsParams{})
			} else {
				list, err = apiclient.List[invitation](cmd.Context(), 0, s.ListInvitations, apiclient.ListInvitationsParams{})
			}
			if err != nil {
				return err
			}
			if len(list) == 0 {
				a.Say("No open invitations.")
			}
			return output.List(s.Printer, invitationView(mine), list)
		}),
	}
	if mine {
		cmd.Use, cmd.Aliases = "mine", nil
		cmd.Short, cmd.Example = "List the invitations for your own account", "  carillon invitation mine"
	}
	return cmd
}

func invitationTakeBack(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "take-back INVITATION", Short: "Take an invitation of the tenant back", Args: cobra.ExactArgs(1),
		Example: "  carillon invitation take-back 12",
		RunE: a.WithSession(func(cmd *cobra.Command, s *cli.Session, args []string) error {
			if _, err := s.DeleteInvitation(cmd.Context(), args[0]); err != nil {
				return err
			}
			a.Say("Took back invitation %s.", args[0])
			return nil
		}),
	}
}

func invitationAnswer(a *cli.App, accept bool) *cobra.Command {
	use, short, said := "decline INVITATION", "Decline an invitation for your own account", "Declined invitation %s."
	if accept {
		use, short = "accept INVITATION", "Accept an invitation for your own account"
		said = "Accepted invitation %s. To work in that tenant, log in with --tenant."
	}
	return &cobra.Command{
		Use: use, Short: short, Args: cobra.ExactArgs(1),
		Example: "  carillon invitation mine\n  carillon invitation " + strings.Fields(use)[0] + " 12",
		RunE: a.WithSession(func(cmd *cobra.Command, s *cli.Session, args []string) error {
			answer := s.DeclineInvitation
			if accept {
				answer = s.AcceptInvitation
			}
			if _, err := answer(cmd.Context(), args[0]); err != nil {
				return err
			}
			a.Say(said, args[0])
			return nil
		}),
	}
}
