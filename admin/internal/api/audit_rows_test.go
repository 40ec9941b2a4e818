package api

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"
	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/addon/audit"
	"github.com/carillon-sched/carillon/admin/internal/api/access"
	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/secret"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore"
)

func init() {
	bounded["list-audit-entries"], bounded["verify-audit-log"] = "large", "computes"
	smallLists["/audit"] = "201 rows of 17 KiB of text"
	addOns = append(addOns, addOn{
		name: "audit",
		routes: func(s *web.Server, d *Deps, _ *Actions) {
			table := auditTable(d)
			if table.DB != nil {
				s.Audit(func(ctx context.Context, e domain.AuditEntry) { _ = table.Record(ctx, e) })
			}
			audit.Routes(s, table)
		},
		objects: func(*world, string) objects { return nil },
		body:    func(string, string) any { return nil },
	})
}

// auditTable is the audit log; empty without a store.
func auditTable(d *Deps) audit.Table {
	s, is := d.Store.(*gormstore.Store)
	if !is {
		return audit.Table{}
	}
	box, _ := d.Secrets.(*secret.Box)
	return audit.NewTable(s.DB, box)
}

// entries are those of a tenant, the oldest first.
func (w *world) entries(tenant domain.TenantID) []domain.ChainedEntry {
	w.t.Helper()
	list, _, err := auditTable(&w.deps).List(w.t.Context(), audit.Filter{Tenant: tenant, Limit: 10_000})
	require.NoError(w.t, err)
	slices.Reverse(list)
	return list
}

// allEntries are those of the cluster and of all tenants.
func (w *world) allEntries() (all []domain.ChainedEntry) {
	w.t.Helper()
	for _, tenant := range append(slices.Collect(maps.Values(w.tenants)), 0) {
		all = append(all, w.entries(tenant)...)
	}
	return all
}

// apart are operations that the test of all operations cannot make end well in a world without
// nodes. Other tests call them, and each test fails if one leaves no entry.
var apart = map[string]string{
	"login": "it needs a password; see TestSignInsAreRecorded", "logout": "it needs a cookie; see TestSignInsAreRecorded",
	"change-password":    "see TestMustChangePassword",
	"accept-invitation":  "it is the invited account's; see TestInvitation",
	"decline-invitation": "likewise",
	"accept-history":     "the database has to be rolled back",
	"confirm-clock":      "the clock has to be held",
	"retry-bulk":         "the bulk operation has to end with items that failed",
	"give-job-back":      "code has to declare the job",
}

// Each operation that writes leaves exactly one entry, in the transaction of its change, and one
// that fails leaves none.
func TestEachWritingOperationLeavesOneEntry(t *testing.T) {
	var routes []string
	ids := map[string]string{}
	described := New(describedDeps())
	operations(described.Document(), func(method, path string, op *huma.Operation) {
		if method != http.MethodGet && described.Unaudited()[op.OperationID] == "" && apart[op.OperationID] == "" {
			routes = append(routes, method+" "+path)
			ids[method+" "+path] = op.OperationID
		}
	})
	slices.Sort(routes)
	for id, why := range described.Unaudited() {
		require.NotEmpty(t, why, id)
	}
	for _, route := range routes {
		t.Run(ids[route], func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			own := w.objectsOf("acme")
			method, path, _ := strings.Cut(route, " ")
			who, tenant := "acme/admin", w.tenants["acme"]
			if described.Policies()[route] == "platform_admin" {
				who, tenant = "platform", 0
			}
			body, needs := matrixBody(method, path), auditedOperations[ids[route]]
			if needs.before != nil {
				needs.before(w, own)
			}
			if needs.body != nil {
				body = needs.body(w, own)
			}
			if ids[route] == "remove-former-name" {
				own["/former-names/{name}"] = "shop"
			}
			before := len(w.allEntries())
			a := w.call(who, method, fill(path, own, nil, -1)+needs.query, body, header{"If-Match": "*"})
			require.Less(t, a.status, 300, "%s", a.body)
			require.Equal(t, before+1, len(w.allEntries()))
			list := w.entries(tenant)
			e := list[len(list)-1]
			require.Equal(t, ids[route], e.Operation)
			require.Equal(t, domain.AuditDone, e.Outcome)
			require.NotEmpty(t, e.Actor)
			require.NotZero(t, e.User)
			require.NotEmpty(t, e.Kind)
			require.Equal(t, a.header.Get("X-Request-Id"), e.Request)
			t.Log(e.Kind, e.AuditObject.ID, e.Name, e.Before, e.After)
			require.Equal(t, orders[ids[route]] == "", e.Before+e.After != "", "what it was and what it is, or the reason in orders")
		})
	}
}

