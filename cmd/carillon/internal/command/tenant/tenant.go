package tenant

import (
	"bufio"
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/cli"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/output"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/settings"
	"github.com/carillon-sched/carillon/internal/apiclient"
)

// Commands are those about a tenant, its people and what it may have.
func Commands(a *cli.App) []*cobra.Command {
	return []*cobra.Command{tenantCommand(a), userCommand(a), invitationCommand(a), apiKeyCommand(a), limitCommand(a), quotaCommand(a), retentionCommand(a)}
}

func tenantCommand(a *cli.App) *cobra.Command {
	return a.ServerFlags(cli.Group("tenant", "Make, rename, disable and delete tenants, as a platform administrator",
		"  carillon tenant list\n  carillon tenant disable acme --note unpaid\n  carillon tenant delete acme",
		tenantList(a), tenantCreate(a), tenantRename(a), tenantDisable(a), tenantEnable(a), tenantDelete(a), tenantRestore(a)))
}

func tenantView(now time.Time) output.View[apiclient.Tenant] {
	return output.View[apiclient.Tenant]{
		Name: func(t apiclient.Tenant) string { return t.Name },
		Columns: []output.Column[apiclient.Tenant]{
			{Title: "ID", Value: func(t apiclient.Tenant) string { return t.ID }},
			{Title: "NAME", Value: func(t apiclient.Tenant) string { return t.Name }},
			{Title: "STATE", Value: func(t apiclient.Tenant) string { return t.State }},
			{Title: "CELL", Value: func(t apiclient.Tenant) string { return t.Cell }, Drop: 4},
			{Title: "DELETED FOR GOOD", Value: func(t apiclient.Tenant) string { return output.When(t.DeleteAt, now) }, Drop: 2},
			{Title: "NOTE", Value: func(t apiclient.Tenant) string { return t.Note }, Drop: 3},
			{Title: "CREATED", Value: func(t apiclient.Tenant) string { return output.Stamp(t.CreatedAt) }, Drop: 1},
		},
	}
}

func listTenants(ctx context.Context, s *cli.Session) ([]apiclient.Doc[apiclient.Tenant], error) {
	return apiclient.List[apiclient.Tenant](ctx, 0, s.ListTenants, apiclient.ListTenantsParams{})
}

// onTenant is for commands whose first argument is a tenant, by name or id.
func onTenant(a *cli.App, run func(*cobra.Command, *cli.Session, apiclient.Tenant, []string) error) func(*cobra.Command, []string) error {
	return a.WithSession(func(cmd *cobra.Command, s *cli.Session, args []string) error {
		list, err := listTenants(cmd.Context(), s)
		t, err := cli.Listed("tenant", "tenant list", args[0], list, err, func(t apiclient.Tenant) (id, name string) { return t.ID, t.Name })
		if err != nil {
			return err
		}
		return run(cmd, s, t.Value, args)
	})
}

func tenantList(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List all tenants", Args: cobra.NoArgs, Example: "  carillon tenant list",
		RunE: a.WithSession(func(cmd *cobra.Command, s *cli.Session, _ []string) error {
			list, err := listTenants(cmd.Context(), s)
			return cli.PrintList(a, s, tenantView(a.Now()), list, err, "")
		}),
	}
}

func tenantCreate(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "create NAME", Short: "Make a tenant", Args: cobra.ExactArgs(1), Example: "  carillon tenant create acme",
		RunE: a.WithSession(func(cmd *cobra.Command, s *cli.Session, args []string) error {
			t, err := s.CreateTenant(cmd.Context(), apiclient.CreateTenantInputBody{Name: args[0]})
			return cli.PrintOne(s, tenantView(a.Now()), t, err)
		}),
	}
}

