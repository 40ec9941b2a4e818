package bulk

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/cli"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/output"
	"github.com/carillon-sched/carillon/internal/apiclient"
)

// Command is carillon bulk with what is below it. The commands of jobs and runs get
// selectors.
func Command(a *cli.App) *cobra.Command {
	a.Extend(func(find func(...string) *cobra.Command) { extend(a, find) })
	group := cli.Group("bulk", "Look at operations on many jobs or runs, end and repeat them",
		"  carillon bulk list\n  carillon bulk get 7301",
		list(a), get(a),
		one(a, "cancel OPERATION", "End an operation; what is done stays", "  carillon bulk cancel 7301", func(cmd *cobra.Command, s *cli.Session, id string) error {
			o, err := s.CancelBulk(cmd.Context(), id)
			return cli.PrintOne(s, view, o, err)
		}),
		one(a, "retry OPERATION", "Do it again with the items that have failed", "  carillon bulk retry 7301", func(cmd *cobra.Command, s *cli.Session, id string) error {
			o, err := s.RetryBulk(cmd.Context(), id)
			if err != nil {
				return err
			}
			return await(cmd.Context(), a, s, o.Value)
		}))
	group.Long = `Shows bulk operations. A command on many items makes one, for example
carillon job pause --label team=pay, or carillon run retry --state failed --since 24h.
The commands with selections are: job pause, resume, run, delete, label, set-owner, and
run retry and cancel. An operation goes on when its command ends.`
	return a.ServerFlags(group)
}

func one(a *cli.App, use, short, example string, do func(*cobra.Command, *cli.Session, string) error) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Example: example, Args: cobra.ExactArgs(1),
		RunE: a.WithSession(func(cmd *cobra.Command, s *cli.Session, args []string) error { return do(cmd, s, args[0]) }),
	}
}

var view = output.View[apiclient.BulkOperation]{
	Name: func(o apiclient.BulkOperation) string { return o.ID },
	Columns: []output.Column[apiclient.BulkOperation]{
		{Title: "ID", Value: func(o apiclient.BulkOperation) string { return o.ID }},
		{Title: "ACTION", Value: func(o apiclient.BulkOperation) string { return o.Action }},
		{Title: "STATE", Value: func(o apiclient.BulkOperation) string { return o.State }},
		{Title: "ITEMS", Value: func(o apiclient.BulkOperation) string { return cli.Number(o.Total) }, Right: true},
		{Title: "DONE", Value: func(o apiclient.BulkOperation) string { return cli.Number(o.Done) }, Right: true},
		{Title: "SKIPPED", Value: func(o apiclient.BulkOperation) string { return cli.Number(o.Skipped) }, Right: true},
		{Title: "FAILED", Value: func(o apiclient.BulkOperation) string { return cli.Number(o.Failed) }, Right: true},
		{Title: "BEGINS", Value: func(o apiclient.BulkOperation) string { return cli.StampOrEmpty(o.StartsAt) }, Drop: 4},
		{Title: "ASKED FOR", Value: func(o apiclient.BulkOperation) string { return cli.StampOrEmpty(o.CreatedAt) }, Drop: 2},
		{Title: "BY", Value: func(o apiclient.BulkOperation) string { return o.CreatedBy }, Drop: 1},
		{Title: "NOTE", Value: func(o apiclient.BulkOperation) string { return cli.FirstLine(o.Note) }, Drop: 3},
	},
}

func list(a *cli.App) *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List operations, newest first", Args: cobra.NoArgs,
		Example: "  carillon bulk list\n  carillon bulk list -n 1 -o json",
		RunE: a.WithSession(func(cmd *cobra.Command, s *cli.Session, _ []string) error {
			all, err := apiclient.List[apiclient.BulkOperation](cmd.Context(), limit, s.ListBulk, apiclient.ListBulkParams{})
			return cli.PrintList(a, s, view, all, err, "")
		}),
	}
	cli.LimitFlag(cmd, &limit, 50, "at most this many")
	return cmd
}

var items = []output.Column[apiclient.BulkItem]{
	{Title: "ITEM", Value: func(i apiclient.BulkItem) string { return i.ID }},
	{Title: "JOB", Value: func(i apiclient.BulkItem) string { return i.Name }},
	{Title: "ANSWER", Value: func(i apiclient.BulkItem) string { return i.Outcome }},
	{Title: "WHY", Value: func(i apiclient.BulkItem) string { return i.Message }},
}

func get(a *cli.App) *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use: "get OPERATION", Short: "Show an operation, with the items that were skipped or have failed", Args: cobra.ExactArgs(1),
		Example: "  carillon bulk get 7301\n  carillon bulk get 7301 -n 0",
		RunE: a.WithSession(func(cmd *cobra.Command, s *cli.Session, args []string) error {
			o, err := s.GetBulk(cmd.Context(), args[0])
			if done, err := cli.PrintMachine(s, o, err); done {
				return err
			}
			v := o.Value
			err = s.Fields("Id", v.ID, "Action", v.Action, "State", v.State, "Message", v.Message,
				"Items", fmt.Sprintf("%d: %d done, %d skipped, %d failed", v.Total, v.Done, v.Skipped, v.Failed), "Retry of", v.RetryOf,
				"Note", v.Note, "Begins", cli.StampOrEmpty(v.StartsAt), "Until", cli.StampOrEmpty(v.Until), "Resumed by", v.ResumedBy, "Asked for", cli.StampOrEmpty(v.CreatedAt), "By", v.CreatedBy, "Ended", cli.StampOrEmpty(v.FinishedAt))
			if err != nil || v.Skipped+v.Failed == 0 {
				return err
			}
			answers, err := apiclient.ListOf[apiclient.BulkItem](cmd.Context(), limit, s.ListBulkItems, v.ID, apiclient.ListBulkItemsParams{})
			if err != nil {
				return err
			}
			rows := make([]apiclient.BulkItem, len(answers))
			for i := range answers {
				rows[i] = answers[i].Value
			}
			return output.Rows(s.Printer, items, rows)
		}),
	}
	cli.LimitFlag(cmd, &limit, 50, "at most this many items")
	return cmd
}
