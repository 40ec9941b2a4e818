package search

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
)

const (
	// searchedHandlers bounds the handlers whose timers one search reads.
	searchedHandlers = 200
	// handlersAtOnce is how many of them one statement reads. SQLite takes 500 terms.
	handlersAtOnce = 100
)

// timersOf is a job of kind timer.
type timersOf struct {
	job               int64
	executor, handler string
}

// SearchTimers finds timers by id and by the beginning of the key, and those that have a run by
// their key. The name is the key. The hint is executor/handler.
func (s *Search) SearchTimers(ctx context.Context, p domain.SearchQuery) (domain.FoundPage, error) {
	return s.find(ctx, "search timers", func(ctx context.Context, q db.Querier) ([]domain.Found, bool, error) {
		within := " AND " + db.InReach("j.executor_id", p.Within)
		var all []domain.Found
		if id := p.ID(); id != 0 {
			err := db.Query(ctx, q, func(rows *sql.Rows) error {
				f, executor, handler := domain.Found{Match: domain.MatchID}, "", ""
				err := rows.Scan(&f.ID, &f.Name, &executor, &handler)
				f.Hint = executor + "/" + handler
				all = append(all, f)
				return err
			}, "SELECT d.id, d.timer_key, e.name, j.handler FROM timers AS d JOIN jobs AS j"+s.Dialect.ByPrimary()+" ON j.id = d.job_id"+s.executorOf("j")+
				" WHERE d.id = ? AND d.tenant_id = ?"+within, id, int64(p.Tenant))
			if err != nil {
				return nil, false, err
			}
		}
		of, err := db.Select(ctx, q, func(t *timersOf) []any { return []any{&t.job, &t.executor, &t.handler} },
			"SELECT j.id, e.name, j.handler FROM jobs AS j"+s.Dialect.ByIndex("ix_jobs_kind")+s.executorOf("j")+
				" WHERE j.tenant_id = ? AND j.kind = ? AND j."+livingJob+within+fmt.Sprintf(" LIMIT %d", searchedHandlers+1), int64(p.Tenant), int64(domain.JobTimer))
		if err != nil {
			return nil, false, err
		}
		for part := range slices.Chunk(of[:min(len(of), searchedHandlers)], handlersAtOnce) {
			found, err := s.keys(ctx, q, p, part)
			if err != nil {
				return nil, false, err
			}
			all = append(all, found...)
		}
		return all, len(of) > searchedHandlers, nil
	})
}

// keyed is a timer of a job.
type keyed struct {
	job, id int64
	key     string
}

// keys finds timers of some jobs: pending ones by the beginning of the key, others by the key.
func (s *Search) keys(ctx context.Context, q db.Querier, p domain.SearchQuery, of []timersOf) ([]domain.Found, error) {
	targets := map[int64]string{}
	terms, args := make([]string, len(of)), make([]any, 0, 2*len(of))
	for i, t := range of {
		targets[t.job] = t.executor + "/" + t.handler
		terms[i] = s.Dialect.Bounded(fmt.Sprintf("SELECT job_id, id, timer_key FROM timers%s WHERE job_id = %d AND timer_key >= ? AND timer_key < ? AND tenant_id = %d ORDER BY timer_key LIMIT %d",
			s.Dialect.ByIndex("uq_timers_key"), t.job, p.Tenant, domain.MaxFound+1))
		args = append(args, p.Text, db.PrefixEnd(p.Text))
	}
	columns := func(k *keyed) []any { return []any{&k.job, &k.id, &k.key} }
	pending, err := db.Select(ctx, q, columns, strings.Join(terms, " UNION ALL "), args...)
	if err != nil {
		return nil, err
	}
	jobs := domain.Collect(of, func(t *timersOf) int64 { return t.job })
	ended, err := db.Select(ctx, q, columns, "SELECT job_id, execution_id, '' FROM request_keys WHERE tenant_id = ? AND job_id IN ("+db.IDList(jobs)+") AND request_key = ?",
		int64(p.Tenant), domain.TimerRequestKey(p.Text))
	for i := range ended {
		ended[i].key = p.Text
	}
	return domain.Collect(append(pending, ended...), func(k *keyed) domain.Found {
		match := domain.MatchPrefix
		if k.key == p.Text {
			match = domain.MatchName
		}
		return domain.Found{ID: k.id, Name: k.key, Hint: targets[k.job], Match: match}
	}), err
}

// labelPattern is a LIKE pattern for a text key=value, with a value or its beginning.
func labelPattern(text string) (pattern string, is bool) {
	key, _, is := strings.Cut(text, "=")
	return db.Contains("\n" + text), is && key != ""
}
