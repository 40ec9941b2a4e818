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

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
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
	// Rearmed is called after a commit that set the next fire time of a fixed
	// delay, which may be near; it must not block. It may be nil.
	Rearmed func()
	// Observe is told of every transaction, after it; it must not block. It may be nil.
	Observe func(Transaction)
	// MaxSpecs bounds the cache of job revisions; 0 = 32768.
	MaxSpecs int
	// LogLimits bound what handlers' logs may fill.
	LogLimits store.LogLimits

	// migrating: statements may take as long as a migration may.
	migrating bool
	busy      time.Duration // how long SQLite waits for another process's lock; 0 = 10 s
}

// Store is store.Store on one database. It is safe for concurrent use.
type Store struct {
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
	specs       *specCache
	panics      *rate.Limiter // of executions that are set aside because of one
	limits      limitCache
	logLimits   store.LogLimits
	flights     *flights
	clock       *estimate
	rollbacks   *rollbackDetector
	due         foundDue
	asideUntil  *lru.Cache[domain.JobID, time.Time] // triggers that could not be planned (asideTriggers)
	instances   *lru.Cache[domain.TenantID, instanceCount]
	nextFireOf  store.NextFireFunc
	misfire     store.MisfireFunc
	// firesPerMinute is Options.FiresPerMinute, never nil
	firesPerMinute func(now time.Time, spec *domain.JobSpec) int
	onRearm        func()
	observe        func(Transaction)

	newID atomic.Pointer[func() int64]
}

var _ store.Store = (*Store)(nil)

// Open connects to a database whose schema Migrate has brought up to date.
// Ids are needed by the writes that make alerts and deliveries: either give
// Options.NewID, or register the node first and call UseIDs with its source.
func Open(ctx context.Context, o Options) (*Store, error) {
	s, err := connect(o)
	if err != nil {
		return nil, err
	}
	if err := s.Ping(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// OpenReader is Open without a look whether the database accepts writes.
func OpenReader(o Options) (*Store, error) { return connect(o) }

func connect(o Options) (*Store, error) {
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.FiresPerMinute == nil {
		o.FiresPerMinute = func(time.Time, *domain.JobSpec) int { return 0 }
	}
	s := &Store{firesPerMinute: o.FiresPerMinute, log: o.Logger, nextFireOf: o.NextFire, misfire: o.Misfire, onRearm: o.Rearmed, observe: o.Observe, rollbacks: newRollbackDetector(), logLimits: o.LogLimits}
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
	s.specs = newSpecCache(orDefault(o.MaxSpecs, 32768))
	s.panics = panicsAside()
	s.asideUntil = newCache[domain.JobID, time.Time](maxAsideTriggers)
	s.instances = newCache[domain.TenantID, instanceCount](countedTenants)
	s.flights, s.clock = newFlights(), newEstimate()
	return s, nil
}

func (o Options) connector(c driver.Connector) driver.Connector {
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
func (s *Store) UseIDs(ids *domain.IDSource) {
	next := ids.Next
	s.newID.Store(&next)
}

// id returns a new id; it is an error of the wiring when there is no source.
func (s *Store) id() (int64, error) {
	next := s.newID.Load()
	if next == nil {
		return 0, errors.New("the store has no source of ids: call UseIDs after RegisterNode")
	}
	return (*next)(), nil
}

// Ping checks that the database answers and accepts writes.
func (s *Store) Ping(ctx context.Context) error {
	return s.run(ctx, "ping", func(t *txn) error {
		_, err := t.exec(t.ctx, "DELETE FROM cluster_values WHERE name = ?", "ping")
		return err
	})
}

// Close ends all connections.
func (s *Store) Close() error {
	var errs []error
	for _, p := range s.pools() {
		errs = append(errs, p.db.Close())
	}
	return errors.Join(errs...)
}
