// Package once makes an effect in your own database happen once, however often
// a run is tried: the key of the effect is written in the same transaction as
// the effect itself.
//
//	tx, err := db.BeginTx(ctx, nil)
//	…
//	defer tx.Rollback()
//	_, err = once.Do(ctx, tx, once.Key(ctx, "book"), func() error {
//		_, err := tx.ExecContext(ctx, "UPDATE accounts SET cents = cents - ? WHERE id = ?", cents, id)
//		return err
//	})
//	if err != nil {
//		return err
//	}
//	return tx.Commit()
//
// It needs one table, which Table creates, in MySQL, MariaDB, PostgreSQL and SQLite alike. Rows
// may be deleted when their runs cannot be tried any more: after some days.
//
// What lies outside of the database is not covered: hand executor.Task.Key to it.
package once

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	executor "github.com/carillon-sched/carillon/executor-sdk"
)

// Table is the statement that creates the table.
const Table = `CREATE TABLE carillon_once (
	once_key VARCHAR(190) NOT NULL PRIMARY KEY,
	done_at  TIMESTAMP    NOT NULL DEFAULT CURRENT_TIMESTAMP
)`

// MaxKey bounds keys, in bytes.
const MaxKey = 190

// Execer is what Do needs of a transaction; *sql.Tx and what wraps it have it.
type Execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// Key is the key of an effect of the run that ctx belongs to: the same in all
// of its attempts. name tells the run's effects apart. It is empty outside of a
// handler, and Do refuses an empty key.
func Key(ctx context.Context, name string) string {
	task := executor.TaskFrom(ctx)
	if task.ExecutionID == 0 {
		return ""
	}
	return task.Key() + "/" + name
}

// Do calls fn unless the key was used in a transaction that is committed. It
// returns whether fn was called, and fn's error. tx has to be one transaction with
// whatever fn does: commit it when Do returned no error, else roll it back.
//
// Two transactions with the same key at the same time: the database lets one of them wait for the
// other, and then fails it, or finds the key. A failed one is tried again by the next attempt.
//
// Keys have 1 to MaxKey bytes of letters, digits and . _ : / -
func Do(ctx context.Context, tx Execer, key string, fn func() error) (called bool, err error) {
	if err := check(key); err != nil {
		return false, executor.Permanent(fmt.Errorf("once: %w", err))
	}
	// The key stands in the statement because placeholders differ between
	// databases; check has left nothing that could end the string.
	result, err := tx.ExecContext(ctx, `INSERT INTO carillon_once (once_key)
		SELECT k FROM (SELECT '`+key+`' AS k) AS wanted
		WHERE NOT EXISTS (SELECT 1 FROM carillon_once WHERE once_key = '`+key+`')`)
	if err != nil {
		return false, fmt.Errorf("once: write key: %w", err)
	}
	rows, err := result.RowsAffected()
	if err != nil {
		return false, fmt.Errorf("once: write key: %w", err)
	}
	if rows == 0 {
		return false, nil
	}
	return true, fn()
}

var errKey = errors.New("keys have 1 to 190 bytes of letters, digits and . _ : / -")

func check(key string) error {
	if key == "" || len(key) > MaxKey {
		return fmt.Errorf("%q: %w", key, errKey)
	}
	for _, c := range []byte(key) {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9',
			c == '.', c == '_', c == ':', c == '/', c == '-':
		default:
			return fmt.Errorf("%q: %w", key, errKey)
		}
	}
	return nil
}
