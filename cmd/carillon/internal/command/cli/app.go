package cli

import (
	"context"
	"io"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/carillon-sched/carillon/cmd/carillon/internal/client"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/login"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/output"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/settings"
)

// DefaultURL is asked when nothing else is said.
const DefaultURL = "http://127.0.0.1:8080"

// App is what all commands share. It is fixed once all commands are made.
type App struct {
	Version string
	In      io.Reader
	Out     io.Writer // data
	Err     io.Writer // talk
	Now     func() time.Time
	getenv  func(string) string
	flags   *pflag.FlagSet // of every command that asks a server
	extend  []func(find func(path ...string) *cobra.Command)
}

// Extend lets an add-on change commands when all of them are made. find returns the command
// with these names, one below the other.
func (a *App) Extend(f func(find func(path ...string) *cobra.Command)) {
	a.extend = append(a.extend, f)
}

// ExtendAll calls what Extend was given.
func (a *App) ExtendAll(all []*cobra.Command) {
	find := func(path ...string) (found *cobra.Command) {
		for below := all; len(path) > 0; path = path[1:] {
			i := slices.IndexFunc(below, func(c *cobra.Command) bool { return c.Name() == path[0] })
			found = below[i] // it is a mistake of the add-on if there is none
			below = found.Commands()
		}
		return found
	}
	for _, f := range a.extend {
		f(find)
	}
}

// New is the app of the real process.
func New(version string) *App {
	a := &App{Version: version, In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Now: time.Now, getenv: os.Getenv}
	a.flags = pflag.NewFlagSet("server", pflag.ContinueOnError)
	a.flags.String("url", "", "server to ask (default: that of the current context, or "+DefaultURL+")")
	a.flags.String("context", "", "name of the server to ask, with its session (carillon context list)")
	a.flags.StringP("output", "o", string(output.Table), "format: table, wide, json, yaml or name")
	a.flags.Bool("no-color", false, "no colours (also by NO_COLOR)")
	a.flags.BoolP("verbose", "v", false, "show requests as curl commands, without secrets")
	a.flags.String("api-key-file", "", "file with an API key (CARILLON_API_KEY holds the key itself)")
	a.flags.String("config", "", "YAML file with these settings, by the flags' names")
	return a
}

// Variables are the names of the environment variables of these commands.
func Variables() []string {
	out := []string{settings.Variable("api-key")}
	New("").flags.VisitAll(func(f *pflag.Flag) { out = append(out, settings.Variable(f.Name)) })
	return out
}

// Session is one connection with the settings of one command.
type Session struct {
	*client.Client
	*output.Printer
	Server string // its address
}

// Connect reads the settings and prepares to ask. No request is made yet.
func (a *App) Connect() (*Session, error) {
	s, err := a.Settings()
	if err != nil {
		return nil, err
	}
	anonymous, err := client.New(a.ClientConfig(s, nil))
	if err != nil {
		return nil, &exitError{ExitUsage, err}
	}
	auth, err := a.Authorizer(s, anonymous)
	if err != nil {
		return nil, err
	}
	c, err := client.New(a.ClientConfig(s, auth))
	if err != nil {
		return nil, &exitError{ExitUsage, err}
	}
	return &Session{Client: c, Printer: s.Printer, Server: s.URL}, nil
}

// WithSession makes the function of a command that asks a server.
func (a *App) WithSession(run func(*cobra.Command, *Session, []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		s, err := a.Connect()
		if err != nil {
			return err
		}
		return run(cmd, s, args)
	}
}

// About is WithSession for commands whose first argument names an object, which
// find looks up.
func About[T any](
	a *App, find func(context.Context, *Session, string) (T, error), run func(*cobra.Command, *Session, T, []string) error,
) func(*cobra.Command, []string) error {
	return a.WithSession(func(cmd *cobra.Command, s *Session, args []string) error {
		found, err := find(cmd.Context(), s, args[0])
		if err != nil {
			return err
		}
		return run(cmd, s, found, args)
	})
}

// Authorizer: a key beats a session, because it was given for this call.
func (a *App) Authorizer(s Settings, anonymous *client.Client) (client.Authorizer, error) {
	if s.apiKey != "" {
		return login.APIKey(s.apiKey), nil
	}
	return login.NewStoredSession(s.Store, s.Context, s.URL, anonymous), nil
}

// ClientConfig is that of a client with these settings; auth may be nil.
func (a *App) ClientConfig(s Settings, auth client.Authorizer) client.Config {
	c := client.Config{URL: s.URL, Auth: auth, UserAgent: "carillon-cli/" + a.Version}
	if s.verbose {
		c.Trace = a.Say
	}
	if s.apiKey != "" && auth != nil {
		told := false
		c.Elsewhere = func(cell, url string) {
			if !told {
				a.Say("The tenant lives in the cell %s: asking %s.", output.Clean(cell), output.Clean(url))
			}
			told = true
		}
	}
	return c
}
