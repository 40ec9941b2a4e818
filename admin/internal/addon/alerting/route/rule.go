package route

import (
	"context"
	"fmt"

	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/noun"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/resource"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// engineTargets are the executors and jobs that rules may name. Both come and go: code removes
// jobs too, and a rule that names one does not keep it.
func (a *api) engineTargets() []resource.Target {
	return []resource.Target{
		{Kind: "Executor", Noun: "executor", Loose: true, Names: a.namesBy(Names.ExecutorNames), Find: findBy(
			a, Store.FindExecutorByName, Store.FindExecutor, func(e *domain.Executor) domain.ExecutorID { return e.ID })},
		{Kind: "Job", Noun: "job", Loose: true, Names: a.namesBy(Names.JobNames), Find: findBy(
			a, Store.FindJobByName, Store.FindJob, func(v *store.JobView) domain.JobID { return v.ID })},
	}
}

func (a *api) namesBy(of func(Names, context.Context, domain.TenantID, []int64) (map[int64]string, error)) func(context.Context, domain.TenantID, []int64) (map[int64]string, error) {
	return func(ctx context.Context, tenant domain.TenantID, ids []int64) (map[int64]string, error) {
		return of(a.deps.Kept.Names, ctx, tenant, ids)
	}
}

// findBy finds by a name, or else by an id.
func findBy[T any, I ~int64](a *api, byName func(Store, context.Context, domain.TenantID, string) (T, error), byID func(Store, context.Context, domain.TenantID, I) (T, error), idOf func(*T) I,
) func(context.Context, domain.TenantID, string) (int64, error) {
	return func(ctx context.Context, tenant domain.TenantID, word string) (int64, error) {
		found, err := byName(a.deps.Store, ctx, tenant, word)
		if domain.Is(err, domain.CodeNotFound) {
			if id, wrong := domain.ParseID[I](word); wrong == nil {
				found, err = byID(a.deps.Store, ctx, tenant, id)
			}
		}
		return int64(idOf(&found)), err
	}
}

// checkMatched refuses executors and jobs that the tenant does not have: nothing would
// ever match.
func (a *api) checkMatched(ctx context.Context, tenant domain.TenantID, at string, m noun.AlertMatcher) error {
	for n, id := range m.Executors {
		if _, err := a.deps.Store.FindExecutor(ctx, tenant, id); err != nil {
			return matchedError(err, fmt.Sprintf("%s.executorIds[%d]", at, n), "executor", id)
		}
	}
	for n, id := range m.Jobs {
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
