package main

import (
	"bufio"
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"
)

var (
	closingLine = regexp.MustCompile(`^(\d+) passed, (\d+) failed(?:, \d+ skipped)?\s*$`)
	errNoCount  = errors.New(`the output has no closing line "N passed, N failed"`)
	errNoTest   = errors.New("no test ran")
)

// readLines passes the output on, counts by its last closing line and keeps the
// names of what failed.
func readLines(from io.Reader, to io.Writer) (count, error) {
	var c count
	found := false
	of := "" // the name whose reasons come
	in := bufio.NewReader(from)
	for {
		line, err := in.ReadString('\n')
		if _, writeErr := io.WriteString(to, line); writeErr != nil {
			return c, writeErr
		}
		if m := closingLine.FindStringSubmatch(line); m != nil {
			found = true
			c.Passed, _ = strconv.Atoi(m[1]) // digits, by the pattern
			c.Failed, _ = strconv.Atoi(m[2])
		} else if name, said := strings.CutPrefix(strings.TrimSuffix(line, "\n"), failedMark); said {
			c.name(name)
			of = name
		} else if name, said := strings.CutPrefix(strings.TrimSuffix(line, "\n"), flakyMark); said {
			c.Flaky = append(c.Flaky, name)
		} else if why, said := strings.CutPrefix(strings.TrimSuffix(line, "\n"), whyMark); said && of != "" {
			c.explain(of, []string{why})
		} else {
			of = ""
		}
		switch {
		case errors.Is(err, io.EOF) && !found:
			return c, errNoCount
		case errors.Is(err, io.EOF) && c.Passed+c.Failed == 0:
			return c, errNoTest
		case errors.Is(err, io.EOF):
			return c, nil
		case err != nil:
			return c, err
		}
	}
}

// readNothing passes the output on; run counts by the exit status.
func readNothing(from io.Reader, to io.Writer) (count, error) {
	_, err := io.Copy(to, from)
	return count{}, err
}

// tail keeps the last lines that are written to it.
type tail struct {
	text []byte
}

// tailBytes is enough for the lines that sum shows.
const tailBytes = 4 * maxWhy * maxWhyBytes

func (t *tail) Write(p []byte) (int, error) {
	t.text = append(t.text, p...)
	if over := len(t.text) - tailBytes; over > 0 {
		t.text = t.text[over:]
	}
	return len(p), nil
}
