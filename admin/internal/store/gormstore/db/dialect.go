package db

import (
	"context"
	"database/sql"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// Dialect is what differs between the databases.
type Dialect interface {
	Name() string

	// Clock is an SQL expression for the database's clock in milliseconds, in
	// the instant it is evaluated (after waiting for locks).
	Clock() string
	// ClockNow is the same at the beginning of the statement, as a constant
	// that an index can be searched with.
	ClockNow() string

	// localClock returns the database's clock when it is that of this process.
	localClock() (ms int64, ok bool)

	// snapshot is the isolation under which all statements of a transaction see
	// what the first one saw.
	snapshot() sql.IsolationLevel

	// ForUpdate is appended to a SELECT that locks rows; ForUpdateSkip leaves
	// out rows that others have locked; ForShare keeps others from changing them.
	ForUpdate() string
	ForUpdateSkip() string
	ForShare() string
	// ByPrimary and ByIndex stand behind a table's name and tell the planner
	// which index to use.
	ByPrimary() string
	// ByID is ByPrimary for an UPDATE of a table whose primary key is one
	// number: no other condition may choose the index.
	ByID() string
	ByIndex(index string) string
	// InOrder joins a table to those before it, and the planner keeps that order.
	InOrder() string
	// Bounded makes a SELECT with ORDER BY and LIMIT a term of a UNION ALL.
	Bounded(query string) string
	// Distinct reads the values of a column that an index begins with: at most limit of
	// those after a value, in order. It looks at one entry of each value.
	Distinct(table, column string, after int64, limit int) string

	// Connect makes other nodes see that this connection is open, for as long as
	// it is; connected is an SQL expression that says so of a boot id.
	Connect(t *Tx, bootID string) error
	Connected(bootID string) string

	// Version is an SQL expression; describe fills in what it says of the
	// database's setup; UniqueColumns lists a unique key's columns, given table
	// and key.
	Version() string
	Describe(ctx context.Context, q Querier, d *domain.Database) error
	UniqueColumns() string

	// insertBatch is how many rows one INSERT takes; 1 = a prepared statement
	// is repeated.
	insertBatch() int
	// update sets columns of rows that differ in their values (update.go).
	update(ctx context.Context, t *Tx, u *Update) (found int64, err error)
	// Fresh is a condition, beginning with AND, that now was read from the
	// database's clock not long ago; empty where it was read inside of the
	// transaction.
	Fresh(now int64) string
	// ClaimAtOnce is how many triggers one transaction claims while no more than
	// usual are due.
	ClaimAtOnce() int
	// BulkAtOnce is how many rows one transaction of RunBulk writes at most.
	BulkAtOnce() int
	// OnDuplicate begins, behind an INSERT, the list of what is set in a row that
	// is there with the same key; inserted is the value that a column was to get.
	OnDuplicate(key string) string
	Inserted(column string) string
	// DeleteBounded deletes at most limit rows.
	DeleteBounded(table, where string) string
}

type kind uint8

const (
	kindInt kind = iota
	kindText
	KindLongText
	KindBytes
)

// Millis maps an instant to its column: Unix milliseconds, 0 = none.
func Millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// Instant is the way back.
func Instant(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// At has a column of Unix milliseconds scanned into an instant.
func At(t *time.Time) sql.Scanner { return (*instant)(t) }

type instant time.Time

func (i *instant) Scan(column any) error {
	var ms sql.Null[int64]
	err := ms.Scan(column)
	*i = instant(Instant(ms.V))
	return err
}

// Flag is a bool as a column holds it: 1 = yes.
func Flag(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
