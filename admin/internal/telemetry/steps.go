package telemetry

import (
	"context"
	"slices"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/hotset"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/tracing"
)

// Store is the part of the store that Steps counts and traces.
type Store interface {
	ClaimDueTriggers(ctx context.Context, p store.ClaimDueTriggersParams) (store.ClaimedTriggers, error)
	ClaimDueTimers(ctx context.Context, p store.ClaimDueTimersParams) (store.ClaimedTimers, error)
	SetTimers(ctx context.Context, p store.SetTimersParams) []store.SetTimerResult
	RescheduleTimer(ctx context.Context, p store.RescheduleTimerParams) (store.TimerView, error)
	CreateExecution(ctx context.Context, e domain.Execution) (run domain.Execution, created bool, err error)
	CreateBackfill(ctx context.Context, b domain.Backfill) (domain.Backfill, error)
	DriveBackfills(ctx context.Context, p store.DriveBackfillsParams) (store.DrivenBackfills, error)
	OfferExecutions(ctx context.Context, offers []store.Offer) ([]store.OfferResult, error)
	GrantOffers(ctx context.Context, grants []store.GrantRequest) ([]store.GrantResult, error)
	GiveBackOffers(ctx context.Context, items []store.GiveBack) ([]store.OfferResult, error)
	FinishAttempts(ctx context.Context, reports []store.AttemptReport) ([]store.FinishResult, error)
	AppendLogs(ctx context.Context, list []store.LogAppend) (dropped int, err error)
}

// StepsOptions configures Steps.
type StepsOptions struct {
	Store   Store
	Metrics *Metrics
	Tracer  *tracing.Tracer // nil: no traces
	Hot     *hotset.Set     // nil: there is none
	Now     func() time.Time
	// Missed is called when an event of missed runs is in the outbox.
	Missed func()
}

// Steps is the store as the rooms on a run's way get it. It sees the whole batch of a step
// and its outcome.
type Steps struct{ opt StepsOptions }

// NewSteps returns Steps.
func NewSteps(o StepsOptions) *Steps { return &Steps{o} }

// spans are those of triggers, by run. Those of a transaction that is repeated are never done.
type spans map[domain.ExecutionID]*tracing.Trigger

// done ends the spans of the runs that were written.
func (s spans) done(runs []domain.Execution) {
	for i := range runs {
		s[runs[i].ID].Done()
	}
}

// ClaimDueTriggers implements store.Triggers.
func (s *Steps) ClaimDueTriggers(ctx context.Context, p store.ClaimDueTriggersParams) (store.ClaimedTriggers, error) {
	begun := spans{}
	if s.opt.Tracer != nil {
		plan := p.Plan
		p.Plan = func(now time.Time, t domain.Trigger, spec *domain.JobSpec) store.TriggerPlan {
			out := plan(now, t, spec)
			for i := range out.Executions {
				if e := &out.Executions[i]; e.State == domain.Due {
					begun[e.ID] = s.opt.Tracer.Plan(e)
				}
			}
			return out
		}
	}
	out, err := s.opt.Store.ClaimDueTriggers(ctx, p)
	begun.done(out.Executions)
	if slices.ContainsFunc(out.Executions, func(e domain.Execution) bool { return domain.MissedUntold(&e) }) {
		s.opt.Missed()
	}
	return out, err
}

// ClaimDueTimers implements store.DueTimers.
func (s *Steps) ClaimDueTimers(ctx context.Context, p store.ClaimDueTimersParams) (store.ClaimedTimers, error) {
	begun := spans{}
	if s.opt.Tracer != nil {
		p.Begin = func(e *domain.Execution) { begun[e.ID] = s.opt.Tracer.Fire(e) }
	}
	if s.opt.Hot != nil {
		p.Hot = s.opt.Hot
	}
	out, err := s.opt.Store.ClaimDueTimers(ctx, p)
	begun.done(out.Executions)
	return out, err
}

// SetTimers implements store.Timers.
func (s *Steps) SetTimers(ctx context.Context, p store.SetTimersParams) []store.SetTimerResult {
	out := s.opt.Store.SetTimers(ctx, p)
	var set []*store.TimerView
	for i := range out {
		if out[i].Err == nil && out[i].Outcome != domain.TimerKept {
			set = append(set, &out[i].View)
		}
	}
	s.putHot(set...)
	return out
}

// RescheduleTimer implements store.TimerEdits.
func (s *Steps) RescheduleTimer(ctx context.Context, p store.RescheduleTimerParams) (store.TimerView, error) {
	v, err := s.opt.Store.RescheduleTimer(ctx, p)
	if err == nil {
		s.putHot(&v)
	}
	return v, err
}

