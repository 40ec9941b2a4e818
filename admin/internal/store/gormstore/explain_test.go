package gormstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/run"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/console"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/retention"
	"github.com/carillon-sched/carillon/admin/internal/store/storetest"
)

// explainer explains each statement about the big tables before it runs it.
type explainer struct {
	t    *testing.T
	s    *Store
	seen int
	// tables are those that may not be scanned, by the names that a statement gives them; nil: bigTables
	tables map[string]bool
	// few is how many rows of an index may be read in its order: a LIMIT ends it.
	few int64
	// groups: rows may be grouped and their groups sorted.
	groups bool
	// statements are those about the big tables, as they came
	statements []string
}

func (e *explainer) guarded(table string) bool {
	if e.tables != nil {
		return e.tables[table]
	}
	return bigTables[table]
}

func (e *explainer) QueryContext(ctx context.Context, statement string, args ...any) (*sql.Rows, error) {
	if timerTables.MatchString(statement) || strings.Contains(statement, "FROM executions") || strings.Contains(statement, "FROM triggers") || strings.Contains(statement, "FROM log_chunks") ||
		strings.Contains(statement, "FROM attempts") {
		e.seen++
		e.statements = append(e.statements, statement)
		e.explain(ctx, statement, args...)
	}
	return e.s.Read.QueryContext(ctx, statement, args...)
}

var timerTables = regexp.MustCompile(`FROM (timers|timer_labels|timer_counts|statistics|outbox|timer_cancellations|request_keys)\b`)

var bigTables = map[string]bool{
	"executions": true, "triggers": true, "log_chunks": true, "attempts": true, "timers": true, "timer_labels": true, "request_keys": true, "c": true,
}

func (e *explainer) explain(ctx context.Context, statement string, args ...any) {
	e.t.Helper()
	if e.s.Dialect.Name() == "sqlite" {
		err := db.Query(ctx, e.s.Read, func(rows *sql.Rows) error {
			var id, parent, unused int
			var detail string
			err := rows.Scan(&id, &parent, &unused, &detail)
			words := strings.Fields(detail)
			if len(words) > 1 && words[0] == "SCAN" && e.guarded(words[1]) || strings.Contains(detail, "TEMP B-TREE") && !e.groups {
				e.t.Errorf("%s:\n%s", detail, statement)
			}
			return err
		}, "EXPLAIN QUERY PLAN "+statement, args...)
		require.NoError(e.t, err)
		return
	}
	err := db.Query(ctx, e.s.Read, func(rows *sql.Rows) error {
		columns, err := rows.Columns()
		if err != nil {
			return err
		}
		values := make([]sql.NullString, len(columns))
		targets := make([]any, len(columns))
		row := map[string]*sql.NullString{}
		for i, c := range columns {
			targets[i], row[c] = &values[i], &values[i]
		}
		if err := rows.Scan(targets...); err != nil {
			return err
		}
		if !e.guarded(row["table"].String) {
			return nil
		}
		kind, extra := row["type"].String, row["Extra"].String
		rowsRead, _, _ := strings.Cut(row["rows"].String, " ") // MariaDB adds what a filter leaves of them
		read, err := strconv.ParseInt(rowsRead, 10, 64)
		if err != nil {
			return err
		}
		if kind == "ALL" || kind == "index" && read > e.few || strings.Contains(extra, "filesort") && !e.groups {
			e.t.Errorf("%s by %s (%s):\n%s", kind, row["key"].String, extra, statement)
		}
		return nil
	}, explainTable+statement, args...)
	require.NoError(e.t, err)
}

// explainTable asks for the plan as a table, which is all that MariaDB knows; it
// does not read this comment.
const explainTable = "EXPLAIN /*!80000 FORMAT=TRADITIONAL */ "

