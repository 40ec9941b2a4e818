package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/carillon-sched/carillon/admin"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/cli"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/output"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/settings"
	"github.com/carillon-sched/carillon/internal/spelling"
)

func newConfigCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "config",
		Short:   "Explain the settings of a server",
		Example: "  carillon config explain --config /etc/carillon/server.yaml",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newConfigExplainCommand())
	return cmd
}

func newConfigExplainCommand() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "explain [SETTING]",
		Short: "Show each setting of a server with its value, and where that is from",
		Long: `Shows the settings that a server would have with the same flags, CARILLON_
variables and file of --config: value, where it is from, default, meaning. Secrets
are masked. Keys of the file that are no setting, values that are not taken, and
variables that look like a misspelt setting are told on standard error.

Exit code 0: a server would take it. 1: it would not. 2: the command line is wrong.`,
		Example: `  carillon config explain --config /etc/carillon/server.yaml
  carillon config explain run-retention
  carillon config explain -o json`,
		Args: cobra.MaximumNArgs(1),
	}
	flags := newServerCommand().Flags() // all of them, so that the server's own command line can be given
	cmd.Flags().AddFlagSet(flags)
	cli.FormatFlag(cmd, &format)
	cmd.ValidArgsFunction = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return settingNames(flags), cobra.ShellCompDirectiveNoFileComp
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		e, err := explainSettings(flags)
		if err != nil {
			return err
		}
		out := cmd.OutOrStdout()
		switch {
		case len(args) == 1:
			err = e.writeOne(out, args[0], format)
		case format == "json":
			err = writeJSON(out, e)
		default:
			err = e.writeTable(out)
		}
		if err != nil {
			return err
		}
		for _, problem := range append(slices.Clone(e.Problems), e.Doubts...) {
			fmt.Fprintln(cmd.ErrOrStderr(), output.Clean(problem))
		}
		if len(e.Problems) > 0 {
			return cli.Fail(1, nil)
		}
		return nil
	}
	return cmd
}

// explanation is what `config explain -o json` writes.
type explanation struct {
	Settings []explainedSetting `json:"settings"`
	// Problems keep a server from starting; Doubts do not.
	Problems []string `json:"problems"`
	Doubts   []string `json:"doubts"`
}

type explainedSetting struct {
	Name string `json:"name"`
	// Value is masked where it holds a secret; empty with Default if none was given.
	Value string `json:"value"`
	// From is default, file, variable or flag, and Where names the place.
	From    settings.Kind `json:"from"`
	Where   string        `json:"where,omitempty"`
	Default string        `json:"default"`
	Meaning string        `json:"meaning"`
	Secret  bool          `json:"secret"`

	variable bool // and nothing else
}

// secretVariables are settings that are no flags, because all users of a machine
// see flags: what stands in the file of --X-file is also the variable of X.
func secretVariables(flags *pflag.FlagSet) map[string]string {
	out := map[string]string{}
	flags.VisitAll(func(f *pflag.Flag) {
		if name, isFile := strings.CutSuffix(f.Name, "-file"); isFile {
			out[name] = "what the file of --" + f.Name + " holds, as a variable"
		}
	})
	return out
}

func explainSettings(flags *pflag.FlagSet) (*explanation, error) {
	resolved, err := settings.Resolve(flags, configFileOf(flags))
	if err != nil {
		return nil, err
	}
	e := &explanation{Problems: []string{}, Doubts: misspeltVariables(flags)}
	for _, unknown := range resolved.Unknown {
		e.Problems = append(e.Problems, unknown.Error())
	}
	for _, s := range resolved.Settings {
		if s.Err != nil {
			e.Problems = append(e.Problems, s.Err.Error())
		}
		e.Settings = append(e.Settings, explainSetting(s))
	}
	for name, meaning := range secretVariables(flags) {
		one := explainedSetting{Name: name, From: settings.Default, Default: "none", Meaning: meaning, Secret: true, variable: true}
		if os.Getenv(settings.Variable(name)) != "" {
			one.Value, one.From, one.Where = masked, settings.Environment, settings.Variable(name)
		}
		e.Settings = append(e.Settings, one)
	}
	slices.SortFunc(e.Settings, func(a, b explainedSetting) int { return strings.Compare(a.Name, b.Name) })
	if len(e.Problems) == 0 { // what only the whole can tell
		if _, err := serverConfig(io.Discard, flags); err != nil {
			e.Problems = append(e.Problems, err.Error())
		}
	}
	slices.Sort(e.Problems)
	return e, nil
}

func explainSetting(s settings.Setting) explainedSetting {
	meaning, otherwise := splitUsage(s.Flag)
	value := strings.TrimSuffix(strings.TrimPrefix(s.Flag.Value.String(), "["), "]")
	mask, secret := maskOf(s.Flag.Name)
	if secret && value != "" {
		value = mask(value)
	}
	if s.From == settings.Default {
		value = ""
	}
	return explainedSetting{Name: s.Flag.Name, Value: value, From: s.From, Where: s.Where, Default: otherwise, Meaning: meaning, Secret: secret}
}

var defaultInUsage = regexp.MustCompile(`^(.*) \(default:? (.*)\)$`)

