package db

import (
	"bytes"
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/base64"
	"fmt"
	"log/slog"
	"math"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-sql-driver/mysql"
	gormmysql "gorm.io/driver/mysql"
	"gorm.io/gorm"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/proto/direct"
)

// MySQLDialect speaks to MySQL 8 and MariaDB 10.6 or newer.
type MySQLDialect struct{}

func (MySQLDialect) Name() string { return "mysql" }

// SYSDATE is the clock when the row is read, NOW when the statement began.
// The session's time zone is UTC, so that no hour is ambiguous.
func (MySQLDialect) Clock() string {
	return "CAST(UNIX_TIMESTAMP(SYSDATE(3)) * 1000 AS SIGNED)"
}

func (MySQLDialect) ClockNow() string {
	return "CAST(UNIX_TIMESTAMP(NOW(3)) * 1000 AS SIGNED)"
}

func (MySQLDialect) localClock() (int64, bool) { return 0, false }

func (MySQLDialect) snapshot() sql.IsolationLevel { return sql.LevelRepeatableRead }

func (MySQLDialect) ForUpdate() string { return " FOR UPDATE" }

func (MySQLDialect) ForUpdateSkip() string { return " FOR UPDATE SKIP LOCKED" }

func (MySQLDialect) ForShare() string { return " LOCK IN SHARE MODE" }

func (MySQLDialect) ByPrimary() string { return " FORCE INDEX (PRIMARY)" }

func (MySQLDialect) ByID() string { return " FORCE INDEX (PRIMARY)" }

func (MySQLDialect) ByIndex(index string) string { return " FORCE INDEX (" + index + ")" }

func (MySQLDialect) InOrder() string { return " STRAIGHT_JOIN " }

func (MySQLDialect) Bounded(query string) string { return "(" + query + ")" }

func (MySQLDialect) Distinct(table, column string, after int64, limit int) string {
	return fmt.Sprintf("SELECT %[1]s FROM %[2]s WHERE %[1]s > %[3]d GROUP BY %[1]s ORDER BY %[1]s LIMIT %[4]d", column, table, after, limit)
}

// VALUES works in all of MySQL 8 and 9 and in MariaDB, which has no row alias.
func (MySQLDialect) OnDuplicate(string) string { return " ON DUPLICATE KEY UPDATE" }

func (MySQLDialect) Inserted(column string) string { return "VALUES(" + column + ")" }

// Connect takes a named lock, which the server gives up as soon as the
// connection ends, in whatever way. The name may have 64 characters.
func (MySQLDialect) Connect(t *Tx, bootID string) error {
	var got sql.NullInt64
	name := sessionLock("?")
	return t.SQL.QueryRowContext(t.Ctx, "SELECT IF(IS_USED_LOCK("+name+") <=> CONNECTION_ID(), 1, GET_LOCK("+name+", 0))", bootID, bootID).Scan(&got)
}

func (MySQLDialect) Connected(bootID string) string {
	return "IS_USED_LOCK(" + sessionLock(bootID) + ") IS NOT NULL"
}

// sessionLock is an SQL expression for the name of the lock of a boot id, which
// is one too. MySQL has no MD5 since 9.6.
func sessionLock(bootID string) string {
	return "CONCAT('carillon_node:', LEFT(SHA2(" + bootID + ", 256), 32))"
}

func (MySQLDialect) insertBatch() int { return 500 }

func (MySQLDialect) ClaimAtOnce() int { return math.MaxInt }

func (MySQLDialect) BulkAtOnce() int { return math.MaxInt }

func (MySQLDialect) DeleteBounded(table, where string) string {
	return "DELETE FROM " + table + " WHERE " + where + " LIMIT ?"
}

// maxUpdateBytes keeps one statement well below max_allowed_packet (16 MiB by
// default on MariaDB; escaping can double the size).
const maxUpdateBytes = 4 << 20

