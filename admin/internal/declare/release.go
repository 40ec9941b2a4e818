package declare

import (
	"context"
	"fmt"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/timing"
)

// release does with jobs that no present build declares any more what was
// declared for that case.
func (d *Declarer) release(ctx context.Context, k store.ExecutorKey, jobs map[string]*declared, newest *domain.Build) error {
	all, err := d.opt.Store.ListDeclaredJobs(ctx, k.Tenant, k.Executor)
	if err != nil {
		return fmt.Errorf("list declared jobs: %w", err)
	}
	for i := range all {
		j := &all[i].Job
		if jobs[j.DeclaredName()] != nil || j.Declared.Gone {
			continue
		}
		if err := d.releaseOne(ctx, k, j, newest); err != nil && !domain.Is(err, domain.CodeNotFound) {
			return fmt.Errorf("release job %s: %w", j.ID, err)
		}
	}
	return d.dropProposals(ctx, k, jobs)
}

func (d *Declarer) releaseOne(ctx context.Context, k store.ExecutorKey, j *domain.Job, newest *domain.Build) error {
	gone := j.Declared
	gone.Gone = true
	removal := domain.DecideRemoval(j)
	d.log.Info("job is not declared any more", "tenant_id", k.Tenant, "job_id", j.ID, "job", j.Spec.Name, "removal", string(removal))
	p := &store.SetJobStateParams{
		Tenant: k.Tenant, ID: j.ID, By: declaredBy, Declared: &gone, Next: timing.Next, Plan: d.opt.Plan,
		Note: "no longer declared by the application",
	}
	write := store.DeclaredWrite{State: p}
	if newest.Version != "" {
		p.Note += ", version " + newest.Version
	}
	switch {
	case removal == domain.RemovalDelete:
		p.State, gone.Name = domain.JobDeleted, "" // nobody has decided against it
	case removal == domain.RemovalPause && j.State == domain.JobEnabled:
		p.State, gone.PausedGone = domain.JobPaused, true
	default:
		write = store.DeclaredWrite{Mark: &store.DeclaredMark{Job: j.ID, Declared: gone}}
	}
	err := d.write(ctx, k, []store.DeclaredWrite{write})
	if err == nil {
		d.opt.Changed()
	}
	return err
}

// dropProposals takes back what is not proposed any more.
func (d *Declarer) dropProposals(ctx context.Context, k store.ExecutorKey, jobs map[string]*declared) error {
	var pending []store.ProposalView
	for more, after := true, int64(0); more; {
		page, err := d.opt.Store.ListProposals(ctx, store.ListProposalsParams{Tenant: k.Tenant, Executor: k.Executor, After: after, Limit: 1000})
		if err != nil {
			return fmt.Errorf("list proposals: %w", err)
		}
		if more = page.More; len(page.Items) > 0 {
			after = page.Items[len(page.Items)-1].ID
		}
		pending = append(pending, page.Items...)
	}
	var names []string
	for _, p := range pending {
		w := jobs[p.Name]
		if w == nil || w.terms.Ownership != domain.OwnedPropose || p.Job != nil && p.Job.DeclarationHash == w.hash {
			names = append(names, p.Name)
		}
	}
	return d.opt.Store.DropProposals(ctx, k.Tenant, k.Executor, names)
}
