package db

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// DescribeServer asks for the settings that the promises rest on. There need be
// no tables.
func (s *DB) DescribeServer(ctx context.Context) (domain.Database, error) {
	ctx, cancel := WithDeadline(ctx)
	defer cancel()
	began := time.Now()
	var d domain.Database
	if err := s.Read.QueryRowContext(ctx, "SELECT "+s.Dialect.Version()).Scan(&d.Version); err != nil {
		return d, Translate("describe database", err)
	}
	d.Latency = time.Since(began)
	return d, Translate("describe database", s.Dialect.Describe(ctx, s.Read, &d))
}

func (MySQLDialect) Version() string { return "VERSION()" }

func (MySQLDialect) UniqueColumns() string {
	return "SELECT COLUMN_NAME FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = ? AND INDEX_NAME = ?" +
		" AND NON_UNIQUE = 0 ORDER BY SEQ_IN_INDEX"
}

// settings are the variables that Describe reads.
var settings = []string{
	"read_only", "super_read_only", "innodb_flush_log_at_trx_commit", "log_bin", "sync_binlog",
	"binlog_format", "max_allowed_packet", "innodb_doublewrite",
	"wsrep_on", "wsrep_provider", "wsrep_provider_options", "pxc_strict_mode",
	"group_replication_single_primary_mode", "group_replication_group_name", "group_replication_unreachable_majority_timeout",
}

// Describe reads variables by SHOW, which leaves out those that this server
// does not know.
func (MySQLDialect) Describe(ctx context.Context, q Querier, d *domain.Database) error {
	d.Kind = "mysql"
	if strings.Contains(d.Version, "MariaDB") {
		d.Kind = "mariadb"
	}
	set, err := shown(ctx, q, "VARIABLES", settings)
	if err != nil {
		return err
	}
	on := func(name string) bool { return set[name] == "ON" || set[name] == "1" }
	d.ReadOnly = on("read_only") || on("super_read_only")
	d.Role = "primary"
	if d.Group, err = groupOf(ctx, q, set); err != nil {
		return err
	}
	if d.Group != nil {
		if d.ReadOnly {
			d.Role = "replica"
		}
	} else if replica, err := followsAnother(ctx, q, d.Kind); replica || err != nil && d.ReadOnly {
		d.Role = "replica"
	}
	d.Findings = append(foreignEngine(d.Version), append(mysqlFindings(set, on), settingFindings(d.Kind, d.Version, set, on)...)...)
	return nil
}

// foreignEngine refuses what speaks MySQL's protocol and does not lock as it does.
func foreignEngine(version string) []domain.Finding {
	for name, lacks := range map[string]string{
		"TiDB":   "it reads FOR UPDATE SKIP LOCKED without locking, and has no IS_USED_LOCK",
		"Vitess": "it takes no lock functions inside of expressions, and its transactions end at one shard",
	} {
		if strings.Contains(version, name) {
			return []domain.Finding{{Code: "unsupported_engine", Fatal: true,
				Message: "the database is " + name + ", with which runs could be doubled: " + lacks + "; use MySQL 8 or MariaDB, or a cluster of them (docs/guide/database-clusters.md)"}}
		}
	}
	return nil
}

// shown reads global variables or status values, in capitals.
func shown(ctx context.Context, q Querier, what string, names []string) (map[string]string, error) {
	set := map[string]string{}
	err := Query(ctx, q, func(rows *sql.Rows) error {
		var name, value string
		err := rows.Scan(&name, &value)
		set[strings.ToLower(name)] = strings.ToUpper(value)
		return err
	}, "SHOW GLOBAL "+what+" WHERE Variable_name IN ('"+strings.Join(names, "', '")+"')")
	return set, err
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
	if inGroup(set) && set["group_replication_single_primary_mode"] == "OFF" {
		add("multi_writer", true, "group replication has several primaries, which is known to lose updates: "+
			"switch it to a single one (SELECT group_replication_switch_to_single_primary_mode()), or allow it at your own risk with --allow-multi-writer when all nodes use one writer endpoint")
	}
	if inGroup(set) && set["group_replication_unreachable_majority_timeout"] == "0" {
		add("group_waits_forever", false, "group_replication_unreachable_majority_timeout is 0: a primary that is cut off from the majority keeps its transactions waiting, and their locks; set it to 10")
	}
	if inGalera(set) {
		if o := set["wsrep_provider_options"]; optionOn(o, "PC.IGNORE_SB") || optionOn(o, "PC.IGNORE_QUORUM") {
			add("split_brain_allowed", true, "wsrep_provider_options has pc.ignore_sb or pc.ignore_quorum on: both halves of a divided cluster would go on, and runs would be doubled; set both to false")
		}
	}
	if v := set["innodb_flush_log_at_trx_commit"]; v != "1" {
		add("not_durable", false, "innodb_flush_log_at_trx_commit is %s: a crash of the database can lose committed runs, which then run again; set it to 1", v)
	}
	if v := set["sync_binlog"]; on("log_bin") && v != "1" {
		add("binlog_not_durable", false, "sync_binlog is %s while the binary log is on: a crash can lose what a replica is to get; set it to 1", v)
	}
	return out
}

func inGroup(set map[string]string) bool { return set["group_replication_group_name"] != "" }

func inGalera(set map[string]string) bool {
	return set["wsrep_on"] == "ON" && set["wsrep_provider"] != "" && set["wsrep_provider"] != "NONE"
}

// optionOn reads one of wsrep_provider_options.
func optionOn(options, name string) bool {
	for option := range strings.SplitSeq(options, ";") {
		if key, value, _ := strings.Cut(option, "="); strings.TrimSpace(key) == name {
			value = strings.TrimSpace(value)
			return value == "TRUE" || value == "YES" || value == "ON" || value == "1"
		}
	}
	return false
}

func (SQLiteDialect) Version() string { return "sqlite_version()" }

func (SQLiteDialect) UniqueColumns() string {
	return "SELECT i.name FROM pragma_index_list(?) AS l, pragma_index_info(l.name) AS i WHERE l.name = ? AND l.\"unique\" = 1 ORDER BY i.seqno"
}

func (SQLiteDialect) Describe(_ context.Context, _ Querier, d *domain.Database) error {
	d.Kind, d.Role = "sqlite", "primary"
	return nil
}
