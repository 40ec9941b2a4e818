package local

import (
	"bufio"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/cli"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/licenses"
)

func licensesCommand(a *cli.App) *cobra.Command {
	short := false
	cmd := &cobra.Command{
		Use: "licenses [NAME]", Args: cobra.MaximumNArgs(1),
		Short:   "Print whose work is in this binary and its pages, with the licences' texts",
		Example: "  carillon licenses --short\n  carillon licenses gorm.io/gorm",
		RunE: func(_ *cobra.Command, args []string) error {
			file, err := licenses.Read()
			if err != nil {
				return err
			}
			w := bufio.NewWriter(a.Out)
			found := false
			for _, c := range file.Components {
				if len(args) == 1 && c.Name != args[0] {
					continue
				}
				found = true
				fmt.Fprintf(w, "%s %s (%s, %s)\n", c.Name, c.Version, c.License, c.Kind)
				if short {
					continue
				}
				fmt.Fprintln(w)
				if len(c.Texts) == 0 {
					fmt.Fprintf(w, "    The package has no text of its licence; it declares %s.\n\n", c.License)
				}
				for _, n := range c.Texts {
					for line := range strings.Lines(file.Texts[n]) {
						fmt.Fprint(w, "    ", line)
					}
					fmt.Fprintln(w)
				}
			}
			if !found {
				return cli.Usagef("there is nothing named %q in this binary; carillon licenses --short lists the names", args[0])
			}
			return w.Flush()
		},
	}
	cmd.Flags().BoolVar(&short, "short", false, "names, versions and licences only")
	return cmd
}
