package hotset

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/panics"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

const (
	// slice is the time whose timers are copied together, and ahead is how far
	// before its beginning that may happen, so that the watermark stays beyond
	// the planner's look-ahead while slices with many timers are copied.
	slice = 30 * time.Second
	ahead = 30 * time.Second
	// migrateEvery is the pace of looking for slices to copy.
	migrateEvery = 500 * time.Millisecond
	// pageSize is how many timers a page has at most: one query, one round trip.
	pageSize = 5000
	// lateWithin: a timer that is set for later is found when its slice is copied.
	lateWithin = ahead + slice + 10*time.Second
	// maxLate bounds the timers that wait to be added; those beyond it are found
	// in the database.
	maxLate = 50_000
	// keepFor is how long keys outlive their slice.
	keepFor = time.Minute
	// pauseAfter is how long Redis is left alone after an error.
	pauseAfter = 5 * time.Second
)

// errForeign: somebody else writes to our keys, or keeps nothing.
var errForeign = errors.New("a page does not have the timers that were written to it")

// Options configures a Set.
type Options struct {
	// URL leads to Redis (CheckURL).
	URL string
	// Prefix begins all keys: clusters that share a server are told apart by it.
	Prefix string
	Timers store.TimerPages
	// Held returns the partitions that this node may plan now.
	Held func() []domain.PartitionTerm
	// Now is the database's time, as the node knows it.
	Now    func() time.Time
	Logger *slog.Logger
}

// Set is store.HotTimers in Redis. Its methods are safe for concurrent use.
type Set struct {
	// fixed after construction
	redis  conn
	prefix string
	timers store.TimerPages
	held   func() []domain.PartitionTerm
	now    func() time.Time
	log    *slog.Logger
	wake   chan struct{} // there are late ones

	mu     sync.Mutex
	parts  map[int]*partition          // guarded by mu: what was copied
	found  map[domain.TimerID]*look    // guarded by mu: where the last look found what it named
	tried  map[string][]domain.TimerID // guarded by mu: by key, to be removed with the next look
	late   []store.HotTimer            // guarded by mu: to be added
	broken bool                        // guarded by mu: the last that was asked of Redis failed
	again  time.Time                   // guarded by mu: Redis is left alone until then, by the local clock
	stats  Stats                       // guarded by mu
}

// partition is what one has in Redis. It belongs to one term of one holder.
type partition struct {
	term  int64
	until time.Time // the watermark: all that is due before was copied
	near  bool      // a timer was set that is due before the next look
	pages []*page
}

// page is a sorted set that nobody adds to any more.
type page struct {
	key   string
	first int64     // the least score
	left  int64     // how many members it must have
	until time.Time // by then its members were claimed, or are found in the database
}

// Stats are counted since the start.
type Stats struct {
	Copied, Added, Dropped int64 // timers: by the migrator, set later, set later and not added
	Found                  int64 // timers that looks named
	Known, Unknown         int64 // looks at partitions: answered by Redis, left to the database
	Failures               int64 // errors, late answers and pages that were not as written
	Available              bool
}

// Open returns a Set. It does not wait for Redis.
func Open(o Options) (*Set, error) {
	c, err := openConn(o.URL)
	if err != nil {
		return nil, err
	}
	return &Set{
		redis: c, prefix: o.Prefix, timers: o.Timers, held: o.Held, now: o.Now, log: o.Logger.With("component", "hot store"),
		wake: make(chan struct{}, 1), parts: map[int]*partition{}, tried: map[string][]domain.TimerID{},
	}, nil
}

// Stats returns the counts.
func (s *Set) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.stats
	out.Available = !s.broken
	return out
}

// Close ends the connections, after Run has ended.
func (s *Set) Close() error { return s.redis.close() }

// Run copies timers until ctx ends.
func (s *Set) Run(ctx context.Context) {
	tick := time.NewTicker(migrateEvery)
	defer tick.Stop()
	for {
		if err := panics.Catch(func() error { s.migrate(ctx); return nil }); err != nil {
			s.log.Error("timers cannot be copied", "err", err)
		}
		for ticked := false; !ticked; {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				ticked = true
			case <-s.wake:
				s.addLate(ctx)
			}
		}
	}
}

