package declare

import (
	"context"
	"fmt"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// Declaration returns what the newest build that is known declares of a job: of
// the present builds; or else, while nothing of the application runs, of those
// in force.
func (d *Declarer) Declaration(ctx context.Context, job store.JobView) (out domain.DeclaredJob, err error) {
	k := store.ExecutorKey{Tenant: job.TenantID, Executor: job.Declared.By}
	builds, err := d.opt.Store.ListBuilds(ctx, k.Tenant, k.Executor)
	if err != nil {
		return out, fmt.Errorf("list builds: %w", err)
	}
	count := domain.PresentBuilds(builds)
	if len(count) == 0 {
		for i := range builds {
			builds[i].Present = builds[i].Applied
		}
		count = domain.PresentBuilds(builds)
	}
	m, err := d.merge(ctx, k, count, nil)
	if err != nil {
		return out, err
	}
	w := m.jobs[job.DeclaredName()]
	if w == nil || job.Executor != k.Executor {
		return out, domain.Errorf(domain.CodeNotFound, "what the code declares of the job %q is not known; it is when the application has registered", job.Spec.Name)
	}
	if w.silenced {
		return out, errMayNotDeclare
	}
	if err := domain.CheckDeclaration(w.terms); err != nil {
		return out, err
	}
	if out.Spec, err = d.specOf(ctx, k, w.handler, w.job, &job.Spec); err != nil {
		return out, err
	}
	if err := d.checkCallbacks(ctx, k.Tenant, k.Executor, &out.Spec); err != nil {
		return out, err
	}
	if err := keepConsoles(&out.Spec, &job.Spec); err != nil {
		return out, err
	}
	out.Declaration = domain.Declaration{Executor: k.Executor, Declared: w.terms, Hash: w.hash}
	return out, nil
}

// GivenBack takes the job from the list of those that were not taken, and lets
// the next registrations hear so. What does not come to that, they do themselves.
func (d *Declarer) GivenBack(ctx context.Context, tenant domain.TenantID, executor domain.ExecutorID) {
	d.applied.forget(store.ExecutorKey{Tenant: tenant, Executor: executor})
	if _, err := d.reconcile(ctx, tenant, executor); err != nil {
		d.log.Warn("declarations were not looked at again; the next registration does it", "tenant_id", tenant, "executor_id", executor, "err", err)
	}
}

// forget drops what is remembered of the builds of an executor.
func (a *applied) forget(k store.ExecutorKey) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for b := range a.builds {
		if b.ExecutorKey == k {
			delete(a.builds, b)
		}
	}
}
