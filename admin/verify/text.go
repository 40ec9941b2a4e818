package verify

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"
)

// WriteText writes the report for a terminal. The first line is the answer.
func (r *Report) WriteText(out io.Writer) error {
	w := bufio.NewWriter(out)
	fmt.Fprintln(w, r.Headline())
	fmt.Fprintf(w, "\n%d jobs, fire times from %s to %s", r.Jobs, r.From.Format(time.RFC3339), r.To.Format(time.RFC3339))
	if r.Name != "" {
		fmt.Fprintf(w, " (%s)", r.Name)
	}
	fmt.Fprintf(w, "\n%d witness runs, %d execution rows, %d possible targets, %d runs asked for, %d further attempts\n",
		r.Runs, r.Rows, r.Possible, r.Asked, r.Repeats)
	fmt.Fprintf(w, "\n  %-34s %9d\n", "expected", r.Expected)
	fmt.Fprintf(w, "  %-34s %9d\n", "ran", r.Ran)
	for _, reason := range slices.Sorted(maps.Keys(r.Explained)) {
		fmt.Fprintf(w, "  %-34s %9d\n", reason, r.Explained[reason])
	}
	fmt.Fprintln(w)
	for _, kind := range Kinds {
		fmt.Fprintf(w, "  %-34s %9d\n", kind, r.Counts[kind])
	}
	r.writeLateness(w)
	r.writeFaults(w)
	if len(r.Examples) > 0 {
		fmt.Fprintf(w, "\nExamples, up to %d of a kind:\n", MaxExamples)
	}
	for _, f := range r.Examples {
		fmt.Fprintf(w, "  %-13s %s  job %s%s: %s\n", f.Kind, f.At.Format("2006-01-02T15:04:05.000Z"), f.Job, keyed(f.Key), f.Detail)
	}
	for _, e := range r.Short {
		fmt.Fprintf(w, "Not enough evidence: %s: %d, at least %d planned\n", e.What, e.Seen, e.Want)
	}
	for _, note := range r.Notes {
		fmt.Fprintf(w, "Note: %s\n", note)
	}
	return w.Flush()
}

// Headline is the report in one line.
func (r *Report) Headline() string {
	worst := max(r.Outside.Max, r.Inside.Max, r.Waited.Max)
	return fmt.Sprintf("%s: %s expected, %s accounted, %s missed, %s double, worst late %s",
		r.Verdict(), grouped(r.Expected), grouped(r.Accounted), grouped(r.Counts[Missed]), grouped(r.Counts[Double]), seconds(worst))
}

func keyed(key string) string {
	if key == "" {
		return ""
	}
	return " run " + key
}

func (r *Report) writeLateness(w io.Writer) {
	fmt.Fprintf(w, "\n  %-24s %9s %10s %10s %10s\n", "lateness at start", "starts", "p50", "p99", "max")
	for _, line := range []struct {
		name  string
		stats Stats
	}{{"outside faults", r.Outside}, {"inside faults", r.Inside}, {"after a wait on record", r.Waited}} {
		fmt.Fprintf(w, "  %-24s %9d %10s %10s %10s\n", line.name, line.stats.Count,
			seconds(line.stats.P50), seconds(line.stats.P99), seconds(line.stats.Max))
	}
	if r.BothAlive > 0 {
		fmt.Fprintf(w, "  two attempts of one run alive for %s at most\n", seconds(r.BothAlive))
	}
	if r.Unknowable > 0 {
		fmt.Fprintf(w, "  %d results died with their process between the handler's end and its report\n", r.Unknowable)
	}
}

// shownFaults is how many faults the text lists one by one.
const shownFaults = 40

func (r *Report) writeFaults(w io.Writer) {
	if len(r.Faults) == 0 {
		return
	}
	fmt.Fprintf(w, "\n  %-6s %-12s %-16s %-13s %8s %8s %8s %10s %10s\n", "fault", "kind", "target", "start", "lasted", "due", "late", "max late", "recovery")
	for i, f := range r.Faults {
		if i == shownFaults {
			fmt.Fprintf(w, "  … and %d more\n", len(r.Faults)-i)
			break
		}
		lasted := "open"
		if !f.End.IsZero() {
			lasted = seconds(f.End.Sub(f.Start))
		}
		fmt.Fprintf(w, "  %-6s %-12s %-16s %-13s %8s %8d %8d %10s %10s\n",
			f.ID, f.Kind, f.Target, f.Start.Format("15:04:05.000"), lasted, f.Due, f.Late, seconds(f.MaxLate), seconds(f.Recovery))
	}
}

// seconds writes a duration with what matters of it.
func seconds(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%.1f ms", d.Seconds()*1000)
	case d < time.Minute:
		return fmt.Sprintf("%.2f s", d.Seconds())
	}
	return d.Round(time.Second).String()
}

// grouped writes a number with commas: 48,213.
func grouped(n int) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
