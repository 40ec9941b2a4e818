package db

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"time"

	"modernc.org/sqlite"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// backupValue is the cluster value in which a copy says what it is of. A
// database that serves has none.
const backupValue = "backup"

// copyStep is how many pages are copied between two looks at the context: 8 MiB.
const copyStep = 2048

// Copied is what the copy of a SQLite database says of itself.
type Copied struct {
	// At is an instant whose commits are all in it, and none that is much later.
	At time.Time `json:"at"`
	// Version is of the program that made it; empty = it was not made by CopySQLite.
	Version string `json:"version"`
	// Cluster and SealingKey are the cluster's id and its key's fingerprint;
	// empty = no node has served it.
	Cluster, SealingKey string `json:"-"`
	// Schema is the number of its last migration, Known that of this program.
	Schema, Known int64          `json:"-"`
	History       domain.History `json:"-"`
}

// CopySQLite writes the database in the file from, as it is at one instant, into
// the file to, which is there and empty, and checks the copy. Others go on
// writing meanwhile; the log of their writes grows until the end.
func CopySQLite(ctx context.Context, from, to, version string) (c Copied, err error) {
	source, err := sql.Open("sqlite", SQLiteDSN(from, true, 10*time.Second))
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	conn, err := source.Conn(ctx)
	if err != nil {
		return c, fmt.Errorf("open %s: %w", from, err)
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	c = Copied{At: time.Now().UTC(), Version: version}
	// One read transaction from the first page to the last: without it each write
	// of another process would begin the copy anew.
	var tables int
	if _, err := conn.ExecContext(ctx, "BEGIN"); err != nil {
		return c, fmt.Errorf("begin the copy: %w", err)
	}
	if err := conn.QueryRowContext(ctx, "SELECT COUNT(*) FROM sqlite_master WHERE name = 'cluster_values'").Scan(&tables); err != nil {
		return c, fmt.Errorf("read %s: %w", from, err)
	}
	if tables == 0 {
		return c, fmt.Errorf("%s is no database of Carillon's", from)
	}
	if err := conn.Raw(func(raw any) error { return copyPages(ctx, raw, to) }); err != nil {
		return c, fmt.Errorf("copy %s: %w", from, err)
	}
	if _, err := conn.ExecContext(ctx, "ROLLBACK"); err != nil {
		return c, fmt.Errorf("end the copy: %w", err)
	}
	err = withFile(ctx, to, func(file *sql.DB) error {
		if err := sound(ctx, file, "quick_check"); err != nil {
			return err
		}
		label, err := json.Marshal(c)
		if err != nil {
			return err
		}
		if _, err := file.ExecContext(ctx, "INSERT OR REPLACE INTO cluster_values (name, value) VALUES (?, ?)", backupValue, string(label)); err != nil {
			return err
		}
		c, err = describeCopy(ctx, file)
		return err
	})
	return c, err
}

func copyPages(ctx context.Context, raw any, to string) error {
	source, ok := raw.(interface {
		NewBackup(destination string) (*sqlite.Backup, error)
	})
	if !ok {
		return fmt.Errorf("the SQLite driver's connections (%T) cannot be copied", raw)
	}
	b, err := source.NewBackup(fileURI(to, url.Values{"_pragma": {"synchronous(OFF)"}})) // it is synced as a whole
	if err != nil {
		return err
	}
	for more := true; more && err == nil; {
		if more, err = b.Step(copyStep); err == nil {
			err = ctx.Err()
		}
	}
	return errors.Join(err, b.Finish())
}

// withFile lends a connection to a SQLite file that nobody else uses. It leaves
// one file, without a log beside it.
func withFile(ctx context.Context, path string, do func(*sql.DB) error) (err error) {
	file, err := sql.Open("sqlite", fileURI(path, url.Values{"_pragma": {"journal_mode(DELETE)", "secure_delete(ON)"}}))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	file.SetMaxOpenConns(1)
	if err := file.PingContext(ctx); err != nil {
		return fmt.Errorf("open %s: %w", path, err)
	}
	if err := do(file); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

func fileURI(path string, query url.Values) string {
	return (&url.URL{Scheme: "file", Opaque: url.PathEscape(path), RawQuery: query.Encode()}).String()
}

// sound asks SQLite whether the file is whole: quick_check or integrity_check.
func sound(ctx context.Context, q Querier, check string) error {
	var found []string
	err := Query(ctx, q, func(rows *sql.Rows) error {
		var line string
		err := rows.Scan(&line)
		if line != "ok" {
			found = append(found, line)
		}
		return err
	}, "PRAGMA "+check+"(10)")
	if err != nil && !isDamaged(err) {
		return fmt.Errorf("check it: %w", err)
	}
	if err != nil {
		found = append(found, err.Error())
	}
	if len(found) > 0 {
		return domain.Errorf(domain.CodeInvalid, "it is damaged: %s", found[0])
	}
	return nil
}

// describeCopy reads what stands in it.
func describeCopy(ctx context.Context, q Querier) (c Copied, err error) {
	var label, epoch, doubt string
	var beat, mark int64
	err = Query(ctx, q, func(rows *sql.Rows) error {
		return rows.Scan(&label, &c.Cluster, &c.SealingKey, &c.Schema, &beat, &epoch, &doubt, &mark)
	}, "SELECT "+clusterValue(backupValue, "{}")+", "+clusterValue("cluster_id", "")+", "+clusterValue("sealing_key_fingerprint", "")+
		", COALESCE((SELECT MAX(version_id) FROM goose_db_version), 0), COALESCE((SELECT MAX(heartbeat_at) FROM nodes), 0), "+HistoryColumns())
	if err != nil {
		return c, fmt.Errorf("no database of Carillon's: %w", err)
	}
	if err := json.Unmarshal([]byte(label), &c); err != nil {
		return c, fmt.Errorf("what it says of itself: %w", err)
	}
	if c.At.IsZero() {
		c.At = Instant(beat) // the last sign of life in it
	}
	found, doubted, err := HistoryOf(epoch, doubt, mark)
	if c.History = found; found.Before(doubted.History) {
		c.History = doubted.History
	}
	return c, err
}

// clusterValue is an SQL expression for a value of the cluster.
func clusterValue(name, otherwise string) string {
	return "COALESCE((SELECT value FROM cluster_values WHERE name = '" + name + "'), '" + otherwise + "')"
}
