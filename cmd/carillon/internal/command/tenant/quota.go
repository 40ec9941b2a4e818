package tenant

import (
	"github.com/spf13/cobra"

	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/cli"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/output"
	"github.com/carillon-sched/carillon/internal/apiclient"
)

func quotaCommand(a *cli.App) *cobra.Command {
	return a.ServerFlags(cli.Group("quota", "Bound how much a tenant may have: jobs, fires per minute",
		"  carillon quota list\n  carillon quota set 117540000000000001 jobs 20000",
		quotaList(a), quotaSet(a)))
}

var quotaView = output.View[apiclient.Quota]{
	Name: func(q apiclient.Quota) string { return q.Kind },
	Columns: []output.Column[apiclient.Quota]{
		{Title: "QUOTA", Value: func(q apiclient.Quota) string { return q.Kind }},
		{Title: "USED", Value: func(q apiclient.Quota) string { return cli.Number(q.Used) }, Right: true},
		{Title: "LIMIT", Value: func(q apiclient.Quota) string { return limitText(q.Limit) }, Right: true},
		{Title: "SET", Value: func(q apiclient.Quota) string {
			switch {
			case !q.Default:
				return "for the tenant"
			case q.Kind == "fires_per_minute" && q.Limit == 0:
				return "by default, no other tenant has jobs"
			}
			return "by default"
		}},
	},
}

func quotaList(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "list [TENANT-ID]", Aliases: []string{"ls"}, Args: cobra.MaximumNArgs(1),
		Short:   "List the quotas of your tenant, or, as a platform administrator, of any",
		Example: "  carillon quota list\n  carillon quota list 117540000000000001 -o json",
		RunE: a.WithSession(func(cmd *cobra.Command, s *cli.Session, args []string) (err error) {
			var list apiclient.Doc[apiclient.PageQuota]
			if len(args) == 1 {
				list, err = s.ListTenantQuotas(cmd.Context(), args[0])
			} else {
				list, err = s.ListQuotas(cmd.Context())
			}
			return printQuotas(s, list, err)
		}),
	}
}

func quotaSet(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "set TENANT-ID QUOTA NUMBER|none|default", Args: cobra.ExactArgs(3),
		Short:   "Change a quota of a tenant, as a platform administrator; it takes nothing away",
		Example: "  carillon quota set 117540000000000001 fires_per_minute 60000\n  carillon quota set 117540000000000001 jobs default",
		RunE: a.WithSession(func(cmd *cobra.Command, s *cli.Session, args []string) error {
			limit := int64(-1)
			if args[2] != "default" {
				n, err := readLimit(args[2])
				if err != nil {
					return cli.Usagef("the quota must be a number from 1, none, or default, not %q", args[2])
				}
				limit = n
			}
			list, err := s.SetTenantQuotas(cmd.Context(), args[0], apiclient.SetQuotasInputBody{
				Items: []apiclient.QuotaWrite{{Kind: args[1], Limit: limit}},
			})
			return printQuotas(s, list, err)
		}),
	}
}

func printQuotas(s *cli.Session, d apiclient.Doc[apiclient.PageQuota], err error) error {
	if err != nil {
		return err
	}
	page, err := apiclient.Items[apiclient.Quota](d)
	if err != nil {
		return err
	}
	return output.List(s.Printer, quotaView, page.Items)
}
