package db

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	gormsqlite "gorm.io/driver/sqlite"
	"gorm.io/gorm"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// SQLiteDialect speaks to the embedded database. A write transaction is the
// only one (BEGIN IMMEDIATE), so rows need no locks.
type SQLiteDialect struct{}

func (SQLiteDialect) Name() string { return "sqlite" }

// The database runs in this process and has no clock of its own. Taking it
// from Go lets tests run in virtual time.
func (SQLiteDialect) Clock() string {
	return strconv.FormatInt(time.Now().UnixMilli(), 10)
}

func (d SQLiteDialect) ClockNow() string { return d.Clock() }

func (SQLiteDialect) localClock() (int64, bool) { return time.Now().UnixMilli(), true }

func (SQLiteDialect) snapshot() sql.IsolationLevel { return sql.LevelDefault } // there is no other

func (SQLiteDialect) ForUpdate() string { return "" }

func (SQLiteDialect) ForUpdateSkip() string { return "" }

func (SQLiteDialect) ForShare() string { return "" }

func (SQLiteDialect) ByPrimary() string { return "" }

// A condition on the tenant would be taken for more selective than a list of
// ids. The row id needs no index.
func (SQLiteDialect) ByID() string { return " NOT INDEXED" }

func (SQLiteDialect) OnDuplicate(key string) string {
	return " ON CONFLICT (" + key + ") DO UPDATE SET"
}

func (SQLiteDialect) Inserted(column string) string { return "excluded." + column }

func (SQLiteDialect) ByIndex(index string) string { return " INDEXED BY " + index }

func (SQLiteDialect) InOrder() string { return " CROSS JOIN " }

func (SQLiteDialect) Bounded(query string) string { return "SELECT * FROM (" + query + ")" }

// Distinct goes from value to value, because SQLite reads all entries for a GROUP BY.
func (SQLiteDialect) Distinct(table, column string, after int64, limit int) string {
	return fmt.Sprintf("WITH RECURSIVE found(value) AS (SELECT MIN(%[1]s) FROM %[2]s WHERE %[1]s > %[3]d"+
		" UNION ALL SELECT (SELECT MIN(%[1]s) FROM %[2]s WHERE %[1]s > found.value) FROM found WHERE found.value IS NOT NULL LIMIT %[4]d)"+
		" SELECT value FROM found WHERE value IS NOT NULL", column, table, after, limit)
}

func (SQLiteDialect) insertBatch() int { return 1 }

// The database runs in this process: whoever reads it is connected, and others are not.
func (SQLiteDialect) Connect(*Tx, string) error { return nil }

func (SQLiteDialect) Connected(string) string { return "1" }

func (SQLiteDialect) DeleteBounded(table, where string) string {
	key := "rowid"
	if primary := withoutRowid[table]; primary != "" {
		key = primary
	}
	return "DELETE FROM " + table + " WHERE (" + key + ") IN (SELECT " + key + " FROM " + table + " WHERE " + where + " LIMIT ?)"
}

// withoutRowid are the primary keys of tables that have no rowid.
var withoutRowid = map[string]string{
	"outbox": "topic, id", "limits": "subject_id, kind", "document_sets": "tenant_id, kind, object_id", "error_texts": "tenant_id, fingerprint",
	"job_events": "job_id, number", "refused_declarations": "tenant_id, executor_id, name",
	"retention_rules": "tenant_id, job_id",
	"timer_labels":    "tenant_id, job_id, label, timer_id", "timer_counts": "tenant_id, job_id, slot", "stored_bytes": "tenant_id, slot", "statistics": "tenant_id, kind, subject_id, at, step, state",
	"failure_counts": "tenant_id, at, executor_id, job_id, fingerprint", "job_weeks": "tenant_id, job_id",
	"alert_receivers": "incident_id, receiver_key", "limit_holders": "subject_id, kind, execution_id", "limit_waiters": "subject_id, kind, precedence, execution_id",
}

// The clock is read inside of the only write transaction.
func (SQLiteDialect) Fresh(int64) string { return "" }

// ClaimAtOnce keeps claims from holding up the other writers: 500 triggers took
// 35 to 55 ms, twice a second, and have seconds to go (docs/adr/0046).
func (SQLiteDialect) ClaimAtOnce() int { return 64 }

// BulkAtOnce is smaller than on MySQL, because all other writers wait during a part. Each part
// writes a page of most partitions, so that smaller parts cost much more.
func (SQLiteDialect) BulkAtOnce() int { return 128 }

