package db

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// Galera takes writes at every server, but a server's row locks and named locks are
// its own. So all nodes write through one server at a time, whatever the endpoint
// says: through the one that a row names, as a lease that each node's renewals
// prolong (docs/adr/0084). Certification lets one of two servers that change the row
// at once have it.

const (
	// DatabaseWriter is the cluster value with the server that nodes write through
	// and the database's clock when one last did, in milliseconds.
	DatabaseWriter = "database_writer"
	// writerTTL is how long a server is the writer after that.
	writerTTL = 2 * time.Second
	// writerMargin is how much earlier a node's own trust ends, as of partitions.
	writerMargin = 200 * time.Millisecond
	// writerAhead is how far that clock may be ahead of another server's.
	writerAhead = 10 * time.Second
	// writerPatience is how long a node holds on to a server when all new connections
	// come to another one.
	writerPatience = 3 * time.Second
)

// errOtherWriter is of a connection to a server that is not the one.
var errOtherWriter = errors.New("this server of the cluster is not the one that the nodes write through")

// writerGate is what this process knows of the writer. It is nil where an operator
// has allowed several.
type writerGate struct {
	log *slog.Logger
	ask func(context.Context, driver.Conn) (string, error) // galeraServer, but for tests

	mu      sync.Mutex
	server  string    // guarded by mu; empty = no cluster, or no tables yet
	until   time.Time // guarded by mu: the server is the writer until then
	refused time.Time // guarded by mu: the first of the refusals since the last admission
	warned  bool      // guarded by mu: of those
}

// readAfterFailover makes a new primary of group replication answer when it has
// what the old one had committed; an older one would look as if it had lost it.
func readAfterFailover(ctx context.Context, conn mysqlConn) error {
	_, err := conn.ExecContext(ctx, "SET SESSION group_replication_consistency = 'BEFORE_ON_PRIMARY_FAILOVER'", nil)
	var my *mysql.MySQLError
	if errors.As(err, &my) && my.Number == myUnknownVariable { // it has not got the plugin
		return nil
	}
	if err != nil {
		return fmt.Errorf("read after a failover: %w", err)
	}
	return nil
}

// memberConn is a connection to a server of a cluster.
type memberConn struct {
	mysqlConn
	server string
	gate   *writerGate
	broken bool // the server cannot be used, though the connection can
}

// admit looks which server the connection leads to, and makes it the writer if no
// node writes through another one. Of a server without Galera it returns conn.
func (g *writerGate) admit(ctx context.Context, conn mysqlConn) (mysqlConn, error) {
	ask := galeraServer
	if g != nil && g.ask != nil {
		ask = g.ask
	}
	server, err := ask(ctx, conn)
	if err != nil {
		return nil, fmt.Errorf("look for a cluster: %w", err)
	}
	if server == "" {
		return conn, nil
	}
	m := &memberConn{mysqlConn: conn, server: server, gate: g}
	if g == nil {
		return m, nil
	}
	return m, g.renew(ctx, m)
}

// galeraServer is the server's id in its cluster, a new one at each start; empty
// without Galera.
func galeraServer(ctx context.Context, conn driver.Conn) (string, error) {
	row, err := rawRow(ctx, conn, "SHOW STATUS LIKE 'wsrep_gcomm_uuid'")
	if errors.Is(err, io.EOF) {
		return "", nil
	}
	if err != nil || strings.Trim(row[1], "0-") == "" {
		return "", err
	}
	return row[1], nil
}

// renew prolongs the lease of the connection's server, or takes it for it.
func (g *writerGate) renew(ctx context.Context, m *memberConn) error {
	const clock = "CAST(UNIX_TIMESTAMP(SYSDATE(3)) * 1000 AS SIGNED)"
	sent := time.Now()
	_, err := m.ExecContext(ctx, fmt.Sprintf("INSERT INTO cluster_values (name, value) VALUES ('%s', CONCAT('%s ', %s))"+
		" ON DUPLICATE KEY UPDATE value = IF(value LIKE '%s %%' OR CAST(SUBSTRING_INDEX(value, ' ', -1) AS SIGNED) NOT BETWEEN %s - %d AND %s + %d, VALUES(value), value)",
		DatabaseWriter, m.server, clock, m.server, clock, writerTTL.Milliseconds(), clock, writerAhead.Milliseconds()), nil)
	var my *mysql.MySQLError
	if errors.As(err, &my) && my.Number == myNoSuchTable {
		return nil // before the first migration
	}
	if err != nil {
		return fmt.Errorf("renew the writer: %w", err)
	}
	row, err := rawRow(ctx, m, "SELECT value FROM cluster_values WHERE name = '"+DatabaseWriter+"'")
	if err != nil {
		return fmt.Errorf("read the writer: %w", err)
	}
	is, _, _ := strings.Cut(row[0], " ")
	return g.heard(m.server, is, sent.Add(writerTTL-writerMargin))
}

