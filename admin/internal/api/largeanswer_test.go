package api

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/gormtest"
	"github.com/carillon-sched/carillon/admin/internal/store/storetest"
)

// fatten makes everything of a tenant as large as it may be, and returns how many items
// lists have then.
func (w *world) fatten(own objects) (items map[string]int) {
	w.t.Helper()
	const many = 12
	admin, force := "acme/admin", header{"If-Match": "*"}
	large := map[string]any{"s": strings.Repeat("x", 250<<10)}
	job, executor := own["/jobs/{id}"], domain.Executor{ID: mustID[domain.ExecutorID](w.t, own["/executors/{id}"]), TenantID: w.tenants["acme"]}
	for i := range many {
		w.call(admin, "PUT", "/jobs/"+job, jobBody("nightly", executor, with("input", large), with("description", fmt.Sprint(i))), force).is(http.StatusOK)
		w.call(admin, "POST", "/timers", map[string]any{"executor": "shop", "handler": "reconcile", "key": fmt.Sprint("large-", i), "after": "2h", "input": large}).is(http.StatusCreated)
		days := make([]map[string]any, 900)
		for d := range days {
			date := time.Date(2026, 1, 1+d, 0, 0, 0, 0, time.UTC)
			days[d] = map[string]any{"date": date.Format(time.DateOnly), "name": fmt.Sprintf("%04d-%s", i, strings.Repeat("n", 150))}
		}
		w.call(admin, "PUT", "/calendars/"+own["/calendars/{id}"], calendarBody("holidays", map[string]any{"holidays": days}), force).is(http.StatusOK)
		w.call(admin, "PUT", "/scripts/"+own["/scripts/{id}"], scriptBody("report", "shell", fmt.Sprintf("true # %d%s", i, strings.Repeat("x", 60<<10)), ""), force)
	}
	stored, err := w.store.FindJob(w.t.Context(), executor.TenantID, mustID[domain.JobID](w.t, job))
	require.NoError(w.t, err)
	handlers := make([]domain.Handler, many)
	names := make([]string, many)
	for i := range many {
		p := domain.Proposal{ID: w.ids.Next(), TenantID: executor.TenantID, Executor: executor.ID, Name: fmt.Sprint("proposed-", i), Hash: "h", Spec: stored.Spec}
		p.Spec.Name = p.Name
		require.NoError(w.t, w.store.Propose(w.t.Context(), p))
		names[i] = fmt.Sprint("handler-", i)
		handlers[i] = domain.Handler{Name: names[i], InputSchema: fmt.Appendf(nil, `{"type":"object","description":"%s"}`, strings.Repeat("d", 200<<10))}
	}
	_, err = storetest.RegisterInstance(w.t.Context(), w.store, store.RegisterInstanceParams{
		TTL: time.Minute,
		Instance: domain.Instance{
			ID: domain.InstanceID(w.ids.Next()), TenantID: executor.TenantID, Executor: executor.ID, BootID: "large", Name: "large", AppVersion: "9", Build: "large", Handlers: names, Slots: 8,
		},
		Build: domain.Build{Digest: "large", Version: "9", Handlers: names, Catalogue: []byte("{}")}, Handlers: handlers,
	})
	require.NoError(w.t, err)
	for i := range 40 {
		w.call(admin, "POST", "/timers", map[string]any{"executor": "shop", "handler": "reconcile", "key": fmt.Sprint("many-", i), "after": "2h", "input": large}).is(http.StatusCreated)
		w.call(admin, "POST", "/jobs", jobBody(fmt.Sprint("large-", i), executor, with("input", large))).is(http.StatusCreated)
	}
	w.fattenCalendars(own, executor)
	w.fattenInstances(own)
	run, err := w.store.FindExecution(w.t.Context(), executor.TenantID, mustID[domain.ExecutionID](w.t, own["/runs/{id}"]))
	require.NoError(w.t, err)
	for i := range 40 {
		w.write(run.Execution, int64(i)+1, strings.Repeat("l", 59<<10))
	}
	lengths := map[string]int{
		"/jobs/{id}/revisions": many + 3, "/calendars/{id}/versions": many + 1, "/timers": many + 41, "/job-proposals": many + 2,
		"/executors/{id}/handlers": many + 1, "/scripts/{id}/versions": many + 1, "/scripts": 1,
		"/jobs": 42, "/job-documents": 42, "/calendars": 9, "/executors/{id}/instances": largeInstances + 2, "/instances": largeInstances + 2,
	}
	for _, a := range addOns {
		if a.fatten != nil {
			maps.Copy(lengths, a.fatten(w, executor.TenantID, job))
		}
	}
	return lengths
}

