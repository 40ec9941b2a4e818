package api

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/secret"
)

// fullJob uses every setting.
func fullJob(e domain.Executor) map[string]any {
	return map[string]any{
		"name": "close the day", "description": "Sums up", "labels": map[string]any{"team": "billing"},
		"executor": map[string]any{"name": e.Name}, "handler": "reconcile", "input": map[string]any{"limit": 12345678901234567},
		"schedule": map[string]any{
			"kind": "cron", "expr": "0 30 2 ? * MON-FRI", "dialect": "auto", "zone": "Europe/Berlin",
			"startAt": "2026-01-01T00:00:00Z", "endAt": "2036-01-01T00:00:00+01:00", "at": nil,
		},
		"misfire": map[string]any{"policy": "once_now", "threshold": "90s"}, "blocking": "parallel", "parallelism": 3,
		"routing": "consistent_hash", "routingKey": "/customer/id", "requireLabels": " zone in (eu, us), !spot", "preferLabels": "gpu=a100",
		"sendRetry": map[string]any{"maxSends": 5, "delay": "1s", "backoff": 2, "maxDelay": "30s"},
		"retry":     map[string]any{"maxAttempts": 4, "delay": "1m30s", "backoff": 2.5, "maxDelay": "1h"},
		"timeout":   "90m", "dispatchTimeout": "1h0m", "onLost": "fail", "priority": -7,
		"owner": map[string]any{"name": "Ann", "email": "ann@example.com"},
		"alert": map[string]any{
			"onFailure": false, "includeNoExecutor": false, "emails": []string{"ops@example.com"},
			"webhookUrl": "https://hooks.example.com/x", "webhookSecret": "hush",
		},
		"state": "paused",
	}
}

func TestJobRoundTrip(t *testing.T) {
	w := newWorld(t)
	e := w.executor("acme", "shop")
	created := w.call("acme/editor", "POST", "/jobs", fullJob(e)).is(201).golden("job_created")
	require.Equal(t, `"1"`, created.header.Get("ETag"))
	job := into[Job](created)
	require.JSONEq(t, `{"limit":12345678901234567}`, string(job.Input), "numbers keep their digits")
	require.Equal(t, "quartz", job.Schedule.Dialect, "what was found by auto is stored")
	require.NotContains(t, string(created.body), "hush")

	read := w.call("acme/editor", "GET", "/jobs/"+job.ID, nil).is(200)
	require.Equal(t, string(created.body), string(read.body))

	stored, err := w.store.FindJob(t.Context(), w.tenants["acme"], mustID[domain.JobID](t, job.ID))
	require.NoError(t, err)
	require.NotContains(t, string(stored.Spec.Alert.WebhookSecret), "hush")
	plain, err := w.box.Open(w.tenants["acme"], secret.PurposeJobWebhook, int64(stored.ID), stored.Spec.Alert.WebhookSecret)
	require.NoError(t, err)
	require.Equal(t, "hush", string(plain))
}

// TestRecentRunsOfJobs: the query says how many there are, within bounds. The store's tests have
// their contents.
func TestRecentRunsOfJobs(t *testing.T) {
	w := newWorld(t)
	e := w.executor("acme", "shop")
	job := into[Job](w.call("acme/editor", "POST", "/jobs", fullJob(e)).is(201))
	for range 3 {
		w.call("acme/operator", "POST", "/jobs/"+job.ID+"/run", nil).is(201)
	}
	for path, want := range map[string]int{"?recent=2": 2, "?recent=60": 3, "": 3} {
		got := into[Job](w.call("acme/viewer", "GET", "/jobs/"+job.ID+path, nil).is(200))
		require.Len(t, got.RecentRuns, want, path)
		require.Equal(t, got.RecentRuns[0], *got.LastRun)
		require.Nil(t, got.Stats7d, "none has ended")
		listed := into[web.Page[Job]](w.call("acme/viewer", "GET", "/jobs"+path, nil).is(200))
		require.Len(t, listed.Items[0].RecentRuns, want, path)
	}
	run := into[Job](w.call("acme/viewer", "GET", "/jobs/"+job.ID, nil).is(200)).LastRun
	w.call("acme/operator", "POST", "/runs/"+run.ID+"/cancel", nil).is(202)
	got := into[Job](w.call("acme/viewer", "GET", "/jobs/"+job.ID, nil).is(200))
	require.Equal(t, &JobStats{Runs: 1}, got.Stats7d)
	w.call("acme/viewer", "GET", "/jobs?limit=200&recent=20", nil).is(200)
	for _, path := range []string{"/jobs?recent=0", "/jobs?recent=61", "/jobs?limit=200&recent=21", "/jobs/" + job.ID + "?recent=61"} {
		p := w.call("acme/viewer", "GET", path, nil).problem(422, "validation_failed")
		require.Equal(t, "query.recent", p.Errors[0].Location, path)
	}
}

