package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/dispatch"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore"
)

// lives leads runs through claim, offer, grant and finish, in batches as the
// product makes them, and keeps what the store sent for each call.
type lives struct {
	st   *gormstore.Store
	r    *recorder
	ids  *domain.IDSource
	seed *floorSeed
	p    floorPlan

	held   []domain.PartitionTerm
	steps  []step
	madeBy map[domain.ExecutionID]int // the step that moved a run last
}

// stream leads rounds of runs through all stages: enough at a time that every
// batch is full.
func (l *lives) stream(ctx context.Context) error {
	round := l.p.shape.round()
	for left := l.p.lives; left > 0; left -= round {
		claimed, err := l.claim(ctx, min(left, round))
		if err != nil {
			return err
		}
		if err := l.carry(ctx, claimed); err != nil {
			return err
		}
	}
	return nil
}

// ahead claims everything before the first offer.
func (l *lives) ahead(ctx context.Context) error {
	claimed, err := l.claim(ctx, l.p.lives)
	if err != nil {
		return err
	}
	last := len(l.steps) - 1
	for _, e := range claimed {
		l.madeBy[e.ID] = last
	}
	return l.carry(ctx, claimed)
}

func (l *lives) carry(ctx context.Context, claimed []domain.Execution) error {
	running, err := l.offer(ctx, claimed)
	if err != nil {
		return err
	}
	if l.p.handler != handlerIdempotent {
		if running, err = l.grant(ctx, running); err != nil {
			return err
		}
	}
	return l.finish(ctx, running)
}

// record keeps what call sent as one step that moves runs.
func (l *lives) record(stage string, call func() (moved []domain.Execution, err error), runs ...domain.Execution) ([]domain.Execution, error) {
	s := step{stage: stage}
	for _, e := range runs {
		s.after = append(s.after, l.madeBy[e.ID])
	}
	slices.Sort(s.after)
	s.after = slices.Compact(s.after)
	l.r.start()
	moved, err := call()
	s.ops, s.lives = l.r.take(), len(moved)
	if err != nil {
		return nil, err
	}
	if len(runs) > 0 && len(moved) != len(runs) {
		return nil, fmt.Errorf("%s moved %d of %d runs", stage, len(moved), len(runs))
	}
	for _, e := range moved {
		l.madeBy[e.ID] = len(l.steps)
	}
	l.steps = append(l.steps, s)
	return moved, nil
}

func (l *lives) claim(ctx context.Context, n int) ([]domain.Execution, error) {
	var out []domain.Execution
	for len(out) < n {
		claimed, err := l.record(stageClaim, func() ([]domain.Execution, error) {
			c, err := l.st.ClaimDueTriggers(ctx, store.ClaimDueTriggersParams{
				Partitions: l.held, Limit: min(l.p.shape.claim, n-len(out)), Plan: l.plan,
			})
			return c.Executions, err
		})
		if err != nil {
			return nil, err
		}
		if len(claimed) == 0 {
			return nil, fmt.Errorf("nothing is due after %d of %d claims", len(out), n)
		}
		out = append(out, claimed...)
	}
	return out, nil
}

// plan gives each claimed trigger one execution, as in the steady state of a
// job that fires once a second.
func (l *lives) plan(now time.Time, t domain.Trigger, spec *domain.JobSpec) store.TriggerPlan {
	e := domain.Execution{
		ID: domain.ExecutionID(l.ids.Next()), TenantID: t.TenantID, JobID: t.JobID, Revision: t.Revision, Executor: t.Executor,
		Partition: t.Partition, Cause: domain.CauseSchedule, FireAt: t.NextFireAt, State: domain.Due,
		MaxAttempts: spec.Retry.MaxAttempts, NotBefore: t.NextFireAt, PlannedAt: now, LogLines: -1,
		WakeAt: t.NextFireAt.Add(domain.PickupGrace), ExpireAt: now.Add(domain.DefaultDispatchTimeout),
	}
	return store.TriggerPlan{Executions: []domain.Execution{e}, NextFireAt: t.NextFireAt.Add(time.Second), LastFireAt: t.NextFireAt}
}

// offer cuts the runs as dispatch does: by worker, oldest first.
func (l *lives) offer(ctx context.Context, due []domain.Execution) ([]domain.Execution, error) {
	idempotent := l.p.handler == handlerIdempotent
	var queues [dispatch.OfferWorkers][]domain.Execution
	for _, e := range due {
		queues[e.Partition%len(queues)] = append(queues[e.Partition%len(queues)], e)
	}
	var chunks [][]domain.Execution
	for i := range queues {
		chunks = slices.AppendSeq(chunks, slices.Chunk(queues[i], l.p.shape.offer))
	}
	var out []domain.Execution
	for _, chunk := range chunks {
		moved, err := l.record(stageOffer, func() (moved []domain.Execution, err error) {
			offers := make([]store.Offer, len(chunk))
			for i, e := range chunk {
				offers[i] = store.Offer{
					Tenant: e.TenantID, ID: e.ID, Node: 1, Instance: l.seed.instance.ID, Idempotent: idempotent, Granted: idempotent,
				}
			}
			results, err := l.st.OfferExecutions(ctx, offers)
			for _, r := range results {
				if r.Status == store.OfferMade {
					moved = append(moved, r.Execution)
				}
			}
			return moved, err
		}, chunk...)
		if err != nil {
			return nil, err
		}
		out = append(out, moved...)
	}
	return out, nil
}

func (l *lives) grant(ctx context.Context, offered []domain.Execution) ([]domain.Execution, error) {
	var out []domain.Execution
	for chunk := range slices.Chunk(offered, l.p.shape.offer) {
		moved, err := l.record(stageGrant, func() (moved []domain.Execution, err error) {
			grants := make([]store.GrantRequest, len(chunk))
			for i, e := range chunk {
				grants[i] = store.GrantRequest{Tenant: e.TenantID, ID: e.ID, Fence: e.Fence, Instance: e.Instance}
			}
			results, err := l.st.GrantOffers(ctx, grants)
			for _, r := range results {
				if r.Granted {
					moved = append(moved, r.Execution)
				}
			}
			return moved, err
		}, chunk...)
		if err != nil {
			return nil, err
		}
		out = append(out, moved...)
	}
	return out, nil
}

func (l *lives) finish(ctx context.Context, running []domain.Execution) error {
	for chunk := range slices.Chunk(running, l.p.shape.finish) {
		_, err := l.record(stageFinish, func() (moved []domain.Execution, err error) {
			reports := make([]store.AttemptReport, len(chunk))
			for i, e := range chunk {
				reports[i] = store.AttemptReport{Tenant: e.TenantID, Executor: e.Executor, Report: domain.Report{
					ExecutionID: e.ID, Fence: e.Fence, Outcome: domain.OutcomeSucceeded,
					// Handlers start at different milliseconds.
					StartedAt: e.GrantedAt.Add(time.Duration(i%50) * time.Millisecond),
				}}
			}
			results, err := l.st.FinishAttempts(ctx, reports)
			for _, r := range results {
				if r.Code == store.FinishStored {
					moved = append(moved, r.Execution)
				}
			}
			return moved, err
		}, chunk...)
		if err != nil {
			return err
		}
	}
	return nil
}
