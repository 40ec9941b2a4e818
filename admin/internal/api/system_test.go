package api

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/api/access"
	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/storetest"
)

func TestExecutors(t *testing.T) {
	w := newWorld(t)
	made := into[Executor](w.call("acme/editor", "POST", "/executors", map[string]any{"name": "shop", "description": "The shop"}).is(201))
	w.call("acme/editor", "POST", "/executors", map[string]any{"name": "shop"}).problem(409, "conflict")
	for _, name := range []string{"a b", "a/b", "-a", "ä", "a\n"} {
		w.call("acme/editor", "POST", "/executors", map[string]any{"name": name}).problem(422, "validation_failed")
	}
	e := domain.Executor{ID: mustID[domain.ExecutorID](t, made.ID), TenantID: w.tenants["acme"], Name: "shop"}
	i := w.instance(e, "one", "reconcile", "report")
	w.executor("acme", "billing")
	list := into[web.Page[Executor]](w.call("acme/viewer", "GET", "/executors", nil).is(200))
	require.Len(t, list.Items, 2)
	require.Equal(t, "billing", list.Items[0].Name)
	require.Equal(t, 1, list.Items[1].InstancesOnline)
	require.Equal(t, 2, list.Items[1].Handlers)
	first := into[web.Page[Executor]](w.call("acme/viewer", "GET", "/executors?limit=1", nil).is(200))
	second := into[web.Page[Executor]](w.call("acme/viewer", "GET", "/executors?limit=1&cursor="+*first.NextCursor, nil).is(200))
	require.Equal(t, "shop", second.Items[0].Name)
	require.Nil(t, second.NextCursor)
	require.Len(t, into[web.Page[Executor]](w.call("acme/viewer", "GET", "/executors?q=bill", nil).is(200)).Items, 1)

	detail := into[ExecutorDetail](w.call("acme/viewer", "GET", "/executors/"+made.ID, nil).is(200).golden("executor"))
	require.Equal(t, 1, detail.Handlers[0].InstancesOnline)
	instance := into[Instance](w.call("acme/viewer", "GET", "/instances/"+i.ID.String(), nil).is(200).golden("instance"))
	require.Equal(t, "online", instance.State)

	path := "/executors/" + made.ID + "/instances"
	require.NoError(t, storetest.LeaveInstance(t.Context(), w.store, i.TenantID, i.ID, "stopped"))
	require.Empty(t, into[web.Page[Instance]](w.call("acme/viewer", "GET", path, nil).is(200)).Items)
	gone := into[web.Page[Instance]](w.call("acme/viewer", "GET", path+"?includeGone=true", nil).is(200)).Items
	require.Len(t, gone, 1)
	require.Equal(t, "gone", gone[0].State)
	all := into[web.Page[FleetInstance]](w.call("acme/viewer", "GET", "/instances", nil).is(200)).Items
	require.Len(t, all, 1)
	require.False(t, all[0].Lost)
	require.Equal(t, []string{made.ID, "shop", "gone", "stopped"}, []string{all[0].ExecutorID, all[0].ExecutorName, all[0].Instance.State, all[0].Instance.GoneReason})
}

// Lost instances come first, page by page.
func TestLostInstancesComeFirst(t *testing.T) {
	w := newWorld(t)
	shop := w.executor("acme", "shop")
	gone, lost := w.instance(shop, "a"), w.instance(shop, "b")
	w.instance(shop, "c")
	require.NoError(t, storetest.LeaveInstance(t.Context(), w.store, gone.TenantID, gone.ID, "stopped"))
	require.NoError(t, storetest.LeaveInstance(t.Context(), w.store, lost.TenantID, lost.ID, domain.LeaseRanOut))
	var order []string
	path := "/instances?limit=1"
	for next := ""; ; {
		page := into[web.Page[FleetInstance]](w.call("acme/viewer", "GET", path+next, nil).is(200))
		require.Len(t, page.Items, 1)
		require.Equal(t, page.Items[0].Instance.Name == "b", page.Items[0].Lost)
		order = append(order, page.Items[0].Instance.Name)
		if page.NextCursor == nil {
			break
		}
		next = "&cursor=" + *page.NextCursor
	}
	require.Equal(t, []string{"b", "c", "a"}, order)
	require.Equal(t, "10.9.8.7", into[Instance](w.call("acme/admin", "GET", "/instances/"+lost.ID.String(), nil).is(200)).Address)
}