// Fresh bounds how far the clock that decided may be behind the statement's.
func (d MySQLDialect) Fresh(now int64) string {
	return fmt.Sprintf(" AND %s BETWEEN %d AND %d", d.ClockNow(), now, now+maxStaleness.Milliseconds())
}

// update sends the rows as one JSON parameter and joins them by primary key.
// STRAIGHT_JOIN makes the planner read the JSON first: the other way round it
// would lock the whole table. What all rows have in common stands outside.
func (d MySQLDialect) update(ctx context.Context, t *Tx, u *Update) (int64, error) {
	jsonColumns := u.jsonColumns()
	statement := u.jsonStatement(jsonColumns)
	var total int64
	for start := 0; start < u.len(); {
		doc, end := u.jsonRows(jsonColumns, start)
		args := make([]any, 0, 1+len(u.Same))
		args = append(args, doc)
		for _, a := range u.Same {
			args = append(args, a.value.argument(a.column.Kind))
		}
		n, err := t.Exec(ctx, statement, args...)
		if err != nil {
			return total, err
		}
		total, start = total+n, end
	}
	return total, nil
}

// jsonColumns returns which columns have to stand in the JSON rows: the first key,
// the other keys unless all rows have the same, and what varies.
func (u *Update) jsonColumns() []int {
	out := []int{0}
	first := u.row(0)
	for c := 1; c < u.width(); c++ {
		differs := c >= len(u.Keys)
		for i := 1; i < u.len() && !differs; i++ {
			differs = u.row(i)[c] != first[c]
		}
		if differs {
			out = append(out, c)
		}
	}
	return out
}

func (u *Update) column(c int) ColumnType {
	if c < len(u.Keys) {
		return u.Keys[c]
	}
	return u.vary[c-len(u.Keys)]
}

func (u *Update) jsonStatement(jsonColumns []int) string {
	var b strings.Builder
	b.WriteString("UPDATE JSON_TABLE(?, '$[*]' COLUMNS (")
	for i, c := range jsonColumns {
		if i > 0 {
			b.WriteString(", ")
		}
		// Without ERROR ON ERROR a value that does not fit would become NULL.
		fmt.Fprintf(&b, "c%d %s PATH '$[%d]' ERROR ON ERROR", c, jsonColumnType(u.column(c)), i)
	}
	fmt.Fprintf(&b, ")) AS j STRAIGHT_JOIN %s AS r ON r.%s = j.c0 SET ", u.Table, u.Keys[0].Name)
	for i, c := range u.vary {
		if i > 0 {
			b.WriteString(", ")
		}
		value := fmt.Sprintf("j.c%d", len(u.Keys)+i)
		if c.Nullable {
			value = "NULLIF(" + value + ", " + emptyLiteral(c.Kind) + ")"
		}
		if c.Kind == KindBytes {
			value = "FROM_BASE64(" + value + ")"
		}
		fmt.Fprintf(&b, "r.%s = %s", c.Name, value)
	}
	for i, a := range u.Same {
		if i > 0 || len(u.vary) > 0 {
			b.WriteString(", ")
		}
		b.WriteString("r.")
		writeAssignment(&b, a)
	}
	b.WriteString(" WHERE TRUE")
	for i, c := range u.Keys[1:] {
		if slices.Contains(jsonColumns, i+1) {
			fmt.Fprintf(&b, " AND r.%s = j.c%d", c.Name, i+1)
		} else {
			fmt.Fprintf(&b, " AND r.%s = %d", c.Name, u.cells[i+1].Num)
		}
	}
	b.WriteString(u.Guard)
	return b.String()
}

func jsonColumnType(c ColumnType) string {
	switch c.Kind {
	case kindInt:
		return "BIGINT"
	case kindText:
		return "VARCHAR(" + strconv.Itoa(c.size) + ")"
	default:
		return "LONGTEXT"
	}
}

