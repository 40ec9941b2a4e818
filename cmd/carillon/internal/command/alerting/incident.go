package alerting

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/cli"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/output"
	"github.com/carillon-sched/carillon/internal/apiclient"
	"github.com/carillon-sched/carillon/internal/spelling"
)

func incidentCommand(a *cli.App) *cobra.Command {
	return cli.Group("incident", "See incidents, take them on, and say that they are over",
		"  carillon alert incident list --state open\n  carillon alert incident acknowledge 9007199254740993",
		incidentList(a), incidentGet(a), incidentEvents(a),
		incidentChange(a, "acknowledge", "Take an incident on: nothing is told of it until it is over", "taken on", func(ctx context.Context, s *cli.Session, id string) (apiclient.Doc[apiclient.Incident], error) {
			return s.AcknowledgeAlertIncident(ctx, id)
		}),
		incidentChange(a, "resolve", "Say that an incident is over; whoever was told of it is told so", "over", func(ctx context.Context, s *cli.Session, id string) (apiclient.Doc[apiclient.Incident], error) {
			return s.ResolveAlertIncident(ctx, id)
		}))
}

// incidentSubject is the job that an incident is about, or how many there are.
func incidentSubject(i apiclient.Incident) string {
	switch {
	case i.JobCount == 0:
		return ""
	case i.JobCount == 1:
		return i.Jobs[0].Name
	}
	return i.Jobs[0].Name + " and " + spelling.Count(i.JobCount-1, "more job", "")
}

func incidentView(now time.Time) output.View[apiclient.Incident] {
	return output.View[apiclient.Incident]{
		Name: func(i apiclient.Incident) string { return i.ID },
		Columns: []output.Column[apiclient.Incident]{
			{Title: "ID", Value: func(i apiclient.Incident) string { return i.ID }},
			{Title: "STATE", Value: func(i apiclient.Incident) string { return i.State }},
			{Title: "KIND", Value: func(i apiclient.Incident) string { return i.Kind }},
			{Title: "SEVERITY", Value: func(i apiclient.Incident) string { return i.Severity }, Drop: 5},
			{Title: "ABOUT", Value: incidentSubject},
			{Title: "EVENTS", Value: func(i apiclient.Incident) string { return cli.Number(i.Events) }, Right: true},
			{Title: "SINCE", Value: func(i apiclient.Incident) string { return output.When(&i.OpenedAt, now) }},
			{Title: "LAST", Value: func(i apiclient.Incident) string { return output.When(&i.LastAt, now) }, Drop: 2},
			{Title: "MESSAGES", Value: func(i apiclient.Incident) string { return cli.Number(i.Messages) }, Right: true, Drop: 3},
			{Title: "TAKEN ON BY", Value: func(i apiclient.Incident) string { return i.AcknowledgedBy }, Drop: 1},
			{Title: "DETAIL", Value: func(i apiclient.Incident) string { return i.Detail }, Drop: 4},
		},
	}
}

func incidentList(a *cli.App) *cobra.Command {
	var p apiclient.ListAlertIncidentsParams
	var limit int
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List incidents, newest first", Args: cobra.NoArgs, Example: "  carillon alert incident list --state open",
		RunE: a.WithSession(func(cmd *cobra.Command, s *cli.Session, _ []string) error {
			if p.ExecutorID != "" {
				e, err := cli.FindExecutor(cmd.Context(), s, p.ExecutorID)
				if err != nil {
					return err
				}
				p.ExecutorID = e.ID
			}
			list, err := apiclient.List[apiclient.Incident](cmd.Context(), limit, s.ListAlertIncidents, p)
			return cli.PrintList(a, s, incidentView(a.Now()), list, err, "There are no incidents.")
		}),
	}
	cli.ChoiceFlag(cmd, &p.State, "state", "", []string{"open", "acknowledged", "resolved"}, "only those that are open, acknowledged or resolved")
	cmd.Flags().StringVar(&p.ExecutorID, "executor", "", "only those of this executor, by name or id")
	a.CompleteFlag(cmd, "executor", a.CompleteExecutors)
	cli.LimitFlag(cmd, &limit, 50, "at most this many")
	return cmd
}

func incidentGet(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "show INCIDENT", Aliases: []string{"get"}, Short: "Show one incident; all of it with -o yaml", Args: cobra.ExactArgs(1),
		Example: "  carillon alert incident show 9007199254740993 -o yaml",
		RunE: a.WithSession(func(cmd *cobra.Command, s *cli.Session, args []string) error {
			i, err := s.GetAlertIncident(cmd.Context(), args[0])
			return cli.PrintOne(s, incidentView(a.Now()), i, err)
		}),
	}
}

