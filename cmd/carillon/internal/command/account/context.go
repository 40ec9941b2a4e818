package account

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/cli"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/login"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/output"
	"github.com/carillon-sched/carillon/internal/apiclient"
)

// goodbyeTimeout bounds the end of a session at a server that may be gone.
const goodbyeTimeout = 5 * time.Second

func contextCommand(a *cli.App) *cobra.Command {
	return a.ServerFlags(cli.Group("context", "Names of servers, each with its session",
		"  carillon login --url https://carillon.example.com --context prod\n  carillon context list\n  carillon context use prod\n  carillon job list --context test",
		contextList(a), contextUse(a), contextAdd(a), contextRename(a), contextRemove(a)))
}

// shownContext is a context without its secrets.
type shownContext struct {
	Name       string `json:"name"`
	Current    bool   `json:"current"`
	Server     string `json:"server"`
	Login      string `json:"login"` // session, api_key or none
	Username   string `json:"username,omitempty"`
	Tenant     string `json:"tenant,omitempty"`
	APIKeyFile string `json:"apiKeyFile,omitempty"`
}

var contextView = output.View[shownContext]{
	Name: func(c shownContext) string { return c.Name },
	Columns: []output.Column[shownContext]{
		{Title: "", Value: func(c shownContext) string {
			if c.Current {
				return "*"
			}
			return " "
		}},
		{Title: "NAME", Value: func(c shownContext) string { return c.Name }},
		{Title: "SERVER", Value: func(c shownContext) string { return c.Server }},
		{Title: "LOGIN", Value: func(c shownContext) string { return c.Login }},
		{Title: "USER", Value: func(c shownContext) string { return c.Username }, Drop: 1},
		{Title: "TENANT", Value: func(c shownContext) string { return c.Tenant }, Drop: 2},
		{Title: "API KEY FILE", Value: func(c shownContext) string { return c.APIKeyFile }, Wide: true},
	},
}

func contextList(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the servers that have a name here", Args: cobra.NoArgs,
		Example: "  carillon context list\n  carillon context list -o json",
		RunE: func(*cobra.Command, []string) error {
			s, _, err := a.Layers()
			if err != nil {
				return err
			}
			all, current, err := s.Store.Contexts()
			if err != nil {
				return err
			}
			docs := []apiclient.Doc[shownContext]{}
			for _, name := range slices.Sorted(maps.Keys(all)) {
				doc, err := document(shown(name, current, all[name]))
				if err != nil {
					return err
				}
				docs = append(docs, doc)
			}
			return output.List(s.Printer, contextView, docs)
		},
	}
}

func shown(name, current string, c login.Context) shownContext {
	out := shownContext{Name: name, Current: name == current, Server: c.Server, Login: "none", APIKeyFile: c.APIKeyFile}
	switch {
	case c.Session != nil:
		out.Login, out.Username, out.Tenant = "session", c.Session.Username, c.Session.Tenant
	case c.APIKeyFile != "":
		out.Login = "api_key"
	}
	return out
}

// document is what a server would have sent.
func document(c shownContext) (doc apiclient.Doc[shownContext], err error) {
	raw, err := json.Marshal(c)
	if err == nil {
		err = json.Unmarshal(raw, &doc)
	}
	return doc, err
}

func contextUse(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "use NAME", Short: "Choose the server of commands that name none", Args: cobra.ExactArgs(1),
		Example: "  carillon context use prod", ValidArgsFunction: cli.CompleteContexts,
		RunE: func(_ *cobra.Command, args []string) error {
			s, err := named(a, args[0])
			if err != nil {
				return err
			}
			if err := s.Store.Use(s.Context); err != nil {
				return err
			}
			a.Say("Commands ask %s now (context %s).", s.URL, s.Context)
			return nil
		},
	}
}

func contextAdd(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "add NAME --url URL", Short: "Give a server a name without logging in", Args: cobra.ExactArgs(1),
		Long: `Gives a server a name. With --api-key-file commands use that key; the file is read
each time, and the key is not copied. Without it: carillon login --context NAME.`,
		Example: "  carillon context add ci --url https://carillon.example.com --api-key-file ~/.carillon/ci.key",
		RunE: func(_ *cobra.Command, args []string) error {
			s, keyFile, err := a.Layers()
			if err != nil {
				return err
			}
			name := args[0]
			if err := cli.CheckContextName(name); err != nil {
				return err
			}
			if s.Given.URL == "" {
				return cli.Usagef("say where it is with --url")
			}
			if keyFile != "" {
				if _, err := a.APIKey(keyFile); err != nil {
					return err
				}
				if keyFile, err = filepath.Abs(keyFile); err != nil {
					return err
				}
			}
			_, exists, err := s.Store.Find(name)
			if err != nil {
				return err
			}
			if exists {
				return cli.Fail(cli.ExitConflict, fmt.Errorf("there is a context %q already; see: carillon context list", name))
			}
			if err := s.Store.Put(name, login.Context{Server: s.Given.URL, APIKeyFile: keyFile}); err != nil {
				return err
			}
			a.Say("Context %s is %s. Use it with: carillon context use %s", name, s.Given.URL, name)
			return nil
		},
	}
}

func contextRename(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "rename NAME NEW", Short: "Give a context another name", Args: cobra.ExactArgs(2),
		Example: "  carillon context rename 127.0.0.1:8080 dev", ValidArgsFunction: cli.CompleteContexts,
		RunE: func(_ *cobra.Command, args []string) error {
			s, err := named(a, args[0])
			if err != nil {
				return err
			}
			if err := cli.CheckContextName(args[1]); err != nil {
				return err
			}
			_, taken, err := s.Store.Find(args[1])
			if err != nil {
				return err
			}
			if taken {
				return cli.Fail(cli.ExitConflict, fmt.Errorf("there is a context %q already; see: carillon context list", args[1]))
			}
			return s.Store.Rename(args[0], args[1])
		},
	}
}

func contextRemove(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "remove NAME", Short: "End the session of a context, and forget it", Args: cobra.ExactArgs(1),
		Example: "  carillon context remove old", ValidArgsFunction: cli.CompleteContexts,
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := named(a, args[0])
			if err != nil {
				return err
			}
			kept, _, err := s.Store.Find(s.Context)
			if err != nil {
				return err
			}
			if err := s.Store.Remove(s.Context); err != nil {
				return err
			}
			if kept.Session != nil {
				ctx, cancel := context.WithTimeout(cmd.Context(), goodbyeTimeout)
				defer cancel()
				if err := endSession(ctx, a, s, kept.Session); err != nil {
					a.Say("The session at %s could not be ended, and ends by itself: %v", s.URL, err)
				}
			}
			a.Say("Context %s is forgotten.", s.Context)
			return nil
		},
	}
}

// named is what Settings is for a context that is an argument.
func named(a *cli.App, name string) (cli.Settings, error) {
	s, _, err := a.Layers()
	if err == nil {
		err = s.LocateNamed(name)
	}
	return s, err
}
