package schedule

import (
	"errors"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// at reads an RFC 3339 time.
func at(text string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		panic(err)
	}
	return t
}

func mustCompile(t testing.TB, spec Spec) *Schedule {
	t.Helper()
	s, err := Compile(spec)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestScheduleFires(t *testing.T) {
	tests := []struct {
		name       string
		spec       Spec
		from, want string
	}{
		{"none", Spec{Kind: KindNone}, "2026-03-01T00:00:00Z", "none"},
		{"cron in a zone", Spec{Kind: KindCron, Expr: "0 9 * * MON", Zone: "Asia/Shanghai"}, "2026-03-01T00:00:00Z",
			"2026-03-02T09:00:00+08:00, 2026-03-09T09:00:00+08:00"},
		{"cron with its policy", Spec{Kind: KindCron, Expr: "30 2 * * *", Zone: "America/New_York", DST: DST{Gap: GapSkip}},
			"2026-03-07T12:00:00Z", "2026-03-09T02:30:00-04:00"},
		{"cron that never fires", Spec{Kind: KindCron, Expr: "0 0 31 2 *"}, "2026-03-01T00:00:00Z", "none"},
		{"cron every, from its anchor", Spec{Kind: KindCron, Expr: "@every 10s", Anchor: at("2026-03-01T00:00:03Z")},
			"2026-03-01T00:00:00Z", "2026-03-01T00:00:03Z, 2026-03-01T00:00:13Z"},
		{"validity includes both ends", Spec{Kind: KindCron, Expr: "0 * * * *", StartAt: at("2026-03-01T05:00:00Z"), EndAt: at("2026-03-01T07:00:00Z")},
			"2026-01-01T00:00:00Z", "2026-03-01T05:00:00Z, 2026-03-01T06:00:00Z, 2026-03-01T07:00:00Z, none"},
		{"validity between fires", Spec{Kind: KindCron, Expr: "0 * * * *", StartAt: at("2026-03-01T05:00:00.001Z"), EndAt: at("2026-03-01T06:59:59.999Z")},
			"2026-01-01T00:00:00Z", "2026-03-01T06:00:00Z, none"},

		{"fixed rate from the epoch", Spec{Kind: KindFixedRate, Every: 7 * time.Minute}, "1970-01-01T00:00:00Z",
			"1970-01-01T00:07:00Z, 1970-01-01T00:14:00Z"},
		{"fixed rate: the anchor is the first fire", Spec{Kind: KindFixedRate, Every: time.Hour, Anchor: at("2026-03-01T00:10:00.5Z")},
			"2026-02-01T00:00:00Z", "2026-03-01T00:10:00.5Z, 2026-03-01T01:10:00.5Z"},
		{"fixed rate: strictly after", Spec{Kind: KindFixedRate, Every: 100 * time.Millisecond, Anchor: at("2026-03-01T00:00:00.05Z")},
			"2026-03-01T00:00:00.15Z", "2026-03-01T00:00:00.25Z, 2026-03-01T00:00:00.35Z"},
		{"fixed rate: a fraction of a millisecond later", Spec{Kind: KindFixedRate, Every: 100 * time.Millisecond},
			"2026-03-01T00:00:00.0999999Z", "2026-03-01T00:00:00.1Z"},
		{"fixed rate: anchored at the start", Spec{Kind: KindFixedRate, Every: time.Hour, StartAt: at("2026-03-01T00:10:00Z")},
			"2026-02-01T00:00:00Z", "2026-03-01T00:10:00Z, 2026-03-01T01:10:00Z"},
		{"fixed rate: anchor before the start", Spec{Kind: KindFixedRate, Every: time.Hour, Anchor: at("2026-03-01T00:10:00Z"), StartAt: at("2026-03-02T00:00:00Z")},
			"2026-02-01T00:00:00Z", "2026-03-02T00:10:00Z, 2026-03-02T01:10:00Z"},
		{"fixed rate over a clock change", Spec{Kind: KindFixedRate, Every: 24 * time.Hour, Anchor: at("2026-03-07T07:30:00Z"), Zone: "America/New_York"},
			"2026-03-07T00:00:00Z", "2026-03-07T02:30:00-05:00, 2026-03-08T03:30:00-04:00"},

		{"fixed delay", Spec{Kind: KindFixedDelay, Every: time.Minute}, "2026-03-01T00:00:00.25Z", "2026-03-01T00:01:00.25Z, 2026-03-01T00:02:00.25Z"},
		{"fixed delay: never early", Spec{Kind: KindFixedDelay, Every: time.Minute}, "2026-03-01T00:00:00.0000001Z", "2026-03-01T00:01:00.001Z"},
		{"fixed delay: anchor to come", Spec{Kind: KindFixedDelay, Every: time.Minute, Anchor: at("2026-03-02T00:00:00Z")},
			"2026-03-01T00:00:00Z", "2026-03-02T00:00:00Z, 2026-03-02T00:01:00Z"},
		{"fixed delay: start to come", Spec{Kind: KindFixedDelay, Every: time.Minute, Anchor: at("2026-01-02T00:00:00Z"), StartAt: at("2026-03-02T00:00:00Z")},
			"2026-03-01T23:00:00Z", "2026-03-02T00:00:00Z, 2026-03-02T00:01:00Z"},
		{"fixed delay: end", Spec{Kind: KindFixedDelay, Every: time.Minute, EndAt: at("2026-03-01T00:01:30Z")},
			"2026-03-01T00:00:00Z", "2026-03-01T00:01:00Z, none"},

		{"once", Spec{Kind: KindOnce, At: at("2026-03-01T00:00:00.0015Z")}, "2026-02-01T00:00:00Z", "2026-03-01T00:00:00.001Z, none"},
		{"once, past", Spec{Kind: KindOnce, At: at("2026-03-01T00:00:00Z")}, "2026-03-01T00:00:00Z", "none"},
		{"instants, sorted and single", Spec{Kind: KindInstants, Zone: "Asia/Tokyo", Instants: []time.Time{at("2026-03-02T00:00:00Z"), at("2026-03-01T00:00:00Z"), at("2026-03-02T09:00:00+09:00")}},
			"2026-02-01T00:00:00Z", "2026-03-01T09:00:00+09:00, 2026-03-02T09:00:00+09:00, none"},
		{"instants within validity", Spec{Kind: KindInstants, Instants: []time.Time{at("2026-03-02T00:00:00Z"), at("2026-03-01T00:00:00Z")}, StartAt: at("2026-03-01T12:00:00Z")},
			"2026-02-01T00:00:00Z", "2026-03-02T00:00:00Z, none"},

		{"window", Spec{Kind: KindDailyWindow, WindowFrom: "09:00", WindowTo: "10:00", Every: 30 * time.Minute, Zone: "Asia/Shanghai"}, "2026-03-01T00:00:00Z",
			"2026-03-01T09:00:00+08:00, 2026-03-01T09:30:00+08:00, 2026-03-01T10:00:00+08:00, 2026-03-02T09:00:00+08:00"},
		{"window: the end does not fit", Spec{Kind: KindDailyWindow, WindowFrom: "09:00", WindowTo: "09:59:59", Every: 45 * time.Minute}, "2026-03-01T09:00:00Z",
			"2026-03-01T09:45:00Z, 2026-03-02T09:00:00Z"},
		{"window over midnight", Spec{Kind: KindDailyWindow, WindowFrom: "23:00", WindowTo: "01:00", Every: time.Hour}, "2026-03-01T00:30:00Z",
			"2026-03-01T01:00:00Z, 2026-03-01T23:00:00Z, 2026-03-02T00:00:00Z, 2026-03-02T01:00:00Z, 2026-03-02T23:00:00Z"},
		{"window of the whole day", Spec{Kind: KindDailyWindow, WindowFrom: "00:00", WindowTo: "24:00", Every: 8 * time.Hour}, "2026-03-01T07:00:00Z",
			"2026-03-01T08:00:00Z, 2026-03-01T16:00:00Z, 2026-03-02T00:00:00Z, 2026-03-02T08:00:00Z"},
		{"window in milliseconds", Spec{Kind: KindDailyWindow, WindowFrom: "00:00:00", WindowTo: "00:00:01", Every: 400 * time.Millisecond}, "2026-03-01T00:00:00Z",
			"2026-03-01T00:00:00.4Z, 2026-03-01T00:00:00.8Z, 2026-03-02T00:00:00Z"},
		{"window over a gap", Spec{Kind: KindDailyWindow, WindowFrom: "01:00", WindowTo: "04:00", Every: time.Hour, Zone: "America/New_York"}, "2026-03-08T05:00:00Z",
			"2026-03-08T01:00:00-05:00, 2026-03-08T03:00:00-04:00, 2026-03-08T04:00:00-04:00, 2026-03-09T01:00:00-04:00"},
		{"window that opens in a gap", Spec{Kind: KindDailyWindow, WindowFrom: "02:30", WindowTo: "04:00", Every: 30 * time.Minute, Zone: "America/New_York"}, "2026-03-08T05:00:00Z",
			"2026-03-08T03:00:00-04:00, 2026-03-08T03:30:00-04:00, 2026-03-08T04:00:00-04:00, 2026-03-09T02:30:00-04:00"},
		{"window swallowed by a gap", Spec{Kind: KindDailyWindow, WindowFrom: "02:10", WindowTo: "02:50", Every: 10 * time.Minute, Zone: "America/New_York"}, "2026-03-08T05:00:00Z",
			"2026-03-08T03:00:00-04:00, 2026-03-09T02:10:00-04:00"},
		{"window swallowed by a gap, skipped", Spec{Kind: KindDailyWindow, WindowFrom: "02:10", WindowTo: "02:50", Every: 10 * time.Minute, Zone: "America/New_York", DST: DST{Gap: GapSkip}}, "2026-03-08T05:00:00Z",
			"2026-03-09T02:10:00-04:00"},
		{"window over an overlap", Spec{Kind: KindDailyWindow, WindowFrom: "00:30", WindowTo: "01:30", Every: time.Hour, Zone: "America/New_York"}, "2026-11-01T04:00:00Z",
			"2026-11-01T00:30:00-04:00, 2026-11-01T01:30:00-04:00, 2026-11-01T01:30:00-05:00, 2026-11-02T00:30:00-05:00"},
		{"window over a day left out", Spec{Kind: KindDailyWindow, WindowFrom: "09:00", WindowTo: "10:00", Every: time.Hour, Zone: "Pacific/Apia"}, "2011-12-29T19:59:00Z",
			"2011-12-29T10:00:00-10:00, 2011-12-31T00:00:00+14:00, 2011-12-31T09:00:00+14:00"},
		{"window long after", Spec{Kind: KindDailyWindow, WindowFrom: "09:00", WindowTo: "10:00", Every: time.Hour, EndAt: at("2026-03-01T09:30:00Z")}, "2026-03-01T00:00:00Z",
			"2026-03-01T09:00:00Z, none"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			checkFires(t, mustCompile(t, tt.spec).Next, tt.from, tt.want)
		})
	}
}

