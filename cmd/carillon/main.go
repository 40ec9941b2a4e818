package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
)

var version = "dev"

func main() {
	root := &cobra.Command{Use: "carillon", SilenceUsage: true, SilenceErrors: true}
	root.AddCommand(newServerCommand(), newDemoCommand(), newMigrateCommand())
	if err := root.Execute(); err != nil {
		fmt.Fprintln(os.Stderr, "carillon:", err)
		os.Exit(1)
	}
}
