package db

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
)

// What an operator asks of a database before a node works with it. Nothing here
// writes: Options.ReadOnly keeps the rest of the store from it, too.

// ConnectionsPerNode is how many connections a node has to a MySQL server at
// most: two pools and the one of the leases.
const ConnectionsPerNode = 2*mysqlPoolSize + 1

// Schema says which migrations there are.
type Schema struct {
	Applied int64 // the last one that the database has; 0 = it has no tables
	Known   int64 // the last one of this program
	Pending int   // how many of this program's it lacks
}

// Schema compares the database with this program.
func (s *DB) Schema(ctx context.Context) (out Schema, err error) {
	pending, err := s.pending(ctx)
	if err != nil {
		return out, err
	}
	applied, err := s.applied(ctx)
	if err != nil {
		return out, Translate("read schema version", err)
	}
	for version, is := range applied {
		if is {
			out.Applied = max(out.Applied, version)
		}
	}
	provider, err := s.provider()
	if err != nil {
		return out, err
	}
	for _, source := range provider.ListSources() {
		out.Known = max(out.Known, source.Version)
	}
	out.Pending = len(pending)
	return out, nil
}

// ClusterValues reads what all nodes share.
func (s *DB) ClusterValues(ctx context.Context) (map[string]string, error) {
	out, err := Pairs[string, string](ctx, s.Lookup, "SELECT name, value FROM cluster_values LIMIT 1000")
	return out, Translate("read cluster values", err)
}

// clockSamples is how often the clock is read; the fastest answer counts.
const clockSamples = 5

// ClockOffset is how far the database's clock is ahead of this process's, and by
// how much that may be wrong. SQLite has none of its own.
func (s *DB) ClockOffset(ctx context.Context) (offset, bound time.Duration, err error) {
	if _, local := s.Dialect.localClock(); local {
		return 0, 0, nil
	}
	for range clockSamples {
		var ms int64
		before := time.Now()
		if err := s.Read.QueryRowContext(ctx, "SELECT "+s.Dialect.Clock()).Scan(&ms); err != nil {
			return 0, 0, Translate("read clock", err)
		}
		trip := time.Since(before)
		if half := trip/2 + time.Millisecond; bound == 0 || half < bound {
			offset, bound = Instant(ms).Sub(before.Add(trip/2)), half
		}
	}
	return offset.Truncate(time.Millisecond), bound, nil
}

// Capacity is what a MySQL server lets its clients have.
type Capacity struct {
	Connections, PerUser int // the most at once; PerUser 0 = as many as there are
	Used                 int // now, by all clients
}

// Capacity is of MySQL servers only.
func (s *DB) Capacity(ctx context.Context) (c Capacity, err error) {
	err = s.Read.QueryRowContext(ctx, "SELECT @@GLOBAL.max_connections, @@GLOBAL.max_user_connections").Scan(&c.Connections, &c.PerUser)
	if err == nil {
		var name string
		err = s.Read.QueryRowContext(ctx, "SHOW GLOBAL STATUS LIKE 'Threads_connected'").Scan(&name, &c.Used)
	}
	return c, Translate("read limits of connections", err)
}

// TrySession looks whether sessions are what the store sets them up to be, and
// whether a named lock of one is seen by another: both fail behind a proxy that
// shares sessions, or spreads them over several servers. It returns what is
// wrong; nothing remains of the lock.
func (s *DB) TrySession(ctx context.Context) (wrong []string, err error) {
	holder, err := s.Write.Conn(ctx)
	if err != nil {
		return nil, Translate("connect", err)
	}
	defer func() { err = errors.Join(err, holder.Close()) }()
	for _, v := range sessionWants() {
		got, err := sessionValue(ctx, holder, v.name)
		if err != nil {
			return nil, Translate("read session", err)
		}
		if want := strings.Trim(v.set, "'"); got != want {
			wrong = append(wrong, fmt.Sprintf("%s is %q and not %q, which was asked for", v.name, got, want))
		}
	}
	seen, err := s.lockIsSeen(ctx, holder)
	if err == nil && !seen {
		wrong = append(wrong, "a named lock of one session is not seen by another: they lead to different servers")
	}
	return wrong, Translate("try a named lock", err)
}

