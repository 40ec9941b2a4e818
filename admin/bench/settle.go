package bench

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/go-sql-driver/mysql"
)

const (
	// settledPages is the part of the buffer pool, one in so many pages, that may
	// still differ from the files when the server counts as settled.
	settledPages = 50
	// settleTime bounds the wait for it.
	settleTime = 3 * time.Minute
)

// settle has the server write what was loaded into its files, as it would have
// in the month in which so many rows come together. Otherwise it does so in the
// window that is measured: all of the redo log is in use then, and each new
// page of it has the server write an old one first.
func (f *fleet) settle(ctx context.Context, r *Result) error {
	if f.db.kind == SQLite || f.b.o.Quick {
		return nil
	}
	return onServer(ctx, f.db.dsn, func(ctx context.Context, db *sql.DB) (err error) {
		var usual float64
		if err := db.QueryRowContext(ctx, "SELECT @@GLOBAL.innodb_max_dirty_pages_pct").Scan(&usual); err != nil {
			return fmt.Errorf("ask how many pages may wait to be written: %w", err)
		}
		limit := func(ctx context.Context, percent float64) error {
			_, err := db.ExecContext(ctx, fmt.Sprintf("SET GLOBAL innodb_max_dirty_pages_pct = %g", percent))
			return err
		}
		if err := limit(ctx, 0); isDenied(err) {
			r.note(f.b, "the server still writes what was loaded: this user may not have it done before")
			return nil
		} else if err != nil {
			return fmt.Errorf("have the server write its pages: %w", err)
		}
		defer func() {
			err = joinClose(err, func() error { return limit(context.WithoutCancel(ctx), usual) })
		}()
		began := time.Now()
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		for time.Since(began) < settleTime {
			dirty, total, err := bufferPool(ctx, db)
			if err != nil {
				return err
			}
			if dirty*settledPages < total {
				r.note(f.b, "the server had written it after %.0f s more", time.Since(began).Seconds())
				return nil
			}
			select {
			case <-ticker.C:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		r.note(f.b, "the server still writes what was loaded, %v later", settleTime)
		return nil
	})
}

// isDenied reports that the user lacks a privilege.
func isDenied(err error) bool {
	var my *mysql.MySQLError
	return errors.As(err, &my) && my.Number == 1227
}

// bufferPool returns how many pages wait to be written, and how many there are.
func bufferPool(ctx context.Context, db *sql.DB) (dirty, total int64, err error) {
	for name, to := range map[string]*int64{"Innodb_buffer_pool_pages_dirty": &dirty, "Innodb_buffer_pool_pages_total": &total} {
		var same string
		if err := db.QueryRowContext(ctx, "SHOW GLOBAL STATUS LIKE '"+name+"'").Scan(&same, to); err != nil {
			return 0, 0, fmt.Errorf("ask for the state of the buffer pool: %w", err)
		}
	}
	return dirty, total, nil
}
