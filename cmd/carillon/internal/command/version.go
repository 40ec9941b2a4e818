package command

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/carillon-sched/carillon/cmd/carillon/internal/output"
)

func (a *App) versionCommand() *cobra.Command {
	var server bool
	cmd := &cobra.Command{
		Use: "version", Short: "Print the version, of the server too with --server", Args: cobra.NoArgs,
		Example: "  carillon version\n  carillon version --server",
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(a.out, "carillon %s %s %s/%s\n", a.version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			if err != nil || !server {
				return err
			}
			s, err := a.connect()
			if err != nil {
				return err
			}
			v, err := s.Version(cmd.Context())
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(a.out, "server %s %s\n", output.Clean(v.Value.Version), s.server)
			return err
		},
	}
	cmd.Flags().BoolVar(&server, "server", false, "ask the server for its version")
	return a.serverFlags(cmd)
}
