package route

import (
	"context"
	"fmt"
	"slices"

	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/noun"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/resource"
)

// checkRule looks for the executors and jobs of a rule.
func (a *api) checkRule(ctx context.Context, old, row *resource.Row) error {
	var was noun.AlertRule
	if old != nil && old.Problem == "" {
		before, err := noun.AlertRuleOf(old)
		if err != nil {
			return err
		}
		was = before
	}
	rule, err := noun.AlertRuleOf(row)
	if err != nil {
		return err
	}
	return a.checkMatched(ctx, row.Tenant, "body.spec.match", rule.Spec.Match, was.Spec.Match)
}

// checkMatched refuses executors and jobs that the tenant does not have: nothing would
// ever match. What was named before may have been deleted since.
func (a *api) checkMatched(ctx context.Context, tenant domain.TenantID, at string, m, was noun.AlertMatcher) error {
	for n, id := range m.Executors {
		if slices.Contains(was.Executors, id) {
			continue
		}
		if _, err := a.deps.Store.FindExecutor(ctx, tenant, id); err != nil {
			return matchedError(err, fmt.Sprintf("%s.executorIds[%d]", at, n), "executor", id)
		}
	}
	for n, id := range m.Jobs {
		if slices.Contains(was.Jobs, id) {
			continue
		}
		if _, err := a.deps.Store.FindJob(ctx, tenant, id); err != nil {
			return matchedError(err, fmt.Sprintf("%s.jobIds[%d]", at, n), "job", id)
		}
	}
	return nil
}

func matchedError(err error, at, kind string, id fmt.Stringer) error {
	if domain.CodeOf(err) != domain.CodeNotFound {
		return err
	}
	return domain.Invalid(at, "there is no %s %s", kind, id)
}

// checkChannels looks whether the tenant has these alert channels.
func (a *api) checkChannels(ctx context.Context, tenant domain.TenantID, at string, ids []domain.ChannelID) error {
	if len(ids) == 0 {
		return nil
	}
	list, err := a.deps.Store.ListAlertChannels(ctx, tenant)
	if err != nil {
		return err
	}
	there := map[domain.ChannelID]bool{}
	for _, c := range list {
		there[c.ID] = true
	}
	for _, id := range ids {
		if !there[id] {
			return domain.Invalid(at, "there is no alert channel %s", id)
		}
	}
	return nil
}