// TestASilentInstanceIsNotOnline, in no count, though its lease lasts still.
func TestASilentInstanceIsNotOnline(t *testing.T) {
	var later time.Duration
	w := newWorld(t, func(d *Deps) { d.Now = func() time.Time { return time.Now().Add(later) } })
	e := w.executor("acme", "shop")
	w.instance(e, "one", "reconcile")
	path := "/executors/" + e.ID.String()
	counts := func() []int {
		d := into[ExecutorDetail](w.call("acme/viewer", "GET", path, nil).is(200))
		return []int{d.InstancesOnline, d.InstancesTotal, d.Handlers[0].InstancesOnline}
	}
	require.Equal(t, []int{1, 1, 1}, counts())
	later = time.Minute - (domain.LeaseTTL-domain.SilentAfter)/2 // of the lease that instance gives it
	require.Equal(t, []int{0, 1, 0}, counts())
	list := into[web.Page[Instance]](w.call("acme/viewer", "GET", path+"/instances", nil).is(200)).Items
	require.Equal(t, "silent", list[0].State)
}

func TestInstanceState(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	seen := domain.Instance{LastSeenAt: now.Add(-3 * time.Second), LeaseUntil: now.Add(12 * time.Second)}
	for want, change := range map[string]func(*domain.Instance){
		"online":   func(*domain.Instance) {},
		"draining": func(i *domain.Instance) { i.Draining = true },
		"silent":   func(i *domain.Instance) { i.LastSeenAt, i.LeaseUntil = now.Add(-8*time.Second), now.Add(7*time.Second) },
		"gone":     func(i *domain.Instance) { i.GoneAt = now },
	} {
		i := seen
		change(&i)
		require.Equal(t, want, instanceState(i, now))
	}
	resting := domain.Instance{LastSeenAt: now.Add(-11 * time.Second), LeaseUntil: now.Add(11 * time.Second)}
	require.Equal(t, "online", instanceState(resting, now), "its next heartbeat may come every 10 s")
	resting.LastSeenAt, resting.LeaseUntil = now.Add(-15*time.Second), now.Add(7*time.Second)
	require.Equal(t, "silent", instanceState(resting, now))
	seen.LeaseUntil = now.Add(-time.Millisecond)
	require.Equal(t, "silent", instanceState(seen, now), "its lease is over")
}

// A fire time that a calendar excludes is no missed one.
func TestExcludedFireTimesAreCountedApart(t *testing.T) {
	require.Equal(t, RunCounts{Missed: 1, Excluded: 2}, countsOf(map[domain.State]int64{domain.Missed: 1, domain.Excluded: 2}))
}

func TestOverview(t *testing.T) {
	w := newWorld(t)
	w.deps.Attention = nil // without that of add-ons
	w.start()
	shop, billing := w.executor("acme", "shop"), w.executor("acme", "billing")
	w.executor("acme", "unused")
	w.instance(shop, "one", "reconcile")
	good, bad := w.job("acme", "good", shop), w.job("acme", "bad", shop)
	w.job("acme", "waiting", billing)
	w.job("acme", "asleep", shop, with("state", "paused"))
	w.ran("acme", good, domain.Report{Outcome: domain.OutcomeFailed})
	w.ran("acme", good, domain.Report{Outcome: domain.OutcomeSucceeded})
	w.ran("acme", bad, domain.Report{Outcome: domain.OutcomeFailed})
	w.call("acme/operator", "POST", "/jobs/"+good.ID+"/run", map[string]any{"after": "1h"}).is(201)
	o := into[Overview](w.call("acme/viewer", "GET", "/overview", nil).is(200).golden("overview"))
	require.Equal(t, RunCounts{Succeeded: 1, Failed: 2, Due: 1}, o.Runs24h)
	require.Equal(t, JobCounts{Enabled: 3, Paused: 1}, o.Jobs)
	require.Equal(t, ExecutorCounts{Online: 1, Offline: 2}, o.Executors)
	require.Len(t, o.NextFires, 3)
	require.Len(t, o.Attention, 2, "not the job that went well since, nor the executor that nobody needs: %+v", o.Attention)
}

func TestNodesAndVersion(t *testing.T) {
	w := newWorld(t)
	nodes := into[web.Page[Node]](w.call("acme/viewer", "GET", "/nodes", nil).is(200)).Items
	require.Len(t, nodes, 2)
	require.True(t, nodes[0].Current)
	require.False(t, nodes[1].Current)
	require.Equal(t, "test", into[Version](w.call("acme/viewer", "GET", "/version", nil).is(200)).Version)
}

func TestHealthAndReadiness(t *testing.T) {
	var fault error
	w := newWorld(t, func(d *Deps) { d.Ready = func(context.Context) error { return fault } })
	w.call("", "GET", "///healthz", nil).is(200)
	w.call("", "GET", "///readyz", nil).is(200)
	fault = errors.New("cannot reach 10.0.0.7:3306 as carillon")
	w.call("", "GET", "///healthz", nil).is(200)
	p := w.call("", "GET", "///readyz", nil).problem(http.StatusServiceUnavailable, "unavailable")
	require.NotContains(t, p.Detail, "10.0.0.7")
}

