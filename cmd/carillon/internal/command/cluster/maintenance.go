package cluster

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/cli"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/output"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/settings"
	"github.com/carillon-sched/carillon/internal/apiclient"
)

func maintenanceCommand(a *cli.App) *cobra.Command {
	return a.ServerFlags(cli.Group("maintenance", "Let nothing start for a while: of the cluster, your tenant or an executor",
		"  carillon maintenance on --executor shop --for 2h --reason 'new disks'\n  carillon maintenance show\n  carillon maintenance off --executor shop",
		maintenanceOn(a), maintenanceOff(a), maintenanceShow(a)))
}

func maintenanceView(now time.Time) output.View[apiclient.Maintenance] {
	return output.View[apiclient.Maintenance]{
		Name: func(m apiclient.Maintenance) string { return m.ID },
		Columns: []output.Column[apiclient.Maintenance]{
			{Title: "SCOPE", Value: maintenanceScope},
			{Title: "MODE", Value: func(m apiclient.Maintenance) string { return m.Mode }},
			{Title: "SINCE", Value: func(m apiclient.Maintenance) string { return output.When(&m.Since, now) }},
			{Title: "ENDS", Value: func(m apiclient.Maintenance) string {
				if m.Until == nil {
					return "when switched off"
				}
				return output.When(m.Until, now)
			}},
			{Title: "BY", Value: func(m apiclient.Maintenance) string { return m.By }, Drop: 1},
			{Title: "REASON", Value: func(m apiclient.Maintenance) string { return m.Reason }},
			{Title: "ENDED BY", Value: func(m apiclient.Maintenance) string { return m.EndedBy }, Wide: true},
			{Title: "ID", Value: func(m apiclient.Maintenance) string { return m.ID }, Wide: true},
		},
	}
}

func maintenanceScope(m apiclient.Maintenance) string {
	if m.Subject == nil {
		return m.Kind
	}
	return m.Kind + " " + m.Subject.Name
}

// maintenanceScopes are flags that say what of.
type maintenanceScopes struct {
	cluster  bool
	executor string
}

func (f *maintenanceScopes) add(a *cli.App, cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.cluster, "cluster", false, "of the whole cluster, as a platform administrator")
	cmd.Flags().StringVar(&f.executor, "executor", "", "of one executor, by name or id (default: of your tenant)")
	a.CompleteFlag(cmd, "executor", a.CompleteExecutors)
}

func maintenanceOn(a *cli.App) *cobra.Command {
	var f maintenanceScopes
	var r apiclient.MaintenanceRequest
	var span time.Duration
	var until string
	modes := []string{"wait", "skip", "continue"}
	cmd := &cobra.Command{
		Use: "on", Short: "Switch maintenance on, or change what is on", Args: cobra.NoArgs,
		Long: `Nothing starts any more, on all nodes within a second; what runs goes on.
With --mode wait (the default) what is due waits: when it is over, one run stands
for all fire times of a schedule that passed. With skip fire times are passed over,
and what somebody asked for waits. With continue it is announced only. Nobody is
told of runs that were not started because of it.`,
		Example: "  carillon maintenance on --for 2h --reason 'database upgrade'\n  carillon maintenance on --executor shop --mode skip\n  carillon maintenance on --cluster --until 2026-11-21T04:00:00Z",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if span < 0 || cmd.Flags().Changed("for") && span == 0 {
				return cli.Usagef("--for must be a span such as 2h")
			}
			if span > 0 && until != "" {
				return cli.Usagef("give --for or --until, not both")
			}
			if until != "" {
				at, err := a.InstantAfter("--until", until, a.Now())
				if err != nil {
					return err
				}
				r.Until = &at
			}
			if span > 0 {
				at := a.Now().Add(span)
				r.Until = &at
			}
			return maintain(cmd.Context(), a, f, func(ctx context.Context, s *cli.Session, executor string) (apiclient.Doc[apiclient.Maintenance], error) {
				switch {
				case f.cluster:
					return s.StartClusterMaintenance(ctx, r)
				case executor != "":
					return s.StartExecutorMaintenance(ctx, executor, r)
				}
				return s.StartTenantMaintenance(ctx, r)
			})
		},
	}
	f.add(a, cmd)
	cli.ChoiceFlag(cmd, &r.Mode, "mode", "wait", modes, cli.OrList(modes))
	cmd.Flags().StringVar(&r.Reason, "reason", "", "what for; shown on every page of the console")
	settings.SpanVar(cmd.Flags(), &span, "for", 0, "end it after this span, such as 2h (default: when it is switched off)")
	cmd.Flags().StringVar(&until, "until", "", "end it at this instant: RFC 3339, or a time such as 06:00 or 'tomorrow 06:00'")
	return cmd
}

func maintenanceOff(a *cli.App) *cobra.Command {
	var f maintenanceScopes
	cmd := &cobra.Command{
		Use: "off", Short: "Switch maintenance off; what has waited starts", Args: cobra.NoArgs,
		Example: "  carillon maintenance off\n  carillon maintenance off --executor shop",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return maintain(cmd.Context(), a, f, func(ctx context.Context, s *cli.Session, executor string) (apiclient.Doc[apiclient.Maintenance], error) {
				switch {
				case f.cluster:
					return s.EndClusterMaintenance(ctx)
				case executor != "":
					return s.EndExecutorMaintenance(ctx, executor)
				}
				return s.EndTenantMaintenance(ctx)
			})
		},
	}
	f.add(a, cmd)
	return cmd
}

// maintain does something to the maintenance of a scope.
func maintain(ctx context.Context, a *cli.App, f maintenanceScopes, do func(context.Context, *cli.Session, string) (apiclient.Doc[apiclient.Maintenance], error)) error {
	if f.cluster && f.executor != "" {
		return cli.Usagef("give --cluster or --executor, not both")
	}
	s, err := a.Connect()
	if err != nil {
		return err
	}
	executor := apiclient.Ref{}
	if f.executor != "" {
		if executor, err = cli.FindExecutor(ctx, s, f.executor); err != nil {
			return err
		}
	}
	m, err := do(ctx, s, executor.ID)
	return cli.PrintOne(s, maintenanceView(a.Now()), m, err)
}

func maintenanceShow(a *cli.App) *cobra.Command {
	var p apiclient.ListMaintenanceParams
	cmd := &cobra.Command{
		Use: "show", Aliases: []string{"list", "ls"}, Short: "Show what is under maintenance", Args: cobra.NoArgs,
		Example: "  carillon maintenance show\n  carillon maintenance show --ended -o json",
		RunE: a.WithSession(func(cmd *cobra.Command, s *cli.Session, _ []string) error {
			list, err := apiclient.List[apiclient.Maintenance](cmd.Context(), 0, s.ListMaintenance, p)
			return cli.PrintList(a, s, maintenanceView(a.Now()), list, err, "Nothing is under maintenance.")
		}),
	}
	cmd.Flags().BoolVar(&p.Ended, "ended", false, "also what is over")
	return cmd
}
