package gormstore

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/engine"
	"github.com/carillon-sched/carillon/admin/internal/store/storetest"
	"github.com/carillon-sched/carillon/internal/testenv"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// aging is a store whose executions can be made older.
type aging struct{ *Store }

func newAging(s *Store) aging { return aging{s} }

// What add-ons add to stores under test, and to their options.
var (
	withAddOns = func(a aging) storetest.Store { return a }
	ofAddOns   = func(o Options) Options { return o }
)

func (a aging) Age(ctx context.Context, id domain.ExecutionID, d time.Duration) error {
	return a.Run(ctx, "age execution", func(t *db.Tx) error {
		ms := d.Milliseconds()
		_, err := t.Exec(ctx, "UPDATE executions SET version = version + 1, wake_at = wake_at - ?, not_before = not_before - ?,"+
			" expire_at = CASE WHEN expire_at = 0 THEN 0 ELSE expire_at - ? END, deadline = CASE WHEN deadline = 0 THEN 0 ELSE deadline - ? END,"+
			" offered_at = CASE WHEN offered_at = 0 THEN 0 ELSE offered_at - ? END, finished_at = CASE WHEN finished_at = 0 THEN 0 ELSE finished_at - ? END WHERE id = ?",
			ms, ms, ms, ms, ms, ms, int64(id))
		if err == nil {
			_, err = t.Exec(ctx, "UPDATE outbox SET id = id - ? WHERE topic = ?", idsIn(d), int64(domain.TopicCallbacks))
		}
		return err
	})
}

// idsIn is by how much ids grow in a time.
func idsIn(d time.Duration) int64 {
	now := time.Now()
	return domain.IDFloor(now) - domain.IDFloor(now.Add(-d))
}

func (a aging) AgeOutbox(ctx context.Context, d time.Duration) error {
	return a.Run(ctx, "age outbox", func(t *db.Tx) error {
		_, err := t.Exec(ctx, "UPDATE outbox SET id = id - ?", idsIn(d))
		return err
	})
}

func (a aging) Unlist(ctx context.Context, id domain.ExecutionID) error {
	return a.Run(ctx, "unlist execution", func(t *db.Tx) error {
		_, err := t.Exec(ctx, "DELETE FROM waiting_runs WHERE execution_id = ?", int64(id))
		return err
	})
}

func (a aging) AgeInstance(ctx context.Context, id domain.InstanceID, d time.Duration) error {
	return a.Run(ctx, "age instance", func(t *db.Tx) error {
		_, err := t.Exec(ctx, "UPDATE instances SET last_seen_at = last_seen_at - ?, gone_at = CASE WHEN gone_at = 0 THEN 0 ELSE gone_at - ? END WHERE id = ?",
			d.Milliseconds(), d.Milliseconds(), int64(id))
		return err
	})
}

func (a aging) AgeHandlers(ctx context.Context, executor domain.ExecutorID, d time.Duration) error {
	return a.Run(ctx, "age handlers", func(t *db.Tx) error {
		_, err := t.Exec(ctx, "UPDATE handlers SET last_seen_at = last_seen_at - ? WHERE executor_id = ?", d.Milliseconds(), int64(executor))
		return err
	})
}

func (a aging) AgeJoinTokenBoots(ctx context.Context, token int64, d time.Duration) error {
	return a.Run(ctx, "age boots", func(t *db.Tx) error {
		_, err := t.Exec(ctx, "UPDATE join_token_boots SET used_at = used_at - ? WHERE token_id = ?", d.Milliseconds(), token)
		return err
	})
}

func (a aging) AgeDeleted(ctx context.Context, d time.Duration, id int64) error {
	return a.Run(ctx, "age what was deleted", func(t *db.Tx) error {
		for _, old := range []string{
			"jobs SET updated_at = updated_at - ? WHERE id = ? AND state = 3", "executors SET changed_at = changed_at - ? WHERE id = ? AND state = 3",
			"deleted_documents SET deleted_at = deleted_at - ? WHERE id = ?",
		} {
			if _, err := t.Exec(ctx, "UPDATE "+old, d.Milliseconds(), id); err != nil {
				return err
			}
		}
		return nil
	})
}

// RowsOf counts what is left of a job, a script or an executor.
func (a aging) RowsOf(ctx context.Context, id int64) (rows int, err error) {
	for table, column := range map[string]string{
		"jobs": "id", "job_revisions": "job_id", "job_events": "job_id", "triggers": "job_id", "job_slots": "job_id", "job_calendars": "job_id",
		"scripts": "id", "script_versions": "script_id", "deleted_documents": "id",
		"executors": "id", "executor_aliases": "executor_id", "handlers": "executor_id", "executor_builds": "executor_id", "instances": "executor_id",
		"join_tokens": "executor_id", "executor_denials": "executor_id",
	} {
		var n int
		if err := a.Read.QueryRowContext(ctx, "SELECT COUNT(*) FROM "+table+" WHERE "+column+" = ?", id).Scan(&n); err != nil {
			return 0, err
		}
		rows += n
	}
	return rows, nil
}

