package console

import (
	"context"
	"database/sql"
	"strconv"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
)

// DescribeDatabase asks for the settings that the promises rest on.
func (s *Cluster) DescribeDatabase(ctx context.Context) (domain.Database, error) {
	ctx, cancel := db.WithDeadline(ctx)
	defer cancel()
	began := time.Now()
	var d domain.Database
	if err := s.Read.QueryRowContext(ctx, "SELECT "+s.Dialect.Version()).Scan(&d.Version); err != nil {
		return d, db.Translate("describe database", err)
	}
	d.Latency = time.Since(began)
	if err := s.Dialect.Describe(ctx, s.Read, &d); err != nil {
		return d, db.Translate("describe database", err)
	}
	unique, err := s.hasUniqueOccurrence(ctx)
	if err != nil {
		return d, db.Translate("describe database", err)
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
	err := db.Query(ctx, s.Read, func(rows *sql.Rows) error {
		var name string
		err := rows.Scan(&name)
		columns += name + " "
		return err
	}, s.Dialect.UniqueColumns(), "executions", "uq_executions_occurrence")
	return columns == "job_id fire_at occurrence_key ", err
}

// ListPartitionLags reads the first entry of each partition in the two indexes
// that planning and sweeping begin with.
func (s *Cluster) ListPartitionLags(ctx context.Context) ([]domain.PartitionLag, error) {
	ctx, cancel := db.WithDeadline(ctx)
	defer cancel()
	out := make([]domain.PartitionLag, domain.Partitions)
	terms := make([]string, 0, 2*domain.Partitions)
	for p := range out {
		out[p].Partition = p
		part := strconv.Itoa(p)
		terms = append(terms,
			s.Dialect.Bounded("SELECT "+part+" AS part, 0 AS kind, next_fire_at AS at FROM triggers"+s.Dialect.ByIndex("ix_triggers_due")+
				" WHERE part = "+part+" ORDER BY next_fire_at LIMIT 1"),
			s.Dialect.Bounded("SELECT "+part+" AS part, 1 AS kind, wake_at AS at FROM executions"+s.Dialect.ByIndex("ix_executions_wake")+
				" WHERE part = "+part+" AND wake_at > 0 ORDER BY wake_at LIMIT 1"))
	}
	err := db.Query(ctx, s.Lookup, func(rows *sql.Rows) error {
		var part, kind int
		var at int64
		err := rows.Scan(&part, &kind, &at)
		switch {
		case err != nil || at >= db.Millis(domain.Never):
		case kind == 0:
			out[part].NextFireAt = db.Instant(at)
		default:
			out[part].OldestWakeAt = db.Instant(at)
		}
		return err
	}, strings.Join(terms, " UNION ALL "))
	return out, db.Translate("read partitions' lags", err)
}
