// Package search answers: which jobs, executors, runs and timers of a tenant does a text mean?
//
// Each question reads a bounded number of rows. Documents of other kinds are searched by
// package document.
package search

import (
	"context"
	"fmt"

	"gorm.io/gorm"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

// Search finds objects of the engine.
type Search struct{ *db.DB }

// New works on a database.
func New(database *db.DB) Search { return Search{database} }

const livingJob = "state IN (1, 2)"

// executorOf joins the executor of a job as e.
func (s *Search) executorOf(job string) string {
	return " JOIN executors AS e" + s.Dialect.ByPrimary() + " ON e.id = " + job + ".executor_id"
}

// SearchJobs finds jobs by id, name and label. The hint is the executor.
func (s *Search) SearchJobs(ctx context.Context, p domain.SearchQuery) (domain.FoundPage, error) {
	of := record.NameSearch{
		Table: "jobs", Index: "ix_jobs_name", Sorted: true, Join: s.executorOf("d"), Hint: "e.name",
		Where: " AND d." + livingJob, Named: fmt.Sprintf(" AND d.kind = %d", domain.JobPlain),
	}
	labelled := "ix_jobs_kind"
	among := fmt.Sprintf(" AND %s AND kind = %d", livingJob, domain.JobPlain)
	if p.Within.Bounded() {
		among += " AND " + db.InReach("executor_id", p.Within)
		labelled, of.Index, of.Sorted, of.Among = "ix_jobs_executor", "ix_jobs_executor", false, among
		of.Where += " AND " + db.InReach("d.executor_id", p.Within)
	}
	return s.find(ctx, "search jobs", func(ctx context.Context, q db.Querier) ([]domain.Found, bool, error) {
		all, more, err := of.Find(ctx, q, s.Dialect, p)
		if err != nil {
			return nil, false, err
		}
		pattern, is := labelPattern(p.Text)
		if !is {
			return all, more, nil
		}
		labels, err := record.FindMatches(ctx, q, fmt.Sprintf("SELECT d.id, d.name, e.name, %d FROM (SELECT id FROM jobs%s WHERE tenant_id = ?%s LIMIT %d) AS c"+
			"%sjobs AS d%s ON d.id = c.id%s WHERE d.labels LIKE ? ESCAPE '!' ORDER BY d.name LIMIT %d",
			domain.MatchLabel, s.Dialect.ByIndex(labelled), among, record.SearchedRows, s.Dialect.InOrder(), s.Dialect.ByPrimary(), s.executorOf("d"), domain.MaxFound+1), int64(p.Tenant), pattern)
		return append(all, labels...), more, err
	})
}

// SearchExecutors finds executors by id and name. The hint says what they are.
func (s *Search) SearchExecutors(ctx context.Context, p domain.SearchQuery) (domain.FoundPage, error) {
	of := record.NameSearch{
		Table: "executors", Index: "uq_executors_name", Among: " AND " + record.LivingExecutor, Where: " AND d." + record.LivingExecutor,
		Hint: "CASE WHEN d.state = 2 THEN 'disabled' ELSE SUBSTR(d.description, 1, 80) END",
	}
	if p.Within.Bounded() {
		of.Among += " AND " + db.InReach("id", p.Within)
		of.Where += " AND " + db.InReach("d.id", p.Within)
	}
	return s.find(ctx, "search executors", func(ctx context.Context, q db.Querier) ([]domain.Found, bool, error) {
		return of.Find(ctx, q, s.Dialect, p)
	})
}

// SearchRuns finds a run by its id. The name is that of its job, and the hint its state.
func (s *Search) SearchRuns(ctx context.Context, p domain.SearchQuery) (domain.FoundPage, error) {
	id := p.ID()
	if id == 0 {
		return domain.FoundPage{}, nil
	}
	return s.find(ctx, "search runs", func(ctx context.Context, q db.Querier) ([]domain.Found, bool, error) {
		all, err := db.Select(ctx, q, func(f *state) []any { return []any{&f.found.ID, &f.found.Name, &f.state} },
			"SELECT d.id, j.name, d.state FROM executions AS d JOIN jobs AS j"+s.Dialect.ByPrimary()+" ON j.id = d.job_id WHERE d.id = ? AND d.tenant_id = ? AND "+db.InReach("d.executor_id", p.Within), id, int64(p.Tenant))
		return domain.Collect(all, func(f *state) domain.Found {
			f.found.Hint = f.state.String()
			return f.found
		}), false, err
	})
}

type state struct {
	found domain.Found
	state domain.State
}

func (s *Search) find(ctx context.Context, step string, fn func(context.Context, db.Querier) ([]domain.Found, bool, error)) (page domain.FoundPage, err error) {
	err = s.Look(ctx, step, func(ctx context.Context, q db.Querier, _ *gorm.DB) error {
		all, more, err := fn(ctx, q)
		page = domain.FoundOf(all, more)
		return err
	})
	return page, err
}
