package gormstore

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// noInstanceCheck is how long a broadcast without an instance is left alone.
const noInstanceCheck = time.Second

// SpreadExecutions writes a parent and its parts together: a crash leaves both or
// neither, and a parent without parts is due, which the sweep finds.
func (s *Store) SpreadExecutions(ctx context.Context, spreads []store.Spread) ([]store.SpreadResult, error) {
	if len(spreads) == 0 {
		return nil, nil
	}
	offers := make([]store.Offer, len(spreads))
	ids := make([]domain.ExecutionID, len(spreads))
	for i, o := range spreads {
		offers[i], ids[i] = store.Offer{Tenant: o.Tenant, ID: o.ID, Since: o.Since}, o.ID
	}
	var results []store.SpreadResult
	err := s.runBatch(ctx, "spread executions", ids, loadOptions{slots: true, spreads: true}, func(b *batch) error {
		results = make([]store.SpreadResult, len(spreads))
		if err := b.findStopped(); err != nil {
			return err
		}
		for _, i := range b.offerOrder(offers) {
			if err := b.spread(spreads[i], &results[i]); err != nil {
				return err
			}
		}
		if err := b.save(); err != nil {
			return err
		}
		for i := range results {
			if id := results[i].Execution.ID; id != 0 {
				results[i].Execution = b.moves[id].e
			}
			b.asStored(results[i].Covered)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return results, nil
}

func (b *batch) spread(o store.Spread, r *store.SpreadResult) error {
	m := b.find(o.Tenant, o.ID)
	if m == nil {
		return nil
	}
	r.OfferResult = store.OfferResult{Status: store.OfferGone, Execution: m.e, Spec: m.spec}
	if m.e.State != domain.Due || b.now.Before(m.e.NotBefore) || !m.spec.Sharding.On() || m.e.IsPart() {
		return nil
	}
	in, err := b.enter(m, o.Since, &r.OfferResult)
	if err != nil || !in {
		return err
	}
	var instances []domain.InstanceID
	if m.spec.Sharding.Mode == domain.ShardBroadcast && m.e.NextPart(m.spec.Sharding) == domain.PartShard {
		if instances, err = b.serving(m); err != nil {
			return err
		}
		switch {
		case len(instances) == 0 && len(m.e.Picks) == 0:
			return b.waitForInstance(m, r)
		case len(instances) > domain.MaxShards:
			fx, err := m.e.Miss(b.now, domain.ReasonManyInstances, fmt.Sprintf("%d instances serve the handler, and a fire has at most %d shards", len(instances), domain.MaxShards))
			r.Status = store.OfferDiscarded
			return errors.Join(err, b.apply(m, fx))
		}
	}
	if s := b.slots[m.e.JobID]; s != nil && !m.e.HoldsSlot && m.spec.SlotLimit() > 0 {
		s.take(&m.e)
	}
	parts, err := m.e.Spread(b.now, m.spec, instances, b.newExecutionID)
	if err != nil {
		return err // all that is expected was checked above
	}
	r.Status = store.OfferMade
	for _, part := range parts {
		r.Parts = append(r.Parts, b.bear(part, m.spec).e)
	}
	return nil
}

// waitForInstance leaves a broadcast due. It keeps its place before later runs.
func (b *batch) waitForInstance(m *move, r *store.SpreadResult) error {
	if s := b.slots[m.e.JobID]; s != nil && !s.believed && !m.e.HoldsSlot && m.spec.SlotLimit() > 0 {
		s.enqueue(&m.e)
	}
	r.Status = store.OfferBlocked
	return m.e.Wait(b.now, domain.ReasonWaitInstance, "no instance that could take a shard is online", b.now.Add(noInstanceCheck))
}

// serving lists the instances with a living lease that serve a run's handler, have
// the labels that it requires and take new work, the one that came first first.
func (b *batch) serving(m *move) (out []domain.InstanceID, err error) {
	err = query(b.t.ctx, b.t.q, func(rows *sql.Rows) error {
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
		if slices.Contains(names, m.spec.Handler) && (m.spec.Require.Empty() || m.spec.Require.Matches(labels)) {
			out = append(out, id)
		}
		return nil
	}, "SELECT id, handlers, labels FROM instances WHERE tenant_id = ? AND executor_id = ? AND gone_at = 0 AND lease_until > ? AND draining = 0 ORDER BY id",
		int64(m.e.TenantID), int64(m.e.Executor), millis(b.now))
	if err != nil {
		return nil, fmt.Errorf("find instances to spread over: %w", err)
	}
	return out, nil
}

// CancelParts looks for the parts without a lock: a parent that is being
// cancelled gets no more of them.
func (s *Store) CancelParts(ctx context.Context, parents []domain.Execution) (out store.CancelledParts, err error) {
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
		var moved []*move
		for _, id := range parts {
			if m := b.moves[id]; m != nil && b.cancelsParts(m) {
				if err := b.cancelPart(m); err != nil {
					return err
				}
				moved = append(moved, m)
			}
		}
		woken, err := b.wake()
		if err != nil {
			return err
		}
		if err := b.save(); err != nil {
			return err
		}
		for _, m := range moved {
			if m.e.State.Terminal() {
				out.Ended = append(out.Ended, m.e)
			} else {
				out.Cancel = append(out.Cancel, m.e)
			}
		}
		out.Ended = append(out.Ended, b.parentsEnded()...)
		for _, moves := range woken {
			for _, m := range moves {
				out.Woken = append(out.Woken, m.e)
			}
		}
		slices.SortFunc(out.Woken, func(x, y domain.Execution) int { return cmp.Compare(x.ID, y.ID) })
		return nil
	})
	return out, err
}

// cancelsParts reports whether a part lives and its parent is being cancelled.
func (b *batch) cancelsParts(m *move) bool {
	p := b.moves[m.e.Parent]
	return p != nil && p.e.TenantID == m.e.TenantID && p.e.State == domain.Cancelling && p.e.OnlyPartsMove() && !m.e.State.Terminal()
}

func (b *batch) cancelPart(m *move) error {
	p := &b.moves[m.e.Parent].e
	b.deciding = m.e.ID
	fx, err := m.e.RequestCancel(b.now, p.Reason, p.Message)
	if err != nil {
		return err
	}
	return b.apply(m, fx)
}
