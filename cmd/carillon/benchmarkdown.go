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

	"github.com/spf13/cobra"

	"github.com/carillon-sched/carillon/admin/bench"
)

// The lines between which a document's table stands.
const (
	tableBegin = "<!-- bench table: begin, made by carillon bench table -->"
	tableEnd   = "<!-- bench table: end -->"
)

func newBenchTableCommand() *cobra.Command {
	var language, into string
	cmd := &cobra.Command{
		Use:   "table REPORT...",
		Short: "Write reports of bench as a Markdown table, beside floors and goals",
		Long: `Writes what --report kept as a Markdown table. Of several reports the later ones
replace what the earlier ones say of the same scenario; they have to be of the
same machine and databases. --into puts the table into a document, between the
lines

  ` + tableBegin + `
  ` + tableEnd,
		Example: `  carillon bench table .cache/bench/20261121T123000Z.json --into README.md
  carillon bench table report.json --language zh --into README.zh-CN.md`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			words, ok := tableWords[language]
			if !ok {
				return fmt.Errorf("language %q is neither en nor zh", language)
			}
			r, err := readReports(args)
			if err != nil {
				return err
			}
			text := markdownOf(r, words)
			if into == "" {
				_, err = io.WriteString(cmd.OutOrStdout(), text)
				return err
			}
			return replaceTable(into, text)
		},
	}
	cmd.Flags().StringVar(&language, "language", "en", "en or zh")
	cmd.Flags().StringVar(&into, "into", "", "document whose table is replaced (default: print it)")
	return cmd
}

