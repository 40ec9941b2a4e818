package run

import "github.com/carillon-sched/carillon/admin/internal/domain"

// RequestCancel cancels an execution; nil: there is none.
func (b *Batch) RequestCancel(tenant domain.TenantID, id domain.ExecutionID, reason domain.Reason, message string) (*Move, error) {
	m := b.Find(tenant, id)
	if m == nil {
		return nil, nil
	}
	return m, b.turn(m).apply(m.E.RequestCancel(b.Now, reason, message))
}