func TestCompileErrors(t *testing.T) {
	hour := time.Hour
	tests := []struct {
		name string
		spec Spec
		want string // fields
	}{
		{"empty", Spec{}, "kind"},
		{"kind", Spec{Kind: "weekly"}, "kind"},
		{"expression", Spec{Kind: KindCron, Expr: "0 25 * * *"}, "expr"},
		{"expression missing", Spec{Kind: KindCron}, "expr"},
		{"dialect", Spec{Kind: KindCron, Expr: "* * * * *", Dialect: "vixie"}, "dialect"},
		{"zone", Spec{Kind: KindNone, Zone: "Mars/Olympus"}, "zone"},
		{"zone of the machine", Spec{Kind: KindNone, Zone: "Local"}, "zone"},
		{"zone as a path", Spec{Kind: KindNone, Zone: "../UTC"}, "zone"},
		{"interval missing", Spec{Kind: KindFixedRate}, "every"},
		{"interval short", Spec{Kind: KindFixedRate, Every: 99 * time.Millisecond}, "every"},
		{"interval long", Spec{Kind: KindFixedDelay, Every: 11 * 366 * 24 * hour}, "every"},
		{"interval negative", Spec{Kind: KindFixedDelay, Every: -hour}, "every"},
		{"interval in microseconds", Spec{Kind: KindFixedRate, Every: hour + time.Microsecond}, "every"},
		{"anchor too early", Spec{Kind: KindFixedRate, Every: hour, Anchor: at("1969-12-31T00:00:00Z")}, "anchor"},
		{"instant missing", Spec{Kind: KindOnce}, "at"},
		{"instant too late", Spec{Kind: KindOnce, At: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)}, "at"},
		{"no instants", Spec{Kind: KindInstants}, "instants"},
		{"too many instants", Spec{Kind: KindInstants, Instants: make([]time.Time, MaxInstants+1)}, "instants"},
		{"an empty instant", Spec{Kind: KindInstants, Instants: make([]time.Time, 1)}, "instants"},
		{"window empty", Spec{Kind: KindDailyWindow, Every: hour}, "window_from window_to"},
		{"window wrong", Spec{Kind: KindDailyWindow, Every: hour, WindowFrom: "9:00", WindowTo: "10:60"}, "window_from window_to"},
		{"window from 24", Spec{Kind: KindDailyWindow, Every: hour, WindowFrom: "24:00", WindowTo: "10:00"}, "window_from"},
		{"window past 24", Spec{Kind: KindDailyWindow, Every: hour, WindowFrom: "10:00", WindowTo: "24:01"}, "window_to"},
		{"window without length", Spec{Kind: KindDailyWindow, Every: hour, WindowFrom: "10:00", WindowTo: "10:00:00"}, "window_to"},
		{"window interval", Spec{Kind: KindDailyWindow, Every: 25 * hour, WindowFrom: "10:00", WindowTo: "11:00"}, "every"},
		{"validity backwards", Spec{Kind: KindNone, StartAt: at("2026-03-02T00:00:00Z"), EndAt: at("2026-03-01T00:00:00Z")}, "end_at"},
		{"validity before time", Spec{Kind: KindNone, StartAt: at("1900-03-02T00:00:00Z")}, "start_at"},
		{"policies", Spec{Kind: KindNone, DST: DST{Gap: "twice", Overlap: "never"}}, "dst_gap dst_overlap"},
		{"jitter negative", Spec{Kind: KindNone, JitterMax: -1}, "jitter_max"},
		{"jitter long", Spec{Kind: KindNone, JitterMax: 25 * hour}, "jitter_max"},
		{"all at once", Spec{Kind: KindFixedRate, Zone: "x", JitterMax: 1, DST: DST{Gap: "x"}}, "zone every dst_gap jitter_max"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, err := Compile(tt.spec)
			var se *SpecError
			if !errors.As(err, &se) || s != nil {
				t.Fatalf("schedule %v, error %v, want a SpecError", s, err)
			}
			var got []string
			for _, f := range se.Fields {
				got = append(got, string(f.Field))
				if f.Msg == "" || !strings.Contains(err.Error(), f.Error()) {
					t.Errorf("%q lacks %q", err, f.Error())
				}
			}
			if g := strings.Join(got, " "); g != tt.want {
				t.Errorf("fields %q, want %q (%s)", g, tt.want, err)
			}
		})
	}
}

