package testenv

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"
)

// ReplicaArgs are the arguments (Options.Args) of a server that others follow, or
// that follows another; id is a number of its own among them. The two products
// have different names for the same.
func ReplicaArgs(product Product, id int) []string {
	args := []string{"--log-bin=bin", "--sync-binlog=1", "--binlog-format=ROW", fmt.Sprintf("--server-id=%d", id)}
	if product == MySQL {
		return append(args, "--plugin-load-add=semisync_source.so", "--plugin-load-add=semisync_replica.so")
	}
	return append(args, "--log-slave-updates")
}

// words are what differs between the products' statements about replicas.
func (s *Server) words() *strings.Replacer {
	if s.program.product == MySQL {
		return strings.NewReplacer()
	}
	return strings.NewReplacer("REPLICATION SOURCE", "MASTER", "REPLICA", "SLAVE", "SOURCE_", "MASTER_", "_source_", "_master_", "_replica_", "_slave_",
		", GET_SOURCE_PUBLIC_KEY=1", "")
}

// do runs statements, in MySQL's words, one after the other.
func (s *Server) do(ctx context.Context, statements ...string) error {
	return withServer(s.config(), func(db *sql.DB) error {
		for _, statement := range statements {
			if _, err := db.ExecContext(ctx, s.words().Replace(statement)); err != nil {
				statement, _, _ = strings.Cut(statement, "=") // what follows may be a password
				return fmt.Errorf("%s: %w", statement, err)
			}
		}
		return nil
	})
}

// Follow makes the server a read-only replica of another one, from that one's
// first commit on: both must be new.
func (s *Server) Follow(ctx context.Context, primary *Server) error {
	c := primary.config()
	host, port, _ := strings.Cut(c.Addr, ":")
	return s.do(ctx,
		fmt.Sprintf("CHANGE REPLICATION SOURCE TO SOURCE_HOST='%s', SOURCE_PORT=%s, SOURCE_USER='%s', SOURCE_PASSWORD='%s', "+
			"SOURCE_LOG_FILE='bin.000001', SOURCE_LOG_POS=4, SOURCE_CONNECT_RETRY=1, GET_SOURCE_PUBLIC_KEY=1", host, port, c.User, c.Passwd),
		"SET GLOBAL rpl_semi_sync_replica_enabled = 1", "SET GLOBAL read_only = 1", "START REPLICA")
}

// AwaitReplica makes every commit wait until a replica has it, before anybody sees
// it (AFTER_SYNC), however long that takes; off: none waits.
func (s *Server) AwaitReplica(ctx context.Context, on bool) error {
	if !on {
		return s.do(ctx, "SET GLOBAL rpl_semi_sync_source_enabled = 0")
	}
	err := s.do(ctx, "SET GLOBAL rpl_semi_sync_source_wait_point = 'AFTER_SYNC'", "SET GLOBAL rpl_semi_sync_source_timeout = 4000000000",
		"SET GLOBAL rpl_semi_sync_source_enabled = 1")
	if err != nil {
		return err
	}
	return s.await(ctx, "a replica that acknowledges", func(db *sql.DB) (string, error) {
		var name, clients string
		err := db.QueryRowContext(ctx, s.words().Replace("SHOW GLOBAL STATUS LIKE 'Rpl_semi_sync_source_clients'")).Scan(&name, &clients)
		return clients, err
	}, func(clients string) bool { return clients != "0" })
}

// StopReceiving makes a replica miss what its primary commits from now on.
func (s *Server) StopReceiving(ctx context.Context) error { return s.do(ctx, "STOP REPLICA IO_THREAD") }

// Promote makes a replica apply all that it has received, and take writes from then on.
func (s *Server) Promote(ctx context.Context) error {
	if err := s.StopReceiving(ctx); err != nil {
		return err
	}
	err := s.await(ctx, "a replica that has applied all", func(db *sql.DB) (string, error) {
		return replicaStatus(ctx, db, s.words().Replace("SHOW REPLICA STATUS"), "sql_running_state")
	}, func(state string) bool { return strings.Contains(state, "has read all relay log") })
	if err != nil {
		return err
	}
	return s.do(ctx, "STOP REPLICA", "RESET REPLICA ALL", "SET GLOBAL read_only = 0")
}

// await asks until the answer is right.
func (s *Server) await(ctx context.Context, what string, ask func(*sql.DB) (string, error), right func(string) bool) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	return withServer(s.config(), func(db *sql.DB) error {
		tick := time.NewTicker(pingInterval)
		defer tick.Stop()
		for {
			said, err := ask(db)
			if err != nil || right(said) {
				return err
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("wait for %s: %q: %w", what, said, ctx.Err())
			case <-tick.C:
			}
		}
	})
}

// replicaStatus returns the column whose name ends so; products and versions have
// different ones.
func replicaStatus(ctx context.Context, db *sql.DB, statement, end string) (value string, err error) {
	rows, err := db.QueryContext(ctx, statement)
	if err != nil {
		return "", err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return "", err
	}
	if !rows.Next() {
		return "", errors.Join(errors.New("the server follows no other"), rows.Err())
	}
	values := make([]sql.NullString, len(columns))
	into := make([]any, len(columns))
	for i := range values {
		into[i] = &values[i]
	}
	if err := rows.Scan(into...); err != nil {
		return "", err
	}
	for i, name := range columns {
		if strings.HasSuffix(strings.ToLower(name), end) {
			value = values[i].String
		}
	}
	return value, rows.Err()
}
