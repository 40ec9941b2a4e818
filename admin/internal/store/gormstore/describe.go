package gormstore

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// DescribeDatabase asks for the settings that the promises rest on.
func (s *Cluster) DescribeDatabase(ctx context.Context) (domain.Database, error) {
	ctx, cancel := withDeadline(ctx)
	defer cancel()
	began := time.Now()
	var d domain.Database
	if err := s.read.QueryRowContext(ctx, "SELECT "+s.d.version()).Scan(&d.Version); err != nil {
		return d, translate("describe database", err)
	}
	d.Latency = time.Since(began)
	if err := s.d.describe(ctx, s.read, &d); err != nil {
		return d, translate("describe database", err)
	}
	unique, err := s.hasUniqueOccurrence(ctx)
	if err != nil {
		return d, translate("describe database", err)
	}
	if !unique {
		d.Findings = append(d.Findings, domain.Finding{Code: "unique_key_missing", Fatal: true,
			Message: "the unique key uq_executions_occurrence of table executions is missing: without it a fire time could run twice; create it again"})
	}
	return d, nil
}

// hasUniqueOccurrence looks for the last wall against doubles (promise P2).
func (s *Cluster) hasUniqueOccurrence(ctx context.Context) (bool, error) {
	columns := ""
	err := query(ctx, s.read, func(rows *sql.Rows) error {
		var name string
		err := rows.Scan(&name)
		columns += name + " "
		return err
	}, s.d.uniqueColumns(), "executions", "uq_executions_occurrence")
	return columns == "job_id fire_at occurrence_key ", err
}

func (mysqlDialect) version() string { return "VERSION()" }

func (mysqlDialect) uniqueColumns() string {
	return "SELECT COLUMN_NAME FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = ? AND INDEX_NAME = ?" +
		" AND NON_UNIQUE = 0 ORDER BY SEQ_IN_INDEX"
}

// describe reads variables by SHOW, which leaves out those that this server
// does not know.
func (mysqlDialect) describe(ctx context.Context, q querier, d *domain.Database) error {
	d.Kind = "mysql"
	if strings.Contains(d.Version, "MariaDB") {
		d.Kind = "mariadb"
	}
	set := map[string]string{}
	err := query(ctx, q, func(rows *sql.Rows) error {
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
func followsAnother(ctx context.Context, q querier, kind string) (found bool, err error) {
	statement := "SHOW REPLICA STATUS"
	if kind == "mariadb" {
		statement = "SHOW SLAVE STATUS"
	}
	err = query(ctx, q, func(*sql.Rows) error { found = true; return nil }, statement)
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

func (sqliteDialect) version() string { return "sqlite_version()" }

func (sqliteDialect) uniqueColumns() string {
	return "SELECT i.name FROM pragma_index_list(?) AS l, pragma_index_info(l.name) AS i WHERE l.name = ? AND l.\"unique\" = 1 ORDER BY i.seqno"
}

func (sqliteDialect) describe(_ context.Context, _ querier, d *domain.Database) error {
	d.Kind, d.Role = "sqlite", "primary"
	return nil
}

// ListPartitionLags reads the first entry of each partition in the two indexes
// that planning and sweeping begin with.
func (s *Cluster) ListPartitionLags(ctx context.Context) ([]domain.PartitionLag, error) {
	ctx, cancel := withDeadline(ctx)
	defer cancel()
	out := make([]domain.PartitionLag, domain.Partitions)
	terms := make([]string, 0, 2*domain.Partitions)
	for p := range out {
		out[p].Partition = p
		part := strconv.Itoa(p)
		terms = append(terms,
			s.d.bounded("SELECT "+part+" AS part, 0 AS kind, next_fire_at AS at FROM triggers"+s.d.byIndex("ix_triggers_due")+
				" WHERE part = "+part+" ORDER BY next_fire_at LIMIT 1"),
			s.d.bounded("SELECT "+part+" AS part, 1 AS kind, wake_at AS at FROM executions"+s.d.byIndex("ix_executions_wake")+
				" WHERE part = "+part+" AND wake_at > 0 ORDER BY wake_at LIMIT 1"))
	}
	err := query(ctx, s.lookup, func(rows *sql.Rows) error {
		var part, kind int
		var at int64
		err := rows.Scan(&part, &kind, &at)
		switch {
		case err != nil || at >= millis(domain.Never):
		case kind == 0:
			out[part].NextFireAt = instant(at)
		default:
			out[part].OldestWakeAt = instant(at)
		}
		return err
	}, strings.Join(terms, " UNION ALL "))
	return out, translate("read partitions' lags", err)
}
