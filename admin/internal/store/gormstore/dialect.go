package gormstore

import (
	"context"
	"database/sql"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// dialect is what differs between the databases.
type dialect interface {
	name() string

	// clock is an SQL expression for the database's clock in milliseconds, in
	// the instant it is evaluated (after waiting for locks).
	clock() string
	// clockNow is the same at the beginning of the statement, as a constant
	// that an index can be searched with.
	clockNow() string

	// localClock returns the database's clock when it is that of this process.
	localClock() (ms int64, ok bool)

	// snapshot is the isolation under which all statements of a transaction see
	// what the first one saw.
	snapshot() sql.IsolationLevel

	// forUpdate is appended to a SELECT that locks rows; forUpdateSkip leaves
	// out rows that others have locked; forShare keeps others from changing them.
	forUpdate() string
	forUpdateSkip() string
	forShare() string
	// byPrimary and byIndex stand behind a table's name and tell the planner
	// which index to use.
	byPrimary() string
	// byID is byPrimary for an UPDATE of a table whose primary key is one
	// number: no other condition may choose the index.
	byID() string
	byIndex(index string) string
	// bounded makes a SELECT with ORDER BY and LIMIT a term of a UNION ALL.
	bounded(query string) string

	// connect makes other nodes see that this connection is open, for as long as
	// it is; connected is an SQL expression that says so of a boot id.
	connect(t *txn, bootID string) error
	connected(bootID string) string

	// version is an SQL expression; describe fills in what it says of the
	// database's setup; uniqueColumns lists a unique key's columns, given table
	// and key.
	version() string
	describe(ctx context.Context, q querier, d *domain.Database) error
	uniqueColumns() string

	// insertBatch is how many rows one INSERT takes; 1 = a prepared statement
	// is repeated.
	insertBatch() int
	// update sets columns of rows that differ in their values (update.go).
	update(ctx context.Context, t *txn, u *update) (found int64, err error)
	// fresh is a condition, beginning with AND, that now was read from the
	// database's clock not long ago; empty where it was read inside of the
	// transaction.
	fresh(now int64) string
	// singly is up to how many executions are cheaper moved one by one, each by
	// a statement that commits itself, than by the round trips of a transaction.
	singly() int
	// claimAtOnce is how many triggers one transaction claims while no more than
	// usual are due.
	claimAtOnce() int
	// onDuplicate begins, behind an INSERT, the list of what is set in a row that
	// is there with the same key; inserted is the value that a column was to get.
	onDuplicate(key string) string
	inserted(column string) string
	// deleteBounded deletes at most limit rows.
	deleteBounded(table, where string) string
}

type kind uint8

const (
	kindInt kind = iota
	kindText
	kindLongText
	kindBytes
)

// millis maps an instant to its column: Unix milliseconds, 0 = none.
func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// instant is the way back.
func instant(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

func flag(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