// update repeats one prepared statement: measured faster than any multi-row
// form with values of their own (DEPENDENCIES section 1.3).
func (SQLiteDialect) update(ctx context.Context, t *Tx, u *Update) (int64, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "UPDATE %s SET ", u.Table)
	args := writeAssignments(&b, u.Same)
	for i, c := range u.vary {
		if i > 0 || len(u.Same) > 0 {
			b.WriteString(", ")
		}
		writeAssignment(&b, assignment{column: c})
	}
	for i, c := range u.Keys {
		if i == 0 {
			b.WriteString(" WHERE ")
		} else {
			b.WriteString(" AND ")
		}
		b.WriteString(c.Name + " = ?")
	}
	b.WriteString(u.Guard)
	statement, err := t.SQL.PrepareContext(ctx, b.String())
	if err != nil {
		return 0, err
	}
	defer statement.Close()
	var total int64
	shared := len(args)
	for i := range u.len() {
		args = args[:shared]
		row := u.row(i)
		for k, c := range u.vary {
			args = append(args, row[len(u.Keys)+k].argument(c.Kind))
		}
		for k, c := range u.Keys {
			args = append(args, row[k].argument(c.Kind))
		}
		result, err := statement.ExecContext(ctx, args...)
		if err != nil {
			return total, err
		}
		n, err := result.RowsAffected()
		if err != nil {
			return total, err
		}
		total += n
	}
	return total, nil
}

// SQLiteDSN names the file and sets up each connection to it. FULL costs
// nothing for batches and survives a power cut. The log is copied into the
// file every 32 MiB: at the default of 4 MiB every full claim would do that in
// its commit, which took twice as long (13 against 7 ms), for pages that the
// next claim changes again.
//
// A list with large values goes through many pages. A reader keeps few of them, because it
// drops all pages that it has after each transaction of the writer.
func SQLiteDSN(path string, reader bool, busy time.Duration) string {
	q := url.Values{}
	cache := 64 << 10 // KiB
	if reader {
		cache = 16 << 10
	}
	q.Add("_txlock", "immediate")
	for _, pragma := range []string{
		fmt.Sprintf("busy_timeout(%d)", busy.Milliseconds()), "journal_mode(WAL)", "synchronous(FULL)", "wal_autocheckpoint(8192)", "temp_store(MEMORY)",
		fmt.Sprintf("cache_size(-%d)", cache),
	} {
		q.Add("_pragma", pragma)
	}
	if reader {
		q.Add("_pragma", "query_only(1)")
	}
	return (&url.URL{Scheme: "file", Opaque: url.PathEscape(path), RawQuery: q.Encode()}).String()
}

// sqliteReadDSN opens a file that must be there, and changes neither it nor how
// its journal is kept.
func sqliteReadDSN(path string, busy time.Duration) string {
	q := url.Values{"mode": {"rw"}}
	q.Add("_pragma", fmt.Sprintf("busy_timeout(%d)", busy.Milliseconds()))
	q.Add("_pragma", "query_only(1)")
	return (&url.URL{Scheme: "file", Opaque: url.PathEscape(path), RawQuery: q.Encode()}).String()
}

// openSQLite makes a writer with one connection, which queues the
// transactions of this process, and a pool of readers beside it.
func openSQLite(o Options) (write, read *sql.DB, err error) {
	if o.DSN == "" {
		return nil, nil, domain.Errorf(domain.CodeInvalid, "the SQLite database needs a path")
	}
	if o.ReadOnly {
		if read, err = sql.Open("sqlite", sqliteReadDSN(o.DSN, o.busy)); err != nil {
			return nil, nil, fmt.Errorf("open SQLite database: %w", err)
		}
		return read, read, nil
	}
	// SQLite would make it for all to read, and its WAL goes by the file's mode;
	// in it are hashes of passwords, inputs and logs.
	file, err := os.OpenFile(o.DSN, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, nil, fmt.Errorf("open SQLite database: %w", err)
	}
	if err := file.Close(); err != nil {
		return nil, nil, fmt.Errorf("open SQLite database: %w", err)
	}
	if write, err = openSQLitePool(o, false); err != nil {
		return nil, nil, fmt.Errorf("open SQLite writer: %w", err)
	}
	write.SetMaxOpenConns(1)
	if read, err = openSQLitePool(o, true); err != nil {
		write.Close()
		return nil, nil, fmt.Errorf("open SQLite readers: %w", err)
	}
	read.SetMaxOpenConns(o.MaxOpenConns)
	read.SetMaxIdleConns(o.MaxOpenConns)
	return write, read, nil
}

func openSQLitePool(o Options, reader bool) (*sql.DB, error) {
	db, err := sql.Open("sqlite", SQLiteDSN(o.DSN, reader, o.busy))
	if err != nil || o.Connector == nil {
		return db, err
	}
	plain := sqliteConnector{db.Driver(), SQLiteDSN(o.DSN, reader, o.busy)}
	return sql.OpenDB(o.Connector(plain)), db.Close()
}

// sqliteConnector is what sql.Open makes of a driver without connectors.
type sqliteConnector struct {
	driver driver.Driver
	dsn    string
}

func (c sqliteConnector) Connect(context.Context) (driver.Conn, error) { return c.driver.Open(c.dsn) }

func (c sqliteConnector) Driver() driver.Driver { return c.driver }

func sqliteGorm(db *sql.DB) gorm.Dialector {
	return gormsqlite.Dialector{DriverName: "sqlite", Conn: db}
}
