package command

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/carillon-sched/carillon/cmd/carillon/internal/output"
	"github.com/carillon-sched/carillon/internal/apiclient"
)

// keyRoles are the roles that a key may have, the least first.
var keyRoles = []string{"caller", "viewer", "operator", "editor", "scripter", "admin"}

var apiKeyView = output.View[apiclient.APIKey]{
	Name: func(k apiclient.APIKey) string { return k.ID },
	Columns: []output.Column[apiclient.APIKey]{
		{Title: "KEY", Value: func(k apiclient.APIKey) string { return k.ID }},
		{Title: "NAME", Value: func(k apiclient.APIKey) string { return k.Name }},
		{Title: "BEGINS", Value: func(k apiclient.APIKey) string { return k.Prefix }},
		{Title: "ROLE", Value: func(k apiclient.APIKey) string { return k.Role }},
		{Title: "EXPIRES", Value: func(k apiclient.APIKey) string { return stampOr(k.ExpiresAt, "never") }},
		{Title: "LAST USED", Value: func(k apiclient.APIKey) string { return stampOr(k.LastUsedAt, "never") }, Drop: 1},
		{Title: "MAY CALL", Value: func(k apiclient.APIKey) string {
			if len(k.CallExecutors) == 0 {
				return "all"
			}
			return strings.Join(k.CallExecutors, ", ")
		}, Drop: 2},
		{Title: "BY", Value: func(k apiclient.APIKey) string { return k.CreatedBy }, Drop: 3},
	},
}

func stampOr(t *time.Time, otherwise string) string {
	if t == nil {
		return otherwise
	}
	return output.Stamp(*t)
}

func (a *App) apiKeyCommand() *cobra.Command {
	return a.serverFlags(group("api-key", "Make, list and revoke keys for programs that use the API",
		"  carillon api-key create deploys --role editor\n  carillon api-key list",
		a.apiKeyCreate(), a.apiKeyList(), a.apiKeyRevoke()))
}

func (a *App) apiKeyCreate() *cobra.Command {
	var r apiclient.CreateAPIKeyInputBody
	var expires time.Duration
	cmd := &cobra.Command{
		Use: "create NAME", Short: "Make an API key and print its secret",
		Long: `Makes an API key and prints its secret, which cannot be read again, on standard
output. A program sends it as "Authorization: Bearer SECRET"; carillon itself takes
it as CARILLON_API_KEY.`,
		Example: "  carillon api-key create deploys --role editor --expires 2160h > key.txt\n  carillon api-key create orders --role caller --call shop",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if expires < 0 {
				return usagef("--expires must not be negative")
			}
			s, err := a.connect()
			if err != nil {
				return err
			}
			if r.Name = args[0]; expires > 0 {
				r.ExpiresAt = output.Stamp(a.now().Add(expires))
			}
			key, err := s.CreateAPIKey(cmd.Context(), r)
			if err != nil {
				return err
			}
			if done, err := output.Machine(s.Printer, key); done {
				return err
			}
			a.say("Key %s, %s. The secret is shown only now:", key.Value.ID, key.Value.Role)
			_, err = fmt.Fprintln(a.out, key.Value.Secret)
			return err
		},
	}
	choiceFlag(cmd, &r.Role, "role", "viewer", keyRoles, "what it may do: "+orList(keyRoles))
	cmd.Flags().DurationVar(&expires, "expires", 0, "after this much time, for example 24h (0 = never)")
	cmd.Flags().StringSliceVar(&r.CallExecutors, "call", nil, "executors whose handlers it may call (default: all)")
	return cmd
}

func (a *App) apiKeyList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List the tenant's API keys", Args: cobra.NoArgs,
		Example: "  carillon api-key list\n  carillon api-key list -o json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := a.connect()
			if err != nil {
				return err
			}
			keys, err := apiclient.List[apiclient.APIKey](cmd.Context(), 0, s.ListAPIKeys, apiclient.ListAPIKeysParams{})
			if err != nil {
				return err
			}
			if len(keys) == 0 {
				a.say("No keys. Make one with: carillon api-key create NAME --role ROLE")
			}
			return output.List(s.Printer, apiKeyView, keys)
		},
	}
}

func (a *App) apiKeyRevoke() *cobra.Command {
	return &cobra.Command{
		Use: "revoke KEY", Short: "Revoke an API key; it ends within 5 seconds on all nodes", Args: cobra.ExactArgs(1),
		Example: "  carillon api-key revoke 12",
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := a.connect()
			if err != nil {
				return err
			}
			if _, err := s.RevokeAPIKey(cmd.Context(), args[0]); err != nil {
				return err
			}
			a.say("Revoked key %s.", args[0])
			return nil
		},
	}
}
