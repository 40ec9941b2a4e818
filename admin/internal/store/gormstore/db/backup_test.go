package db

import (
	"database/sql"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// filled is a database whose nodes have left signs of life.
func filled(t *testing.T) (path string, write func(statement string, args ...any)) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "a.db")
	require.NoError(t, Migrate(t.Context(), Options{Driver: "sqlite", DSN: path}))
	file, err := sql.Open("sqlite", SQLiteDSN(path, false, 10*time.Second))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, file.Close()) })
	write = func(statement string, args ...any) {
		_, err := file.ExecContext(t.Context(), statement, args...)
		require.NoError(t, err)
	}
	write("INSERT INTO cluster_values (name, value) VALUES ('cluster_id', 'c1'), ('sealing_key_fingerprint', 'f')")
	write("CREATE TABLE pairs (a INTEGER PRIMARY KEY, b INTEGER, filler BLOB)")
	write("INSERT INTO pairs WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000) SELECT i, 0, randomblob(4000) FROM n")
	return path, write
}

func emptyFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "copy.db")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	return path
}

// number asks a file that nobody else uses for a number.
func number(t *testing.T, path, statement string) (n int64) {
	t.Helper()
	require.NoError(t, withFile(t.Context(), path, func(file *sql.DB) error {
		return file.QueryRowContext(t.Context(), statement).Scan(&n)
	}))
	return n
}

// TestACopyIsOfOneInstant though two rows far apart, always equal, are changed
// by each of many transactions meanwhile.
func TestACopyIsOfOneInstant(t *testing.T) {
	path, write := filled(t)
	var stop atomic.Bool
	var written atomic.Int64
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 1; !stop.Load(); i++ {
			write("UPDATE pairs SET b = ? WHERE a IN (1, 3000)", i)
			written.Add(1)
		}
	})
	require.Eventually(t, func() bool { return written.Load() > 0 }, time.Minute, time.Millisecond)
	var files []string
	for range 3 {
		files = append(files, emptyFile(t))
		before := written.Load()
		c, err := CopySQLite(t.Context(), path, files[len(files)-1], "v9")
		require.NoError(t, err)
		require.Equal(t, "v9", c.Version)
		require.Equal(t, "c1", c.Cluster)
		require.Equal(t, "f", c.SealingKey)
		require.Greater(t, written.Load(), before, "nobody waited for the copy")
		for _, end := range []string{"-wal", "-shm", "-journal"} {
			require.NoFileExists(t, files[len(files)-1]+end)
		}
	}
	stop.Store(true)
	wg.Wait()
	for _, file := range files {
		require.Zero(t, number(t, file, "SELECT (SELECT b FROM pairs WHERE a = 1) - (SELECT b FROM pairs WHERE a = 3000)"))
		require.EqualValues(t, 3000, number(t, file, "SELECT COUNT(*) FROM pairs"))
	}
}

func restoration(from, path string) Restoration {
	return Restoration{From: from, Path: path, Known: func(string) (domain.History, error) { return domain.History{}, nil }}
}