// readReports joins reports: the last result of each scenario counts.
func readReports(files []string) (*bench.Report, error) {
	var all *bench.Report
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var r bench.Report
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
			i := slices.IndexFunc(all.Results, func(old bench.Result) bool {
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
func sameMachine(a, b bench.Machine) bool {
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

// words are what differs between languages.
type words struct {
	columns                               []string
	quick, failed, missed, memory, timers string
	more, stall, again, price             string
	variants                              *strings.Replacer
}

var tableWords = map[string]words{
	"en": {
		columns: []string{"scenario", "database", "measured", "floor: the same SQL alone", "of the floor", "goal", "stretch"},
		quick:   "a quick run: short windows", failed: "failed", missed: "%d of %d missed, %d doubled", memory: "admin %.0f %% of a core, %d MiB",
		more:     ", %.0f MB more than without them",
		stall:    "the machine stood still for %.0f ms",
		price:    "%s %.0f µs of CPU a fire",
		again:    "fresh runs on time %.0f s after it; %.0f pauses/s meanwhile",
		timers:   "insert %.0f ns, fire %.0f ns",
		variants: strings.NewReplacer(),
	},
	"zh": {
		columns: []string{"场景", "数据库", "实测", "基线：仅执行相同 SQL", "占基线", "目标", "挑战目标"},
		quick:   "快速运行：测量窗口较短", failed: "失败", missed: "%[2]d 次中遗漏 %[1]d、重复 %[3]d", memory: "管理节点占单核 %.0f %%、%d MiB",
		more:   "（因此增加 %.0f MB）",
		stall:  "机器停顿 %.0f ms",
		price:  "%s 每次触发 %.0f µs CPU",
		again:  "过载结束 %.0f s 后新任务恢复准时；期间每秒完成 %.0f 次暂停",
		timers: "插入 %.0f ns、触发 %.0f ns",
		variants: strings.NewReplacer("sessions", "会话", "idle instances", "个空闲实例", "instances after the node was killed", "个实例在节点被杀后重连",
			"a peer that is silent, noticed", "发现静默的对端", "a peer that is reset, noticed", "发现被重置的对端", "throughput", "吞吐", "edges", "整秒齐发", " each second", " 个任务每秒", "default slots", "默认槽位", " slots", " 个槽位", "overload", "过载", "busy slots", "占用槽位", " × capacity for ", " 倍处理能力，持续 ", "burst", "突发", "steady", "稳态", "idle", "空闲", "timers", "定时器结构", "dispatch", "派发", "one run at a time", "逐个往返", "in frames of 100", "每帧 100 个", "scale", "规模",
			"at most once", "至多一次", "idempotent", "幂等", " on one second", " 个任务同一秒", "fires/s", "次/秒", "enabled jobs", "个启用的任务", ", 50 of ", "，列出 50 条，共 ", " jobs", " 个任务", " runs", " 条运行记录",
			"admin nodes:", "管理节点数", "no finished runs", "没有已结束的运行记录", "finished runs", "条已结束的运行记录", "pending", "个等待", "wheel", "时间轮", "heap", "四叉堆", "runtime", "运行时定时器"),
	},
}

// markdownOf is the table with the line that says where it was measured.
func markdownOf(r *bench.Report, w words) string {
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
		facts = append(facts, w.quick)
	}
	fmt.Fprintf(&b, "%s · %s\n\n", r.StartedAt.Format(time.DateOnly), strings.Join(facts, " · "))
	writeRow(&b, w.columns)
	writeRow(&b, []string{"---", "---", "---", "---", "---:", "---", "---"})
	for i := range r.Results {
		for _, row := range rowsOf(r, &r.Results[i], w) {
			writeRow(&b, row)
		}
	}
	return b.String()
}

// longStall is from how many ms on a table tells of a stall: a steady load's
// goal for its p99.
const longStall = 25

func writeRow(b *strings.Builder, cells []string) {
	fmt.Fprintf(b, "| %s |\n", strings.Join(cells, " | "))
}

// rowsOf are a result's rows: one, but for the timers.
func rowsOf(r *bench.Report, one *bench.Result, w words) (rows [][]string) {
	name := w.variants.Replace(one.Scenario + ", " + one.Variant)
	if one.Failed != "" {
		return [][]string{{name, databaseOf(r, one), "**" + w.failed + "**", "", "", "", ""}}
	}
	for _, t := range one.Timers {
		measured := fmt.Sprintf(w.timers, t.InsertNs, t.FireNs) + "; " + spread(t.Lateness) + " ms"
		rows = append(rows, []string{name + ", " + w.variants.Replace(t.Structure), "", measured, "", "", "", ""})
	}
	if len(rows) > 0 {
		return rows
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
		floor = strings.TrimPrefix(floor+"; ", "; ") + fmt.Sprintf(w.stall, max(s.Disk, s.Processor))
	}
	goal, _ := r.GoalOf(one)
	return [][]string{{name, databaseOf(r, one), measuredOf(one, w), floor, share, mark(goal.Figure, goal.Reached() >= 1), mark(goal.Stretch, goal.Reached() >= 2)}}
}

// databaseOf names what was measured.
func databaseOf(r *bench.Report, one *bench.Result) string {
	switch {
	case one.Database == bench.SQLite:
		return "SQLite"
	case one.Database == bench.MySQL && strings.Contains(r.Machine.MySQL, "MariaDB"):
		return "MariaDB"
	case one.Database == bench.MySQL:
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

func measuredOf(r *bench.Result, w words) string {
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
		all = append(all, fmt.Sprintf(w.missed, r.Fires.Missed, r.Fires.Expected, r.Fires.Doubled))
	}
	if o := r.Overload; o != nil {
		all = append(all, fmt.Sprintf(w.again, float64(o.OnTimeAgain), o.PausesPerSecond))
	}
	for _, p := range r.Processes {
		if strings.HasPrefix(p.Name, "admin-1") && r.Throughput == nil {
			used := fmt.Sprintf(w.memory, p.Core, p.RSS>>20)
			if p.Alone > 0 {
				used += fmt.Sprintf(w.more, float64(p.RSS-p.Alone)/1e6)
			}
			all = append(all, used)
		}
		if r.Scenario == "edges" {
			all = append(all, fmt.Sprintf(w.price, p.Name, p.PerFire))
		}
	}
	return strings.Join(all, "; ")
}

func floorOf(r *bench.Result) (floor, share string) {
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
