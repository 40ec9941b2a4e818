package gormstore

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

// explainAll explains each statement.
type explainAll struct{ *explainer }

func (e explainAll) QueryContext(ctx context.Context, statement string, args ...any) (*sql.Rows, error) {
	e.seen++
	e.explain(ctx, statement, args...)
	return e.s.Read.QueryContext(ctx, statement, args...)
}

// found are the names of a page.
func found(page domain.FoundPage, err error) func(*testing.T) []string {
	return func(t *testing.T) []string {
		t.Helper()
		require.NoError(t, err)
		return domain.Collect(page.Items, func(f *domain.Found) string { return f.Name })
	}
}

// No search scans a table.
func TestSearchesUseTheirIndexes(t *testing.T) {
	for name, options := range bothDatabases {
		t.Run(name, func(t *testing.T) {
			s := openStore(t, options(t))
			newWorld(t, s, 30, domain.BlockParallel) // another tenant
			w := &world{tb: t, s: s, ids: domain.NewIDSource(8, time.Now)}
			w.tenant, w.executor = domain.TenantID(w.ids.Next()), domain.ExecutorID(w.ids.Next())
			ctx := t.Context()
			require.NoError(t, s.CreateTenant(ctx, domain.Tenant{ID: w.tenant, Name: "found"}))
			require.NoError(t, s.CreateExecutor(ctx, domain.Executor{ID: w.executor, TenantID: w.tenant, Name: "shop", Description: "sells"}))
			job := func(name string, labels map[string]string) domain.JobID {
				j, err := s.CreateJob(ctx, domain.Job{ID: domain.JobID(w.ids.Next()), TenantID: w.tenant, Executor: w.executor, Source: domain.SourceConsole,
					Spec: domain.JobSpec{Name: name, Handler: "h", Labels: labels}}, func(time.Time, *domain.JobSpec) time.Time { return domain.Never })
				require.NoError(t, err)
				return j.ID
			}
			nightly := job("nightly", map[string]string{"team": "pay"})
			job("NIGHTLY full", map[string]string{"team": "pay%"})
			job("the nightly", map[string]string{"team": "payments"})
			job("50%_off", map[string]string{"a.b/c": "x=y!z"})
			gone := job("nightly gone", nil)
			_, err := s.SetJobState(ctx, store.SetJobStateParams{Tenant: w.tenant, ID: gone, State: domain.JobDeleted})
			require.NoError(t, err)
			timers := w.timers(5, time.Now().Add(time.Hour))
			if name == "mysql" {
				_, err := s.Write.ExecContext(ctx, "ANALYZE TABLE jobs, executors, timers, request_keys, calendars, executions")
				require.NoError(t, err)
			}
			e := &explainer{t: t, s: s, groups: true, tables: map[string]bool{
				"jobs": true, "d": true, "e": true, "j": true, "executors": true, "executions": true, "timers": true, "request_keys": true, "calendars": true, "scripts": true,
			}}
			s.Lookup = explainAll{e}
			ask := func(text string, within ...domain.ExecutorID) domain.SearchQuery {
				q := domain.SearchQuery{Tenant: w.tenant, Text: text}
				if len(within) > 0 {
					q.Within = domain.Within(within...)
				}
				return q
			}
			for text, want := range map[string][]string{
				"nightly": {"nightly", "NIGHTLY full", "the nightly"}, "NIGHT": {"NIGHTLY full", "nightly", "the nightly"}, "full": {"NIGHTLY full"},
				"%": {"50%_off"}, "_": {"50%_off"}, "0%_": {"50%_off"}, "__": {}, "team=pay": {"NIGHTLY full", "nightly", "the nightly"}, "team=pay%": {"NIGHTLY full"}, "eam=pay": {},
				"a.b/c=x=y!z": {"50%_off"}, "=pay": {}, nightly.String(): {"nightly"}, gone.String(): {}, "timer:": {},
			} {
				require.Equal(t, want, found(s.SearchJobs(ctx, ask(text)))(t), text)
				require.ElementsMatch(t, want, found(s.SearchJobs(ctx, ask(text, w.executor, 4)))(t), text)
				require.Empty(t, found(s.SearchJobs(ctx, ask(text, 4)))(t), text)
				q := ask(text)
				q.Tenant = 4
				require.Empty(t, found(s.SearchJobs(ctx, q))(t), text)
			}
			page, err := s.SearchExecutors(ctx, ask("SHO"))
			require.NoError(t, err)
			require.Equal(t, domain.FoundPage{Items: []domain.Found{{ID: int64(w.executor), Name: "shop", Hint: "sells", Match: domain.MatchPrefix}}}, page)
			require.Equal(t, []string{"shop"}, found(s.SearchExecutors(ctx, ask(w.executor.String(), w.executor)))(t))
			require.Empty(t, found(s.SearchExecutors(ctx, ask("shop", 4)))(t))
			page, err = s.SearchTimers(ctx, ask("key 3", w.executor))
			require.NoError(t, err)
			require.Len(t, page.Items, 1)
			require.Equal(t, []any{"shop/h", domain.MatchName}, []any{page.Items[0].Hint, page.Items[0].Match})
			require.Equal(t, []string{"key 3"}, found(s.SearchTimers(ctx, ask(fmt.Sprint(page.Items[0].ID))))(t))
			require.Len(t, found(s.SearchTimers(ctx, ask("key")))(t), 5)
			require.Empty(t, found(s.SearchTimers(ctx, ask("key", 4)))(t))
			cancelled := s.CancelTimers(ctx, store.CancelTimersParams{Tenant: w.tenant, Job: timers, Keys: []string{"key 4"}, By: "x"})
			require.NoError(t, cancelled[0].Err)
			require.Equal(t, []string{"key 4"}, found(s.SearchTimers(ctx, ask("key 4")))(t))
			run := cancelled[0].View.Run.ID.String()
			page, err = s.SearchRuns(ctx, ask(run))
			require.NoError(t, err)
			require.Equal(t, []string{"cancelled"}, domain.Collect(page.Items, func(f *domain.Found) string { return f.Hint }))
			require.Empty(t, found(s.SearchRuns(ctx, ask(run, 4)))(t))
			require.Empty(t, found(s.CalendarTable().Search(ctx, ask("x")))(t))
			require.Empty(t, found(s.ScriptTable(nil).Search(ctx, ask("7")))(t))
			require.Greater(t, e.seen, 100, "the statements were looked at")
		})
	}
}