// fattenCalendars makes a job, its revisions and a proposal with the calendars with most days.
func (w *world) fattenCalendars(own objects, executor domain.Executor) {
	w.t.Helper()
	days := make([]map[string]any, 4500)
	for d := range days {
		days[d] = map[string]any{"date": time.Date(2026, 1, 1+d, 0, 0, 0, 0, time.UTC).Format(time.DateOnly), "name": strings.Repeat("n", 150)}
	}
	uses := make([]map[string]any, 8)
	for i := range uses {
		made := into[calendarAnswer](w.call("acme/admin", "POST", "/calendars", calendarBody(fmt.Sprint("large-", i), map[string]any{"holidays": days})).is(http.StatusCreated))
		uses[i] = map[string]any{"id": made.ID}
	}
	schedule := map[string]any{"kind": "cron", "expr": "0 2 * * *", "zone": "Asia/Shanghai", "calendars": uses}
	job := w.job("acme", "calendars", executor, with("schedule", schedule))
	w.call("acme/admin", "PUT", "/jobs/"+job.ID, jobBody("calendars", executor, with("schedule", schedule), with("description", "newest")), header{"If-Match": "*"}).is(http.StatusOK)
	own["/jobs/{id}/revisions"] = job.ID
	stored, err := w.store.FindJob(w.t.Context(), executor.TenantID, mustID[domain.JobID](w.t, job.ID))
	require.NoError(w.t, err)
	p := domain.Proposal{ID: w.ids.Next(), TenantID: executor.TenantID, Executor: executor.ID, Name: "proposed-calendars", Hash: "h", Spec: stored.Spec}
	p.Spec.Name = p.Name
	require.NoError(w.t, w.store.Propose(w.t.Context(), p))
}

// largeInstances is how many there are. All of them together have more than maxHanded.
const largeInstances = 24

// fattenInstances gives an executor of its own instances with many handlers.
func (w *world) fattenInstances(own objects) {
	w.t.Helper()
	fleet := w.executor("acme", "fleet")
	own["/executors/{id}/instances"] = fleet.ID.String()
	names := make([]string, store.MaxHandlers)
	for i := range names {
		names[i] = fmt.Sprintf("%04d-%s", i, strings.Repeat("h", 110))
	}
	for i := range largeInstances {
		name := fmt.Sprint("fleet-", i)
		_, err := storetest.RegisterInstance(w.t.Context(), w.store, store.RegisterInstanceParams{
			TTL: time.Hour, Instance: domain.Instance{
				ID: domain.InstanceID(w.ids.Next()), TenantID: fleet.TenantID, Executor: fleet.ID, BootID: name, Name: name, Handlers: names, Slots: 8, LastSeenAt: time.Now(),
			},
		})
		require.NoError(w.t, err)
	}
}

// smallLists are the lists that fatten leaves as they are, with the bound of their bytes.
var smallLists = map[string]string{
	"/jobs/overdue": "200 rows of names", "/fires": "744 counts, and 200 names with 10 times each", "/tenant-documents": "one row", "/cell-documents": "1,000 rows of 4 KiB of text at most", "/member-documents": "201 rows of 60 names each", "/executor-documents": "201 rows of 2 KiB of text",
	"/runs": "201 rows without inputs, of 3 KiB of text", "/runs/{id}/parts": "200 rows without inputs, of 3 KiB of text", "/runs/{id}/log": "fatten writes 2 MiB of lines",
	"/jobs/{id}/events": "1,000 rows of 1 KiB of text", "/jobs/{id}/backfills": "201 rows of 2 KiB of text", "/maintenance": "one row for each executor and tenant, and those of 30 days",
	"/api-keys": "a quota, and 200 that are revoked, of 60 names each", "/executors": "201 rows of 2 KiB of text", "/executors/{id}/denials": "500 rows of 1 KiB of text",
	"/executors/{id}/join-tokens": "500 rows of names", "/invitations": "a tenant has 100", "/me/invitations": "a user has one for each tenant",
	"/script-policy/history": "200 rows of 5 KiB of text", "/calendars/{id}/jobs": "1,000 rows of names", "/deleted-calendars": "1,000 rows of names", "/deleted-jobs": "1,000 rows of names", "/deleted-executors": "1,000 rows of names", "/deleted-scripts": "1,000 rows of names", "/scripts/{id}/jobs": "1,000 rows of names",
	"/limits": "one row for each executor", "/retention/rules": "one row for each job with a rule", "/run-purges": "rows of names and times",
	"/users": "a quota, and rows of names", "/cells": "platform administrators add them", "/tenants": "platform administrators add them", "/nodes": "one row for each node",
}