func tenantRename(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "rename TENANT NAME", Short: "Rename a tenant; sessions, keys and executors go on", Args: cobra.ExactArgs(2),
		Example: "  carillon tenant rename acme acme-europe",
		RunE: onTenant(a, func(cmd *cobra.Command, s *cli.Session, t apiclient.Tenant, args []string) error {
			if _, err := s.RenameTenant(cmd.Context(), t.ID, apiclient.RenameTenantParams{IfMatch: "*"}, apiclient.RenameTenantInputBody{Name: args[1]}); err != nil {
				return err
			}
			a.Say("Renamed %s to %s. Who logs in with --tenant has to name the new one.", output.Clean(t.Name), output.Clean(args[1]))
			return nil
		}),
	}
}

func tenantDisable(a *cli.App) *cobra.Command {
	var in apiclient.DisableInputBody
	cmd := &cobra.Command{
		Use: "disable TENANT", Short: "Let nobody of a tenant in and start nothing, until it is enabled again", Args: cobra.ExactArgs(1),
		Example: "  carillon tenant disable acme --note unpaid",
		RunE: onTenant(a, func(cmd *cobra.Command, s *cli.Session, t apiclient.Tenant, _ []string) error {
			if _, err := s.DisableTenant(cmd.Context(), t.ID, apiclient.DisableTenantParams{}, in); err != nil {
				return err
			}
			a.Say("Disabled %s. Again: carillon tenant enable %[1]s", output.Clean(t.Name))
			return nil
		}),
	}
	cmd.Flags().StringVar(&in.Note, "note", "", "why")
	return cmd
}

func tenantEnable(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "enable TENANT", Short: "Let a tenant take part again", Args: cobra.ExactArgs(1), Example: "  carillon tenant enable acme",
		RunE: onTenant(a, func(cmd *cobra.Command, s *cli.Session, t apiclient.Tenant, _ []string) error {
			if _, err := s.EnableTenant(cmd.Context(), t.ID, apiclient.EnableTenantParams{}); err != nil {
				return err
			}
			a.Say("Enabled %s.", output.Clean(t.Name))
			return nil
		}),
	}
}

func tenantRestore(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "restore TENANT", Short: "Take the deletion of a tenant back; it is disabled then", Args: cobra.ExactArgs(1), Example: "  carillon tenant restore acme",
		RunE: onTenant(a, func(cmd *cobra.Command, s *cli.Session, t apiclient.Tenant, _ []string) error {
			if _, err := s.RestoreTenant(cmd.Context(), t.ID, apiclient.RestoreTenantParams{}); err != nil {
				return err
			}
			a.Say("Restored %s. Next: carillon tenant enable %[1]s", output.Clean(t.Name))
			return nil
		}),
	}
}

func tenantDelete(a *cli.App) *cobra.Command {
	var confirm string
	var grace time.Duration
	cmd := &cobra.Command{
		Use: "delete TENANT", Aliases: []string{"rm"}, Short: "Delete a disabled tenant with all that it has", Args: cobra.ExactArgs(1),
		Long:    "Delete a disabled tenant. It can be restored until the grace is over; then all that it has goes,\nand accounts that belong to no other tenant.",
		Example: "  carillon tenant delete acme\n  carillon tenant delete acme --confirm acme --grace 0s",
		RunE: onTenant(a, func(cmd *cobra.Command, s *cli.Session, t apiclient.Tenant, _ []string) error {
			if confirm == "" {
				answer, err := a.Ask(bufio.NewReader(a.In), "To delete the tenant with all that it has, type its name: ")
				if err != nil {
					return err
				}
				confirm = answer
			}
			gone, err := s.DeleteTenant(cmd.Context(), t.ID, apiclient.DeleteTenantParams{Name: confirm, Grace: grace.String()})
			if err != nil {
				return err
			}
			a.Say("Deleted %s. Until %s: carillon tenant restore %[1]s", output.Clean(t.Name), output.When(gone.Value.DeleteAt, a.Now()))
			return nil
		}),
	}
	cmd.Flags().StringVar(&confirm, "confirm", "", "the tenant's name, instead of typing it in")
	settings.SpanVar(cmd.Flags(), &grace, "grace", 168*time.Hour, "how long it can be restored; 0s: not at all")
	return cmd
}
