package gormstore

import (
	"context"
	"database/sql/driver"
	"errors"
	"log/slog"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/console"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/engine"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/search"
)

// Options say which database, and how to use it.
type Options struct {
	// Driver is "sqlite" or "mysql" (MySQL 8, MariaDB 10.6 or newer).
	Driver string
	// DSN is the file's path for sqlite, and go-sql-driver's data source name
	// for mysql; settings that correctness depends on are overridden.
	DSN string
	// NewID makes ids for rows that the store writes by itself (alert events,
	// deliveries). It may be nil until UseIDs is called.
	NewID func() int64
	// Logger gets a line when a transaction had to be repeated; nil = slog.Default.
	Logger *slog.Logger
	// MaxOpenConns bounds the connections for transactions, and those for all
	// else; 0 = 16 of each for mysql, 4 readers for sqlite.
	MaxOpenConns int
	// AllowMultiWriter lets nodes write through several servers of one cluster.
	AllowMultiWriter bool
	// Connector may wrap the connections, for measurements that watch the
	// statements; nil = none. Wrapped connections must keep all of the driver's
	// optional interfaces.
	Connector func(driver.Connector) driver.Connector
	// NextFire computes when a fixed delay fires after the end of a run. It may
	// be nil where no job has one.
	NextFire store.NextFireFunc
	// FiresPerMinute is the most that a schedule fires in a minute, from now on;
	// nil: 0 of all of them.
	FiresPerMinute func(now time.Time, spec *domain.JobSpec) int
	// Misfire is asked about runs that start later than their misfire threshold;
	// nil: they start.
	Misfire store.MisfireFunc
	// Successes reads what a subscriber of the outbox wants to hear of runs that have
	// succeeded; nil: no run that has succeeded is an event.
	Successes engine.ReadSuccesses
	// Rearmed is called after a commit that set the next fire time of a fixed
	// delay, which may be near; it must not block. It may be nil.
	Rearmed func()
	// Observe is told of every transaction, after it; it must not block. It may be nil.
	Observe func(Transaction)
	// Unread are topics of the outbox without a reader. Nothing is written there.
	Unread domain.Topic
	// Tables are those of add-ons.
	Tables []OwnedTable
	// MaxSpecs bounds the cache of job revisions; 0 = 32768.
	MaxSpecs int
	// LogLimits bound what handlers' logs may fill.
	LogLimits store.LogLimits
	// ReadOnly is for who only looks: a file of SQLite has to be there, and
	// nothing can be written to it.
	ReadOnly bool
}

// Transaction is what Options.Observe hears.
type Transaction = db.Transaction

// What the database is asked before a node works with it.
type (
	Schema     = db.Schema
	Capacity   = db.Capacity
	Privileges = db.Privileges
)

// OwnedTable is a table of an add-on.
type OwnedTable = db.OwnedTable

// ConnectionsPerNode is how many connections a node has to a MySQL server.
const ConnectionsPerNode = db.ConnectionsPerNode

// connection is the part of the options that says how to speak to the database.
func (o Options) connection() db.Options {
	return db.Options{
		Driver: o.Driver, DSN: o.DSN, NewID: o.NewID, Logger: o.Logger, MaxOpenConns: o.MaxOpenConns,
		Connector: o.Connector, Rearmed: o.Rearmed, Observe: o.Observe, Unread: o.Unread, Tables: o.Tables, ReadOnly: o.ReadOnly, AllowMultiWriter: o.AllowMultiWriter,
	}
}

// Store is store.Store on one database. It is safe for concurrent use.
type Store struct {
	*db.DB
	*engine.Engine
	*console.Console
	search.Search
}

var _ store.Store = (*Store)(nil)

// Open connects to a database whose schema Migrate has brought up to date.
// Ids are needed by the writes that make alerts and deliveries: either give
// Options.NewID, or register the node first and call UseIDs with its source.
func Open(ctx context.Context, o Options) (*Store, error) {
	s, err := OpenReader(o)
	if err != nil {
		return nil, err
	}
	if err := s.Ping(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// OpenReader is Open without a look whether the database accepts writes.
func OpenReader(o Options) (*Store, error) {
	database, err := db.Open(o.connection())
	if err != nil {
		return nil, err
	}
	specs := record.NewSpecCache(db.OrDefault(o.MaxSpecs, 32768))
	e := engine.New(database, specs, engine.Rules{NextFire: o.NextFire, Misfire: o.Misfire, LogLimits: o.LogLimits, Successes: o.Successes})
	return &Store{database, e, console.New(database, specs, e, o.FiresPerMinute), search.New(database)}, nil
}

// Migrate brings the schema up to date. Several nodes may do it at once.
func Migrate(ctx context.Context, o Options) error { return db.Migrate(ctx, o.connection()) }

// PendingSQL returns the statements that Migrate would run, with a comment
// before each file, and "" when there are none. It changes nothing.
func PendingSQL(ctx context.Context, o Options) (text string, err error) {
	return db.PendingSQL(ctx, o.connection())
}

// Probe looks whether the database can be used at all, before anything is asked
// of it. Unreachable tells from the error whether it may come by itself.
func Probe(ctx context.Context, o Options) error { return db.Probe(ctx, o.connection()) }

// Refusal says in words what a server answers that no waiting changes.
func Refusal(err error) error { return db.Refusal(err) }

// Unreachable says in a few words, which stay the same as long as the cause
// does, why the database cannot be used now. It returns "" when err is none
// that passes by itself.
func Unreachable(err error) string { return db.Unreachable(err) }

// What CopySQLite and RestoreSQLite take and say.
type (
	Copied      = db.Copied
	Restoration = db.Restoration
	Restored    = db.Restored
)

// CopySQLite writes the database in a file into another one, checked, while others
// use it.
func CopySQLite(ctx context.Context, from, to, version string) (Copied, error) {
	return db.CopySQLite(ctx, from, to, version)
}

// RestoreSQLite puts a copy in the place of a database that nobody has open.
func RestoreSQLite(ctx context.Context, r Restoration) (Restored, error) {
	return db.RestoreSQLite(ctx, r)
}

// SyncPath makes a file, or the names in a folder, durable.
func SyncPath(path string) error { return db.SyncPath(path) }

// SameOwner gives a file to whom the first of the others that is there belongs.
func SameOwner(path string, others ...string) error { return db.SameOwner(path, others...) }
