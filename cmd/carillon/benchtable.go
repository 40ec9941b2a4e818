package main

import (
	"fmt"
	"strings"

	"github.com/carillon-sched/carillon/admin/bench"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/output"
)

// printBench writes the report as tables for people.
func printBench(p *output.Printer, r *bench.Report) error {
	m := r.Machine
	fmt.Fprintf(p.Out, "\n%s · %d cores (%s) · %d GiB · %s · %s\n", m.OS, m.Cores, m.CPU, m.Memory>>30, m.Go, m.Version)
	for name, text := range map[string]string{"MySQL: ": m.MySQL, "SQLite: ": m.SQLite} {
		if text != "" {
			fmt.Fprintln(p.Out, name+text)
		}
	}
	fmt.Fprintf(p.Out, "load average %.2f before; took %.0f s\n\n", m.Load, float64(r.Took))
	var runs []bench.Result
	for _, one := range r.Results {
		if len(one.Timers) == 0 {
			runs = append(runs, one)
		}
	}
	if len(runs) > 0 {
		if err := output.Rows(p, benchColumns, runs); err != nil {
			return err
		}
	}
	for _, one := range r.Results {
		if len(one.Timers) == 0 {
			continue
		}
		fmt.Fprintf(p.Out, "\ntimers, %s; ns per value\n", one.Variant)
		if err := output.Rows(p, timerColumns, one.Timers); err != nil {
			return err
		}
	}
	for _, one := range r.Results {
		for _, note := range one.Notes {
			fmt.Fprintf(p.Out, "%s, %s: %s\n", one.Scenario, one.Variant, note)
		}
		if one.Failed != "" {
			fmt.Fprintf(p.Out, "%s, %s: FAILED: %s\n", one.Scenario, one.Variant, one.Failed)
		}
	}
	return nil
}

var benchColumns = []output.Column[bench.Result]{
	{Title: "SCENARIO", Value: func(r bench.Result) string { return r.Scenario }},
	{Title: "VARIANT", Value: func(r bench.Result) string { return r.Variant }},
	{Title: "DATABASE", Value: func(r bench.Result) string { return r.Database }},
	{Title: "FIRES/S", Right: true, Value: func(r bench.Result) string {
		if r.Throughput == nil {
			return ""
		}
		return fmt.Sprintf("%.0f", r.Throughput.PerSecond)
	}},
	{Title: "FLOOR", Right: true, Value: func(r bench.Result) string {
		if r.Throughput == nil {
			return ""
		}
		return fmt.Sprintf("%.0f", r.Throughput.Floor)
	}},
	{Title: "%", Right: true, Value: func(r bench.Result) string {
		if r.Throughput == nil {
			return ""
		}
		return fmt.Sprintf("%.0f", r.Throughput.FloorPercent)
	}},
	{Title: "DUE", Right: true, Value: fires(func(f *bench.Fires) int { return f.Expected })},
	{Title: "MISSED", Right: true, Value: fires(func(f *bench.Fires) int { return f.Missed })},
	{Title: "DOUBLED", Right: true, Value: fires(func(f *bench.Fires) int { return f.Doubled })},
	{Title: "LATE p50/p99/max ms", Right: true, Value: func(r bench.Result) string { return spread(r.Lateness) }},
	{Title: "TOOK p50/p99/max ms", Right: true, Value: func(r bench.Result) string { return spread(r.Elapsed) }},
	{Title: "FLOOR ms", Right: true, Value: func(r bench.Result) string { return spread(r.FloorLateness) }},
	{Title: "STALL disk/cpu ms", Right: true, Value: func(r bench.Result) string {
		if r.Stalls == nil {
			return ""
		}
		return fmt.Sprintf("%.0f / %.0f", r.Stalls.Disk, r.Stalls.Processor)
	}},
	{Title: "CPU % OF A CORE, MiB, µs A FIRE", Value: processes},
}

var timerColumns = []output.Column[bench.Timer]{
	{Title: "STRUCTURE", Value: func(t bench.Timer) string { return t.Structure }},
	{Title: "INSERT", Right: true, Value: nanos(func(t bench.Timer) float64 { return t.InsertNs })},
	{Title: "CANCEL", Right: true, Value: nanos(func(t bench.Timer) float64 { return t.CancelNs })},
	{Title: "POP", Right: true, Value: nanos(func(t bench.Timer) float64 { return t.PopNs })},
	{Title: "FIRE, CPU", Right: true, Value: nanos(func(t bench.Timer) float64 { return t.FireNs })},
	{Title: "BYTES", Right: true, Value: nanos(func(t bench.Timer) float64 { return t.Bytes })},
	{Title: "LATE p50/p99/max ms", Right: true, Value: func(t bench.Timer) string {
		return fmt.Sprintf("%.2f / %.2f / %.2f", t.Lateness.P50, t.Lateness.P99, t.Lateness.Max)
	}},
}

func nanos(pick func(bench.Timer) float64) func(bench.Timer) string {
	return func(t bench.Timer) string {
		if pick(t) == 0 {
			return ""
		}
		return fmt.Sprintf("%.0f", pick(t))
	}
}

func fires(pick func(*bench.Fires) int) func(bench.Result) string {
	return func(r bench.Result) string {
		if r.Fires == nil {
			return ""
		}
		return fmt.Sprint(pick(r.Fires))
	}
}

func spread(s *bench.Spread) string {
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

func processes(r bench.Result) string {
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
