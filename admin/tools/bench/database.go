package main

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/go-sql-driver/mysql"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore"
	"github.com/carillon-sched/carillon/internal/testenv/lab"
)

// Databases that can be measured.
const (
	MySQL  = "mysql" // MySQL or MariaDB
	SQLite = "sqlite"
)

// database is one empty, migrated database of a scenario.
type database struct {
	kind string
	dsn  string // as gormstore takes it
	flag string // as --database takes it
	// pid of the server, when it runs on this machine and may be read; 0 otherwise.
	pid  int
	drop func() error
}

// loaderNode is the node number in the ids of what the bench loads; real nodes
// count from 1.
const loaderNode = domain.MaxNodeID

func (d *database) options() gormstore.Options {
	return gormstore.Options{Driver: d.kind, DSN: d.dsn, Logger: slog.New(slog.DiscardHandler)}
}

// open returns a store of its own on the database.
func (d *database) open(ctx context.Context, ids *domain.IDSource) (*gormstore.Store, error) {
	o := d.options()
	o.NewID = ids.Next
	return gormstore.Open(ctx, o)
}

// newDatabase makes an empty database with all tables.
func (b *bench) newDatabase(ctx context.Context, kind, dir string) (*database, error) {
	d := &database{kind: kind, drop: func() error { return nil }}
	if kind == SQLite {
		d.dsn = filepath.Join(dir, "carillon.db")
		d.flag = "sqlite:" + d.dsn
	} else if err := d.createMySQL(ctx, b.o.MySQL); err != nil {
		return nil, err
	}
	if err := gormstore.Migrate(ctx, d.options()); err != nil {
		return nil, errors.Join(err, d.drop())
	}
	return d, nil
}

type serverDSN string

func (s serverDSN) DSN() string { return string(s) }

func (d *database) createMySQL(ctx context.Context, server string) error {
	config, err := mysql.ParseDSN(server)
	if err != nil {
		return fmt.Errorf("the MySQL DSN: %w", err)
	}
	config.DBName = ""
	name := "carillon_bench_" + strings.ToLower(rand.Text()[:12])
	server = config.FormatDSN()
	if _, err := lab.CreateDatabase(ctx, serverDSN(server), name); err != nil {
		return fmt.Errorf("create a database for the measurement: %w", err)
	}
	d.drop = func() error {
		return onServer(context.WithoutCancel(ctx), server, func(ctx context.Context, db *sql.DB) error {
			_, err := db.ExecContext(ctx, "DROP DATABASE "+name)
			return err
		})
	}
	config.DBName = name
	d.dsn = config.FormatDSN()
	d.flag = "mysql:" + d.dsn
	return onServer(ctx, server, func(ctx context.Context, db *sql.DB) (err error) {
		d.pid, err = serverPID(ctx, db)
		return err
	})
}

// moveFlag has nodes find the server at another address.
func (d *database) moveFlag(to func(addr string) (string, error)) error {
	config, err := mysql.ParseDSN(d.dsn)
	if err != nil {
		return err
	}
	if config.Addr, err = to(config.Addr); err != nil {
		return err
	}
	d.flag = "mysql:" + config.FormatDSN()
	return nil
}

func onServer(ctx context.Context, dsn string, do func(context.Context, *sql.DB) error) error {
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		return err
	}
	defer db.Close()
	return do(ctx, db)
}

// serverPID finds the server's process, or 0 when it is out of reach.
func serverPID(ctx context.Context, db *sql.DB) (int, error) {
	var dir, file string
	if err := db.QueryRowContext(ctx, "SELECT @@datadir, @@pid_file").Scan(&dir, &file); err != nil {
		return 0, fmt.Errorf("ask the server for its pid: %w", err)
	}
	if !filepath.IsAbs(file) {
		file = filepath.Join(dir, file)
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		return 0, nil //nolint:nilerr // another machine or another user's file: its CPU is not measured
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(raw)))
	if err != nil || lab.UsageOf(pid).RSS == 0 {
		return 0, nil //nolint:nilerr // the same
	}
	return pid, nil
}

// describeMySQL returns version and settings that figures depend on, and
// refuses a server that does not commit durably: its figures would be others.
func describeMySQL(ctx context.Context, dsn string) (string, error) {
	config, err := mysql.ParseDSN(dsn)
	if err != nil {
		return "", fmt.Errorf("the MySQL DSN: %w", err)
	}
	config.DBName = ""
	var out string
	err = onServer(ctx, config.FormatDSN(), func(ctx context.Context, db *sql.DB) error {
		var version string
		var flush, pool, logSize, binlog int64
		err := db.QueryRowContext(ctx, "SELECT VERSION(), @@innodb_flush_log_at_trx_commit, @@innodb_buffer_pool_size, @@log_bin").
			Scan(&version, &flush, &pool, &binlog)
		if err != nil {
			return err
		}
		if logSize, err = redoLogSize(ctx, db); err != nil {
			return err
		}
		if flush != 1 {
			return fmt.Errorf("innodb_flush_log_at_trx_commit is %d; figures are for durable commits, so it has to be 1", flush)
		}
		out = fmt.Sprintf("%s, innodb_flush_log_at_trx_commit=1, buffer pool %d MiB, redo log %d MiB, binary log %s",
			version, pool>>20, logSize>>20, map[bool]string{false: "off", true: "on"}[binlog == 1])
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("ask the MySQL server: %w", err)
	}
	return out, nil
}

// redoLogSize is in bytes. MySQL has a variable of its own for it since 8.0.30,
// where that of before, which comes first, may be there and counts nothing.
func redoLogSize(ctx context.Context, db *sql.DB) (size int64, err error) {
	rows, err := db.QueryContext(ctx, "SHOW VARIABLES WHERE Variable_name IN ('innodb_log_file_size', 'innodb_redo_log_capacity')")
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name, &size); err != nil {
			return 0, err
		}
	}
	return size, rows.Err()
}

func describeSQLite(ctx context.Context) (string, error) {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		return "", err
	}
	defer db.Close()
	var version string
	if err := db.QueryRowContext(ctx, "SELECT sqlite_version()").Scan(&version); err != nil {
		return "", err
	}
	return version + ", embedded, WAL, synchronous=FULL", nil
}
