package main

import (
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/carillon-sched/carillon/internal/testenv/lab"
)

// printTable prints one line per row, the reasons below it, and the line that
// CI counts.
func printTable(w io.Writer, results []result) {
	fmt.Fprintf(w, "\n%s/%s, %d cores; database%s, admin nodes and executors share them\n\n", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), servers(results))
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "id\tinjected\ttargets\tmissed\tdouble\tverdict\tseconds\tstall ms\tfigure")
	var sum result
	count := map[verdict]int{}
	for _, r := range results {
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%d\t%s\t%.0f\t%s\t%s\n",
			r.ID, r.Injected, r.Targets, r.Missed, r.Double, r.judgement(), r.Seconds, stallsOf(r.Stalls), r.Figure)
		sum.Injected += r.Injected
		sum.Targets += r.Targets
		sum.Missed += r.Missed
		sum.Double += r.Double
		sum.Seconds += r.Seconds
		count[r.Verdict]++
	}
	fmt.Fprintf(t, "all\t%d\t%d\t%d\t%d\t%d pass, %d fail, %d unable\t%.0f\t\t\n",
		sum.Injected, sum.Targets, sum.Missed, sum.Double, count[passed], count[failed], count[unable], sum.Seconds)
	_ = t.Flush()
	for _, r := range results {
		if len(r.Over) > 0 {
			fmt.Fprintf(w, "\n%s over its goal: %s\n", r.ID, strings.Join(r.Over, "; "))
		}
		if r.Reason != "" {
			fmt.Fprintf(w, "\n%s %s (%s)\n  %s\n", r.ID, r.Verdict, r.Title, strings.ReplaceAll(r.Reason, "\n", "\n  "))
		}
	}
	fmt.Fprintf(w, "\n%d passed, %d failed\n", count[passed], count[failed])
}

// servers names the versions of the database servers that rows started.
func servers(results []result) string {
	var names []string
	for _, r := range results {
		if r.Database != "" && !slices.Contains(names, r.Database) {
			names = append(names, r.Database)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return " (" + strings.Join(names, ", ") + ")"
}

// stallsOf are the longest ones of disk and processors: no part of a verdict,
// but of what a time may mean.
func stallsOf(s *lab.Stalls) string {
	if s == nil {
		return ""
	}
	return fmt.Sprintf("%.0f/%.0f", s.Disk, s.Processor)
}

// judgement is the verdict, and whether a figure is over its goal.
func (r *result) judgement() string {
	if len(r.Over) > 0 {
		return string(r.Verdict) + ", over goal"
	}
	return string(r.Verdict)
}

// markdown is the table of docs/dev/reliability.md.
func markdown(results []result) string {
	var b strings.Builder
	b.WriteString("| Id | Inject | Injected | Targets | Missed | Double | Verdict | Figure |\n|---|---|---|---|---|---|---|---|\n")
	for _, r := range results {
		figure := r.Figure
		if r.Verdict == unable {
			figure = r.Reason
		}
		fmt.Fprintf(&b, "| %s | %s | %d | %d | %d | %d | %s | %s |\n",
			r.ID, r.Title, r.Injected, r.Targets, r.Missed, r.Double, r.judgement(), strings.ReplaceAll(figure, "|", "\\|"))
	}
	return b.String()
}
