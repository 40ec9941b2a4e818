package gormstore

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/run"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
)

// SpreadExecutions writes a parent and its parts together: a crash leaves both or
// neither, and a parent without parts is due, which the sweep finds.
func (s *Executions) SpreadExecutions(ctx context.Context, spreads []store.Spread) ([]store.SpreadResult, error) {
	if len(spreads) == 0 {
		return nil, nil
	}
	ids := domain.Collect(spreads, func(o *store.Spread) domain.ExecutionID { return o.ID })
	var results []store.SpreadResult
	err := s.runBatch(ctx, "spread executions", ids, loadOptions{slots: true, spreads: true}, func(b *batch) (err error) {
		if results, err = b.Spread(spreads); err != nil {
			return err
		}
		if err := b.save(); err != nil {
			return err
		}
		for i := range results {
			b.Refresh(&results[i].OfferResult)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return results, nil
}

// Serving implements run.Source: the instances with a living lease that serve a
// run's handler, have the labels that it requires and take new work.
func (b *batch) Serving(m *run.Move) (out []domain.InstanceID, err error) {
	err = db.Query(b.t.Ctx, b.t.Conn, func(rows *sql.Rows) error {
		var id domain.InstanceID
		var handlers, text string
		if err := rows.Scan(&id, &handlers, &text); err != nil {
			return err
		}
		var labels map[string]string
		var names []string
		if text != "" && json.Unmarshal([]byte(text), &labels) != nil || json.Unmarshal([]byte(handlers), &names) != nil {
			return nil // nobody knows what it serves
		}
		if slices.Contains(names, m.Spec.Handler) && (m.Spec.Require.Empty() || m.Spec.Require.Matches(labels)) {
			out = append(out, id)
		}
		return nil
	}, "SELECT id, handlers, labels FROM instances WHERE tenant_id = ? AND executor_id = ? AND gone_at = 0 AND lease_until > ? AND draining = 0 ORDER BY id",
		int64(m.E.TenantID), int64(m.E.Executor), db.Millis(b.Now))
	if err != nil {
		return nil, fmt.Errorf("find instances to spread over: %w", err)
	}
	return out, nil
}

// CancelParts looks for the parts without a lock: a parent that is being
// cancelled gets no more of them.
func (s *Executions) CancelParts(ctx context.Context, parents []domain.Execution) (out store.CancelledParts, err error) {
	parts, err := s.livingParts(ctx, parents)
	if err != nil || len(parents) == 0 {
		return out, err
	}
	load := loadOptions{slots: true, queue: true}
	for i := range parents {
		load.parents = append(load.parents, parents[i].ID)
	}
	err = s.runBatch(ctx, "cancel parts", append(slices.Clone(load.parents), parts...), load, func(b *batch) error {
		out = store.CancelledParts{}
		moved, err := b.CancelParts(parts)
		if err != nil {
			return err
		}
		woken, err := b.Wake()
		if err != nil {
			return err
		}
		if err := b.save(); err != nil {
			return err
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
		return nil
	})
	return out, err
}
