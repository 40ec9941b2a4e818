package tenant

import (
	"strconv"

	"github.com/spf13/cobra"

	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/cli"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/output"
	"github.com/carillon-sched/carillon/internal/apiclient"
)

func limitCommand(a *cli.App) *cobra.Command {
	return a.ServerFlags(cli.Group("limit", "Bound how many runs of a tenant or an executor go on at once",
		"  carillon limit list\n  carillon limit executor shop 20",
		limitList(a), limitExecutor(a), limitTenant(a)))
}

var limitView = output.View[apiclient.Limit]{
	Name: func(l apiclient.Limit) string { return l.Subject.Name },
	Columns: []output.Column[apiclient.Limit]{
		{Title: "KIND", Value: func(l apiclient.Limit) string { return l.Kind }},
		{Title: "NAME", Value: func(l apiclient.Limit) string { return l.Subject.Name }},
		{Title: "LIMIT", Value: func(l apiclient.Limit) string { return limitText(l.MaxRunning) }, Right: true},
		{Title: "RUNNING", Value: func(l apiclient.Limit) string { return cli.Number(l.Running) }, Right: true},
		{Title: "WAITING", Value: func(l apiclient.Limit) string { return cli.Number(l.Waiting) }, Right: true},
		{Title: "ID", Value: func(l apiclient.Limit) string { return l.Subject.ID }, Wide: true},
	},
}

func limitText(n int64) string {
	if n == 0 {
		return "none"
	}
	return cli.Number(n)
}

// readLimit takes a number or the word none.
func readLimit(word string) (int64, error) {
	if word == "none" {
		return 0, nil
	}
	n, err := strconv.ParseInt(word, 10, 64)
	if err != nil || n < 1 {
		return 0, cli.Usagef("the limit must be a number from 1, or none, not %q", word)
	}
	return n, nil
}

func limitList(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List the limits of your tenant and its executors", Args: cobra.NoArgs,
		Example: "  carillon limit list\n  carillon limit list -o json",
		RunE: a.WithSession(func(cmd *cobra.Command, s *cli.Session, _ []string) error {
			list, err := apiclient.List[apiclient.Limit](cmd.Context(), 0, s.ListLimits, apiclient.ListLimitsParams{})
			return cli.PrintList(a, s, limitView, list, err, "No limits. Set one with: carillon limit executor NAME NUMBER")
		}),
	}
}

func limitExecutor(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "executor EXECUTOR NUMBER|none", Short: "Set or take away an executor's limit; runs over it wait",
		Args: cobra.ExactArgs(2), ValidArgsFunction: a.CompleteExecutors,
		Example: "  carillon limit executor shop 20\n  carillon limit executor shop none",
		RunE: a.WithSession(func(cmd *cobra.Command, s *cli.Session, args []string) error {
			n, err := readLimit(args[1])
			if err != nil {
				return err
			}
			e, err := cli.FindExecutor(cmd.Context(), s, args[0])
			if err != nil {
				return err
			}
			l, err := s.SetExecutorLimit(cmd.Context(), e.ID, apiclient.SetLimitInputBody{MaxRunning: n})
			return cli.PrintOne(s, limitView, l, err)
		}),
	}
}

func limitTenant(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "tenant TENANT-ID NUMBER|none", Short: "Set or take away a tenant's limit, as a platform administrator", Args: cobra.ExactArgs(2),
		Example: "  carillon limit tenant 117540000000000001 500",
		RunE: a.WithSession(func(cmd *cobra.Command, s *cli.Session, args []string) error {
			n, err := readLimit(args[1])
			if err != nil {
				return err
			}
			l, err := s.SetTenantLimit(cmd.Context(), args[0], apiclient.SetLimitInputBody{MaxRunning: n})
			return cli.PrintOne(s, limitView, l, err)
		}),
	}
}
