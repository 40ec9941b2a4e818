package record

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
)

// LivingOf is the condition that finds the living runs of a job, and those that
// linger, by ix_executions_wake: they are in the job's partition, or those of
// timers in any (docs/adr/0069).
func LivingOf(ctx context.Context, q db.Querier, tenant domain.TenantID, job domain.JobID) (condition string, err error) {
	var kind domain.JobKind
	err = db.Query(ctx, q, func(rows *sql.Rows) error { return rows.Scan(&kind) }, "SELECT kind FROM jobs WHERE id = ?", int64(job))
	if err != nil {
		return "", fmt.Errorf("read kind of the job: %w", err)
	}
	parts := fmt.Sprint(domain.PartitionOf(job))
	if kind == domain.JobTimer {
		parts = everyPartition
	}
	return fmt.Sprintf("part IN (%s) AND wake_at > 0 AND job_id = %d AND tenant_id = %d", parts, job, tenant), nil
}

var everyPartition = func() string {
	all := make([]string, domain.Partitions)
	for i := range all {
		all[i] = fmt.Sprint(i)
	}
	return strings.Join(all, ",")
}()
