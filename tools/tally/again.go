package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// again runs the failed tests of all runs once more, one at a time, if there are at
// most that many and each may be: what fails only beside others is entered as flaky.
func (b book) again(to io.Writer, most int, flaky string) error {
	names, counts, err := b.counts()
	if err != nil {
		return err
	}
	failed := 0
	for _, c := range counts {
		for _, f := range c.Failures {
			if failed++; f.Final == "" && c.Alone == nil {
				f.Final = "no command for it alone"
			}
			if f.Final != "" {
				fmt.Fprintf(to, "not run again: %s: %s\n", f, f.Final)
				return nil
			}
		}
	}
	if failed > most {
		fmt.Fprintf(to, "not run again: %d tests failed; more than %d are no accident\n", failed, most)
		return nil
	}
	for i := range counts {
		if len(counts[i].Failures) == 0 {
			continue
		}
		for _, f := range slices.Clone(counts[i].Failures) {
			fmt.Fprintf(to, "run again, alone: %s\n", f)
			if f.passes(to, counts[i].Alone) {
				counts[i].forgive(f)
				if err := noteFlaky(flaky, f.String()); err != nil {
					return err
				}
			}
		}
		if err := b.enter(names[i], counts[i]); err != nil {
			return err
		}
	}
	return nil
}

// passes runs the test by the command.
func (f failure) passes(to io.Writer, command []string) bool {
	command = append(slices.Clone(command), "-run", "^"+f.Test+"$", f.Package)
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return false
	}
	if err := cmd.Start(); err != nil {
		return false
	}
	got, readErr := readGoTest(out, to)
	return cmd.Wait() == nil && readErr == nil && got.Failed == 0 && got.Passed > 0
}

// forgive counts what failed of the test as passed, and names it as flaky.
func (c *count) forgive(f failure) {
	c.Passed += f.Counted
	c.Failed -= f.Counted
	c.Flaky = append(c.Flaky, f.String())
	c.Names = slices.DeleteFunc(c.Names, func(name string) bool {
		return name == f.String() || strings.HasPrefix(name, f.String()+"/")
	})
	c.Failures = slices.DeleteFunc(c.Failures, func(other failure) bool { return other == f })
}

// noteFlaky counts a flaky test in a file with the lines "COUNT DAY NAME", where DAY is
// that of the last time.
func noteFlaky(file, name string) error {
	text, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	times := 1
	var out strings.Builder
	for line := range strings.Lines(string(text)) {
		var n int
		var day, of string
		if _, err := fmt.Sscanf(line, "%d %s %s", &n, &day, &of); err == nil && of == name {
			times += n
			continue
		}
		out.WriteString(line)
	}
	fmt.Fprintf(&out, "%d %s %s\n", times, time.Now().UTC().Format(time.DateOnly), name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(out.String()), 0o644)
}
