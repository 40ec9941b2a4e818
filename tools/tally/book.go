package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// count is what one run came to.
type count struct {
	Passed, Failed int
	// Names are the first of those that failed, as far as the output says them.
	Names []string `json:",omitempty"`
	// Why has, by name, the lines that say why it failed; at most maxWhy for each.
	Why map[string][]string `json:",omitempty"`
	// Repeat is the command that runs it all again, for a person to copy. {test} and
	// {package} stand for a failed test of Go.
	Repeat string `json:",omitempty"`
	// Failures are the tests of Go that failed, Alone the words of a command that runs
	// one of them when -run and a package follow, and Flaky those that passed then.
	Failures []failure `json:",omitempty"`
	Alone    []string  `json:",omitempty"`
	Flaky    []string  `json:",omitempty"`
	// Seconds is how long the run took, CPU the processors' time of it.
	Seconds, CPU float64
}

// A failure is a test of Go, without its subtests, that failed.
type failure struct {
	Package, Test string
	// Counted is how often the count's Failed and Names have it: with its subtests.
	Counted int
	// Final is why it is not run again; empty: it may be.
	Final string `json:",omitempty"`
}

func (f failure) String() string { return strings.TrimSuffix(f.Package+"."+f.Test, ".") }

// These bound the names of a run, the lines and bytes that say why each failed, and
// the lines that sum spends on failures: with the closing line they fit on a screen.
const (
	maxNames    = 20
	maxWhy      = 4
	maxWhyBytes = 200
	maxFailed   = 26
)

// These begin the lines that name what failed, and what failed once and passed when
// it ran again, before the closing line.
const (
	failedMark = "failed: "
	flakyMark  = "flaky: "
	whyMark    = "    " // begins the lines below a name
)

func (c *count) name(failed string) {
	if len(c.Names) < maxNames {
		c.Names = append(c.Names, failed)
	}
}

// explain keeps the lines that say why the named one failed.
func (c *count) explain(name string, lines []string) {
	if len(lines) == 0 || !slices.Contains(c.Names, name) {
		return
	}
	if c.Why == nil {
		c.Why = map[string][]string{}
	}
	for _, line := range lines {
		if len(c.Why[name]) == maxWhy {
			return
		}
		if len(line) > maxWhyBytes {
			line = strings.ToValidUTF8(line[:maxWhyBytes], "") + "…"
		}
		c.Why[name] = append(c.Why[name], line)
	}
}

// book keeps counts as files, so that commands which run one after the other
// add up.
type book struct {
	dir string // created when needed
}

const suffix = ".json"

// enter keeps the count of a run in place of an earlier one of that name.
func (b book) enter(name string, c count) error {
	if err := os.MkdirAll(b.dir, 0o755); err != nil {
		return err
	}
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(b.dir, name+suffix), text, 0o644)
}

// counts reads the book, in the order of the names.
func (b book) counts() (names []string, counts []count, err error) {
	files, err := filepath.Glob(filepath.Join(b.dir, "*"+suffix))
	if err != nil {
		return nil, nil, err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, nil, err
		}
		var c count
		if err := json.Unmarshal(text, &c); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", file, err)
		}
		names = append(names, strings.TrimSuffix(filepath.Base(file), suffix))
		counts = append(counts, c)
	}
	return names, counts, nil
}

// sum shows each count, what failed, why and how to repeat it, and then the closing
// line. It reports whether anything ran and nothing failed.
func (b book) sum(to io.Writer) (bool, error) {
	names, counts, err := b.counts()
	if err != nil {
		return false, err
	}
	var total count
	failed := 0
	for i, c := range counts {
		fmt.Fprintf(to, "  %-20s %6d passed %6d failed %6.0f s %6.0f s CPU\n", names[i], c.Passed, c.Failed, c.Seconds, c.CPU)
		total.Passed += c.Passed
		total.Failed += c.Failed
		total.Flaky = append(total.Flaky, c.Flaky...)
		failed += len(c.Names)
	}
	for _, name := range total.Flaky {
		fmt.Fprintf(to, "%s%s\n", flakyMark, name)
	}
	// The lines that are left for each failure, below its name.
	room := maxFailed
	if failed > 0 {
		room = max(maxFailed/failed-1, 0)
	}
	for i := range counts {
		counts[i].showFailed(to, room)
	}
	fmt.Fprintf(to, "%d passed, %d failed\n", total.Passed, total.Failed)
	return total.Failed == 0 && total.Passed > 0, nil
}

// showFailed shows the names of what failed, each with so many lines at most. The
// command that repeats it is the last line that is left out.
func (c *count) showFailed(to io.Writer, lines int) {
	for _, name := range c.Names {
		fmt.Fprintf(to, "%s%s\n", failedMark, name)
		why := c.Why[name]
		if repeat := c.repeat(name); repeat != "" && lines > 0 {
			why = append(slices.Clone(why[:min(len(why), lines-1)]), "repeat: "+repeat)
		}
		for _, line := range why[:min(len(why), lines)] {
			fmt.Fprintf(to, "%s%s\n", whyMark, line)
		}
	}
}

// repeat is the command that runs what failed again.
func (c *count) repeat(name string) string {
	for _, f := range c.Failures {
		if name == f.String() || strings.HasPrefix(name, f.String()+"/") {
			if f.Test == "" {
				return strings.NewReplacer(" -run '^{test}$'", "", "{package}", f.Package).Replace(c.Repeat)
			}
			return strings.NewReplacer("{test}", f.Test, "{package}", f.Package).Replace(c.Repeat)
		}
	}
	if strings.Contains(c.Repeat, "{test}") {
		return ""
	}
	return c.Repeat
}

// clear forgets all counts.
func (b book) clear() error { return os.RemoveAll(b.dir) }
