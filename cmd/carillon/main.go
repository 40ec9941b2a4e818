// Command carillon is the admin server and the command line for it.
//
// The commands that run a server are in this folder; those that ask one, and
// those that need none, are in internal/command.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/carillon-sched/carillon/cmd/carillon/internal/agent"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/command"
)

// version is set by the build.
var version = "dev"

func main() {
	if code, is := agent.Child(os.Args); is {
		os.Exit(code)
	}
	os.Exit(run())
}

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root := command.NewRoot(version)
	root.AddCommand(newServerCommand(), newAgentCommand(), newDemoCommand(), newMigrateCommand(), newVerifyCommand())
	root.AddCommand(command.New(version).Commands()...)
	return command.Execute(ctx, root, os.Stderr)
}