// jsonRows writes rows from start on as [[…],[…]] until the statement would
// become too large, and returns where it stopped.
func (u *Update) jsonRows(jsonColumns []int, start int) (doc string, end int) {
	var b bytes.Buffer
	b.Grow(u.len()*20*len(jsonColumns) + u.bytes*4/3)
	b.WriteByte('[')
	for end = start; end < u.len() && (end == start || b.Len() < maxUpdateBytes); end++ {
		if end > start {
			b.WriteByte(',')
		}
		row := u.row(end)
		for i, c := range jsonColumns {
			if i > 0 {
				b.WriteByte(',')
			} else {
				b.WriteByte('[')
			}
			switch u.column(c).Kind {
			case kindInt:
				b.Write(strconv.AppendInt(b.AvailableBuffer(), row[c].Num, 10))
			case KindBytes:
				b.WriteByte('"')
				b.Write(base64.StdEncoding.AppendEncode(b.AvailableBuffer(), []byte(row[c].text)))
				b.WriteByte('"')
			default:
				writeJSONString(&b, row[c].text)
			}
		}
		b.WriteByte(']')
	}
	b.WriteByte(']')
	return b.String(), end
}

const hexDigits = "0123456789abcdef"

// writeJSONString writes valid UTF-8 as a JSON string. encoding/json would
// escape for HTML too and cost an allocation per value.
func writeJSONString(b *bytes.Buffer, s string) {
	b.WriteByte('"')
	plain := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' {
			continue
		}
		b.WriteString(s[plain:i])
		if c == '"' || c == '\\' {
			b.WriteByte('\\')
			b.WriteByte(c)
		} else {
			b.WriteString(`\u00`)
			b.WriteByte(hexDigits[c>>4])
			b.WriteByte(hexDigits[c&15])
		}
		plain = i + 1
	}
	b.WriteString(s[plain:])
	b.WriteByte('"')
}

// mysqlConnector sets up each new connection before anybody uses it.
type mysqlConnector struct {
	driver.Connector
	rollbacks *rollbackDetector
	writers   *writerGate
	pool      mysqlPool
	// shortLived is called when connections of this pool may not rest for long.
	shortLived func()
}

// mysqlPool is what connections are for.
type mysqlPool uint8

const (
	mainPool mysqlPool = iota
	transactionPool
	leasePool
)

// Connect adds what a DSN cannot say for both MySQL 8 and MariaDB 10.11, whose
// variables for the isolation level and for read-only transactions have different
// names.
func (c mysqlConnector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	my, ok := conn.(mysqlConn)
	if !ok {
		conn.Close()
		return nil, fmt.Errorf("the MySQL driver's connections (%T) lack what the store needs", conn)
	}
	ready, err := c.setUp(ctx, my)
	if err != nil {
		conn.Close()
		return nil, err
	}
	return ready, nil
}

func (c mysqlConnector) setUp(ctx context.Context, conn mysqlConn) (driver.Conn, error) {
	if _, err := conn.ExecContext(ctx, "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED, READ WRITE", nil); err != nil {
		return nil, fmt.Errorf("set isolation level: %w", err)
	}
	conn, err := c.writers.admit(ctx, conn)
	if err != nil {
		return nil, err
	}
	bounded, err := limitIdle(ctx, conn, c.pool)
	if err != nil {
		return nil, err
	}
	if err := c.rollbacks.meet(ctx, conn); err != nil {
		return nil, err
	}
	if _, rests := bounded.(*restingConn); rests {
		c.shortLived()
	}
	return bounded, nil
}

