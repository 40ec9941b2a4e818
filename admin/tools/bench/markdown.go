package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// The lines between which a document's table stands.
const (
	tableBegin = "<!-- bench table: begin -->"
	tableEnd   = "<!-- bench table: end -->"
)

const tableUsage = `Writes what --report kept as a Markdown table, beside floors and goals.

  go run ./admin/tools/bench table REPORT... [--into DOCUMENT]

Of several reports the later ones replace what the earlier ones say of the same
scenario; they have to be of the same machine, program and databases. --into puts
the table into a document, between the lines

  ` + tableBegin + `
  ` + tableEnd + `

Flags:
`

func table(args []string, out, talk io.Writer) error {
	f := pflag.NewFlagSet("bench table", pflag.ContinueOnError)
	f.SetOutput(talk)
	f.Usage = func() { fmt.Fprint(talk, tableUsage+f.FlagUsages()) }
	into := f.String("into", "", "document whose table is replaced (default: print it)")
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() == 0 {
		return errors.New("table of which reports?")
	}
	r, err := readReports(f.Args())
	if err != nil {
		return err
	}
	text := markdownOf(r)
	if *into == "" {
		_, err = io.WriteString(out, text)
		return err
	}
	return replaceTable(*into, text)
}

// readReports joins reports: the last result of each scenario counts.
func readReports(files []string) (*Report, error) {
	var all *Report
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var r Report
		if err := json.Unmarshal(raw, &r); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		if all == nil {
			all = &r
			continue
		}
		if !sameMachine(all.Machine, r.Machine) {
			return nil, fmt.Errorf("%s is of another machine, program or database than %s", file, files[0])
		}
		all.Quick = all.Quick || r.Quick
		for _, one := range r.Results {
			i := slices.IndexFunc(all.Results, func(old Result) bool {
				return old.Scenario == one.Scenario && old.Variant == one.Variant && old.Database == one.Database
			})
			if i < 0 {
				all.Results = append(all.Results, one)
			} else {
				all.Results[i] = one
			}
		}
	}
	return all, nil
}

// sameMachine is true also where one of them did not look at a database.
func sameMachine(a, b Machine) bool {
	if a.MySQL == "" || b.MySQL == "" {
		a.MySQL, b.MySQL = "", ""
	}
	if a.SQLite == "" || b.SQLite == "" {
		a.SQLite, b.SQLite = "", ""
	}
	a.Load, b.Load = 0, 0
	return a == b
}

// replaceTable puts text between the two lines of a document.
func replaceTable(file, text string) error {
	raw, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	before, rest, ok := strings.Cut(string(raw), tableBegin)
	_, after, end := strings.Cut(rest, tableEnd)
	if !ok || !end {
		return errors.New(file + " has no lines between which the table stands: " + tableBegin + " and " + tableEnd)
	}
	return os.WriteFile(file, []byte(before+tableBegin+"\n\n"+text+"\n"+tableEnd+after), 0o644) //nolint:gosec // a document is for everybody
}

// markdownOf is the table with the line that says where it was measured.
func markdownOf(r *Report) string {
	var b strings.Builder
	m := r.Machine
	facts := []string{fmt.Sprintf("%d × %s, %d GiB", m.Cores, m.CPU, m.Memory>>30), m.OS + " " + m.Kernel, m.Go, m.Version}
	if m.MySQL != "" {
		facts = append(facts, m.MySQL)
	}
	if m.SQLite != "" {
		facts = append(facts, "SQLite "+m.SQLite)
	}
	if r.Quick {
		facts = append(facts, "a quick run: short windows")
	}
	fmt.Fprintf(&b, "%s · %s\n\n", r.StartedAt.Format(time.DateOnly), strings.Join(facts, " · "))
	writeRow(&b, []string{"scenario", "database", "measured", "floor: the same SQL alone", "of the floor", "goal", "stretch"})
	writeRow(&b, []string{"---", "---", "---", "---", "---:", "---", "---"})
	for i := range r.Results {
		writeRow(&b, rowOf(r, &r.Results[i]))
	}
	return b.String()
}

// longStall is from how many ms on a table tells of a stall: a steady load's
// goal for its p99.
const longStall = 25

func writeRow(b *strings.Builder, cells []string) {
	fmt.Fprintf(b, "| %s |\n", strings.Join(cells, " | "))
}