// No read scans or sorts a big table, however it is filtered.
func TestReadsUseTheirIndexes(t *testing.T) {
	for name, options := range bothDatabases {
		t.Run(name, func(t *testing.T) {
			s := openStore(t, options(t))
			w := newWorld(t, s, 20, domain.BlockParallel)
			w.plan(50)
			e := &explainer{t: t, s: s}
			s.Lookup, s.InSnapshot = e, func(_ context.Context, fn func(db.Querier) error) error { return fn(e) }
			ctx := t.Context()
			for _, p := range []store.ListExecutionsParams{
				{}, {States: []domain.State{domain.Failed}}, {States: []domain.State{domain.Due, domain.Running}}, {Cause: domain.CauseManual},
				{Job: w.jobs[0]}, {Job: w.jobs[0], States: []domain.State{domain.Due}}, {Job: w.jobs[0], Before: w.last},
				{Executor: w.executor}, {Executor: w.executor, States: []domain.State{domain.Due}}, {Instance: w.instance},
				{JobQuery: "job"}, {From: time.Now().Add(-time.Hour), To: time.Now()}, {Before: w.last}, {Executor: w.executor, Before: w.last},
				{Within: domain.Within(w.executor, 2)}, {Within: domain.Within(w.executor), Before: w.last, States: []domain.State{domain.Due}}, {Within: domain.Within(w.executor), Job: w.jobs[0]},
				{Name: "job*"}, {Label: "team=a"}, {Owner: "ann"}, {Fingerprint: 7}, {Fingerprint: 7, Before: w.last, Within: domain.Within(w.executor), Job: w.jobs[0]},
			} {
				p.Tenant = w.tenant
				_, err := s.ListExecutions(ctx, p)
				require.NoError(t, err)
			}
			_, err := s.CountExecutions(ctx, w.tenant, domain.Reach{}, time.Now().Add(-time.Hour))
			require.NoError(t, err)
			within := domain.Within(w.executor)
			_, err = s.CountExecutions(ctx, w.tenant, within, time.Now().Add(-time.Hour))
			require.NoError(t, err)
			inReach, err := s.InReach(ctx, domain.ReachQuery{Tenant: w.tenant, Noun: domain.ReachRun, ID: int64(w.last), Within: within})
			require.NoError(t, err)
			require.True(t, inReach)
			_, _, err = s.ListOverdue(ctx, store.ListOverdueParams{Tenant: w.tenant, Within: within, By: time.Second, Limit: 10})
			require.NoError(t, err)
			before := e.seen
			_, _, err = s.ListOverdue(ctx, store.ListOverdueParams{Tenant: w.tenant, By: time.Second, Limit: 10})
			require.NoError(t, err)
			require.Equal(t, before+2, e.seen, "triggers and runs")
			_, err = s.ListJobs(ctx, store.ListJobsParams{Tenant: w.tenant}) // the last run of each
			require.NoError(t, err)
			require.NoError(t, (&logWorld{world: w, run: domain.Execution{ID: w.last}}).trySay(1, 1, 3, "line"))
			require.NoError(t, (&logWorld{world: w, run: domain.Execution{ID: w.last}}).trySay(1, 4, 6, "line"))
			for _, p := range []store.ReadLogParams{{}, {After: 1}, {Before: 3}, {Text: "line"}, {Before: 9, Text: "line", MinLevel: new(int)}} {
				p.Tenant, p.Execution, p.Attempt = w.tenant, w.last, 1
				_, err = s.ReadLog(ctx, p)
				require.NoError(t, err)
			}
			_, _, err = s.LogEnd(ctx, w.tenant, w.last)
			require.NoError(t, err)
			_, err = s.CountLog(ctx, w.tenant, w.last)
			require.NoError(t, err)
			_, err = s.ClaimDueTriggers(ctx, store.ClaimDueTriggersParams{Partitions: w.held, Limit: 10, Plan: w.planOne})
			require.NoError(t, err)
			_, err = s.ListPlanned(ctx, store.ListPlannedParams{Partitions: everyPartition(), Horizon: time.Second, Limit: 10, OfferedBy: []domain.NodeID{1}})
			require.NoError(t, err)
			_, err = s.ListPlanned(ctx, store.ListPlannedParams{OffersOnly: everyPartition(), Horizon: time.Second, Limit: 10, OfferedBy: []domain.NodeID{1}})
			require.NoError(t, err)
			_, err = s.FindChoice(ctx, store.FindChoiceParams{Tenant: w.tenant, Job: w.jobs[0], Executor: w.executor, Run: w.last, At: time.Now()})
			require.NoError(t, err)
			_, err = s.FirstStarts(ctx, e, []*record.ExecutionRow{{ID: int64(w.last), TenantID: int64(w.tenant), Fence: 2}, {ID: 1, Fence: 3}})
			require.NoError(t, err)
			_, err = s.ListSlotHolders(ctx, w.tenant, w.jobs[0])
			require.NoError(t, err)
			_, err = s.ListHeld(ctx, w.tenant, w.instance, []domain.Held{{ID: w.last, Fence: 1}})
			require.NoError(t, err)
			_, err = s.EndedAmong(ctx, w.tenant, []domain.ExecutionID{w.last, w.last - 1})
			require.NoError(t, err)
			e.explain(ctx, "SELECT id, tenant_id, executor_id, fence, state FROM executions"+s.Dialect.ByPrimary()+" WHERE id IN (1, 2) ORDER BY id")
			_, _, err = s.ListParts(ctx, w.tenant, w.last, 10)
			require.NoError(t, err)
			parent, err := s.FindExecution(ctx, w.tenant, w.last)
			require.NoError(t, err)
			_, err = s.LivingParts(ctx, []domain.Execution{parent.Execution, parent.Execution})
			require.NoError(t, err)
			b := s.MakeBatch(&db.Tx{Ctx: ctx, DB: s.DB, Dialect: s.Dialect, Conn: reads{e}}, run.Request{})
			_, err = b.Family(&run.Move{E: parent.Execution})
			require.NoError(t, err)
			_, err = b.Results(&run.Move{E: parent.Execution}, domain.Family{})
			require.NoError(t, err)
			recent := []store.RecentJob{{Tenant: w.tenant, Job: w.jobs[0]}, {Tenant: w.tenant, Job: w.jobs[1]}}
			_, err = s.RecentInstances(ctx, store.RecentInstancesParams{Jobs: recent, Until: time.Now(), Limit: 100})
			require.NoError(t, err)
			_, err = s.ListPartitionLags(ctx)
			require.NoError(t, err)
			_, err = s.SweepExecutions(ctx, store.SweepParams{Partitions: everyPartition(), Limit: 10})
			require.NoError(t, err)
			require.NoError(t, s.SetClusterValue(ctx, domain.HistoryAcceptedValue, "99999999999999"))
			_, err = s.EndOrphans(ctx, store.EndOrphansParams{Tenant: w.tenant, Executor: w.executor, Instance: w.instance, Since: time.Now(), Taken: time.UnixMilli(99999999999999)})
			require.NoError(t, err)
			ledger := &console.LedgerReader{Q: e, D: s.Dialect}
			jobs, err := ledger.Jobs(ctx, 0, 10)
			require.NoError(t, err)
			require.Len(t, jobs, 10)
			require.NoError(t, ledger.Occurrences(ctx, w.jobs, time.Now().Add(-time.Hour), time.Now(), func(store.Occurrence) error { return nil }))
			require.NoError(t, ledger.Executions(ctx, w.last-100, w.last, func(*store.LedgerEntry) error { return nil }))
			require.GreaterOrEqual(t, e.seen, 24, "the statements were looked at")
		})
	}
}

