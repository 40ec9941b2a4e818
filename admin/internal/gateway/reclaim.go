package gateway

import (
	"context"
	"time"

	"github.com/carillon-sched/carillon/proto"
)

// A one-step offer is its own grant, so it can start at its instance whenever it
// is read there: from a socket whose process was frozen, or from a path that was
// cut. It carries until when it may be started, counted from the sending of a
// heartbeat by the instance's clocks, and from its arrival by this node's, which
// is later. When that time is over here it is over there, too (docs/adr/0056).

const (
	// startMargin is beyond what an offer says: for the moment between the
	// instance's last look at its clocks and the first step of the handler, and
	// for clocks that do not run alike.
	startMargin = 250 * time.Millisecond
	// slowFor is how long offers of a session have no bound of their own after
	// one came too late: on a slow path, or when one side is overloaded, each
	// refusal costs more than a run that waits for a lease.
	slowFor = time.Minute
	// doubtLook is how far apart the looks at a session in doubt are: who was
	// frozen itself finds first what has come meanwhile.
	doubtLook = 100 * time.Millisecond
	// returnsIn is how long an instance whose session has ended has to come back
	// and say what it runs.
	returnsIn = time.Second
)

// rejectOld is the code of an instance that got an offer too late to start it.
const rejectOld = "old"

// bound says until when an offer that is sent now may be started, in the offer and in
// its reservation. An offer that waited for its commit for long has less time left, as
// one in two steps has. mu is held.
func (sl *Slots) bound(o *proto.Offer, f *reservation, now time.Time) {
	asks := o.GoodMs < 0
	o.GoodMs = 0
	at := now.Sub(sl.began)
	switch {
	case !o.Granted || !sl.refusesOld:
	case asks:
		o.GoodMs = -1
	case at >= sl.slowTill:
		good := min(proto.OfferGood, proto.OfferTTL-now.Sub(f.since))
		o.GoodMs = max(1, (at - f.leaseAt + good).Milliseconds())
		f.startable = at + max(0, good) + startMargin
	}
}

// cameLate is the event that an instance refused an offer as old. One that was
// taken from it before says nothing about the path.
func (sl *Slots) cameLate(k attemptKey, now time.Time) {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	if sl.inflight[k].startable > 0 {
		sl.slowTill = now.Sub(sl.began) + slowFor
	}
}

// overdue takes the one-step offers out of which nobody has heard that they
// arrived, and that the instance starts no more. next is how long it takes until
// there are more; 0: none is left.
func (sl *Slots) overdue(now time.Time) (out map[int64]int64, next time.Duration) {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	at := now.Sub(sl.began)
	for k, f := range sl.inflight {
		if f.startable == 0 || f.answered {
			continue
		}
		if left := f.startable - at; left > 0 {
			if next == 0 || left < next {
				next = left
			}
			continue
		}
		if out == nil {
			out = map[int64]int64{}
		}
		f.startable = 0
		sl.inflight[k] = f
		out[k.id] = k.fence
	}
	return out, next
}

// reclaimDoubted is reclaim for an instance that does not answer. It counts only
// at the second look in a row: at the first one after a pause of this process
// the answers may wait in the socket.
func (wa *watcher) reclaimDoubted(s *Session, now time.Time) (again time.Duration) {
	at := now.Sub(s.began)
	gap := at - s.doubtedAt
	s.doubtedAt = at
	if gap < doubtLook/2 || gap > 3*doubtLook {
		return doubtLook
	}
	if next := wa.reclaim(s, now); next == 0 {
		return deadAfter // nothing is left; what is offered meanwhile goes elsewhere
	}
	return doubtLook
}

// reclaim tells of what can go elsewhere; see overdue for next.
func (wa *watcher) reclaim(s *Session, now time.Time) (next time.Duration) {
	list, next := s.Slots.overdue(now)
	if len(list) > 0 {
		wa.sink.Unheard(s, list)
	}
	return next
}

// reclaimEnded is reclaim for a session that has ended. A node that stops leaves
// it to those that take over.
func (wa *watcher) reclaimEnded(ctx context.Context, s *Session) {
	for next := returnsIn; next > 0 && s.Slots.reclaimable(); next = wa.reclaim(s, time.Now()) {
		select {
		case <-ctx.Done():
			return
		case <-time.After(next):
		}
	}
}

func (sl *Slots) reclaimable() bool {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	for _, f := range sl.inflight {
		if f.startable > 0 && !f.answered {
			return true
		}
	}
	return false
}
