package completer

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/batch"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// Step is one question of a running handler.
type Step struct {
	store.StepRequest
	Request int64 // the executor's number of it
	From    StepAcker
}

// StepAcker takes the answers of one session.
type StepAcker interface {
	SendStepAcks(acks []StepAck)
	// Unanswered is told how many steps get no answer.
	Unanswered(n int)
}

// StepAck answers a Step.
type StepAck struct {
	ID      domain.ExecutionID
	Fence   int64
	Request int64
	store.StepAnswer
}

// Asked takes questions. It never blocks.
func (c *Completer) Asked(list ...Step) { c.steps.Add(list...) }

// answer is the flush of the questions. What the database does not answer is
// asked again by the executor, of this node or another.
func (c *Completer) answer(ctx context.Context, list []Step) {
	requests := make([]store.StepRequest, len(list))
	for i, s := range list {
		requests[i] = s.StepRequest
	}
	answers, err := c.opt.Progress.TakeSteps(context.WithoutCancel(ctx), requests)
	if err != nil {
		c.log.Warn("steps could not be stored", "count", len(list), "err", err)
		for _, s := range list {
			s.From.Unanswered(1)
		}
		return
	}
	var acks batch.Groups[StepAcker, StepAck]
	for i, s := range list {
		acks.Add(s.From, StepAck{ID: s.ID, Fence: s.Fence, Request: s.Request, StepAnswer: answers[i]})
	}
	for _, g := range acks {
		g.Key.SendStepAcks(g.Items)
	}
}

// progressEvery is how often progress is written; of each run only the newest.
const progressEvery = 500 * time.Millisecond

// maxProgress bounds the runs of one tenant whose progress waits to be written;
// beyond, new ones are dropped: it is information, and comes again.
const maxProgress = 5000

// progress holds what is to be written. The tenant is part of the key: nobody
// knows yet whose run it is.
type progress struct {
	mu     sync.Mutex
	newest map[progressKey]store.ProgressReport // guarded by mu
	of     map[domain.TenantID]int              // guarded by mu: how many
}

type progressKey struct {
	tenant domain.TenantID
	id     domain.ExecutionID
}

// Progressed takes progress. It never blocks.
func (c *Completer) Progressed(list ...store.ProgressReport) {
	c.progress.mu.Lock()
	defer c.progress.mu.Unlock()
	if c.progress.newest == nil {
		c.progress.newest, c.progress.of = map[progressKey]store.ProgressReport{}, map[domain.TenantID]int{}
	}
	for _, p := range list {
		key := progressKey{p.Tenant, p.ExecutionID}
		old, known := c.progress.newest[key]
		switch {
		case !known && c.progress.of[p.Tenant] >= maxProgress, known && (old.Fence > p.Fence || old.Fence == p.Fence && old.Seq > p.Seq):
			continue
		case !known:
			c.progress.of[p.Tenant]++
		}
		c.progress.newest[key] = p
	}
}

// writeProgress writes in the order of the ids, so that two nodes do not wait
// for each other.
func (c *Completer) writeProgress(ctx context.Context) {
	c.progress.mu.Lock()
	waiting := c.progress.newest
	c.progress.newest = nil
	c.progress.mu.Unlock()
	all := slices.SortedFunc(maps.Values(waiting), func(a, b store.ProgressReport) int {
		return cmp.Or(cmp.Compare(a.ExecutionID, b.ExecutionID), cmp.Compare(a.Tenant, b.Tenant))
	})
	for list := range slices.Chunk(all, StepBatch) {
		if err := c.opt.Progress.SaveProgress(ctx, list); err != nil {
			c.log.Debug("progress could not be written", "count", len(list), "err", err)
			return
		}
	}
}
