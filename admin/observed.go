package admin

import (
	"context"
	"slices"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/hotset"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore"
	"github.com/carillon-sched/carillon/admin/internal/tracing"
)

// observed is the store as the rooms on a run's way get it: what passes through
// is counted here, where a step's whole batch and its outcome are seen, and no
// room has to know.
type observed struct {
	*gormstore.Store
	metrics *metrics
	tracer  *tracing.Tracer // nil: no traces
	hot     *hotset.Set     // nil: there is none
	now     func() time.Time
	missed  func() // an event of runs that were missed is in the outbox
}

func (a *Admin) observed() observed {
	return observed{a.store, a.metrics, a.tracer, a.hot, a.clock.Now, func() { a.alerting.Nudge() }}
}

// ClaimDueTriggers implements store.Triggers.
func (o observed) ClaimDueTriggers(ctx context.Context, p store.ClaimDueTriggersParams) (store.ClaimedTriggers, error) {
	out, err := o.tracedClaim(ctx, p)
	if slices.ContainsFunc(out.Executions, func(e domain.Execution) bool { return e.MissedUntold() }) {
		o.missed()
	}
	return out, err
}

func (o observed) tracedClaim(ctx context.Context, p store.ClaimDueTriggersParams) (store.ClaimedTriggers, error) {
	if o.tracer == nil {
		return o.Store.ClaimDueTriggers(ctx, p)
	}
	begun := map[domain.ExecutionID]*tracing.Trigger{} // of a transaction that is repeated, the first ones are never done
	plan := p.Plan
	p.Plan = func(now time.Time, t domain.Trigger, spec *domain.JobSpec) store.TriggerPlan {
		out := plan(now, t, spec)
		for i := range out.Executions {
			if e := &out.Executions[i]; e.State == domain.Due {
				begun[e.ID] = o.tracer.Plan(e)
			}
		}
		return out
	}
	out, err := o.Store.ClaimDueTriggers(ctx, p)
	for i := range out.Executions {
		begun[out.Executions[i].ID].Done()
	}
	return out, err
}

// ClaimDueTimers implements store.DueTimers.
func (o observed) ClaimDueTimers(ctx context.Context, p store.ClaimDueTimersParams) (store.ClaimedTimers, error) {
	begun := map[domain.ExecutionID]*tracing.Trigger{}
	if o.tracer != nil {
		p.Begin = func(e *domain.Execution) { begun[e.ID] = o.tracer.Fire(e) }
	}
	if o.hot != nil {
		p.Hot = o.hot
	}
	out, err := o.Store.ClaimDueTimers(ctx, p)
	for i := range out.Executions {
		begun[out.Executions[i].ID].Done()
	}
	return out, err
}

// SetTimers implements store.Timers.
func (o observed) SetTimers(ctx context.Context, p store.SetTimersParams) []store.SetTimerResult {
	out := o.Store.SetTimers(ctx, p)
	var set []*store.TimerView
	for i := range out {
		if out[i].Err == nil && out[i].Outcome != domain.TimerKept {
			set = append(set, &out[i].View)
		}
	}
	o.putHot(set...)
	return out
}

// RescheduleTimer implements store.TimerEdits.
func (o observed) RescheduleTimer(ctx context.Context, p store.RescheduleTimerParams) (store.TimerView, error) {
	v, err := o.Store.RescheduleTimer(ctx, p)
	if err == nil {
		o.putHot(&v)
	}
	return v, err
}

// putHot tells the hot store of timers that were set or moved.
func (o observed) putHot(set ...*store.TimerView) {
	if o.hot == nil {
		return
	}
	o.hot.Put(domain.Collect(set, func(v **store.TimerView) store.HotTimer {
		return store.HotTimer{ID: (*v).ID, Tenant: (*v).TenantID, Partition: (*v).Partition, FireAt: (*v).FireAt}
	}))
}

// CreateExecution implements store.Executions.
func (o observed) CreateExecution(ctx context.Context, e domain.Execution) (run domain.Execution, created bool, err error) {
	begun := o.tracer.Ask(&e, o.now())
	run, created, err = o.Store.CreateExecution(ctx, e)
	if err == nil && created {
		begun.Done()
	}
	return run, created, err
}