func mustID[T ~int64](t *testing.T, text string) T {
	t.Helper()
	id, err := domain.ParseID[T](text)
	require.NoError(t, err)
	return id
}

func TestJobDefaults(t *testing.T) {
	w := newWorld(t)
	e := w.executor("acme", "shop")
	w.call("acme/editor", "POST", "/jobs", map[string]any{
		"name": "plain", "executor": map[string]any{"id": e.ID.String()}, "handler": "reconcile", "schedule": map[string]any{"kind": "none"},
	}).is(201).golden("job_defaults")
	require.Equal(t, 1, w.changed, "the scheduler is told")
	w.call("acme/editor", "POST", "/jobs", jobBody("plain", e)).problem(409, "conflict")
}

// TestRoutingSettings: what is wrong is told at its field, and what the API says
// can be sent back.
func TestRoutingSettings(t *testing.T) {
	w := newWorld(t)
	e := w.executor("acme", "shop")
	for _, routing := range domain.Routings {
		job := w.job("acme", string(routing), e, with("routing", string(routing)))
		require.Equal(t, string(routing), job.Routing)
		put := jobBody(string(routing), e, with("routing", job.Routing), with("requireLabels", job.RequireLabels),
			with("sendRetry", map[string]any{"maxSends": job.SendRetry.MaxSends, "delay": job.SendRetry.Delay, "backoff": job.SendRetry.Backoff, "maxDelay": job.SendRetry.MaxDelay}))
		again := into[Job](w.call("acme/editor", "PUT", "/jobs/"+job.ID, put, header{"If-Match": "*"}).is(200))
		require.Equal(t, job.SendRetry, again.SendRetry)
		stored, err := w.store.FindJob(t.Context(), w.tenants["acme"], mustID[domain.JobID](t, job.ID))
		require.NoError(t, err)
		require.Zero(t, stored.Spec.SendRetry, "defaults are stored as such")
	}
	for field, c := range map[string]struct {
		change []func(map[string]any)
		says   string
	}{
		"body.routing":            {[]func(map[string]any){with("routing", "best")}, "must be one of"},
		"body.routingKey":         {[]func(map[string]any){with("routing", "consistent_hash"), with("routingKey", "customer")}, "must be a JSON pointer into the input, such as /customer/id"},
		"body.requireLabels":      {[]func(map[string]any){with("requireLabels", "zone=eu tier=x")}, `expected a comma between two terms at character 9 of "zone=eu tier=x"`},
		"body.preferLabels":       {[]func(map[string]any){with("preferLabels", "zone in eu")}, "expected a list such as (a, b)"},
		"body.sendRetry.maxSends": {[]func(map[string]any){with("sendRetry", map[string]any{"maxSends": 1001})}, "1000"},
		"body.sendRetry.delay":    {[]func(map[string]any){with("sendRetry", map[string]any{"delay": "soon"})}, ""},
	} {
		p := w.call("acme/editor", "POST", "/jobs", jobBody("wrong", e, c.change...)).problem(422, "validation_failed")
		require.Len(t, p.Errors, 1, field)
		require.Equal(t, field, p.Errors[0].Location)
		require.Contains(t, p.Errors[0].Message, c.says)
	}
	p := w.call("acme/editor", "POST", "/jobs", jobBody("wrong", e, with("routing", "random"), with("routingKey", "/a"))).problem(422, "validation_failed")
	require.Equal(t, "needs the routing consistent_hash", p.Errors[0].Message)
}