// splitUsage parts what a flag means from its default, which may stand there only.
func splitUsage(f *pflag.Flag) (meaning, otherwise string) {
	otherwise = strings.TrimSuffix(strings.TrimPrefix(f.DefValue, "["), "]")
	if in := defaultInUsage.FindStringSubmatch(f.Usage); in != nil {
		return in[1], in[2]
	}
	if otherwise == "" || otherwise == "0s" && f.Value.Type() == "duration" {
		otherwise = "none"
	}
	return f.Usage, otherwise
}

const masked = "***"

// maskedSettings hide what is secret in the values of these settings.
var maskedSettings = map[string]func(string) string{
	"database":  maskPassword,
	"hot-store": maskPassword,
}

// maskOf hides what is secret in the value of a setting.
func maskOf(name string) (mask func(string) string, secret bool) {
	if slices.ContainsFunc(admin.AddOnSettings(), func(s admin.AddOnSetting) bool { return s.Name == name && s.Kind == admin.AddressSetting }) {
		return maskPath, true
	}
	mask, secret = maskedSettings[name]
	return mask, secret
}

// maskPassword hides what stands between the user and the last @, as the
// database's address is read.
func maskPassword(text string) string {
	at := strings.LastIndex(text, "@")
	if at < 0 {
		return text
	}
	begin := 0
	if i := strings.Index(text, "://"); i >= 0 {
		begin = i + len("://")
	} else if i := strings.Index(text, ":"); i >= 0 {
		begin = i + 1
	}
	if colon := strings.Index(text[min(begin, at):at], ":"); colon >= 0 {
		return text[:begin+colon+1] + masked + text[at:]
	}
	return text
}

// maskPath leaves the host: services put a token into the path.
func maskPath(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return masked
	}
	return u.Scheme + "://" + u.Host + "/" + masked
}

// misspeltVariables are those that are no setting of any command and look like one.
func misspeltVariables(flags *pflag.FlagSet) []string {
	ours := settingNames(flags)
	known := map[string]bool{}
	var names []string
	for _, name := range ours {
		names = append(names, settings.Variable(name))
	}
	agent := pflag.NewFlagSet("agent", pflag.ContinueOnError)
	agentFlags(agent)
	for _, name := range slices.Concat(names, cli.Variables()) {
		known[name] = true
	}
	agent.VisitAll(func(f *pflag.Flag) { known[settings.Variable(f.Name)] = true })
	out := []string{}
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, settings.Prefix) || known[name] || strings.HasPrefix(name, settings.Prefix+"EXECUTOR_") || settings.LinkName(name) {
			continue
		}
		if hint := spelling.Hint(strings.TrimPrefix(name, settings.Prefix), withoutPrefix(names)); hint != "" {
			out = append(out, fmt.Sprintf("the variable %s is no setting; without its prefix: %s", name, hint))
		}
	}
	for _, name := range settings.Links(flags) {
		out = append(out, fmt.Sprintf("the variable %s is not taken as a setting: Kubernetes made it of a service; %s", name, linkRemedy))
	}
	slices.Sort(out)
	return out
}

func withoutPrefix(names []string) []string {
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = strings.TrimPrefix(name, settings.Prefix)
	}
	return out
}

// settingNames are all of them, also those that are no flags.
func settingNames(flags *pflag.FlagSet) (out []string) {
	flags.VisitAll(func(f *pflag.Flag) { out = append(out, f.Name) })
	for name := range secretVariables(flags) {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

var explainedColumns = []output.Column[explainedSetting]{
	{Title: "SETTING", Value: func(s explainedSetting) string { return s.Name }},
	{Title: "VALUE", Value: func(s explainedSetting) string {
		if s.From == settings.Default {
			return s.Default
		}
		return s.Value
	}},
	{Title: "FROM", Value: func(s explainedSetting) string {
		if s.From == settings.Default {
			return string(s.From)
		}
		return s.Where
	}},
}

func (e *explanation) writeTable(w io.Writer) error {
	return output.Rows(&output.Printer{Out: w, Format: output.Table}, explainedColumns, e.Settings)
}

func (e *explanation) writeOne(w io.Writer, name, format string) error {
	name = strings.TrimPrefix(name, "--")
	if strings.HasPrefix(name, settings.Prefix) {
		name = strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(name, settings.Prefix), "_", "-"))
	}
	var names []string
	for _, s := range e.Settings {
		names = append(names, s.Name)
		if s.Name != name {
			continue
		}
		if format == "json" {
			return writeJSON(w, s)
		}
		value, where := s.Value, s.Where
		if s.From == settings.Default {
			value, where = s.Default, "nowhere: it is the default"
		}
		as := "--" + name + ", " + settings.Variable(name) + ", or " + name + ": in the file of --config"
		if s.variable {
			as = settings.Variable(name)
		}
		_, err := fmt.Fprintf(w, "%s\n  means    %s\n  value    %s\n  from     %s\n  default  %s\n  give it  %s\n",
			name, s.Meaning, output.Clean(value), output.Clean(where), s.Default, as)
		return err
	}
	err := fmt.Sprintf("there is no setting %q", name)
	if hint := spelling.Hint(name, names); hint != "" {
		err += "; " + hint
	}
	return cli.Fail(3, errors.New(err))
}

func writeJSON(w io.Writer, v any) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(v)
}
