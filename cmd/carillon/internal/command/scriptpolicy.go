package command

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/carillon-sched/carillon/cmd/carillon/internal/output"
	"github.com/carillon-sched/carillon/internal/apiclient"
)

var scriptPolicyView = output.View[apiclient.ScriptPolicy]{
	Name: func(p apiclient.ScriptPolicy) string { return number(p.Revision) },
	Columns: []output.Column[apiclient.ScriptPolicy]{
		{Title: "SCRIPTS", Value: func(p apiclient.ScriptPolicy) string {
			if len(p.Languages) == 0 {
				return "off"
			}
			return strings.Join(p.Languages, ",")
		}},
		{Title: "HTTP", Value: func(p apiclient.ScriptPolicy) string { return map[bool]string{true: "on", false: "off"}[p.HTTP] }},
		{Title: "SINCE", Value: func(p apiclient.ScriptPolicy) string {
			if p.CreatedAt == nil {
				return ""
			}
			return output.Stamp(*p.CreatedAt)
		}},
		{Title: "BY", Value: func(p apiclient.ScriptPolicy) string { return p.CreatedBy }},
		{Title: "NOTE", Value: func(p apiclient.ScriptPolicy) string { return firstLine(p.Note) }},
	},
}

func (a *App) scriptPolicy() *cobra.Command {
	var languages []string
	var chosen string
	var calls bool
	var note string
	cmd := &cobra.Command{
		Use: "policy", Short: "Show what agents may do for your tenant; with flags, set it as a platform administrator", Args: cobra.NoArgs,
		Example: "  carillon script policy\n  carillon script policy --languages shell,python --http --note 'agreed with security'\n  carillon script policy --languages none",
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := a.connect()
			if err != nil {
				return err
			}
			p, err := s.GetScriptPolicy(cmd.Context())
			if err != nil {
				return err
			}
			flags := cmd.Flags()
			if !flags.Changed("languages") && !flags.Changed("http") {
				return output.One(s.Printer, scriptPolicyView, p)
			}
			switch {
			case !flags.Changed("languages"):
				languages = p.Value.Languages
			case chosen == "none", chosen == "":
				languages = []string{}
			default:
				languages = strings.Split(chosen, ",")
			}
			if !flags.Changed("http") {
				calls = p.Value.HTTP
			}
			if p, err = s.SetScriptPolicy(cmd.Context(), apiclient.ScriptPolicyWrite{Languages: languages, HTTP: calls, Note: note}); err != nil {
				return err
			}
			return output.One(s.Printer, scriptPolicyView, p)
		},
	}
	choicesFlag(cmd, &chosen, "languages", append([]string{"none"}, scriptLanguages...), "languages whose scripts may be written and run, separated by commas, or none")
	cmd.Flags().BoolVar(&calls, "http", false, "whether jobs may make HTTP calls")
	cmd.Flags().StringVar(&note, "note", "", "why; kept with the policy")
	return cmd
}

func (a *App) scriptKey() *cobra.Command {
	return &cobra.Command{
		Use: "key", Short: "Print the public key that signs scripts, for carillon agent --script-key", Args: cobra.NoArgs, Example: "  carillon script key",
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := a.connect()
			if err != nil {
				return err
			}
			key, err := s.GetScriptKey(cmd.Context())
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(a.out, key.Value.PublicKey)
			return err
		},
	}
}
