package scheduler

import (
	"log/slog"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// How many runs may wait in this node's memory, for their time or for their
// offer, before their tenant's triggers are left where they are (docs/adr/0017). A run
// counts once more for each KiB of its input (runtable.SizeOf).
// What a claim that is under way adds comes on top.
const (
	// MaxWaiting is for one tenant: what a node can send out (15,000 a second)
	// in LookAhead, which is planned and not late, and in two seconds more.
	MaxWaiting = 75_000
	// MaxWaitingAll is for all of them: about 200 MB, and as much for large inputs.
	MaxWaitingAll = 200_000
)

const (
	// resumeInterval is how often a planner that holds back looks whether it may go
	// on: what it left in memory lasts for longer.
	resumeInterval = 50 * time.Millisecond
	// episodeEndsAfter is how long nothing may be held back for an episode to be over.
	episodeEndsAfter = 10 * time.Second
)

// backpressure decides whose triggers are not claimed. Who was held back is let go
// at two thirds of the bound.
type backpressure struct {
	// fixed after construction
	max, maxAll int
	log         *slog.Logger

	// owned by the planner's goroutine
	held map[domain.TenantID]bool
	all  bool
	last time.Time // when somebody was held back

	episode atomic.Pointer[episode] // nil: there is none
}

// episode is a time in which something was held back again and again. It does
// not change: a new one takes its place.
type episode struct {
	since   time.Time
	tenants map[domain.TenantID]bool // held back in it
	all     bool                     // all tenants were
}

func newBackpressure(limit, limitAll int, log *slog.Logger) *backpressure {
	if limit <= 0 {
		limit = MaxWaiting
	}
	if limitAll <= 0 {
		limitAll = MaxWaitingAll
	}
	return &backpressure{max: limit, maxAll: limitAll, log: log, held: map[domain.TenantID]bool{}}
}

// update takes how many runs of each tenant wait now; it reports whether somebody
// was let go.
func (b *backpressure) update(waiting map[domain.TenantID]int, now time.Time) (resumed bool) {
	total := 0
	for tenant, n := range waiting {
		total += n
		if n >= b.max {
			b.held[tenant] = true
		}
	}
	for tenant := range b.held {
		if waiting[tenant] <= b.max*2/3 {
			delete(b.held, tenant)
			resumed = true
		}
	}
	was := b.all
	b.all = total >= b.maxAll || b.all && total > b.maxAll*2/3
	b.logEpisode(total, now)
	return resumed || was && !b.all
}

// active reports whether anything is held back.
func (b *backpressure) active() bool { return b.all || len(b.held) > 0 }

// heldTenants are the tenants that are held back, in a fixed order.
func (b *backpressure) heldTenants() []domain.TenantID {
	return slices.Sorted(maps.Keys(b.held))
}

// logEpisode writes one line when an episode begins and one when it is over.
func (b *backpressure) logEpisode(total int, now time.Time) {
	was := b.episode.Load()
	switch {
	case b.active():
		b.last = now
		is := &episode{since: now, tenants: maps.Clone(b.held), all: b.all}
		if was == nil {
			b.log.Warn("planning is held back: more is due than can be sent out", "count", total, "tenants", b.heldTenants(), "all_tenants", b.all)
		} else {
			is.since, is.all = was.since, was.all || b.all
			maps.Copy(is.tenants, was.tenants)
		}
		b.episode.Store(is)
	case was != nil && now.Sub(b.last) >= episodeEndsAfter:
		b.log.Info("planning is not held back any more", "duration", b.last.Sub(was.since))
		b.episode.Store(nil)
	}
}

// heldBack reports whether a tenant was held back in this episode. It is safe for
// concurrent use.
func (b *backpressure) heldBack(tenant domain.TenantID) bool {
	e := b.episode.Load()
	return e != nil && (e.all || e.tenants[tenant])
}
