package cli

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/carillon-sched/carillon/cmd/carillon/internal/settings"
	"github.com/carillon-sched/carillon/internal/spelling"
)

// FlagError is a mistake in a flag, in the words of the command line.
func FlagError(cmd *cobra.Command, err error) error {
	if wrong, is := errors.AsType[*pflag.InvalidValueError](err); is {
		return Usagef("--%s: %w", wrong.GetFlag().Name, settings.Told(wrong.Unwrap(), wrong.GetValue()))
	}
	if missing, is := errors.AsType[*pflag.ValueRequiredError](err); is {
		return Usagef("--%s needs a value: %s", missing.GetFlag().Name, missing.GetFlag().Usage)
	}
	if unknown, is := errors.AsType[*pflag.NotExistError](err); is {
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, "--"+f.Name) })
		if hint := spelling.Hint("--"+unknown.GetSpecifiedName(), names); hint != "" {
			return Usagef("%w; %s", err, hint)
		}
	}
	return Usagef("%w", err)
}

// plainArguments lets the rules for the arguments of all commands tell their errors in the words of
// the usage line.
func plainArguments(cmd *cobra.Command) {
	if rule := cmd.Args; rule != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			err := rule(cmd, args)
			if _, own := errors.AsType[*exitError](err); err == nil || own {
				return err
			}
			return argumentError(cmd, args, err)
		}
	}
	for _, below := range cmd.Commands() {
		plainArguments(below)
	}
}

func argumentError(cmd *cobra.Command, args []string, err error) error {
	needed, most := placesOf(cmd)
	usage := strings.TrimSpace(cmd.Parent().CommandPath() + " " + cmd.Use)
	switch {
	case len(args) < len(needed) && strings.Contains(needed[len(args)], "|"):
		return Usagef("an argument is missing: write %s", usage)
	case len(args) < len(needed):
		return Usagef("%s is missing: write %s", needed[len(args)], usage)
	case most == 0:
		return Usagef("%s takes no argument: leave out %q", cmd.CommandPath(), args[0])
	case most > 0 && len(args) > most:
		return Usagef("%q is one argument too many: write %s", args[most], usage)
	}
	return Usagef("%w: write %s", err, usage)
}

// placesOf are the arguments of a usage line that must be given, and how many may be; -1: any number.
func placesOf(cmd *cobra.Command) (needed []string, most int) {
	for _, word := range strings.Fields(cmd.Use)[1:] {
		if word[0] == '-' || word == "|" {
			break
		}
		if word[0] != '[' {
			needed = append(needed, strings.TrimRight(word, ".…"))
		}
		if most++; strings.Contains(word, "...") || strings.Contains(word, "…") {
			return needed, -1
		}
	}
	return needed, most
}

// NumberFlag adds a flag that takes a whole number from least to most. A most of 0 is no bound.
func NumberFlag[N int | int64](f *pflag.FlagSet, to *N, name, short string, standard, least, most N, usage string) {
	*to = standard
	f.VarP(&number[N]{to, least, most}, name, short, usage)
}

// LimitFlag adds --limit, -n: how many items a list shows at most. 0 = all.
func LimitFlag(cmd *cobra.Command, to *int, standard int, usage string) {
	NumberFlag(cmd.Flags(), to, "limit", "n", standard, 0, 0, usage+" (0 = all)")
}

type number[N int | int64] struct {
	to          *N
	least, most N
}

func (n *number[N]) String() string { return fmt.Sprint(*n.to) }
func (n *number[N]) Type() string   { return "int" }

func (n *number[N]) Set(text string) error {
	read, err := strconv.ParseInt(text, 10, strconv.IntSize)
	if err != nil {
		return settings.Told(err, text)
	}
	value := N(read)
	switch {
	case n.most > 0 && (value < n.least || value > n.most):
		return fmt.Errorf("%d is out of range: use a number from %d to %d", value, n.least, n.most)
	case value < n.least:
		return fmt.Errorf("%d is too small: use %d or more", value, n.least)
	}
	*n.to = value
	return nil
}

// FormatFlag adds --output, -o to a command that runs beside the database and prints text or JSON.
func FormatFlag(cmd *cobra.Command, to *string) {
	c := &choice{to: to, standard: "text", values: []string{"text", "json"}}
	*to = c.standard
	cmd.Flags().VarP(c, "output", "o", "format: text or json")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(c.values, cobra.ShellCompDirectiveNoFileComp))
}

// OneOf refuses a word that is none of values, and says which may be meant. what is a flag or an
// argument.
func OneOf(what, word string, values []string) error {
	if slices.Contains(values, word) {
		return nil
	}
	c := choice{values: values}
	return Usagef("%s: %w", what, c.wrong(word))
}
