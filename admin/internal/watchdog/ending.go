package watchdog

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// EndingsEvery is the interval that one line about endings sums up.
const EndingsEvery = 10 * time.Second

const (
	// maxEndings bounds the kinds of endings that are counted apart in an interval,
	// maxEndingLines those that get a line of their own, the most frequent first.
	maxEndings     = 1000
	maxEndingLines = 20
)

// Endings counts the runs that did not end as they should, by job, state and
// reason, and writes the sums to the log: under overload thousands a second end.
// It is safe for concurrent use.
type Endings struct {
	log  *slog.Logger
	spec func(ctx context.Context, tenant domain.TenantID, job domain.JobID, revision int64) (*domain.JobSpec, error)

	mu     sync.Mutex
	counts map[ending]*endingSum // guarded by mu; at most maxEndings
	beyond int                   // guarded by mu: what had no place there
}

// NewEndings returns Endings; spec reads a job's name for the log.
func NewEndings(log *slog.Logger, spec func(context.Context, domain.TenantID, domain.JobID, int64) (*domain.JobSpec, error)) *Endings {
	return &Endings{log: log.With("component", "runs"), spec: spec}
}

type ending struct {
	tenant domain.TenantID
	job    domain.JobID
	state  domain.State
	reason domain.Reason
}

type endingSum struct {
	count    int
	first    domain.ExecutionID
	revision int64
}

// Add counts what has ended badly.
func (s *Endings) Add(list []domain.Execution) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range list {
		e := &list[i]
		switch e.State {
		case domain.Missed, domain.Lost, domain.TimedOut, domain.Failed:
		default:
			continue
		}
		key := ending{e.TenantID, e.JobID, e.State, e.Reason}
		sum := s.counts[key]
		if sum == nil {
			if len(s.counts) >= maxEndings {
				s.beyond++
				continue
			}
			if s.counts == nil {
				s.counts = map[ending]*endingSum{}
			}
			sum = &endingSum{first: e.ID, revision: e.Revision}
			s.counts[key] = sum
		}
		sum.count++
	}
}

// Tell writes the sums since the last call.
func (s *Endings) Tell(ctx context.Context) error {
	s.mu.Lock()
	counts, beyond := s.counts, s.beyond
	s.counts, s.beyond = nil, 0
	s.mu.Unlock()
	keys := slices.SortedFunc(maps.Keys(counts), func(a, b ending) int {
		return cmp.Or(cmp.Compare(counts[b].count, counts[a].count), cmp.Compare(counts[a].first, counts[b].first))
	})
	for i, key := range keys {
		sum := counts[key]
		if i >= maxEndingLines {
			beyond += sum.count
			continue
		}
		name := ""
		if spec, err := s.spec(ctx, key.tenant, key.job, sum.revision); err == nil {
			name = spec.Name
		}
		level := slog.LevelInfo
		if key.state == domain.Lost {
			level = slog.LevelWarn
		}
		s.log.Log(ctx, level, "runs ended badly", "state", key.state, "reason", key.reason, "count", sum.count,
			"tenant_id", key.tenant, "job_id", key.job, "job", name, "execution_id", sum.first)
	}
	if beyond > 0 {
		s.log.Info("more runs ended badly, of other jobs", "count", beyond)
	}
	return nil
}
