package apply

import (
	"context"
	"slices"

	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/resource"
)

// maxPruned bounds what one apply prunes.
const maxPruned = 1000

// planDelete plans to delete the documents that a request names. Those that are not there stay
// as steps with nothing to do.
func (r *request) planDelete(ctx context.Context, id auth.Identity, kinds []web.DocumentKind) error {
	for _, k := range slices.Backward(kinds) {
		of := r.of(&k)
		if len(of) == 0 {
			continue
		}
		steps, err := k.Planner.PlanDelete(ctx, id, domain.Collect(of, func(e **entry) string { return (*e).write.Name }), nil, r.going())
		if err == nil {
			err = r.warnNamed(ctx, id, kinds, &k, steps)
		}
		if err != nil {
			return err
		}
		for _, e := range of {
			e.step = resource.Step{Action: resource.ActionSame, Name: e.write.Name}
			for i := range steps {
				if steps[i].Name == e.write.Name {
					e.step = steps[i]
					r.deletes = append(r.deletes, e)
				}
			}
		}
	}
	r.entries = slices.DeleteFunc(r.entries, func(e *entry) bool { return e.step.Action == resource.ActionDelete })
	return nil
}

// readSet looks at the other documents of the set. Documents that name others go first.
func (a *api) readSet(ctx context.Context, id auth.Identity, r *request, kinds []web.DocumentKind) error {
	if r.with.Set == "" {
		if r.with.Prune {
			return domain.Invalid("body.prune", "needs a set")
		}
		return nil
	}
	members, err := a.sets.ListDocumentSet(ctx, id.Tenant, r.with.Set)
	if err != nil {
		return err
	}
	if len(members) == 0 {
		if r.sets, err = a.sets.ListDocumentSetNames(ctx, id.Tenant); err != nil {
			return err
		}
		r.newSet = true
	}
	held := map[resource.SetMember]bool{}
	for _, e := range r.entries {
		if e.err == nil && e.step.ID != 0 {
			held[e.member()] = true
		}
	}
	r.members = map[resource.SetMember]bool{}
	others := map[string][]int64{}
	for _, m := range members {
		if r.members[m] = true; !held[m] {
			others[m.Kind] = append(others[m.Kind], m.ID)
		}
	}
	for _, k := range slices.Backward(kinds) {
		if err := r.readOthers(ctx, id, kinds, &k, others[k.Name]); err != nil {
			return err
		}
	}
	return nil
}

// readOthers finds documents of the set that the request does not hold.
func (r *request) readOthers(ctx context.Context, id auth.Identity, kinds []web.DocumentKind, k *web.DocumentKind, ids []int64) error {
	if len(ids) == 0 {
		return nil
	}
	steps, err := k.Planner.PlanDelete(ctx, id, nil, ids, r.going())
	if err == nil && r.with.Prune {
		err = r.warnNamed(ctx, id, kinds, k, steps)
	}
	if err != nil {
		return err
	}
	there := map[int64]bool{}
	for i := range steps {
		if there[steps[i].ID] = true; !r.with.Prune || len(r.deletes) == maxPruned {
			r.left++
			continue
		}
		if !k.MayEdit(id) {
			return domain.Errorf(domain.CodeDenied, "your role %q does not allow to delete %s", id.Role, k.A())
		}
		r.deletes = append(r.deletes, &entry{kind: k, step: steps[i]})
	}
	for _, one := range ids {
		if !there[one] {
			r.leave = append(r.leave, resource.SetMember{Kind: k.Name, ID: one})
		}
	}
	return nil
}

// warnNamed warns of deletions after which other documents go on naming what is gone.
func (r *request) warnNamed(ctx context.Context, id auth.Identity, kinds []web.DocumentKind, of *web.DocumentKind, steps []resource.Step) error {
	if len(steps) == 0 {
		return nil
	}
	for _, k := range kinds {
		if k.Documents == nil {
			continue
		}
		users, err := k.Documents.ReferTo(ctx, id.Tenant, of.Name)
		if err != nil {
			return err
		}
		for i := range steps {
			if stay := r.going().Stay(users[steps[i].ID]); len(stay) > 0 {
				steps[i].Warnings = append(steps[i].Warnings, resource.WarnNamed(stay))
			}
		}
	}
	return nil
}

// going are the documents that are deleted or changed before the next deletion.
func (r *request) going() resource.Going {
	out := resource.Going{}
	for _, e := range slices.Concat(r.entries, r.deletes) {
		if e.err == nil && e.kind != nil && (e.step.Action == resource.ActionDelete || e.step.Action == resource.ActionUpdate) {
			out[e.member()] = true
		}
	}
	return out
}

func (e *entry) member() resource.SetMember {
	return resource.SetMember{Kind: e.kind.Name, ID: e.step.ID}
}

// join are the documents that are not in the set. In a plan they may have no id yet.
func (r *request) join() (out []resource.SetMember) {
	if r.with.Set == "" || r.with.Delete {
		return nil
	}
	for _, e := range r.entries {
		if e.err == nil && e.step.Refused == nil && !r.members[e.member()] {
			out = append(out, e.member())
		}
	}
	return out
}

// saveSet writes which documents belong to the set. If it fails, the next apply of the set does
// it: documents that stay as they are join, too.
func (a *api) saveSet(ctx context.Context, id auth.Identity, r *request) error {
	leave := slices.Clone(r.leave)
	for _, e := range r.deletes {
		if e.err == nil && r.members[e.member()] {
			leave = append(leave, e.member())
		}
	}
	join := r.join()
	if r.with.Set == "" || len(join)+len(leave) == 0 {
		return nil
	}
	return a.sets.SaveDocumentSet(domain.WithAudit(ctx, domain.AuditOf(ctx).Another()), id.Tenant, r.with.Set, join, leave)
}
