package local

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/cli"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/output"
)

func versionCommand(a *cli.App) *cobra.Command {
	var server bool
	cmd := &cobra.Command{
		Use: "version", Short: "Print the version, of the server too with --server", Args: cobra.NoArgs,
		Example: "  carillon version\n  carillon version --server",
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(a.Out, "carillon %s %s %s/%s\n", a.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			if err != nil || !server {
				return err
			}
			s, err := a.Connect()
			if err != nil {
				return err
			}
			v, err := s.Version(cmd.Context())
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(a.Out, "server %s %s\n", output.Clean(v.Value.Version), s.Server)
			return err
		},
	}
	cmd.Flags().BoolVar(&server, "server", false, "ask the server for its version")
	return a.ServerFlags(cmd)
}
