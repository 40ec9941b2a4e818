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
		} else if name, said := strings.CutPrefix(strings.TrimSuffix(line, "\n"), flakyMark); said {
			c.Flaky = append(c.Flaky, name)
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
