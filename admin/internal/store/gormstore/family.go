package gormstore

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"gorm.io/gorm"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// partsOf is the condition for the parts of a parent, a range of
// uq_executions_occurrence, with its arguments.
func partsOf(parent *domain.Execution) (condition string, args []any) {
	from, below := domain.PartKeys(parent.ID)
	return "job_id = ? AND fire_at = ? AND occurrence_key >= ? AND occurrence_key < ? AND tenant_id = ? AND parent_id = ?",
		[]any{int64(parent.JobID), millis(parent.FireAt), from, below, int64(parent.TenantID), int64(parent.ID)}
}

// parentAway reports whether an execution is a part whose parent is locked by
// another transaction: then it is left alone, since its end could not be told.
// A parent whose row is gone ended long ago.
func (b *batch) parentAway(m *move) bool {
	if !m.e.IsPart() || b.moves[m.e.Parent] != nil {
		return false
	}
	_, there := b.flights[m.e.Parent]
	return there
}

// advanceParents moves the locked parents on by what their parts say, those in
// this batch as it leaves them. Whoever may be offered then goes into woken.
func (b *batch) advanceParents(woken map[domain.JobID][]*move) error {
	var parents []*move
	for _, m := range b.moves {
		if m.e.OnlyPartsMove() && (b.parents[m.e.ID] || b.skipLocked) {
			parents = append(parents, m)
		}
	}
	slices.SortFunc(parents, func(x, y *move) int { return cmp.Compare(x.e.ID, y.e.ID) })
	for _, p := range parents {
		b.deciding = p.e.ID
		family, err := b.family(p)
		if err != nil {
			return fmt.Errorf("parts of %s: %w", p.e.ID, err)
		}
		if err := b.advance(p, family, woken); err != nil {
			return err
		}
	}
	return nil
}

func (b *batch) advance(p *move, family domain.Family, woken map[domain.JobID][]*move) error {
	step, fx := p.e.Advance(b.now, family, p.spec)
	switch step {
	case domain.StepNone:
		return nil
	case domain.StepReady:
		woken[p.e.JobID] = append(woken[p.e.JobID], p)
	case domain.StepAfter:
		results, err := b.results(p, family)
		if err != nil {
			return fmt.Errorf("results of %s: %w", p.e.ID, err)
		}
		hook, err := p.e.BearAfter(b.now, p.spec, results, b.newExecutionID)
		if err != nil {
			return err
		}
		woken[p.e.JobID] = append(woken[p.e.JobID], b.bear(hook, p.spec))
	case domain.StepEnded:
		b.ended = append(b.ended, p)
	}
	return b.apply(p, fx)
}

func (b *batch) newExecutionID() (domain.ExecutionID, error) {
	id, err := b.t.s.id()
	return domain.ExecutionID(id), err
}

// bear lets save insert a part.
func (b *batch) bear(part domain.Execution, spec *domain.JobSpec) *move {
	row := toExecutionRow(&part)
	b.born = append(b.born, row)
	return &move{after: row, e: row.execution(), spec: spec.For(part.Part)}
}

// parentsEnded are the parents that this batch ended, as they are stored.
func (b *batch) parentsEnded() (out []domain.Execution) {
	for _, m := range b.ended {
		out = append(out, m.e)
	}
	return out
}

// family reads what a parent's parts say. While one of them lives, no more is
// said than that: so the shards of a large family end without reading all of it
// each time.
func (b *batch) family(p *move) (domain.Family, error) {
	var moved []domain.ExecutionID
	for id, m := range b.moves {
		if m.e.Parent == p.e.ID {
			moved = append(moved, id)
			if !m.e.State.Terminal() {
				return domain.Family{Living: 1}, nil
			}
		}
	}
	condition, args := partsOf(&p.e)
	others := ""
	if len(moved) > 0 {
		others = " AND id NOT IN (" + idList(moved) + ")"
	}
	living := false
	from := " FROM executions" + b.t.d.byIndex("uq_executions_occurrence") + " WHERE " + condition
	err := query(b.t.ctx, b.t.q, func(rows *sql.Rows) error {
		living = true
		var id int64
		return rows.Scan(&id)
	}, "SELECT id"+from+others+fmt.Sprintf(" AND state < %d LIMIT 1", domain.Succeeded), args...)
	if err != nil || living {
		return domain.Family{Living: 1}, err
	}
	out := domain.Family{Shards: map[domain.State]int{}}
	err = query(b.t.ctx, b.t.q, func(rows *sql.Rows) error {
		var e domain.Execution
		if err := rows.Scan(&e.ID, &e.Part, &e.State, &e.Lingers); err != nil {
			return err
		}
		if m := b.moves[e.ID]; m != nil {
			e.State, e.Lingers = m.e.State, m.e.Lingers
		}
		out.Add(&e)
		return nil
	}, "SELECT id, role, state, lingers"+from, args...)
	return out, err
}

// results is what the after hook of a parent gets, in the order of the shards.
func (b *batch) results(p *move, family domain.Family) ([]byte, error) {
	summary := domain.NewShardResults(&p.e, family)
	condition, args := partsOf(&p.e)
	err := query(b.t.ctx, b.t.q, func(rows *sql.Rows) error {
		r := &executionRow{}
		if err := rows.Scan(executionTable.targets(r)...); err != nil {
			return err
		}
		e := r.execution()
		if m := b.moves[e.ID]; m != nil {
			e = m.e
		}
		summary.Add(&e)
		return nil
	}, "SELECT "+executionColumns+" FROM executions"+b.t.d.byIndex("uq_executions_occurrence")+" WHERE "+condition+
		fmt.Sprintf(" AND role = %d ORDER BY occurrence_key", domain.PartShard), args...)
	if err != nil {
		return nil, err
	}
	return summary.JSON()
}

// ListParts reads the range of the parts twice: some of the rows, and the states
// of all.
func (s *Store) ListParts(ctx context.Context, tenant domain.TenantID, parent domain.ExecutionID, limit int) (views []store.ExecutionView, family domain.Family, err error) {
	err = s.look(ctx, "list parts", func(ctx context.Context, q querier, _ *gorm.DB) error {
		views, family = nil, domain.Family{Shards: map[domain.State]int{}}
		row, err := s.executionByID(ctx, q, tenant, parent)
		if err != nil {
			return err
		}
		if row == nil {
			return notFound("execution", parent)
		}
		e := row.execution()
		condition, args := partsOf(&e)
		from := " FROM executions" + s.d.byIndex("uq_executions_occurrence") + " WHERE " + condition
		err = query(ctx, q, func(rows *sql.Rows) error {
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
func (s *Store) livingParts(ctx context.Context, parents []domain.Execution) (ids []domain.ExecutionID, err error) {
	err = s.look(ctx, "find parts", func(ctx context.Context, q querier, _ *gorm.DB) error {
		ids = nil
		for part := range slices.Chunk(parents, 50) {
			var terms []string
			var all []any
			for i := range part {
				condition, args := partsOf(&part[i])
				terms = append(terms, "SELECT id FROM executions"+s.d.byIndex("uq_executions_occurrence")+" WHERE "+condition+fmt.Sprintf(" AND state < %d", domain.Succeeded))
				all = append(all, args...)
			}
			err := query(ctx, q, func(rows *sql.Rows) error {
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
