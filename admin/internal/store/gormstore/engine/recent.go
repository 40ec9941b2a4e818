package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
)

// use is one run of a job on an instance.
type use struct {
	job      domain.JobID
	fireAt   int64
	instance domain.InstanceID
}

// RecentInstances reads Limit rows of the occurrence index for each job, in one
// statement.
func (s *Executions) RecentInstances(ctx context.Context, p store.RecentInstancesParams) (map[domain.JobID][]domain.InstanceID, error) {
	if len(p.Jobs) == 0 {
		return nil, nil
	}
	var b strings.Builder
	for i, j := range p.Jobs {
		if i > 0 {
			b.WriteString(" UNION ALL ")
		}
		fmt.Fprintf(&b, "SELECT job_id, fire_at, instance_id FROM (SELECT job_id, fire_at, instance_id FROM executions%s"+
			" WHERE job_id = %d AND tenant_id = %d AND fire_at <= %d ORDER BY fire_at DESC LIMIT %d) AS r%d",
			s.Dialect.ByIndex("uq_executions_occurrence"), j.Job, j.Tenant, db.Millis(p.Until), p.Limit, i)
	}
	uses, err := db.LookSelect(ctx, s.DB, "find recent instances", func(u *use) []any { return []any{&u.job, &u.fireAt, &u.instance} }, b.String())
	if err != nil {
		return nil, err
	}
	// A union promises no order.
	slices.SortStableFunc(uses, func(a, b use) int { return cmp.Compare(b.fireAt, a.fireAt) })
	out := make(map[domain.JobID][]domain.InstanceID, len(p.Jobs))
	for _, u := range uses {
		if u.instance != 0 {
			out[u.job] = append(out[u.job], u.instance)
		}
	}
	return out, nil
}
