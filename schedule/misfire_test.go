package schedule

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestDue has one row per rule. Now is 12:00:00; every10 fires at every ten
// seconds. Fires are written as "time what", seconds relative to Now.
func TestDue(t *testing.T) {
	now := at("2026-03-01T12:00:00Z")
	rel := func(sec float64) time.Time { return now.Add(time.Duration(sec * float64(time.Second))) }
	every10 := Spec{Kind: KindFixedRate, Every: 10 * time.Second, Anchor: rel(-3600)}
	ended := every10
	ended.EndAt = rel(-15)
	jittered := every10
	jittered.JitterMax, jittered.JitterSeed = 4*time.Second, "7"
	once := Spec{Kind: KindOnce, At: rel(-60)}
	delay := Spec{Kind: KindFixedDelay, Every: 10 * time.Second}
	hourly := Spec{Kind: KindCron, Expr: "0 * * * *"}

	tests := []struct {
		name  string
		spec  Spec
		ask   DueParams
		fires string
		next  string // seconds, or done or awaits
	}{
		{"nothing waits", every10, DueParams{}, "", "done"},
		{"nothing is due", every10, DueParams{Next: rel(10)}, "", "10"},
		{"due this instant", every10, DueParams{Next: rel(0)}, "0 run", "10"},
		{"beyond the horizon stays", every10, DueParams{Next: rel(10), Horizon: 9999 * time.Millisecond}, "", "10"},
		{"at the horizon is planned", every10, DueParams{Next: rel(10), Horizon: 10 * time.Second}, "10 run", "20"},
		{"several ahead", every10, DueParams{Next: rel(0), Horizon: 30 * time.Second}, "0 run, 10 run, 20 run, 30 run", "40"},
		{"a negative horizon is none", every10, DueParams{Next: rel(0), Horizon: -time.Hour}, "0 run", "10"},
		{"the clock went back", every10, DueParams{Next: rel(3600), Horizon: 3 * time.Second}, "", "3600"},
		{"a foreign next is trusted", every10, DueParams{Next: rel(-3)}, "-3 run, 0 run", "10"},

		{"late within the default threshold runs", every10, DueParams{Next: rel(-5)}, "-5 run, 0 run", "10"},
		{"late by a hair more is missed", every10, DueParams{Next: rel(-5.001)}, "-5.001 missed misfire, 0 run", "10"},
		{"the threshold can be wider", every10, DueParams{Next: rel(-20), Threshold: 10 * time.Second}, "-20 missed misfire, -10 run, 0 run", "10"},
		{"the threshold can be none", every10, DueParams{Next: rel(-0.001), Threshold: -1}, "-0.001 missed misfire, 0 run", "10"},
		{"none: this instant is on time", every10, DueParams{Next: rel(0), Threshold: -1}, "0 run", "10"},

		{"skip: all late ones are missed", every10, DueParams{Next: rel(-30), Policy: MisfireSkip}, "-30 missed misfire, -20 missed misfire, -10 missed misfire, 0 run", "10"},
		{"skip: a one-shot is missed for good", once, DueParams{Next: rel(-60), Policy: MisfireSkip}, "-60 missed misfire", "done"},
		{"skip: an unknown policy skips", every10, DueParams{Next: rel(-10), Policy: "later"}, "-10 missed misfire, 0 run", "10"},

		{"once now: the last one runs now", every10, DueParams{Next: rel(-33), Now: rel(-3), Policy: MisfireOnceNow, Threshold: time.Second},
			"-33 coalesced -10, -30 coalesced -10, -20 coalesced -10, -10 misfire", "0"},
		{"once now: one that is on time stands for the late ones", every10, DueParams{Next: rel(-20), Policy: MisfireOnceNow}, "-20 coalesced 0, -10 coalesced 0, 0 run", "10"},
		{"once now: one that comes soon does not", hourly, DueParams{Next: rel(-3600), Now: rel(-2), Horizon: 3 * time.Second, Policy: MisfireOnceNow}, "-3600 misfire, 0 run", "3600"},
		{"once now: a single late one runs", once, DueParams{Next: rel(-60), Policy: MisfireOnceNow}, "-60 misfire", "done"},
		{"once now: the end of the validity has passed", ended, DueParams{Next: rel(-40), Policy: MisfireOnceNow}, "-40 coalesced -20, -30 coalesced -20, -20 misfire", "done"},
		{"once now: however old", hourly, DueParams{Next: rel(-7200), Now: rel(-60), Policy: MisfireOnceNow}, "-7200 coalesced -3600, -3600 misfire", "0"},

		{"all: each one runs now", every10, DueParams{Next: rel(-20), Policy: MisfireAll}, "-20 misfire, -10 misfire, 0 run", "10"},
		{"all: older than the window is missed", every10, DueParams{Next: rel(-40), Policy: MisfireAll, Window: 20 * time.Second},
			"-40 missed misfire_window, -30 missed misfire_window, -20 misfire, -10 misfire, 0 run", "10"},
		{"all: the window is an hour by default", hourly, DueParams{Next: rel(-7200), Policy: MisfireAll}, "-7200 missed misfire_window, -3600 misfire, 0 run", "3600"},
		{"all: the window can be open", hourly, DueParams{Next: rel(-7200), Policy: MisfireAll, Window: -1}, "-7200 misfire, -3600 misfire, 0 run", "3600"},

		{"max: the rest is for the next call", every10, DueParams{Next: rel(-30), Max: 2}, "-30 missed misfire, -20 missed misfire", "-10 more"},
		{"max: reached with nothing left", every10, DueParams{Next: rel(-10), Max: 2}, "-10 missed misfire, 0 run", "10"},
		{"max: looks past its end to coalesce", every10, DueParams{Next: rel(-30), Max: 1, Policy: MisfireOnceNow}, "-30 coalesced 0", "-20 more"},

		{"jitter: the run starts later", jittered, DueParams{Next: rel(10), Horizon: 10 * time.Second}, "10 run+3.302", "20"},
		{"jitter: late counts from its end", jittered, DueParams{Next: rel(-9)}, "-9 run+0.728, 0 run+0.094", "10"},
		{"jitter: late after its end", jittered, DueParams{Next: rel(-9.001)}, "-9.001 missed misfire, 0 run+0.094", "10"},
		{"jitter: a misfire runs now", jittered, DueParams{Next: rel(-30), Now: rel(-1), Policy: MisfireOnceNow, Max: 3, Threshold: 500 * time.Millisecond},
			"-30 coalesced -10, -20 coalesced -10, -10 misfire", "0"},

		{"fixed delay: waits for its run", delay, DueParams{Next: rel(0), Horizon: time.Minute}, "0 run", "awaits"},
		{"fixed delay: still waits", delay, DueParams{}, "", "awaits"},
		{"fixed delay: missed, the next from now", delay, DueParams{Next: rel(-60), Policy: MisfireSkip}, "-60 missed misfire", "10"},
		{"fixed delay: missed, the next within the horizon", delay, DueParams{Next: rel(-60), Policy: MisfireSkip, Horizon: time.Minute}, "-60 missed misfire, 10 run", "awaits"},
		{"fixed delay: once now", delay, DueParams{Next: rel(-60), Policy: MisfireOnceNow}, "-60 misfire", "awaits"},
		{"fixed delay: all", delay, DueParams{Next: rel(-60), Policy: MisfireAll}, "-60 misfire", "awaits"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.ask.Now.IsZero() {
				tt.ask.Now = now
			}
			plan := Due(mustCompile(t, tt.spec), tt.ask)
			if got := planText(plan, tt.ask.Now, now); got != tt.fires+" → "+tt.next {
				t.Errorf("\n got %s\nwant %s → %s", got, tt.fires, tt.next)
			}
		})
	}
}