// Nor do the reads of timers.
func TestTimersUseTheirIndexes(t *testing.T) {
	for name, options := range bothDatabases {
		t.Run(name, func(t *testing.T) {
			s := openStore(t, options(t))
			w := newWorld(t, s, 20, domain.BlockParallel)
			job := w.timers(2000, time.Now().Add(time.Hour))
			_, err := s.ClaimDueTimers(t.Context(), store.ClaimDueTimersParams{Partitions: w.held, Horizon: 2 * time.Hour, Limit: 500, NewID: w.ids.Next})
			require.NoError(t, err)
			if name == "mysql" {
				_, err := s.Write.ExecContext(t.Context(), "ANALYZE TABLE timers, timer_labels, timer_counts, request_keys, executions")
				require.NoError(t, err)
			}
			e := &explainer{t: t, s: s, few: 100}
			s.Lookup = e
			ctx := t.Context()
			_, err = s.ClaimDueTimers(ctx, store.ClaimDueTimersParams{Partitions: w.held, Limit: 10, NewID: w.ids.Next, Except: []domain.TenantID{1}})
			require.NoError(t, err)
			for _, key := range []string{"key 1", "key 1999"} {
				_, err = s.FindTimer(ctx, w.tenant, job, key)
				require.NoError(t, err)
			}
			_, err = s.CountTimers(ctx, w.tenant)
			require.NoError(t, err)
			_, err = s.ListPartitionLags(ctx)
			require.NoError(t, err)
			for _, p := range []store.ListTimersParams{{}, {KeyPrefix: "key 1"}, {Label: "all"}, {After: store.TimerCursor{Job: job, Key: "key 1"}}} {
				for _, state := range []store.TimersState{store.TimersPending, store.TimersEnded, store.TimersClaimed} {
					for _, jobs := range [][]domain.JobID{nil, {job}, {job, 1}} {
						p.Tenant, p.State, p.Jobs, p.Limit = w.tenant, state, jobs, 10
						e.statements = nil
						_, err = s.ListTimers(ctx, p)
						require.NoError(t, err)
						for _, statement := range e.statements {
							require.LessOrEqual(t, strings.Count(statement, "timer_key >"), 1, "of two lower bounds one is a filter")
							require.False(t, state == store.TimersClaimed && strings.Contains(statement, "uq_executions_occurrence"), "through all runs of a job for a few")
						}
					}
				}
			}
			_, err = s.DriveTimerCancellations(ctx, 10)
			require.NoError(t, err)
			e.explain(ctx, retention.OldTimers(s.Dialect, w.tenant, time.Now().Add(time.Hour), 10))
			_, err = s.DeleteTimersBefore(ctx, time.Now().Add(-time.Hour), 10)
			require.NoError(t, err)
			require.GreaterOrEqual(t, e.seen, 30, "the statements were looked at")
		})
	}
}

