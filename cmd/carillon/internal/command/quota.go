package command

import (
	"github.com/spf13/cobra"

	"github.com/carillon-sched/carillon/cmd/carillon/internal/output"
	"github.com/carillon-sched/carillon/internal/apiclient"
)

func (a *App) quotaCommand() *cobra.Command {
	return a.serverFlags(group("quota", "Bound how much a tenant may have: jobs, fires per minute",
		"  carillon quota list\n  carillon quota set 117540000000000001 jobs 20000",
		a.quotaList(), a.quotaSet()))
}

var quotaView = output.View[apiclient.Quota]{
	Name: func(q apiclient.Quota) string { return q.Kind },
	Columns: []output.Column[apiclient.Quota]{
		{Title: "QUOTA", Value: func(q apiclient.Quota) string { return q.Kind }},
		{Title: "USED", Value: func(q apiclient.Quota) string { return number(q.Used) }, Right: true},
		{Title: "LIMIT", Value: func(q apiclient.Quota) string { return limitText(q.Limit) }, Right: true},
		{Title: "SET", Value: func(q apiclient.Quota) string {
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
			var list apiclient.Doc[apiclient.PageQuota]
			if len(args) == 1 {
				list, err = s.ListTenantQuotas(cmd.Context(), args[0])
			} else {
				list, err = s.ListQuotas(cmd.Context())
			}
			return printQuotas(s, list, err)
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
				limit = n
			}
			s, err := a.connect()
			if err != nil {
				return err
			}
			list, err := s.SetTenantQuotas(cmd.Context(), args[0], apiclient.SetQuotasInputBody{
				Items: []apiclient.QuotaWrite{{Kind: args[1], Limit: limit}},
			})
			return printQuotas(s, list, err)
		},
	}
}

func printQuotas(s *session, d apiclient.Doc[apiclient.PageQuota], err error) error {
	if err != nil {
		return err
	}
	page, err := apiclient.Items[apiclient.Quota](d)
	if err != nil {
		return err
	}
	return output.List(s.Printer, quotaView, page.Items)
}