// heard takes what the table says after a renewal through a server.
func (g *writerGate) heard(server, is string, until time.Time) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	before := g.server
	if is != server {
		switch {
		case g.refused.IsZero(): // the usual case after a failover
			g.refused = time.Now()
			g.log.Info("the database's endpoint leads to another server; it is the writer when the lease of the one before is over", "server", server, "writer", is)
		case !g.warned && time.Since(g.refused) > 2*writerPatience:
			g.warned = true
			g.log.Warn("the database's endpoint leads to a server that is not the writer: other nodes write through another one; give all nodes one endpoint that leads to one server",
				"server", server, "writer", is)
		}
		if before == server { // another node has taken it over
			g.server, g.until = is, time.Time{}
		}
		return domain.Errorf(domain.CodeUnavailable, "connect to the database: %w (it is %s, the writer is %s)", errOtherWriter, server, is)
	}
	g.server, g.refused, g.warned = server, time.Time{}, false
	if before != server {
		g.log.Info("the nodes write through this server of the cluster", "server", server, "before", before)
	}
	if before != server || until.After(g.until) {
		g.until = until
	}
	return nil
}

// current is the writer; empty = no cluster, or not known yet.
func (g *writerGate) current() string {
	if g == nil {
		return ""
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.server
}

func (g *writerGate) trusted() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.server == "" || time.Now().Before(g.until)
}

// guardWriter refuses a transaction whose server may not be the writer any more.
func (t *Tx) guardWriter() error {
	g := t.DB.writers
	if g == nil {
		return nil
	}
	if !g.trusted() { // nobody has renewed for so long
		if err := t.DB.renewWriter(t.Ctx); err != nil {
			return err
		}
	}
	if t.writer != "" && t.writer != g.current() {
		return domain.Errorf(domain.CodeUnavailable, "the nodes write through another server of the cluster since this transaction began")
	}
	return nil
}

// usable: the connection leads to the writer, and new ones would.
func (g *writerGate) usable(server string) bool {
	if g == nil {
		return true
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return (g.server == "" || g.server == server) && (g.refused.IsZero() || time.Since(g.refused) < writerPatience)
}

// renewWriter prolongs the lease on the connection of the partitions' leases.
func (s *DB) renewWriter(ctx context.Context) error {
	if s.writers == nil {
		return nil
	}
	conn, err := s.Leases.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	return conn.Raw(func(raw any) error {
		m, ok := raw.(*memberConn)
		if !ok {
			return nil
		}
		err := s.writers.renew(ctx, m)
		m.broken = m.broken || err != nil
		return err
	})
}

// ParseWriter reads the cluster value: the server that nodes write through, and when
// one last did, by the database's clock.
func ParseWriter(value string) (server string, at time.Time) {
	server, ms, _ := strings.Cut(value, " ")
	n, err := strconv.ParseInt(ms, 10, 64)
	if err != nil {
		return "", time.Time{}
	}
	return server, Instant(n)
}

func (c *memberConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	result, err := c.mysqlConn.ExecContext(ctx, query, args)
	c.notice(err)
	return result, err
}

func (c *memberConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	rows, err := c.mysqlConn.QueryContext(ctx, query, args)
	c.notice(err)
	return rows, err
}

// notice: a server without its majority answers, but the endpoint leads elsewhere by now.
func (c *memberConn) notice(err error) {
	var my *mysql.MySQLError
	if errors.As(err, &my) && (my.Number == myUnknownCommand || my.Number == myErrorDuringCommit) {
		c.broken = true
	}
}

// IsValid and ResetSession keep the pool from giving the connection to anybody.
func (c *memberConn) IsValid() bool { return !c.broken && c.mysqlConn.IsValid() }

func (c *memberConn) ResetSession(ctx context.Context) error {
	if c.broken || !c.gate.usable(c.server) {
		return driver.ErrBadConn
	}
	return c.mysqlConn.ResetSession(ctx)
}
