// Command carillon is the admin server and the command line for it.
//
// The commands that run a server are in this folder; those that ask one, and
// those that need none, are below internal/command.
package main

import (
	"context"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/carillon-sched/carillon/cmd/carillon/internal/agent"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/command"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/cli"
)

// version is set by the build, and by main if go install has built the program. In a
// checkout it is "dev".
var version = "dev"

func main() {
	if info, ok := debug.ReadBuildInfo(); ok {
		version = versionOf(version, info)
	}
	if code, is := agent.Child(os.Args); is {
		os.Exit(code)
	}
	os.Exit(run())
}

// versionOf is the version that the build has set. If it has set none, it is that of the
// fetched module: only a module that was fetched has a checksum.
func versionOf(set string, info *debug.BuildInfo) string {
	if set == "dev" && info.Main.Sum != "" {
		return info.Main.Version
	}
	return set
}

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return cli.Execute(ctx, newRoot(), os.Stderr)
}

// newRoot makes all commands.
func newRoot() *cobra.Command {
	root := command.NewRoot(version)
	root.AddCommand(newBackupCommand(), newRestoreCommand())
	root.AddCommand(newServerCommand(), newAgentCommand(), newDemoCommand(), newMigrateCommand(), newProvisionCommand(), newReadyCommand(), newDoctorCommand(), newConfigCommand(), newVerifyCommand())
	root.AddCommand(command.Commands(cli.New(version))...)
	for _, group := range root.Commands() {
		if group.Name() == "tenant" {
			group.AddCommand(newTenantMoveCommand())
		}
	}
	return root
}