// sessionValue reads a variable. A SELECT of one row works with any sql_select_limit but
// zero, SHOW does not.
func sessionValue(ctx context.Context, session *sql.Conn, name string) (string, error) {
	var value string
	err := session.QueryRowContext(ctx, "SELECT @@SESSION."+name).Scan(&value)
	var answer *mysql.MySQLError
	if old, found := strings.CutPrefix(name, "transaction_"); found && errors.As(err, &answer) && answer.Number == myUnknownVariable {
		err = session.QueryRowContext(ctx, "SELECT @@SESSION.tx_"+old).Scan(&value)
	}
	return value, err
}

func (s *DB) lockIsSeen(ctx context.Context, holder *sql.Conn) (seen bool, err error) {
	name := "carillon_doctor:" + rand.Text()
	var got, id int64
	if err := holder.QueryRowContext(ctx, "SELECT COALESCE(GET_LOCK(?, 0), 0), CONNECTION_ID()", name).Scan(&got, &id); err != nil || got != 1 {
		return false, err
	}
	defer func() {
		_, unlock := holder.ExecContext(ctx, "DO RELEASE_LOCK(?)", name)
		err = errors.Join(err, unlock)
	}()
	watcher, err := s.Write.Conn(ctx)
	if err != nil {
		return false, err
	}
	var by sql.NullInt64
	err = watcher.QueryRowContext(ctx, "SELECT IS_USED_LOCK(?)", name).Scan(&by)
	return by.Valid && by.Int64 == id, errors.Join(err, watcher.Close())
}

// Privileges are what the user lacks: for a node's work, and for migrations.
type Privileges struct {
	Work, Migrate []string
	Untried       bool // Galera stops all writers for a change of tables, also for one that fails
}

// privilege is one that is tried: the statement names a table that does not exist.
type privilege struct {
	name, statement string
	migrate         bool
}

var privileges = []privilege{
	{"SELECT", "SELECT 1 FROM %s", false},
	{"INSERT", "INSERT INTO %s (a) VALUES (1)", false},
	{"UPDATE", "UPDATE %s SET a = 1", false},
	{"DELETE", "DELETE FROM %s", false},
	{"CREATE", "CREATE TABLE %[1]s LIKE %[1]s_none", true},
	{"ALTER", "ALTER TABLE %s ADD COLUMN a INT", true},
	{"INDEX", "CREATE INDEX a ON %s (a)", true},
	{"DROP", "DROP TABLE %s", true},
}

// Numbers of a MySQL server's answers.
const (
	myDatabaseDenied = 1044
	myUnknownTable   = 1051 // by DROP
	myTableDenied    = 1142
	myColumnDenied   = 1143
	myNoSuchTable    = 1146
)

// Lacks tries each privilege, however the user has it, by roles or patterns.
// The server checks privileges before it looks for a table: who is allowed
// hears that there is none, and nothing is done either way.
func (s *DB) Lacks(ctx context.Context) (p Privileges, err error) {
	table := "carillon_doctor_" + strings.ToLower(rand.Text())
	if err := Query(ctx, s.Write, func(rows *sql.Rows) error {
		var name, value string
		err := rows.Scan(&name, &value)
		p.Untried = value == "ON"
		return err
	}, "SHOW GLOBAL VARIABLES LIKE 'wsrep_on'"); err != nil {
		return p, Translate("try privileges", err)
	}
	for _, one := range privileges {
		if one.migrate && p.Untried {
			continue
		}
		_, err := s.Write.ExecContext(ctx, fmt.Sprintf(one.statement, table))
		var answer *mysql.MySQLError
		if !errors.As(err, &answer) {
			return p, Translate("try privileges", err)
		}
		switch answer.Number {
		case myNoSuchTable, myUnknownTable:
		case myDatabaseDenied, myTableDenied, myColumnDenied:
			if one.migrate {
				p.Migrate = append(p.Migrate, one.name)
			} else {
				p.Work = append(p.Work, one.name)
			}
		default:
			return p, Translate("try privilege "+one.name, err)
		}
	}
	return p, nil
}