// mysqlConfig reads a DSN and hardens it: these settings are part of the
// store's correctness and not the operator's to choose.
func mysqlConfig(dsn string) (*mysql.Config, error) {
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		return nil, domain.Errorf(domain.CodeInvalid, "the MySQL DSN cannot be read: %w", err)
	}
	if cfg.DBName == "" {
		return nil, domain.Errorf(domain.CodeInvalid, "the MySQL DSN names no database")
	}
	cfg.ClientFoundRows = true // guards count rows found, not rows changed
	cfg.RejectReadOnly = true  // after a failover leave the old primary at once
	cfg.InterpolateParams = true
	cfg.ParseTime = true // goose reads its own table
	cfg.Loc = time.UTC
	cfg.MultiStatements = false
	cfg.CheckConnLiveness = true
	if cfg.Timeout == 0 {
		cfg.Timeout = 5 * time.Second
	}
	if cfg.ReadTimeout == 0 {
		cfg.ReadTimeout = 15 * time.Second
	}
	if cfg.WriteTimeout == 0 {
		cfg.WriteTimeout = 15 * time.Second
	}
	if cfg.Params == nil {
		cfg.Params = map[string]string{}
	}
	for _, v := range sessionVariables {
		cfg.Params[v.name] = v.set
	}
	// Either name would be refused by one of the two databases.
	delete(cfg.Params, "tx_isolation")
	delete(cfg.Params, "transaction_isolation")
	return cfg, nil
}

// mysqlPoolSize is how many connections each of the two large pools has.
const mysqlPoolSize = 16

// mysqlPools are the pools of one node.
type mysqlPools struct {
	main   *sql.DB // reads, and statements that commit by themselves
	txs    *sql.DB // transactions, and nothing else
	leases *sql.DB // one connection, which must not queue behind anything else
}

func openMySQL(o Options, rollbacks *rollbackDetector, writers *writerGate) (p mysqlPools, err error) {
	cfg, err := mysqlConfig(o.DSN)
	if err != nil {
		return p, err
	}
	if o.migrating {
		// A statement that rebuilds a large table takes its time, and the
		// connection that holds the lock is silent meanwhile.
		cfg.ReadTimeout = max(cfg.ReadTimeout, migrateWait)
		cfg.Params["wait_timeout"] = strconv.Itoa(int(2 * migrateWait / time.Second))
	}
	if err := cfg.Apply(mysql.Charset("utf8mb4", "utf8mb4_bin")); err != nil {
		return p, fmt.Errorf("choose character set: %w", err)
	}
	cfg.DialFunc, cfg.Logger = dialDirect, driverLog{o.Logger}
	driver, err := mysql.NewConnector(cfg)
	if err != nil {
		return p, fmt.Errorf("prepare MySQL connections: %w", err)
	}
	connector := mysqlConnector{Connector: driver, rollbacks: rollbacks, writers: writers}
	transactions, leases := connector, connector
	transactions.pool, transactions.shortLived = transactionPool, sync.OnceFunc(func() { p.txs.SetConnMaxIdleTime(restLimit) })
	leases.pool = leasePool
	p.main = sql.OpenDB(o.connector(connector))
	p.txs = sql.OpenDB(o.connector(transactions))
	for _, db := range []*sql.DB{p.main, p.txs} {
		db.SetMaxOpenConns(o.MaxOpenConns)
		db.SetMaxIdleConns(o.MaxOpenConns)
		db.SetConnMaxLifetime(3 * time.Minute) // follow a primary that moved, below any proxy's limit
	}
	p.leases = sql.OpenDB(leases)
	p.leases.SetMaxOpenConns(1)
	return p, nil
}

// driverLog takes what the driver says of connections that broke. Whoever needed
// one hears of it by himself.
type driverLog struct{ log *slog.Logger }

func (d driverLog) Print(v ...any) {
	d.log.Debug("database connection", "driver", strings.TrimSpace(fmt.Sprintln(v...)))
}

// dialDirect leaves the runtime's monitor asleep (docs/adr/0043).
func dialDirect(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return direct.Pooled(conn), nil
}

func mysqlGorm(db *sql.DB) gorm.Dialector {
	return gormmysql.New(gormmysql.Config{Conn: db, SkipInitializeWithVersion: true, DisableWithReturning: true})
}
