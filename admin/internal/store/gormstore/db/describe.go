package db

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

func (MySQLDialect) Version() string { return "VERSION()" }

func (MySQLDialect) UniqueColumns() string {
	return "SELECT COLUMN_NAME FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = ? AND INDEX_NAME = ?" +
		" AND NON_UNIQUE = 0 ORDER BY SEQ_IN_INDEX"
}

// Describe reads variables by SHOW, which leaves out those that this server
// does not know.
func (MySQLDialect) Describe(ctx context.Context, q Querier, d *domain.Database) error {
	d.Kind = "mysql"
	if strings.Contains(d.Version, "MariaDB") {
		d.Kind = "mariadb"
	}
	set := map[string]string{}
	err := Query(ctx, q, func(rows *sql.Rows) error {
		var name, value string
		err := rows.Scan(&name, &value)
		set[name] = strings.ToUpper(value)
		return err
	}, "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('read_only', 'super_read_only', 'innodb_flush_log_at_trx_commit',"+
		" 'log_bin', 'sync_binlog', 'wsrep_on', 'group_replication_single_primary_mode', 'group_replication_group_name')")
	if err != nil {
		return err
	}
	on := func(name string) bool { return set[name] == "ON" || set[name] == "1" }
	d.ReadOnly = on("read_only") || on("super_read_only")
	d.Role = "primary"
	if replica, err := followsAnother(ctx, q, d.Kind); replica || err != nil && d.ReadOnly {
		d.Role = "replica"
	}
	d.Findings = mysqlFindings(set, on)
	return nil
}

// followsAnother reports whether the server replicates from another one. The
// user may not be allowed to ask.
func followsAnother(ctx context.Context, q Querier, kind string) (found bool, err error) {
	statement := "SHOW REPLICA STATUS"
	if kind == "mariadb" {
		statement = "SHOW SLAVE STATUS"
	}
	err = Query(ctx, q, func(*sql.Rows) error { found = true; return nil }, statement)
	return found, err
}

func mysqlFindings(set map[string]string, on func(string) bool) (out []domain.Finding) {
	add := func(code string, fatal bool, format string, args ...any) {
		out = append(out, domain.Finding{Code: code, Fatal: fatal, Message: fmt.Sprintf(format, args...)})
	}
	if on("read_only") || on("super_read_only") {
		add("read_only", true, "the database is read-only: give the address of the primary")
	}
	if on("wsrep_on") || set["group_replication_group_name"] != "" && set["group_replication_single_primary_mode"] == "OFF" {
		add("multi_writer", true, "the database is a multi-writer cluster, which is known to lose updates: "+
			"use a single primary, or allow it at your own risk with --allow-multi-writer when all nodes use one writer endpoint")
	}
	if v := set["innodb_flush_log_at_trx_commit"]; v != "1" {
		add("not_durable", false, "innodb_flush_log_at_trx_commit is %s: a crash of the database can lose committed runs, which then run again; set it to 1", v)
	}
	if v := set["sync_binlog"]; on("log_bin") && v != "1" {
		add("binlog_not_durable", false, "sync_binlog is %s while the binary log is on: a crash can lose what a replica is to get; set it to 1", v)
	}
	return out
}

func (SQLiteDialect) Version() string { return "sqlite_version()" }

func (SQLiteDialect) UniqueColumns() string {
	return "SELECT i.name FROM pragma_index_list(?) AS l, pragma_index_info(l.name) AS i WHERE l.name = ? AND l.\"unique\" = 1 ORDER BY i.seqno"
}

func (SQLiteDialect) Describe(_ context.Context, _ Querier, d *domain.Database) error {
	d.Kind, d.Role = "sqlite", "primary"
	return nil
}
