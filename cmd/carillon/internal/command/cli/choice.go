package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/carillon-sched/carillon/internal/spelling"
)

// choice is the value of a flag that takes one of a few words, or several of
// them. A word that is none of them is a mistake of usage, found before the
// server is asked.
type choice struct {
	to       *string
	standard string // what nothing stands for
	values   []string
	many     bool // separated by commas
}

// ChoiceFlag adds a flag that takes one of values, in any case of letters.
func ChoiceFlag(cmd *cobra.Command, to *string, name, standard string, values []string, usage string) {
	*to = standard
	addChoice(cmd, &choice{to: to, standard: standard, values: values}, name, usage)
}

// ChoicesFlag adds a flag that takes some of values.
func ChoicesFlag(cmd *cobra.Command, to *string, name string, values []string, usage string) {
	addChoice(cmd, &choice{to: to, values: values, many: true}, name, usage)
}

// LabelFlag adds --label, -l: conditions on labels. A second flag adds a condition.
func LabelFlag(cmd *cobra.Command, to *string, usage string) {
	cmd.Flags().VarP((*labels)(to), "label", "l", usage+": key, key=value, or terms such as team=pay,tier in (gold, silver),env!=test")
}

type labels string

func (l *labels) String() string { return string(*l) }
func (l *labels) Type() string   { return "string" }

func (l *labels) Set(text string) error {
	if *l != "" {
		text = string(*l) + "," + text
	}
	*l = labels(text)
	return nil
}

func addChoice(cmd *cobra.Command, c *choice, name, usage string) {
	cmd.Flags().Var(c, name, usage)
	_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(c.values, cobra.ShellCompDirectiveNoFileComp))
}

func (c *choice) String() string { return *c.to }
func (c *choice) Type() string   { return "string" }

func (c *choice) Set(text string) error {
	if text == "" {
		*c.to = c.standard
		return nil
	}
	words := []string{text}
	if c.many {
		words = strings.Split(text, ",")
	}
	for i, word := range words {
		word = strings.TrimSpace(word)
		at := slices.IndexFunc(c.values, func(v string) bool { return strings.EqualFold(v, word) })
		if at < 0 {
			return c.wrong(word)
		}
		words[i] = c.values[at]
	}
	*c.to = strings.Join(words, ",")
	return nil
}

func (c *choice) wrong(word string) error {
	hint := spelling.Hint(word, c.values)
	if hint != "" {
		hint = "; " + hint
	}
	return fmt.Errorf("%q is none of %s%s", word, strings.Join(c.values, ", "), hint)
}

// OrList is "a, b or c".
func OrList(values []string) string {
	last := len(values) - 1
	return strings.Join(values[:last], ", ") + " or " + values[last]
}