func TestSignInsAreRecorded(t *testing.T) {
	w := newWorld(t)
	created := into[access.UserWithPassword](w.call("acme/admin", "POST", "/users", map[string]any{"username": "new", "role": "viewer"}).is(201))
	w.call("", "POST", "/auth/login", map[string]any{"username": "new", "password": "wrong"}).is(401)
	a := w.call("", "POST", "/auth/login", map[string]any{"username": "new", "password": created.Password}).is(200)
	w.call("", "POST", "/auth/logout", nil, header{"Cookie": strings.Split(a.header.Get("Set-Cookie"), ";")[0]}).is(204)
	w.call("", "POST", "/auth/logout", nil).is(204) // there is nothing to do

	list := w.entries(w.tenants["acme"])
	require.Len(t, list, 3)
	require.Equal(t, []string{"create-user", "login", "logout"}, []string{list[0].Operation, list[1].Operation, list[2].Operation})
	require.Equal(t, created.User.ID, list[0].AuditObject.ID)
	for _, e := range list[1:] {
		require.Equal(t, "new", e.Actor)
		require.Equal(t, created.User.ID, e.User.String())
	}
	for _, e := range list {
		require.NotContains(t, e.After+e.Before+e.Name, created.Password)
	}
	failed := w.entries(0)
	require.Len(t, failed, 1)
	require.Equal(t, [4]string{"login", "refused", "unauthenticated", "new"}, [4]string{failed[0].Operation, failed[0].Outcome, string(failed[0].Code), failed[0].Actor})
}

func TestRefusalsAreRecorded(t *testing.T) {
	w := newWorld(t)
	e := w.executor("acme", "shop")
	w.call("acme/viewer", "DELETE", "/executors/"+e.ID.String(), nil).is(403)
	w.call("acme/viewer", "GET", "/jobs", nil).is(200)
	w.call("acme/viewer", "GET", "/audit", nil).is(403)
	w.call("acme/admin", "GET", "/audit?cluster=true", nil).is(403)
	w.call("", "GET", "/jobs", nil).is(401) // nobody asks
	w.bearers["thief"] = "ck_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
	w.call("thief", "GET", "/jobs", nil).is(401)

	list := w.entries(w.tenants["acme"])
	require.Len(t, list, 3)
	require.Equal(t, "delete-executor", list[0].Operation)
	require.Equal(t, domain.AuditRefused, list[0].Outcome)
	require.Equal(t, domain.CodeDenied, list[0].Code)
	require.Equal(t, [2]string{"executor", e.ID.String()}, [2]string{list[0].Kind, list[0].AuditObject.ID})
	require.Len(t, w.entries(0), 1)
	require.Equal(t, "list-jobs", w.entries(0)[0].Operation)
}

// A change that fails leaves no entry, and neither do data.
func TestFailuresAndDataLeaveNoEntry(t *testing.T) {
	w := newWorld(t)
	own := w.objectsOf("acme")
	before := len(w.entries(w.tenants["acme"]))
	w.call("acme/admin", "POST", "/jobs/12345/pause", map[string]any{}).is(404)
	w.call("acme/admin", "POST", "/executors", map[string]any{"name": "shop"}).is(409)
	w.call("acme/admin", "PUT", "/jobs/"+own["/jobs/{id}"], jobBody("x", domain.Executor{ID: 1}), header{"If-Match": `"7"`}).is(412)
	w.call("acme/admin", "POST", "/timers", map[string]any{"executor": "shop", "handler": "reconcile", "key": "order-9", "after": "1h"}).is(201)
	require.Len(t, w.entries(w.tenants["acme"]), before)
}

