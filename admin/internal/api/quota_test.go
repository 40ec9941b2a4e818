package api

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/api/tenant"
	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/domain"
)

func (w *world) quota(tenant, kind string, limit int) {
	w.t.Helper()
	body := map[string]any{"items": []any{map[string]any{"kind": kind, "limit": limit}}}
	w.call("platform", "PUT", "/tenants/"+w.tenants[tenant].String()+"/quotas", body).is(200)
}

func TestQuotas(t *testing.T) {
	w := newWorld(t)
	e := w.executor("acme", "shop")
	path := "/tenants/" + w.tenants["acme"].String() + "/quotas"
	list := func(who, path string) map[string]tenant.Quota {
		out := map[string]tenant.Quota{}
		for _, q := range into[web.Page[tenant.Quota]](w.call(who, "GET", path, nil).is(200)).Items {
			out[q.Kind] = q
		}
		require.Len(t, out, len(domain.QuotaKinds))
		return out
	}
	require.Equal(t, tenant.Quota{Kind: "jobs", Limit: 10_000, Default: true}, list("acme/viewer", "/quotas")["jobs"])

	w.quota("acme", "jobs", 3)
	w.quota("acme", "fires_per_minute", 65)
	job := w.job("acme", "first", e, with("schedule", map[string]any{"kind": "cron", "expr": "* * * * * *"}))
	second := w.job("acme", "second", e, with("schedule", map[string]any{"kind": "fixed_rate", "every": "12s"}))
	got := list("platform", path)
	require.Equal(t, []tenant.Quota{{Kind: "jobs", Limit: 3, Used: 2}, {Kind: "fires_per_minute", Limit: 65, Used: 65}}, []tenant.Quota{got["jobs"], got["fires_per_minute"]})

	// One job fits by number, but not by its schedule.
	asked := with("schedule", map[string]any{"kind": "none"})
	minutely := with("schedule", map[string]any{"kind": "cron", "expr": "* * * * *"})
	p := w.call("acme/editor", "POST", "/jobs", jobBody("third", e, minutely)).problem(409, "quota_exceeded")
	require.Equal(t, &web.QuotaExcess{Kind: "fires_per_minute", Limit: 65, Used: 65, Asked: 1}, p.Quota)
	require.Contains(t, p.Detail, "may fire 65 times in a minute and are planned for 65, this needs 1 more")
	w.call("acme/editor", "POST", "/jobs", jobBody("third", e, asked)).is(201)
	p = w.call("acme/editor", "POST", "/jobs", jobBody("fourth", e, asked)).problem(409, "quota_exceeded")
	require.Equal(t, &web.QuotaExcess{Kind: "jobs", Limit: 3, Used: 3, Asked: 1}, p.Quota)

	// Many at once are told one by one.
	batch := into[JobBatch](w.call("acme/editor", "POST", "/jobs/batch", map[string]any{"items": []any{jobBody("a", e, asked), jobBody("b", e, asked)}}).is(200))
	require.Equal(t, []any{0, "quota_exceeded"}, []any{batch.Created, batch.Items[1].Problem.Code})

	// What lowers the rate passes, and what raises it does not.
	w.call("acme/operator", "POST", "/jobs/"+job.ID+"/pause", map[string]any{}).is(200)
	w.quota("acme", "fires_per_minute", 60)
	p = w.call("acme/operator", "POST", "/jobs/"+job.ID+"/resume", map[string]any{}).problem(409, "quota_exceeded")
	require.Equal(t, &web.QuotaExcess{Kind: "fires_per_minute", Limit: 60, Used: 5, Asked: 60}, p.Quota)
	edit := func(every string) answer {
		body := jobBody("second", e, with("schedule", map[string]any{"kind": "fixed_rate", "every": every}))
		return w.call("acme/editor", "PUT", "/jobs/"+second.ID, body, header{"If-Match": "*"})
	}
	edit("1s").is(200)
	edit("500ms").problem(409, "quota_exceeded")
	edit("60s").is(200)
	w.call("acme/operator", "POST", "/jobs/"+job.ID+"/resume", map[string]any{}).problem(409, "quota_exceeded")
	w.quota("acme", "fires_per_minute", 0)
	w.call("acme/operator", "POST", "/jobs/"+job.ID+"/resume", map[string]any{}).is(200)

	// Bytes are bounded beside numbers, and may be more than other quotas.
	used := list("acme/viewer", "/quotas")["stored_bytes"].Used
	require.Positive(t, used)
	w.quota("acme", "stored_bytes", 8)
	p = w.call("acme/editor", "PUT", "/jobs/"+second.ID, jobBody("second", e, minutely), header{"If-Match": "*"}).problem(409, "quota_exceeded")
	require.Equal(t, []any{"stored_bytes", used}, []any{p.Quota.Kind, p.Quota.Used})
	require.Contains(t, p.Detail, "cancel timers, or delete jobs, scripts and calendars")
	w.quota("acme", "stored_bytes", 4<<30)
	require.EqualValues(t, 4<<30, list("platform", path)["stored_bytes"].Limit)
	w.call("platform", "PUT", path, map[string]any{"items": []any{map[string]any{"kind": "jobs", "limit": 100_000_001}}}).problem(422, "validation_failed")

	// A lowered quota takes nothing away; other tenants do not notice.
	w.quota("acme", "jobs", 1)
	require.Equal(t, tenant.Quota{Kind: "jobs", Limit: 1, Used: 3}, list("acme/viewer", "/quotas")["jobs"])
	w.job("beta", "first", w.executor("beta", "shop"))
	w.quota("acme", "jobs", -1)
	require.Equal(t, tenant.Quota{Kind: "jobs", Limit: 10_000, Used: 3, Default: true}, list("acme/viewer", "/quotas")["jobs"])

	for _, wrong := range []any{-2, "three", 100_000_001, 1.5} {
		w.call("platform", "PUT", path, map[string]any{"items": []any{map[string]any{"kind": "jobs", "limit": wrong}}}).problem(422, "validation_failed")
	}
	w.call("platform", "PUT", path, map[string]any{"items": []any{map[string]any{"kind": "cats", "limit": 1}}}).problem(422, "validation_failed")
	one := map[string]any{"items": []any{map[string]any{"kind": "jobs", "limit": 1}}}
	w.call("acme/admin", "PUT", path, one).problem(403, "permission_denied")
	w.call("acme/admin", "GET", path, nil).problem(403, "permission_denied")
	w.call("platform", "PUT", fmt.Sprintf("/tenants/%d/quotas", 1), one).problem(404, "not_found")
	w.call("platform", "GET", "/tenants/1/quotas", nil).problem(404, "not_found")
}

// TestRateOfATenant by its quota.
func TestRateOfATenant(t *testing.T) {
	w := newWorld(t)
	job := w.job("acme", "nightly", w.executor("acme", "shop"))
	w.quota("acme", "api_calls_per_second", 1)
	w.start() // a node that has not asked for the quota before
	limited := w.call("acme/viewer", "GET", "/jobs", nil)
	for limited.status == 200 {
		limited = w.call("acme/viewer", "GET", "/jobs", nil)
	}
	limited.problem(429, "rate_limited")
	require.Equal(t, "1", limited.header.Get("Retry-After"))
	w.call("acme/operator", "POST", "/jobs/"+job.ID+"/pause", map[string]any{}).is(200)
	w.call("beta/viewer", "GET", "/jobs", nil).is(200)
}