// planText writes a plan as the table does; times relative to base.
func planText(p Plan, now, base time.Time) string {
	sec := func(t time.Time) string { return fmt.Sprint(t.Sub(base).Seconds()) }
	var fires []string
	for _, f := range p.Fires {
		text := sec(f.At) + " "
		switch {
		case f.Decision == DecisionMissed:
			text += "missed " + string(f.Reason)
		case f.Decision == DecisionCoalesced && f.Reason == ReasonCoalesced:
			text += "coalesced " + sec(f.Into)
		case f.Cause == CauseMisfire && f.RunAt.Equal(now):
			text += "misfire"
		case f.Cause == CauseSchedule && f.RunAt.Equal(f.At):
			text += "run"
		case f.Cause == CauseSchedule:
			text += fmt.Sprintf("run+%v", f.RunAt.Sub(f.At).Seconds())
		default:
			text += fmt.Sprintf("%+v", f)
		}
		fires = append(fires, text)
	}
	next := sec(p.Next)
	switch {
	case p.Done && p.Next.IsZero() && !p.AwaitsFinish && !p.More:
		next = "done"
	case p.AwaitsFinish && p.Next.IsZero() && !p.Done && !p.More:
		next = "awaits"
	case p.More:
		next += " more"
	}
	return strings.Join(fires, ", ") + " → " + next
}

