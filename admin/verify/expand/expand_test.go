package expand

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/carillon-sched/carillon/schedule"
)

func instant(t *testing.T, text string) time.Time {
	t.Helper()
	at, err := time.Parse("2006-01-02T15:04Z07:00", text)
	if err != nil {
		at, err = time.Parse(time.RFC3339, text)
	}
	require.NoError(t, err)
	return at
}

// TestVectors holds the facts that a third implementation, Quartz, computed.
func TestVectors(t *testing.T) {
	checked := 0
	for _, name := range []string{"quartz-cron.tsv", "quartz-more.tsv"} {
		f, err := os.Open("../../../schedule/testdata/" + name)
		require.NoError(t, err)
		defer f.Close()
		for lines := bufio.NewScanner(f); lines.Scan(); {
			if line := lines.Text(); line != "" && line[0] != '#' {
				checkVector(t, line)
				checked++
			}
		}
	}
	require.Greater(t, checked, 2000)
}

func checkVector(t *testing.T, line string) {
	t.Helper()
	column := strings.Split(line, "\t")
	s, err := New(Spec{Kind: "cron", Expr: column[0], Dialect: "quartz", Zone: column[1]})
	require.NoError(t, err)
	// Quartz ends in 2099; what the vectors call none may come in our later years.
	end := time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli() - 1
	var got []int64
	want := strings.Fields(column[3])
	for at := range s.Fires(instant(t, column[2]).UnixMilli()+1, end) {
		if got = append(got, at); len(got) == len(want) {
			break
		}
	}
	for i, text := range want {
		if text == "none" {
			require.Len(t, got, i, "%s fires again", line)
			return
		}
		require.Greater(t, len(got), i, line)
		require.Equal(t, instant(t, text).UnixMilli(), got[i], line)
	}
}

// engine expands with the implementation under suspicion.
func engine(t require.TestingT, spec schedule.Spec, from, to int64) []int64 {
	s, err := schedule.Compile(spec)
	require.NoError(t, err)
	var list []int64
	for at, ok := s.Next(time.UnixMilli(from - 1)); ok && at.UnixMilli() <= to; at, ok = s.Next(at) {
		list = append(list, at.UnixMilli())
	}
	return list
}

// ours turns the engine's spec into the one of this package.
func ours(s schedule.Spec) Spec {
	return Spec{
		Kind: string(s.Kind), Expr: s.Expr, Dialect: string(s.Dialect), Every: s.Every, Anchor: s.Anchor, At: s.At,
		Instants: s.Instants, WindowFrom: s.WindowFrom, WindowTo: s.WindowTo, Zone: s.Zone,
		StartAt: s.StartAt, EndAt: s.EndAt, Gap: string(s.DST.Gap), Overlap: string(s.DST.Overlap),
	}
}

func compare(t require.TestingT, spec schedule.Spec, from, to int64) {
	s, err := New(ours(spec))
	require.NoError(t, err)
	got, want := s.Between(from, to), engine(t, spec, from, to)
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || got[i] != want[i] {
			require.Fail(t, "the two disagree", "%+v\nfrom %s, fire %d: expanded %s, engine %s",
				spec, time.UnixMilli(from).UTC(), i+1, nth(got, i), nth(want, i))
		}
	}
}

func nth(list []int64, i int) string {
	if i >= len(list) {
		return "none"
	}
	return time.UnixMilli(list[i]).UTC().Format("2006-01-02T15:04:05.000Z")
}

// testZones change their clocks in all the ways there are.
var testZones = []string{
	"UTC", "America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "America/Sao_Paulo", "Africa/Casablanca",
	"Asia/Shanghai", "Pacific/Apia", "America/St_Johns", "Asia/Tehran", "Antarctica/Troll", "Asia/Kathmandu",
	"Africa/Cairo", "America/Caracas", "Asia/Pyongyang", "Europe/Dublin", "Pacific/Kwajalein", "America/Santiago",
}

