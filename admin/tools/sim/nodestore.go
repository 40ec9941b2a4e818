package sim

import (
	"context"
	"fmt"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/run"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// nodeStore is a node's way to the database: each method is a transaction that
// takes its time, and may fail or end unknown. What the engine never asks for
// is not there.
type nodeStore struct {
	store.Engine
	n     *node
	known limitsKnown
	// maintenance is what the node has read of it.
	maintenance maintenanceKnown
}

// ask is one transaction whose answer is a value.
func ask[T any](n *node, name string, limit time.Duration, do func(d *database) (T, error)) (T, error) {
	var out, none T
	var refused error
	err := n.call(name, limit, func() {
		n.w.db.caller = n.store
		out, refused = do(n.w.db)
		n.w.db.caller = nil
	})
	if err == nil {
		err = refused
	}
	if err != nil {
		return none, err
	}
	return out, nil
}

func plain[T any](n *node, name string, do func(d *database) T) (T, error) {
	return ask(n, name, anyCall, func(d *database) (T, error) { return do(d), nil })
}

func (s *nodeStore) Now(context.Context) (time.Time, error) {
	return plain(s.n, "now", func(d *database) time.Time { return d.clock() })
}

func (s *nodeStore) ClaimDueTriggers(_ context.Context, p store.ClaimDueTriggersParams) (store.ClaimedTriggers, error) {
	return ask(s.n, "claim", anyCall, func(d *database) (store.ClaimedTriggers, error) {
		s.n.w.claimer = s.n
		return d.claim(p)
	})
}

// JobSpec is answered by a cache.
func (s *nodeStore) JobSpec(_ context.Context, _ domain.TenantID, id domain.JobID, revision int64) (*domain.JobSpec, error) {
	return s.n.w.db.jobs[id].specs[revision-1], nil
}

func (s *nodeStore) OfferExecutions(_ context.Context, offers []store.Offer) ([]store.OfferResult, error) {
	return plain(s.n, "offer", func(d *database) []store.OfferResult { return d.offer(s.limits(), offers) })
}

func (s *nodeStore) SpreadExecutions(_ context.Context, spreads []store.Spread) ([]store.SpreadResult, error) {
	return plain(s.n, "spread", func(d *database) []store.SpreadResult { return d.spread(spreads) })
}

func (s *nodeStore) CancelParts(_ context.Context, parents []domain.Execution) (store.CancelledParts, error) {
	return plain(s.n, "cancel parts", func(d *database) store.CancelledParts { return d.cancelParts(parents) })
}

func (s *nodeStore) RecentInstances(_ context.Context, p store.RecentInstancesParams) (map[domain.JobID][]domain.InstanceID, error) {
	return plain(s.n, "recent instances", func(d *database) map[domain.JobID][]domain.InstanceID { return d.recent(p) })
}

func (s *nodeStore) GrantOffers(_ context.Context, grants []store.GrantRequest) ([]store.GrantResult, error) {
	return plain(s.n, "grant", func(d *database) []store.GrantResult { return d.grant(grants) })
}

func (s *nodeStore) SettleInventories(_ context.Context, list []store.SettleInventoryParams) []store.SettledInventory {
	out := make([]store.SettledInventory, len(list))
	_, err := ask(s.n, "settle", settleCall, func(d *database) (bool, error) {
		for i, p := range list {
			out[i].Items = d.settle(p)
		}
		return true, nil
	})
	if err != nil {
		for i := range out {
			out[i] = store.SettledInventory{Err: err}
		}
	}
	return out
}

func (s *nodeStore) GiveBackOffers(_ context.Context, items []store.GiveBack) ([]store.OfferResult, error) {
	if len(items) == 0 {
		return nil, nil
	}
	return plain(s.n, "give back", func(d *database) []store.OfferResult { return d.giveBack(items) })
}

// SetAside is asked for what panicked, which is a fault that a run of the
// simulator is to end with.
func (s *nodeStore) SetAside(_ context.Context, bad map[domain.ExecutionID]error) error {
	panic(fmt.Sprintf("set aside: %v", bad))
}

func (s *nodeStore) RecordWaits(_ context.Context, waits []store.Wait) ([]domain.Execution, error) {
	return plain(s.n, "wait", func(d *database) []domain.Execution { return d.wait(s.limits(), waits) })
}

func (s *nodeStore) StillDue(_ context.Context, ids []domain.ExecutionID) (map[domain.ExecutionID]int64, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	return plain(s.n, "still due", func(d *database) map[domain.ExecutionID]int64 { return d.stillDue(ids) })
}

func (s *nodeStore) WaitingLines(_ context.Context, after int64, limit int) ([]store.WaitingLine, error) {
	return plain(s.n, "waiting lines", func(d *database) []store.WaitingLine { return d.waitingLines(after, limit) })
}

func (s *nodeStore) ListWaiting(_ context.Context, p store.ListWaitingParams) ([]domain.Execution, error) {
	return plain(s.n, "list waiting", func(d *database) []domain.Execution { return d.listWaiting(p) })
}

// ListWaitingJobs names no jobs: alerts of outages are not simulated by job.
func (s *nodeStore) ListWaitingJobs(context.Context, domain.TenantID, domain.ExecutorID) ([]store.WaitingJob, error) {
	return nil, nil
}

func (s *nodeStore) KnownSpec(id domain.JobID, revision int64) *domain.JobSpec {
	return s.n.w.db.jobs[id].specs[revision-1]
}

func (s *nodeStore) RecordStarts(_ context.Context, starts []store.Start) error {
	return s.n.call("start", anyCall, func() { s.n.w.db.start(starts) })
}

func (s *nodeStore) FinishAttempts(_ context.Context, reports []store.AttemptReport) ([]store.FinishResult, error) {
	return plain(s.n, "finish", func(d *database) []store.FinishResult { return d.finish(s.limits(), reports) })
}

func (s *nodeStore) SweepExecutions(_ context.Context, p store.SweepParams) (store.Swept, error) {
	return ask(s.n, "sweep", anyCall, func(d *database) (store.Swept, error) { return d.sweep(p) })
}

func (s *nodeStore) ExpireInstances(_ context.Context, _ int, latest func() time.Time) ([]domain.Instance, error) {
	return ask(s.n, "expire", anyCall, func(d *database) ([]domain.Instance, error) {
		return nil, d.expire(s.n.w.instanceOrder, latest)
	})
}

func (s *nodeStore) CountOnline(context.Context, domain.TenantID, domain.ExecutorID) (int, error) {
	return plain(s.n, "count online", func(d *database) int { return d.online(s.n.w.instanceOrder) })
}

func (s *nodeStore) RecordAlerts(_ context.Context, events []domain.AlertEvent) error {
	return s.n.call("record alerts", anyCall, func() { s.n.w.db.recordAlerts(events) })
}

func (s *nodeStore) RearmDelays(context.Context, int) (int, error) {
	return plain(s.n, "rearm", func(d *database) int { return d.rearmDelays() })
}

func (s *nodeStore) LimitsOn(_ domain.TenantID, executor domain.ExecutorID) []domain.LimitKey {
	return run.LimitsOn(s.known.keys, tenant, executor)
}

func (s *nodeStore) AdmitWaiting(_ context.Context, keys []domain.LimitKey) ([]domain.Execution, error) {
	return plain(s.n, "admit", func(d *database) []domain.Execution { return d.admit(keys) })
}

// limits is what the node knows of the limits, read again when it is old.
func (s *nodeStore) limits() *limitsKnown {
	if w := s.n.w; w.now >= s.known.until {
		s.known = limitsKnown{keys: w.db.limitKeys(), until: w.now + run.LimitsFor}
	}
	return &s.known
}

func (s *nodeStore) ReadPartitions(context.Context) (domain.PartitionTable, error) {
	return ask(s.n, "look", leaseCall, func(d *database) (domain.PartitionTable, error) { return d.table(), nil })
}

func (s *nodeStore) RenewPartitions(_ context.Context, p store.RenewPartitionsParams) (domain.PartitionTable, error) {
	p.Wall = s.n.wall() // the keeper reads the runtime's
	return ask(s.n, "renew", leaseCall, func(d *database) (domain.PartitionTable, error) { return d.renew(p), nil })
}

func (s *nodeStore) AcquirePartitions(_ context.Context, p store.AcquirePartitionsParams) ([]domain.PartitionLease, error) {
	return ask(s.n, "acquire", leaseCall, func(d *database) ([]domain.PartitionLease, error) { return d.acquire(p), nil })
}

func (s *nodeStore) ReleasePartitions(_ context.Context, p store.ReleasePartitionsParams) ([]domain.PartitionTerm, error) {
	return ask(s.n, "release", leaseCall, func(d *database) ([]domain.PartitionTerm, error) { return d.release(p), nil })
}

func (s *nodeStore) ListPlanned(_ context.Context, p store.ListPlannedParams) ([]domain.Execution, error) {
	return plain(s.n, "adopt", func(d *database) []domain.Execution { return d.planned(p) })
}
