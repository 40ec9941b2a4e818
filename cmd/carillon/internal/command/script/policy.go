package script

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/cli"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/output"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/settings"
	"github.com/carillon-sched/carillon/internal/apiclient"
)

var scriptPolicyView = output.View[apiclient.ScriptPolicy]{
	Name: func(p apiclient.ScriptPolicy) string { return cli.Number(p.Revision) },
	Columns: []output.Column[apiclient.ScriptPolicy]{
		{Title: "SCRIPTS", Value: func(p apiclient.ScriptPolicy) string {
			if len(p.Languages) == 0 {
				return "off"
			}
			return strings.Join(p.Languages, ",")
		}},
		{Title: "HTTP", Value: func(p apiclient.ScriptPolicy) string { return map[bool]string{true: "on", false: "off"}[p.HTTP] }},
		{Title: "CALLBACKS", Value: func(p apiclient.ScriptPolicy) string {
			if p.Callbacks == nil {
				return "off"
			}
			return fmt.Sprintf("%s (%s, %d per host)", strings.Join(p.Callbacks.Hosts, ","), p.Callbacks.MaxTimeout, p.Callbacks.PerHost)
		}},
		{Title: "SINCE", Value: func(p apiclient.ScriptPolicy) string {
			if p.CreatedAt == nil {
				return ""
			}
			return output.Stamp(*p.CreatedAt)
		}},
		{Title: "BY", Value: func(p apiclient.ScriptPolicy) string { return p.CreatedBy }},
		{Title: "NOTE", Value: func(p apiclient.ScriptPolicy) string { return cli.FirstLine(p.Note) }},
	},
}

func scriptPolicy(a *cli.App) *cobra.Command {
	var languages []string
	var chosen string
	var calls bool
	var note string
	var to callbackFlags
	cmd := &cobra.Command{
		Use: "policy", Short: "Show what agents and callbacks may do for your tenant; with flags, set it as a platform administrator", Args: cobra.NoArgs,
		Example: "  carillon script policy\n  carillon script policy --languages shell,python --http --note 'agreed with security'\n  carillon script policy --languages none\n  carillon script policy --callback-hosts 'api.example.com,*.example.org' --callback-max-timeout 10s",
		RunE: a.WithSession(func(cmd *cobra.Command, s *cli.Session, _ []string) error {
			p, err := s.GetScriptPolicy(cmd.Context())
			if err != nil {
				return err
			}
			flags := cmd.Flags()
			callbacks := to.changed(flags, p.Value.Callbacks)
			if !flags.Changed("languages") && !flags.Changed("http") && callbacks == nil {
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
			if p, err = s.SetScriptPolicy(cmd.Context(), apiclient.ScriptPolicyWrite{Languages: languages, HTTP: calls, Callbacks: callbacks, Note: note}); err != nil {
				return err
			}
			return output.One(s.Printer, scriptPolicyView, p)
		}),
	}
	for location, flag := range map[string]string{"hosts": "--callback-hosts", "maxTimeout": "--callback-max-timeout", "perHost": "--callbacks-per-host"} {
		cli.NameField(cmd, "body.callbacks."+location, flag)
	}
	cli.ChoicesFlag(cmd, &chosen, "languages", append([]string{"none"}, scriptLanguages...), "languages whose scripts may be written and run, separated by commas, or none")
	cmd.Flags().BoolVar(&calls, "http", false, "whether jobs may make HTTP calls")
	cmd.Flags().StringVar(&note, "note", "", "why; kept with the policy")
	to.add(cmd.Flags())
	return cmd
}

// callbackFlags say what the admin nodes may call.
type callbackFlags struct {
	hosts, timeout string
	perHost        int64
	newSecret      bool
}

func (f *callbackFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.hosts, "callback-hosts", "", "whom the admin nodes may call, as api.example.com,*.example.org:8443, or none")
	settings.SpanTextVar(flags, &f.timeout, "callback-max-timeout", "the longest that a callback may take, up to 10m (default 30s)")
	cli.NumberFlag(flags, &f.perHost, "callbacks-per-host", "", 0, 0, 0, "callbacks to one host that each node makes at a time (default 32)")
	flags.BoolVar(&f.newSecret, "new-callback-secret", false, "sign callbacks with a new secret from now on")
}

// changed is what is to count: as it is, but for the flags that were given. nil:
// none was.
func (f *callbackFlags) changed(flags *pflag.FlagSet, now *apiclient.CallbackPolicy) *apiclient.CallbackPolicyWrite {
	if !flags.Changed("callback-hosts") && !flags.Changed("callback-max-timeout") && !flags.Changed("callbacks-per-host") && !f.newSecret {
		return nil
	}
	out := &apiclient.CallbackPolicyWrite{Hosts: []string{}, NewSecret: f.newSecret}
	if now != nil {
		out.Hosts, out.MaxTimeout, out.PerHost = now.Hosts, now.MaxTimeout, now.PerHost
	}
	switch {
	case f.hosts == "none":
		out.Hosts = []string{}
	case f.hosts != "":
		out.Hosts = strings.Split(f.hosts, ",")
	}
	if f.timeout != "" {
		out.MaxTimeout = f.timeout
	}
	if flags.Changed("callbacks-per-host") {
		out.PerHost = f.perHost
	}
	return out
}

func callbackSecret(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "callback-secret", Short: "Print the secret that signs your tenant's callbacks, for those who receive them", Args: cobra.NoArgs, Example: "  carillon script callback-secret",
		RunE: a.WithSession(func(cmd *cobra.Command, s *cli.Session, _ []string) error {
			secret, err := s.GetCallbackSecret(cmd.Context())
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(a.Out, secret.Value.Secret)
			return err
		}),
	}
}

func scriptKey(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "key", Short: "Print the public key that signs scripts, for carillon agent --script-key", Args: cobra.NoArgs, Example: "  carillon script key",
		RunE: a.WithSession(func(cmd *cobra.Command, s *cli.Session, _ []string) error {
			key, err := s.GetScriptKey(cmd.Context())
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(a.Out, key.Value.PublicKey)
			return err
		}),
	}
}
