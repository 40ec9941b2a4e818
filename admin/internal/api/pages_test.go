package api

import (
	"database/sql/driver"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/benchdata"
	"github.com/carillon-sched/carillon/internal/testenv"
)

// pageRequest is a request of a page. The database reads at most rows entries of indexes and
// tables for it, and perJob more for each job of the tenant.
type pageRequest struct {
	path         string
	rows, perJob int64
}

// largeTenant is a tenant with many jobs and their runs of 30 days.
type largeTenant struct {
	*world
	jobs      []domain.Job
	executors []domain.ExecutorID
	until     time.Time
}

// newLargeTenant fills the tenant acme. On MariaDB nothing else uses the server.
func newLargeTenant(t *testing.T, kind string, jobs int) *largeTenant {
	w := &largeTenant{world: newWorld(t), until: time.Now().UTC().Truncate(time.Second)}
	ctx := t.Context()
	if kind == "mysql" {
		o := w.options
		o.Driver, o.DSN = "mysql", testenv.PrivateServer(t).Database(t)
		require.NoError(t, gormstore.Migrate(ctx, o))
		st, err := gormstore.Open(ctx, o)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, st.Close()) })
		require.NoError(t, st.CreateTenant(ctx, domain.Tenant{ID: w.tenants["acme"], Name: "acme", CreatedAt: time.Now()}))
		w.store, w.deps.Store = st, st
		w.addAddOns()
		w.start()
	}
	for i := range 12 {
		id := domain.ExecutorID(w.ids.Next())
		require.NoError(t, w.store.CreateExecutor(ctx, domain.Executor{ID: id, TenantID: w.tenants["acme"], Name: fmt.Sprintf("executor-%02d", i)}))
		w.executors = append(w.executors, id)
	}
	began := time.Now()
	var err error
	w.jobs, err = benchdata.Plant(ctx, w.store.DB, benchdata.Seed{Tenant: w.tenants["acme"], Executors: w.executors, Jobs: jobs, Until: w.until, NewID: w.ids.Next})
	require.NoError(t, err)
	planted := time.Since(began)
	for more := true; more; {
		if more, err = w.store.CountEnds(ctx, 0); domain.Is(err, domain.CodeUnavailable) {
			more = true // on a busy machine a transaction takes too long, and the next one is smaller
			continue
		}
		require.NoError(t, err)
	}
	t.Logf("%s: %d jobs and their runs in %s, counted in %s", kind, jobs, planted.Round(time.Millisecond), (time.Since(began) - planted).Round(time.Millisecond))
	if kind == "mysql" { // which it does by itself in time
		_, err = w.store.Write.ExecContext(ctx, "ANALYZE TABLE jobs, triggers, executions, attempts, statistics, failure_counts, job_weeks, job_revisions")
		require.NoError(t, err)
	}
	return w
}