func TestJobKindsOfSchedule(t *testing.T) {
	w := newWorld(t)
	e := w.executor("acme", "shop")
	soon := time.Now().Add(time.Hour).UTC().Truncate(time.Millisecond)
	for kind, schedule := range map[string]map[string]any{
		"fixed_rate": {"kind": "fixed_rate", "every": "1m30s", "zone": "UTC"},
		"once":       {"kind": "once", "at": web.Instant(soon), "zone": "UTC"},
	} {
		job := into[Job](w.call("acme/editor", "POST", "/jobs", jobBody(kind, e, with("schedule", schedule))).is(201))
		require.Equal(t, kind, job.Schedule.Kind)
		require.NotNil(t, job.Schedule.Text)
		fires := into[NextFires](w.call("acme/viewer", "GET", "/jobs/"+job.ID+"/next-fires?n=3", nil).is(200))
		if kind == "once" {
			require.Equal(t, web.Instant(soon), *job.Schedule.At)
			require.Equal(t, []Fire{{At: web.Instant(soon), Zoned: soon.Format(time.RFC3339)}}, fires.Fires)
		} else {
			require.Equal(t, "1m30s", job.Schedule.Every)
			require.Len(t, fires.Fires, 3)
		}
	}
}

func TestFixedRateKeepsItsBeat(t *testing.T) {
	w := newWorld(t)
	e := w.executor("acme", "shop")
	rate := with("schedule", map[string]any{"kind": "fixed_rate", "every": "7m"})
	job := w.job("acme", "beat", e, rate)
	anchor := func() time.Time {
		v, err := w.store.FindJob(t.Context(), w.tenants["acme"], mustID[domain.JobID](t, job.ID))
		require.NoError(t, err)
		return v.Spec.Schedule.Anchor
	}
	first := anchor()
	require.False(t, first.IsZero())
	w.deps.Now = func() time.Time { return time.Now().Add(3 * time.Minute) }
	w.start()
	w.call("acme/editor", "PUT", "/jobs/"+job.ID, jobBody("beat", e, rate, with("description", "edited")), header{"If-Match": `"1"`}).is(200)
	require.Equal(t, first, anchor(), "an edit of something else")
	w.call("acme/editor", "PUT", "/jobs/"+job.ID, jobBody("beat", e, with("schedule", map[string]any{"kind": "fixed_rate", "every": "8m"})), header{"If-Match": `"2"`}).is(200)
	require.NotEqual(t, first, anchor(), "another rate counts from now")
}

func TestUpdateNeedsTheRevision(t *testing.T) {
	w := newWorld(t)
	e := w.executor("acme", "shop")
	job := w.job("acme", "nightly", e)
	path := "/jobs/" + job.ID
	put := func(match, name string) answer {
		h := header{}
		if match != "" {
			h["If-Match"] = match
		}
		return w.call("acme/editor", "PUT", path, jobBody(name, e), h)
	}
	put("", "a").problem(http.StatusPreconditionRequired, "validation_failed")
	for _, match := range []string{"1", `"one"`, `"-1"`, `"1`, `"1", "2"`} {
		require.Equal(t, "header.If-Match", put(match, "a").problem(422, "validation_failed").Errors[0].Location, match)
	}
	ok := put(`"1"`, "second").is(200)
	require.Equal(t, `"2"`, ok.header.Get("ETag"))
	stale := put(`"1"`, "third")
	p := stale.problem(http.StatusPreconditionFailed, "revision_mismatch")
	require.Equal(t, `"2"`, stale.header.Get("ETag"))
	current, _ := p.Current.(map[string]any)
	require.Equal(t, []any{"second", 2.0}, []any{current["name"], current["revision"]})
	put(`W/"2"`, "third").is(200)
	put("*", "fourth").is(200)

	revisions := into[web.Page[Revision]](w.call("acme/viewer", "GET", path+"/revisions", nil).is(200)).Items
	require.Len(t, revisions, 4)
	require.Equal(t, int64(4), revisions[0].Revision)
	require.Equal(t, "acme-editor", revisions[0].CreatedBy)
	require.Equal(t, "nightly", revisions[3].Spec.Name)
}

