package command

import (
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/carillon-sched/carillon/cmd/carillon/internal/client"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/login"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/output"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/settings"
	"github.com/carillon-sched/carillon/internal/apiclient"
)

// DefaultURL is asked when nothing else is said.
const DefaultURL = "http://127.0.0.1:8080"

// App is what all commands share. It is fixed after New.
type App struct {
	version string
	in      io.Reader
	out     io.Writer
	err     io.Writer
	getenv  func(string) string
	now     func() time.Time
	flags   *pflag.FlagSet // of every command that asks a server
}

// New is the app of the real process.
func New(version string) *App {
	a := &App{version: version, in: os.Stdin, out: os.Stdout, err: os.Stderr, getenv: os.Getenv, now: time.Now}
	a.flags = pflag.NewFlagSet("server", pflag.ContinueOnError)
	a.flags.String("url", "", "server to ask (default: the one of the last login, or "+DefaultURL+")")
	a.flags.StringP("output", "o", string(output.Table), "format: table, wide, json, yaml or name")
	a.flags.Bool("no-color", false, "no colours (also by NO_COLOR)")
	a.flags.BoolP("verbose", "v", false, "show requests as curl commands, without secrets")
	a.flags.String("api-key-file", "", "file with an API key (CARILLON_API_KEY holds the key itself)")
	a.flags.String("config", "", "YAML file with these settings, by the flags' names")
	return a
}

// Commands returns everything that is not a server.
func (a *App) Commands() []*cobra.Command {
	return []*cobra.Command{
		a.loginCommand(), a.logoutCommand(), a.whoamiCommand(), a.passwordCommand(),
		a.jobCommand(), a.calendarCommand(), a.scriptCommand(), a.runCommand(), a.executorCommand(), a.limitCommand(), a.quotaCommand(), a.apiKeyCommand(), a.invitationCommand(), a.clusterCommand(),
		a.cronCommand(), a.generateCommand(), a.versionCommand(), a.licensesCommand(),
	}
}

// session is one connection with the settings of one command.
type session struct {
	*client.Client
	*output.Printer
	server string
}

// connect reads the settings and prepares to ask. No request is made yet.
func (a *App) connect() (*session, error) {
	s, err := a.settings()
	if err != nil {
		return nil, err
	}
	anonymous, err := client.New(a.clientConfig(s, nil))
	if err != nil {
		return nil, &exitError{exitUsage, err}
	}
	auth, err := a.authorizer(s, anonymous)
	if err != nil {
		return nil, err
	}
	c, err := client.New(a.clientConfig(s, auth))
	if err != nil {
		return nil, &exitError{exitUsage, err}
	}
	return &session{Client: c, Printer: s.printer, server: s.url}, nil
}

// authorizer: a key beats a session, because it was given for this call.
func (a *App) authorizer(s resolved, anonymous *client.Client) (client.Authorizer, error) {
	if s.apiKey != "" {
		return login.APIKey(s.apiKey), nil
	}
	return login.NewStoredSession(s.store, s.url, anonymous), nil
}

func (a *App) clientConfig(s resolved, auth client.Authorizer) client.Config {
	c := client.Config{URL: s.url, Auth: auth, UserAgent: "carillon-cli/" + a.version}
	if s.verbose {
		c.Trace = a.say
	}
	return c
}

// resolved are the settings of one command after all layers.
type resolved struct {
	url, apiKey string
	verbose     bool
	printer     *output.Printer
	store       *login.Store
}

// settings layers flags over CARILLON_ variables over the file of --config
// over defaults.
func (a *App) settings() (resolved, error) {
	file := a.flags.Lookup("config").Value.String()
	if file == "" {
		file = a.getenv(settings.Prefix + "CONFIG")
	}
	k, err := settings.Load(a.flags, file)
	if err != nil {
		return resolved{}, &exitError{exitUsage, err}
	}
	store, err := login.DefaultStore()
	if err != nil {
		return resolved{}, err
	}
	format, err := output.ParseFormat(k.String("output"))
	if err != nil {
		return resolved{}, &exitError{exitUsage, err}
	}
	r := resolved{url: k.String("url"), verbose: k.Bool("verbose"), store: store, printer: a.printer(format, k.Bool("no-color"))}
	if r.url == "" {
		if r.url, err = store.Server(); err != nil {
			return resolved{}, err
		}
	}
	if r.url == "" {
		r.url = DefaultURL
	}
	u, err := apiclient.ParseURL(r.url)
	if err != nil {
		return resolved{}, &exitError{exitUsage, err}
	}
	r.url = u.String() // one spelling, because sessions are kept by it
	r.apiKey, err = a.apiKey(k.String("api-key-file"))
	return r, err
}

// apiKey comes from the environment or a file, never from a flag: flags are
// seen by every user of the machine.
func (a *App) apiKey(file string) (string, error) {
	if key := a.getenv(settings.Prefix + "API_KEY"); key != "" {
		return key, nil
	}
	if file == "" {
		return "", nil
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		return "", usagef("api-key-file: %w", err)
	}
	key := firstLine(string(raw))
	if key == "" {
		return "", usagef("api-key-file: %s is empty", file)
	}
	return key, nil
}

// printer colours and fits to the width on a terminal only.
func (a *App) printer(format output.Format, noColor bool) *output.Printer {
	p := &output.Printer{Out: a.out, Format: format}
	if f, ok := a.out.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		p.Color = !noColor && a.getenv("NO_COLOR") == "" && a.getenv("CI") == "" && a.getenv("TERM") != "dumb"
		if width, _, err := term.GetSize(int(f.Fd())); err == nil {
			p.Width = width
		}
	}
	return p
}

// serverFlags adds the flags of commands that ask a server.
func (a *App) serverFlags(cmd *cobra.Command) *cobra.Command {
	cmd.PersistentFlags().AddFlagSet(a.flags)
	// Completion is best effort: without it the user types.
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(output.Formats, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// group makes a command that only holds others; a word it does not know is a
// usage error with a near miss.
func group(use, short, example string, commands ...*cobra.Command) *cobra.Command {
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
		return usagef("unknown command %q for %q; did you mean %q?", word, cmd.CommandPath(), near[0])
	}
	return usagef("unknown command %q for %q", word, cmd.CommandPath())
}
