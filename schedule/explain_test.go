package schedule

import (
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "write the golden files")

// TestExplainGolden holds the sentences people read: an expression on a line,
// the English and the Chinese on the next two, a blank line. Review changes of
// the file as text, not as test data.
func TestExplainGolden(t *testing.T) {
	const name = "testdata/explain.golden"
	old, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var now strings.Builder
	for _, block := range strings.Split(strings.TrimSpace(string(old)), "\n\n") {
		expr, _, _ := strings.Cut(block, "\n")
		now.WriteString(expr + "\n")
		for _, lang := range []string{"en", "zh"} {
			text, err := Explain(expr, DialectAuto, lang)
			if err != nil {
				t.Fatal(err)
			}
			now.WriteString(text + "\n")
		}
		now.WriteString("\n")
	}
	if *update {
		if err := os.WriteFile(name, []byte(now.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	was, is := strings.Split(string(old), "\n"), strings.Split(now.String(), "\n")
	for i := range min(len(was), len(is)) {
		if was[i] != is[i] {
			t.Errorf("line %d\n got %s\nwant %s", i+1, is[i], was[i])
		}
	}
	if len(was) != len(is) || len(was) < 200 {
		t.Errorf("%d lines, the file has %d", len(is), len(was))
	}
}

func TestScheduleExplain(t *testing.T) {
	tests := []struct {
		name   string
		spec   Spec
		en, zh string
	}{
		{"none", Spec{Kind: KindNone}, "Never fires by itself", "不会自动触发"},
		{"cron", Spec{Kind: KindCron, Expr: "0 9 * * 1-5", Zone: "Asia/Shanghai"},
			"At 09:00, Monday to Friday (Asia/Shanghai)", "每周一至周五 09:00（Asia/Shanghai）"},
		{"every", Spec{Kind: KindCron, Expr: "@every 90s", Anchor: at("2026-03-01T00:00:00Z")},
			"Every 1 minute 30 seconds, counted from 2026-03-01 00:00:00 (UTC)", "每 1 分钟 30 秒一次，自 2026-03-01 00:00:00 起计（UTC）"},
		{"fixed rate", Spec{Kind: KindFixedRate, Every: time.Hour, Anchor: at("2026-03-01T00:00:00.25Z"), Zone: "Asia/Tokyo"},
			"Every hour, counted from 2026-03-01 09:00:00.250 (Asia/Tokyo)", "每小时一次，自 2026-03-01 09:00:00.250 起计（Asia/Tokyo）"},
		{"fixed delay", Spec{Kind: KindFixedDelay, Every: 30 * time.Second},
			"30 seconds after the previous run has finished", "上一次运行结束 30 秒后"},
		{"once", Spec{Kind: KindOnce, At: at("2026-03-01T00:00:00Z"), Zone: "Asia/Shanghai"},
			"Once, at 2026-03-01 08:00:00 (Asia/Shanghai)", "仅一次：2026-03-01 08:00:00（Asia/Shanghai）"},
		{"instants", Spec{Kind: KindInstants, Instants: []time.Time{at("2026-03-01T00:00:00Z"), at("2026-03-05T00:00:00Z")}},
			"At 2 given instants from 2026-03-01 00:00:00 to 2026-03-05 00:00:00 (UTC)", "在指定的 2 个时刻，从 2026-03-01 00:00:00 至 2026-03-05 00:00:00（UTC）"},
		{"window", Spec{Kind: KindDailyWindow, WindowFrom: "22:00", WindowTo: "02:30:15", Every: 10 * time.Minute},
			"Every day from 22:00 to 02:30:15 on the next day, every 10 minutes (UTC)", "每天 22:00 至次日 02:30:15，每 10 分钟一次（UTC）"},
		{"window to midnight", Spec{Kind: KindDailyWindow, WindowFrom: "00:00", WindowTo: "24:00", Every: time.Hour},
			"Every day from 00:00 to 24:00, every hour (UTC)", "每天 00:00 至 24:00，每小时一次（UTC）"},
		{"a gap and an overlap", Spec{Kind: KindCron, Expr: "30 2 * * *", Zone: "Europe/Berlin"},
			"At 02:30 every day (Europe/Berlin), at the end of the gap when clocks go forward over a fire time, once when clocks go back over it",
			"每天 02:30（Europe/Berlin），时钟拨快跳过触发时刻时在跳过的时段结束时触发，时钟拨慢使其重复时只触发一次"},
		{"not in the gap, both times", Spec{Kind: KindCron, Expr: "30 1,2 * * SUN", Zone: "America/New_York", DST: DST{Gap: GapSkip, Overlap: OverlapBoth}},
			"At 01:30 and 02:30 on Sunday (America/New_York), not when clocks go forward over a fire time, both times when clocks go back over it",
			"每周日 01:30 和 02:30（America/New_York），时钟拨快跳过触发时刻时不触发，时钟拨慢使其重复时触发两次"},
		{"an overlap only", Spec{Kind: KindCron, Expr: "30 1 * * *", Zone: "America/New_York"},
			"At 01:30 every day (America/New_York), once when clocks go back over it", "每天 01:30（America/New_York），时钟拨慢使其重复时只触发一次"},
		{"no clock change meets it", Spec{Kind: KindCron, Expr: "0 9 * * *", Zone: "Europe/Berlin"}, "At 09:00 every day (Europe/Berlin)", "每天 09:00（Europe/Berlin）"},
		{"by elapsed time", Spec{Kind: KindCron, Expr: "*/15 * * * *", Zone: "Europe/Berlin"},
			"Every 15 minutes (Europe/Berlin), by elapsed time when clocks change: dstGap and dstOverlap have no effect",
			"每 15 分钟一次（Europe/Berlin），时钟变更时按实际经过的时间触发：dstGap 和 dstOverlap 不起作用"},
		{"by elapsed time, where clocks do not change", Spec{Kind: KindCron, Expr: "*/15 * * * *", Zone: "Asia/Shanghai"}, "Every 15 minutes (Asia/Shanghai)", "每 15 分钟一次（Asia/Shanghai）"},
		{"minutes through the hour", Spec{Kind: KindCron, Expr: "*/30 2 * * *", Zone: "Europe/Berlin"},
			"At 02:00 and 02:30 every day (Europe/Berlin), at the end of the gap when clocks go forward over a fire time, both times when clocks go back over it: minutes that step through the hour go by elapsed time then, and dstOverlap has no effect",
			"每天 02:00 和 02:30（Europe/Berlin），时钟拨快跳过触发时刻时在跳过的时段结束时触发，时钟拨慢使其重复时触发两次：分钟字段按步长贯穿整个小时，此时按实际经过的时间触发，dstOverlap 不起作用"},
		{"the same times as a list", Spec{Kind: KindCron, Expr: "0,30 2 * * *", Zone: "Europe/Berlin"},
			"At 02:00 and 02:30 every day (Europe/Berlin), at the end of the gap when clocks go forward over a fire time, once when clocks go back over it",
			"每天 02:00 和 02:30（Europe/Berlin），时钟拨快跳过触发时刻时在跳过的时段结束时触发，时钟拨慢使其重复时只触发一次"},
		{"minutes through an hour that comes once", Spec{Kind: KindCron, Expr: "*/30 9 * * *", Zone: "Europe/Berlin"}, "At 09:00 and 09:30 every day (Europe/Berlin)", "每天 09:00 和 09:30（Europe/Berlin）"},
		{"a weekday without changes", Spec{Kind: KindCron, Expr: "30 2 * * MON", Zone: "Europe/Berlin"}, "At 02:30 on Monday (Europe/Berlin)", "每周一 02:30（Europe/Berlin）"},
		{"validity and jitter", Spec{Kind: KindCron, Expr: "@daily", StartAt: at("2026-03-01T00:00:00Z"), EndAt: at("2027-03-01T00:00:00Z"), JitterMax: 10 * time.Second},
			"At 00:00 every day (UTC), from 2026-03-01 00:00:00, until 2027-03-01 00:00:00, each delayed at random by up to 10 seconds",
			"每天 00:00（UTC），自 2026-03-01 00:00:00 起，至 2027-03-01 00:00:00 止，每次随机延迟最多 10 秒"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := mustCompile(t, tt.spec)
			if en := s.Explain("en-GB"); en != tt.en {
				t.Errorf("en\n got %s\nwant %s", en, tt.en)
			}
			if zh := s.Explain("zh-CN"); zh != tt.zh {
				t.Errorf("zh\n got %s\nwant %s", zh, tt.zh)
			}
		})
	}
}

// lookups counts how often a rule is asked.
type lookups struct {
	rule
	n *int
}

func (l lookups) next(after time.Time) (time.Time, bool) {
	*l.n++
	return l.rule.next(after)
}

// Both texts cost the clock changes once: they are nearly all of it.
func TestTextsLookAtTheClockOnce(t *testing.T) {
	s := mustCompile(t, Spec{Kind: KindCron, Expr: "30 2 * * *", Zone: "Europe/Berlin"})
	wantEN, wantZH := s.Explain("en"), s.Explain("zh")
	asked := func(do func(s *Schedule)) (n int) {
		counted := *s
		counted.rule = lookups{s.rule, &n}
		do(&counted)
		return n
	}
	one := asked(func(s *Schedule) { s.Explain("zh") })
	both := asked(func(s *Schedule) { s.Texts() })
	en, zh := s.Texts()
	if en != wantEN || zh != wantZH || one == 0 || both != one {
		t.Errorf("%q, %q after %d look-ups, want %q, %q after %d", en, zh, both, wantEN, wantZH, one)
	}
}

// TestExplainAlways: every rule has a sentence in both languages, without
// doubled spaces or signs.
func TestExplainAlways(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := genRule(t)
		for _, lang := range []string{"en", "zh"} {
			text, err := Explain(r.text, r.dialect, lang)
			if err != nil {
				t.Fatal(err)
			}
			for _, bad := range []string{"  ", ",,", "，，", "的的", "%!", " ,", "年年", "月月", "每每"} {
				if strings.Contains(text, bad) || text == "" || strings.TrimSpace(text) != text {
					t.Fatalf("%q in %s: %q", r.text, lang, text)
				}
			}
		}
	})
}

func TestExplainError(t *testing.T) {
	if _, err := Explain("0 25 * * *", DialectAuto, "en"); err == nil {
		t.Error("no error")
	}
}
