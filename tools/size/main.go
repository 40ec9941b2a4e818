// Command size counts the lines of code of each room, without blank lines, comments, tests and
// generated files. With -check it fails if a room has more than its budget.
//
//	go run ./tools/size              a row for each room
//	go run ./tools/size -since REV   and how it has grown since a revision
//	go run ./tools/size -check       compares with tools/size/budget.txt; -update writes it
//
// A room is a folder in the budget. It has all that lies below it and in no other room. A change
// that needs more lines raises the budget of its room in the same commit, and says why. Machines
// (tests' helpers, bench, faults) are counted, and have no bound.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/carillon-sched/carillon/tools/checkout"
)

const budgets = "tools/size/budget.txt"

func main() {
	since := flag.String("since", "", "how rooms have grown since this revision")
	check := flag.Bool("check", false, "fail if a room has more lines than its budget")
	update := flag.Bool("update", false, "write the lines of now as budgets")
	flag.Parse()
	if err := run(*since, *check, *update, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "size:", err)
		os.Exit(1)
	}
}

func run(since string, check, update bool, out io.Writer) error {
	if err := checkout.Enter(); err != nil {
		return err
	}
	text, err := os.ReadFile(budgets)
	if err != nil {
		return err
	}
	rooms, err := parse(string(text))
	if err != nil {
		return err
	}
	if err := measure(rooms, since); err != nil {
		return err
	}
	if update {
		for i := range rooms {
			rooms[i].budget = rooms[i].lines
		}
		return os.WriteFile(budgets, []byte(format(rooms)), 0o600)
	}
	if !check {
		show(out, rooms, since != "")
		return nil
	}
	return over(rooms)
}

// room is a folder, and how many lines it may have.
type room struct {
	folder        string
	budget, lines int
	before        int // lines at the revision that was asked for
	machine       bool
}

// parse reads budgets: a line for each room with its budget and folder, and "machine" if it is
// no part of the product. Empty lines and those with # say nothing.
func parse(text string) (rooms []room, err error) {
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] == "#" {
			continue
		}
		if len(fields) < 2 || len(fields) > 3 || len(fields) == 3 && fields[2] != "machine" {
			return nil, fmt.Errorf("%s: %q must be a number, a folder, and nothing or \"machine\"", budgets, strings.TrimSpace(line))
		}
		n, err := strconv.Atoi(fields[0])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", budgets, err)
		}
		rooms = append(rooms, room{folder: fields[1], budget: n, machine: len(fields) == 3})
	}
	return rooms, nil
}

const head = `# Lines of code that each room may have: "make size" shows them, lint compares. A room has all
# that lies in its folder and in no other room. Machines are no part of the product, and have
# no bound.
`

func format(rooms []room) string {
	var out strings.Builder
	out.WriteString(head)
	for _, r := range rooms {
		line := fmt.Sprintf("%6d %s", r.budget, r.folder)
		if r.machine {
			line += " machine"
		}
		out.WriteString(line + "\n")
	}
	return out.String()
}

func over(rooms []room) error {
	var errs []error
	for _, r := range rooms {
		if r.lines > r.budget && !r.machine {
			errs = append(errs, fmt.Errorf("%s has %d lines, and its budget is %d: take some out, or raise it in %s and say why in the commit", r.folder, r.lines, r.budget, budgets))
		}
	}
	return errors.Join(errs...)
}

func show(out io.Writer, rooms []room, grown bool) {
	var product, before int
	for _, r := range rooms {
		if !r.machine {
			product, before = product+r.lines, before+r.before
		}
	}
	rooms = append(slices.Clone(rooms), room{folder: "the product (without machines)", lines: product, before: before})
	for _, r := range rooms {
		line := fmt.Sprintf("%7d", r.lines)
		if grown {
			line += fmt.Sprintf(" %+7d", r.lines-r.before)
		}
		if left := r.budget - r.lines; r.budget > 0 && left != 0 {
			line += fmt.Sprintf("  %s (%d below its budget)", r.folder, left)
		} else {
			line += "  " + r.folder
		}
		fmt.Fprintln(out, line)
	}
}

// measure counts the lines of the working tree, and of a revision if one is given.
func measure(rooms []room, since string) error {
	names, err := checkout.Git("ls-files", "--cached", "--others", "--exclude-standard")
	if err != nil {
		return err
	}
	err = count(rooms, names, func(r *room, n int) { r.lines += n }, func(name string) ([]byte, error) {
		text, err := os.ReadFile(name)
		if errors.Is(err, os.ErrNotExist) {
			return nil, nil // deleted, and not committed yet
		}
		return text, err
	})
	if err != nil || since == "" {
		return err
	}
	if names, err = checkout.Git("ls-tree", "-r", "--name-only", since); err != nil {
		return err
	}
	return count(rooms, names, func(r *room, n int) { r.before += n }, func(name string) ([]byte, error) {
		text, err := checkout.Git("cat-file", "blob", since+":"+name)
		return []byte(text), err
	})
}

func count(rooms []room, names string, add func(*room, int), read func(string) ([]byte, error)) error {
	for name := range strings.Lines(names) {
		name = strings.TrimSpace(name)
		if !isCode(name) {
			continue
		}
		text, err := read(name)
		if err != nil {
			return err
		}
		n := lines(text)
		if n == 0 {
			continue
		}
		r := roomOf(rooms, name)
		if r == nil {
			return fmt.Errorf("%s is in no room: add its folder to %s", name, budgets)
		}
		add(r, n)
	}
	return nil
}

// isCode leaves out tests and files that are written by a program.
func isCode(name string) bool {
	if !slices.Contains([]string{".go", ".ts", ".tsx", ".css"}, path.Ext(name)) {
		return false
	}
	return !slices.ContainsFunc([]string{"_test.go", ".test.ts", "/testdata/", "/e2e/", "web-ui/test/", ".d.ts", "node_modules/"}, func(part string) bool { return strings.Contains(name, part) })
}

// roomOf is the room with the longest folder.
func roomOf(rooms []room, name string) (best *room) {
	for i := range rooms {
		if r := &rooms[i]; (r.folder == "." || strings.HasPrefix(name, r.folder+"/")) && (best == nil || len(r.folder) > len(best.folder)) {
			best = r
		}
	}
	return best
}

// lines counts those with code; 0 for a file that a program has written.
func lines(text []byte) (n int) {
	if generated(text) {
		return 0
	}
	comment := false
	for line := range bytes.Lines(text) {
		line = bytes.TrimSpace(line)
		switch {
		case comment:
			comment = !bytes.Contains(line, []byte("*/"))
		case bytes.HasPrefix(line, []byte("/*")):
			comment = !bytes.Contains(line, []byte("*/"))
		case len(line) > 0 && !bytes.HasPrefix(line, []byte("//")):
			n++
		}
	}
	return n
}

// generated reports whether a line before the code says so, as the go command wants it.
func generated(text []byte) bool {
	for line := range bytes.Lines(text) {
		switch line = bytes.TrimSpace(line); {
		case bytes.HasPrefix(line, []byte("// Code generated ")) && bytes.HasSuffix(line, []byte(" DO NOT EDIT.")):
			return true
		case len(line) > 0 && !bytes.HasPrefix(line, []byte("//")):
			return false
		}
	}
	return false
}