// putHot tells the hot store of timers that were set or moved.
func (s *Steps) putHot(set ...*store.TimerView) {
	if s.opt.Hot == nil {
		return
	}
	s.opt.Hot.Put(domain.Collect(set, func(v **store.TimerView) store.HotTimer {
		return store.HotTimer{ID: (*v).ID, Tenant: (*v).TenantID, Partition: (*v).Partition, FireAt: (*v).FireAt}
	}))
}

// CreateExecution implements store.Executions.
func (s *Steps) CreateExecution(ctx context.Context, e domain.Execution) (run domain.Execution, created bool, err error) {
	begun := s.opt.Tracer.Ask(&e, s.opt.Now())
	run, created, err = s.opt.Store.CreateExecution(ctx, e)
	if err == nil && created {
		begun.Done()
	}
	return run, created, err
}

// CreateBackfill implements store.Backfills.
func (s *Steps) CreateBackfill(ctx context.Context, b domain.Backfill) (domain.Backfill, error) {
	begun := s.opt.Tracer.AskBackfill(&b)
	out, err := s.opt.Store.CreateBackfill(ctx, b)
	if err == nil {
		begun.Done()
	}
	return out, err
}

// DriveBackfills implements store.Backfills.
func (s *Steps) DriveBackfills(ctx context.Context, p store.DriveBackfillsParams) (store.DrivenBackfills, error) {
	begun := spans{}
	if s.opt.Tracer != nil {
		p.Begin = func(b *domain.Backfill, e *domain.Execution) { begun[e.ID] = s.opt.Tracer.Backfill(b, e) }
	}
	out, err := s.opt.Store.DriveBackfills(ctx, p)
	begun.done(out.Runs)
	return out, err
}

// OfferExecutions implements store.Executions.
func (s *Steps) OfferExecutions(ctx context.Context, offers []store.Offer) ([]store.OfferResult, error) {
	s.opt.Metrics.batch.WithLabelValues("offer_executions").Observe(float64(len(offers)))
	began := time.Now()
	out, err := s.opt.Store.OfferExecutions(ctx, offers)
	ended := time.Now()
	for i := range out {
		s.opt.Metrics.offers[out[i].Status].Inc()
		if out[i].Status == store.OfferMade {
			s.opt.Tracer.Step("offer", &out[i].Execution, began, ended)
		}
	}
	return out, err
}

// GrantOffers implements store.Executions.
func (s *Steps) GrantOffers(ctx context.Context, grants []store.GrantRequest) ([]store.GrantResult, error) {
	s.opt.Metrics.batch.WithLabelValues("grant_offers").Observe(float64(len(grants)))
	began := time.Now()
	out, err := s.opt.Store.GrantOffers(ctx, grants)
	ended := time.Now()
	for i := range out {
		if out[i].Granted {
			s.opt.Tracer.Step("grant", &out[i].Execution, began, ended)
		}
		s.opt.Metrics.grants[out[i].Granted].Inc()
	}
	return out, err
}

// GiveBackOffers implements store.Executions.
func (s *Steps) GiveBackOffers(ctx context.Context, items []store.GiveBack) ([]store.OfferResult, error) {
	s.opt.Metrics.batch.WithLabelValues("give_back_offers").Observe(float64(len(items)))
	out, err := s.opt.Store.GiveBackOffers(ctx, items)
	for i := range out {
		if out[i].Status == store.OfferGone {
			continue
		}
		if c := s.opt.Metrics.givenBack[items[i].Reason]; c != nil {
			c.Inc()
		} else {
			s.opt.Metrics.givenBackFor.Inc()
		}
	}
	return out, err
}

// FinishAttempts implements store.Executions.
func (s *Steps) FinishAttempts(ctx context.Context, reports []store.AttemptReport) ([]store.FinishResult, error) {
	s.opt.Metrics.batch.WithLabelValues("finish_attempts").Observe(float64(len(reports)))
	began := time.Now()
	out, err := s.opt.Store.FinishAttempts(ctx, reports)
	ended := time.Now()
	for i := range out {
		if out[i].Code == store.FinishStored {
			s.opt.Tracer.Step("result", &out[i].Execution, began, ended)
		}
		if c := s.opt.Metrics.results[resultKey{reports[i].Report.Outcome, out[i].Code}]; c != nil {
			c.Inc()
		}
	}
	return out, err
}

// AppendLogs implements store.Logs.
func (s *Steps) AppendLogs(ctx context.Context, list []store.LogAppend) (int, error) {
	dropped, err := s.opt.Store.AppendLogs(ctx, list)
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
	s.opt.Metrics.logChunks.WithLabelValues("dropped").Add(float64(dropped))
	s.opt.Metrics.logChunks.WithLabelValues("stored").Add(float64(max(0, chunks-dropped)))
	s.opt.Metrics.logBytes.Add(float64(bytes))
	return dropped, nil
}
