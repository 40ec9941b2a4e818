package local

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/cli"
	"github.com/carillon-sched/carillon/internal/spelling"
	"github.com/carillon-sched/carillon/schedule"
)

var dialects = []string{"auto", "standard", "seconds", "quartz"}

// Commands are those that need no server.
func Commands(a *cli.App) []*cobra.Command {
	return []*cobra.Command{cronCommand(a), generateCommand(a), versionCommand(a), licensesCommand(a)}
}

func cronCommand(a *cli.App) *cobra.Command {
	return cli.Group("cron", "Try cron expressions, without a server",
		"  carillon cron next '0 0 2 * * *' --tz Asia/Shanghai -n 3\n  carillon cron explain '0 0 2 ? * 6L'",
		cronNext(a), cronExplain(a), cronCheck(a))
}

// cronFlags are the flags that the cron commands share.
type cronFlags struct {
	dialect, zone, from string
	n                   int
}

func (f *cronFlags) add(cmd *cobra.Command, n int) {
	cli.ChoiceFlag(cmd, &f.dialect, "dialect", "auto", dialects, "auto, standard (5 fields), seconds (6) or quartz (6 or 7)")
	cmd.Flags().StringVar(&f.zone, "tz", "UTC", "IANA time zone")
	cmd.Flags().StringVar(&f.from, "from", "", "after this instant, RFC 3339 (default: now)")
	cli.NumberFlag(cmd.Flags(), &f.n, "count", "n", n, 0, 10_000, "how many fire times")
}

// parse reads the expression as the server does; a mistake in it is shown with
// a caret below.
func parseCron(expr, dialect, lang string) (*schedule.Cron, error) {
	c, err := schedule.Parse(expr, schedule.Dialect(dialect))
	if e, ok := errors.AsType[*schedule.ParseError](err); ok {
		return nil, errors.New(e.DetailIn(lang))
	}
	return c, err
}

// fires writes the next fire times, and "none" when there are fewer.
func fires(a *cli.App, expr string, f cronFlags) error {
	s, at, err := f.compile(a, expr)
	if err != nil {
		return err
	}
	list := s.NextN(at, f.n)
	for _, fire := range list {
		if _, err := fmt.Fprintln(a.Out, fire.Format(time.RFC3339)); err != nil {
			return err
		}
	}
	if len(list) < f.n {
		_, err = fmt.Fprintln(a.Out, "none")
	}
	return err
}

// compile makes a schedule of the expression, and says after which instant it
// is asked.
func (f cronFlags) compile(a *cli.App, expr string) (s *schedule.Schedule, at time.Time, err error) {
	zone, err := loadZone(f.zone)
	if err != nil {
		return nil, at, err
	}
	at = a.Now()
	if f.from != "" {
		if at, err = time.Parse(time.RFC3339, f.from); err != nil {
			return nil, at, cli.Usagef("--from %q is no instant such as 2026-11-21T04:00:00Z", f.from)
		}
	}
	s, err = schedule.Compile(schedule.Spec{
		Kind: schedule.KindCron, Expr: expr, Dialect: schedule.Dialect(f.dialect), Zone: zone.String(),
	})
	return s, at, err
}

func loadZone(name string) (*time.Location, error) {
	zone, err := schedule.LoadZone(name)
	if err != nil {
		return nil, cli.Usagef("--tz: %v", err)
	}
	return zone, nil
}

func cronNext(a *cli.App) *cobra.Command {
	var f cronFlags
	var verbose bool
	cmd := &cobra.Command{
		Use: "next EXPRESSION", Short: "Print the next fire times, one per line, or none", Args: cobra.ExactArgs(1),
		Long:    "Prints the next fire times by the rules of time zones of this machine; -v says which they\nare, so that they can be compared with those of the server (carillon cluster -o wide).",
		Example: "  carillon cron next '0 0 2 * * *' --tz Asia/Shanghai\n  carillon cron next '0 0 12 L * ?' --from 2027-01-01T00:00:00Z -n 12",
		RunE: func(_ *cobra.Command, args []string) error {
			if _, err := parseCron(args[0], f.dialect, "en"); err != nil {
				return err
			}
			if verbose {
				a.Say("time zone rules: %s", schedule.CurrentZoneRules())
			}
			return fires(a, args[0], f)
		},
	}
	f.add(cmd, 10)
	cmd.Flags().BoolVarP(&verbose, "verbose", "v", false, "say which rules of time zones are used")
	return cmd
}