func TestAuditListAndVerification(t *testing.T) {
	w := newWorld(t)
	own := w.objectsOf("acme")
	table := auditTable(&w.deps)
	_, err := table.Chain(t.Context())
	require.NoError(t, err)
	all := into[web.Page[audit.AuditEntry]](w.call("acme/admin", "GET", "/audit?limit=200", nil).is(200)).Items
	require.Greater(t, len(all), 10)
	require.True(t, slices.IsSortedFunc(all, func(a, b audit.AuditEntry) int { return strings.Compare(b.At, a.At) }))

	page := into[web.Page[audit.AuditEntry]](w.call("acme/admin", "GET", "/audit?limit=3", nil).is(200))
	require.Equal(t, all[:3], page.Items)
	page = into[web.Page[audit.AuditEntry]](w.call("acme/admin", "GET", "/audit?limit=3&cursor="+*page.NextCursor, nil).is(200))
	require.Equal(t, all[3:6], page.Items)
	for query, want := range map[string]string{
		"object=" + own["/calendars/{id}"]: "create-calendar", "object=report": "create-script", "operation=create-job": "create-job", "kind=api-key": "create-api-key",
	} {
		got := into[web.Page[audit.AuditEntry]](w.call("acme/admin", "GET", "/audit?"+query, nil).is(200)).Items
		require.Len(t, got, 1, query)
		require.Equal(t, want, got[0].Operation)
	}
	require.Empty(t, into[web.Page[audit.AuditEntry]](w.call("acme/admin", "GET", "/audit?actor=nobody", nil).is(200)).Items)
	require.Empty(t, into[web.Page[audit.AuditEntry]](w.call("acme/admin", "GET", "/audit?to=2026-01-02T00:00:00Z", nil).is(200)).Items)
	require.Len(t, into[web.Page[audit.AuditEntry]](w.call("acme/admin", "GET", "/audit?limit=200&from=2026-01-02T00:00:00Z", nil).is(200)).Items, len(all))

	v := into[audit.AuditVerification](w.call("acme/admin", "GET", "/audit/verification", nil).is(200))
	require.Empty(t, v.Faults)
	require.True(t, v.Done)
	require.EqualValues(t, len(all), v.Head.Seq)
	v = into[audit.AuditVerification](w.call("acme/admin", "GET", "/audit/verification?headSeq=9999&headHash=ab", nil).is(200))
	require.Equal(t, "cut", v.Faults[0].Kind)
}

// Each job of an apply has an entry of its own for each change.
func TestAppliedJobsAreRecorded(t *testing.T) {
	w := newWorld(t)
	w.instance(w.executor("acme", "shop"), "one", "reconcile")
	for priority := range 2 {
		w.applied("acme/editor", documentsBody(jobDocument("one", "shop", with("priority", priority)), jobDocument("two", "shop", with("priority", priority))))
	}
	var told []string
	for _, e := range w.entries(w.tenants["acme"]) {
		if e.Operation == "apply-documents" && e.Kind == "job" {
			told = append(told, e.Name)
		}
	}
	slices.Sort(told)
	require.Equal(t, []string{"one", "one", "two", "two"}, told)
	body := documentsBody(jobDocument("one", "shop"))
	body["delete"] = true
	w.applied("acme/editor", body)
	list := w.entries(w.tenants["acme"])
	require.Equal(t, []string{"delete-documents", "one"}, []string{list[len(list)-1].Operation, list[len(list)-1].Name})
}

// A filter that finds nothing because there is no such kind or operation says so.
func TestAuditFiltersKnowTheirWords(t *testing.T) {
	w := newWorld(t)
	for query, hint := range map[string]string{"kind=jbo": `"job"`, "operation=delet-job": `"delete-job"`} {
		a := w.call("acme/admin", "GET", "/audit?"+query, nil).is(422)
		p := into[web.Problem](a)
		require.Equal(t, "query."+query[:strings.Index(query, "=")], p.Errors[0].Location)
		require.Contains(t, p.Errors[0].Hint, hint)
	}
	for _, query := range []string{"kind=job", "kind=document+set", "kind=run", "kind=session", "kind=calendar", "operation=delete-job", "operation=provision", "operation=first-start", "operation=get-job"} {
		w.call("acme/admin", "GET", "/audit?object=none&"+query, nil).is(200)
	}
}
