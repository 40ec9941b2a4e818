package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// What -o takes. wide is table: no column is left out.
const (
	formTable = "table"
	formWide  = "wide"
	formJSON  = "json"
)

// keepReport writes the report as far as it is. The file is whole at any time:
// an interruption leaves the last one.
func keepReport(file string, r *Report) error {
	raw, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil { //nolint:gosec // the file that --report names
		return err
	}
	next := file + ".next"
	if err := os.WriteFile(next, append(raw, '\n'), 0o644); err != nil { //nolint:gosec // a report is for everybody
		return err
	}
	return os.Rename(next, file) //nolint:gosec // the same
}

// write prints the report.
func (f *form) write(w io.Writer, r *Report) error {
	if f.output == formJSON {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(r)
	}
	_, err := io.WriteString(w, textOf(r))
	return err
}

// textOf writes the report as tables for people.
func textOf(r *Report) string {
	var b strings.Builder
	m := r.Machine
	fmt.Fprintf(&b, "\n%s · %d cores (%s) · %d GiB · %s · %s\n", m.OS, m.Cores, m.CPU, m.Memory>>30, m.Go, m.Version)
	for _, database := range []struct{ name, text string }{{"MySQL: ", m.MySQL}, {"SQLite: ", m.SQLite}} {
		if database.text != "" {
			b.WriteString(database.name + database.text + "\n")
		}
	}
	fmt.Fprintf(&b, "load average %.2f before; took %.0f s\n\n", m.Load, float64(r.Took))
	if len(r.Results) > 0 {
		writeColumns(&b, resultColumns, r.Results)
	}
	for _, one := range r.Results {
		for _, note := range one.Notes {
			fmt.Fprintf(&b, "%s, %s: %s\n", one.Scenario, one.Variant, note)
		}
		if one.Failed != "" {
			fmt.Fprintf(&b, "%s, %s: FAILED: %s\n", one.Scenario, one.Variant, one.Failed)
		}
	}
	return b.String()
}

// column is one column of a table of T.
type column[T any] struct {
	title string
	right bool // numbers
	value func(T) string
}

// writeColumns writes a table; an empty cell becomes "-".
func writeColumns[T any](b *strings.Builder, columns []column[T], values []T) {
	lines := make([][]string, 1+len(values))
	widths := make([]int, len(columns))
	for i := range lines {
		for j, c := range columns {
			cell := c.title
			if i > 0 {
				cell = c.value(values[i-1])
			}
			if cell == "" {
				cell = "-"
			}
			lines[i] = append(lines[i], cell)
			widths[j] = max(widths[j], utf8.RuneCountInString(cell))
		}
	}
	for _, cells := range lines {
		var line strings.Builder
		for j, cell := range cells {
			fill := strings.Repeat(" ", widths[j]-utf8.RuneCountInString(cell))
			if columns[j].right {
				cell, fill = fill+cell, ""
			}
			line.WriteString(cell + fill + "   ")
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
}

var resultColumns = []column[Result]{
	{title: "SCENARIO", value: func(r Result) string { return r.Scenario }},
	{title: "VARIANT", value: func(r Result) string { return r.Variant }},
	{title: "DATABASE", value: func(r Result) string { return r.Database }},
	{title: "FIRES/S", right: true, value: func(r Result) string {
		if r.Throughput == nil {
			return ""
		}
		return fmt.Sprintf("%.0f", r.Throughput.PerSecond)
	}},
	{title: "FLOOR", right: true, value: func(r Result) string {
		if r.Throughput == nil {
			return ""
		}
		return fmt.Sprintf("%.0f", r.Throughput.Floor)
	}},
	{title: "%", right: true, value: func(r Result) string {
		if r.Throughput == nil {
			return ""
		}
		return fmt.Sprintf("%.0f", r.Throughput.FloorPercent)
	}},
	{title: "DUE", right: true, value: fires(func(f *Fires) int { return f.Expected })},
	{title: "MISSED", right: true, value: fires(func(f *Fires) int { return f.Missed })},
	{title: "DOUBLED", right: true, value: fires(func(f *Fires) int { return f.Doubled })},
	{title: "LATE p50/p99/max ms", right: true, value: func(r Result) string { return spread(r.Lateness) }},
	{title: "TOOK p50/p99/max ms", right: true, value: func(r Result) string { return spread(r.Elapsed) }},
	{title: "FLOOR ms", right: true, value: func(r Result) string { return spread(r.FloorLateness) }},
	{title: "STALL disk/cpu ms", right: true, value: func(r Result) string {
		if r.Stalls == nil {
			return ""
		}
		return fmt.Sprintf("%.0f / %.0f", r.Stalls.Disk, r.Stalls.Processor)
	}},
	{title: "CPU % OF A CORE, MiB, µs A FIRE", value: processes},
}

func fires(pick func(*Fires) int) func(Result) string {
	return func(r Result) string {
		if r.Fires == nil {
			return ""
		}
		return fmt.Sprint(pick(r.Fires))
	}
}

func spread(s *Spread) string {
	if s == nil {
		return ""
	}
	return fmt.Sprintf("%s / %s / %s", milli(s.P50), milli(s.P99), milli(s.Max))
}

// milli shows three digits.
func milli(ms float64) string {
	if ms < 100 {
		return fmt.Sprintf("%.1f", ms)
	}
	return fmt.Sprintf("%.0f", ms)
}

func processes(r Result) string {
	var all []string
	for _, p := range r.Processes {
		text := fmt.Sprintf("%s %.0f %% %d", p.Name, p.Core, p.RSS>>20)
		if p.PerFire > 0 {
			text += fmt.Sprintf(" %.0f", p.PerFire)
		}
		all = append(all, text)
	}
	return strings.Join(all, ", ")
}
