package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// count is what one run came to.
type count struct {
	Passed, Failed int
	// Names are the first of those that failed, as far as the output says them.
	Names []string `json:",omitempty"`
	// Seconds is how long the run took, CPU the processors' time of it.
	Seconds, CPU float64
}

// maxNames bounds the names of a run.
const maxNames = 20

// failedMark begins the lines that name what failed, before the closing line.
const failedMark = "failed: "

func (c *count) name(failed string) {
	if len(c.Names) < maxNames {
		c.Names = append(c.Names, failed)
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

// sum shows each count, what failed and then the closing line. It reports whether anything
// ran and nothing failed.
func (b book) sum(to io.Writer) (bool, error) {
	files, err := filepath.Glob(filepath.Join(b.dir, "*"+suffix))
	if err != nil {
		return false, err
	}
	var total count
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return false, err
		}
		var c count
		if err := json.Unmarshal(text, &c); err != nil {
			return false, fmt.Errorf("%s: %w", file, err)
		}
		name := strings.TrimSuffix(filepath.Base(file), suffix)
		fmt.Fprintf(to, "  %-20s %6d passed %6d failed %6.0f s %6.0f s CPU\n", name, c.Passed, c.Failed, c.Seconds, c.CPU)
		total.Passed += c.Passed
		total.Failed += c.Failed
		total.Names = append(total.Names, c.Names...)
	}
	for _, name := range total.Names {
		fmt.Fprintf(to, "%s%s\n", failedMark, name)
	}
	fmt.Fprintf(to, "%d passed, %d failed\n", total.Passed, total.Failed)
	return total.Failed == 0 && total.Passed > 0, nil
}

// clear forgets all counts.
func (b book) clear() error { return os.RemoveAll(b.dir) }
