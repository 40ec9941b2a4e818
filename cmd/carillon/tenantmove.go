package main

import (
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/carillon-sched/carillon/admin"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/cli"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/settings"
	"github.com/carillon-sched/carillon/internal/spelling"
)

// newTenantMoveCommand is a command of the group tenant that asks no server.
func newTenantMoveCommand() *cobra.Command {
	var o admin.MoveTenantOptions
	var format, target, targetDatabase string
	var flags *pflag.FlagSet
	cmd := &cobra.Command{
		Use:   "move TENANT --to CELL --to-config FILE",
		Short: "Move a tenant to another cell, with all that it has",
		Long: `Copies a tenant from the database of one cell to that of another one, while the
nodes of both work, and lets it go on there. --config and --database are those of the
source, --to-config and --to-database those of the target, as their nodes have them.

For some seconds nothing of the tenant starts, and its API answers 503
tenant_moving; then executors and programs are led to the other cell. Runs that take
longer than --wait keep it from moving. Fire times of the pause are run late, as after
an outage. If the command ends anywhere, give it again; until the tenant is the
target's, --abort lets it stay.`,
		Example: `  carillon tenant move acme --to eu2 --config /etc/carillon/server.yaml --to-config eu2.yaml --dry-run
  carillon tenant move acme --to eu2 --config /etc/carillon/server.yaml --to-config eu2.yaml`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.Cell == "" || (target == "") == (targetDatabase == "") {
				return cli.Usagef("name the cell with --to, and its database with --to-config or --to-database")
			}
			if o.DryRun && o.Abort {
				return cli.Usagef("give --dry-run or --abort, not both")
			}
			from, err := serverConfig(cmd.ErrOrStderr(), flags)
			if err != nil {
				return fmt.Errorf("the source: %w", err)
			}
			to, err := cellConfig(cmd.ErrOrStderr(), target, targetDatabase)
			if err != nil {
				return fmt.Errorf("the target: %w", err)
			}
			o.Tenant, o.Logger = args[0], slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{ReplaceAttr: withoutTime}))
			report, err := admin.MoveTenant(cmd.Context(), from, to, o)
			if err != nil {
				return asUsage(err)
			}
			return sayMoved(cmd.OutOrStdout(), cmd.ErrOrStderr(), format, o, report)
		},
	}
	flags = someServerFlags(cmd, "config", "data", "database", "database-password-file")
	cmd.Flags().StringVar(&o.Cell, "to", "", "name of the target, as carillon cell list of the source has it")
	cmd.Flags().StringVar(&target, "to-config", "", "YAML file with the settings of the target's nodes")
	cmd.Flags().StringVar(&targetDatabase, "to-database", "", "database of the target, instead of a file")
	settings.SpanVar(cmd.Flags(), &o.Wait, "wait", time.Minute, "how long runs of the tenant may take to end")
	cmd.Flags().BoolVar(&o.DryRun, "dry-run", false, "only say whether the tenant can move")
	cmd.Flags().BoolVar(&o.Abort, "abort", false, "end a move that is not finished, and let the tenant stay")
	cli.FormatFlag(cmd, &format)
	return cmd
}

// cellConfig is the configuration of another cell's nodes. Variables of the
// environment are the source's, and do not count here where the file says something.
func cellConfig(stderr io.Writer, file, database string) (admin.Config, error) {
	flags := newServerCommand().Flags()
	for name, value := range map[string]string{"config": file, "database": database} {
		if value == "" {
			continue
		}
		if err := flags.Set(name, value); err != nil {
			return admin.Config{}, err
		}
	}
	return serverConfig(stderr, flags)
}

func withoutTime(_ []string, a slog.Attr) slog.Attr {
	if a.Key == slog.TimeKey || a.Key == slog.LevelKey {
		return slog.Attr{}
	}
	return a
}

func sayMoved(out, talk io.Writer, format string, o admin.MoveTenantOptions, r admin.TenantMove) error {
	switch {
	case format == "json":
		return printJSON(out, r)
	case o.DryRun:
		fmt.Fprintf(talk, "%s can move to %s.\n", o.Tenant, o.Cell)
		return nil
	case o.Abort:
		fmt.Fprintf(talk, "%s stays, and goes on.\n", o.Tenant)
		return nil
	}
	written := int64(0)
	for _, n := range r.Rows {
		written += n
	}
	fmt.Fprintf(talk, "%s lives in %s now; %s written there. Nothing of it started for %s.\n",
		r.Tenant, r.Cell, spelling.Count(written, "row was", "rows were"), r.Pause.Round(10*time.Millisecond))
	return nil
}
