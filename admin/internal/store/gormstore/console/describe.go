package console

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"strings"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
)

// DescribeDatabase asks for the settings that the promises rest on, and for the
// keys that do.
func (s *Cluster) DescribeDatabase(ctx context.Context) (domain.Database, error) {
	d, err := s.DescribeServer(ctx)
	if err != nil {
		return d, err
	}
	missing, err := s.MissingKeys(ctx)
	d.Findings = append(d.Findings, missing...)
	return d, err
}

// MissingKeys looks for the unique keys without which doubles are possible.
func (s *Cluster) MissingKeys(ctx context.Context) (out []domain.Finding, err error) {
	ctx, cancel := db.WithDeadline(ctx)
	defer cancel()
	for _, wall := range doubleWalls {
		unique, err := s.hasUniqueKey(ctx, wall.table, wall.key, wall.columns)
		if err != nil {
			return out, db.Translate("describe database", err)
		}
		if !unique {
			out = append(out, domain.Finding{Code: "unique_key_missing", Fatal: true,
				Message: fmt.Sprintf("the unique key %s of table %s is missing: without it %s; create it again", wall.key, wall.table, wall.without)})
		}
	}
	return out, nil
}

// doubleWalls are the last walls against doubles (promise P2).
var doubleWalls = []struct{ table, key, columns, without string }{
	{"executions", "uq_executions_occurrence", "job_id fire_at occurrence_key ", "a fire time could run twice"},
	{"timers", "uq_timers_key", "job_id timer_key ", "a timer could be set twice"},
}

func (s *Cluster) hasUniqueKey(ctx context.Context, table, key, want string) (bool, error) {
	columns := ""
	err := db.Query(ctx, s.Read, func(rows *sql.Rows) error {
		var name string
		err := rows.Scan(&name)
		columns += name + " "
		return err
	}, s.Dialect.UniqueColumns(), table, key)
	return columns == want, err
}

// ListPartitionLags reads the first entry of each partition in the three indexes
// that planning and sweeping begin with.
func (s *Cluster) ListPartitionLags(ctx context.Context) ([]domain.PartitionLag, error) {
	ctx, cancel := db.WithDeadline(ctx)
	defer cancel()
	out := make([]domain.PartitionLag, domain.Partitions)
	// The work of a tenant that is not enabled waits, and is no lag.
	here, err := withoutTenants(ctx, s.Lookup, fmt.Sprintf("SELECT id FROM tenants%s WHERE state > %d", s.Dialect.ByIndex("ix_tenants_state"), domain.TenantEnabled))
	if err != nil {
		return nil, db.Translate("read partitions' lags", err)
	}
	terms := make([]string, 0, 3*domain.Partitions)
	for p := range out {
		out[p].Partition = p
		part := strconv.Itoa(p)
		terms = append(terms,
			s.Dialect.Bounded("SELECT "+part+" AS part, 0 AS kind, next_fire_at AS at FROM triggers"+s.Dialect.ByIndex("ix_triggers_due")+
				" WHERE part = "+part+here+" ORDER BY next_fire_at LIMIT 1"),
			s.Dialect.Bounded("SELECT "+part+" AS part, 0 AS kind, fire_at AS at FROM timers"+s.Dialect.ByIndex("ix_timers_due")+
				" WHERE part = "+part+here+" ORDER BY fire_at LIMIT 1"),
			s.Dialect.Bounded("SELECT "+part+" AS part, 1 AS kind, wake_at AS at FROM executions"+s.Dialect.ByIndex("ix_executions_wake")+
				" WHERE part = "+part+" AND wake_at > 0"+here+" ORDER BY wake_at LIMIT 1"))
	}
	err = db.Query(ctx, s.Lookup, func(rows *sql.Rows) error {
		var part, kind int
		var at int64
		err := rows.Scan(&part, &kind, &at)
		switch {
		case err != nil || at >= db.Millis(domain.Never):
		case kind == 0:
			if next := db.Instant(at); out[part].NextFireAt.IsZero() || next.Before(out[part].NextFireAt) {
				out[part].NextFireAt = next
			}
		default:
			out[part].OldestWakeAt = db.Instant(at)
		}
		return err
	}, strings.Join(terms, " UNION ALL "))
	if err != nil {
		return nil, db.Translate("read partitions' lags", err)
	}
	return out, nil
}