// Who paused a job, and why, is known after it was resumed.
func TestJobEvents(t *testing.T) {
	w := newWorld(t)
	job := w.job("acme", "nightly", w.executor("acme", "shop"))
	path := "/jobs/" + job.ID
	w.call("acme/operator", "POST", path+"/pause", map[string]any{"note": "orders are being moved"}).is(200)
	w.call("acme/editor", "POST", path+"/pause", map[string]any{"note": "orders are moved until Monday"}).is(200)
	w.call("acme/editor", "POST", path+"/resume?mine=true", nil).is(200)
	w.call("acme/editor", "POST", path+"/resume", nil).is(200)
	type event struct{ what, state, by, note string }
	var got []event
	for _, e := range into[web.Page[JobEvent]](w.call("acme/viewer", "GET", path+"/events", nil).is(200)).Items {
		require.NotEmpty(t, e.At)
		got = append(got, event{e.What, e.State, e.By, e.Note})
	}
	require.Equal(t, []event{
		{"resumed", "enabled", "acme-editor", ""},
		{"paused", "paused", "acme-operator", "orders are being moved"}, {"created", "enabled", "acme-editor", ""},
	}, got)
	w.call("beta/viewer", "GET", path+"/events", nil).is(404)
}

func TestWebhookSecretIsKept(t *testing.T) {
	w := newWorld(t)
	e := w.executor("acme", "shop")
	job := w.job("acme", "nightly", e, with("alert.webhookUrl", "https://a.example.com"), with("alert.webhookSecret", "one"))
	require.True(t, job.Alert.WebhookSecretSet)
	path := "/jobs/" + job.ID
	put := func(change ...func(map[string]any)) Job {
		return into[Job](w.call("acme/editor", "PUT", path, jobBody("nightly", e, change...), header{"If-Match": "*"}).is(200))
	}
	secretOf := func() string {
		v, err := w.store.FindJob(t.Context(), w.tenants["acme"], mustID[domain.JobID](t, job.ID))
		require.NoError(t, err)
		if len(v.Spec.Alert.WebhookSecret) == 0 {
			return ""
		}
		plain, err := w.box.Open(v.TenantID, secret.PurposeJobWebhook, int64(v.ID), v.Spec.Alert.WebhookSecret)
		require.NoError(t, err)
		return string(plain)
	}
	require.True(t, put(with("alert.webhookUrl", "https://b.example.com"), with("alert.webhookSecretSet", true)).Alert.WebhookSecretSet)
	require.Equal(t, "one", secretOf())
	put(with("alert.webhookUrl", "https://b.example.com"), with("alert.webhookSecret", "two"))
	require.Equal(t, "two", secretOf())
	require.False(t, put().Alert.WebhookSecretSet, "no webhook, no secret")
	require.Empty(t, secretOf())
}