func TestARestoredDatabaseIsDoubted(t *testing.T) {
	path, _ := filled(t)
	file := emptyFile(t)
	c, err := CopySQLite(t.Context(), path, file, "v9")
	require.NoError(t, err)
	to := filepath.Join(t.TempDir(), "b.db")
	r := restoration(file, to)
	r.Known = func(cluster string) (domain.History, error) { return domain.History{Epoch: 2, Mark: 7}, nil }
	out, err := RestoreSQLite(t.Context(), r)
	require.NoError(t, err)
	require.Empty(t, out.Aside)
	look := func() (found domain.History, doubted domain.Doubt) {
		s, err := Open(Options{Driver: "sqlite", DSN: to})
		require.NoError(t, err)
		defer s.Close()
		require.NoError(t, s.Run(t.Context(), "look", func(tx *Tx) (err error) {
			found, doubted, err = tx.History()
			return err
		}))
		return found, doubted
	}
	_, doubted := look()
	require.Equal(t, domain.Doubt{History: domain.History{Epoch: 2, Mark: 7}, Backup: c.At.Truncate(time.Second)}, doubted)
	require.Zero(t, number(t, to, "SELECT COUNT(*) FROM cluster_values WHERE name = 'backup'"))

	r.Accept = true
	out, err = RestoreSQLite(t.Context(), r)
	require.NoError(t, err)
	require.FileExists(t, out.Aside)
	found, doubted := look()
	require.EqualValues(t, 3, found.Epoch)
	require.Zero(t, doubted)

	// The database that is replaced knows of an epoch that nobody else does.
	require.NoError(t, withFile(t.Context(), to, func(f *sql.DB) error {
		_, err := f.ExecContext(t.Context(), "UPDATE cluster_values SET value = '9' WHERE name = 'history_epoch'")
		return err
	}))
	_, err = RestoreSQLite(t.Context(), r)
	require.NoError(t, err)
	found, _ = look()
	require.EqualValues(t, 10, found.Epoch)
}

// TestARestoreChangesNothingWhenItFails in whatever way.
func TestARestoreChangesNothingWhenItFails(t *testing.T) {
	path, _ := filled(t)
	good := emptyFile(t)
	_, err := CopySQLite(t.Context(), path, good, "v9")
	require.NoError(t, err)
	changed := func(change func(raw []byte) []byte) string {
		raw, err := os.ReadFile(good)
		require.NoError(t, err)
		file := emptyFile(t)
		require.NoError(t, os.WriteFile(file, change(raw), 0o600))
		return file
	}
	newer := changed(func(raw []byte) []byte { return raw })
	require.NoError(t, withFile(t.Context(), newer, func(f *sql.DB) error {
		_, err := f.ExecContext(t.Context(), "INSERT INTO goose_db_version (version_id, is_applied) VALUES (99999, 1)")
		return err
	}))
	open, _ := filled(t) // its writer is open
	to := emptyFile(t)
	require.NoError(t, os.WriteFile(to, []byte("a database that nobody can read"), 0o600))
	for name, c := range map[string]struct {
		r    Restoration
		want string
	}{
		"a page is torn out":   {restoration(changed(func(raw []byte) []byte { clear(raw[len(raw)/2 : len(raw)/2+4096]); return raw }), to), "damaged"},
		"half of it":           {restoration(changed(func(raw []byte) []byte { return raw[:len(raw)/2] }), to), "malformed"},
		"no database":          {restoration(changed(func([]byte) []byte { return []byte("It was the best of times, it was the worst of times.") }), to), "not a database"},
		"an empty file":        {restoration(changed(func([]byte) []byte { return nil }), to), "no database of Carillon"},
		"of a newer version":   {restoration(newer, to), "migration 99999"},
		"a wrong sum":          {Restoration{From: good, Path: to, Sum: strconv.Itoa(5)}, "was changed or is not whole"},
		"somebody has it open": {restoration(good, open), "stop the server first"},
	} {
		t.Run(name, func(t *testing.T) {
			before, err := os.ReadFile(c.r.Path)
			require.NoError(t, err)
			_, err = RestoreSQLite(t.Context(), c.r)
			require.ErrorContains(t, err, c.want)
			after, err := os.ReadFile(c.r.Path)
			require.NoError(t, err)
			require.Equal(t, before, after)
			left, err := filepath.Glob(filepath.Join(filepath.Dir(c.r.Path), "*restore*"))
			require.NoError(t, err)
			require.Empty(t, left)
		})
	}
	// A damaged database is no reason to refuse the good one.
	out, err := RestoreSQLite(t.Context(), restoration(good, to))
	require.NoError(t, err)
	require.Error(t, out.Unreadable)
	kept, err := os.ReadFile(out.Aside)
	require.NoError(t, err)
	require.Equal(t, "a database that nobody can read", string(kept))
	require.EqualValues(t, 3000, number(t, to, "SELECT COUNT(*) FROM pairs"))
}
