package command

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/account"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/apply"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/calendar"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/cli"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/cluster"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/executor"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/job"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/local"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/run"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/script"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/search"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/tenant"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/timer"
)

// NewRoot makes the root command without subcommands.
func NewRoot(version string) *cobra.Command {
	root := cli.Group("carillon", "Carillon runs work at the right time, once, somewhere in a fleet",
		"  carillon demo\n  carillon job list")
	root.Version = version
	root.SetVersionTemplate("carillon {{.Version}}\n")
	root.SetFlagErrorFunc(cli.FlagError)
	root.SetUsageTemplate(usageTemplate)
	root.SetHelpTemplate(helpTemplate)
	return root
}

// Commands returns everything that is not a server.
func Commands(a *cli.App) []*cobra.Command {
	all := slices.Concat(
		account.Commands(a), apply.Commands(a), run.Commands(a), tenant.Commands(a), cluster.Commands(a), local.Commands(a),
		[]*cobra.Command{
			job.Command(a), calendar.Command(a), script.Command(a), timer.Command(a), executor.Command(a), search.Command(a),
		},
		addOns(a),
	)
	a.ExtendAll(all)
	return all
}

// Help begins with examples: they answer most questions.
const helpTemplate = `{{with (or .Long .Short)}}{{. | trimTrailingWhitespaces}}

{{end}}{{if .HasExample}}Examples:
{{.Example}}

{{end}}{{.UsageString}}`

const usageTemplate = `Usage:
  {{if .HasAvailableSubCommands}}{{.CommandPath}} COMMAND{{else}}{{.UseLine}}{{end}}
{{if .HasAvailableSubCommands}}
Commands:
{{range .Commands}}{{if .IsAvailableCommand}}  {{rpad .Name .NamePadding}} {{.Short}}
{{end}}{{end}}{{end}}{{if .HasAvailableLocalFlags}}
Flags:
{{.LocalFlags.FlagUsages | trimTrailingWhitespaces}}
{{end}}{{if .HasAvailableInheritedFlags}}
Flags of all commands here:
{{.InheritedFlags.FlagUsages | trimTrailingWhitespaces}}
{{end}}`
