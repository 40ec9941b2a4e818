package gateway

import (
	"sync"
	"time"

	"github.com/carillon-sched/carillon/proto"
)

// An attempt takes as many slots as its handler weighs (docs/adr/0036), and a part
// of the line to its instance until its offer has been written.

// Slots are those of an instance: the attempts that have some, what it reports of them,
// and until when their offers may be started.
type Slots struct {
	// fixed after registration
	began      time.Time      // of the session
	weights    map[string]int // by handler name; those above 1
	refusesOld bool           // Register.refuses_old

	mu        *sync.Mutex                // Session.mu
	inflight  map[attemptKey]reservation // guarded by mu: offered here and not ended
	occupancy Occupancy                  // guarded by mu
	loading   int                        // guarded by mu: bytes of offers that have not been written
	queueFull bool                       // guarded by mu: an offer found no room beside loading
	leased    int64                      // guarded by mu: the last heartbeat that renewed the lease
	leasedAt  time.Duration              // guarded by mu: when that was heard, since began
	slowTill  time.Duration              // guarded by mu: until then offers have no bound of their own, since they came too late
}

// weigh keeps what the instance's handlers weigh. It is called before the session
// is known to anybody.
func (sl *Slots) weigh(handlers []*proto.Handler) {
	for _, h := range handlers {
		if h.Weight > 1 {
			if sl.weights == nil {
				sl.weights = map[string]int{}
			}
			sl.weights[h.Name] = int(h.Weight)
		}
	}
}

// Weight returns how many of the instance's slots a run of the handler takes: at
// least 1, also of an SDK that tells none, and at most all, as the SDK counts it.
func (sl *Slots) Weight(handler string) int {
	w := sl.weights[handler]
	if w <= 1 {
		return 1
	}
	sl.mu.Lock()
	defer sl.mu.Unlock()
	return max(1, min(w, sl.occupancy.slots))
}

// maxLoading is how many bytes of offers may be on their way onto the line of an
// instance, or one offer that is larger (docs/adr/0042). An offer lives for 3 s:
// on a line of 10 Mbit/s these take 1.7.
const maxLoading = 2 << 20

// Reserve takes slots of the instance, as many as the attempt weighs, for one
// that is about to be offered with so many bytes of input; false when too few
// are free, or too much that was offered before has not been sent yet.
func (s *Session) Reserve(execution, fence int64, weight, input int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.draining || !s.drainedAt.IsZero() || s.retiring || s.cause != nil || s.refusing {
		return false
	}
	return s.Slots.reserveLocked(attemptKey{execution, fence}, weight, input)
}

// reserveLocked is Reserve for an instance that takes runs. mu is held.
func (sl *Slots) reserveLocked(k attemptKey, weight, input int) bool {
	if sl.occupancy.Occupied()+weight > sl.occupancy.slots {
		return false
	}
	if sl.loading > 0 && sl.loading+input > maxLoading {
		sl.queueFull = true
		return false
	}
	if f, ok := sl.forgetLocked(k); ok {
		sl.occupancy.Drop(f.beat, f.weight)
	}
	if sl.inflight == nil { // most sessions are idle
		sl.inflight = map[attemptKey]reservation{}
	}
	sl.inflight[k] = reservation{lease: sl.leased, leaseAt: sl.leasedAt, since: time.Now(), beat: sl.occupancy.Take(weight), weight: weight, loading: input}
	sl.loading += input
	return true
}

// Holds reports whether the attempt has slots of the instance.
func (sl *Slots) Holds(execution, fence int64) bool {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	_, ok := sl.inflight[attemptKey{execution, fence}]
	return ok
}

// loaded is told which offers have been written; it reports whether the
// instance takes offers again.
func (sl *Slots) loaded(part []bulk) (relieved bool) {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	for _, b := range part {
		if b.offer == nil {
			continue
		}
		k := attemptKey{b.offer.ExecutionId, b.offer.Fence}
		if f, ok := sl.inflight[k]; ok {
			relieved = sl.unload(f.loading) || relieved
			f.loading = 0
			sl.inflight[k] = f
		}
	}
	return relieved
}

// unload notes that bytes of offers are on the line, or never will be; it
// reports whether the instance takes offers again. mu is held.
func (sl *Slots) unload(bytes int) (relieved bool) {
	sl.loading -= bytes
	if relieved = sl.queueFull && sl.loading <= maxLoading/2; relieved {
		sl.queueFull = false
	}
	return relieved
}

// SendQueueFull reports whether the instance gets nothing because inputs of other
// runs are still on their way to it.
func (sl *Slots) SendQueueFull() bool {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	return sl.queueFull
}

// Spare returns how many more bytes of offers may be on their way to it.
func (sl *Slots) Spare() int {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	return max(0, maxLoading-sl.loading)
}

// Release gives reserved slots back.
func (sl *Slots) Release(execution, fence int64) { sl.ended(attemptKey{execution, fence}) }

// ended forgets attempts of which the instance said, or is told, that they are
// over; it returns how many slots they had here.
func (sl *Slots) ended(keys ...attemptKey) (freed int) {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	for _, k := range keys {
		if f, ok := sl.forgetLocked(k); ok {
			sl.occupancy.End(f.beat, f.weight)
			freed += f.weight
		}
	}
	return freed
}

// forget is ended for attempts that the instance does not report any more.
func (sl *Slots) forget(keys ...attemptKey) (freed int) {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	for _, k := range keys {
		if f, ok := sl.forgetLocked(k); ok {
			sl.occupancy.Drop(f.beat, f.weight)
			freed += f.weight
		}
	}
	return freed
}

// rejectBusy is the code of an instance that has no room for an attempt.
const rejectBusy = "busy"

// full forgets an attempt that the instance has no room for.
func (sl *Slots) full(k attemptKey) {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	f, ok := sl.forgetLocked(k)
	if ok {
		sl.occupancy.Drop(f.beat, f.weight)
	}
	sl.occupancy.Full(f.weight)
}

// forgetLocked forgets an attempt; its slots are the caller's to take back.
func (sl *Slots) forgetLocked(k attemptKey) (f reservation, ok bool) {
	if f, ok = sl.inflight[k]; !ok {
		return f, false
	}
	delete(sl.inflight, k)
	sl.unload(f.loading)
	return f, true
}