// CreateBackfill implements store.Backfills.
func (o observed) CreateBackfill(ctx context.Context, b domain.Backfill) (domain.Backfill, error) {
	begun := o.tracer.AskBackfill(&b)
	out, err := o.Store.CreateBackfill(ctx, b)
	if err == nil {
		begun.Done()
	}
	return out, err
}

// DriveBackfills implements store.Backfills.
func (o observed) DriveBackfills(ctx context.Context, p store.DriveBackfillsParams) (store.DrivenBackfills, error) {
	begun := map[domain.ExecutionID]*tracing.Trigger{}
	if o.tracer != nil {
		p.Begin = func(b *domain.Backfill, e *domain.Execution) { begun[e.ID] = o.tracer.Backfill(b, e) }
	}
	out, err := o.Store.DriveBackfills(ctx, p)
	for i := range out.Runs {
		begun[out.Runs[i].ID].Done()
	}
	return out, err
}

// OfferExecutions implements store.Executions.
func (o observed) OfferExecutions(ctx context.Context, offers []store.Offer) ([]store.OfferResult, error) {
	o.metrics.batch.WithLabelValues("offer_executions").Observe(float64(len(offers)))
	began := time.Now()
	out, err := o.Store.OfferExecutions(ctx, offers)
	ended := time.Now()
	for i := range out {
		o.metrics.offers[out[i].Status].Inc()
		if out[i].Status == store.OfferMade {
			o.tracer.Step("offer", &out[i].Execution, began, ended)
		}
	}
	return out, err
}

// GrantOffers implements store.Executions.
func (o observed) GrantOffers(ctx context.Context, grants []store.GrantRequest) ([]store.GrantResult, error) {
	o.metrics.batch.WithLabelValues("grant_offers").Observe(float64(len(grants)))
	began := time.Now()
	out, err := o.Store.GrantOffers(ctx, grants)
	ended := time.Now()
	for i := range out {
		if out[i].Granted {
			o.tracer.Step("grant", &out[i].Execution, began, ended)
		}
		o.metrics.grants[out[i].Granted].Inc()
	}
	return out, err
}

// GiveBackOffers implements store.Executions.
func (o observed) GiveBackOffers(ctx context.Context, items []store.GiveBack) ([]store.OfferResult, error) {
	o.metrics.batch.WithLabelValues("give_back_offers").Observe(float64(len(items)))
	out, err := o.Store.GiveBackOffers(ctx, items)
	for i := range out {
		if out[i].Status == store.OfferGone {
			continue
		}
		if c := o.metrics.givenBack[items[i].Reason]; c != nil {
			c.Inc()
		} else {
			o.metrics.givenBackFor.Inc()
		}
	}
	return out, err
}

// FinishAttempts implements store.Executions.
func (o observed) FinishAttempts(ctx context.Context, reports []store.AttemptReport) ([]store.FinishResult, error) {
	o.metrics.batch.WithLabelValues("finish_attempts").Observe(float64(len(reports)))
	began := time.Now()
	out, err := o.Store.FinishAttempts(ctx, reports)
	ended := time.Now()
	for i := range out {
		if out[i].Code == store.FinishStored {
			o.tracer.Step("result", &out[i].Execution, began, ended)
		}
		if c := o.metrics.results[resultKey{reports[i].Report.Outcome, out[i].Code}]; c != nil {
			c.Inc()
		}
	}
	return out, err
}

// AppendLogs implements store.Logs.
func (o observed) AppendLogs(ctx context.Context, list []store.LogAppend) (int, error) {
	dropped, err := o.Store.AppendLogs(ctx, list)
	if err != nil {
		return dropped, err
	}
	chunks, bytes := 0, 0
	for i := range list {
		chunks += len(list[i].Chunks)
		for j := range list[i].Chunks {
			lines := list[i].Chunks[j].Lines
			for k := range lines {
				bytes += len(lines[k].Message) + len(lines[k].Attrs)
			}
		}
	}
	o.metrics.logChunks.WithLabelValues("dropped").Add(float64(dropped))
	o.metrics.logChunks.WithLabelValues("stored").Add(float64(max(0, chunks-dropped)))
	o.metrics.logBytes.Add(float64(bytes))
	return dropped, nil
}
