package api

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/api/web"
)

// Every kind comes back as it was sent, is previewed by the same engine as its
// job, and can be put back as it was read.
func TestSchedulesRoundTrip(t *testing.T) {
	w := newWorld(t)
	e := w.executor("acme", "shop")
	for name, c := range map[string]struct {
		sent  map[string]any
		fires []string // the first of those after 2031-03-29T00:00:00Z
	}{
		"cron with a policy for clock changes": {
			map[string]any{"kind": "cron", "expr": "30 2 * * *", "dialect": "standard", "zone": "Europe/Berlin", "dstGap": "skip", "dstOverlap": "both"},
			[]string{"2031-03-29T02:30:00+01:00", "2031-03-31T02:30:00+02:00"},
		},
		"fixed rate from an anchor": {
			map[string]any{"kind": "fixed_rate", "every": "25h", "zone": "UTC", "anchor": "2031-03-28T23:30:00.000Z"},
			[]string{"2031-03-30T00:30:00Z"},
		},
		"fixed delay": {
			map[string]any{"kind": "fixed_delay", "every": "1m30s", "zone": "UTC"},
			[]string{"2031-03-29T00:01:30Z", "2031-03-29T00:03:00Z"},
		},
		"instants": {
			map[string]any{"kind": "instants", "zone": "Asia/Shanghai", "instants": []any{"2031-04-01T00:00:00.000Z", "2031-05-01T00:00:00.500Z"}},
			[]string{"2031-04-01T08:00:00+08:00", "2031-05-01T08:00:00+08:00"},
		},
		"daily window": {
			map[string]any{"kind": "daily_window", "every": "15m", "windowFrom": "23:30", "windowTo": "00:10:00", "zone": "UTC", "dstGap": "skip", "startAt": "2031-03-29T23:40:00.000Z"},
			[]string{"2031-03-29T23:45:00Z", "2031-03-30T00:00:00Z", "2031-03-30T23:30:00Z"},
		},
	} {
		w.run(t, name, func(t *testing.T) {
			misfire := map[string]any{"policy": "all", "threshold": "10s", "window": "2h", "maxRuns": 7.0}
			created := w.call("acme/editor", "POST", "/jobs", jobBody(name, e, with("schedule", c.sent), with("misfire", misfire))).is(201)
			read := into[map[string]any](created)
			require.Equal(t, misfire, read["misfire"])
			got := read["schedule"].(map[string]any)
			delete(got, "text")
			require.Equal(t, c.sent, got)
			fires := into[NextFires](w.call("acme/viewer", "GET", "/jobs/"+read["id"].(string)+"/next-fires?from=2031-03-29T00:00:00Z", nil).is(200))
			preview := into[Preview](w.call("acme/viewer", "POST", "/schedules/preview", map[string]any{"schedule": c.sent, "from": "2031-03-29T00:00:00Z"}).is(200))
			require.Equal(t, fires.Fires, preview.Fires)
			require.GreaterOrEqual(t, len(fires.Fires), len(c.fires))
			for i, at := range c.fires {
				require.Equal(t, at, fires.Fires[i].Zoned)
			}
			again := jobBody(name, e, with("schedule", got), with("misfire", misfire), with("description", "put back"))
			put := into[map[string]any](w.call("acme/editor", "PUT", "/jobs/"+read["id"].(string), again, header{"If-Match": "*"}).is(200))
			delete(put["schedule"].(map[string]any), "text")
			require.Equal(t, c.sent, put["schedule"])
		})
	}
}

func TestJitterIsTheJobsOwn(t *testing.T) {
	w := newWorld(t)
	e := w.executor("acme", "shop")
	sent := map[string]any{"kind": "cron", "expr": "0 * * * *", "jitter": "10m"}
	first, second := w.job("acme", "one", e, with("schedule", sent)), w.job("acme", "two", e, with("schedule", sent))
	require.Equal(t, "10m", first.Schedule.Jitter)
	fires := func(j Job) []Fire {
		return into[NextFires](w.call("acme/viewer", "GET", "/jobs/"+j.ID+"/next-fires", nil).is(200)).Fires
	}
	require.Equal(t, fires(first), fires(first), "the same whoever asks")
	require.NotEqual(t, fires(first), fires(second))
	for _, f := range fires(first) {
		if f.RunAt == "" {
			continue // put off by nothing
		}
		at, run := mustTime(t, f.At), mustTime(t, f.RunAt)
		require.False(t, run.Before(at))
		require.LessOrEqual(t, run.Sub(at), 10*time.Minute)
	}
}

func mustTime(t *testing.T, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	require.NoError(t, err)
	return at
}

