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
// offer, before their tenant's triggers are left where they are (docs/adr/0017).
// What a claim that is under way adds comes on top.
const (
	// MaxWaiting is for one tenant: what a node can send out (15,000 a second)
	// in LookAhead, which is planned and not late, and in two seconds more.
	MaxWaiting = 75_000
	// MaxWaitingAll is for all of them: about 200 MB.
	MaxWaitingAll = 200_000
)

const (
	// easeEvery is how often a planner that holds back looks whether it may go
	// on: what it left in memory lasts for longer.
	easeEvery = 50 * time.Millisecond
	// calmAfter is how long nothing may be held back for an episode to be over.
	calmAfter = 10 * time.Second
)

// pressure decides whose triggers are not claimed. Who was held back is let go
// at two thirds of the bound.
type pressure struct {
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

func newPressure(limit, limitAll int, log *slog.Logger) *pressure {
	if limit <= 0 {
		limit = MaxWaiting
	}
	if limitAll <= 0 {
		limitAll = MaxWaitingAll
	}
	return &pressure{max: limit, maxAll: limitAll, log: log, held: map[domain.TenantID]bool{}}
}

// look takes how many runs of each tenant wait now; it reports whether somebody
// was let go.
func (p *pressure) look(waiting map[domain.TenantID]int, now time.Time) (eased bool) {
	total := 0
	for tenant, n := range waiting {
		total += n
		if n >= p.max {
			p.held[tenant] = true
		}
	}
	for tenant := range p.held {
		if waiting[tenant] <= p.max*2/3 {
			delete(p.held, tenant)
			eased = true
		}
	}
	was := p.all
	p.all = total >= p.maxAll || p.all && total > p.maxAll*2/3
	p.tell(total, now)
	return eased || was && !p.all
}

// holds reports whether anything is held back.
func (p *pressure) holds() bool { return p.all || len(p.held) > 0 }

// except are the tenants that are held back, in a fixed order.
func (p *pressure) except() []domain.TenantID {
	if len(p.held) == 0 {
		return nil
	}
	out := make([]domain.TenantID, 0, len(p.held))
	for tenant := range p.held {
		out = append(out, tenant)
	}
	slices.Sort(out)
	return out
}

// tell writes one line when an episode begins and one when it is over.
func (p *pressure) tell(total int, now time.Time) {
	was := p.episode.Load()
	switch {
	case p.holds():
		p.last = now
		is := &episode{since: now, tenants: maps.Clone(p.held), all: p.all}
		if was == nil {
			p.log.Warn("planning is held back: more is due than can be sent out", "count", total, "tenants", p.except(), "all_tenants", p.all)
		} else {
			is.since, is.all = was.since, was.all || p.all
			maps.Copy(is.tenants, was.tenants)
		}
		p.episode.Store(is)
	case was != nil && now.Sub(p.last) >= calmAfter:
		p.log.Info("planning is not held back any more", "duration", p.last.Sub(was.since))
		p.episode.Store(nil)
	}
}

// crowds reports whether a tenant was held back in this episode. It is safe for
// concurrent use.
func (p *pressure) crowds(tenant domain.TenantID) bool {
	e := p.episode.Load()
	return e != nil && (e.all || e.tenants[tenant])
}
