package engine

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
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
)

// LivingParts finds the parts of parents that have not ended.
func (s *Executions) LivingParts(ctx context.Context, parents []domain.Execution) (ids []domain.ExecutionID, err error) {
	err = s.Look(ctx, "find parts", func(ctx context.Context, q db.Querier, _ *gorm.DB) error {
		ids = nil
		for part := range slices.Chunk(parents, 50) {
			var terms []string
			var all []any
			for i := range part {
				condition, args := PartsOf(&part[i])
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

// SpreadExecutions writes a parent and its parts together: a crash leaves both or
// neither, and a parent without parts is due, which the sweep finds.
func (s *Executions) SpreadExecutions(ctx context.Context, spreads []store.Spread) ([]store.SpreadResult, error) {
	if len(spreads) == 0 {
		return nil, nil
	}
	ids := domain.Collect(spreads, func(o *store.Spread) domain.ExecutionID { return o.ID })
	return batchValue(ctx, s.runAndWake, "spread executions", ids, LoadOptions{Slots: true, spreads: true}, func(b *Batch) ([]store.SpreadResult, error) {
		results, err := b.Spread(spreads)
		if err == nil {
			err = b.Save()
		}
		for i := range results {
			b.Refresh(&results[i].OfferResult)
		}
		return results, err
	})
}

// CancelParts looks for the parts without a lock: a parent that is being
// cancelled gets no more of them.
func (s *Executions) CancelParts(ctx context.Context, parents []domain.Execution) (out store.CancelledParts, err error) {
	parts, err := s.LivingParts(ctx, parents)
	if err != nil || len(parents) == 0 {
		return out, err
	}
	load := LoadOptions{Slots: true, queue: true}
	for i := range parents {
		load.parents = append(load.parents, parents[i].ID)
	}
	return batchValue(ctx, s.RunBatch, "cancel parts", append(slices.Clone(load.parents), parts...), load, func(b *Batch) (out store.CancelledParts, err error) {
		moved, err := b.CancelParts(parts)
		if err != nil {
			return out, err
		}
		woken, err := b.Wake()
		if err != nil {
			return out, err
		}
		if err := b.Save(); err != nil {
			return out, err
		}
		for _, m := range moved {
			if m.E.State.Terminal() {
				out.Ended = append(out.Ended, m.E)
			} else {
				out.Cancel = append(out.Cancel, m.E)
			}
		}
		out.Ended = append(out.Ended, b.ParentsEnded()...)
		out.Woken = woken.All()
		slices.SortFunc(out.Woken, func(x, y domain.Execution) int { return cmp.Compare(x.ID, y.ID) })
		return out, nil
	})
}
