package cli

import (
	"encoding/json"
	"errors"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/carillon-sched/carillon/internal/apiclient"
)

// The server's problems name fields of the API ("body.after"). This file translates
// them into what the user has typed: a flag, or an argument of the command.

const annotationField = "field:"

// NameField says how a command calls a field of the API that is neither a flag nor
// an argument of it. The location has no indices.
func NameField(cmd *cobra.Command, location, name string) {
	if cmd.Annotations == nil {
		cmd.Annotations = map[string]string{}
	}
	cmd.Annotations[annotationField+location] = name
}

// otherFlags are flags that are not called like their fields.
var otherFlags = map[string]string{
	"key-prefix": "prefix", "q": "query", "n": "count", "zone": "tz", "to": "until", "from": "since",
}

// indices are those of items of lists in a location.
var indices = regexp.MustCompile(`\[\d+\]`)

// fieldName is what the command calls the field; "": it has no name for it.
func fieldName(cmd *cobra.Command, item apiclient.ProblemItem) string {
	if name := cmd.Annotations[annotationField+indices.ReplaceAllString(item.Location, "")]; name != "" {
		return name
	}
	place, path, found := strings.Cut(item.Location, ".")
	if !found {
		return ""
	}
	end := strings.IndexAny(path, ".[")
	if end < 0 {
		end = len(path)
	}
	below, isBelow := strings.CutPrefix(path[end:], ".") // an index says little of a list that was typed
	name := ""
	switch place {
	case "body", "query":
		field := kebab(path[:end])
		if name = flagOf(cmd, field); name == "" {
			name = argumentOf(cmd, field)
		}
		if name == "" && isBelow {
			return givenBelow(cmd, below)
		}
	case "path":
		name = typed(cmd, item.Value)
	}
	if name != "" && isBelow {
		name += " (" + below + ")"
	}
	return name
}

// givenBelow is the flag that was given for a field of an object, as --kind for match.kinds[0].
func givenBelow(cmd *cobra.Command, path string) string {
	for part := range strings.SplitSeq(path, ".") {
		part, _, _ = strings.Cut(part, "[")
		if name := flagOf(cmd, kebab(part)); name != "" && cmd.Flags().Changed(name[2:]) {
			return name
		}
	}
	return ""
}

// flagOf finds the flag for a field. The flags of all commands that ask a server
// (--url, --output) stand for no field.
func flagOf(cmd *cobra.Command, field string) string {
	flags := cmd.LocalNonPersistentFlags()
	one := strings.TrimSuffix(field, "s")
	for _, name := range []string{field, one, strings.TrimSuffix(one, "-id"), field + "-file", otherFlags[field]} {
		if name != "" && flags.Lookup(name) != nil {
			return "--" + name
		}
	}
	return ""
}

// arguments are the words for a command's arguments in its usage line.
func arguments(cmd *cobra.Command) (words []string) {
	for _, word := range strings.Fields(cmd.Use)[1:] {
		if word = strings.Trim(word, "[]."); word != "" && strings.ToUpper(word) == word {
			words = append(words, word)
		}
	}
	return words
}

func argumentOf(cmd *cobra.Command, field string) string {
	field = strings.ToUpper(field)
	for _, word := range arguments(cmd) {
		for part := range strings.SplitSeq(word, "/") {
			if part == field || part+"S" == field {
				return word
			}
		}
	}
	return ""
}

// typed finds the flag or the argument that has the value.
func typed(cmd *cobra.Command, value json.RawMessage) (name string) {
	var text string
	if json.Unmarshal(value, &text) != nil || text == "" {
		return ""
	}
	cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
		if f.Changed && f.Value.String() == text {
			name = "--" + f.Name
		}
	})
	if name != "" {
		return name
	}
	words := arguments(cmd)
	if i := slices.Index(cmd.Flags().Args(), text); i >= 0 && len(words) > 0 {
		return words[min(i, len(words)-1)]
	}
	return ""
}

