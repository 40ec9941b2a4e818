package tenant

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/cli"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/output"
	"github.com/carillon-sched/carillon/internal/apiclient"
)

func userCommand(a *cli.App) *cobra.Command {
	return a.ServerFlags(cli.Group("user", "Make, change and remove the tenant's users",
		"  carillon user create paula --role editor\n  carillon user disable paula\n  carillon user remove paula",
		userList(a), userCreate(a), userRole(a), userDisable(a, true), userDisable(a, false), userPassword(a), userRemove(a)))
}

var userView = output.View[apiclient.User]{
	Name: func(u apiclient.User) string { return u.Username },
	Columns: []output.Column[apiclient.User]{
		{Title: "ID", Value: func(u apiclient.User) string { return u.ID }, Wide: true},
		{Title: "USER", Value: func(u apiclient.User) string { return u.Username }},
		{Title: "ROLE", Value: func(u apiclient.User) string { return u.Role }},
		{Title: "EXECUTORS", Value: func(u apiclient.User) string { return boundTo(u.Executors...) }, Drop: 2},
		{Title: "LOCKED", Value: func(u apiclient.User) string { return map[bool]string{true: strconv.FormatBool(true)}[u.Disabled] }},
		{Title: "CREATED", Value: func(u apiclient.User) string { return output.Stamp(u.CreatedAt) }, Drop: 1},
	},
}

func findUser(ctx context.Context, s *cli.Session, word string) (apiclient.User, error) {
	list, err := apiclient.List[apiclient.User](ctx, 0, s.ListUsers, apiclient.ListUsersParams{})
	u, err := cli.Listed("user", "user list", word, list, err, func(u apiclient.User) (id, name string) { return u.ID, u.Username })
	return u.Value, err
}

func userList(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List the tenant's users", Args: cobra.NoArgs, Example: "  carillon user list",
		RunE: a.WithSession(func(cmd *cobra.Command, s *cli.Session, _ []string) error {
			list, err := apiclient.List[apiclient.User](cmd.Context(), 0, s.ListUsers, apiclient.ListUsersParams{})
			return cli.PrintList(a, s, userView, list, err, "")
		}),
	}
}

// givePassword prints a password that was generated: it is shown once.
func givePassword(a *cli.App, u apiclient.UserWithPassword) error {
	if u.Password == "" {
		return nil
	}
	a.Say("The password of %s is shown only now, and has to be changed at the first log-in:", output.Clean(u.Username))
	_, err := fmt.Fprintln(a.Out, u.Password)
	return err
}

func userCreate(a *cli.App) *cobra.Command {
	var role string
	var executors []string
	cmd := &cobra.Command{
		Use: "create USER", Short: "Make a user and print a password for the first log-in", Args: cobra.ExactArgs(1),
		Example: "  carillon user create paula --role editor\n  carillon user create mei --role viewer --executor shop",
		RunE: a.WithSession(func(cmd *cobra.Command, s *cli.Session, args []string) error {
			made, err := s.CreateUser(cmd.Context(), apiclient.CreateUserInputBody{Username: args[0], Role: role, Executors: executors})
			if done, err := cli.PrintMachine(s, made, err); done {
				return err
			}
			return givePassword(a, made.Value)
		}),
	}
	cli.ChoiceFlag(cmd, &role, "role", "viewer", userRoles, "what the user may do: "+cli.OrList(userRoles))
	executorFlag(cmd, &executors, "bind the role")
	return cmd
}

// changeUser sends a change and prints a password that came of it.
func changeUser(a *cli.App, cmd *cobra.Command, word, done string, change map[string]any) error {
	s, err := a.Connect()
	if err != nil {
		return err
	}
	u, err := findUser(cmd.Context(), s, word)
	if err != nil {
		return err
	}
	changed, err := s.UpdateUser(cmd.Context(), u.ID, apiclient.UpdateUserInputBody{}, apiclient.Body(change))
	if err != nil {
		return err
	}
	a.Say(done, output.Clean(u.Username))
	return givePassword(a, changed.Value)
}

func userRole(a *cli.App) *cobra.Command {
	executors := []string{}
	cmd := &cobra.Command{
		Use: "role USER ROLE", Short: "Give a user another role, in the whole tenant or for some executors", Args: cobra.ExactArgs(2),
		Example: "  carillon user role paula operator\n  carillon user role paula viewer --executor shop",
		RunE: func(cmd *cobra.Command, args []string) error {
			where := ""
			if len(executors) > 0 {
				where = " of " + output.Clean(boundTo(executors...))
			}
			return changeUser(a, cmd, args[0], "%s is "+output.Clean(args[1])+where+" now.", map[string]any{"role": args[1], "executors": executors})
		},
	}
	executorFlag(cmd, &executors, "bind the role")
	return cmd
}

func userDisable(a *cli.App, disable bool) *cobra.Command {
	use, short, done := "enable", "Unlock an account", "Unlocked %s."
	if disable {
		use, short, done = "disable", "Lock an account and end its sessions", "Locked %s; its sessions have ended."
	}
	return &cobra.Command{
		Use: use + " USER", Short: short, Args: cobra.ExactArgs(1), Example: "  carillon user " + use + " paula",
		RunE: func(cmd *cobra.Command, args []string) error {
			return changeUser(a, cmd, args[0], done, map[string]any{"disabled": disable})
		},
	}
}

func userPassword(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "reset-password USER", Short: "Give a user a new password, and end all sessions", Args: cobra.ExactArgs(1),
		Example: "  carillon user reset-password paula",
		RunE: func(cmd *cobra.Command, args []string) error {
			return changeUser(a, cmd, args[0], "All sessions of %s have ended.", map[string]any{"password": ""})
		},
	}
}

func userRemove(a *cli.App) *cobra.Command {
	return a.DeleteCommand("user", &cobra.Command{
		Use: "remove USER", Short: "Remove a user from the tenant; the API keys of the user here end", Example: "  carillon user remove paula",
	}, func(ctx context.Context, s *cli.Session, word string) (string, func() error, error) {
		u, err := findUser(ctx, s, word)
		return u.Username, func() error { return cli.Gone(s.DeleteUser(ctx, u.ID)) }, err
	})
}
