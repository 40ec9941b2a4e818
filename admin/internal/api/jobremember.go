package api

import (
	"context"
	"fmt"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// remembering reads each executor, calendar and script that jobs of one request name once. It
// belongs to one goroutine.
type remembering struct {
	jobStore
	executors map[string]domain.Executor // by id, or by "name:" and name
	handlers  map[handlerKey]foundHandler
	names     map[handlerKey][]string
	calendars map[string]domain.Calendar // by name
	scripts   map[string]domain.Script   // by id, or by "name:" and name
	policies  map[domain.TenantID]domain.ScriptPolicy
}

func remember(from jobStore) *remembering {
	return &remembering{
		jobStore: from, executors: map[string]domain.Executor{}, handlers: map[handlerKey]foundHandler{}, names: map[handlerKey][]string{},
		calendars: map[string]domain.Calendar{}, scripts: map[string]domain.Script{}, policies: map[domain.TenantID]domain.ScriptPolicy{},
	}
}

type handlerKey struct {
	executor domain.ExecutorID
	name     string
}

type foundHandler struct {
	handler domain.Handler
	missing error // CodeNotFound
}

func (r *remembering) FindExecutor(ctx context.Context, tenant domain.TenantID, id domain.ExecutorID) (domain.Executor, error) {
	return once(r.executors, id.String(), func() (domain.Executor, error) { return r.jobStore.FindExecutor(ctx, tenant, id) })
}

func (r *remembering) FindExecutorByName(ctx context.Context, tenant domain.TenantID, name string) (domain.Executor, error) {
	return once(r.executors, "name:"+name, func() (domain.Executor, error) { return r.jobStore.FindExecutorByName(ctx, tenant, name) })
}

func (r *remembering) FindHandler(ctx context.Context, tenant domain.TenantID, executor domain.ExecutorID, name string) (domain.Handler, error) {
	found, err := once(r.handlers, handlerKey{executor, name}, func() (found foundHandler, err error) {
		if found.handler, err = r.jobStore.FindHandler(ctx, tenant, executor, name); domain.Is(err, domain.CodeNotFound) {
			found.missing, err = err, nil
		}
		return found, err
	})
	if err == nil {
		err = found.missing
	}
	return found.handler, err
}

func (r *remembering) ListHandlerNames(ctx context.Context, tenant domain.TenantID, executor domain.ExecutorID, around string, limit int) ([]string, error) {
	return once(r.names, handlerKey{executor, around}, func() ([]string, error) {
		return r.jobStore.ListHandlerNames(ctx, tenant, executor, around, limit)
	})
}

func (r *remembering) FindCalendarByName(ctx context.Context, tenant domain.TenantID, name string) (domain.Calendar, error) {
	return once(r.calendars, name, func() (domain.Calendar, error) { return r.jobStore.FindCalendarByName(ctx, tenant, name) })
}

func (r *remembering) FindScript(ctx context.Context, tenant domain.TenantID, use domain.ScriptUse) (domain.Script, error) {
	return once(r.scripts, scriptKey(use), func() (domain.Script, error) { return r.jobStore.FindScript(ctx, tenant, use) })
}

func (r *remembering) FindScriptByName(ctx context.Context, tenant domain.TenantID, name string) (domain.Script, error) {
	return once(r.scripts, "name:"+name, func() (domain.Script, error) { return r.jobStore.FindScriptByName(ctx, tenant, name) })
}

func (r *remembering) FindScriptPolicy(ctx context.Context, tenant domain.TenantID) (domain.ScriptPolicy, error) {
	return once(r.policies, tenant, func() (domain.ScriptPolicy, error) { return r.jobStore.FindScriptPolicy(ctx, tenant) })
}

func scriptKey(use domain.ScriptUse) string { return fmt.Sprintf("%d/%d", use.ID, use.Revision) }

// once calls ask unless the answer is known already.
func once[K comparable, V any](known map[K]V, key K, ask func() (V, error)) (V, error) {
	if v, ok := known[key]; ok {
		return v, nil
	}
	v, err := ask()
	if err == nil {
		known[key] = v
	}
	return v, err
}