func (a aging) AgeAlerts(ctx context.Context, tenant domain.TenantID, d time.Duration) error {
	return a.Run(ctx, "age alerts", func(t *db.Tx) error {
		_, err := t.Exec(ctx, "UPDATE alert_events SET tell_at = tell_at - ? WHERE tenant_id = ? AND expanded_at = 0 AND tell_at > 0", d.Milliseconds(), int64(tenant))
		return err
	})
}

func (a aging) ForgetHolders(ctx context.Context, k domain.LimitKey) error {
	return a.Run(ctx, "forget holders", func(t *db.Tx) error {
		subject, kind := engine.SubjectOf(k)
		_, err := t.Exec(ctx, "DELETE FROM limit_holders WHERE subject_id = ? AND kind = ?", subject, kind)
		return err
	})
}

func sqliteOptions(tb testing.TB) Options {
	return ofAddOns(Options{Driver: "sqlite", DSN: filepath.Join(tb.TempDir(), "carillon test.db"), NewID: storetest.NewID, Logger: slog.New(slog.DiscardHandler), NextFire: storetest.NextFire, FiresPerMinute: storetest.FiresPerMinute})
}

func mysqlOptions(tb testing.TB) Options {
	return ofAddOns(Options{Driver: "mysql", DSN: testenv.Database(tb), NewID: storetest.NewID, Logger: slog.New(slog.DiscardHandler), NextFire: storetest.NextFire, FiresPerMinute: storetest.FiresPerMinute})
}

func openStore(tb testing.TB, o Options) *Store {
	tb.Helper()
	ctx := context.Background()
	require.NoError(tb, Migrate(ctx, o))
	s, err := Open(ctx, o)
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, s.Close()) })
	return s
}

func TestSQLite(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Store { return withAddOns(newAging(openStore(t, sqliteOptions(t)))) })
}

func TestMySQL(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Store { return withAddOns(newAging(openStore(t, mysqlOptions(t)))) })
}

// What SQLite keeps beside the database has its file's mode.
func TestSQLiteIsForItsUserOnly(t *testing.T) {
	o := sqliteOptions(t)
	openStore(t, o)
	for _, suffix := range []string{"", "-wal", "-shm"} {
		info, err := os.Stat(o.DSN + suffix)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm(), suffix)
	}
}

var bothDatabases = map[string]func(testing.TB) Options{"sqlite": sqliteOptions, "mysql": mysqlOptions}

func TestMigrateByFourAtOnce(t *testing.T) {
	for name, options := range bothDatabases {
		t.Run(name, func(t *testing.T) {
			o := options(t)
			before, err := PendingSQL(t.Context(), o)
			require.NoError(t, err)
			require.Contains(t, before, "CREATE TABLE")
			files, err := filepath.Glob(filepath.Join("..", "..", "..", "..", "sql", name, "*.sql"))
			require.NoError(t, err)
			require.NotEmpty(t, files)
			require.Equal(t, len(files), strings.Count(before, "-- 000"), "the SQL of each file is shown")
			errs := make(chan error)
			for range 4 {
				go func() { errs <- Migrate(context.Background(), o) }()
			}
			for range 4 {
				require.NoError(t, <-errs)
			}
			after, err := PendingSQL(t.Context(), o)
			require.NoError(t, err)
			require.Empty(t, after)
			require.NoError(t, Migrate(t.Context(), o), "nothing to do")
		})
	}
}

func TestOptionsAreChecked(t *testing.T) {
	for name, o := range map[string]Options{
		"unknown driver": {Driver: "oracle"}, "no path": {Driver: "sqlite"}, "bad DSN": {Driver: "mysql", DSN: "://"}, "no database": {Driver: "mysql", DSN: "root@tcp(127.0.0.1:1)/"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Open(t.Context(), o)
			require.Equal(t, domain.CodeInvalid, domain.CodeOf(err), "%v", err)
		})
	}
	_, err := Open(t.Context(), Options{Driver: "mysql", DSN: "root@tcp(127.0.0.1:1)/x"})
	require.Equal(t, domain.CodeUnavailable, domain.CodeOf(err), "%v", err)
	_, err = Open(t.Context(), Options{Driver: "sqlite", DSN: filepath.Join(t.TempDir(), "none", "x.db")})
	require.Error(t, err)
	_, err = os.Stat("none")
	require.True(t, os.IsNotExist(err))
}

// A disk that is full is no fault of whoever asks: it may be tried again.
func TestADiskThatIsFull(t *testing.T) {
	s := openStore(t, sqliteOptions(t))
	_, err := s.Write.ExecContext(t.Context(), "PRAGMA max_page_count = 1") // no fewer than there are
	require.NoError(t, err)
	for n := range 10_000 {
		id := domain.TenantID(n + 1)
		if err = s.CreateTenant(t.Context(), domain.Tenant{ID: id, Name: strings.Repeat("x", 100) + id.String(), CreatedAt: time.Now()}); err != nil {
			break
		}
	}
	require.ErrorIs(t, err, domain.ErrDiskFull)
	require.Equal(t, domain.CodeUnavailable, domain.CodeOf(err))
	_, err = s.Write.ExecContext(t.Context(), "PRAGMA max_page_count = 1000000")
	require.NoError(t, err)
	require.NoError(t, s.CreateTenant(t.Context(), domain.Tenant{ID: 20_000, Name: "room", CreatedAt: time.Now()}))
}