// A search reads no more than so many names, and says so.
func TestSearchIsBounded(t *testing.T) {
	for name, options := range bothDatabases {
		t.Run(name, func(t *testing.T) {
			s := openStore(t, options(t))
			require.NoError(t, s.Run(t.Context(), "fill", func(x *db.Tx) error {
				const once = 1000
				for from := 0; from <= record.SearchedRows; from += once {
					rows := make([]string, once)
					for i := range rows {
						rows[i] = fmt.Sprintf("(%d, 1, 1, 'a%05d', 1, 1, 1)", from+i+1, from+i)
					}
					if _, err := x.Exec(x.Ctx, "INSERT INTO calendars (id, tenant_id, state, name, version, created_at, updated_at) VALUES "+strings.Join(rows, ",")); err != nil {
						return err
					}
				}
				_, err := x.Exec(x.Ctx, "INSERT INTO calendars (id, tenant_id, state, name, version, created_at, updated_at) VALUES (900000, 1, 1, 'zeta', 1, 1, 1)")
				return err
			}))
			search := func(text string) (domain.FoundPage, error) {
				return s.CalendarTable().Search(t.Context(), domain.SearchQuery{Tenant: 1, Text: text})
			}
			for text, want := range map[string][]string{"zeta": {"zeta"}, "eta": {}, "900000": {"zeta"}, "a00003": {"a00003"}} {
				page, err := search(text)
				require.Equal(t, want, found(page, err)(t), text)
				require.True(t, page.More, text)
			}
			page, err := search("a0000")
			require.Len(t, found(page, err)(t), domain.MaxFound)
			require.True(t, page.More)
		})
	}
}
