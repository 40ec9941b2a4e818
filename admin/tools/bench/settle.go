package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
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
		restore, err := writeAtOnce(ctx, db)
		defer func() {
			err = joinClose(err, func() error { return restore(context.WithoutCancel(ctx)) })
		}()
		if isDenied(err) {
			r.note(f.b, "the server still writes what was loaded: this user may not have it done before")
			return nil
		} else if err != nil {
			return fmt.Errorf("have the server write its pages: %w", err)
		}
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

// writeAtOnce has the server write all its changed pages, as fast as the disk
// takes them: by default it writes 200 a second. Call restore in any case.
func writeAtOnce(ctx context.Context, db *sql.DB) (restore func(context.Context) error, err error) {
	var usual []string
	restore = func(ctx context.Context) error {
		for _, set := range slices.Backward(usual) {
			if _, err := db.ExecContext(ctx, set); err != nil {
				return fmt.Errorf("%s: %w", set, err)
			}
		}
		return nil
	}
	for _, to := range []struct{ variable, value string }{
		{"innodb_io_capacity_max", "20000"}, {"innodb_io_capacity", "20000"}, {"innodb_max_dirty_pages_pct", "0"},
	} {
		var was string
		if err := db.QueryRowContext(ctx, "SELECT @@GLOBAL."+to.variable).Scan(&was); err != nil {
			return restore, fmt.Errorf("ask for %s: %w", to.variable, err)
		}
		if _, err := db.ExecContext(ctx, "SET GLOBAL "+to.variable+" = "+to.value); err != nil {
			return restore, fmt.Errorf("set %s: %w", to.variable, err)
		}
		usual = append(usual, "SET GLOBAL "+to.variable+" = "+was)
	}
	return restore, nil
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
