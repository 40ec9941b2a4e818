package command

import (
	"strconv"

	"github.com/spf13/cobra"

	"github.com/carillon-sched/carillon/cmd/carillon/internal/client"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/output"
)

func (a *App) quotaCommand() *cobra.Command {
	return a.serverFlags(group("quota", "Bound how much a tenant may have: jobs, fires per minute",
		"  carillon quota list\n  carillon quota set 117540000000000001 jobs 20000",
		a.quotaList(), a.quotaSet()))
}

var quotaView = output.View[client.Quota]{
	Name: func(q client.Quota) string { return q.Kind },
	Columns: []output.Column[client.Quota]{
		{Title: "QUOTA", Value: func(q client.Quota) string { return q.Kind }},
		{Title: "USED", Value: func(q client.Quota) string { return strconv.FormatInt(q.Used, 10) }, Right: true},
		{Title: "LIMIT", Value: func(q client.Quota) string { return limitText(int(q.Limit)) }, Right: true},
		{Title: "SET", Value: func(q client.Quota) string {
			if q.Default {
				return "by default"
			}
			return "for the tenant"
		}},
	},
}

func (a *App) quotaList() *cobra.Command {
	return &cobra.Command{
		Use: "list [TENANT-ID]", Aliases: []string{"ls"}, Args: cobra.MaximumNArgs(1),
		Short:   "List the quotas of your tenant, or, as a platform administrator, of any",
		Example: "  carillon quota list\n  carillon quota list 117540000000000001 -o json",
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := a.connect()
			if err != nil {
				return err
			}
			list, err := s.Quotas(cmd.Context(), append(args, "")[0])
			if err != nil {
				return err
			}
			return output.List(s.Printer, quotaView, list)
		},
	}
}

func (a *App) quotaSet() *cobra.Command {
	return &cobra.Command{
		Use: "set TENANT-ID QUOTA NUMBER|none|default", Args: cobra.ExactArgs(3),
		Short:   "Change a quota of a tenant, as a platform administrator; it takes nothing away",
		Example: "  carillon quota set 117540000000000001 fires_per_minute 60000\n  carillon quota set 117540000000000001 jobs default",
		RunE: func(cmd *cobra.Command, args []string) error {
			limit := int64(-1)
			if args[2] != "default" {
				n, err := readLimit(args[2])
				if err != nil {
					return usagef("the quota must be a number from 1, none, or default, not %q", args[2])
				}
				limit = int64(n)
			}
			s, err := a.connect()
			if err != nil {
				return err
			}
			list, err := s.SetQuota(cmd.Context(), args[0], args[1], limit)
			if err != nil {
				return err
			}
			return output.List(s.Printer, quotaView, list)
		},
	}
}
