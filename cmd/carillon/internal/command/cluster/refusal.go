package cluster

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/cli"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/output"
	"github.com/carillon-sched/carillon/internal/apiclient"
	"github.com/carillon-sched/carillon/internal/spelling"
)

func refusalColumns(now time.Time) []output.Column[apiclient.Refusal] {
	return []output.Column[apiclient.Refusal]{
		{Title: "LAST", Value: func(r apiclient.Refusal) string { return output.When(&r.LastAt, now) }},
		{Title: "TIMES", Value: func(r apiclient.Refusal) string { return cli.Number(r.Times) }, Right: true},
		{Title: "CODE", Value: func(r apiclient.Refusal) string { return r.Code }},
		{Title: "EXECUTOR", Value: func(r apiclient.Refusal) string { return r.Executor }},
		{Title: "INSTANCE", Value: func(r apiclient.Refusal) string { return r.Instance }, Drop: 2},
		{Title: "ADDRESS", Value: func(r apiclient.Refusal) string { return r.Remote }, Drop: 1},
		{Title: "NODE", Value: func(r apiclient.Refusal) string { return r.Node }, Wide: true},
		{Title: "WHY", Value: func(r apiclient.Refusal) string { return r.Message }},
	}
}

func clusterRefusals(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "refusals", Short: "List processes that were turned away from the executor port, and why, as a platform administrator", Args: cobra.NoArgs,
		Example: "  carillon cluster refusals",
		RunE: a.WithSession(func(cmd *cobra.Command, s *cli.Session, _ []string) error {
			doc, err := s.ListRefusals(cmd.Context())
			if done, err := cli.PrintMachine(s, doc, err); done {
				return err
			}
			if n := doc.Value.Unheard; n > 0 {
				a.Say("%s closed before saying who connects: there were too many.", spelling.Count(n, "connection was", "connections were"))
			}
			if len(doc.Value.Items) == 0 {
				a.Say("Nobody was turned away within 30 days.")
				return nil
			}
			return output.Rows(s.Printer, refusalColumns(a.Now()), doc.Value.Items)
		}),
	}
}