// rowOf is a result's row.
func rowOf(r *Report, one *Result) []string {
	name := one.Scenario + ", " + one.Variant
	if one.Failed != "" {
		return []string{name, databaseOf(r, one), "**failed**", "", "", "", ""}
	}
	floor, share := floorOf(one)
	change, ok := r.ChangeOf(one)
	if one.Throughput != nil {
		change = -change // worse is less of it
	}
	if ok && !strings.HasPrefix(one.Variant, "admin nodes: 1,") {
		share = strings.TrimPrefix(share+"; ", "; ") + fmt.Sprintf("%+.0f %%", change)
	}
	if s := one.Stalls; s != nil && one.Lateness != nil && one.Throughput == nil && max(s.Disk, s.Processor) >= longStall {
		floor = strings.TrimPrefix(floor+"; ", "; ") + fmt.Sprintf("the machine stood still for %.0f ms", max(s.Disk, s.Processor))
	}
	goal, _ := r.GoalOf(one)
	return []string{name, databaseOf(r, one), measuredOf(one), floor, share, mark(goal.Figure, goal.Reached() >= 1), mark(goal.Stretch, goal.Reached() >= 2)}
}

// databaseOf names what was measured.
func databaseOf(r *Report, one *Result) string {
	switch {
	case one.Database == SQLite:
		return "SQLite"
	case one.Database == MySQL && strings.Contains(r.Machine.MySQL, "MariaDB"):
		return "MariaDB"
	case one.Database == MySQL:
		return "MySQL"
	}
	return ""
}

// mark says of a goal whether it was reached.
func mark(goal string, reached bool) string {
	switch {
	case goal == "":
		return ""
	case reached:
		return goal + " ✓"
	default:
		return goal + " ✗"
	}
}

func measuredOf(r *Result) string {
	var all []string
	if r.RoundTrip != nil {
		all = append(all, "**"+spread(r.RoundTrip)+" µs**")
	} else if r.Throughput != nil {
		all = append(all, fmt.Sprintf("**%s/s**", thousands(int(r.Throughput.PerSecond))))
	} else if r.Lateness != nil {
		all = append(all, "**"+spread(r.Lateness)+" ms**")
	} else if r.Elapsed != nil {
		all = append(all, "**"+spread(r.Elapsed)+" ms**")
	}
	if r.Fires != nil {
		all = append(all, fmt.Sprintf("%d of %d missed, %d doubled", r.Fires.Missed, r.Fires.Expected, r.Fires.Doubled))
	}
	if o := r.Overload; o != nil {
		all = append(all, fmt.Sprintf("fresh runs on time %.0f s after it; %.0f pauses/s meanwhile", float64(o.OnTimeAgain), o.PausesPerSecond))
	}
	for _, p := range r.Processes {
		if strings.HasPrefix(p.Name, "admin-1") && r.Throughput == nil {
			used := fmt.Sprintf("admin %.0f %% of a core, %d MiB", p.Core, p.RSS>>20)
			if p.Alone > 0 {
				used += fmt.Sprintf(", %.0f MB more than without them", float64(p.RSS-p.Alone)/1e6)
			}
			all = append(all, used)
		}
		if r.Scenario == "edges" {
			all = append(all, fmt.Sprintf("%s %.0f µs of CPU a fire", p.Name, p.PerFire))
		}
	}
	return strings.Join(all, "; ")
}

func floorOf(r *Result) (floor, share string) {
	switch {
	case r.RoundTrip != nil && r.FloorRoundTrip != nil:
		return spread(r.FloorRoundTrip) + " µs", fmt.Sprintf("p50 × %.1f", r.RoundTrip.P50/r.FloorRoundTrip.P50)
	case r.Throughput != nil:
		return thousands(int(r.Throughput.Floor)) + "/s", fmt.Sprintf("%.0f %%", r.Throughput.FloorPercent)
	case r.Lateness != nil && r.FloorLateness != nil:
		return spread(r.FloorLateness) + " ms", fmt.Sprintf("p99 × %.1f", r.Lateness.P99/r.FloorLateness.P99)
	}
	return "", ""
}

// thousands writes 12,345.
func thousands(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return thousands(n/1000) + fmt.Sprintf(",%03d", n%1000)
}