func cronExplain(a *cli.App) *cobra.Command {
	var f cronFlags
	var lang string
	cmd := &cobra.Command{
		Use: "explain EXPRESSION", Short: "Say an expression in words, or show where it is wrong", Args: cobra.ExactArgs(1),
		Example: "  carillon cron explain '0 */15 9-17 * * MON-FRI'\n  carillon cron explain '0 0 2 ? * 6L' --lang zh -n 3 --tz Asia/Shanghai",
		RunE: func(_ *cobra.Command, args []string) error {
			c, err := parseCron(args[0], f.dialect, lang)
			if err != nil {
				return err
			}
			if err := explainCron(a, c, args[0], f, lang); err != nil || f.n == 0 {
				return err
			}
			return fires(a, args[0], f)
		},
	}
	f.add(cmd, 0)
	a.LanguageFlag(cmd, &lang)
	return cmd
}

// explainCron says the expression in words, with its zone where one was given,
// and that it never fires, where it does not: that is no mere warning.
func explainCron(a *cli.App, c *schedule.Cron, expr string, f cronFlags, lang string) error {
	s, at, err := f.compile(a, expr)
	if err != nil {
		return err
	}
	text := c.Explain(lang)
	if f.zone != "UTC" {
		text = s.Explain(lang)
	}
	_, fires := s.Next(at)
	never := schedule.WarnNever.Text(lang)
	if !fires && !slices.Contains(c.Warnings(), schedule.WarnNever) {
		never = cronWords[lang].over
	}
	if !fires {
		text += "\n" + never
	}
	if _, err := fmt.Fprintln(a.Out, text); err != nil {
		return err
	}
	if f.dialect == "auto" || f.dialect == "" {
		a.Say(cronWords[lang].dialect, c.Dialect())
	}
	for _, w := range c.Warnings() {
		if w != schedule.WarnNever { // said above
			a.Say(cronWords[lang].warning, w.Text(lang))
		}
	}
	return nil
}

// cronWords are those around what the engine says.
var cronWords = map[string]struct{ dialect, warning, over string }{
	"en": {"dialect: %s", "warning: %s", "It never fires again: all its dates have passed."},
	"zh": {"方言：%s", "警告：%s", "不会再触发：所有日期均已过去。"},
}

func cronCheck(a *cli.App) *cobra.Command {
	var dialect string
	cmd := &cobra.Command{
		Use: "check FILE", Short: "Compare the engine with a file of expected fire times", Args: cobra.ExactArgs(1),
		Long: `Compares the engine with a file of expected fire times and prints every
mismatch; exits 1 if there is one. Lines have four fields, separated by tabs:

  expression   time zone   start (exclusive)   fire times, separated by spaces

The last fire time may be "none": it does not fire any more. Lines that begin
with # are comments. - is standard input.`,
		Example: "  carillon cron check vectors.tsv\n  carillon cron check --dialect standard crontab.tsv",
		RunE: func(_ *cobra.Command, args []string) error {
			in := a.In
			if args[0] != "-" {
				file, err := os.Open(args[0])
				if err != nil {
					return cli.Usagef("%w", err)
				}
				defer file.Close()
				in = file
			}
			return checkCron(a, in, dialect)
		},
	}
	cli.ChoiceFlag(cmd, &dialect, "dialect", "quartz", dialects, "dialect of the expressions")
	return cmd
}

func checkCron(a *cli.App, in io.Reader, dialect string) error {
	if !schedule.Dialect(dialect).Valid() {
		return cli.Usagef("--dialect %q is none of %s", dialect, strings.Join(dialects, ", "))
	}
	checked, mismatches, err := checkVectors(in, schedule.Dialect(dialect), a.Out)
	if err != nil {
		return err
	}
	a.Say("%s checked, %s", spelling.Count(checked, "expression", ""), spelling.Count(mismatches, "mismatch", ""))
	switch {
	case mismatches > 0:
		return cli.Fail(cli.ExitFailed, nil)
	case checked == 0:
		return errors.New("the file has no expressions")
	}
	return nil
}