// requests are those of the pages, with their parameters, filters, orders and last pages.
func (w *largeTenant) requests() []pageRequest {
	job, executor := w.jobs[0].ID.String(), w.executors[1].String()
	ago := func(d time.Duration) string { return url.QueryEscape(w.until.Add(-d).Format(time.RFC3339)) }
	day := 24 * time.Hour
	end := func(list, name string, at int64) string {
		return "&cursor=" + *web.Cursor{List: list, Name: name, At: at, ID: 1}.Encode()
	}
	run, err := w.store.ListExecutions(w.t.Context(), store.ListExecutionsParams{Tenant: w.tenants["acme"], States: []domain.State{domain.Failed}, Limit: 1})
	require.NoError(w.t, err)
	require.Len(w.t, run, 1)
	mark, _ := domain.ErrorOf(&run[0].Execution)
	id := run[0].ID.String()
	// A page of 50 jobs with 20 runs each reads these, their attempts, revisions and weeks.
	const page = 4000
	out := []pageRequest{
		{"/overview", 8000, 12}, {"/statistics?step=hour&from=" + ago(day), 3000, 0}, {"/jobs/overdue", 1000, 0},
		{"/statistics?step=day&from=" + ago(30*day), 20_000, 0},

		{"/jobs?recent=20", page, 0}, {"/jobs?recent=20&total=true", page, 7}, {"/jobs?recent=20" + end("jobs/name", "tax-0", 0), page, 0},
		{"/jobs?recent=20&q=pay", page, 3}, {"/jobs?recent=20&q=none+such", page, 3}, {"/jobs?recent=20&executorId=" + executor, page, 3},
		{"/jobs?recent=20&label=team%3Dtax", page, 3}, {"/jobs?recent=20&owner=tax", page, 3}, {"/jobs?recent=20&handler=handle-07", page, 3},
		{"/jobs?recent=20&state=enabled", page, 3}, {"/jobs?recent=20&state=paused", page, 3}, {"/jobs?recent=20&state=failing", page, 4},
		{"/jobs?recent=20&state=late", page, 4}, {"/jobs?recent=20&state=never_fires", page, 4}, {"/jobs?recent=20&sort=nextFireAt", page, 2},
		{"/jobs?recent=20&sort=updatedAt", page, 0}, {"/jobs?recent=20&sort=updatedAt" + end("jobs/updatedAt", "", 1), page, 1},
		{"/jobs/counts", 100, 12}, {"/jobs/counts?q=pay", 100, 12}, {"/jobs/counts?groupBy=executor", 1000, 15}, {"/jobs/counts?groupBy=owner&state=failing", 1000, 15},
		{"/jobs/counts?groupBy=label", 1000, 15},

		{"/jobs/" + job + "?recent=60", 10_000, 0}, {"/jobs/" + job + "/statistics?step=hour&from=" + ago(7*day), 3000, 0},
		{"/jobs/" + job + "/statistics?step=day&from=" + ago(30*day), 3000, 0}, {"/jobs/" + job + "/statistics?groupBy=error&from=" + ago(7*day), 3000, 1},
		{"/jobs/" + job + "/next-fires?n=5", 200, 0}, {"/jobs/" + job + "/events", 200, 0}, {"/jobs/" + job + "/revisions?limit=100", 200, 0},
		{"/runs?jobId=" + job + "&cause=schedule&limit=20", 500, 0}, {"/runs?jobId=" + job + "&limit=200", 1500, 0},

		{"/runs", 3000, 0}, {"/runs?total=true", 100_000, 0}, {"/runs?state=failed", 1000, 0}, {"/runs?state=succeeded&total=true", 100_000, 0},
		{"/runs?state=due,running", 200, 0}, {"/runs?state=cancelled", 200, 0}, {"/runs?q=pay", 50_000, 1}, {"/runs?executorId=" + executor, 1000, 0},
		{"/runs?executorId=" + executor + "&state=failed", 45_000, 0}, {"/runs?from=" + ago(20*day) + "&to=" + ago(19*day), 3000, 0},
		{"/runs?fingerprint=" + mark.String(), 3000, 1}, {"/runs?cause=manual", 50_000, 0}, {"/runs?q=none+such", 50_000, 3}, {"/runs?error=deadlock", 50_000, 0},
		{"/runs?label=team%3Dtax&q=tax-0000", 50_000, 3}, {"/runs?cursor=" + *web.Cursor{List: "runs", ID: domain.IDFloor(w.until.Add(-29 * day))}.Encode(), 3000, 0},
		{"/statistics?groupBy=error&from=" + ago(7*day), 500, 12}, {"/statistics?groupBy=job&from=" + ago(7*day), 2000, 12},
		{"/statistics?groupBy=executor&from=" + ago(7*day), 20_000, 12}, {"/statistics?groupBy=label&from=" + ago(7*day), 2000, 12},

		{"/runs/" + id, 200, 0}, {"/runs/" + id + "/log", 200, 0}, {"/runs/" + id + "/parts", 200, 0}, {"/runs/" + id + "/explain", 5000, 0},

		{"/executors?limit=200", 1000, 0}, {"/executors?q=executor&limit=200", 1000, 0}, {"/executors/" + executor, 200, 0}, {"/executors/" + executor + "/instances", 200, 0},
		{"/executors/" + executor + "/statistics?step=hour&from=" + ago(day), 3000, 0}, {"/instances", 200, 0}, {"/maintenance?limit=100", 200, 0},

		{"/calendars", 200, 0}, {"/fires?bucket=1h&from=" + ago(-time.Hour) + "&to=" + ago(-7*day), 500, 5}, {"/fires?bucket=1m&limit=50&from=" + ago(0) + "&to=" + ago(-time.Hour), 500, 5},
		{"/timers?state=pending", 200, 0}, {"/timers/count", 200, 0}, {"/timers/statistics?step=hour", 500, 0},
		{"/search?q=pay", 1000, 4}, {"/search?q=" + id, 1000, 4}, {"/search?q=team%3Dtax", 3000, 8},
	}
	for _, sort := range []string{"failures", "lateness", "p95"} {
		// The last page has read all jobs without failures, and all without a week.
		out = append(out, pageRequest{"/jobs?recent=20&sort=" + sort, page, 0}, pageRequest{"/jobs?recent=20&sort=" + sort + end("jobs/"+sort, "", 0), page, 5},
			pageRequest{"/jobs?recent=20&sort=" + sort + "&q=pay", page, 3}, pageRequest{"/jobs?recent=20&state=failing&sort=" + sort, page, 4})
	}
	return out
}

