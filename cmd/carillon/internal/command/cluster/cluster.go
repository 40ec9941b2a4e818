package cluster

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/cli"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/output"
	"github.com/carillon-sched/carillon/internal/apiclient"
	"github.com/carillon-sched/carillon/internal/spelling"
)

// Commands are those about the installation.
func Commands(a *cli.App) []*cobra.Command {
	return []*cobra.Command{clusterCommand(a), cellCommand(a), maintenanceCommand(a)}
}

func clusterCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use: "cluster", Short: "Show nodes, partitions, clock and database", Args: cobra.NoArgs,
		Long: "Shows the admin nodes with what each of them plans, the database, and whether its clock\n" +
			"is believed. With -o wide also the 64 partitions.",
		Example: "  carillon cluster\n  carillon cluster -o wide\n  carillon cluster -o json",
		RunE: a.WithSession(func(cmd *cobra.Command, s *cli.Session, _ []string) error {
			doc, err := s.GetCluster(cmd.Context())
			if done, err := cli.PrintMachine(s, doc, err); done {
				return err
			}
			return printCluster(a, s.Printer, doc.Value)
		}),
	}
	cmd.AddCommand(confirmClock(a), acceptHistory(a), clusterRefusals(a))
	return a.ServerFlags(cmd)
}

func printCluster(a *cli.App, p *output.Printer, c apiclient.Cluster) error {
	d := c.Database
	if _, err := fmt.Fprintf(a.Out, "database %s %s, %s, %.1f ms away\n", output.Clean(d.Kind), output.Clean(d.Version), output.Clean(d.Role), d.LatencyMs); err != nil {
		return err
	}
	if err := printDatabaseGroup(a, d.Group); err != nil {
		return err
	}
	for _, f := range d.Findings {
		a.Say("warning: %s", output.Clean(f.Message))
	}
	if c.Clock.Held {
		a.Say("warning: clock_jump: the database's clock leapt by %s; firing is held (carillon cluster confirm-clock)", milliseconds(c.Clock.JumpMs))
	}
	if c.History.Held {
		a.Say("warning: db_rollback: the database has lost commits: %s; firing is held (carillon cluster accept-history)", output.Clean(c.History.Reason))
	}
	if c.ZonesDiffer {
		a.Say("warning: nodes have different rules of time zones (column ZONES of -o wide); see docs/guide/time-zones.md")
	}
	held := 0
	for _, part := range c.Partitions {
		if part.State == "held" {
			held++
		}
	}
	if held < len(c.Partitions) {
		a.Say("warning: no node plans %d of %s", len(c.Partitions)-held, spelling.Count(len(c.Partitions), "partition", ""))
	}
	if err := output.Rows(p, nodeColumns, c.Nodes); err != nil {
		return err
	}
	if p.Format != output.Wide {
		return nil
	}
	if _, err := fmt.Fprintln(a.Out); err != nil {
		return err
	}
	return output.Rows(p, partitionColumns(c.Now), c.Partitions)
}

// printDatabaseGroup prints a line for a cluster of database servers, and one per server.
func printDatabaseGroup(a *cli.App, g *apiclient.DatabaseGroup) error {
	if g == nil {
		return nil
	}
	paused := ""
	if g.Paused != nil {
		paused = fmt.Sprintf(", held back %.1f %% of the time", *g.Paused*100)
	}
	_, err := fmt.Fprintf(a.Out, "database cluster %s, %s, %s known; %s, %s waiting%s\n",
		output.Clean(g.Kind), output.Clean(g.State), spelling.Count(len(g.Members), "server", ""), spelling.Count(g.Conflicts, "conflict", ""), spelling.Count(g.Waiting, "transaction", ""), paused)
	if err != nil {
		return err
	}
	for _, m := range g.Members {
		notes := []string{output.Clean(m.Address)}
		for _, note := range []string{m.State, m.Role} {
			if note != "" {
				notes = append(notes, output.Clean(note))
			}
		}
		if m.Current {
			notes = append(notes, "this node's")
		}
		if _, err := fmt.Fprintf(a.Out, "  server %s\n", strings.Join(notes, ", ")); err != nil {
			return err
		}
	}
	if !g.Quorum {
		a.Say("warning: the database server is not with the majority of its cluster: nothing starts until it is")
	}
	return nil
}

func milliseconds(ms int64) string { return output.Span(time.Duration(ms) * time.Millisecond) }

// sessions is empty if the caller may not know the number.
func sessions(n apiclient.ClusterNode) string {
	if n.Sessions == nil {
		return ""
	}
	return cli.Number(*n.Sessions)
}

