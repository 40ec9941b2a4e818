package testenv

import (
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// groupReplication is MySQL's: one member takes writes, the others are read-only.
type groupReplication struct{ name string }

// newUUID names a group: it has to look like one.
func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

func (g *groupReplication) place(c *Cluster, i int, _ string) error {
	s := c.members[i]
	s.extra = append(s.extra,
		"--server-id="+strconv.Itoa(i+1),
		"--gtid-mode=ON",
		"--enforce-gtid-consistency=ON",
		"--log-bin=binlog",
		"--sync-binlog=1",
		"--report-host="+s.host,
		"--plugin-load-add=group_replication.so",
		"--group-replication-group-name="+g.name,
		"--group-replication-start-on-boot=OFF",
		"--group-replication-local-address="+c.group[i],
		"--group-replication-group-seeds="+strings.Join(c.group, ","),
		"--group-replication-single-primary-mode=ON",
		"--group-replication-consistency=BEFORE_ON_PRIMARY_FAILOVER",
		"--group-replication-recovery-get-public-key=ON",
		// What silence is suspected for 5 s has ended; and whoever has lost the
		// majority for so long fails what waits.
		"--group-replication-member-expel-timeout=0",
		"--group-replication-unreachable-majority-timeout=10",
	)
	return s.writeInit("SET SQL_LOG_BIN = 0;\n") // each has a user of its own
}

func (g *groupReplication) first(c *Cluster, i int) error {
	s := c.members[i]
	if i == 0 {
		if err := g.install(c); err != nil {
			return err
		}
	}
	if err := s.begin(); err != nil {
		return err
	}
	statements := []string{
		fmt.Sprintf("CHANGE REPLICATION SOURCE TO SOURCE_USER = '%s', SOURCE_PASSWORD = '%s' FOR CHANNEL 'group_replication_recovery'",
			testUser, s.password),
		"START GROUP_REPLICATION",
	}
	if i == 0 {
		statements = []string{statements[0], "SET GLOBAL group_replication_bootstrap_group = ON", statements[1],
			"SET GLOBAL group_replication_bootstrap_group = OFF"}
	}
	return s.all(statements...)
}

// install fills the first member's data and copies it to the others, which is
// quicker; who has no auto.cnf gets an id of its own.
func (g *groupReplication) install(c *Cluster) error {
	from := filepath.Join(c.members[0].home, "data")
	err := c.members[0].program.install(c.members[0].home)
	if err == nil {
		err = os.Remove(filepath.Join(from, "auto.cnf"))
	}
	for _, s := range c.members[1:] {
		if err == nil {
			err = os.CopyFS(filepath.Join(s.home, "data"), os.DirFS(from))
		}
	}
	return err
}

func (g *groupReplication) again(s *Server) error {
	if err := s.Start(); err != nil {
		return err
	}
	return s.all("START GROUP_REPLICATION")
}

// rejoin: a member that was excluded says so itself, and then is told to join.
func (g *groupReplication) rejoin(s *Server) error {
	return withServer(s.config(), func(db *sql.DB) error {
		m, err := g.look(context.Background(), db)
		if err != nil || m.Usable || m.State == "RECOVERING" {
			return err
		}
		for _, statement := range []string{"STOP GROUP_REPLICATION", "START GROUP_REPLICATION"} {
			if _, err := db.Exec(statement); err != nil {
				return fmt.Errorf("%s: %w", statement, err)
			}
		}
		return nil
	})
}

// handOver makes to the primary; what has begun to commit on from ends there.
func (g *groupReplication) handOver(from, to *Server) error {
	var id string
	err := withServer(to.config(), func(db *sql.DB) error {
		return db.QueryRow("SELECT @@server_uuid").Scan(&id)
	})
	if err != nil {
		return err
	}
	return from.all("SELECT group_replication_set_as_primary('" + id + "')")
}

// all executes statements one after the other.
func (s *Server) all(statements ...string) error {
	return withServer(s.config(), func(db *sql.DB) error {
		for _, statement := range statements {
			if _, err := db.Exec(statement); err != nil {
				verb, _, _ := strings.Cut(statement, "=") // no password in errors
				return fmt.Errorf("%s: %w", verb, err)
			}
		}
		return nil
	})
}

// look counts whom this member sees: the majority is with it if more than half of
// those that it knows can be reached.
func (g *groupReplication) look(ctx context.Context, db *sql.DB) (m Member, err error) {
	var role string
	var reachable int
	err = db.QueryRowContext(ctx, `SELECT
		COALESCE(MAX(IF(member_id = @@server_uuid, member_state, NULL)), 'OFFLINE'),
		COALESCE(MAX(IF(member_id = @@server_uuid, member_role, NULL)), ''),
		COUNT(*), COALESCE(SUM(member_state <> 'UNREACHABLE'), 0)
		FROM performance_schema.replication_group_members`).Scan(&m.State, &role, &m.Size, &reachable)
	m.Usable = m.State == "ONLINE" && 2*reachable > m.Size
	m.Writer = m.Usable && role == "PRIMARY"
	return m, err
}
