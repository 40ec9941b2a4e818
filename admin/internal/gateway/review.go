package gateway

import (
	"context"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// An attempt that was offered here may end elsewhere: its result may have gone
// to another node, or another node may have granted or taken it. Nobody tells
// this node, so its slot would be kept for as long as the session lives. What
// the instance does not seem to have is looked up in the database.

const (
	// reviewAfter is how long an attempt has its slot before anybody asks: longer
	// than the transaction that offers it can take.
	reviewAfter = 15 * time.Second
	// reviewBeats is how many heartbeats in a row have to tell of fewer attempts
	// than have a slot. One does so whenever something is on its way.
	reviewBeats = 2
)

// doubtful returns old attempts, when the instance reports fewer than have a
// slot here.
func (sl *Slots) doubtful(now time.Time) (out []domain.Held) {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	if sl.occupancy.surplus < reviewBeats {
		return nil
	}
	sl.occupancy.surplus = 0
	for k, f := range sl.inflight {
		if now.Sub(f.since) > reviewAfter {
			out = append(out, domain.Held{ID: domain.ExecutionID(k.id), Fence: k.fence})
		}
	}
	return out
}

// review gives back the slots of attempts that the database knows to have ended.
func (rn *renewer) review(ctx context.Context, s *Session, doubtful []domain.Held) error {
	if len(doubtful) == 0 {
		return nil
	}
	held, err := rn.fleet.ListHeld(ctx, s.Tenant, s.Instance, doubtful)
	if err != nil {
		return err
	}
	still := make(map[domain.Held]bool, len(held))
	for _, h := range held {
		still[h] = true
	}
	var over []attemptKey
	for _, h := range doubtful {
		if !still[h] {
			over = append(over, attemptKey{int64(h.ID), h.Fence})
		}
	}
	if freed := s.Slots.forget(over...); freed > 0 {
		rn.log.Info("slots given back of attempts that ended elsewhere", "instance_id", s.Instance, "count", freed)
		rn.sink.Freed(s, freed)
	}
	return nil
}