// What is deleted by age is found by its age.
func TestRetentionUsesIndexes(t *testing.T) {
	for name, options := range bothDatabases {
		t.Run(name, func(t *testing.T) {
			s := openStore(t, options(t))
			// Of an empty table MySQL says that any way is as good.
			require.NoError(t, s.Run(t.Context(), "fill", func(x *db.Tx) error {
				for i := range 500 {
					_, boot := x.Exec(x.Ctx, "INSERT INTO join_token_boots (token_id, boot_id, tenant_id, used_at) VALUES (?, 'b', 1, ?)", i, i+1)
					_, refusal := x.Exec(x.Ctx, "INSERT INTO refusals (subject, code, message, remote, executor, instance, node, first_at, last_at)"+
						" VALUES (?, '', '', '', '', '', '', 1, ?)", fmt.Appendf(nil, "%016d", i), i+1)
					if err := errors.Join(boot, refusal); err != nil {
						return err
					}
				}
				return nil
			}))
			if name == "mysql" {
				_, err := s.Write.ExecContext(t.Context(), "ANALYZE TABLE join_token_boots, refusals")
				require.NoError(t, err)
			}
			e := &explainer{t: t, s: s, tables: map[string]bool{"b": true, "j": true, "i": true, "refusals": true, "refresh_tokens": true}, few: 10}
			e.explain(t.Context(), retention.OldBoots(s.Dialect), 5, 10)
			e.explain(t.Context(), "SELECT * FROM refusals WHERE last_at < ? LIMIT 10", 1)
			e.tables["executions"], e.tables["e"] = true, true
			e.explain(t.Context(), retention.OldJobs(s.Dialect), 5, 10)
			e.explain(t.Context(), retention.OldExecutors(s.Dialect), 5, 10)
			now := time.Now()
			w := newWorld(t, s, 3, domain.BlockParallel)
			w.plan(2000)
			if name == "mysql" {
				_, err := s.Write.ExecContext(t.Context(), "ANALYZE TABLE executions, jobs")
				require.NoError(t, err)
			}
			e.tables["p"], e.tables["c"] = true, true
			e.explain(t.Context(), retention.PruneRunsQuery(s.Dialect, w.tenant, w.jobs[0], now), 0, 0, "", now.UnixMilli())
			e.explain(t.Context(), retention.NewestQuery(s.Dialect, w.jobs[0], 3))
			e.tables["jobs"] = true
			e.explain(t.Context(), retention.JobsOfTenant(s.Dialect, w.tenant, 0))
			e.explain(t.Context(), "SELECT * FROM run_purges WHERE tenant_id = 1 ORDER BY id DESC LIMIT 10")
			e.explain(t.Context(), "SELECT * FROM refresh_tokens WHERE expires_at < ? LIMIT 10", 1)
			e.explain(t.Context(), "SELECT subject FROM refusals WHERE last_at > 0 ORDER BY last_at LIMIT 10")
		})
	}
}

