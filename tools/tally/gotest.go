package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// event is one line of `go test -json` (go doc test2json, go help buildjson).
type event struct {
	Action     string
	Package    string
	ImportPath string // of build events
	Test       string // empty: the event is about the package
	Output     string
}

// goTest follows the events of one `go test`.
type goTest struct {
	to      io.Writer
	count   count
	output  map[string]*strings.Builder // by package and test, until its end is known
	skipped []string
	built   []string // what the compiler said of a package that failed
}

// readGoTest shows one line per package, and everything that failed. Tests
// with subtests count beside their subtests, as go test itself lists them.
func readGoTest(from io.Reader, to io.Writer) (count, error) {
	run := goTest{to: to, output: map[string]*strings.Builder{}}
	in := json.NewDecoder(from)
	for {
		var e event
		err := in.Decode(&e)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return run.count, fmt.Errorf("read go test -json: %w", err)
		}
		run.handle(e)
	}
	for _, name := range run.skipped {
		fmt.Fprintf(to, "skipped, which counts as failed: %s\n", name)
	}
	return run.count, nil
}

func (g *goTest) handle(e event) {
	switch e.Action {
	case "output":
		g.buffer(e).WriteString(e.Output)
	case "build-output":
		fmt.Fprint(g.to, e.Output)
		if text := strings.TrimSpace(e.Output); !strings.HasPrefix(text, "# ") && len(g.built) < maxWhy-1 {
			g.built = append(g.built, text)
		}
	case "pass", "fail", "skip":
		if e.Test == "" {
			g.endPackage(e)
		} else {
			g.endTest(e)
		}
	}
}

func (g *goTest) endTest(e event) {
	output := g.take(e)
	switch e.Action {
	case "pass":
		g.count.Passed++
	case "skip":
		g.count.Failed++
		g.count.name(e.Package + "." + e.Test)
		g.failTest(e, skipped)
		g.count.explain(e.Package+"."+e.Test, []string{skipped})
		g.skipped = append(g.skipped, e.Package+"."+e.Test)
		fmt.Fprint(g.to, output)
	case "fail":
		g.count.Failed++
		g.nameTest(e)
		g.failTest(e, finalIn(output))
		g.count.explain(e.Package+"."+e.Test, whyOf(output))
		fmt.Fprint(g.to, output)
	}
}

const skipped = "a skipped test proves nothing"

var (
	place  = regexp.MustCompile(`^\s*[\w./-]+\.go:\d+: `)
	logged = regexp.MustCompile(`level=(DEBUG|INFO|WARN|ERROR)|"level":`)
)

// whyOf finds in a failed test's output the lines that say why: of a data race or a
// panic its first line, of testify's reports the place and the error, else what the
// test said last.
func whyOf(output string) (why []string) {
	var said []string
	for line := range strings.Lines(output) {
		trimmed := strings.TrimSpace(line)
		switch {
		case trimmed == "" || strings.HasPrefix(trimmed, "=== ") || strings.HasPrefix(trimmed, "--- ") || logged.MatchString(line):
		case finalIn(line) != "":
			return []string{trimmed}
		case strings.HasPrefix(trimmed, "Error Trace:"), strings.HasPrefix(trimmed, "Error:"), strings.HasPrefix(trimmed, "expected:"),
			strings.HasPrefix(trimmed, "expected :"), strings.HasPrefix(trimmed, "actual  :"), strings.HasPrefix(trimmed, "Messages:"):
			why = append(why, strings.Join(strings.Fields(trimmed), " "))
		case place.MatchString(line):
			said = append(said, trimmed)
		}
	}
	if len(why) == 0 {
		why = said[max(len(said)-maxWhy, 0):]
	}
	return why
}

// nameTest names a test that failed, unless one of its subtests, which end
// before it, has its place.
func (g *goTest) nameTest(e event) {
	test := e.Package + "." + e.Test
	if n := len(g.count.Names); n == 0 || !strings.HasPrefix(g.count.Names[n-1], test+"/") {
		g.count.name(test)
	}
}

// failTest keeps what failed by the test that can be run by itself, to which the
// event's subtest belongs. final is why another run of it would say nothing, or empty.
func (g *goTest) failTest(e event, final string) {
	test, _, _ := strings.Cut(e.Test, "/")
	at := slices.IndexFunc(g.count.Failures, func(f failure) bool { return f.Package == e.Package && f.Test == test })
	if at < 0 {
		at = len(g.count.Failures)
		g.count.Failures = append(g.count.Failures, failure{Package: e.Package, Test: test})
	}
	f := &g.count.Failures[at]
	f.Counted++
	if f.Final == "" {
		f.Final = final
	}
}

// finalIn finds in a failed test's output what no other run of it could excuse.
func finalIn(output string) string {
	for _, sign := range []string{"WARNING: DATA RACE", "panic: ", "fatal error: "} {
		if strings.Contains(output, sign) {
			return strings.TrimSuffix(sign, ": ")
		}
	}
	return ""
}

// endPackage counts a package that failed outside its tests: it does not
// build, or its TestMain or leak check found something.
func (g *goTest) endPackage(e event) {
	output := g.take(e)
	switch e.Action {
	case "pass":
		fmt.Fprint(g.to, lastLine(output))
	case "skip": // no test files
	case "fail":
		last := g.lastOf(e.Package)
		switch {
		case last == nil:
			g.count.Failed++
			g.count.name(e.Package)
			g.failTest(e, "failed outside its tests")
		case last.Final == "" && !strings.Contains("\n"+output, "\nFAIL\n"): // so ends who ran all
			last.Final = "the process ended before all tests had run"
		}
		unended := g.showUnended(e.Package)
		fmt.Fprint(g.to, output)
		if last == nil {
			g.count.explain(e.Package, slices.Concat(g.built, lastLines(unended, 2), lastLines(output, 1)))
		}
	}
}

// lastOf is the package's test that failed last; nil if none did.
func (g *goTest) lastOf(pkg string) *failure {
	for i := len(g.count.Failures) - 1; i >= 0; i-- {
		if g.count.Failures[i].Package == pkg {
			return &g.count.Failures[i]
		}
	}
	return nil
}

// showUnended shows and returns what tests said that never ended, because the process did
// first: os.Exit, a fatal error of the runtime, a signal.
func (g *goTest) showUnended(pkg string) string {
	var all strings.Builder
	for _, key := range slices.Sorted(maps.Keys(g.output)) {
		if strings.HasPrefix(key, pkg+"\n") {
			fmt.Fprint(io.MultiWriter(g.to, &all), g.output[key])
			delete(g.output, key)
		}
	}
	return all.String()
}

func (g *goTest) buffer(e event) *strings.Builder {
	key := e.Package + "\n" + e.Test
	if g.output[key] == nil {
		g.output[key] = &strings.Builder{}
	}
	return g.output[key]
}

func (g *goTest) take(e event) string {
	text := g.buffer(e).String()
	delete(g.output, e.Package+"\n"+e.Test)
	return text
}

// lastLines are the last lines of a text, without those that are empty or only say how
// it ended.
func lastLines(text string, most int) (lines []string) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && line != "PASS" && line != "FAIL" {
			lines = append(lines, line)
		}
	}
	return lines[max(len(lines)-most, 0):]
}

// lastLine is go test's own summary, "ok  	path	0.01s"; what stands before
// it matters only for failures.
func lastLine(text string) string {
	text = strings.TrimSuffix(text, "\n")
	return text[strings.LastIndexByte(text, '\n')+1:] + "\n"
}
