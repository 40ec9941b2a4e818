package command

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// NewRoot makes the root command without subcommands.
func NewRoot(version string) *cobra.Command {
	root := group("carillon", "Carillon runs work at the right time, once, somewhere in a fleet",
		"  carillon demo\n  carillon job list")
	root.Version = version
	root.SetVersionTemplate("carillon {{.Version}}\n")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usagef("%w", err) })
	root.SetUsageTemplate(usageTemplate)
	root.SetHelpTemplate(helpTemplate)
	return root
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

// say writes one line of talk.
func (a *App) say(format string, args ...any) {
	_, _ = fmt.Fprintf(a.err, format+"\n", args...) // talk that nobody can hear
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return strings.TrimSpace(line)
}
