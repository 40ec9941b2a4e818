// Package search answers: which objects does a text mean?
package search

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/cli"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/output"
	"github.com/carillon-sched/carillon/internal/apiclient"
)

var view = output.View[apiclient.SearchHit]{
	Name: func(h apiclient.SearchHit) string { return h.Name },
	Columns: []output.Column[apiclient.SearchHit]{
		{Title: "KIND", Value: func(h apiclient.SearchHit) string { return h.Kind }},
		{Title: "NAME", Value: func(h apiclient.SearchHit) string { return h.Name }},
		{Title: "ID", Value: func(h apiclient.SearchHit) string { return h.ID }},
		{Title: "HINT", Value: func(h apiclient.SearchHit) string { return h.Hint }, Drop: 1},
	},
}

// Command is carillon search.
func Command(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use: "search TEXT", Short: "Find jobs, runs, timers, executors and documents by name, id or label", Args: cobra.ExactArgs(1),
		Long: `Finds what has the text as its id, its name or a part of its name. KEY=VALUE finds jobs by
a label, too. Timers are found by the beginning of their key, and runs by their id. At most
10 of each kind are shown. The exit code is 3 if there is nothing.`,
		Example: "  carillon search nightly\n  carillon search team=pay -o json",
		RunE: a.WithSession(func(cmd *cobra.Command, s *cli.Session, args []string) error {
			found, err := s.Search(cmd.Context(), apiclient.SearchParams{Q: args[0]})
			if err != nil {
				return err
			}
			if err := show(a, s, found); err != nil {
				return err
			}
			if len(found.Value.Items) == 0 {
				return cli.Fail(cli.ExitNotFound, fmt.Errorf("nothing has the id, the name or the label %q; a part of a name is enough", args[0]))
			}
			return nil
		}),
	}
	cli.NameField(cmd, "query.q", "TEXT")
	return a.ServerFlags(cmd)
}

func show(a *cli.App, s *cli.Session, found apiclient.Doc[apiclient.SearchHits]) error {
	if done, err := cli.PrintMachine(s, found, nil); done || err != nil {
		return err
	}
	var hits []apiclient.Doc[apiclient.SearchHit]
	for _, h := range found.Value.Items {
		hits = append(hits, apiclient.Doc[apiclient.SearchHit]{Value: h})
	}
	if len(hits) > 0 {
		if err := output.List(s.Printer, view, hits); err != nil {
			return err
		}
	}
	if more := found.Value.More; len(more) > 0 {
		a.Say("There are more of: %s. A longer text finds fewer.", strings.Join(more, ", "))
	}
	return nil
}
