package command

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/carillon-sched/carillon/cmd/carillon/internal/client"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/login"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/output"
	"github.com/carillon-sched/carillon/internal/apiclient"
)

func (a *App) loginCommand() *cobra.Command {
	var username, tenant string
	var passwordStdin bool
	cmd := &cobra.Command{
		Use:   "login",
		Short: "Log in and keep the session for other commands",
		Long: `Logs in with user name and password and keeps the session, not the password, in
a file that only you can read. Other commands renew it by themselves. Scripts
use an API key in CARILLON_API_KEY instead.`,
		Example: "  carillon login --url https://carillon.example.com\n" +
			"  carillon login --username admin --password-stdin < password.txt",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.logIn(cmd.Context(), username, tenant, passwordStdin)
		},
	}
	cmd.Flags().StringVarP(&username, "username", "u", "", "user name (asked for when left out)")
	cmd.Flags().StringVar(&tenant, "tenant", "", "tenant by name or id (default: your first)")
	cmd.Flags().BoolVar(&passwordStdin, "password-stdin", false, "read the password from standard input")
	return a.serverFlags(cmd)
}

func (a *App) logIn(ctx context.Context, username, tenant string, passwordStdin bool) error {
	s, err := a.settings()
	if err != nil {
		return err
	}
	c, err := client.New(a.clientConfig(s, nil))
	if err != nil {
		return err
	}
	a.warnPlain(s.url)
	in := bufio.NewReader(a.in)
	if username == "" {
		if passwordStdin {
			return usagef("--password-stdin needs --username")
		}
		if username, err = a.ask(in, "User name: "); err != nil {
			return err
		}
	}
	password, err := a.password(in, "Password: ", passwordStdin)
	if err != nil {
		return err
	}
	l, err := c.LogIn(ctx, apiclient.LoginInputBody{Username: username, Password: password, Tenant: tenant})
	if err != nil {
		return err
	}
	if err := errors.Join(s.store.Save(s.url, login.SessionOf(l)), s.store.Use(s.url)); err != nil {
		return err
	}
	a.say("Logged in at %s as %s (%s in tenant %s).", s.url, output.Clean(l.User.Username), l.User.Role, output.Clean(l.Tenant.Name))
	if l.User.MustChangePassword {
		a.say("The password must be changed before anything else: carillon password")
	}
	return nil
}

// warnPlain speaks up when the password would cross a network in the clear.
func (a *App) warnPlain(server string) {
	u, err := url.Parse(server)
	if err != nil || u.Scheme != "http" {
		return
	}
	if ip := net.ParseIP(u.Hostname()); u.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback()) {
		a.say("Warning: %s is not encrypted; everybody on the way can read your password.", server)
	}
}

func (a *App) ask(in *bufio.Reader, prompt string) (string, error) {
	if _, err := io.WriteString(a.err, prompt); err != nil {
		return "", err
	}
	line, err := in.ReadString('\n')
	if line = strings.TrimSpace(line); line == "" {
		return "", usagef("no answer to %q: %w", strings.TrimSpace(prompt), errors.Join(err, io.ErrUnexpectedEOF))
	}
	return line, nil
}

// password reads one line: hidden from a terminal, or from standard input when
// that was asked for. A script that forgot --password-stdin must not hang, and
// a password must not be echoed.
func (a *App) password(in *bufio.Reader, prompt string, stdin bool) (string, error) {
	if !stdin {
		f, ok := a.in.(*os.File)
		if !ok || !term.IsTerminal(int(f.Fd())) {
			return "", usagef("standard input is no terminal; give the password with --password-stdin")
		}
		if _, err := io.WriteString(a.err, prompt); err != nil {
			return "", err
		}
		raw, err := term.ReadPassword(int(f.Fd()))
		a.say("")
		return string(raw), err
	}
	line, err := in.ReadString('\n')
	if line = strings.TrimRight(line, "\r\n"); line == "" {
		return "", usagef("standard input has no password: %w", errors.Join(err, io.ErrUnexpectedEOF))
	}
	return line, nil
}

func (a *App) logoutCommand() *cobra.Command {
	return a.serverFlags(&cobra.Command{
		Use: "logout", Short: "End the session at the server and forget it", Args: cobra.NoArgs,
		Example: "  carillon logout\n  carillon logout --url https://carillon.example.com",
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := a.settings()
			if err != nil {
				return err
			}
			kept, ok, err := s.store.Find(s.url)
			if err != nil {
				return err
			}
			if !ok {
				return &login.NotLoggedInError{Server: s.url}
			}
			if err := s.store.Remove(s.url); err != nil {
				return err
			}
			c, err := client.New(a.clientConfig(s, nil))
			if err == nil {
				err = c.LogOut(cmd.Context(), kept.Cookies)
			}
			if err != nil {
				return err
			}
			a.say("Logged out at %s.", s.url)
			return nil
		},
	})
}

var meView = output.View[apiclient.Me]{
	Name: func(m apiclient.Me) string { return m.User.Username },
	Columns: []output.Column[apiclient.Me]{
		{Title: "USER", Value: func(m apiclient.Me) string { return m.User.Username }},
		{Title: "KIND", Value: func(m apiclient.Me) string { return m.Kind }},
		{Title: "TENANT", Value: func(m apiclient.Me) string { return m.Tenant.Name }},
		{Title: "ROLE", Value: func(m apiclient.Me) string { return m.User.Role }},
	},
}

func (a *App) whoamiCommand() *cobra.Command {
	return a.serverFlags(&cobra.Command{
		Use: "whoami", Short: "Show who the server takes you for", Args: cobra.NoArgs,
		Example: "  carillon whoami\n  carillon whoami -o json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := a.connect()
			if err != nil {
				return err
			}
			me, err := s.Me(cmd.Context())
			if err != nil {
				return err
			}
			return output.One(s.Printer, meView, me)
		},
	})
}

func (a *App) passwordCommand() *cobra.Command {
	var stdin bool
	cmd := &cobra.Command{
		Use: "password", Short: "Change your password", Args: cobra.NoArgs,
		Long:    "Changes your own password. All your other sessions end.",
		Example: "  carillon password\n  printf '%s\\n%s\\n' \"$OLD\" \"$NEW\" | carillon password --password-stdin",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.changePassword(cmd.Context(), stdin)
		},
	}
	cmd.Flags().BoolVar(&stdin, "password-stdin", false, "read the current and the new password from standard input, one per line")
	return a.serverFlags(cmd)
}

func (a *App) changePassword(ctx context.Context, stdin bool) error {
	s, err := a.settings()
	if err != nil {
		return err
	}
	anonymous, err := client.New(a.clientConfig(s, nil))
	if err != nil {
		return err
	}
	// A key has no password: only the stored session counts here.
	c, err := client.New(a.clientConfig(s, login.NewStoredSession(s.store, s.url, anonymous)))
	if err != nil {
		return err
	}
	in := bufio.NewReader(a.in)
	current, err := a.password(in, "Current password: ", stdin)
	if err != nil {
		return err
	}
	fresh, err := a.password(in, "New password: ", stdin)
	if err != nil {
		return err
	}
	if !stdin {
		again, err := a.password(in, "New password again: ", false)
		if err != nil {
			return err
		}
		if again != fresh {
			return usagef("the new passwords differ")
		}
	}
	cookies, err := c.ChangePassword(ctx, current, fresh)
	if err != nil {
		return err
	}
	a.say("The password is changed.")
	l, err := anonymous.Refresh(ctx, cookies)
	if err != nil {
		return errors.Join(err, s.store.Remove(s.url))
	}
	return s.store.Save(s.url, login.SessionOf(l))
}
