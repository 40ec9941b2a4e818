package gormstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// dbOptions say which database, and how to speak to it; Options has their
// meaning.
type dbOptions struct {
	Driver, DSN  string
	NewID        func() int64
	Logger       *slog.Logger
	MaxOpenConns int
	Connector    func(driver.Connector) driver.Connector
	Rearmed      func()
	Observe      func(Transaction)

	// migrating: statements may take as long as a migration may.
	migrating bool
	busy      time.Duration // how long SQLite waits for another process's lock; 0 = 10 s
}

// DB is one database: its connections, its transactions and its clock. It is
// safe for concurrent use.
type DB struct {
	// Fixed after construction.
	d           dialect
	write, read *sql.DB             // the same pool on MySQL
	txs         *sql.DB             // for transactions alone on MySQL (implicit.go), write on SQLite
	leases      *sql.DB             // one connection of its own on MySQL, write on SQLite
	turn        *semaphore.Weighted // of the only writer, in the order of coming; nil on MySQL
	db          *gorm.DB            // on txs
	reader      *gorm.DB
	refusing    *gorm.DB // refuses all statements (alone.go)
	log         *slog.Logger
	lookup      querier                                                 // reads outside of transactions go through it; s.read, but for tests
	inSnapshot  func(ctx context.Context, fn func(querier) error) error // snapshot, but for tests
	commit      func(*sql.Tx) error                                     // (*sql.Tx).Commit, but for tests of lost answers
	execAlone   execFunc                                                // execUnwatched, but for tests of lost answers
	clock       *estimate
	rollbacks   *rollbackDetector
	onRearm     func()
	observe     func(Transaction)

	newID atomic.Pointer[func() int64]
}

// openDB prepares the connections; whether the database answers, the first
// statement tells.
func openDB(o dbOptions) (*DB, error) {
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	s := &DB{log: o.Logger, onRearm: o.Rearmed, observe: o.Observe, rollbacks: newRollbackDetector(), clock: newEstimate()}
	if o.NewID != nil {
		s.newID.Store(&o.NewID)
	}
	var err error
	var dialector func(*sql.DB) gorm.Dialector
	switch o.Driver {
	case "mysql":
		o.MaxOpenConns = orDefault(o.MaxOpenConns, 16)
		s.d, dialector = mysqlDialect{}, mysqlGorm
		var pools mysqlPools
		pools, err = openMySQL(o, s.rollbacks)
		s.write, s.read, s.txs, s.leases = pools.main, pools.main, pools.txs, pools.leases
	case "sqlite":
		o.MaxOpenConns = orDefault(o.MaxOpenConns, 4)
		if o.busy == 0 {
			o.busy = 10 * time.Second
		}
		s.d, dialector = sqliteDialect{}, sqliteGorm
		s.write, s.read, err = openSQLite(o)
		s.txs, s.leases, s.turn = s.write, s.write, semaphore.NewWeighted(1)
	default:
		return nil, domain.Errorf(domain.CodeInvalid, "unknown database driver %q: use sqlite or mysql", o.Driver)
	}
	if err != nil {
		return nil, err
	}
	// PrepareStmt stays off: it makes transactions slower (DEPENDENCIES 1.14).
	cfg := func() *gorm.Config {
		return &gorm.Config{SkipDefaultTransaction: true, Logger: logger.Discard, DisableAutomaticPing: true}
	}
	if s.db, err = gorm.Open(dialector(s.txs), cfg()); err != nil {
		return nil, errors.Join(fmt.Errorf("open database: %w", err), s.Close())
	}
	s.refusing = s.db.Session(&gorm.Session{NewDB: true, Context: context.Background()}) // with a statement of its own
	s.refusing.Statement.ConnPool = refused{}
	s.reader = s.db
	if s.read != s.txs {
		if s.reader, err = gorm.Open(dialector(s.read), cfg()); err != nil {
			return nil, errors.Join(fmt.Errorf("open database for reading: %w", err), s.Close())
		}
	}
	s.lookup, s.inSnapshot, s.commit, s.execAlone = s.read, s.snapshot, (*sql.Tx).Commit, s.execUnwatched
	return s, nil
}

func (o dbOptions) connector(c driver.Connector) driver.Connector {
	if o.Connector != nil {
		return o.Connector(c)
	}
	return c
}

func orDefault(n, otherwise int) int {
	if n > 0 {
		return n
	}
	return otherwise
}

// UseIDs gives the store its source of ids, once the node knows its number.
func (s *DB) UseIDs(ids *domain.IDSource) {
	next := ids.Next
	s.newID.Store(&next)
}

// id returns a new id; it is an error of the wiring when there is no source.
func (s *DB) id() (int64, error) {
	next := s.newID.Load()
	if next == nil {
		return 0, errors.New("the store has no source of ids: call UseIDs after RegisterNode")
	}
	return (*next)(), nil
}

// Ping checks that the database answers and accepts writes.
func (s *DB) Ping(ctx context.Context) error {
	return s.run(ctx, "ping", func(t *txn) error {
		_, err := t.exec(t.ctx, "DELETE FROM cluster_values WHERE name = ?", "ping")
		return err
	})
}

// Close ends all connections.
func (s *DB) Close() error {
	var errs []error
	for _, p := range s.pools() {
		errs = append(errs, p.db.Close())
	}
	return errors.Join(errs...)
}
