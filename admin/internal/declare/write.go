package declare

import (
	"context"
	"encoding/json"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// write stores what builds declare, in one transaction with one entry of the audit log.
func (d *Declarer) write(ctx context.Context, k store.ExecutorKey, writes []store.DeclaredWrite) error {
	if changed := changedJobs(writes); d.opt.Audited && len(changed) > 0 {
		entry := domain.AuditEntry{Tenant: k.Tenant, Actor: declaredBy, Operation: "declare-jobs", Outcome: domain.AuditDone}
		if len(changed) > 1 { // the entry of one job has its id and its revisions
			names, err := json.Marshal(changed)
			if err != nil {
				return err
			}
			entry.AuditObject = domain.AuditObject{Kind: "executor", ID: k.Executor.String(), After: string(names)}
		}
		ctx = domain.WithAudit(ctx, domain.NewPendingAudit(entry))
	}
	return d.opt.Store.WriteDeclared(ctx, k.Tenant, writes)
}

// changedJobs are the names or ids of the jobs that writes change. Marks and proposals change
// none.
func changedJobs(writes []store.DeclaredWrite) (out []string) {
	for _, w := range writes {
		switch {
		case w.Create != nil:
			out = append(out, w.Create.Spec.Name)
		case w.State != nil:
			out = append(out, w.State.ID.String())
		case w.Update != nil:
			out = append(out, w.Update.Spec.Name)
		}
	}
	return out
}