// rowsRead is how many entries of indexes and tables the server has read.
func (w *largeTenant) rowsRead() (sum int64) {
	rows, err := w.store.Read.QueryContext(w.t.Context(), "SHOW GLOBAL STATUS LIKE 'Handler_read%'")
	require.NoError(w.t, err)
	defer rows.Close()
	for rows.Next() {
		var name string
		var n int64
		require.NoError(w.t, rows.Scan(&name, &n))
		if name != "Handler_read_rnd_deleted" {
			sum += n
		}
	}
	require.NoError(w.t, rows.Err())
	return sum
}

// scans are the tables that SQLite reads from one end to the other for a query. Tables without
// rows of a tenant, and queries in parentheses, are left out.
func (w *largeTenant) scans(query string, args []driver.NamedValue) (found []string) {
	values := make([]any, len(args))
	for i := range args {
		values[i] = args[i].Value
	}
	rows, err := w.store.Read.QueryContext(w.t.Context(), "EXPLAIN QUERY PLAN "+query, values...)
	require.NoError(w.t, err, query)
	defer rows.Close()
	for rows.Next() {
		var id, parent, unused int
		var detail string
		require.NoError(w.t, rows.Scan(&id, &parent, &unused, &detail))
		words := strings.Fields(detail)
		if len(words) < 2 || words[0] != "SCAN" {
			continue
		}
		for _, table := range []string{"jobs", "triggers", "executions", "attempts", "statistics", "failure_counts", "job_weeks", "job_revisions", "job_slots", "timers"} {
			if words[1] == table || strings.Contains(query, table+" AS "+words[1]+" ") {
				found = append(found, detail)
			}
		}
	}
	require.NoError(w.t, rows.Err())
	return found
}

// pages asks each request twice. No request scans a table, or reads more rows than it may.
func (w *largeTenant) pages(t *testing.T) {
	jobs := int64(len(w.jobs))
	mysql := w.store.Dialect.Name() == "mysql"
	for _, r := range w.requests() {
		var queries []string
		var arguments [][]driver.NamedValue
		var took [2]time.Duration
		var read int64
		for i := range took {
			if mysql {
				read = -w.rowsRead()
			}
			if i == 0 && !mysql {
				w.handed.Ask(func(query string, args []driver.NamedValue) {
					queries, arguments = append(queries, query), append(arguments, args)
				})
			}
			began := time.Now()
			w.call("acme/admin", http.MethodGet, r.path, nil).is(http.StatusOK)
			took[i] = time.Since(began)
			w.handed.Ask(nil)
			if mysql {
				read += w.rowsRead()
			}
		}
		t.Logf("%7.1f ms %7.1f ms %8d rows  %s", float64(took[0].Microseconds())/1000, float64(took[1].Microseconds())/1000, read, r.path)
		if mysql && read > r.rows+r.perJob*jobs {
			t.Errorf("%s reads %d rows: %d and %d for each of %d jobs are allowed", r.path, read, r.rows, r.perJob, jobs)
		}
		for i := range queries {
			if found := w.scans(queries[i], arguments[i]); len(found) > 0 {
				t.Errorf("%s: %s:\n%s", r.path, strings.Join(found, ", "), queries[i])
			}
		}
	}
}