func incidentEvents(a *cli.App) *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use: "events INCIDENT", Short: "List the events of an incident, newest first", Args: cobra.ExactArgs(1), Example: "  carillon alert incident events 9007199254740993",
		RunE: a.WithSession(func(cmd *cobra.Command, s *cli.Session, args []string) error {
			list, err := apiclient.ListOf[apiclient.IncidentEvent](cmd.Context(), limit, s.ListAlertIncidentEvents, args[0], apiclient.ListAlertIncidentEventsParams{})
			if err != nil {
				return err
			}
			now := a.Now()
			return output.List(s.Printer, output.View[apiclient.IncidentEvent]{
				Name: func(e apiclient.IncidentEvent) string { return e.ID },
				Columns: []output.Column[apiclient.IncidentEvent]{
					{Title: "ID", Value: func(e apiclient.IncidentEvent) string { return e.ID }, Wide: true},
					{Title: "AT", Value: func(e apiclient.IncidentEvent) string { return output.When(&e.CreatedAt, now) }},
					{Title: "KIND", Value: func(e apiclient.IncidentEvent) string { return e.Kind }},
					{Title: "REASON", Value: func(e apiclient.IncidentEvent) string { return e.Reason }},
					{Title: "JOB", Value: func(e apiclient.IncidentEvent) string { return orEmpty(e.JobID) }},
					{Title: "RUN", Value: func(e apiclient.IncidentEvent) string { return orEmpty(e.RunID) }},
					{Title: "DETAIL", Value: func(e apiclient.IncidentEvent) string { return e.Detail }, Drop: 1},
				},
			}, list)
		}),
	}
	cli.LimitFlag(cmd, &limit, 50, "at most this many")
	return cmd
}

func orEmpty(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

func incidentChange(a *cli.App, verb, short, done string, change func(context.Context, *cli.Session, string) (apiclient.Doc[apiclient.Incident], error)) *cobra.Command {
	return &cobra.Command{
		Use: verb + " INCIDENT", Short: short, Args: cobra.ExactArgs(1), Example: "  carillon alert incident " + verb + " 9007199254740993",
		RunE: a.WithSession(func(cmd *cobra.Command, s *cli.Session, args []string) error {
			i, err := change(cmd.Context(), s, args[0])
			if err != nil {
				return err
			}
			a.Say("Incident %s is %s.", i.Value.ID, done)
			return output.One(s.Printer, incidentView(a.Now()), i)
		}),
	}
}

func deliveryCommand(a *cli.App) *cobra.Command {
	return cli.Group("delivery", "See what became of messages", "  carillon alert delivery list --state failed", deliveryList(a))
}

func deliveryList(a *cli.App) *cobra.Command {
	var p apiclient.ListDeliveriesParams
	var limit int
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List deliveries, newest first", Args: cobra.NoArgs, Example: "  carillon alert delivery list --state failed",
		RunE: a.WithSession(func(cmd *cobra.Command, s *cli.Session, _ []string) error {
			list, err := apiclient.List[apiclient.Delivery](cmd.Context(), limit, s.ListDeliveries, p)
			if err != nil {
				return err
			}
			if len(list) == 0 {
				a.Say("There are no deliveries.")
			}
			now := a.Now()
			return output.List(s.Printer, output.View[apiclient.Delivery]{
				Name: func(d apiclient.Delivery) string { return d.ID },
				Columns: []output.Column[apiclient.Delivery]{
					{Title: "ID", Value: func(d apiclient.Delivery) string { return d.ID }, Wide: true},
					{Title: "AT", Value: func(d apiclient.Delivery) string { return output.When(&d.CreatedAt, now) }},
					{Title: "STATE", Value: func(d apiclient.Delivery) string { return d.State }},
					{Title: "KIND", Value: func(d apiclient.Delivery) string { return d.Kind }},
					{Title: "CHANNEL", Value: func(d apiclient.Delivery) string { return d.Channel }},
					{Title: "TARGET", Value: func(d apiclient.Delivery) string { return d.Target }},
					{Title: "TRIES", Value: func(d apiclient.Delivery) string { return cli.Number(d.Attempts) }, Right: true},
					{Title: "INCIDENT", Value: func(d apiclient.Delivery) string { return orEmpty(d.IncidentID) }, Drop: 2},
					{Title: "ERROR", Value: func(d apiclient.Delivery) string { return d.LastError }, Drop: 1},
				},
			}, list)
		}),
	}
	cmd.Flags().StringVar(&p.State, "state", "", "only those that are pending, delivered or failed")
	cmd.Flags().StringVar(&p.IncidentID, "incident", "", "only those of this incident")
	cmd.Flags().StringVar(&p.JobID, "job", "", "only those about the job of this id")
	cli.LimitFlag(cmd, &limit, 50, "at most this many")
	return cmd
}
