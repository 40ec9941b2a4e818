package dispatch

import (
	"context"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// StalledAfter is how long the next run of a line may stand beside a free slot that it could
// have. The check reads rows and slots, and nothing that this node has in memory.
const StalledAfter = 5 * time.Second

// stalledLooks is how many looks have to have seen it at least.
const stalledLooks = int(StalledAfter / LookEvery)

// standing is the next run of a line beside free slots.
type standing struct {
	next  domain.ExecutionID
	since time.Time // when it was first seen there, or last could not start
	looks int       // how many there were since then: few, if the database is slow
	// could: it has been seen to be able to start since then.
	could bool
	seen  time.Time // the last look
}

func (s *standing) stalled(now time.Time) bool {
	return s.could && now.Sub(s.since) >= StalledAfter && s.looks > stalledLooks
}

// standings are those of the lines with runs in the database.
type standings map[int64]standing

// standingsMost bounds the lines that are kept.
const standingsMost = 10_000

// watch checks one line. free is how many slots of its executor are free here. Slots that
// are kept for a heavy run are not free. If results of a tenant wait to be stored, its runs
// are not checked.
func (lo *lookout) watch(ctx context.Context, l store.WaitingLine, free int, now time.Time) error {
	s, known := lo.standings[l.Line]
	if free == 0 || lo.choices.kept.count.Load() > 0 || lo.underMaintenance(l.Tenant, l.Executor, now) || lo.backpressure.Holds(int64(l.Tenant)) {
		delete(lo.standings, l.Line)
		return nil
	}
	if !known || s.next != l.Next {
		if len(lo.standings) >= standingsMost {
			clear(lo.standings)
		}
		s = standing{next: l.Next, since: now}
	}
	was := s.stalled(s.seen)
	s.seen = now
	if s.looks++; s.could || now.Sub(s.since) >= StalledAfter { // most have gone before that
		could, err := lo.couldStart(ctx, l)
		if err != nil {
			return err
		}
		if could != s.could {
			s.since, s.looks, s.could = now, 0, could
		}
	}
	if !was && s.stalled(now) {
		lo.log.Error("a run does not start although an instance has room for it", "tenant_id", l.Tenant, "executor_id", l.Executor, "execution_id", l.Next)
	}
	lo.standings[l.Line] = s
	return nil
}

// couldStart reports whether an instance that is connected here has room for the next run
// of a line.
func (lo *lookout) couldStart(ctx context.Context, l store.WaitingLine) (bool, error) {
	list, err := lo.store.ListWaiting(ctx, store.ListWaitingParams{Line: l.Line, Read: 1, Limit: 1})
	if err != nil || len(list) == 0 || list[0].ID != l.Next {
		return false, err
	}
	e := &list[0]
	if now := lo.now(); e.Expired(now) || e.NotBefore.After(now) {
		return false, nil
	}
	of, err := lo.store.JobSpec(ctx, e.TenantID, e.JobID, e.Revision)
	if domain.Is(err, domain.CodeNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	spec := of.For(e.Part)
	targets := boundTo(e.Bound, lo.fleet.Targets(e.TenantID, e.Executor, spec.Handler))
	all := lo.choices.candidates(e, spec, targets, nil)
	in := rankInput{routing: spec.Routing}
	if spec.Routing == domain.RouteConsistentHash {
		in.key = hashKey(e, spec)
	}
	rank(all, targets, in)
	return pick(all, pinned(e, spec)) >= 0, nil
}

// noteStalled notes the longest time that a run has stood beside a slot that it could have.
func (lo *lookout) noteStalled(now time.Time) {
	longest := time.Duration(0)
	for line, s := range lo.standings {
		if now.Sub(s.seen) > time.Minute {
			delete(lo.standings, line)
		} else if s.seen.Equal(now) && s.stalled(now) {
			longest = max(longest, now.Sub(s.since))
		}
	}
	lo.longest.Store(int64(longest))
}