func TestPauseResumeDelete(t *testing.T) {
	w := newWorld(t)
	e := w.executor("acme", "shop")
	job := w.job("acme", "nightly", e)
	path := "/jobs/" + job.ID
	require.NotNil(t, job.NextFireAt)
	paused := into[Job](w.call("acme/operator", "POST", path+"/pause", map[string]any{"note": " holidays "}).is(200))
	require.Equal(t, "paused", paused.State)
	require.Equal(t, "holidays", paused.PauseNote)
	require.Nil(t, paused.NextFireAt)
	require.False(t, paused.NeverFires)
	require.Len(t, into[NextFires](w.call("acme/viewer", "GET", path+"/next-fires", nil).is(200)).Fires, 10, "what would come")
	require.Equal(t, "acme-operator", paused.PausedBy)
	require.NotNil(t, paused.PausedAt)
	w.call("acme/editor", "PUT", path, jobBody("nightly", e), header{"If-Match": "*"}).is(200)
	for _, body := range []any{nil, map[string]any{}, map[string]any{"note": " "}, map[string]any{"note": "moved"}} {
		again := into[Job](w.call("acme/editor", "POST", path+"/pause", body).is(200))
		require.Equal(t, []any{"holidays", "acme-operator", *paused.PausedAt}, []any{again.PauseNote, again.PausedBy, *again.PausedAt}, "the pause stays, also after an edit by somebody else")
	}
	others := into[Job](w.call("acme/editor", "POST", path+"/resume?mine=true", nil).is(200))
	require.Equal(t, []any{"paused", "acme-operator"}, []any{others.State, others.PausedBy})
	resumed := into[Job](w.call("acme/operator", "POST", path+"/resume", nil).is(200))
	require.Equal(t, "enabled", resumed.State)
	require.Equal(t, []any{"", "", (*string)(nil)}, []any{resumed.PauseNote, resumed.PausedBy, resumed.PausedAt})
	require.NotNil(t, resumed.NextFireAt)
	w.call("acme/operator", "POST", path+"/pause", nil).is(200)

	w.call("acme/operator", "DELETE", path, nil).problem(403, "permission_denied")
	w.call("acme/editor", "DELETE", path, nil).is(204)
	w.call("acme/editor", "GET", path, nil).problem(404, "not_found")
	w.call("acme/operator", "POST", path+"/run", nil).problem(404, "not_found")
	w.call("acme/editor", "DELETE", path, nil).problem(404, "not_found")
	w.job("acme", "nightly", e) // the name is free again
	require.Equal(t, 12, w.changed, "the scheduler is told each time")
}

func TestListJobs(t *testing.T) {
	w := newWorld(t)
	a, b := w.executor("acme", "shop"), w.executor("acme", "billing")
	w.instance(a, "one", "reconcile")
	for i := range 7 {
		e := a
		if i%2 == 1 {
			e = b
		}
		w.job("acme", fmt.Sprintf("job-%d", i), e, with("labels", map[string]any{"n": fmt.Sprint(i)}), with("input", map[string]any{"n": i}),
			with("owner", map[string]any{"name": fmt.Sprintf("Owner %d", i), "email": fmt.Sprintf("o%d@example.com", i)}))
	}
	names := func(query string) (out []string) {
		for _, j := range into[web.Page[Job]](w.call("acme/viewer", "GET", "/jobs?"+query, nil).is(200)).Items {
			require.Empty(t, j.Input, "lists leave the input out")
			out = append(out, j.Name)
		}
		return out
	}
	require.Len(t, names(""), 7)
	require.Equal(t, []string{"job-3"}, names("q=job-3"))
	require.Equal(t, []string{"job-1", "job-3", "job-5"}, names("executorId="+b.ID.String()))
	require.Equal(t, []string{"job-4"}, names("label=n%3D4"))
	require.Len(t, names("label=n"), 7)
	require.Empty(t, names("label=m"))
	p := w.call("acme/viewer", "GET", "/jobs?label=n:4", nil).problem(422, "validation_failed")
	require.Contains(t, p.Detail, "key=value", "it would find nothing, in silence")
	require.Equal(t, []string{"job-2"}, names("owner=o2%40example"))
	require.Len(t, names("handler=reconcile"), 7)
	require.Empty(t, names("handler=other"))
	require.Empty(t, names("state=paused"))
	require.Equal(t, []string{"job-6", "job-5"}, names("sort=updatedAt&limit=2"))

	for _, sort := range []string{"name", "nextFireAt", "updatedAt"} {
		seen := map[string]bool{}
		path, pages := "/jobs?limit=3&sort="+sort, 0
		for {
			page := into[web.Page[Job]](w.call("acme/viewer", "GET", path, nil).is(200))
			pages++
			for _, j := range page.Items {
				require.False(t, seen[j.Name], "%s twice, sorted by %s", j.Name, sort)
				seen[j.Name] = true
				if j.Executor.Name == "shop" {
					require.Equal(t, 1, j.ExecutorOnline)
				}
			}
			if page.NextCursor == nil {
				break
			}
			path = "/jobs?limit=3&sort=" + sort + "&cursor=" + *page.NextCursor
		}
		require.Len(t, seen, 7)
		require.Equal(t, 3, pages)
	}
}

