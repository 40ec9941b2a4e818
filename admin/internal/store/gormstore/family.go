package gormstore

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"gorm.io/gorm"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/run"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
)

// partsOf is the condition for the parts of a parent, a range of
// uq_executions_occurrence, with its arguments.
func partsOf(parent *domain.Execution) (condition string, args []any) {
	from, below := domain.PartKeys(parent.ID)
	return "job_id = ? AND fire_at = ? AND occurrence_key >= ? AND occurrence_key < ? AND tenant_id = ? AND parent_id = ?",
		[]any{int64(parent.JobID), db.Millis(parent.FireAt), from, below, int64(parent.TenantID), int64(parent.ID)}
}

// Known implements run.Source: parents are looked up with their parts.
func (b *batch) Known(id domain.ExecutionID) bool {
	_, there := b.flights[id]
	return there
}

// NewID implements run.Source.
func (b *batch) NewID() (domain.ExecutionID, error) {
	id, err := b.s.NewID()
	return domain.ExecutionID(id), err
}

// Family implements run.Source. While a part lives, no more is said than that: so
// the shards of a large family end without reading all of it each time.
func (b *batch) Family(p *run.Move) (domain.Family, error) {
	moved, living := b.LivingPart(p)
	if living {
		return domain.Family{Living: 1}, nil
	}
	condition, args := partsOf(&p.E)
	others := ""
	if len(moved) > 0 {
		others = " AND id NOT IN (" + db.IDList(moved) + ")"
	}
	from := " FROM executions" + b.t.Dialect.ByIndex("uq_executions_occurrence") + " WHERE " + condition
	err := db.Query(b.t.Ctx, b.t.Conn, func(rows *sql.Rows) error {
		living = true
		var id int64
		return rows.Scan(&id)
	}, "SELECT id"+from+others+fmt.Sprintf(" AND state < %d LIMIT 1", domain.Succeeded), args...)
	if err != nil || living {
		return domain.Family{Living: 1}, err
	}
	out := domain.Family{Shards: map[domain.State]int{}}
	err = db.Query(b.t.Ctx, b.t.Conn, func(rows *sql.Rows) error {
		var e domain.Execution
		if err := rows.Scan(&e.ID, &e.Part, &e.State, &e.Lingers); err != nil {
			return err
		}
		if m := b.Moves[e.ID]; m != nil {
			e.State, e.Lingers = m.E.State, m.E.Lingers
		}
		out.Add(&e)
		return nil
	}, "SELECT id, role, state, lingers"+from, args...)
	return out, err
}

// Results implements run.Source, in the order of the shards.
func (b *batch) Results(p *run.Move, family domain.Family) ([]byte, error) {
	summary := domain.NewShardResults(&p.E, family)
	condition, args := partsOf(&p.E)
	err := db.Query(b.t.Ctx, b.t.Conn, func(rows *sql.Rows) error {
		r := &executionRow{}
		if err := rows.Scan(executionTable.Targets(r)...); err != nil {
			return err
		}
		e := b.AsMoved(r.execution())
		summary.Add(&e)
		return nil
	}, "SELECT "+executionColumns+" FROM executions"+b.t.Dialect.ByIndex("uq_executions_occurrence")+" WHERE "+condition+
		fmt.Sprintf(" AND role = %d ORDER BY occurrence_key", domain.PartShard), args...)
	if err != nil {
		return nil, err
	}
	return summary.JSON()
}

// ListParts reads the range of the parts twice: some of the rows, and the states
// of all.
func (s *Runs) ListParts(ctx context.Context, tenant domain.TenantID, parent domain.ExecutionID, limit int) (views []store.ExecutionView, family domain.Family, err error) {
	err = s.Look(ctx, "list parts", func(ctx context.Context, q db.Querier, _ *gorm.DB) error {
		views, family = nil, domain.Family{Shards: map[domain.State]int{}}
		row, err := s.executionByID(ctx, q, tenant, parent)
		if err != nil {
			return err
		}
		if row == nil {
			return db.NotFound("execution", parent)
		}
		e := row.execution()
		condition, args := partsOf(&e)
		from := " FROM executions" + s.Dialect.ByIndex("uq_executions_occurrence") + " WHERE " + condition
		err = db.Query(ctx, q, func(rows *sql.Rows) error {
			var e domain.Execution
			if err := rows.Scan(&e.Part, &e.State, &e.Lingers); err != nil {
				return err
			}
			family.Add(&e)
			return nil
		}, "SELECT role, state, lingers"+from, args...)
		if err != nil {
			return err
		}
		parts, err := s.scanExecutions(ctx, q, "SELECT "+executionColumns+from+fmt.Sprintf(" ORDER BY occurrence_key LIMIT %d", limit), args...)
		if err != nil {
			return err
		}
		views, err = s.executionViews(ctx, q, parts)
		return err
	})
	return views, family, err
}

// livingParts finds the parts of parents that have not ended.
func (s *Executions) livingParts(ctx context.Context, parents []domain.Execution) (ids []domain.ExecutionID, err error) {
	err = s.Look(ctx, "find parts", func(ctx context.Context, q db.Querier, _ *gorm.DB) error {
		ids = nil
		for part := range slices.Chunk(parents, 50) {
			var terms []string
			var all []any
			for i := range part {
				condition, args := partsOf(&part[i])
				terms = append(terms, "SELECT id FROM executions"+s.Dialect.ByIndex("uq_executions_occurrence")+" WHERE "+condition+fmt.Sprintf(" AND state < %d", domain.Succeeded))
				all = append(all, args...)
			}
			err := db.Query(ctx, q, func(rows *sql.Rows) error {
				var id domain.ExecutionID
				err := rows.Scan(&id)
				ids = append(ids, id)
				return err
			}, strings.Join(terms, " UNION ALL "), all...)
			if err != nil {
				return err
			}
		}
		return nil
	})
	return ids, err
}
