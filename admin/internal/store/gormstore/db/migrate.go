package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"
	"time"

	"github.com/pressly/goose/v3"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	schema "github.com/carillon-sched/carillon/sql"
)

const (
	// migrateLock is the name of the server-wide lock, followed by the database.
	migrateLock = "carillon_migrate:"
	// migrateWait is how long a node waits for another one to finish migrating.
	migrateWait = 5 * time.Minute
)

// Migrate brings the schema up to date. Several nodes may do it at once: on
// MySQL they queue for a named lock, on SQLite for the file's write lock.
func Migrate(ctx context.Context, o Options) (err error) {
	o.migrating = true
	s, err := Open(o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	ctx, cancel := context.WithTimeout(ctx, migrateWait)
	defer cancel()
	if s.Dialect.Name() == "mysql" {
		return s.migrateMySQL(ctx)
	}
	return s.migrateSQLite(ctx)
}

// migrateMySQL holds the lock on a connection of its own: it ends with the
// connection, also when this process dies.
func (s *DB) migrateMySQL(ctx context.Context) (err error) {
	conn, err := s.Write.Conn(ctx)
	if err != nil {
		return Translate("connect for migration", err)
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	for {
		// Shorter than the read timeout of the connection.
		var got sql.NullInt64
		if err := conn.QueryRowContext(ctx, "SELECT GET_LOCK(CONCAT(?, DATABASE()), 5)", migrateLock).Scan(&got); err != nil {
			return Translate("lock for migration", err)
		}
		if got.Int64 == 1 {
			break
		}
		if ctx.Err() != nil {
			return domain.Errorf(domain.CodeUnavailable, "another node has been migrating the schema for %s", migrateWait)
		}
	}
	err = s.up(ctx)
	_, unlock := conn.ExecContext(context.WithoutCancel(ctx), "DO RELEASE_LOCK(CONCAT(?, DATABASE()))", migrateLock)
	return errors.Join(err, unlock)
}

// migrateSQLite repeats: goose's transactions of two processes may collide,
// and the loser finds the work done.
func (s *DB) migrateSQLite(ctx context.Context) error {
	backoff := 10 * time.Millisecond
	for try := 1; ; try++ {
		err := s.up(ctx)
		if err == nil || try == 10 {
			return err
		}
		pending, pendingErr := s.pending(ctx)
		if pendingErr == nil && len(pending) == 0 {
			return nil
		}
		s.Logger.Debug("migration repeated", "try", try, "err", err)
		if !Sleep(ctx, backoff) {
			return err
		}
		backoff *= 2
	}
}

func (s *DB) up(ctx context.Context) error {
	provider, err := s.provider()
	if err != nil {
		return err
	}
	results, err := provider.Up(ctx)
	if err != nil {
		return fmt.Errorf("migrate schema: %w", err)
	}
	for _, r := range results {
		s.Logger.Info("schema migrated", "version", r.Source.Version, "file", r.Source.Path, "duration", r.Duration)
	}
	return nil
}

func (s *DB) provider() (*goose.Provider, error) {
	files, dialect := schema.SQLite, goose.DialectSQLite3
	if s.Dialect.Name() == "mysql" {
		files, dialect = schema.MySQL, goose.DialectMySQL
	}
	dir, err := fs.Sub(files, s.Dialect.Name())
	if err != nil {
		return nil, fmt.Errorf("find migrations: %w", err)
	}
	provider, err := goose.NewProvider(dialect, s.Write, dir, goose.WithSlog(slog.New(slog.DiscardHandler)))
	if err != nil {
		return nil, fmt.Errorf("read migrations: %w", err)
	}
	return provider, nil
}

// PendingSQL returns the statements that Migrate would run, with a comment
// before each file, and "" when there are none. It changes nothing.
func PendingSQL(ctx context.Context, o Options) (text string, err error) {
	s, err := Open(o)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	pending, err := s.pending(ctx)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, m := range pending {
		fmt.Fprintf(&b, "-- %05d %s\n%s\n\n", m.version, m.file, m.up)
	}
	return b.String(), nil
}

type migration struct {
	version int64
	file    string
	up      string
}

// pending compares the embedded files with goose's table, which need not exist.
func (s *DB) pending(ctx context.Context) ([]migration, error) {
	provider, err := s.provider()
	if err != nil {
		return nil, err
	}
	applied, err := s.applied(ctx)
	if err != nil {
		return nil, Translate("read schema version", err)
	}
	files := fs.FS(schema.SQLite)
	if s.Dialect.Name() == "mysql" {
		files = schema.MySQL
	}
	var out []migration
	for _, source := range provider.ListSources() {
		if applied[source.Version] {
			continue
		}
		text, err := fs.ReadFile(files, s.Dialect.Name()+"/"+source.Path)
		if err != nil {
			return nil, fmt.Errorf("read migration: %w", err)
		}
		_, up, _ := strings.Cut(string(text), "-- +goose Up\n")
		up, _, _ = strings.Cut(up, "-- +goose Down")
		out = append(out, migration{source.Version, source.Path, strings.TrimSpace(up)})
	}
	return out, nil
}

func (s *DB) applied(ctx context.Context) (map[int64]bool, error) {
	exists := "SELECT COUNT(*) FROM sqlite_master WHERE type = 'table' AND name = 'goose_db_version'"
	if s.Dialect.Name() == "mysql" {
		exists = "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = 'goose_db_version'"
	}
	out := map[int64]bool{}
	var tables int
	if err := s.Write.QueryRowContext(ctx, exists).Scan(&tables); err != nil || tables == 0 {
		return out, err
	}
	return out, Query(ctx, s.Write, func(rows *sql.Rows) error {
		var version int64
		var applied bool
		err := rows.Scan(&version, &applied)
		out[version] = applied
		return err
	}, "SELECT version_id, is_applied FROM goose_db_version ORDER BY id")
}