// TestCompileErrorPosition: the place in the expression is not lost.
func TestCompileErrorPosition(t *testing.T) {
	_, err := Compile(Spec{Kind: KindCron, Expr: "0 25 * * *"})
	var pe *ParseError
	if !errors.As(err, &pe) || pe.Pos != 2 {
		t.Errorf("%v has no position", err)
	}
}

func TestPrevAgreesWithNext(t *testing.T) {
	specs := []Spec{
		{Kind: KindNone},
		{Kind: KindCron, Expr: "*/5 * * * *", Zone: "Europe/Berlin"},
		{Kind: KindCron, Expr: "0 0 29 2 *"},
		{Kind: KindCron, Expr: "0 0 0 1 1 ? 2020"},
		{Kind: KindCron, Expr: "30 1 * * *", Zone: "America/New_York", DST: DST{Overlap: OverlapBoth}},
		{Kind: KindFixedRate, Every: 1234567 * time.Millisecond, Anchor: at("2001-01-01T00:00:00.789Z")},
		{Kind: KindOnce, At: at("2026-03-01T00:00:00Z")},
		{Kind: KindDailyWindow, WindowFrom: "22:00", WindowTo: "03:00", Every: 7 * time.Minute, Zone: "Australia/Lord_Howe"},
		{Kind: KindCron, Expr: "0 * * * *", StartAt: at("2026-01-01T00:00:00Z"), EndAt: at("2026-02-01T00:00:00Z")},
	}
	rapid.Check(t, func(t *rapid.T) {
		s, err := Compile(rapid.SampledFrom(specs).Draw(t, "spec"))
		if err != nil {
			t.Fatal(err)
		}
		now := time.UnixMilli(rapid.Int64Range(0, 4_000_000_000_000).Draw(t, "now"))
		prev, ok := s.Prev(now)
		if !ok {
			if first, some := s.Next(time.UnixMilli(-1)); some && !first.After(now) {
				t.Fatalf("no Prev(%s), but %s fires", now, first)
			}
			return
		}
		if prev.After(now) {
			t.Fatalf("Prev(%s) = %s", now, prev)
		}
		if self, _ := s.Next(prev.Add(-time.Millisecond)); !self.Equal(prev) {
			t.Fatalf("Prev(%s) = %s, which does not fire; %s does", now, prev, self)
		}
		if later, more := s.Next(prev); more && !later.After(now) {
			t.Fatalf("Prev(%s) = %s, but %s is later", now, prev, later)
		}
		if same, ok := s.Prev(prev); !ok || !same.Equal(prev) {
			t.Fatalf("Prev of the fire %s = %s", prev, same)
		}
	})
}

