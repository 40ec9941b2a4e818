package engine

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/run"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

const (
	// successRulesFor is for how long a node goes by the rules that it has read: so much
	// later a new one is heard of.
	successRulesFor = 2 * time.Second
	// maxSuccessRules bounds those that a node remembers, of all tenants.
	maxSuccessRules = 10_000
)

// successRules are the alert rules that want to hear of runs that have succeeded, as
// this node knows them. Who has none pays for one read in successRulesFor.
type successRules struct {
	snapshot[map[domain.TenantID][]domain.AlertRuleSpec]
}

func (c *successRules) load(ctx context.Context, q db.Querier, d db.Dialect) (map[domain.TenantID][]domain.AlertRuleSpec, error) {
	return c.snapshot.load(successRulesFor, func() (map[domain.TenantID][]domain.AlertRuleSpec, error) {
		of := map[domain.TenantID][]domain.AlertRuleSpec{}
		err := db.Query(ctx, q, func(rows *sql.Rows) error {
			var tenant domain.TenantID
			var text string
			if err := rows.Scan(&tenant, &text); err != nil {
				return err
			}
			spec, err := record.DecodeAlertRule(text)
			if err == nil { // else whoever groups alerts says so: no run has to fail for it
				of[tenant] = append(of[tenant], spec)
			}
			return nil
		}, SuccessRules(d))
		if err != nil {
			return nil, fmt.Errorf("read alert rules: %w", err)
		}
		return of, nil
	})
}

// ForgetSuccessRules makes the next run that succeeds read them again: one has changed.
func (s *Admission) ForgetSuccessRules() { s.success.forget() }

// SuccessRules is the statement that reads them.
func SuccessRules(d db.Dialect) string {
	return fmt.Sprintf("SELECT tenant_id, spec FROM alert_rules%s WHERE on_success = 1 LIMIT %d", d.ByIndex("ix_alert_rules_success"), maxSuccessRules)
}

// SuccessWish implements run.Source.
func (b *Batch) SuccessWish(m *run.Move) domain.SuccessWish {
	of, err := b.s.success.load(b.Tx.Ctx, b.Tx.Conn, b.Tx.Dialect)
	if err != nil {
		b.unread = err
		return domain.SuccessUnwanted
	}
	rules := of[m.E.TenantID]
	if len(rules) == 0 || m.Spec == nil {
		return domain.SuccessUnwanted
	}
	return domain.SuccessWishOf(rules, m.E.Executor, m.E.JobID, m.Spec.Labels)
}
