// Package checkout asks git about the checkout that a tool looks at.
package checkout

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// Enter makes the root of the checkout the working folder.
func Enter() error {
	root, err := Git("rev-parse", "--show-toplevel")
	if err != nil {
		return err
	}
	return os.Chdir(strings.TrimSpace(root))
}

// Git returns the output of a git command. An error has its complaint.
func Git(args ...string) (string, error) {
	out, err := exec.CommandContext(context.Background(), "git", args...).Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		err = fmt.Errorf("git %s: %w: %s", args[0], err, exit.Stderr)
	}
	return string(out), err
}
