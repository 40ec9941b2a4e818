package alertsql

import (
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

// RulesChanged makes the nodes read again which rules name successes.
func (s *Alerts) RulesChanged() { s.engine.ForgetSuccesses() }