// part makes one part of a field.
func part(t *rapid.T, lo, hi int) string {
	a, b := rapid.IntRange(lo, hi).Draw(t, "a"), rapid.IntRange(lo, hi).Draw(t, "b")
	step := rapid.IntRange(1, hi-lo).Draw(t, "step")
	return rapid.SampledFrom([]string{
		"*", "*", "*", fmt.Sprint(a), fmt.Sprint(a), fmt.Sprintf("%d-%d", a, b), fmt.Sprintf("*/%d", step),
		fmt.Sprintf("%d-%d/%d", a, b, step), fmt.Sprintf("%d/%d", a, step),
	}).Draw(t, "part")
}

func parts(t *rapid.T, lo, hi int) string {
	list := []string{part(t, lo, hi)}
	if rapid.IntRange(0, 3).Draw(t, "more") == 0 {
		list = append(list, part(t, lo, hi))
	}
	return strings.Join(list, ",")
}

// expression draws a rule that mostly meets the night in which clocks change.
func expression(t *rapid.T) (string, schedule.Dialect) {
	second := rapid.SampledFrom([]string{"0", "0", "0", "30", "*/20", parts(t, 0, 59)}).Draw(t, "second")
	hour := rapid.SampledFrom([]string{"*", "0", "1", "2", "3", "0-3", "*/2", "23-1", parts(t, 0, 23)}).Draw(t, "hour")
	minute := rapid.SampledFrom([]string{"0", "30", "15,45", "*/15", "*", parts(t, 0, 59)}).Draw(t, "minute")
	month := rapid.SampledFrom([]string{"*", "*", "*", parts(t, 1, 12), "MAR-NOV", "OCT"}).Draw(t, "month")
	clock := strings.Join([]string{second, minute, hour}, " ")
	switch rapid.IntRange(0, 2).Draw(t, "dialect") {
	case 0:
		return strings.Join([]string{minute, hour, parts(t, 1, 31), month, parts(t, 0, 7)}, " "), schedule.DialectStandard
	case 1:
		dow := rapid.SampledFrom([]string{"*", "SUN", "FRI-MON", "0-7", parts(t, 0, 7)}).Draw(t, "dow")
		return strings.Join([]string{clock, parts(t, 1, 31), month, dow}, " "), schedule.DialectSeconds
	}
	n := rapid.IntRange(1, 31).Draw(t, "n")
	dom := rapid.SampledFrom([]string{"*", "*", "L", "LW", fmt.Sprintf("L-%d", n-1), fmt.Sprintf("%dW", n), parts(t, 1, 31)}).Draw(t, "dom")
	days := dom + " " + month + " ?"
	if rapid.Bool().Draw(t, "week") {
		w := (n-1)%7 + 1
		dow := rapid.SampledFrom([]string{"*", "L", "SUN", fmt.Sprintf("%dL", w), fmt.Sprintf("%d#%d", w, (n-1)%5+1), parts(t, 1, 7)}).Draw(t, "dow")
		days = "? " + month + " " + dow
	}
	return clock + " " + days, schedule.DialectQuartz
}

// span draws a few days, mostly around a change of the zone's clock.
func span(t *rapid.T, zoneName string, days int64) (from, to int64) {
	at := rapid.Int64Range(1_136_073_600, 2_051_222_400).Draw(t, "instant") // 2006 to 2034
	z, err := loadZone(zoneName)
	require.NoError(t, err)
	if changes := z.changes(time.Unix(at, 0).UTC().Year()); len(changes) > 0 && rapid.IntRange(0, 4).Draw(t, "quiet") > 0 {
		at = changes[at%int64(len(changes))].at + rapid.Int64Range(-9000, 9000).Draw(t, "shift")
	}
	return at*1000 - 86_400_000 + rapid.Int64Range(0, 999).Draw(t, "ms"), at*1000 + days*86_400_000
}