func TestPreview(t *testing.T) {
	w := newWorld(t)
	preview := func(body map[string]any) answer {
		return w.call("acme/viewer", "POST", "/schedules/preview", body).is(200)
	}
	// Berlin's clocks go back at 03:00 on 25 October 2026, and forward at 02:00 on 28 March 2027.
	preview(map[string]any{
		"schedule": map[string]any{"kind": "cron", "expr": "30 2 * * *", "zone": "Europe/Berlin"}, "n": 3, "from": "2026-10-24T12:00:00Z",
	}).golden("preview_overlap")
	preview(map[string]any{
		"schedule": map[string]any{"kind": "cron", "expr": "30 2 * * *", "zone": "Europe/Berlin"}, "n": 2, "from": "2027-03-27T12:00:00Z",
	}).golden("preview_gap")
	require.Len(t, into[Preview](preview(map[string]any{"schedule": map[string]any{"kind": "cron", "expr": "* * * * *"}})).Fires, 10)
	never := into[Preview](preview(map[string]any{"schedule": map[string]any{"kind": "cron", "expr": "0 0 31 2 *"}}))
	require.True(t, never.NeverFires)
	require.Empty(t, never.Fires)
	require.True(t, into[Preview](preview(map[string]any{"schedule": map[string]any{"kind": "none"}})).NeverFires)
	w.call("acme/viewer", "POST", "/schedules/preview", map[string]any{"schedule": map[string]any{"kind": "none"}, "n": 101}).problem(422, "validation_failed")
}

func TestListOfJobsThatNeverFire(t *testing.T) {
	w := newWorld(t)
	e := w.executor("acme", "shop")
	over := w.job("acme", "thirtieth of February", e, with("schedule", map[string]any{"kind": "cron", "expr": "0 0 30 2 *"}))
	require.True(t, over.NeverFires)
	w.job("acme", "nightly", e)
	w.job("acme", "on demand", e, with("schedule", map[string]any{"kind": "none"}))
	list := into[web.Page[Job]](w.call("acme/viewer", "GET", "/jobs?neverFires=true", nil).is(200))
	require.Len(t, list.Items, 1)
	require.Equal(t, over.ID, list.Items[0].ID)
	require.Len(t, into[web.Page[Job]](w.call("acme/viewer", "GET", "/jobs", nil).is(200)).Items, 3)
}

// TestRetryDefaults: a delay that was given is not cut by a bound that was not.
func TestRetryDefaults(t *testing.T) {
	w := newWorld(t)
	e := w.executor("acme", "shop")
	require.Equal(t, Retry{MaxAttempts: 1, Delay: "10s", Backoff: 1, MaxDelay: "10m"}, w.job("acme", "plain", e).Retry)
	slow := w.job("acme", "slow", e, with("retry", map[string]any{"maxAttempts": 2, "delay": "30m"}))
	require.Equal(t, Retry{MaxAttempts: 2, Delay: "30m", Backoff: 1, MaxDelay: "30m"}, slow.Retry)
	bound := w.job("acme", "bound", e, with("retry", map[string]any{"delay": "30m", "maxDelay": "5m"}))
	require.Equal(t, "5m", bound.Retry.MaxDelay, "what was given counts")
	require.Equal(t, "1h", specOf(&domain.JobSpec{}).Retry.MaxDelay, "0 is an hour")
}

// TestBlockingByTheSchedule: runs that are asked for one by one wait for nobody,
// those of a recurring schedule for each other.
func TestBlockingByTheSchedule(t *testing.T) {
	w := newWorld(t)
	e := w.executor("acme", "shop")
	for name, c := range map[string]struct {
		schedule map[string]any
		want     domain.Blocking
	}{
		"asked for": {map[string]any{"kind": "none"}, domain.BlockParallel},
		"once":      {map[string]any{"kind": "once", "at": time.Now().Add(time.Hour).UTC().Format(time.RFC3339)}, domain.BlockParallel},
		"recurring": {map[string]any{"kind": "cron", "expr": "0 2 * * *"}, domain.BlockSerial},
	} {
		require.Equal(t, string(c.want), w.job("acme", name, e, with("schedule", c.schedule)).Blocking, name)
	}
}
