// Package gormtest answers: where does a test get a database from whose schema is
// there already? Making it takes longer than most tests.
package gormtest

import (
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/carillon-sched/carillon/admin/internal/store/gormstore"
)

// migrated is the file that all others are copies of.
var migrated struct {
	sync.Mutex
	file []byte // guarded by Mutex
}

// SQLite returns the path of a new database file with the whole schema, in a
// folder that goes with the test. It is safe for concurrent use.
func SQLite(tb testing.TB) (path string) {
	tb.Helper()
	return SQLiteIn(tb, tb.TempDir())
}

// SQLiteIn is SQLite in a folder that is there.
func SQLiteIn(tb testing.TB, dir string) (path string) {
	tb.Helper()
	path = filepath.Join(dir, "carillon.db")
	if err := os.WriteFile(path, empty(tb), 0o600); err != nil {
		tb.Fatalf("copy a database: %v", err)
	}
	return path
}

// empty is the file after Migrate.
func empty(tb testing.TB) []byte {
	tb.Helper()
	migrated.Lock()
	defer migrated.Unlock()
	if migrated.file != nil {
		return migrated.file
	}
	path := filepath.Join(tb.TempDir(), "carillon.db")
	err := gormstore.Migrate(tb.Context(), gormstore.Options{Driver: "sqlite", DSN: path, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		tb.Fatalf("make a database: %v", err)
	}
	if left, err := os.Stat(path + "-wal"); err == nil && left.Size() > 0 {
		tb.Fatalf("%s is not all of the database", path)
	}
	if migrated.file, err = os.ReadFile(path); err != nil {
		tb.Fatalf("read a database: %v", err)
	}
	return migrated.file
}
