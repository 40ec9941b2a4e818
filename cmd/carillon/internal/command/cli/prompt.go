package cli

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/carillon-sched/carillon/cmd/carillon/internal/output"
	"github.com/carillon-sched/carillon/internal/apiclient"
)

// DeleteCommand completes a command that finds an object by what its argument
// says, asks, and deletes it.
func (a *App) DeleteCommand(noun string, cmd *cobra.Command, find func(context.Context, *Session, string) (name string, remove func() error, err error)) *cobra.Command {
	var yes bool
	cmd.Aliases, cmd.Args = []string{"rm"}, cobra.ExactArgs(1)
	cmd.RunE = a.WithSession(func(cmd *cobra.Command, s *Session, args []string) error {
		name, remove, err := find(cmd.Context(), s, args[0])
		if err != nil {
			return err
		}
		if !yes {
			if err := a.Confirm("Delete " + noun + " " + output.Clean(name) + "?"); err != nil {
				return err
			}
		}
		if err := remove(); err != nil {
			return err
		}
		a.Say("Deleted %s %s.", noun, output.Clean(name))
		return nil
	})
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return cmd
}

// Gone drops an answer that says nothing.
func Gone(_ apiclient.Doc[apiclient.None], err error) error { return err }

// Confirm asks a person; without one the answer is no.
func (a *App) Confirm(question string) error {
	f, ok := a.In.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return Usagef("standard input is no terminal to ask on; pass --yes")
	}
	answer, err := a.Ask(bufio.NewReader(a.In), question+" [y/N] ")
	if err == nil && (strings.EqualFold(answer, "y") || strings.EqualFold(answer, "yes")) {
		return nil
	}
	return &exitError{ExitFailed, errors.New("nothing was done")}
}

// Ask writes a prompt, and reads a line that is not empty.
func (a *App) Ask(in *bufio.Reader, prompt string) (string, error) {
	if _, err := io.WriteString(a.Err, prompt); err != nil {
		return "", err
	}
	line, err := in.ReadString('\n')
	if line = strings.TrimSpace(line); line == "" {
		return "", Usagef("no answer to %q: %w", strings.TrimSpace(prompt), errors.Join(err, io.ErrUnexpectedEOF))
	}
	return line, nil
}

// Password reads one line: hidden from a terminal, or from standard input when
// that was asked for. A script that forgot --password-stdin must not hang, and
// a password must not be echoed.
func (a *App) Password(in *bufio.Reader, prompt string, stdin bool) (string, error) {
	if !stdin {
		f, ok := a.In.(*os.File)
		if !ok || !term.IsTerminal(int(f.Fd())) {
			return "", Usagef("standard input is no terminal; give the password with --password-stdin")
		}
		if _, err := io.WriteString(a.Err, prompt); err != nil {
			return "", err
		}
		raw, err := term.ReadPassword(int(f.Fd()))
		a.Say("")
		return string(raw), err
	}
	line, err := in.ReadString('\n')
	if line = strings.TrimRight(line, "\r\n"); line == "" {
		return "", Usagef("standard input has no password: %w", errors.Join(err, io.ErrUnexpectedEOF))
	}
	return line, nil
}