// TestRunsWithoutAnIndex: with a filter that no index answers pages can be short, and together
// they have all.
func TestRunsWithoutAnIndex(t *testing.T) {
	w := newLargeTenant(t, "sqlite", 300)
	for path, condition := range map[string]string{
		"/runs?error=e&limit=200": "error LIKE '%e%'", "/runs?cause=manual": "cause = 'manual'", "/runs?executorId=" + w.executors[3].String() + "&state=failed": fmt.Sprintf("executor_id = %d AND state = %d", w.executors[3], domain.Failed),
	} {
		var want int
		require.NoError(t, w.store.Read.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM executions WHERE "+condition).Scan(&want))
		seen, pages := map[string]bool{}, 0
		for cursor := ""; ; {
			page := into[web.Page[Run]](w.call("acme/admin", http.MethodGet, path+cursor, nil).is(http.StatusOK))
			pages++
			for i := range page.Items {
				require.False(t, seen[page.Items[i].ID], "%s has run %s twice", path, page.Items[i].ID)
				seen[page.Items[i].ID] = true
			}
			if page.NextCursor == nil {
				break
			}
			cursor = "&cursor=" + *page.NextCursor
		}
		require.Len(t, seen, want, path)
		if strings.Contains(path, "manual") {
			require.Equal(t, 2, pages, "20,000 runs, and the rest")
		}
	}
}

// TestPagesReadBoundedRows has 300 jobs with 30,000 runs. The proof has 10,000 with a million.
func TestPagesReadBoundedRows(t *testing.T) {
	for _, kind := range []string{"sqlite", "mysql"} {
		t.Run(kind, func(t *testing.T) { newLargeTenant(t, kind, 300).pages(t) })
	}
}

// TestCountsAndStates: each count is the length of the list with its state, and each order has
// all jobs once.
func TestCountsAndStates(t *testing.T) {
	w := newLargeTenant(t, "sqlite", 300)
	all := func(query string) (ids []string, items []Job) {
		for cursor := ""; ; {
			page := into[web.Page[Job]](w.call("acme/viewer", http.MethodGet, "/jobs?recent=1&limit=37&"+query+cursor, nil).is(http.StatusOK))
			for i := range page.Items {
				ids = append(ids, page.Items[i].ID)
			}
			if items = append(items, page.Items...); page.NextCursor == nil {
				return ids, items
			}
			cursor = "&cursor=" + *page.NextCursor
		}
	}
	counts := into[JobTotals](w.call("acme/viewer", http.MethodGet, "/jobs/counts?groupBy=executor", nil).is(http.StatusOK))
	require.Equal(t, 300, counts.All)
	require.Len(t, counts.Groups, 12)
	require.Equal(t, JobGroup{ID: w.executors[0].String(), Name: "executor-00", Jobs: 25}, counts.Groups[0])
	for state, want := range map[string]int{"failing": counts.Failing, "late": counts.Late, "paused": counts.Paused, "never_fires": counts.NeverFires} {
		require.Positive(t, want, state)
		for _, sort := range []string{"name", "failures", "p95"} {
			ids, _ := all("state=" + state + "&sort=" + sort)
			require.Len(t, ids, want, "%s by %s", state, sort)
		}
		one := into[JobTotals](w.call("acme/viewer", http.MethodGet, "/jobs/counts?groupBy=label&top=200&state="+state, nil).is(http.StatusOK))
		require.Equal(t, counts.All, one.All, "states do not count")
		for _, group := range one.Groups {
			ids, _ := all("state=" + state + "&label=" + url.QueryEscape(group.Name))
			require.Len(t, ids, group.Jobs, group.Name)
		}
	}
	owners := into[JobTotals](w.call("acme/viewer", http.MethodGet, "/jobs/counts?groupBy=owner&top=3", nil).is(http.StatusOK))
	require.Len(t, owners.Groups, 3)
	require.True(t, owners.MoreGroups)
	for _, group := range owners.Groups {
		ids, _ := all("owner=" + url.QueryEscape("="+group.Name))
		require.Len(t, ids, group.Jobs, group.Name)
	}

	names, _ := all("sort=name")
	value := map[string]func(*JobStats) *int64{
		"failures": func(s *JobStats) *int64 { return &s.Failed }, "lateness": func(s *JobStats) *int64 { return s.Late }, "p95": func(s *JobStats) *int64 { return s.P95 },
	}
	for sort, of := range value {
		ids, items := all("sort=" + sort)
		require.ElementsMatch(t, names, ids, sort)
		last := int64(1 << 62)
		for i := range items {
			at := int64(-1)
			if items[i].Stats7d != nil && of(items[i].Stats7d) != nil {
				at = *of(items[i].Stats7d)
			}
			require.LessOrEqual(t, at, last, "%s: job %d", sort, i)
			last = at
		}
	}
	// A list and a job say the same of a week.
	_, items := all("sort=failures")
	for _, i := range []int{0, 1, 150} {
		job := into[Job](w.call("acme/viewer", http.MethodGet, "/jobs/"+items[i].ID, nil).is(http.StatusOK))
		require.Equal(t, []int64{job.Stats7d.Runs, job.Stats7d.Failed}, []int64{items[i].Stats7d.Runs, items[i].Stats7d.Failed})
		require.InEpsilon(t, *job.Stats7d.P95, *items[i].Stats7d.P95, 0.06)
	}
	require.Equal(t, "query.sort", w.call("acme/viewer", http.MethodGet, "/jobs?sort=late", nil).problem(422, "validation_failed").Errors[0].Location)
}
