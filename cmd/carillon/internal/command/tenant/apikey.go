package tenant

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/cli"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/output"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/settings"
	"github.com/carillon-sched/carillon/internal/apiclient"
)

// keyRoles are the roles that a key may have, the least first.
var keyRoles = []string{"caller", "timer", "viewer", "manager", "operator", "editor", "scripter", "admin"}

// executorFlag adds the flag that binds a role to executors.
func executorFlag(cmd *cobra.Command, to *[]string, what string) {
	cmd.Flags().StringSliceVar(to, "executor", nil, what+" to these executors alone, for example shop,books (default: the whole tenant; not with the roles scripter and admin)")
}

// boundTo lists what a role is bound to.
func boundTo(names ...string) string { return cmp.Or(strings.Join(names, ", "), "all") }

var apiKeyView = output.View[apiclient.APIKey]{
	Name: func(k apiclient.APIKey) string { return k.ID },
	Columns: []output.Column[apiclient.APIKey]{
		{Title: "KEY", Value: func(k apiclient.APIKey) string { return k.ID }},
		{Title: "NAME", Value: func(k apiclient.APIKey) string { return k.Name }},
		{Title: "BEGINS", Value: func(k apiclient.APIKey) string { return k.Prefix }},
		{Title: "ROLE", Value: func(k apiclient.APIKey) string { return k.Role }},
		{Title: "EXPIRES", Value: func(k apiclient.APIKey) string { return stampOr(k.ExpiresAt, "never") }},
		{Title: "LAST USED", Value: func(k apiclient.APIKey) string { return stampOr(k.LastUsedAt, "never") }, Drop: 1},
		{Title: "BOUND TO", Value: func(k apiclient.APIKey) string { return boundTo(slices.Concat(k.Executors, k.CallHandlers)...) }, Drop: 2},
		{Title: "BY", Value: func(k apiclient.APIKey) string { return k.CreatedBy }, Drop: 3},
	},
}

func stampOr(t *time.Time, otherwise string) string {
	if t == nil {
		return otherwise
	}
	return output.Stamp(*t)
}

func apiKeyCommand(a *cli.App) *cobra.Command {
	return a.ServerFlags(cli.Group("api-key", "Make, list and revoke keys for programs that use the API",
		"  carillon api-key create deploys --role editor\n  carillon api-key list",
		apiKeyCreate(a), apiKeyList(a), apiKeyRevoke(a)))
}

func apiKeyCreate(a *cli.App) *cobra.Command {
	var r apiclient.CreateAPIKeyInputBody
	var expires time.Duration
	var role string
	cmd := &cobra.Command{
		Use: "create NAME", Short: "Make an API key and print its secret",
		Long: `Makes an API key and prints its secret, which cannot be read again, on standard
output. A program sends it as "Authorization: Bearer SECRET"; carillon itself takes
it as CARILLON_API_KEY.`,
		Example: "  carillon api-key create deploys --role editor --expires 2160h > key.txt\n  carillon api-key create orders --role caller,timer,manager --executor shop\n  carillon api-key create orders --role timer --handler shop/cancel-order",
		Args:    cobra.ExactArgs(1),
		RunE: a.WithSession(func(cmd *cobra.Command, s *cli.Session, args []string) error {
			if expires < 0 {
				return cli.Usagef("--expires must not be negative")
			}
			for _, flag := range []string{"executor", "handler"} {
				if cmd.Flags().Changed(flag) && len(slices.Concat(r.Executors, r.CallHandlers)) == 0 {
					return cli.Usagef("--%s names nothing: leave it out for the whole tenant, or name some", flag)
				}
			}
			r.Role = strings.ReplaceAll(role, ",", "+")
			if r.Name = args[0]; expires > 0 {
				r.ExpiresAt = output.Stamp(a.Now().Add(expires))
			}
			key, err := s.CreateAPIKey(cmd.Context(), r)
			if done, err := cli.PrintMachine(s, key, err); done {
				return err
			}
			a.Say("Key %s, %s. The secret is shown only now:", key.Value.ID, key.Value.Role)
			_, err = fmt.Fprintln(a.Out, key.Value.Secret)
			return err
		}),
	}
	role = "viewer"
	cli.ChoicesFlag(cmd, &role, "role", keyRoles, "what it may do, one or several separated by commas: "+cli.OrList(keyRoles))
	settings.SpanVar(cmd.Flags(), &expires, "expires", 0, "after this much time, for example 24h (0 = never)")
	executorFlag(cmd, &r.Executors, "bind all its rights")
	cmd.Flags().StringSliceVar(&r.CallHandlers, "handler", nil, "single handlers that it may call and set timers of, as EXECUTOR/HANDLER (only with the roles caller and timer)")
	return cmd
}

func apiKeyList(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List the tenant's API keys", Args: cobra.NoArgs,
		Example: "  carillon api-key list\n  carillon api-key list -o json",
		RunE: a.WithSession(func(cmd *cobra.Command, s *cli.Session, _ []string) error {
			keys, err := apiclient.List[apiclient.APIKey](cmd.Context(), 0, s.ListAPIKeys, apiclient.ListAPIKeysParams{})
			return cli.PrintList(a, s, apiKeyView, keys, err, "No keys. Make one with: carillon api-key create NAME --role ROLE")
		}),
	}
}

func apiKeyRevoke(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "revoke KEY", Short: "Revoke an API key; it ends within 5 seconds on all nodes", Args: cobra.ExactArgs(1),
		Example: "  carillon api-key revoke 12",
		RunE: a.WithSession(func(cmd *cobra.Command, s *cli.Session, args []string) error {
			if _, err := s.RevokeAPIKey(cmd.Context(), args[0]); err != nil {
				return err
			}
			a.Say("Revoked key %s.", args[0])
			return nil
		}),
	}
}
