package local

import (
	"errors"
	"flag"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/cli"
	"github.com/carillon-sched/carillon/executor-sdk/generate"
	"github.com/carillon-sched/carillon/internal/spelling"
	"github.com/carillon-sched/carillon/schedule"
)

func generateCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use: "generate [-check] [FOLDER | FOLDER/...]...", Short: "Write registration code from //carillon: marker comments",
		Long: `Reads the //carillon:timer and //carillon:clock comments of Go packages and writes
carillon_gen.go and carillon_manifest.json beside them; for timers with the flag
proxy also typed proxies, there (carillon_proxy.go) or, with proxy=../shopclient, in
another folder together with copies of their types (carillon_client.go), for programs
that shall not inherit what the handlers depend on. Without a folder it reads
the current one, as go:generate wants it. With -check nothing is written: exit
code 1 and a summary when the files on disk differ.`,
		Example: "  carillon generate ./...\n  carillon generate -check ./...",
		// Go's tools spell it -check; the standard flag package takes that and
		// --check alike.
		DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			flags := flag.NewFlagSet("generate", flag.ContinueOnError)
			flags.SetOutput(io.Discard)
			check := flags.Bool("check", false, "")
			if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
				return cmd.Help()
			} else if err != nil {
				return cli.Usagef("%w", err)
			}
			return writeCode(a, flags.Args(), *check)
		},
	}
	return cmd
}

func writeCode(a *cli.App, folders []string, check bool) error {
	err := generate.Run(folders, check, generate.Options{CheckCron: checkExpression}, a.Out)
	if problems, ok := errors.AsType[generate.Problems](err); ok {
		for _, p := range problems {
			a.Say("%s", p.Error())
		}
		return fmt.Errorf("%s; nothing was written", spelling.Count(len(problems), "problem", ""))
	}
	return err
}

// checkExpression judges as the server will. The error is one line.
func checkExpression(expr, dialect string) error {
	_, err := schedule.Parse(expr, schedule.Dialect(dialect))
	if e, ok := errors.AsType[*schedule.ParseError](err); ok && e.Hint != "" {
		return fmt.Errorf("%w (%s)", err, e.Hint)
	}
	return err
}