// TestRunAt: jitter is part of what is promised, so its values are fixed here.
func TestRunAt(t *testing.T) {
	fire := at("2026-03-01T00:00:00Z")
	spec := Spec{Kind: KindFixedRate, Every: time.Minute, JitterMax: 10 * time.Second, JitterSeed: "42"}
	got := mustCompile(t, spec).RunAt(fire)
	if want := at("2026-03-01T00:00:05.981Z"); !got.Equal(want) {
		t.Errorf("RunAt = %s, want %s as in earlier releases", got, want)
	}
	spec.JitterMax = 0
	if got := mustCompile(t, spec).RunAt(fire); !got.Equal(fire) {
		t.Errorf("RunAt without jitter = %s", got)
	}
}

// TestRunAtSpreads: neighbouring fires and jobs are spread evenly.
func TestRunAtSpreads(t *testing.T) {
	const slots, each = 10, 1000
	for name, runAt := range map[string]func(i int) time.Duration{
		"fires": func(i int) time.Duration {
			s := &Schedule{jitter: slots*100 - 1, seed: "42"}
			fire := time.Unix(int64(i)*60, 0)
			return s.RunAt(fire).Sub(fire)
		},
		"jobs": func(i int) time.Duration {
			s := &Schedule{jitter: slots*100 - 1, seed: string(rune('a'+i%26)) + strings.Repeat("x", i/26)}
			return s.RunAt(time.Unix(60, 0)).Sub(time.Unix(60, 0))
		},
	} {
		var count [slots]int
		for i := range slots * each {
			count[runAt(i)/(100*time.Millisecond)]++
		}
		for slot, n := range count {
			if n < each*8/10 || n > each*12/10 {
				t.Errorf("%s: slot %d has %d of about %d", name, slot, n, each)
			}
		}
	}
}

