package api

import (
	"encoding/json"
	"fmt"
	"log/slog"
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
		w.call(admin, "PUT", "/calendars/"+own["/calendars/{id}"], map[string]any{"name": "holidays", "holidays": days}, force).is(http.StatusOK)
		w.call(admin, "PUT", "/scripts/"+own["/scripts/{id}"], map[string]any{"content": fmt.Sprintf("true # %d%s", i, strings.Repeat("x", 60<<10))}, force)
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
	run, err := w.store.FindExecution(w.t.Context(), executor.TenantID, mustID[domain.ExecutionID](w.t, own["/runs/{id}"]))
	require.NoError(w.t, err)
	for i := range 40 {
		w.write(run.Execution, int64(i)+1, strings.Repeat("l", 59<<10))
	}
	return map[string]int{
		"/jobs/{id}/revisions": many + 1, "/calendars/{id}/versions": many + 1, "/timers": many + 41, "/job-proposals": many + 1,
		"/executors/{id}/handlers": many + 1, "/scripts/{id}/revisions": many + 1,
	}
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
	w.start()
}

// Every answer that is no stream has at most 2 MiB, and the database hands out at most
// maxHanded for it, with the largest objects that a tenant may store. The pages of a list together have all of its items.
func TestLargeAnswersAreBounded(t *testing.T) {
	w := newWorld(t)
	own := w.objectsOf("acme")
	items := w.fatten(own)
	w.forget()
	described, err := New(Deps{Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	read := 0
	operations(described.Document(), func(method, path string, op *huma.Operation) {
		if method != http.MethodGet || strings.HasSuffix(path, "/download") {
			return
		}
		limit := ""
		for _, p := range op.Parameters {
			if p.Name == "limit" {
				limit = fmt.Sprintf("limit=%.0f", *p.Schema.Maximum)
			}
		}
		address := fill(path, own, own, -1) + matrixQuery[path]
		separator := map[bool]string{true: "&", false: "?"}[strings.Contains(address, "?")]
		seen := 0
		for cursor := ""; ; {
			handed, file := w.handed.Bytes(), fileBytes()
			a := w.call("acme/admin", method, address+separator+limit+cursor, nil)
			handed, file = w.handed.Bytes()-handed, fileBytes()-file
			require.LessOrEqual(t, handed, int64(maxHanded), path)
			if strings.HasSuffix(path, "/timers") { // SQLite reads no input that the page has no room for
				require.LessOrEqual(t, file, int64(maxHanded), path)
			}
			read++
			require.LessOrEqual(t, len(a.body), 2<<20, "%s: %d", path, a.status)
			if a.status != http.StatusOK {
				require.Less(t, a.status, 500, "%s: %.300s", path, a.body)
				require.NotEqual(t, http.StatusUnprocessableEntity, a.status, "%s: %.300s", path, a.body)
				break
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
				cursor = ""
			}
			if cursor == "" {
				break
			}
		}
		if want, is := items[strings.TrimPrefix(path, web.Base)]; is {
			require.Equal(t, want, seen, path)
		}
		if strings.HasSuffix(path, "/log") {
			require.Equal(t, 40, seen)
		}
	})
	require.Greater(t, read, 90)
}
