package cli

import (
	"github.com/spf13/cobra"

	"github.com/carillon-sched/carillon/cmd/carillon/internal/output"
)

// ServerFlags adds the flags of commands that ask a server.
func (a *App) ServerFlags(cmd *cobra.Command) *cobra.Command {
	cmd.PersistentFlags().AddFlagSet(a.flags)
	// Completion is best effort: without it the user types.
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(output.Formats, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("context", CompleteContexts)
	return cmd
}

// Group makes a command that only holds others; a word it does not know is a
// usage error with a near miss.
func Group(use, short, example string, commands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short, Example: example,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return unknownCommand(cmd, args[0])
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(commands...)
	return cmd
}

func unknownCommand(cmd *cobra.Command, word string) error {
	cmd.SuggestionsMinimumDistance = 2
	if near := cmd.SuggestionsFor(word); len(near) > 0 {
		return Usagef("unknown command %q for %q; did you mean %q?", word, cmd.CommandPath(), near[0])
	}
	return Usagef("unknown command %q for %q", word, cmd.CommandPath())
}