// DueTimers implements store.HotTimers.
func (s *Set) DueTimers(ctx context.Context, held []domain.PartitionTerm, horizon time.Duration, limit int) (due []store.HotTimer, unknown []int) {
	now := s.now()
	until := now.Add(horizon)
	looks, unknown := s.looks(held, now, until)
	if len(looks) == 0 {
		return nil, unknown
	}
	answers, err := s.redis.read(ctx, looks, until, limit)
	if err == nil {
		due, err = s.take(looks, answers)
	}
	if err != nil {
		s.fail(ctx, err)
		return nil, domain.Collect(held, func(p *domain.PartitionTerm) int { return p.Partition })
	}
	return due, unknown
}

// take reads the answers. A page that has not as many members as it must have says
// nothing about the others either: whatever happened to it happened to Redis.
func (s *Set) take(looks []look, answers []seen) (due []store.HotTimer, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.found = map[domain.TimerID]*look{}
	for i, a := range answers {
		l := &looks[i]
		if l.page != nil {
			if l.page.left -= a.removed; l.page.left != a.size {
				return nil, errForeign
			}
		}
		for _, m := range a.due {
			s.found[m.id] = l // the page rather than the set of late ones
			due = append(due, store.HotTimer{ID: m.id, Partition: l.partition, FireAt: time.UnixMilli(m.at).UTC()})
		}
	}
	s.stats.Found += int64(len(due))
	return due, nil
}

// looks says which keys may have timers that are due until then.
func (s *Set) looks(held []domain.PartitionTerm, now, until time.Time) (out []look, unknown []int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range held {
		p := s.parts[h.Partition]
		if p == nil || p.term != h.Term || p.until.Before(until) {
			unknown = append(unknown, h.Partition)
			continue
		}
		if p.near {
			p.near, unknown = false, append(unknown, h.Partition)
		}
		late := s.lateKey(h.Partition)
		out = append(out, s.lookLocked(h.Partition, late, late, nil))
		kept := p.pages[:0]
		for _, pg := range p.pages {
			if pg.left > 0 && pg.until.After(now) {
				kept = append(kept, pg)
				if pg.first <= until.UnixMilli() {
					out = append(out, s.lookLocked(h.Partition, pg.key, late, pg))
				}
			}
		}
		p.pages = kept
	}
	s.stats.Unknown += int64(len(unknown))
	s.stats.Known += int64(len(held) - len(unknown))
	return out, unknown
}

func (s *Set) lookLocked(partition int, key, late string, pg *page) look {
	tried := s.tried[key]
	delete(s.tried, key)
	return look{partition, key, late, pg, tried}
}

// TimersTried implements store.HotTimers. A timer that was set before its slice was
// copied is in the page and among the late ones.
func (s *Set) TimersTried(ids []domain.TimerID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range ids {
		l := s.found[id]
		if l == nil {
			continue
		}
		s.tried[l.late] = append(s.tried[l.late], id)
		if l.page != nil {
			s.tried[l.key] = append(s.tried[l.key], id)
		}
		delete(s.found, id)
	}
}

// Put hears of timers that were set or moved, after the commit. It does not wait.
func (s *Set) Put(timers []store.HotTimer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	for _, t := range timers {
		ahead := t.FireAt.Sub(now)
		if p := s.parts[t.Partition]; p != nil && ahead <= store.SoonTimer {
			p.near = true // the planner looks before Redis has it
		}
		switch {
		case ahead > lateWithin:
		case len(s.late) >= maxLate || s.pausedLocked():
			s.stats.Dropped++
		default:
			s.late = append(s.late, t)
		}
	}
	if len(s.late) > 0 {
		select {
		case s.wake <- struct{}{}:
		default:
		}
	}
}

// addLate adds what Put has heard of.
func (s *Set) addLate(ctx context.Context) {
	for {
		s.mu.Lock()
		n := min(len(s.late), pageSize)
		batch := s.late[:n:n]
		s.late = s.late[n:]
		s.mu.Unlock()
		if n == 0 {
			return
		}
		sets := map[string][]member{}
		for _, t := range batch {
			key := s.lateKey(t.Partition)
			sets[key] = append(sets[key], member{t.ID, t.FireAt.UnixMilli()})
		}
		if _, err := s.redis.write(ctx, sets, lateWithin+keepFor); err != nil {
			s.fail(ctx, err)
			return
		}
		s.mu.Lock()
		s.stats.Added += int64(n)
		s.mu.Unlock()
	}
}