func TestPreview(t *testing.T) {
	tests := []struct {
		name string
		spec Spec
		from string
		want []Mark
	}{
		{"gap", Spec{Kind: KindCron, Expr: "30 2 * * *", Zone: "America/New_York"}, "2026-03-07T00:00:00Z", []Mark{"", MarkGapEnd, ""}},
		{"the gap's end by itself", Spec{Kind: KindCron, Expr: "0 3 * * *", Zone: "America/New_York"}, "2026-03-07T00:00:00Z", []Mark{"", "", ""}},
		{"overlap once", Spec{Kind: KindCron, Expr: "30 1 * * *", Zone: "America/New_York"}, "2026-10-31T00:00:00Z", []Mark{"", MarkFirstPass, ""}},
		{"overlap both", Spec{Kind: KindCron, Expr: "30 1 * * *", Zone: "America/New_York", DST: DST{Overlap: OverlapBoth}}, "2026-10-31T00:00:00Z",
			[]Mark{"", MarkFirstPass, MarkSecondPass, ""}},
		{"hourly", Spec{Kind: KindCron, Expr: "0 * * * *", Zone: "America/New_York"}, "2026-11-01T03:30:00Z", []Mark{"", MarkFirstPass, MarkSecondPass, ""}},
		{"utc", Spec{Kind: KindCron, Expr: "0 * * * *"}, "2026-11-01T03:30:00Z", []Mark{"", ""}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for i, o := range mustCompile(t, tt.spec).Preview(at(tt.from), len(tt.want)) {
				if o.Mark != tt.want[i] || !o.RunAt.Equal(o.At) {
					t.Errorf("%d: %s run %s marked %q, want %q", i, o.At, o.RunAt, o.Mark, tt.want[i])
				}
			}
		})
	}
}

func TestNextAfterFinish(t *testing.T) {
	s := mustCompile(t, Spec{Kind: KindFixedDelay, Every: time.Minute})
	if got, ok := s.Next(at("2026-03-01T00:00:10Z")); !ok || !got.Equal(at("2026-03-01T00:01:10Z")) || !s.AwaitsFinish() {
		t.Errorf("fixed delay: %s", got)
	}
	s = mustCompile(t, Spec{Kind: KindCron, Expr: "0 * * * *"})
	if got, ok := s.Next(at("2026-03-01T00:00:10Z")); !ok || !got.Equal(at("2026-03-01T01:00:00Z")) || s.AwaitsFinish() {
		t.Errorf("cron: %s", got)
	}
}
