package alerting

import (
	"github.com/spf13/cobra"

	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/cli"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/document"
)

// Command is carillon alert with what is below it.
func Command(a *cli.App) *cobra.Command {
	return a.ServerFlags(cli.Group("alert", "See what is told to whom and by which means, take incidents on",
		"  carillon alert channel test on-call\n  carillon alert incident list --state open\n  carillon alert incident acknowledge 9007199254740993",
		channelCommand(a), incidentCommand(a), document.Command(a, ruleKind), silenceCommand(a), deliveryCommand(a), alertDefaultCommand(a)))
}
