package executor

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/cli"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/output"
	"github.com/carillon-sched/carillon/internal/apiclient"
)

func executorInstances(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "instances", Short: "List the instances of all executors, lost ones first, also those that have gone within a day", Args: cobra.NoArgs,
		Example: "  carillon executor instances\n  carillon executor instances -o json",
		RunE: a.WithSession(func(cmd *cobra.Command, s *cli.Session, _ []string) error {
			list, err := apiclient.List[apiclient.FleetInstance](cmd.Context(), 0, s.ListAllInstances, apiclient.ListAllInstancesParams{})
			return cli.PrintList(a, s, fleetView(a.Now()), list, err, "No instances.")
		}),
	}
}

// fleetView has the columns of the list of one executor, the executor before them, and the
// end of an instance behind them.
func fleetView(now time.Time) output.View[apiclient.FleetInstance] {
	columns := []output.Column[apiclient.FleetInstance]{{Title: "EXECUTOR", Value: func(i apiclient.FleetInstance) string { return i.ExecutorName }}}
	for _, c := range instanceColumns(now) {
		columns = append(columns, output.Column[apiclient.FleetInstance]{
			Title: c.Title, Value: func(i apiclient.FleetInstance) string { return c.Value(i.Instance) }, Right: c.Right, Drop: c.Drop, Wide: c.Wide,
		})
	}
	columns = append(columns, output.Column[apiclient.FleetInstance]{Title: "ADDRESS", Drop: 2, Value: func(i apiclient.FleetInstance) string { return i.Instance.Address }})
	columns = append(columns, output.Column[apiclient.FleetInstance]{Title: "GONE", Value: func(i apiclient.FleetInstance) string {
		if i.Instance.GoneAt == nil {
			return ""
		}
		text := output.When(i.Instance.GoneAt, now) + ", " + output.Clean(i.Instance.GoneReason)
		if i.Lost {
			return "lost " + text
		}
		return text
	}})
	return output.View[apiclient.FleetInstance]{Name: func(i apiclient.FleetInstance) string { return i.Instance.ID }, Columns: columns}
}

func executorDrain(a *cli.App, undo bool) *cobra.Command {
	use, short, example := "drain INSTANCE", "Let an instance take nothing new; what it runs goes on", "  carillon executor drain 41\n  carillon executor get shop"
	if undo {
		use, short, example = "undrain INSTANCE", "Let an instance take runs again", "  carillon executor undrain 41"
	}
	return &cobra.Command{
		Use: use, Short: short, Args: cobra.ExactArgs(1), Example: example,
		RunE: a.WithSession(func(cmd *cobra.Command, s *cli.Session, args []string) error {
			act := s.DrainInstance
			if undo {
				act = s.UndrainInstance
			}
			i, err := act(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if undo {
				a.Say("Instance %s takes runs again within a second.", output.Clean(i.Value.Name))
			} else {
				a.Say("Instance %s takes nothing new from a second on; %d of its slots are busy.", output.Clean(i.Value.Name), i.Value.Running)
			}
			return output.One(s.Printer, output.View[apiclient.Instance]{Name: func(i apiclient.Instance) string { return i.ID }, Columns: instanceColumns(a.Now())}, i)
		}),
	}
}

func executorRemove(a *cli.App) *cobra.Command {
	var yes bool
	var reason string
	cmd := &cobra.Command{
		Use: "remove INSTANCE", Short: "Remove an instance with what it runs, and keep its process out", Args: cobra.ExactArgs(1),
		Long: `Ends the sessions of a process on all nodes within seconds, and lets it in no
more, whatever it shows. It stops what it runs when its lease is over; then these
runs are retried elsewhere, or lost, as their jobs say. To lose nothing, drain it
first and wait until it is idle. A new process is not concerned: revoke the join
token to keep new ones out. carillon executor allow takes it back.`,
		Example: "  carillon executor remove 41 --reason 'stolen laptop'\n  carillon executor remove 41 --yes -o json",
		RunE: a.WithSession(func(cmd *cobra.Command, s *cli.Session, args []string) error {
			if !yes {
				if err := a.Confirm(fmt.Sprintf("Remove instance %s with what it runs?", output.Clean(args[0]))); err != nil {
					return err
				}
			}
			d, err := s.RemoveInstance(cmd.Context(), args[0], apiclient.RemoveInstanceParams{Reason: reason})
			if done, err := cli.PrintMachine(s, d, err); done {
				return err
			}
			a.Say("Removed instance %s; denial %s keeps its process out. It ran %d.", output.Clean(d.Value.Instance.Name), d.Value.DenialID, len(d.Value.Runs))
			return output.Rows(s.Printer, removedColumns, d.Value.Runs)
		}),
	}
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	cmd.Flags().StringVar(&reason, "reason", "", "why, for those who read the list of denials")
	return cmd
}

var removedColumns = []output.Column[apiclient.RemovedRun]{
	{Title: "RUN", Value: func(r apiclient.RemovedRun) string { return r.ID }},
	{Title: "JOB", Value: func(r apiclient.RemovedRun) string { return r.JobName }},
	{Title: "STATE", Value: func(r apiclient.RemovedRun) string { return r.State }},
	{Title: "THEN", Value: func(r apiclient.RemovedRun) string { return r.Then }},
}