// TestMetricsAreForThisMachine: on the port of pages they are for its programs, also
// behind a proxy that runs there.
func TestMetricsAreForThisMachine(t *testing.T) {
	w := newWorld(t, func(d *Deps) { d.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")} })
	w.call("acme/viewer", "GET", "/jobs", nil).is(200)
	ask := func(peer, name, value string) answer {
		req := httptest.NewRequestWithContext(t.Context(), "GET", "/metrics", nil)
		req.RemoteAddr = peer
		if name != "" {
			req.Header.Set(name, value)
		}
		return w.send(req)
	}
	for _, peer := range []string{"127.0.0.1:1", "[::1]:1", "[::ffff:127.0.0.1]:1"} {
		require.Contains(t, string(ask(peer, "", "").is(200).body), "carillon_http_requests_total")
		for _, name := range []string{"Forwarded", "Via", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-IP"} {
			p := ask(peer, name, "127.0.0.1").problem(403, "permission_denied")
			require.Contains(t, p.Detail, "--metrics-listen")
		}
	}
	for _, peer := range []string{"192.0.2.1:1", "10.0.0.1:1", "[2001:db8::1]:1", "pipe"} {
		require.NotContains(t, string(ask(peer, "", "").is(403).body), "carillon_http_requests_total")
	}
}

func TestMetrics(t *testing.T) {
	w := newWorld(t)
	w.call("acme/viewer", "GET", "/jobs", nil).is(200)
	w.call("acme/viewer", "GET", "/jobs/1", nil).is(404)
	w.call("acme/viewer", "GET", "/jobs/2", nil).is(404)
	w.call("", "BREW", "/jobs", nil)
	text := string(w.metrics().is(200).body)
	require.Contains(t, text, `carillon_http_requests_total{method="GET",route="/api/v1/jobs",status="200"} 1`)
	require.Contains(t, text, `carillon_http_requests_total{method="GET",route="/api/v1/jobs/:id",status="404"} 2`)
	require.Contains(t, text, `method="other"`)
	require.NotContains(t, text, "BREW")
	require.Contains(t, text, "carillon_http_request_seconds_bucket")
}

func TestUnknownAddresses(t *testing.T) {
	pages := http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Cache-Control", "public")
		_, _ = rw.Write([]byte("page " + r.URL.Path))
	})
	w := newWorld(t, func(d *Deps) { d.UI = pages })
	for _, path := range []string{"/api/v1/nothing", "/api/v2/jobs", "/api/"} {
		w.call("", "GET", path, nil).problem(404, "not_found")
	}
	w.call("acme/viewer", "PATCH", "/jobs", nil).problem(http.StatusMethodNotAllowed, "not_found")
	w.call("acme/viewer", "GET", "/jobs/", nil).problem(404, "not_found")
	a := w.call("", "GET", "///jobs/5", nil).is(200)
	require.Equal(t, "page /jobs/5", string(a.body))
	require.Equal(t, "public", a.header.Get("Cache-Control"), "pages set their own headers")
	require.Empty(t, a.header.Get("Content-Security-Policy"))
	require.NotEmpty(t, a.header.Get("X-Request-Id"))

	w = newWorld(t)
	w.call("", "GET", "///jobs/5", nil).problem(404, "not_found")
}

func TestHeaders(t *testing.T) {
	w := newWorld(t)
	for _, a := range []answer{
		w.call("acme/viewer", "GET", "/jobs", nil), w.call("", "GET", "/jobs", nil), w.call("", "GET", "/nothing", nil), w.call("", "GET", "///healthz", nil),
	} {
		require.Equal(t, "nosniff", a.header.Get("X-Content-Type-Options"))
		require.Equal(t, "no-store", a.header.Get("Cache-Control"))
		require.Equal(t, "DENY", a.header.Get("X-Frame-Options"))
		require.Contains(t, a.header.Get("Content-Security-Policy"), "frame-ancestors 'none'")
		require.NotEmpty(t, a.header.Get("X-Request-Id"))
	}
	given := w.call("", "GET", "/jobs", nil, header{"X-Request-Id": "trace-0815-abc"})
	require.Equal(t, "trace-0815-abc", given.problem(401, "unauthenticated").Instance)
	for _, bad := range []string{"short", strings.Repeat("x", 65), "with space in it", "a\"b<c>d&e"} {
		got := w.call("", "GET", "/jobs", nil, header{"X-Request-Id": bad}).header.Get("X-Request-Id")
		require.Regexp(t, "^[0-9a-f]{16}$", got)
	}
}

