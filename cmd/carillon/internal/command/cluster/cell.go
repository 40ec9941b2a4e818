package cluster

import (
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/cli"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/output"
	"github.com/carillon-sched/carillon/internal/apiclient"
)

func cellCommand(a *cli.App) *cobra.Command {
	return a.ServerFlags(cli.Group("cell", "Say where other cells of the installation are, as a platform administrator",
		"  carillon cell add eu2 --cell-url https://eu2.carillon.example.com --executors eu2-a:9000,eu2-b:9000\n  carillon cell list",
		cellList(a), cellAdd(a), cellRemove(a)))
}

func cellView(now time.Time) output.View[apiclient.Cell] {
	return output.View[apiclient.Cell]{
		Name: func(c apiclient.Cell) string { return c.Name },
		Columns: []output.Column[apiclient.Cell]{
			{Title: "NAME", Value: func(c apiclient.Cell) string { return c.Name }},
			{Title: "URL", Value: func(c apiclient.Cell) string { return c.URL }},
			{Title: "EXECUTORS", Value: func(c apiclient.Cell) string { return strings.Join(c.Executors, ",") }},
			{Title: "ADDED", Value: func(c apiclient.Cell) string { return output.Stamp(c.CreatedAt) }, Drop: 1},
			{Title: "BY", Value: func(c apiclient.Cell) string { return c.CreatedBy }, Drop: 2},
		},
	}
}

func cellList(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List the other cells", Args: cobra.NoArgs, Example: "  carillon cell list",
		RunE: a.WithSession(func(cmd *cobra.Command, s *cli.Session, _ []string) error {
			list, err := apiclient.List[apiclient.Cell](cmd.Context(), 0, s.ListCells, apiclient.ListCellsParams{})
			return cli.PrintList(a, s, cellView(a.Now()), list, err, "No other cells are known here.")
		}),
	}
}

func cellAdd(a *cli.App) *cobra.Command {
	var in apiclient.SaveCellInputBody
	cmd := &cobra.Command{
		Use: "add NAME --cell-url URL --executors HOST:PORT,…", Short: "Add a cell, or change its addresses", Args: cobra.ExactArgs(1),
		Long: `Says to this cell where another one is. A tenant that is moved there
(carillon tenant move) is found by way of this cell then: who asks for it is led to
the other one. Say it in every cell, about every other one.`,
		Example: "  carillon cell add eu2 --cell-url https://eu2.carillon.example.com --executors eu2-a:9000,eu2-b:9000",
		RunE: a.WithSession(func(cmd *cobra.Command, s *cli.Session, args []string) error {
			c, err := s.SaveCell(cmd.Context(), args[0], in)
			return cli.PrintOne(s, cellView(a.Now()), c, err)
		}),
	}
	cmd.Flags().StringVar(&in.URL, "cell-url", "", "address of the cell's API and console, as clients reach it")
	cmd.Flags().StringSliceVar(&in.Executors, "executors", nil, "addresses of its executor ports, host:port, as executors reach them")
	for _, name := range []string{"cell-url", "executors"} {
		_ = cmd.MarkFlagRequired(name) // it is there
	}
	return cmd
}

func cellRemove(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "remove NAME", Aliases: []string{"rm"}, Short: "Forget a cell that no tenant of this one has moved to", Args: cobra.ExactArgs(1), Example: "  carillon cell remove eu2",
		RunE: a.WithSession(func(cmd *cobra.Command, s *cli.Session, args []string) error {
			if _, err := s.DeleteCell(cmd.Context(), args[0]); err != nil {
				return err
			}
			a.Say("Forgot the cell %s.", output.Clean(args[0]))
			return nil
		}),
	}
}
