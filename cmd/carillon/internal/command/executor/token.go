package executor

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/cli"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/output"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/settings"
	"github.com/carillon-sched/carillon/internal/apiclient"
)

var tokenView = output.View[apiclient.JoinToken]{
	Name: func(t apiclient.JoinToken) string { return t.ID },
	Columns: []output.Column[apiclient.JoinToken]{
		{Title: "TOKEN", Value: func(t apiclient.JoinToken) string { return t.ID }},
		{Title: "NAME", Value: func(t apiclient.JoinToken) string { return t.Name }},
		{Title: "BEGINS", Value: func(t apiclient.JoinToken) string { return t.Prefix }},
		{Title: "USES", Value: usesCell, Right: true},
		{Title: "EXPIRES", Value: func(t apiclient.JoinToken) string {
			if t.ExpiresAt == nil {
				return "never"
			}
			return output.Stamp(*t.ExpiresAt)
		}, Drop: 1},
		{Title: "DECLARES JOBS", Value: func(t apiclient.JoinToken) string {
			if !t.DeclareJobs {
				return "no"
			}
			return "yes"
		}, Drop: 1},
		{Title: "CREATED", Value: func(t apiclient.JoinToken) string { return output.Stamp(t.CreatedAt) }, Drop: 2},
		{Title: "BY", Value: func(t apiclient.JoinToken) string { return t.CreatedBy }, Drop: 3},
	},
}

func usesCell(t apiclient.JoinToken) string {
	if t.MaxUses == nil {
		return cli.Number(t.Uses)
	}
	return fmt.Sprintf("%d/%d", t.Uses, *t.MaxUses)
}

func tokenCreate(a *cli.App) *cobra.Command {
	var r apiclient.CreateJoinTokenInputBody
	var expires time.Duration
	noJobs := false
	cmd := &cobra.Command{
		Use: "create EXECUTOR", Short: "Make a join token and print its secret", ValidArgsFunction: a.CompleteExecutors,
		Long: `Makes a join token and prints its secret, which cannot be read again, on standard
output. Hand it to the application as CARILLON_EXECUTOR_TOKEN.`,
		Example: "  carillon executor token create shop\n  carillon executor token create shop --name ci --expires 24h --max-uses 10 > token.txt",
		Args:    cobra.ExactArgs(1),
		RunE: a.WithSession(func(cmd *cobra.Command, s *cli.Session, args []string) error {
			if expires < 0 {
				return cli.Usagef("--expires must not be negative")
			}
			e, err := cli.FindExecutor(cmd.Context(), s, args[0])
			if err != nil {
				return err
			}
			if noJobs {
				r.DeclareJobs = new(bool)
			}
			if expires > 0 {
				r.ExpiresAt = output.Stamp(a.Now().Add(expires))
			}
			token, err := s.CreateJoinToken(cmd.Context(), e.ID, r)
			if done, err := cli.PrintMachine(s, token, err); done {
				return err
			}
			a.Say("Token %s of executor %s. The secret is shown only now:", token.Value.ID, output.Clean(e.Name))
			_, err = fmt.Fprintln(a.Out, token.Value.Secret)
			return err
		}),
	}
	cmd.Flags().StringVar(&r.Name, "name", "", "what it is for (default: the executor's name)")
	settings.SpanVar(cmd.Flags(), &expires, "expires", 0, "after this much time, for example 24h (0 = never)")
	cmd.Flags().BoolVar(&noJobs, "no-jobs", false, "applications that register with it may declare no jobs in their code")
	cli.NumberFlag(cmd.Flags(), &r.MaxUses, "max-uses", "", 0, 0, 0, "processes that may register with it (0 = no limit)")
	return cmd
}

func tokenList(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "list EXECUTOR", Aliases: []string{"ls"}, Short: "List an executor's join tokens",
		Args: cobra.ExactArgs(1), ValidArgsFunction: a.CompleteExecutors,
		Example: "  carillon executor token list shop\n  carillon executor token list shop -o json",
		RunE: cli.About(a, cli.FindExecutor, func(cmd *cobra.Command, s *cli.Session, e apiclient.Ref, args []string) error {
			tokens, err := apiclient.ListOf[apiclient.JoinToken](cmd.Context(), 0, s.ListJoinTokens, e.ID, apiclient.ListJoinTokensParams{})
			if err != nil {
				return err
			}
			if len(tokens) == 0 {
				a.Say("No tokens. Make one with: carillon executor token create %s", output.Clean(e.Name))
			}
			return output.List(s.Printer, tokenView, tokens)
		}),
	}
}

func tokenRevoke(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "revoke EXECUTOR TOKEN", Short: "Revoke a join token; who is connected stays so",
		Args: cobra.ExactArgs(2), ValidArgsFunction: a.CompleteExecutors,
		Example: "  carillon executor token revoke shop 12\n  carillon executor token list shop -o name | xargs -n1 carillon executor token revoke shop",
		RunE: cli.About(a, cli.FindExecutor, func(cmd *cobra.Command, s *cli.Session, e apiclient.Ref, args []string) error {
			if _, err := s.RevokeJoinToken(cmd.Context(), e.ID, args[1]); err != nil {
				return err
			}
			a.Say("Revoked token %s of executor %s.", args[1], output.Clean(e.Name))
			return nil
		}),
	}
}
