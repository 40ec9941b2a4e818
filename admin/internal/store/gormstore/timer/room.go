package timer

import (
	"cmp"
	"fmt"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

// room is how many timers and bytes a tenant may still set in a transaction.
type room struct{ timers, bytes domain.Quota }

// take reserves room. With CodeQuotaExceeded there is not enough, and none is taken.
func (r *room) take(timers, bytes int64) error {
	if err := cmp.Or(r.timers.Check(timers), r.bytes.Check(bytes)); err != nil {
		return err
	}
	r.timers.Used += timers
	r.bytes.Used += bytes
	return nil
}

// roomOf reads the room of a tenant once in a transaction.
func (w *timerSet) roomOf(i int) (*room, error) {
	tenant := w.asked[i].TenantID
	if r := w.rooms[tenant]; r != nil {
		return r, nil
	}
	quotas, err := record.ReadQuotas(w.t.Ctx, w.t.Conn, tenant)
	if err != nil {
		return nil, fmt.Errorf("read quotas: %w", err)
	}
	r := &room{quotas[domain.QuotaTimers], quotas[domain.QuotaStoredBytes]}
	if r.timers.Max > 0 || r.bytes.Max > 0 {
		if r.timers.Used, r.bytes.Used, err = record.CountStored(w.t.Ctx, w.t.Conn, tenant); err != nil {
			return nil, fmt.Errorf("count timers: %w", err)
		}
	}
	w.rooms[tenant] = r
	return r, nil
}

// fits reserves room for a timer, or refuses it. there is what stays in its place.
func (w *timerSet) fits(i int, timers, bytes int64, there store.TimerView) (bool, error) {
	r, err := w.roomOf(i)
	if err != nil {
		return false, err
	}
	if err := r.take(timers, bytes); err != nil {
		w.refuse(i, err, there)
		return false, nil
	}
	return true, nil
}

// withinQuotas takes back what is more than its tenant may have, the last ones first.
// A timer in the place of another one has its room already.
func (w *timerSet) withinQuotas(fresh []int) ([]int, error) {
	var gone []int64
	kept := make([]int, 0, len(fresh))
	for _, i := range fresh {
		fits, bytes := true, w.rows[i].Bytes()
		if w.paid[i] {
			bytes = 0
		}
		if w.results[i].Outcome == domain.TimerCreated {
			var err error
			if fits, err = w.fits(i, 1, bytes, store.TimerView{}); err != nil {
				return nil, err
			}
		}
		if fits {
			kept = append(kept, i)
		} else {
			gone = append(gone, w.rows[i].ID)
		}
	}
	return kept, deleteTimers(w.t, gone)
}
