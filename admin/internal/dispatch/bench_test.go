package dispatch

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/runtable"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// instant answers at once: what is left is the cost of dispatch itself.
type instant struct {
	Store
	spec    *domain.JobSpec
	results []store.OfferResult
	recent  []domain.InstanceID
}

func (s *instant) JobSpec(context.Context, domain.TenantID, domain.JobID, int64) (*domain.JobSpec, error) {
	return s.spec, nil
}

func (s *instant) KnownSpec(domain.JobID, int64) *domain.JobSpec { return s.spec }

func (s *instant) LimitsOn(domain.TenantID, domain.ExecutorID) []domain.LimitKey { return nil }

func (s *instant) OfferExecutions(_ context.Context, offers []store.Offer) ([]store.OfferResult, error) {
	s.results = s.results[:0]
	for _, o := range offers {
		s.results = append(s.results, store.OfferResult{Status: store.OfferMade, Spec: s.spec, Execution: domain.Execution{ID: o.ID, Fence: 1}})
	}
	return s.results, nil
}

func (s *instant) RecentInstances(_ context.Context, p store.RecentInstancesParams) (map[domain.JobID][]domain.InstanceID, error) {
	out := map[domain.JobID][]domain.InstanceID{}
	for _, j := range p.Jobs {
		out[j.Job] = s.recent
	}
	return out, nil
}

// benchTarget always has room for more than a batch.
type benchTarget struct {
	id     domain.InstanceID
	traits Traits
}

func (t *benchTarget) InstanceID() domain.InstanceID                    { return t.id }
func (t *benchTarget) Traits() Traits                                   { return t.traits }
func (t *benchTarget) Load() Load                                       { return Load{Slots: int(t.id) % 7 * 100, CPU: 30} }
func (t *benchTarget) Free() int                                        { return 2 * offerBatch }
func (t *benchTarget) Idempotent(string) bool                           { return false }
func (t *benchTarget) Weight(string) int                                { return 1 }
func (t *benchTarget) SendQueueFull() bool                              { return false }
func (t *benchTarget) Spare() int                                       { return 1 << 30 }
func (t *benchTarget) Reserve(domain.ExecutionID, int64, int, int) bool { return true }
func (t *benchTarget) Holds(domain.ExecutionID, int64) bool             { return false }
func (t *benchTarget) Release(domain.ExecutionID, int64)                {}
func (t *benchTarget) SendOffers([]store.OfferResult)                   {}
func (t *benchTarget) Drained() bool                                    { return false }
func (t *benchTarget) SendGrants([]Grant)                               {}
func (t *benchTarget) SendCancel(domain.Execution)                      {}

type benchFleet []Target

func (f benchFleet) Targets(domain.TenantID, domain.ExecutorID, string) []Target { return f }
func (f benchFleet) TargetOf(domain.InstanceID) Target                           { return nil }
func (f benchFleet) Room(domain.TenantID, domain.ExecutorID) (free, slots int)   { return len(f), len(f) }

// BenchmarkOffer is the way of a full batch through dispatch without a
// database: per run, for each strategy, with 3, 50 and 5,000 instances.
func BenchmarkOffer(b *testing.B) {
	for _, routing := range domain.Routings {
		for _, instances := range []int{3, 50, 5000} {
			b.Run(fmt.Sprintf("%s/%d", routing, instances), func(b *testing.B) { benchmarkOffer(b, routing, instances) })
		}
	}
}

func benchmarkOffer(b *testing.B, routing domain.Routing, instances int) {
	s := &instant{spec: &domain.JobSpec{Handler: "h", Routing: routing, Blocking: domain.BlockParallel}}
	var fleet benchFleet
	for i := range instances {
		fleet = append(fleet, &benchTarget{id: domain.InstanceID(1000 + i), traits: Traits{Name: fmt.Sprint("worker-", i)}})
	}
	for i := range domain.RoutingWindow {
		s.recent = append(s.recent, domain.InstanceID(1000+i%instances))
	}
	d := New(Options{Store: s, Fleet: fleet, Later: func(...domain.Execution) {}, OnTime: func(...domain.Execution) {}, Now: time.Now, Logger: slog.New(slog.DiscardHandler)})
	batch := make([]*domain.Execution, offerBatch)
	ctx := context.Background()
	round := func() {
		for i := range batch {
			batch[i] = &domain.Execution{ID: domain.ExecutionID(i + 1), JobID: domain.JobID(i + 1), TenantID: 1, Executor: 1, Cause: domain.CauseSchedule}
		}
		d.offer(ctx, d.due.enter(batch, nil)[0])
	}
	round()
	b.ReportAllocs()
	for b.Loop() {
		round()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/offerBatch, "ns/run")
}

// BenchmarkWaitQueues is an edge at which 10,000 runs of one line are due that
// wait for 512 slots: each waits once and is let go once.
func BenchmarkWaitQueues(b *testing.B) {
	const runs, slots = maxWaiting, 512
	due := time.Now()
	for b.Loop() {
		queues := newWaitQueues(new(runtable.Table))
		var l line
		for i := range runs {
			w := waitingRun(domain.ExecutionID(i+1), due, nil)
			l = w.line
			queues.add(w, false)
		}
		for left := runs; left > 0; {
			out, _ := queues.take(l, slots, 1<<30, due)
			left -= len(out)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*runs), "ns/run")
}
