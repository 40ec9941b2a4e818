package console

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"gorm.io/gorm"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

const (
	// labelledJobs bounds the jobs whose labels are added up.
	labelledJobs = 10_000
	// runsOfError bounds the newest runs of an error that are looked at.
	runsOfError = 1000
)

// failureColumns are what failures are grouped by.
var failureColumns = map[store.FailureGroup]string{
	store.FailuresByJob: "job_id", store.FailuresByExecutor: "executor_id", store.FailuresByLabel: "job_id", store.FailuresByError: "fingerprint",
}

// FailureGroups is the statement of ListFailures. It reads one range of the primary key, and
// sorts groups, not rows.
func FailureGroups(d db.Dialect, p store.ListFailuresParams) string {
	column, only := failureColumns[p.By], db.InReach("executor_id", p.Within)
	if p.Job != 0 {
		only += fmt.Sprintf(" AND job_id = %d", p.Job)
	}
	return fmt.Sprintf("SELECT %[1]s, SUM(runs) AS n, COUNT(DISTINCT job_id), MAX(last_run), MAX(last_at), MIN(at) FROM failure_counts%[2]s WHERE tenant_id = %[3]d AND at >= %[4]d AND at < %[5]d AND %[6]s GROUP BY %[1]s ORDER BY n DESC, %[1]s LIMIT %[7]d",
		column, d.ByPrimary(), p.Tenant, db.Millis(p.From), db.Millis(p.To), only, p.Limit)
}

func (s *Statistics) ListFailures(ctx context.Context, p store.ListFailuresParams) (out []store.FailureCount, err error) {
	if failureColumns[p.By] == "" {
		return nil, domain.Invalid("query.groupBy", "unknown group %q", p.By)
	}
	limit := p.Limit
	if p.By == store.FailuresByLabel {
		p.Limit = labelledJobs
	}
	err = s.Look(ctx, "list failures", func(ctx context.Context, q db.Querier, _ *gorm.DB) error {
		out = nil
		err := db.Query(ctx, q, func(rows *sql.Rows) error {
			var c store.FailureCount
			var last, first int64
			err := rows.Scan(&c.ID, &c.Runs, &c.Jobs, &c.LastRun, &last, &first)
			c.LastAt, c.FirstAt = db.Instant(last), db.Instant(first)
			out = append(out, c)
			return err
		}, FailureGroups(s.Dialect, p))
		if err != nil || len(out) == 0 {
			return err
		}
		switch p.By {
		case store.FailuresByLabel:
			out, err = failuresByLabel(ctx, q, p.Tenant, out, limit)
			return err
		case store.FailuresByError:
			return nameErrors(ctx, q, p.Tenant, out)
		}
		return s.nameFailures(ctx, q, p, out)
	})
	return out, err
}

// nameErrors turns ids into fingerprints, and adds their texts.
func nameErrors(ctx context.Context, q db.Querier, tenant domain.TenantID, list []store.FailureCount) error {
	ids := domain.Collect(list, func(c *store.FailureCount) int64 { return c.ID })
	texts, err := db.Pairs[int64, string](ctx, q, fmt.Sprintf("SELECT fingerprint, text FROM error_texts WHERE tenant_id = %d AND fingerprint IN (%s)", tenant, db.IDList(ids)))
	for i := range list {
		list[i].Name, list[i].Error, list[i].ID = texts[list[i].ID], domain.Fingerprint(list[i].ID), 0
	}
	return err
}

// nameFailures adds names of jobs or executors, and how many of their runs have ended.
func (s *Statistics) nameFailures(ctx context.Context, q db.Querier, p store.ListFailuresParams, list []store.FailureCount) error {
	kind, table := domain.StatisticsOfJob, "jobs"
	if p.By == store.FailuresByExecutor {
		kind, table = domain.StatisticsOfExecutor, "executors"
	}
	ids := domain.Collect(list, func(c *store.FailureCount) int64 { return c.ID })
	names, err := namesOf(ctx, q, table, ids)
	if err != nil {
		return err
	}
	ended, err := db.Pairs[int64, int64](ctx, q, EndedOf(s.Dialect, kind, p, ids))
	for i := range list {
		list[i].Name = names[list[i].ID]
		list[i].Ended = max(ended[list[i].ID], list[i].Runs) // statistics of a deleted job are deleted
	}
	return err
}

// EndedOf counts the runs of jobs or executors that ended.
func EndedOf(d db.Dialect, kind domain.StatisticKind, p store.ListFailuresParams, ids []int64) string {
	return fmt.Sprintf("SELECT subject_id, SUM(runs) FROM statistics%s WHERE tenant_id = %d AND kind = %d AND subject_id IN (%s) AND at >= %d AND at < %d AND step <= %d GROUP BY subject_id",
		d.ByPrimary(), p.Tenant, kind, db.IDList(ids), db.Millis(p.From), db.Millis(p.To), domain.StepHour)
}

// failuresByLabel adds up jobs by their labels.
func failuresByLabel(ctx context.Context, q db.Querier, tenant domain.TenantID, jobs []store.FailureCount, limit int) ([]store.FailureCount, error) {
	byLabel := map[string]*store.FailureCount{}
	for part := range slices.Chunk(jobs, db.ListOnce) {
		ids := domain.Collect(part, func(c *store.FailureCount) int64 { return c.ID })
		labels, err := db.Pairs[int64, string](ctx, q, fmt.Sprintf("SELECT id, labels FROM jobs WHERE id IN (%s) AND tenant_id = %d", db.IDList(ids), tenant))
		if err != nil {
			return nil, err
		}
		for _, job := range part {
			row := record.JobRow{Labels: labels[job.ID]}
			for key, value := range row.LabelMap() {
				name := key + "=" + value
				sum := byLabel[name]
				if sum == nil {
					sum = &store.FailureCount{Name: name}
					byLabel[name] = sum
				}
				sum.Runs, sum.Jobs, sum.LastRun = sum.Runs+job.Runs, sum.Jobs+1, max(sum.LastRun, job.LastRun)
				if job.LastAt.After(sum.LastAt) {
					sum.LastAt = job.LastAt
				}
				if sum.FirstAt.IsZero() || job.FirstAt.Before(sum.FirstAt) {
					sum.FirstAt = job.FirstAt
				}
			}
		}
	}
	out := make([]store.FailureCount, 0, len(byLabel))
	for _, sum := range byLabel {
		out = append(out, *sum)
	}
	slices.SortFunc(out, func(a, b store.FailureCount) int {
		return cmp.Or(cmp.Compare(b.Runs, a.Runs), cmp.Compare(a.Name, b.Name))
	})
	return out[:min(len(out), limit)], nil
}

// RunsOfError finds the newest run of each hour and job that ended with an error, the newest
// first.
func RunsOfError(d db.Dialect, tenant domain.TenantID, mark domain.Fingerprint, within domain.Reach, before domain.ExecutionID, since time.Time) string {
	condition := ""
	if before != 0 {
		condition = fmt.Sprintf(" AND last_run < %d", before)
	}
	if !since.IsZero() {
		condition += fmt.Sprintf(" AND last_run >= %d", domain.IDFloor(since))
	}
	return fmt.Sprintf("SELECT last_run FROM failure_counts%s WHERE tenant_id = %d AND fingerprint = %d%s AND %s ORDER BY last_run DESC LIMIT %d",
		d.ByIndex("ix_failure_counts_error"), tenant, int64(mark), condition, db.InReach("executor_id", within), runsOfError)
}