// reads is a transaction that cannot write.
type reads struct{ db.Querier }

func (reads) ExecContext(context.Context, string, ...any) (sql.Result, error) {
	return nil, errors.ErrUnsupported
}

// world is a tenant with jobs that fire once a second since yesterday.
type world struct {
	tb       testing.TB
	s        *Store
	ids      *domain.IDSource
	tenant   domain.TenantID
	executor domain.ExecutorID
	instance domain.InstanceID
	jobs     []domain.JobID
	last     domain.ExecutionID
	held     []domain.PartitionTerm // all partitions
}

func newWorld(tb testing.TB, s *Store, jobs int, blocking domain.Blocking) *world {
	tb.Helper()
	ctx := tb.Context()
	w := &world{tb: tb, s: s, ids: domain.NewIDSource(7, time.Now)}
	w.tenant, w.executor = domain.TenantID(w.ids.Next()), domain.ExecutorID(w.ids.Next())
	require.NoError(tb, s.CreateTenant(ctx, domain.Tenant{ID: w.tenant, Name: "world"}))
	require.NoError(tb, s.CreateExecutor(ctx, domain.Executor{ID: w.executor, TenantID: w.tenant, Name: "world"}))
	instance, err := storetest.RegisterInstance(ctx, s, store.RegisterInstanceParams{
		Instance: domain.Instance{ID: domain.InstanceID(w.ids.Next()), TenantID: w.tenant, Executor: w.executor, BootID: "b"}, TTL: time.Hour,
	})
	require.NoError(tb, err)
	w.instance, w.held = instance.ID, storetest.HoldAll(tb, s)
	start := time.Now().Add(-24 * time.Hour).Truncate(time.Second)
	for i := range jobs {
		j, err := s.CreateJob(ctx, domain.Job{ID: domain.JobID(w.ids.Next()), TenantID: w.tenant, Executor: w.executor, Source: domain.SourceConsole,
			Spec: domain.JobSpec{Name: fmt.Sprint("job ", i), Handler: "h", Blocking: blocking, Timeout: time.Minute}},
			func(time.Time, *domain.JobSpec) time.Time { return start })
		require.NoError(tb, err)
		w.jobs = append(w.jobs, j.ID)
	}
	return w
}