// migrate copies at most one slice of each partition.
func (s *Set) migrate(ctx context.Context) {
	now, held := s.now(), s.held()
	s.keep(held)
	for _, h := range held {
		p, from, ok := s.next(h, now)
		if !ok {
			continue
		}
		if p == nil { // what is due of these is in the database, or has had its run while nobody removed it
			if err := s.redis.remove(ctx, s.lateKey(h.Partition)); err != nil {
				s.fail(ctx, err)
				return
			}
		}
		to := sliceEnd(h.Partition, from)
		pages, err := s.copySlice(ctx, h.Partition, from, to)
		if err != nil {
			return
		}
		s.advance(h, p, to, pages)
	}
}

// sliceEnd is the end of the slice that an instant lies in. Those of the partitions
// end one after the other, and so does their copying.
func sliceEnd(partition int, at time.Time) time.Time {
	shift := slice * time.Duration(partition) / domain.Partitions
	return at.Add(-shift).Truncate(slice).Add(slice + shift)
}

// keep forgets partitions that others have now.
func (s *Set) keep(held []domain.PartitionTerm) {
	terms := map[int]int64{}
	for _, h := range held {
		terms[h.Partition] = h.Term
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, p := range s.parts {
		if term, ok := terms[id]; !ok || term != p.term {
			delete(s.parts, id)
		}
	}
}

// next says from where on the partition is to be copied. A new holder begins at
// now: what is due already is found in the database.
func (s *Set) next(h domain.PartitionTerm, now time.Time) (p *partition, from time.Time, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pausedLocked() {
		return nil, now, false
	}
	p = s.parts[h.Partition]
	if p != nil && p.until.Before(now) { // copying stood still for longer than it is ahead
		p = nil
		delete(s.parts, h.Partition)
	}
	if p == nil {
		return nil, now, true
	}
	return p, p.until, p.until.Before(now.Add(ahead))
}

// copySlice writes the timers of a slice under keys that nobody has used before.
func (s *Set) copySlice(ctx context.Context, partition int, from, to time.Time) (pages []*page, err error) {
	name, after := rand.Text(), store.HotTimer{}
	for {
		timers, err := s.timers.PendingTimers(ctx, store.PendingTimersParams{Partition: partition, From: from, To: to, After: after, Limit: pageSize})
		if err != nil || len(timers) == 0 {
			return pages, err // the planner says when the database does not answer
		}
		after = timers[len(timers)-1]
		pg := &page{
			key:   fmt.Sprintf("%s{%d}:%s:%d", s.prefix, partition, name, len(pages)),
			first: timers[0].FireAt.UnixMilli(), left: int64(len(timers)), until: to.Add(keepFor / 2),
		}
		members := domain.Collect(timers, func(t *store.HotTimer) member { return member{t.ID, t.FireAt.UnixMilli()} })
		sizes, err := s.redis.write(ctx, map[string][]member{pg.key: members}, to.Sub(s.now())+keepFor)
		if err == nil && sizes[pg.key] != pg.left {
			err = errForeign
		}
		if err != nil {
			s.fail(ctx, err)
			return nil, err
		}
		if pages = append(pages, pg); len(timers) < pageSize {
			return pages, nil
		}
	}
}

// advance moves the watermark, unless what stood before it was forgotten meanwhile.
func (s *Set) advance(h domain.PartitionTerm, p *partition, to time.Time, pages []*page) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.parts[h.Partition] != p || s.pausedLocked() {
		return
	}
	if p == nil {
		p = &partition{term: h.Term, near: true} // set since, and for now
		s.parts[h.Partition] = p
	}
	p.until, p.pages = to, append(p.pages, pages...)
	for _, pg := range pages {
		s.stats.Copied += pg.left
	}
	if s.broken {
		s.broken = false
		s.log.Info("the hot store of timers works again")
	}
}

// fail forgets all that is in Redis: how much of it is still there, nobody knows.
func (s *Set) fail(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stats.Failures++
	s.stats.Dropped += int64(len(s.late))
	s.parts, s.found, s.tried, s.late = map[int]*partition{}, nil, map[string][]domain.TimerID{}, nil
	s.again = time.Now().Add(pauseAfter)
	if !s.broken {
		s.broken = true
		s.log.Warn("the hot store of timers does not work: the database is asked instead", "err", err)
	}
}

func (s *Set) pausedLocked() bool { return time.Now().Before(s.again) }

func (s *Set) lateKey(partition int) string { return fmt.Sprintf("%s{%d}:late", s.prefix, partition) }