var nodeColumns = []output.Column[apiclient.ClusterNode]{
	{Title: "NODE", Value: func(n apiclient.ClusterNode) string { return n.ID }},
	{Title: "NAME", Value: func(n apiclient.ClusterNode) string { return n.Name }},
	{Title: "STATE", Value: nodeState},
	{Title: "PARTITIONS", Value: func(n apiclient.ClusterNode) string { return cli.Number(n.Partitions) }, Right: true},
	{Title: "LAG", Value: func(n apiclient.ClusterNode) string { return milliseconds(n.PlanningLagMs) }, Right: true},
	{Title: "SESSIONS", Value: sessions, Right: true, Drop: 3},
	{Title: "HEARTBEAT", Value: func(n apiclient.ClusterNode) string { return milliseconds(n.HeartbeatAgeMs) + " ago" }, Right: true, Drop: 2},
	{Title: "SKEW", Value: func(n apiclient.ClusterNode) string { return milliseconds(n.ClockSkewMs) }, Right: true, Drop: 4},
	{Title: "VERSION", Value: func(n apiclient.ClusterNode) string { return n.Version }, Drop: 5},
	{Title: "STARTED", Value: func(n apiclient.ClusterNode) string { return output.Stamp(n.StartedAt) }, Wide: true},
	{Title: "ZONES", Value: func(n apiclient.ClusterNode) string {
		return strings.TrimSpace(n.ZoneRules.Version + " " + n.ZoneRules.Digest)
	}, Wide: true},
	{Title: "ZONES FROM", Value: func(n apiclient.ClusterNode) string { return n.ZoneRules.Source }, Wide: true},
	{Title: "BOOT", Value: func(n apiclient.ClusterNode) string { return n.BootID }, Wide: true},
}

func nodeState(n apiclient.ClusterNode) string {
	switch {
	case n.ClockHeld:
		return "held"
	case !n.Connected:
		return "disconnected"
	default:
		return n.State
	}
}

func partitionColumns(now time.Time) []output.Column[apiclient.ClusterPartition] {
	return []output.Column[apiclient.ClusterPartition]{
		{Title: "PARTITION", Value: func(p apiclient.ClusterPartition) string { return cli.Number(p.ID) }, Right: true},
		{Title: "STATE", Value: func(p apiclient.ClusterPartition) string { return p.State }},
		{Title: "HOLDER", Value: func(p apiclient.ClusterPartition) string { return p.NodeName }},
		{Title: "TERM", Value: func(p apiclient.ClusterPartition) string { return p.Term }, Right: true},
		{Title: "UNTIL", Value: func(p apiclient.ClusterPartition) string { return output.When(p.Until, now) }},
		{Title: "NEXT FIRE", Value: func(p apiclient.ClusterPartition) string { return output.When(p.NextFireAt, now) }},
		{Title: "LAG", Value: func(p apiclient.ClusterPartition) string { return milliseconds(p.PlanningLagMs) }, Right: true},
		{Title: "OVERDUE", Value: func(p apiclient.ClusterPartition) string { return milliseconds(p.DueLagMs) }, Right: true},
	}
}

func confirmClock(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "confirm-clock", Short: "Say that the database's clock is right, after it leapt forward", Args: cobra.NoArgs,
		Long: "After the database's clock leapt forward by more than 1 s, firing is held until most nodes'\n" +
			"clocks agree with it. This makes all nodes go on although they do not. Look at the clock first.",
		Example: "  carillon cluster confirm-clock",
		RunE: a.WithSession(func(cmd *cobra.Command, s *cli.Session, _ []string) error {
			doc, err := s.ConfirmClock(cmd.Context())
			if done, err := cli.PrintMachine(s, doc, err); done {
				return err
			}
			a.Say("Confirmed: the database's clock is right, it is %s.", doc.Value.ConfirmedAt.Format(time.RFC3339Nano))
			return nil
		}),
	}
}

func acceptHistory(a *cli.App) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use: "accept-history", Short: "Say that the database is right as it is, after it lost commits", Args: cobra.NoArgs,
		Long: "After a backup was put back, or a replica was promoted that lagged behind, firing is held.\n" +
			"If there is a newer copy, put it in place first. This makes all nodes go on with what the\n" +
			"database says now: fire times that it does not know to have run count as due or missed, and\n" +
			"runs can be repeated. Pause what must not be repeated before. docs/guide/operations.md has the steps.",
		Example: "  carillon cluster accept-history\n  carillon cluster accept-history --yes",
		RunE: a.WithSession(func(cmd *cobra.Command, s *cli.Session, _ []string) (err error) {
			if !yes {
				err = a.Confirm("Let all nodes go on with this database, which has lost commits?")
			}
			if err != nil {
				return err
			}
			doc, err := s.AcceptHistory(cmd.Context())
			if done, err := cli.PrintMachine(s, doc, err); done {
				return err
			}
			a.Say("Accepted: epoch %s begins, and firing goes on.", output.Clean(doc.Value.Epoch))
			return nil
		}),
	}
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return cmd
}