func everyPartition() []int {
	all := make([]int, domain.Partitions)
	for i := range all {
		all[i] = i
	}
	return all
}

// planOne plans the trigger's next second.
func (w *world) planOne(now time.Time, t domain.Trigger, _ *domain.JobSpec) store.TriggerPlan {
	return store.TriggerPlan{NextFireAt: t.NextFireAt.Add(time.Second), LastFireAt: t.NextFireAt, Executions: []domain.Execution{{
		ID: domain.ExecutionID(w.ids.Next()), TenantID: t.TenantID, JobID: t.JobID, Revision: t.Revision, Executor: t.Executor, Partition: t.Partition,
		Cause: domain.CauseSchedule, FireAt: t.NextFireAt, State: domain.Due, MaxAttempts: 1, NotBefore: t.NextFireAt,
		WakeAt: now.Add(domain.PickupGrace), ExpireAt: now.Add(time.Hour), PlannedAt: now, LogLines: -1,
	}}}
}

// plan claims n times for all jobs.
func (w *world) plan(n int) (all []domain.Execution) {
	w.tb.Helper()
	for range n {
		got, err := w.s.ClaimDueTriggers(w.tb.Context(), store.ClaimDueTriggersParams{Partitions: w.held, Limit: len(w.jobs), Plan: w.planOne})
		require.NoError(w.tb, err)
		require.Len(w.tb, got.Executions, len(w.jobs))
		all = append(all, got.Executions...)
	}
	w.last = all[len(all)-1].ID
	return all
}

// timers sets n timers of one handler.
func (w *world) timers(n int, at time.Time) domain.JobID {
	w.tb.Helper()
	job, err := w.s.CreateJob(w.tb.Context(), domain.Job{ID: domain.JobID(w.ids.Next()), TenantID: w.tenant, Executor: w.executor, Kind: domain.JobTimer,
		Spec: domain.JobSpec{Name: "timer:world/h", Handler: "h", Blocking: domain.BlockParallel}}, func(time.Time, *domain.JobSpec) time.Time { return domain.Never })
	require.NoError(w.tb, err)
	list := make([]store.SetTimer, n)
	for i := range list {
		list[i].Timer = domain.Timer{ID: domain.TimerID(w.ids.Next()), TenantID: w.tenant, JobID: job.ID, FireAt: at, Key: fmt.Sprint("key ", i), Labels: []string{"all"}}
	}
	for _, r := range w.s.SetTimers(w.tb.Context(), store.SetTimersParams{Timers: list}) {
		require.NoError(w.tb, r.Err)
	}
	return job.ID
}

func (w *world) offers(es []domain.Execution) []store.Offer {
	out := make([]store.Offer, len(es))
	for i, e := range es {
		out[i] = store.Offer{Tenant: w.tenant, ID: e.ID, Node: 1, Instance: w.instance}
	}
	return out
}

func (w *world) grants(es []store.OfferResult) []store.GrantRequest {
	out := make([]store.GrantRequest, len(es))
	for i, r := range es {
		out[i] = store.GrantRequest{Tenant: w.tenant, ID: r.Execution.ID, Fence: r.Execution.Fence, Instance: r.Execution.Instance}
	}
	return out
}

func (w *world) reports(es []store.GrantResult) []store.AttemptReport {
	out := make([]store.AttemptReport, len(es))
	for i, r := range es {
		out[i] = store.AttemptReport{Tenant: w.tenant, Executor: w.executor, Report: domain.Report{
			ExecutionID: r.Execution.ID, Fence: r.Execution.Fence, Outcome: domain.OutcomeSucceeded, Output: []byte(fmt.Sprintf(`{"rows":%d}`, i)),
			StartedAt: r.Execution.GrantedAt.Add(time.Duration(i%7) * time.Millisecond), LogLines: int64(i % 5),
		}}
	}
	return out
}
