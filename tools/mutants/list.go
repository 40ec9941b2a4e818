package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// mutant is one entry of the list.
type mutant struct {
	line int // of the list, where it begins
	name string
	what string // the fault, in words
	file string // below the root of the repository
	// before stands in the file exactly once, as whole lines; after takes its place.
	before, after string
	tests         []testCommand
	// survives says why no test can notice it; empty = one has to.
	survives string
}

// testCommand is one call of go test. With a mutant, the first that fails is enough.
type testCommand struct {
	module  string // its folder
	pack    string // of the module, as ./internal/x
	pattern string // for -run; empty = all
}

// parse reads a list: entries of lines that begin with a keyword, or with a
// blank, - or + where they are of the change. Empty lines and # are for people.
//
//	mutant NAME: WHAT
//	file PATH
//	 a line around it, where the changed one stands in the file more than once
//	-the line as it is
//	+the line that is wrong
//	test MODULE PACKAGE [PATTERN]
//	survives WHY
func parse(text string) ([]mutant, error) {
	var all []mutant
	for i, line := range strings.Split(text, "\n") {
		if strings.TrimSpace(line) == "" || line[0] == '#' {
			continue
		}
		word, rest, _ := strings.Cut(line, " ")
		if word == "mutant" {
			name, what, ok := strings.Cut(rest, ": ")
			if !ok {
				return nil, fmt.Errorf("line %d: want mutant NAME: WHAT", i+1)
			}
			all = append(all, mutant{line: i + 1, name: name, what: what})
			continue
		}
		if len(all) == 0 {
			return nil, fmt.Errorf("line %d: no mutant has begun", i+1)
		}
		if err := all[len(all)-1].read(line, word, rest); err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
	}
	names := map[string]bool{}
	for _, m := range all {
		switch {
		case names[m.name]:
			return nil, fmt.Errorf("line %d: there are two mutants %s", m.line, m.name)
		case m.file == "" || m.before == m.after || len(m.tests) == 0:
			return nil, fmt.Errorf("line %d: mutant %s needs a file, a change and tests", m.line, m.name)
		}
		names[m.name] = true
	}
	return all, nil
}

// read takes one line of an entry.
func (m *mutant) read(line, word, rest string) error {
	changed := line[1:] + "\n"
	switch {
	case line[0] == '-':
		m.before += changed
	case line[0] == '+':
		m.after += changed
	case line[0] == ' ':
		m.before, m.after = m.before+changed, m.after+changed
	case word == "file" && m.file == "":
		m.file = rest
	case word == "survives":
		m.survives = rest
	case word == "test":
		part := strings.SplitN(rest, " ", 3)
		if len(part) < 2 {
			return fmt.Errorf("want test MODULE PACKAGE [PATTERN]")
		}
		m.tests = append(m.tests, testCommand{part[0], part[1], strings.Join(part[2:], "")})
	default:
		return fmt.Errorf("unexpected %q", word)
	}
	return nil
}

// apply returns the file with the fault in it.
func (m *mutant) apply(root string) ([]byte, error) {
	data, err := os.ReadFile(filepath.Join(root, m.file))
	if err != nil {
		return nil, err
	}
	text := "\n" + string(data) // so that whole lines are found in the first one too
	if n := strings.Count(text, "\n"+m.before); n != 1 {
		return nil, fmt.Errorf("the lines of mutant %s stand in %s %d times; they have to stand there once", m.name, m.file, n)
	}
	return []byte(strings.Replace(text, "\n"+m.before, "\n"+m.after, 1)[1:]), nil
}

// String is the command as one would type it.
func (c testCommand) String() string {
	s := "go -C " + c.module + " test " + c.pack
	if c.pattern != "" {
		s += " -run '" + c.pattern + "'"
	}
	return s
}
