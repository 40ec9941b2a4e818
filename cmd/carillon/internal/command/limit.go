package command

import (
	"strconv"

	"github.com/spf13/cobra"

	"github.com/carillon-sched/carillon/cmd/carillon/internal/output"
	"github.com/carillon-sched/carillon/internal/apiclient"
)

func (a *App) limitCommand() *cobra.Command {
	return a.serverFlags(group("limit", "Bound how many runs of a tenant or an executor go on at once",
		"  carillon limit list\n  carillon limit executor shop 20",
		a.limitList(), a.limitExecutor(), a.limitTenant()))
}

var limitView = output.View[apiclient.Limit]{
	Name: func(l apiclient.Limit) string { return l.Subject.Name },
	Columns: []output.Column[apiclient.Limit]{
		{Title: "KIND", Value: func(l apiclient.Limit) string { return l.Kind }},
		{Title: "NAME", Value: func(l apiclient.Limit) string { return l.Subject.Name }},
		{Title: "LIMIT", Value: func(l apiclient.Limit) string { return limitText(l.MaxRunning) }, Right: true},
		{Title: "RUNNING", Value: func(l apiclient.Limit) string { return number(l.Running) }, Right: true},
		{Title: "WAITING", Value: func(l apiclient.Limit) string { return number(l.Waiting) }, Right: true},
		{Title: "ID", Value: func(l apiclient.Limit) string { return l.Subject.ID }, Wide: true},
	},
}

func limitText(n int64) string {
	if n == 0 {
		return "none"
	}
	return number(n)
}

// readLimit takes a number or the word none.
func readLimit(word string) (int64, error) {
	if word == "none" {
		return 0, nil
	}
	n, err := strconv.ParseInt(word, 10, 32)
	if err != nil || n < 1 {
		return 0, usagef("the limit must be a number from 1, or none, not %q", word)
	}
	return n, nil
}

func (a *App) limitList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List the limits of your tenant and its executors", Args: cobra.NoArgs,
		Example: "  carillon limit list\n  carillon limit list -o json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := a.connect()
			if err != nil {
				return err
			}
			list, err := apiclient.List[apiclient.Limit](cmd.Context(), 0, s.ListLimits, apiclient.ListLimitsParams{})
			if err != nil {
				return err
			}
			if len(list) == 0 {
				a.say("No limits. Set one with: carillon limit executor NAME NUMBER")
			}
			return output.List(s.Printer, limitView, list)
		},
	}
}

func (a *App) limitExecutor() *cobra.Command {
	return &cobra.Command{
		Use: "executor EXECUTOR NUMBER|none", Short: "Set or take away an executor's limit; runs over it wait",
		Args: cobra.ExactArgs(2), ValidArgsFunction: a.completeExecutors,
		Example: "  carillon limit executor shop 20\n  carillon limit executor shop none",
		RunE: func(cmd *cobra.Command, args []string) error {
			n, err := readLimit(args[1])
			if err != nil {
				return err
			}
			s, err := a.connect()
			if err != nil {
				return err
			}
			e, err := findExecutor(cmd.Context(), s, args[0])
			if err != nil {
				return err
			}
			l, err := s.SetExecutorLimit(cmd.Context(), e.ID, apiclient.SetLimitInputBody{MaxRunning: n})
			if err != nil {
				return err
			}
			return output.One(s.Printer, limitView, l)
		},
	}
}

func (a *App) limitTenant() *cobra.Command {
	return &cobra.Command{
		Use: "tenant TENANT-ID NUMBER|none", Short: "Set or take away a tenant's limit, as a platform administrator", Args: cobra.ExactArgs(2),
		Example: "  carillon limit tenant 117540000000000001 500",
		RunE: func(cmd *cobra.Command, args []string) error {
			n, err := readLimit(args[1])
			if err != nil {
				return err
			}
			s, err := a.connect()
			if err != nil {
				return err
			}
			l, err := s.SetTenantLimit(cmd.Context(), args[0], apiclient.SetLimitInputBody{MaxRunning: n})
			if err != nil {
				return err
			}
			return output.One(s.Printer, limitView, l)
		},
	}
}