// kebab writes maxAttempts as max-attempts.
func kebab(field string) string {
	var b strings.Builder
	for _, r := range field {
		if unicode.IsUpper(r) {
			b.WriteByte('-')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// CodeFor is CodeOf for an error of this command: a value of the command line that
// the server refuses is a mistake of usage.
func CodeFor(cmd *cobra.Command, err error) int {
	code := CodeOf(err)
	p, ok := errors.AsType[*apiclient.Problem](err)
	if code != ExitFailed || !ok || p.Status != http.StatusUnprocessableEntity || p.Code != apiclient.ProblemCodeValidationFailed || len(p.Errors) == 0 {
		return code
	}
	for _, item := range p.Errors {
		if fieldName(cmd, item) == "" {
			return code
		}
	}
	return ExitUsage
}

// allowing is the advice to repeat a request with a parameter, for callers of the API.
var allowing = regexp.MustCompile(`\b(allow\w+)=true\b`)

// inFlags is the problem in the words of the command. Advice is given once: for a
// parameter that is a flag here, nextStep gives it.
func inFlags(cmd *cobra.Command, p *apiclient.Problem) *apiclient.Problem {
	said := *p
	said.Errors = slices.Clone(p.Errors)
	for i := range said.Errors {
		item := &said.Errors[i]
		if strings.HasSuffix(item.Location, ".executor") && strings.HasPrefix(item.Message, "must be an object") {
			item.Hint = executorHint(item.Value)
		}
		if name := fieldName(cmd, *item); name != "" {
			said.Detail = strings.ReplaceAll(said.Detail, item.Location+":", name+":")
			item.Location = name
		}
		advice := allowing.FindStringSubmatch(item.Hint)
		told := p.Code == apiclient.ProblemCodeUnknownHandler || p.Code == apiclient.ProblemCodeUnfitInput // by nextStep
		switch {
		case advice != nil && !told && cmd.Flags().Lookup(kebab(advice[1])) != nil:
			flag := allowing.ReplaceAllString(item.Hint, "--"+kebab(advice[1]))
			said.Detail = strings.Replace(said.Detail, item.Hint, flag, 1)
			item.Message = strings.Replace(item.Message, item.Hint, flag, 1)
			item.Hint = flag
		case advice != nil && cmd.Flags().Lookup(kebab(advice[1])) != nil:
			said.Detail = strings.Replace(said.Detail, "; "+item.Hint, "", 1)
			item.Message = strings.Replace(item.Message, "; "+item.Hint, "", 1)
			item.Hint = ""
		case item.Hint != "" && strings.Contains(said.Detail, item.Hint):
			item.Hint = ""
		}
	}
	for i := range said.Errors { // after advice that nextStep gives is taken out
		said.Errors[i].Message = asFlags(cmd, said.Errors[i].Message)
	}
	said.Detail = asFlags(cmd, said.Detail)
	return &said
}

// inAPI is a name as the API writes it, with a value that is proposed for it.
var inAPI = regexp.MustCompile(`\b[a-z]+(?:[A-Z][a-z]*)+(?:=true)?\b`)

// asFlags writes names of the API in a text as the flags of a command.
func asFlags(cmd *cobra.Command, text string) string {
	return inAPI.ReplaceAllStringFunc(text, func(name string) string {
		flag := flagOf(cmd, kebab(strings.TrimSuffix(name, "=true")))
		if flag == "" || strings.Contains(text, flag) {
			return name
		}
		return flag
	})
}

// executorHint shows how a job's file names its executor.
func executorHint(value json.RawMessage) string {
	var name string
	if json.Unmarshal(value, &name) != nil || name == "" {
		name = "NAME"
	}
	return "write executor: {name: " + name + "}"
}

// missing finds in a message what there is none of.
var missing = regexp.MustCompile(`\bno (?:such )?([a-z]+)`)

// listOf finds the command that lists what the problem says is not there; without a
// word of it, the list of what the command is about.
func listOf(cmd *cobra.Command, p *apiclient.Problem) *cobra.Command {
	about := cmd.Parent()
	if about == nil || about == cmd.Root() {
		about = nil
	}
	if found := missing.FindStringSubmatch(p.Detail); found != nil {
		for _, c := range cmd.Root().Commands() {
			if c.Name() == found[1] {
				about = c
			}
		}
	}
	if about == nil {
		return nil
	}
	for _, c := range about.Commands() {
		if c.Name() == "list" {
			return c
		}
	}
	return nil
}
