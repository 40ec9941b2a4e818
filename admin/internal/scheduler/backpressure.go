package scheduler

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/runtable"
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
	// offersFor is how long a tenant's due runs may wait for their offers, by the rate at
	// which the node makes offers. Waiting triggers cost nothing, and runs that wait too long
	// are written for nothing.
	offersFor = time.Second
	// fewQueued due runs hold nothing back at any rate.
	fewQueued = 500
	// fullRate is the rate until one was measured.
	fullRate = 15_000
	// measureFor is the least time over which the rate is measured.
	measureFor = 200 * time.Millisecond
)

const (
	// resumeInterval is how often a planner that holds back looks whether it may go
	// on: what it left in memory lasts for longer.
	resumeInterval = 50 * time.Millisecond
	// episodeEndsAfter is how long nothing may be held back for an episode to be over.
	episodeEndsAfter = 10 * time.Second
)

// backpressure holds back the triggers of a tenant that has too many runs in memory, or more
// due runs than the node offers in offersFor. It lets a tenant go at two thirds of the bound of
// memory, and at half of the other.
type backpressure struct {
	// fixed after construction
	max, maxAll int
	log         *slog.Logger

	// owned by the planner's goroutine
	held   map[domain.TenantID]bool // by memory
	behind map[domain.TenantID]bool // by offers
	all    bool
	last   time.Time // when a tenant was held back last
	rate   float64   // offers a second while more runs are due
	// offered is the count of the last look at it, and busy whether many were queued then.
	offered   int
	offeredAt time.Time
	busy      bool

	episode atomic.Pointer[episode] // nil: there is none
}

// episode is a time in which something was held back again and again. It does
// not change: a new one takes its place.
type episode struct {
	since   time.Time
	tenants map[domain.TenantID]bool // held back in it
	all     bool                     // all tenants were
	memory  bool                     // there was too much in memory
}

func newBackpressure(limit, limitAll int, log *slog.Logger) *backpressure {
	if limit <= 0 {
		limit = MaxWaiting
	}
	if limitAll <= 0 {
		limitAll = MaxWaitingAll
	}
	return &backpressure{max: limit, maxAll: limitAll, log: log, held: map[domain.TenantID]bool{}, behind: map[domain.TenantID]bool{}, rate: fullRate}
}

// update takes the present load. It reports whether a tenant was let go.
func (b *backpressure) update(l runtable.Load, now time.Time) (resumed bool) {
	total := 0
	for tenant, n := range l.Pending {
		total += n
		if n >= b.max {
			b.held[tenant] = true
		}
	}
	for tenant := range b.held {
		if l.Pending[tenant] <= b.max*2/3 {
			delete(b.held, tenant)
			resumed = true
		}
	}
	b.measure(l, now)
	most := max(int(b.rate*offersFor.Seconds()), fewQueued)
	for tenant, n := range l.Queued {
		if n > most {
			b.behind[tenant] = true
		}
	}
	for tenant := range b.behind {
		if l.Queued[tenant] <= most/2 {
			delete(b.behind, tenant)
			resumed = true
		}
	}
	was := b.all
	b.all = total >= b.maxAll || b.all && total > b.maxAll*2/3
	b.logEpisode(total, now)
	return resumed || was && !b.all
}

// measure follows the rate of offers while many runs are queued. A rate with few runs does not
// show the speed of the node.
func (b *backpressure) measure(l runtable.Load, now time.Time) {
	took := now.Sub(b.offeredAt)
	if took < measureFor {
		return
	}
	queued := 0
	for _, n := range l.Queued {
		queued += n
	}
	if b.busy && queued > fewQueued {
		b.rate = (b.rate + float64(l.Offered-b.offered)/took.Seconds()) / 2
	}
	b.offered, b.offeredAt, b.busy = l.Offered, now, queued > fewQueued
}

// active reports whether anything is held back.
func (b *backpressure) active() bool { return b.all || len(b.held)+len(b.behind) > 0 }

// heldTenants are the tenants that are held back, in a fixed order.
func (b *backpressure) heldTenants() []domain.TenantID {
	list := slices.AppendSeq(slices.Collect(maps.Keys(b.held)), maps.Keys(b.behind))
	slices.Sort(list)
	return slices.Compact(list)
}

// logEpisode writes one line when an episode begins and one when it is over.
func (b *backpressure) logEpisode(total int, now time.Time) {
	was := b.episode.Load()
	switch {
	case b.active():
		b.last = now
		is := &episode{since: now, tenants: maps.Clone(b.held), all: b.all, memory: b.all || len(b.held) > 0}
		maps.Copy(is.tenants, b.behind)
		if was == nil {
			level := slog.LevelInfo // a burst is no news
			if is.memory {
				level = slog.LevelWarn
			}
			b.log.Log(context.Background(), level, "planning is held back: more is due than can be sent out", "count", total, "tenants", b.heldTenants(), "all_tenants", b.all)
		} else {
			is.since, is.all, is.memory = was.since, was.all || b.all, was.memory || is.memory
			maps.Copy(is.tenants, was.tenants)
		}
		b.episode.Store(is)
	case was != nil && now.Sub(b.last) >= episodeEndsAfter:
		b.log.Info("planning is not held back any more", "duration", b.last.Sub(was.since))
		b.episode.Store(nil)
	}
}

// heldBack reports whether a tenant was held back in this episode, and whether there was too
// much in memory. It is safe for concurrent use.
func (b *backpressure) heldBack(tenant domain.TenantID) (was, memory bool) {
	e := b.episode.Load()
	was = e != nil && (e.all || e.tenants[tenant])
	return was, was && e.memory
}
