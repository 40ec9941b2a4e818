package api

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/api/web"
)

// How late runs started, and that deleted ones stay counted, has a test of the store.
func TestStatistics(t *testing.T) {
	w, _ := withTimers(t)
	w.key("orders", "timer")
	for _, handler := range []string{"reconcile", "refund"} {
		for _, key := range []string{"1", "2"} {
			w.call("orders", "POST", "/timers", timerBodyOf(map[string]any{"handler": handler, "key": key})).is(201)
		}
	}
	none := into[Statistics](w.call("orders", "GET", "/timers/statistics", nil).is(200))
	require.Equal(t, []any{[]RunEndings{}, int64(0)}, []any{none.Items, none.Total.Runs})
	require.InDelta(t, 24*time.Hour, span(t, none), float64(time.Hour))
	w.call("orders", "POST", "/timers/shop/reconcile/1/cancel", nil).is(200)
	w.call("orders", "POST", "/timers/shop/reconcile/2/cancel", nil).is(200)
	w.call("orders", "POST", "/timers/shop/refund/2/cancel", nil).is(200)
	steps := map[string]time.Duration{"": time.Hour, "step=day": 24 * time.Hour, "step=minute": time.Minute}
	for address, want := range map[string]int64{
		"": 3, "?step=day": 3, "?step=minute": 3, "?executor=shop&handler=reconcile": 2, "?handler=none": 0, "?to=2020-01-01T00:00:00Z": 0,
		"?step=day&from=" + time.Now().Add(-300*24*time.Hour).UTC().Format(time.RFC3339): 3,
	} {
		got := into[Statistics](w.call("orders", "GET", "/timers/statistics"+address, nil).is(200))
		require.Equal(t, []int64{want, want}, []int64{got.Total.Cancelled, got.Total.Runs}, address)
		sum := int64(0)
		for _, item := range got.Items {
			sum += item.Cancelled
			at, err := time.Parse(time.RFC3339, item.At)
			require.NoError(t, err)
			for name, step := range steps {
				if name != "" && strings.Contains(address, name) || name == "" && !strings.Contains(address, "step") {
					require.Equal(t, at, at.Truncate(step), address)
				}
			}
		}
		require.Equal(t, want, sum, address)
		require.Nil(t, got.Total.Lateness)
		require.Nil(t, got.Total.Duration)
	}
	w.keyFor("refunds", "timer", "shop/refund")
	require.Equal(t, int64(1), into[Statistics](w.call("refunds", "GET", "/timers/statistics", nil).is(200)).Total.Cancelled)
	w.call("refunds", "GET", "/statistics", nil).problem(403, "permission_denied")
	require.Zero(t, into[Statistics](w.call("beta/operator", "GET", "/timers/statistics", nil).is(200)).Total.Cancelled)

	// The same of the tenant and of the executor; a tenant sees its own.
	require.Equal(t, int64(3), into[Statistics](w.call("acme/viewer", "GET", "/statistics?step=minute", nil).is(200)).Total.Cancelled)
	require.Zero(t, into[Statistics](w.call("beta/viewer", "GET", "/statistics", nil).is(200)).Total.Runs)
	executors := into[web.Page[Executor]](w.call("acme/viewer", "GET", "/executors", nil).is(200)).Items
	of := "/executors/" + executors[0].ID + "/statistics"
	require.Equal(t, int64(3), into[Statistics](w.call("acme/viewer", "GET", of, nil).is(200)).Total.Cancelled)
	w.call("beta/viewer", "GET", of, nil).problem(404, "not_found")
	w.call("acme/viewer", "GET", "/jobs/123/statistics", nil).problem(404, "not_found")
	for address, want := range map[string]string{
		"?from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z": "query.to", "?from=2026-01-01T00:00:00Z&to=2026-05-01T00:00:00Z": "query.from",
		"?step=day&from=2022-01-01T00:00:00Z&to=2026-01-01T00:00:00Z": "query.from", "?step=week": "query.step", "?from=yesterday": "query.from",
		"?step=minute&from=2026-01-01T00:00:00Z&to=2026-01-03T00:00:00Z": "query.from",
	} {
		p := w.call("acme/viewer", "GET", "/statistics"+address, nil).problem(422, "validation_failed")
		require.Equal(t, want, p.Errors[0].Location, address)
	}
}

func span(t *testing.T, s Statistics) time.Duration {
	t.Helper()
	from, err := time.Parse(time.RFC3339, s.From)
	require.NoError(t, err)
	to, err := time.Parse(time.RFC3339, s.To)
	require.NoError(t, err)
	return to.Sub(from)
}

func TestOverdueList(t *testing.T) {
	w := newWorld(t)
	list := into[OverdueList](w.call("acme/viewer", "GET", "/jobs/overdue", nil).is(200))
	require.Equal(t, OverdueList{Items: []OverdueJob{}}, list)
	for _, by := range []string{"0s", "25h", "soon"} {
		p := w.call("acme/viewer", "GET", "/jobs/overdue?by="+by, nil).problem(422, "validation_failed")
		require.Equal(t, "query.by", p.Errors[0].Location)
	}
}

// TestFailureGroups: what failed most, for callers of a tenant and of an executor. The store's
// tests have the counts.
func TestFailureGroups(t *testing.T) {
	w := newWorld(t)
	w.executor("acme", "shop")
	w.bound("bound", "viewer", "shop")
	for _, by := range []string{"job", "executor", "label", "error"} {
		for _, who := range []string{"acme/viewer", "bound"} {
			got := into[Statistics](w.call(who, "GET", "/statistics?groupBy="+by+"&top=5", nil).is(200))
			require.Empty(t, got.Groups)
			require.Empty(t, got.Items)
		}
	}
	job := w.job("acme", "nightly", w.executor("acme", "mail"))
	got := into[Statistics](w.call("acme/viewer", "GET", "/jobs/"+job.ID+"/statistics?groupBy=error", nil).is(200))
	require.Empty(t, got.Groups)
	require.Empty(t, got.Items)
	for address, want := range map[string]string{"?groupBy=job": "query.groupBy", "?groupBy=error&step=day": "query.step"} {
		p := w.call("acme/viewer", "GET", "/jobs/"+job.ID+"/statistics"+address, nil).problem(422, "validation_failed")
		require.Equal(t, want, p.Errors[0].Location, address)
	}
	for address, want := range map[string]string{
		"?groupBy=day": "query.groupBy", "?groupBy=job&step=day": "query.step", "?groupBy=job&top=51": "query.top", "?groupBy=job&top=0": "query.top",
		"?groupBy=job&from=2026-01-01T00:00:00Z&to=2026-05-01T00:00:00Z": "query.from",
	} {
		p := w.call("acme/viewer", "GET", "/statistics"+address, nil).problem(422, "validation_failed")
		require.Equal(t, want, p.Errors[0].Location, address)
	}
	for _, fingerprint := range []string{"7", "zzzzzzzzzzzzzzzz", "0000000000000000"} {
		p := w.call("acme/viewer", "GET", "/runs?fingerprint="+fingerprint, nil).problem(422, "validation_failed")
		require.Equal(t, "query.fingerprint", p.Errors[0].Location)
	}
	w.call("bound", "GET", "/runs?fingerprint=00000000000000a7&label=team=a&owner=ann&name=x*", nil).is(200)
}
