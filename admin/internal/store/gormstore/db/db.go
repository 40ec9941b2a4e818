package db

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

// Options say which database, and how to speak to it; Options has their
// meaning.
type Options struct {
	Driver, DSN  string
	NewID        func() int64
	Logger       *slog.Logger
	MaxOpenConns int
	Connector    func(driver.Connector) driver.Connector
	Rearmed      func()
	Observe      func(Transaction)
	Unread       domain.Topic
	Tables       []OwnedTable
	ReadOnly     bool
	// AllowMultiWriter: nodes may write through several servers of one cluster.
	AllowMultiWriter bool

	// migrating: statements may take as long as a migration may.
	migrating bool
	busy      time.Duration // how long SQLite waits for another process's lock; 0 = 10 s
}

// DB is one database: its connections, its transactions and its clock. It is
// safe for concurrent use.
type DB struct {
	// Fixed after construction.
	Dialect      Dialect
	Write, Read  *sql.DB             // the same pool on MySQL
	Transactions *sql.DB             // for transactions only, on MySQL, write on SQLite
	Leases       *sql.DB             // one connection of its own on MySQL, write on SQLite
	turn         *semaphore.Weighted // of the only writer, in the order of coming; nil on MySQL
	bulk         *bulkTurn           // of RunBulk, before turn; nil on MySQL
	Gorm         *gorm.DB            // on txs
	Reader       *gorm.DB
	Logger       *slog.Logger
	Lookup       Querier                                                 // reads outside of transactions go through it; s.read, but for tests
	InSnapshot   func(ctx context.Context, fn func(Querier) error) error // snapshot, but for tests
	Commit       func(*sql.Tx) error                                     // (*sql.Tx).Commit, but for tests of lost answers
	Clock        *ClockEstimate
	Rollbacks    *rollbackDetector
	writers      *writerGate // nil = no cluster of MySQL's kind, or several are allowed
	OnRearm      func()
	Observe      func(Transaction)
	Unread       domain.Topic // topics of the outbox without a reader
	Tables       []OwnedTable // of add-ons

	idSource  atomic.Pointer[func() int64]
	AuditMark AuditMark
}

// createBatch is how many rows one statement inserts: a list may be as long as a tenant
// makes it. Rows of up to 80 columns stay below SQLite's 32,766 parameters.
const createBatch = 400

// Open prepares the connections; whether the database answers, the first
// statement tells.
func Open(o Options) (*DB, error) {
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	s := &DB{Logger: o.Logger, OnRearm: o.Rearmed, Observe: o.Observe, Unread: o.Unread, Tables: o.Tables, Rollbacks: newRollbackDetector(), Clock: NewClockEstimate()}
	if o.NewID != nil {
		s.idSource.Store(&o.NewID)
	}
	var err error
	var dialector func(*sql.DB) gorm.Dialector
	switch o.Driver {
	case "mysql":
		o.MaxOpenConns = OrDefault(o.MaxOpenConns, mysqlPoolSize)
		s.Dialect, dialector = MySQLDialect{}, mysqlGorm
		var pools mysqlPools
		if !o.AllowMultiWriter && !o.ReadOnly {
			s.writers = &writerGate{log: o.Logger}
		}
		pools, err = openMySQL(o, s.Rollbacks, s.writers)
		s.Write, s.Read, s.Transactions, s.Leases = pools.main, pools.main, pools.txs, pools.leases
	case "sqlite":
		o.MaxOpenConns = OrDefault(o.MaxOpenConns, 4)
		if o.busy == 0 {
			o.busy = 10 * time.Second
		}
		s.Dialect, dialector = SQLiteDialect{}, sqliteGorm
		s.Write, s.Read, err = openSQLite(o)
		s.Transactions, s.Leases, s.turn, s.bulk = s.Write, s.Write, semaphore.NewWeighted(1), newBulkTurn()
	default:
		return nil, domain.Errorf(domain.CodeInvalid, "unknown database driver %q: use sqlite or mysql", o.Driver)
	}
	if err != nil {
		return nil, err
	}
	// PrepareStmt stays off: it makes transactions slower (DEPENDENCIES 1.14).
	cfg := func() *gorm.Config {
		return &gorm.Config{SkipDefaultTransaction: true, Logger: logger.Discard, DisableAutomaticPing: true, CreateBatchSize: createBatch}
	}
	if s.Gorm, err = gorm.Open(dialector(s.Transactions), cfg()); err != nil {
		return nil, errors.Join(fmt.Errorf("open database: %w", err), s.Close())
	}
	s.Reader = s.Gorm
	if s.Read != s.Transactions {
		if s.Reader, err = gorm.Open(dialector(s.Read), cfg()); err != nil {
			return nil, errors.Join(fmt.Errorf("open database for reading: %w", err), s.Close())
		}
	}
	s.Lookup, s.InSnapshot, s.Commit = s.Read, s.Snapshot, (*sql.Tx).Commit
	return s, nil
}

func (o Options) connector(c driver.Connector) driver.Connector {
	if o.Connector != nil {
		return o.Connector(c)
	}
	return c
}

// OrDefault is n, or otherwise where n is not positive.
func OrDefault(n, otherwise int) int {
	if n > 0 {
		return n
	}
	return otherwise
}

// UseIDs gives the store its source of ids, once the node knows its number.
func (s *DB) UseIDs(ids *domain.IDSource) {
	next := ids.Next
	s.idSource.Store(&next)
}

// NewID returns a new id; it is an error of the wiring when there is no source.
func (s *DB) NewID() (int64, error) {
	next := s.idSource.Load()
	if next == nil {
		return 0, errors.New("the store has no source of ids: call UseIDs after RegisterNode")
	}
	return (*next)(), nil
}

// Ping checks that the database answers and accepts writes.
func (s *DB) Ping(ctx context.Context) error {
	return s.Run(ctx, "ping", func(t *Tx) error {
		_, err := t.Exec(t.Ctx, "DELETE FROM cluster_values WHERE name = ?", "ping")
		return err
	})
}

// Close ends all connections.
func (s *DB) Close() error {
	var errs []error
	for _, p := range s.pools() {
		// A connection to a server that broke before it was closed is closed all the same.
		if err := p.db.Close(); s.Dialect.Name() == "sqlite" {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