func TestAgainstTheEngine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		expr, dialect := expression(t)
		spec := schedule.Spec{Kind: schedule.KindCron, Expr: expr, Dialect: dialect, DST: schedule.DST{
			Gap:     rapid.SampledFrom([]schedule.GapPolicy{"", schedule.GapRunAtEnd, schedule.GapSkip}).Draw(t, "gap"),
			Overlap: rapid.SampledFrom([]schedule.OverlapPolicy{"", schedule.OverlapOnce, schedule.OverlapBoth}).Draw(t, "overlap"),
		}}
		for range 3 {
			spec.Zone = rapid.SampledFrom(testZones).Draw(t, "zone")
			from, to := span(t, spec.Zone, 2)
			compare(t, spec, from, to)
		}
	})
}

func TestOtherKindsAgainstTheEngine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec := schedule.Spec{Zone: rapid.SampledFrom(testZones).Draw(t, "zone")}
		from, to := span(t, spec.Zone, 2)
		instant := func(name string) time.Time {
			return time.UnixMilli(rapid.Int64Range(from-86_400_000, to+86_400_000).Draw(t, name))
		}
		clock := func(name string) string {
			return fmt.Sprintf("%02d:%02d", rapid.IntRange(0, 23).Draw(t, name), rapid.SampledFrom([]int{0, 15, 30, 59}).Draw(t, name))
		}
		spec.Every = time.Duration(rapid.Int64Range(100, 4_000_000).Draw(t, "every")) * time.Millisecond
		spec.Kind = rapid.SampledFrom([]schedule.Kind{
			schedule.KindFixedRate, schedule.KindOnce, schedule.KindInstants, schedule.KindDailyWindow, schedule.KindDailyWindow, schedule.KindCron,
		}).Draw(t, "kind")
		spec.Expr, spec.At = "@every "+spec.Every.String(), instant("at")
		for range 5 {
			spec.Instants = append(spec.Instants, instant("one"))
		}
		spec.WindowFrom, spec.WindowTo = clock("from"), clock("to")
		if spec.WindowFrom == spec.WindowTo {
			spec.WindowFrom, spec.WindowTo = "00:00", "24:00"
		}
		if rapid.Bool().Draw(t, "anchored") {
			spec.Anchor = instant("anchor")
		}
		if rapid.Bool().Draw(t, "bounded") {
			spec.StartAt = instant("start")
			spec.EndAt = spec.StartAt.Add(30 * time.Hour)
		}
		spec.DST.Gap = rapid.SampledFrom([]schedule.GapPolicy{"", schedule.GapSkip}).Draw(t, "gap")
		if spec.Every < time.Second {
			to = min(to, from+3_600_000)
		}
		compare(t, spec, from, to)
	})
}

func TestCalendarsAgainstTheEngine(t *testing.T) {
	begin := instant(t, "2026-01-01T00:00:00Z")
	rapid.Check(t, func(t *rapid.T) {
		days := func(name string) (list []string) {
			for _, d := range rapid.SliceOfNDistinct(rapid.IntRange(0, 19), 0, 6, rapid.ID).Draw(t, name) {
				list = append(list, begin.AddDate(0, 0, d+20*(len(name)%2)).Format(time.DateOnly))
			}
			return list
		}
		zones := append([]string{""}, testZones...)
		theirs := schedule.CalendarSpec{
			Zone: rapid.SampledFrom(zones).Draw(t, "calendar zone"), Holidays: days("holidays"), MakeUpDays: days("make-up"),
			Weekend: rapid.SampledFrom([][]time.Weekday{nil, {}, {time.Friday, time.Saturday}}).Draw(t, "weekend"),
		}
		for range rapid.IntRange(0, 3).Draw(t, "blackouts") {
			from := begin.Add(time.Duration(rapid.IntRange(0, 960).Draw(t, "from")) * time.Hour)
			theirs.Blackouts = append(theirs.Blackouts, schedule.Blackout{From: from, To: from.Add(time.Duration(rapid.IntRange(1, 48).Draw(t, "hours")) * time.Hour)})
		}
		calendar, err := schedule.CompileCalendar(theirs)
		require.NoError(t, err)
		spec := schedule.Spec{
			Kind: schedule.KindFixedRate, Every: 37 * time.Minute, Zone: rapid.SampledFrom(testZones).Draw(t, "zone"), Calendars: []*schedule.Calendar{calendar},
			Days: rapid.SampledFrom([]schedule.DayRule{"", schedule.DaysNotHolidays, schedule.DaysWorkdays, schedule.DaysAll}).Draw(t, "days"),
		}
		engine, err := schedule.Compile(spec)
		require.NoError(t, err)
		mine := ours(spec)
		mine.Days = string(spec.Days)
		mine.Calendars = []Calendar{{Zone: theirs.Zone, Weekend: theirs.Weekend, Holidays: theirs.Holidays, MakeUpDays: theirs.MakeUpDays}}
		for _, b := range theirs.Blackouts {
			mine.Calendars[0].Blackouts = append(mine.Calendars[0].Blackouts, Blackout(b))
		}
		s, err := New(mine)
		require.NoError(t, err)
		for at := range s.Fires(begin.UnixMilli(), begin.AddDate(0, 0, 42).UnixMilli()) {
			_, want := engine.Excluded(time.UnixMilli(at))
			require.Equal(t, want, s.Excluded(at), "%+v at %s", theirs, time.UnixMilli(at).UTC())
		}
	})
}

