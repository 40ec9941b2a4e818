package admin_test

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"sync"
	"testing"

	_ "github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"

	"github.com/carillon-sched/carillon/executor-sdk/once"
	"github.com/carillon-sched/carillon/internal/testenv"
)

// TestOnceInTheUsersOwnTransaction: an effect and its key are one, on the
// databases that applications use.
func TestOnceInTheUsersOwnTransaction(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func() (*sql.DB, error){
		"sqlite": func() (*sql.DB, error) {
			return sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "shop.db")+"?_pragma=busy_timeout(10000)&_txlock=immediate")
		},
		"mysql": func() (*sql.DB, error) { return sql.Open("mysql", testenv.Database(t)) },
	} {
		t.Run(name, func(t *testing.T) {
			db, err := open()
			require.NoError(t, err)
			defer db.Close()
			ctx := t.Context()
			for _, statement := range []string{once.Table, "CREATE TABLE account (cents INT NOT NULL)", "INSERT INTO account (cents) VALUES (0)"} {
				_, err := db.ExecContext(ctx, statement)
				require.NoError(t, err)
			}
			book := func(key string, fail error) (called bool, err error) {
				tx, err := db.BeginTx(ctx, nil)
				if err != nil {
					return false, err
				}
				defer func() { _ = tx.Rollback() }()
				called, err = once.Do(ctx, tx, key, func() error {
					if _, err := tx.ExecContext(ctx, "UPDATE account SET cents = cents + 1"); err != nil {
						return err
					}
					return fail
				})
				if err != nil {
					return called, err
				}
				return called, tx.Commit()
			}
			balance := func() (cents int) {
				require.NoError(t, db.QueryRowContext(ctx, "SELECT cents FROM account").Scan(&cents))
				return cents
			}
			boom := errors.New("boom")
			_, err = book("7/book", boom)
			require.ErrorIs(t, err, boom)
			require.Zero(t, balance(), "a failure leaves no key")
			called, err := book("7/book", nil)
			require.NoError(t, err)
			require.True(t, called)
			called, err = book("7/book", boom)
			require.NoError(t, err)
			require.False(t, called)
			require.Equal(t, 1, balance())

			// Many at once: those that fail are tried again, as a retry does.
			var wg sync.WaitGroup
			for range 8 {
				wg.Go(func() {
					for range 100 {
						if _, err := book("8/book", nil); err == nil {
							return
						}
					}
					t.Error("it never succeeds")
				})
			}
			wg.Wait()
			require.Equal(t, 2, balance())

			for _, key := range []string{"", "it's", "a;b", "a\\b", "ключ", string(make([]byte, 191))} {
				_, err := book(key, nil)
				require.ErrorContains(t, err, "letters, digits")
			}
			require.Empty(t, once.Key(context.Background(), "book"), "outside of a handler there is no key")
		})
	}
}