// maxHanded bounds what the database hands out for one request, in bytes.
const maxHanded = 4 << 20

// fileBytes is gormtest.FileBytes, or 0 where the system does not tell.
func fileBytes() int64 {
	n, _ := gormtest.FileBytes()
	return n
}

// forget gives the API a store without cached specs and pages.
func (w *world) forget() {
	w.t.Helper()
	o := w.options
	o.MaxSpecs = 1
	st, err := gormstore.Open(w.t.Context(), o)
	require.NoError(w.t, err)
	w.t.Cleanup(func() { require.NoError(w.t, st.Close()) })
	w.store, w.deps.Store = st, st
	w.addAddOns()
	w.start()
}

// Every answer that is no stream has at most 2 MiB, and the database hands out at most
// maxHanded for it, with the largest objects that a tenant may store. The pages of a list together have all of its items.
func TestLargeAnswersAreBounded(t *testing.T) {
	w := newWorld(t)
	own := w.objectsOf("acme")
	items := w.fatten(own)
	w.forget()
	described := New(describedDeps())
	read := 0
	var lists []string
	operations(described.Document(), func(method, path string, op *huma.Operation) {
		if method != http.MethodGet || strings.HasSuffix(path, "/download") {
			return
		}
		limit := ""
		for _, p := range op.Parameters {
			if p.Name == "limit" {
				limit = fmt.Sprintf("limit=%.0f", *p.Schema.Maximum)
				lists = append(lists, strings.TrimPrefix(path, web.Base))
			}
		}
		addresses := []string{fill(path, own, own, -1)}
		if id, parent := own[strings.TrimPrefix(path, web.Base)], strings.TrimPrefix(path[:strings.LastIndex(path, "/")], web.Base); id != "" && own[parent] != "" {
			addresses = append(addresses, web.Base+strings.Replace(parent, "{id}", id, 1)+path[strings.LastIndex(path, "/"):])
		}
		seen := 0
		for i, address := range addresses {
			most := int64(maxHanded)
			if i > 0 { // the job by itself has eight calendars
				most += 8 << 20
			}
			seen += w.readAll(path, address+matrixQuery[path], limit, most)
			read++
		}
		if want, is := items[strings.TrimPrefix(path, web.Base)]; is {
			require.Equal(t, want, seen, path)
		}
		if strings.HasSuffix(path, "/log") {
			require.Equal(t, 40, seen)
		}
	})
	require.Greater(t, read, 60)
	for _, path := range lists {
		_, large := items[path]
		require.True(t, large != (smallLists[path] != ""), "%s: let fatten make its rows as large as they may be, or say in smallLists what bounds them", path)
	}
}

// readAll gets all pages of a list, or an answer that has one, and returns how many items
// they have.
func (w *world) readAll(path, address, limit string, most int64) (seen int) {
	w.t.Helper()
	separator := "?"
	if strings.Contains(address, "?") {
		separator = "&"
	}
	for cursor := ""; ; {
		handed, file := w.handed.Bytes(), fileBytes()
		a := w.call("acme/admin", http.MethodGet, address+separator+limit+cursor, nil)
		handed, file = w.handed.Bytes()-handed, fileBytes()-file
		require.LessOrEqual(w.t, handed, most, path)
		if strings.HasSuffix(path, "/timers") { // SQLite reads no input that the page has no room for
			require.LessOrEqual(w.t, file, int64(maxHanded), path)
		}
		require.LessOrEqual(w.t, len(a.body), 2<<20, "%s: %d", path, a.status)
		if a.status != http.StatusOK {
			require.Less(w.t, a.status, 500, "%s: %.300s", path, a.body)
			require.NotEqual(w.t, http.StatusUnprocessableEntity, a.status, "%s: %.300s", path, a.body)
			return seen
		}
		var page struct {
			Items      []json.RawMessage `json:"items"`
			NextCursor *string           `json:"nextCursor"`
			Lines      []json.RawMessage `json:"lines"`
			Next       int64             `json:"next"`
			LastLine   int64             `json:"lastLine"`
		}
		_ = json.Unmarshal(a.body, &page) // it may be of another shape
		seen += len(page.Items) + len(page.Lines)
		switch {
		case page.NextCursor != nil:
			cursor = "&cursor=" + *page.NextCursor
		case page.Next < page.LastLine:
			cursor = fmt.Sprint("&after=", page.Next)
		default:
			return seen
		}
	}
}
