package api

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

func cronSchedule(expr string) map[string]any { return map[string]any{"kind": "cron", "expr": expr} }

func TestFires(t *testing.T) {
	w := newWorld(t)
	shop, bank := w.executor("acme", "shop"), w.executor("acme", "bank")
	for name, expr := range map[string]string{"half-hourly": "*/30 * * * *", "nightly": "0 2 * * *", "paused": "* * * * *"} {
		w.job("acme", name, shop, with("schedule", cronSchedule(expr)), with("labels", map[string]any{"kind": name}))
	}
	job := w.job("acme", "books", bank, with("schedule", cronSchedule("0 2 * * *")), with("owner", map[string]any{"name": "Ann"}))
	w.job("acme", "delay", bank, with("schedule", map[string]any{"kind": "fixed_delay", "every": "1m"}))
	w.job("beta", "theirs", w.executor("beta", "shop"), with("schedule", cronSchedule("* * * * *")))
	paused := into[Job](w.call("acme/viewer", "GET", "/jobs/by-name/paused", nil).is(http.StatusOK))
	w.call("acme/operator", "POST", "/jobs/"+paused.ID+"/pause", nil).is(http.StatusOK)

	const night = "/fires?from=2027-01-12T02:00:00Z&to=2027-01-12T04:00:00Z"
	ask := func(who, address string) Fires {
		return into[Fires](w.call(who, "GET", address, nil).is(http.StatusOK))
	}
	got := ask("acme/viewer", night)
	require.Equal(t, []FireBucket{{"2027-01-12T02:00:00.000Z", 4, 3}, {"2027-01-12T03:00:00.000Z", 2, 1}}, got.Items)
	require.Equal(t, []any{int64(6), 3, 1, "1h"}, []any{got.Fires, got.Jobs, got.Unpredicted, got.Bucket})
	require.Equal(t, []string{"books", "half-hourly", "nightly"}, []string{got.First[0].JobName, got.First[1].JobName, got.First[2].JobName})
	require.Equal(t, []string{"2027-01-12T02:00:00.000Z", "2027-01-12T02:30:00.000Z", "2027-01-12T03:00:00.000Z", "2027-01-12T03:30:00.000Z"}, got.First[1].At)
	require.Equal(t, "shop", got.First[2].Executor.Name)
	for query, want := range map[string]int64{"&executor=bank": 1, "&label=kind=nightly": 1, "&owner=ann": 1, "&q=half": 4, "&name=*s": 1, "&executorId=" + shop.ID.String(): 5, "&executor=none": 0} {
		require.Equal(t, want, ask("acme/viewer", night+query).Fires, query)
	}
	require.Len(t, ask("acme/viewer", night+"&bucket=1m&limit=1").Items, 120)
	require.Empty(t, ask("acme/viewer", night+"&limit=0").First)
	require.Len(t, ask("acme/viewer", "/fires").Items, 24)
	w.bound("bound", "viewer", "bank")
	require.Equal(t, int64(1), ask("bound", night).Fires, "jobs of other executors do not count")
	require.Equal(t, int64(120), ask("beta/viewer", night).Fires)
	for query, want := range map[string]string{
		"?bucket=30s": "query.bucket", "?bucket=25h": "query.bucket", "?bucket=1m": "query.bucket", "?from=2027-01-01T00:00:00Z&to=2027-01-01T00:00:00Z": "query.to",
		"?from=2027-01-01T00:00:00Z&to=2027-02-02T00:00:00Z": "query.to", "?from=tomorrow": "query.from", "?executorId=x": "query.executorId", "?limit=201": "query.limit",
	} {
		require.Equal(t, want, w.call("acme/viewer", "GET", "/fires"+query, nil).problem(422, "validation_failed").Errors[0].Location, query)
	}

	// Clashes of a job, and of a schedule that is being written.
	next := into[NextFires](w.call("acme/viewer", "GET", "/jobs/"+job.ID+"/next-fires?n=2&clashes=true", nil).is(http.StatusOK))
	require.Equal(t, &Clash{SameSecond: 2, SameMinute: 2}, next.Fires[1].Clashes)
	preview := func(who string, body map[string]any) []Fire {
		body["schedule"], body["n"], body["clashes"] = map[string]any{"kind": "cron", "expr": "10 0 2 * * *"}, 25, true
		return into[Preview](w.call(who, "POST", "/schedules/preview", body).is(http.StatusOK)).Fires
	}
	list := preview("acme/viewer", map[string]any{})
	require.Equal(t, &Clash{SameMinute: 3}, list[19].Clashes)
	require.Nil(t, list[20].Clashes)
	require.Equal(t, &Clash{SameMinute: 2}, preview("acme/viewer", map[string]any{"jobId": job.ID})[0].Clashes)
	require.Equal(t, &Clash{SameMinute: 1}, preview("bound", map[string]any{})[0].Clashes)
}
