package alertsql

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/noun"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/resource"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/engine"
)

// maxSuccessRules bounds the rules that a node remembers, of all tenants.
const maxSuccessRules = 10_000

// successRules are the rules of one tenant that name successes.
type successRules []noun.AlertRuleSpec

func (r successRules) SuccessWish(executor domain.ExecutorID, job domain.JobID, labels map[string]string) domain.SuccessWish {
	return noun.SuccessWishOf(r, executor, job, labels)
}

// ReadSuccesses implements engine.ReadSuccesses. It leaves out a rule that cannot be read.
// The grouping of events reports such a rule, and no run fails because of it.
func ReadSuccesses(ctx context.Context, q db.Querier, d db.Dialect) (map[domain.TenantID]engine.SuccessRules, error) {
	of := map[domain.TenantID]successRules{}
	err := db.Query(ctx, q, func(rows *sql.Rows) error {
		var tenant domain.TenantID
		var text string
		if err := rows.Scan(&tenant, &text); err != nil {
			return err
		}
		var row resource.Row
		if err := row.ReadText([]byte(text), noun.AlertRuleKind.Older); err != nil {
			return nil
		}
		if rule, err := noun.AlertRuleOf(&row); err == nil {
			of[tenant] = append(of[tenant], rule.Spec)
		}
		return nil
	}, SelectSuccesses(d))
	if err != nil {
		return nil, fmt.Errorf("read alert rules: %w", err)
	}
	out := make(map[domain.TenantID]engine.SuccessRules, len(of))
	for tenant, rules := range of {
		out[tenant] = rules
	}
	return out, nil
}

// SelectSuccesses is the statement of ReadSuccesses.
func SelectSuccesses(d db.Dialect) string {
	return fmt.Sprintf("SELECT tenant_id, spec FROM alert_rules%s WHERE on_success = 1 LIMIT %d", d.ByIndex("ix_alert_rules_success"), maxSuccessRules)
}