func TestOnceAfter(t *testing.T) {
	w := newWorld(t)
	low := time.Now().Truncate(time.Millisecond)
	job := w.job("acme", "later", w.executor("acme", "shop"), with("schedule", map[string]any{"kind": "once", "after": "30m"}))
	at := mustTime(t, *job.Schedule.At).Add(-30 * time.Minute)
	require.False(t, at.Before(low))
	require.False(t, at.After(time.Now()))
}

// An instant in another form is refused, and the right form is told.
func TestInstantWithoutOffset(t *testing.T) {
	w := newWorld(t)
	e := w.executor("acme", "shop")
	for text, hint := range map[string]string{
		"2026-12-24 18:00:00":       "the offset from UTC is missing: write 2026-12-24T18:00:00Z for UTC, or the offset of your clocks as in 2026-12-24T18:00:00+08:00",
		"2026-12-24T18:00":          "the offset from UTC is missing: write 2026-12-24T18:00:00Z for UTC, or the offset of your clocks as in 2026-12-24T18:00:00+08:00",
		"2026-12-24":                "the offset from UTC is missing: write 2026-12-24T00:00:00Z for UTC, or the offset of your clocks as in 2026-12-24T00:00:00+08:00",
		"2026-12-24 18:00:00 +0800": "write 2026-12-24T18:00:00+08:00",
		"2026-12-24 18:00:00+08:00": "write 2026-12-24T18:00:00+08:00",
		"Christmas":                 "",
	} {
		for _, schedule := range []map[string]any{
			{"kind": "once", "zone": "Asia/Shanghai", "at": text}, {"kind": "instants", "instants": []any{text}}, {"kind": "cron", "expr": "* * * * *", "endAt": text},
		} {
			problem := into[web.Problem](w.call("acme/admin", "POST", "/jobs", jobBody("wrong", e, with("schedule", schedule))).is(422))
			require.Equal(t, hint, problem.Errors[0].Hint, "%v", schedule)
		}
	}
}

// Each mistake is told at its field.
func TestScheduleMistakes(t *testing.T) {
	w := newWorld(t)
	e := w.executor("acme", "shop")
	for at, schedule := range map[string]map[string]any{
		"every":        {"kind": "fixed_delay"},
		"anchor":       {"kind": "fixed_rate", "every": "1m", "anchor": "yesterday"},
		"instants":     {"kind": "instants"},
		"instants[1]":  {"kind": "instants", "instants": []any{"2031-01-01T00:00:00Z", "noon"}},
		"windowFrom":   {"kind": "daily_window", "every": "1m", "windowFrom": "9:00", "windowTo": "17:00"},
		"windowTo":     {"kind": "daily_window", "every": "1m", "windowFrom": "09:00", "windowTo": "09:00"},
		"jitter":       {"kind": "cron", "expr": "* * * * *", "jitter": "48h"},
		"after":        {"kind": "once", "after": "1h", "at": "2031-01-01T00:00:00Z"},
		"at":           {"kind": "once"},
		"endAt":        {"kind": "cron", "expr": "* * * * *", "startAt": "2031-01-02T00:00:00Z", "endAt": "2031-01-01T00:00:00Z"},
		"zone":         {"kind": "cron", "expr": "* * * * *", "zone": "Mars/Base"},
		"kind":         {"kind": "sometimes"},
		"dstGap":       {"kind": "cron", "expr": "* * * * *", "dstGap": "jump"},
		"misfire.bad":  nil,
		"misfire.runs": nil,
	} {
		w.run(t, at, func(t *testing.T) {
			where, body := "body.schedule."+at, jobBody("wrong", e, with("schedule", schedule))
			switch at {
			case "misfire.bad":
				where, body = "body.misfire.window", jobBody("wrong", e, with("misfire", map[string]any{"policy": "all", "window": "9999h"}))
			case "misfire.runs":
				where, body = "body.misfire.maxRuns", jobBody("wrong", e, with("misfire", map[string]any{"policy": "all", "maxRuns": -1}))
			}
			p := w.call("acme/editor", "POST", "/jobs", body).problem(422, "validation_failed")
			require.Equal(t, where, p.Errors[0].Location)
		})
	}
}

func TestPreviewWarns(t *testing.T) {
	w := newWorld(t)
	p := into[Preview](w.call("acme/viewer", "POST", "/schedules/preview", map[string]any{"schedule": map[string]any{"kind": "cron", "expr": "0 0 31 2 *"}}).is(200))
	require.True(t, p.NeverFires)
	require.Equal(t, "never_fires", p.Warnings[0].Code)
	require.NotEmpty(t, p.Warnings[0].Text.Zh)
	p = into[Preview](w.call("acme/viewer", "POST", "/schedules/preview", map[string]any{"schedule": map[string]any{"kind": "cron", "expr": "0 0 13 * 5"}}).is(200))
	require.Equal(t, []string{"either_day"}, []string{p.Warnings[0].Code})
}
