package command

import (
	"github.com/spf13/cobra"

	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/alerting"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/assistant"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/audit"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/broker"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/bulk"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/cli"
)

// addOns are the commands of the add-ons, one line each. Their flags of the server are
// those that package admin knows of them.
func addOns(a *cli.App) []*cobra.Command {
	return []*cobra.Command{
		alerting.Command(a),
		assistant.Command(a),
		audit.Command(a),
		broker.Command(a),
		bulk.Command(a),
	}
}
