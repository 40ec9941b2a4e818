package account

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"net"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/carillon-sched/carillon/cmd/carillon/internal/client"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/cli"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/login"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/output"
	"github.com/carillon-sched/carillon/internal/apiclient"
)

// Commands are those about who asks, and whom.
func Commands(a *cli.App) []*cobra.Command {
	return []*cobra.Command{loginCommand(a), logoutCommand(a), whoamiCommand(a), passwordCommand(a), contextCommand(a)}
}

func loginCommand(a *cli.App) *cobra.Command {
	var username, tenant string
	var passwordStdin bool
	cmd := &cobra.Command{
		Use:   "login",
		Short: "Log in and keep the session for other commands",
		Long: `Logs in with user name and password and keeps the session, not the password, in
a file that only you can read, under the name of --context, or else the server's.
Other commands renew it by themselves. Scripts use an API key in CARILLON_API_KEY
instead.`,
		Example: "  carillon login --url https://carillon.example.com\n" +
			"  carillon login --url https://carillon.example.com --context prod --tenant shop\n" +
			"  carillon login --username admin --password-stdin < password.txt",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return logIn(cmd.Context(), a, username, tenant, passwordStdin)
		},
	}
	cmd.Flags().StringVarP(&username, "username", "u", "", "user name (asked for when left out)")
	cmd.Flags().StringVar(&tenant, "tenant", "", "tenant by name or id (default: your first)")
	cmd.Flags().BoolVar(&passwordStdin, "password-stdin", false, "read the password from standard input")
	return a.ServerFlags(cmd)
}

func logIn(ctx context.Context, a *cli.App, username, tenant string, passwordStdin bool) error {
	s, _, err := a.Layers()
	if err == nil {
		err = s.Define()
	}
	if err != nil {
		return err
	}
	c, err := client.New(a.ClientConfig(s, nil))
	if err != nil {
		return err
	}
	warnPlain(a, s.URL)
	in := bufio.NewReader(a.In)
	if username == "" {
		if passwordStdin {
			return cli.Usagef("--password-stdin needs --username")
		}
		if username, err = a.Ask(in, "User name: "); err != nil {
			return err
		}
	}
	password, err := a.Password(in, "Password: ", passwordStdin)
	if err != nil {
		return err
	}
	l, err := c.LogIn(ctx, apiclient.LoginInputBody{Username: username, Password: password, Tenant: tenant})
	if err != nil {
		return err
	}
	if err := errors.Join(s.Store.Put(s.Context, login.Context{Server: s.URL, Session: login.SessionOf(l)}), s.Store.Use(s.Context)); err != nil {
		return err
	}
	if g := s.Given; g.Context != "" && g.Context != s.Context {
		a.Say("Note: the context %s, which a variable or a file names, stays at its server. Commands that are to ask %s need: --context %s", g.Context, s.URL, s.Context)
	}
	a.Say("Logged in at %s (context %s) as %s (%s in tenant %s).", s.URL, s.Context, output.Clean(l.User.Username), l.User.Role, output.Clean(l.Tenant.Name))
	if l.User.MustChangePassword {
		a.Say("The password must be changed before anything else: carillon password")
	}
	return nil
}

// warnPlain speaks up when the password would cross a network in the clear.
func warnPlain(a *cli.App, server string) {
	u, err := url.Parse(server)
	if err != nil || u.Scheme != "http" {
		return
	}
	if ip := net.ParseIP(u.Hostname()); u.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback()) {
		a.Say("Warning: %s is not encrypted; everybody on the way can read your password.", server)
	}
}