// TestDueProperties: no fire time is left out or comes twice, and the size of
// the answers does not change the decisions.
func TestDueProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec := rapid.SampledFrom([]Spec{
			{Kind: KindFixedRate, Every: 700 * time.Millisecond},
			{Kind: KindCron, Expr: "*/20 * * * * *", JitterMax: 7 * time.Second},
			{Kind: KindCron, Expr: "*/1 * * * *", Zone: "America/New_York"},
			{Kind: KindDailyWindow, WindowFrom: "11:00", WindowTo: "12:05", Every: 9 * time.Second},
		}).Draw(t, "spec")
		s, err := Compile(spec)
		if err != nil {
			t.Fatal(err)
		}
		now := at("2026-03-08T12:00:00Z").Add(time.Duration(rapid.Int64Range(0, 60_000).Draw(t, "now")) * time.Millisecond)
		ask := DueParams{
			Now: now, Max: 10_000, Horizon: time.Duration(rapid.Int64Range(0, 60_000).Draw(t, "horizon")) * time.Millisecond,
			Policy: rapid.SampledFrom([]MisfirePolicy{MisfireSkip, MisfireOnceNow, MisfireAll}).Draw(t, "policy"),
			Window: 2 * time.Minute,
		}
		ask.Next, _ = s.Next(now.Add(-time.Duration(rapid.Int64Range(0, 300_000).Draw(t, "back")) * time.Millisecond))
		whole := Due(s, ask)
		checkComplete(t, s, ask, whole)

		small := ask
		small.Max = rapid.IntRange(1, 5).Draw(t, "max")
		var parts []PlannedFire
		for {
			part := Due(s, small)
			parts = append(parts, part.Fires...)
			if small.Next = part.Next; !part.More {
				break
			}
		}
		if fmt.Sprint(parts) != fmt.Sprint(whole.Fires) || !small.Next.Equal(whole.Next) {
			t.Fatalf("in parts:\n%v\nwhole:\n%v", parts, whole.Fires)
		}
	})
}

func checkComplete(t *rapid.T, s *Schedule, ask DueParams, plan Plan) {
	want, misfires := ask.Next, 0
	for _, f := range plan.Fires {
		if !f.At.Equal(want) {
			t.Fatalf("%s, want %s", f.At, want)
		}
		want, _ = s.Next(want)
		if f.Cause == CauseMisfire {
			misfires++
		}
		late := ask.Now.Sub(f.At)-s.JitterMax() > DefaultThreshold
		if onTime := f.Decision == DecisionRun && f.Cause == CauseSchedule; onTime == late {
			t.Fatalf("%+v at %s", f, ask.Now)
		}
	}
	if !plan.Next.Equal(want) || !plan.Next.After(ask.Now.Add(ask.Horizon)) || plan.More || plan.Done {
		t.Fatalf("next %s, want %s", plan.Next, want)
	}
	if ask.Policy == MisfireSkip && misfires > 0 || ask.Policy == MisfireOnceNow && misfires > 1 {
		t.Fatalf("%d runs by misfire", misfires)
	}
}

func BenchmarkDue(b *testing.B) {
	now := time.Unix(1_772_366_400, 0)
	for name, spec := range map[string]Spec{
		"each second, 3 s ahead": {Kind: KindCron, Expr: "* * * * * *", Zone: "Asia/Shanghai"},
		"daily":                  {Kind: KindCron, Expr: "0 0 2 * * *", Zone: "America/New_York"},
		"fixed rate":             {Kind: KindFixedRate, Every: time.Second},
	} {
		s := mustCompile(b, spec)
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				Due(s, DueParams{Next: now, Now: now, Horizon: 3 * time.Second})
			}
		})
	}
	b.Run("a day of seconds coalesced", func(b *testing.B) {
		s := mustCompile(b, Spec{Kind: KindCron, Expr: "* * * * * *"})
		for b.Loop() {
			Due(s, DueParams{Next: now, Now: now.Add(24 * time.Hour), Policy: MisfireOnceNow, Max: 1000})
		}
	})
}
