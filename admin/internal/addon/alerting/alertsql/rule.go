package alertsql

import (
	"context"
	"database/sql"
	"fmt"

	"gorm.io/gorm"

	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/noun"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/resource"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/document"
)

// Rules is the table of alert rules in a database.
func Rules(database *db.DB) *document.Table {
	t := rules(database)
	t.Uses = []*document.Table{channels(database)}
	return t
}

func rules(database *db.DB) *document.Table {
	return &document.Table{DB: database, Kind: noun.AlertRuleKind, Name: "alert_rules", Side: ruleColumns}
}

// ruleColumns are read in the transactions of runs and of looks.
func ruleColumns(row *resource.Row) (map[string]any, error) {
	r, err := noun.AlertRuleOf(row)
	if err != nil {
		return nil, err
	}
	return map[string]any{"on_success": r.Spec.WantsSuccess(), "next_at": nextLook(&r.Spec, row.UpdatedAt), "next_job": 0}, nil
}

// rulesIn reads rules in a transaction, in the order in which they decide.
func rulesIn(t *db.Tx, where string, args ...any) ([]noun.AlertRule, error) {
	rows, err := rules(t.DB).In(t.Gorm, func(g *gorm.DB) *gorm.DB { return g.Where(where, args...) })
	if err != nil {
		return nil, fmt.Errorf("load alert rules: %w", err)
	}
	out, err := domain.TryCollect(rows, noun.AlertRuleOf)
	noun.SortRules(out)
	return out, err
}

// JobNames are the names of jobs by id. A deleted one is marked as such, since another job may have
// its name by now. A job that retention has removed is left out.
func (s *Alerts) JobNames(ctx context.Context, tenant domain.TenantID, ids []int64) (map[int64]string, error) {
	return s.namesOf(ctx, "jobs", int64(domain.JobDeleted), tenant, ids)
}

// ExecutorNames are the names of executors by id, like JobNames.
func (s *Alerts) ExecutorNames(ctx context.Context, tenant domain.TenantID, ids []int64) (map[int64]string, error) {
	return s.namesOf(ctx, "executors", int64(domain.ExecutorDeleted), tenant, ids)
}

func (s *Alerts) namesOf(ctx context.Context, table string, deleted int64, tenant domain.TenantID, ids []int64) (map[int64]string, error) {
	out := map[int64]string{}
	err := s.LookRows(ctx, "name "+table, func(rows *sql.Rows) error {
		var id, state int64
		var name string
		err := rows.Scan(&id, &state, &name)
		if state == deleted {
			name += " (deleted)"
		}
		out[id] = name
		return err
	}, "SELECT id, state, name FROM "+table+s.Dialect.ByPrimary()+" WHERE id IN ("+db.IDList(ids)+") AND tenant_id = ?", int64(tenant))
	return out, err
}

// RulesChanged makes the nodes read again which rules name successes.
func (s *Alerts) RulesChanged() { s.engine.ForgetSuccesses() }