func logoutCommand(a *cli.App) *cobra.Command {
	return a.ServerFlags(&cobra.Command{
		Use: "logout", Short: "End the session at the server and forget it", Args: cobra.NoArgs,
		Example: "  carillon logout\n  carillon logout --url https://carillon.example.com",
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := a.Settings()
			if err != nil {
				return err
			}
			kept, _, err := s.Store.Find(s.Context)
			if err != nil {
				return err
			}
			if kept.Session == nil {
				return &login.NotLoggedInError{Server: s.URL}
			}
			if err := s.Store.Save(s.Context, nil); err != nil {
				return err
			}
			if err := endSession(cmd.Context(), a, s, kept.Session); err != nil {
				return err
			}
			a.Say("Logged out at %s.", s.URL)
			return nil
		},
	})
}

// endSession tells the server that the session is over.
func endSession(ctx context.Context, a *cli.App, s cli.Settings, session *login.Session) error {
	c, err := client.New(a.ClientConfig(s, nil))
	if err != nil {
		return err
	}
	return c.LogOut(ctx, session.Cookies)
}

var meView = output.View[apiclient.Me]{
	Name: func(m apiclient.Me) string { return m.User.Username },
	Columns: []output.Column[apiclient.Me]{
		{Title: "USER", Value: func(m apiclient.Me) string { return m.User.Username }},
		{Title: "KIND", Value: func(m apiclient.Me) string { return m.Kind }},
		{Title: "TENANT", Value: func(m apiclient.Me) string { return m.Tenant.Name }},
		{Title: "ROLE", Value: func(m apiclient.Me) string { return m.User.Role }},
		{Title: "EXECUTORS", Value: func(m apiclient.Me) string { return cmp.Or(strings.Join(m.Executors, ","), "all") }},
	},
}

func whoamiCommand(a *cli.App) *cobra.Command {
	return a.ServerFlags(&cobra.Command{
		Use: "whoami", Short: "Show who the server takes you for", Args: cobra.NoArgs,
		Example: "  carillon whoami\n  carillon whoami -o json",
		RunE: a.WithSession(func(cmd *cobra.Command, s *cli.Session, _ []string) error {
			me, err := s.Me(cmd.Context())
			return cli.PrintOne(s, meView, me, err)
		}),
	})
}

func passwordCommand(a *cli.App) *cobra.Command {
	var stdin bool
	cmd := &cobra.Command{
		Use: "password", Short: "Change your password", Args: cobra.NoArgs,
		Long:    "Changes your own password. All your other sessions end.",
		Example: "  carillon password\n  printf '%s\\n%s\\n' \"$OLD\" \"$NEW\" | carillon password --password-stdin",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return changePassword(cmd.Context(), a, stdin)
		},
	}
	cli.NameField(cmd, "body.current", "the current password")
	cli.NameField(cmd, "body.new", "the new password")
	cmd.Flags().BoolVar(&stdin, "password-stdin", false, "read the current and the new password from standard input, one per line")
	return a.ServerFlags(cmd)
}

func changePassword(ctx context.Context, a *cli.App, stdin bool) error {
	s, err := a.Settings()
	if err != nil {
		return err
	}
	anonymous, err := client.New(a.ClientConfig(s, nil))
	if err != nil {
		return err
	}
	// A key has no password: only the stored session counts here.
	c, err := client.New(a.ClientConfig(s, login.NewStoredSession(s.Store, s.Context, s.URL, anonymous)))
	if err != nil {
		return err
	}
	in := bufio.NewReader(a.In)
	current, err := a.Password(in, "Current password: ", stdin)
	if err != nil {
		return err
	}
	fresh, err := a.Password(in, "New password: ", stdin)
	if err != nil {
		return err
	}
	if !stdin {
		again, err := a.Password(in, "New password again: ", false)
		if err != nil {
			return err
		}
		if again != fresh {
			return cli.Usagef("the new passwords differ")
		}
	}
	cookies, err := c.ChangePassword(ctx, current, fresh)
	if err != nil {
		return err
	}
	a.Say("The password is changed.")
	l, err := anonymous.Refresh(ctx, cookies)
	if err != nil {
		return errors.Join(err, s.Store.Save(s.Context, nil))
	}
	return s.Store.Save(s.Context, login.SessionOf(l))
}