// TestLongRange goes through twenty years, in which the years past the zones'
// tables begin.
func TestLongRange(t *testing.T) {
	from, to := instant(t, "2024-01-01T00:00:00Z").UnixMilli(), instant(t, "2044-01-01T00:00:00Z").UnixMilli()
	for _, zone := range testZones {
		for _, expr := range []string{"30 2 * * *", "0 */3 L * ?", "15 1 * * SUN"} {
			spec := schedule.Spec{Kind: schedule.KindCron, Expr: expr, Zone: zone}
			if strings.Contains(expr, "?") {
				spec.Expr = "0 " + expr
			}
			compare(t, spec, from, to)
		}
	}
}

// TestLastDayOfLeapYears goes through the days whose bounds Go 1.26 gets wrong
// past a zone's table.
func TestLastDayOfLeapYears(t *testing.T) {
	for _, zone := range testZones {
		for _, year := range []int{2036, 2040, 2044, 2048} {
			to := time.Date(year+1, 1, 2, 0, 0, 0, 0, time.UTC).UnixMilli()
			compare(t, schedule.Spec{Kind: schedule.KindCron, Expr: "*/20 * * * *", Zone: zone}, to-3*86_400_000, to)
		}
	}
}

func TestRefuses(t *testing.T) {
	for name, spec := range map[string]Spec{
		"no kind":         {Kind: "sometimes"},
		"fixed delay":     {Kind: "fixed_delay", Every: time.Second},
		"no zone":         {Kind: "none", Zone: "Mars/Olympus"},
		"local zone":      {Kind: "none", Zone: "Local"},
		"dialect":         {Kind: "cron", Expr: "* * * * *", Dialect: "klingon"},
		"fields":          {Kind: "cron", Expr: "* * * *"},
		"quartz without?": {Kind: "cron", Expr: "0 0 0 1 1 1", Dialect: "quartz"},
		"range":           {Kind: "cron", Expr: "61 * * * *"},
		"word":            {Kind: "cron", Expr: "0 0 * * FUNDAY"},
		"step":            {Kind: "cron", Expr: "*/0 * * * *"},
		"interval":        {Kind: "cron", Expr: "@every soon"},
		"rate":            {Kind: "fixed_rate"},
		"window":          {Kind: "daily_window", Every: time.Minute, WindowFrom: "9", WindowTo: "10:00"},
	} {
		_, err := New(spec)
		require.Error(t, err, name)
	}
}

func BenchmarkDay(b *testing.B) {
	from := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC).UnixMilli()
	for _, expr := range []string{"0 2 * * *", "*/5 * * * *", "* * * * * *"} {
		b.Run(expr, func(b *testing.B) {
			for b.Loop() {
				s, err := New(Spec{Kind: "cron", Expr: expr, Zone: "Europe/Berlin"})
				require.NoError(b, err)
				for range s.Fires(from, from+86_400_000-1) {
				}
			}
		})
	}
}