func TestPanicBecomesAnInternalError(t *testing.T) {
	w := newWorld(t)
	w.api.Plain(web.Public, "GET", "/api/v1/bad", func(*gin.Context) { panic("secret detail") })
	p := w.call("", "GET", "/bad", nil).problem(500, "internal")
	require.NotContains(t, p.Detail, "secret detail")
	require.Contains(t, w.logText(), "secret detail")
	require.Contains(t, w.logText(), p.Instance)
}

func TestFaultsAreHidden(t *testing.T) {
	w := newWorld(t)
	w.deps.Store = brokenStore{w.store}
	w.start()
	p := w.call("acme/viewer", "GET", "/jobs", nil).problem(500, "internal")
	require.NotContains(t, p.Detail, "table jobs")
	require.Contains(t, w.logText(), "no such table jobs")
	a := w.call("acme/viewer", "GET", "/runs", nil)
	p = a.problem(503, "unavailable")
	require.NotContains(t, p.Detail, "10.0.0.7")
	require.Equal(t, "1", a.header.Get("Retry-After"))
}

// brokenStore fails in two ways.
type brokenStore struct{ Store }

func (brokenStore) ListJobs(context.Context, store.ListJobsParams) ([]store.JobView, error) {
	return nil, errors.New("list jobs: no such table jobs")
}

func (brokenStore) ListExecutions(context.Context, store.ListExecutionsParams) ([]store.ExecutionView, error) {
	return nil, domain.Errorf(domain.CodeUnavailable, "list runs: %w", errors.New("dial 10.0.0.7:3306: refused"))
}

func TestServerTimeouts(t *testing.T) {
	var s http.Server
	web.ServerTimeouts(&s)
	require.Equal(t, 5*time.Second, s.ReadHeaderTimeout)
	require.Zero(t, s.WriteTimeout, "runs are waited for up to five minutes")
	require.LessOrEqual(t, s.MaxHeaderBytes, 64<<10)
}

// TestShortListsHavePagesToo: every list takes limit and cursor.
func TestShortListsHavePagesToo(t *testing.T) {
	w := newWorld(t)
	var seen []string
	path := "/users?limit=3"
	for {
		page := into[web.Page[access.User]](w.call("acme/admin", "GET", path, nil).is(200))
		require.LessOrEqual(t, len(page.Items), 3)
		for _, u := range page.Items {
			seen = append(seen, u.Username)
		}
		if page.NextCursor == nil {
			break
		}
		path = "/users?limit=3&cursor=" + *page.NextCursor
	}
	require.ElementsMatch(t, []string{"acme-viewer", "acme-operator", "acme-editor", "acme-scripter", "acme-admin"}, seen)
	far := web.Cursor{List: "users", ID: 1 << 40}.Encode()
	require.Empty(t, into[web.Page[access.User]](w.call("acme/admin", "GET", "/users?cursor="+*far, nil).is(200)).Items)

	e := w.executor("acme", "shop")
	job := w.job("acme", "nightly", e)
	for _, list := range []string{
		"/users", "/api-keys", "/nodes", "/executors", "/jobs", "/runs", "/deliveries",
		"/executors/" + e.ID.String() + "/instances", "/executors/" + e.ID.String() + "/join-tokens", "/jobs/" + job.ID + "/revisions",
	} {
		w.call("acme/admin", "GET", list+"?limit=1", nil).is(200)
	}
	w.call("platform", "GET", "/tenants?limit=1", nil).is(200)
}

// A node that stops says so to balancers first, then to everybody; probes and
// scrapes are answered until the end.
func TestAStoppingNode(t *testing.T) {
	var draining, closing bool
	w := newWorld(t, func(d *Deps) {
		d.Ready = func(context.Context) error { return nil }
		d.Draining, d.Closing = func() bool { return draining }, func() bool { return closing }
	})
	w.call("", "GET", "///readyz", nil).is(200)
	draining = true
	p := w.call("", "GET", "///readyz", nil).problem(http.StatusServiceUnavailable, "unavailable")
	require.Contains(t, p.Detail, "stops")
	w.call("", "GET", "///healthz", nil).is(200)
	w.call("acme/viewer", "GET", "/jobs", nil).is(200)
	closing = true
	answer := w.call("acme/viewer", "GET", "/jobs", nil)
	answer.problem(http.StatusServiceUnavailable, "unavailable")
	w.call("", "GET", "///healthz", nil).is(200)
	w.metrics().is(200)
	w.call("", "GET", "///readyz", nil).problem(http.StatusServiceUnavailable, "unavailable")
}
