package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/run"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
)

// LivingParts finds the parts of parents that have not ended.
func (s *Executions) LivingParts(ctx context.Context, parents []domain.Execution) (ids []domain.ExecutionID, err error) {
	for part := range slices.Chunk(parents, 50) {
		var terms []string
		var all []any
		for i := range part {
			condition, args := PartsOf(&part[i])
			terms = append(terms, "SELECT id FROM executions"+s.Dialect.ByIndex("uq_executions_occurrence")+" WHERE "+condition+fmt.Sprintf(" AND state < %d", domain.Succeeded))
			all = append(all, args...)
		}
		some, err := db.LookColumn[domain.ExecutionID](ctx, s.DB, "find parts", strings.Join(terms, " UNION ALL "), all...)
		if err != nil {
			return nil, err
		}
		ids = append(ids, some...)
	}
	return ids, nil
}

// SpreadExecutions writes a parent and its parts together: a crash leaves both or
// neither, and a parent without parts is due, which the sweep finds.
func (s *Executions) SpreadExecutions(ctx context.Context, spreads []store.Spread) ([]store.SpreadResult, error) {
	ids := domain.Collect(spreads, func(o *store.Spread) domain.ExecutionID { return o.ID })
	return batchValue(ctx, s.core, "spread executions", run.Request{Kind: run.Spreads, IDs: ids}, func(b *Batch) ([]store.SpreadResult, error) { return b.Spread(spreads) })
}

// CancelParts looks for the parts without a lock: a parent that is being
// cancelled gets no more of them.
func (s *Executions) CancelParts(ctx context.Context, parents []domain.Execution) (store.CancelledParts, error) {
	parts, err := s.LivingParts(ctx, parents)
	if err != nil {
		return store.CancelledParts{}, err
	}
	return batchResult(ctx, s.core, "cancel parts", run.CancelRequest(parents, parts), func(b *Batch) (*store.CancelledParts, error) { return b.CancelParts(parts) })
}
