package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// holder is a node as the leases see it.
type holder struct {
	t    *testing.T
	s    Store
	node domain.Node
}

const holderTTL = time.Minute

func newHolder(t *testing.T, s Store, name string) *holder {
	t.Helper()
	node, err := s.RegisterNode(t.Context(), domain.Node{BootID: name, Name: name}, time.Minute)
	require.NoError(t, err)
	return &holder{t, s, node}
}

func (h *holder) renew(held ...domain.PartitionTerm) domain.PartitionTable {
	h.t.Helper()
	table, err := h.s.RenewPartitions(h.t.Context(), store.RenewPartitionsParams{
		Node: h.node.ID, BootID: h.node.BootID, Held: held, TTL: holderTTL, Wall: time.Now().Add(7 * time.Second),
	})
	require.NoError(h.t, err)
	return table
}

func (h *holder) acquire(ttl time.Duration, want ...domain.PartitionTerm) []domain.PartitionTerm {
	h.t.Helper()
	got, err := h.s.AcquirePartitions(h.t.Context(), store.AcquirePartitionsParams{
		Node: h.node.ID, BootID: h.node.BootID, Want: want, TTL: ttl,
	})
	require.NoError(h.t, err)
	for _, l := range got {
		require.Equal(h.t, h.node.ID, l.Node)
		require.Equal(h.t, h.node.BootID, l.BootID)
	}
	return TermsOf(got)
}

func (h *holder) release(leaving bool, held ...domain.PartitionTerm) []domain.PartitionTerm {
	h.t.Helper()
	ended, err := h.s.ReleasePartitions(h.t.Context(), store.ReleasePartitionsParams{BootID: h.node.BootID, Held: held, Leaving: leaving})
	require.NoError(h.t, err)
	return ended
}

func read(t *testing.T, s Store) domain.PartitionTable {
	t.Helper()
	table, err := s.ReadPartitions(t.Context())
	require.NoError(t, err)
	require.Len(t, table.Leases, domain.Partitions)
	for p, l := range table.Leases {
		require.Equal(t, p, l.Partition)
	}
	return table
}

func pt(partition int, term int64) domain.PartitionTerm {
	return domain.PartitionTerm{Partition: partition, Term: term}
}

func testPartitionLeases(t *testing.T, s Store) {
	one, two := newHolder(t, s, "one"), newHolder(t, s, "two")
	for _, l := range read(t, s).Leases {
		require.Equal(t, domain.PartitionLease{PartitionTerm: pt(l.Partition, 0)}, l, "nobody holds anything")
	}
	require.Empty(t, one.acquire(holderTTL))

	// A free one goes to who asks first, with the next term.
	held := one.acquire(holderTTL, pt(3, 0), pt(63, 0))
	require.Equal(t, []domain.PartitionTerm{pt(3, 1), pt(63, 1)}, held)
	require.Empty(t, two.acquire(holderTTL, pt(3, 0)), "seen before it was taken")
	require.Empty(t, two.acquire(holderTTL, pt(3, 1)), "its lease lasts")
	require.Equal(t, []domain.PartitionTerm{pt(4, 1)}, two.acquire(holderTTL, pt(3, 1), pt(4, 0)))
	l := read(t, s).Leases[63]
	require.Equal(t, one.node.BootID, l.BootID)
	require.WithinDuration(t, time.Now().Add(holderTTL), l.Until, 10*time.Second)

	// Only the holder of the highest term renews, and only what it names.
	before := read(t, s)
	nextTick(t, s)
	table := one.renew(pt(3, 1), pt(63, 0), pt(4, 9))
	require.True(t, table.Leases[3].Until.After(before.Leases[3].Until))
	require.Equal(t, before.Leases[63], table.Leases[63])
	require.Equal(t, before.Leases[4], table.Leases[4])

	// Nor does anybody else release it.
	require.Empty(t, two.release(false, pt(3, 1), pt(63, 1)))
	require.Equal(t, []domain.PartitionTerm{pt(63, 1)}, one.release(false, pt(3, 7), pt(63, 1)))
	l = read(t, s).Leases[63]
	require.True(t, l.Until.IsZero())
	require.Equal(t, one.node.BootID, l.BootID, "one who lives still fires what it planned")
	require.Equal(t, []domain.PartitionTerm{pt(63, 2)}, two.acquire(holderTTL, pt(63, 1)))

	// A lease that has run out may be renewed until somebody takes it.
	short := one.acquire(time.Millisecond, pt(10, 0), pt(11, 0))
	untilOver(t, s, 10, 11)
	require.Equal(t, []domain.PartitionTerm{pt(11, 2)}, two.acquire(holderTTL, pt(11, 1)))
	table = one.renew(short...)
	require.True(t, table.Leases[10].Until.After(table.Now))
	require.Equal(t, two.node.BootID, table.Leases[11].BootID)

	// One that lasts longer than any may is left from before the clock was set back.
	one.acquire(100*holderTTL, pt(20, 0))
	require.Equal(t, []domain.PartitionTerm{pt(20, 2)}, two.acquire(holderTTL, pt(20, 1)))

	// Who leaves is named nowhere.
	require.Equal(t, []domain.PartitionTerm{pt(3, 1), pt(10, 1)}, one.release(true, pt(3, 1), pt(10, 1)))
	l = read(t, s).Leases[3]
	require.Equal(t, domain.PartitionLease{PartitionTerm: pt(3, 1)}, l)
}

func testPartitionNodes(t *testing.T, s Store) {
	one, two := newHolder(t, s, "one"), newHolder(t, s, "two")
	find := func(table domain.PartitionTable, h *holder) *domain.NodeStatus {
		for i := range table.Nodes {
			if table.Nodes[i].BootID == h.node.BootID {
				return &table.Nodes[i]
			}
		}
		return nil
	}
	require.True(t, find(read(t, s), one).RenewedAt.IsZero())
	for range 2 { // the first writes the row, the second changes it
		table := one.renew()
		require.WithinDuration(t, table.Now, find(table, one).RenewedAt, time.Second)
		require.WithinDuration(t, table.Now.Add(7*time.Second), table.Now.Add(find(table, one).ClockSkew), 2*time.Second)
		require.True(t, find(table, one).Connected)
		require.Equal(t, "one", find(table, one).Name)
	}
	require.NotNil(t, find(read(t, s), two))
	require.True(t, read(t, s).ClockConfirmedAt.IsZero())
	for range 2 {
		confirmed, err := s.ConfirmClock(t.Context())
		require.NoError(t, err)
		require.Equal(t, confirmed, read(t, s).ClockConfirmedAt)
		nextTick(t, s)
	}
	one.release(true)
	require.True(t, find(read(t, s), one).RenewedAt.IsZero(), "it has no share any more")
	require.NoError(t, s.RemoveNode(t.Context(), two.node.ID, two.node.BootID))
	require.Nil(t, find(read(t, s), two))
}

// Two nodes that want the same at the same time get each partition once.
func testPartitionRace(t *testing.T, s Store) {
	nodes := []*holder{newHolder(t, s, "one"), newHolder(t, s, "two")}
	for round := range 10 {
		var want []domain.PartitionTerm
		for _, l := range read(t, s).Leases {
			want = append(want, l.PartitionTerm)
		}
		got := make([][]domain.PartitionLease, 2)
		race(2, func(i int) {
			var err error
			got[i], err = s.AcquirePartitions(context.Background(), store.AcquirePartitionsParams{
				Node: nodes[i].node.ID, BootID: nodes[i].node.BootID, Want: want, TTL: holderTTL,
			})
			if err != nil {
				t.Errorf("acquire: %v", err)
			}
		})
		var taken [domain.Partitions]string
		for i, list := range got {
			for _, l := range list {
				require.EqualValues(t, round+1, l.Term)
				require.Empty(t, taken[l.Partition], "partition %d", l.Partition)
				taken[l.Partition] = nodes[i].node.BootID
			}
		}
		for p, l := range read(t, s).Leases {
			require.Equal(t, taken[p], l.BootID)
		}
		for i, list := range got {
			require.Len(t, nodes[i].release(true, TermsOf(list)...), len(list))
		}
	}
}

// testClaimFence: a claim plans nothing unless all its terms are the highest
// and their leases last, whatever has become of them since it began.
func testClaimFence(t *testing.T, f *fixture) {
	j := f.jobFiring(f.now(), nil)
	p := j.Partition
	claim := func(term int64) ([]domain.Execution, error) {
		got, err := f.s.ClaimDueTriggers(f.ctx, store.ClaimDueTriggersParams{
			Partitions: []domain.PartitionTerm{pt(p, term)}, Limit: 10,
			Plan: func(now time.Time, tr domain.Trigger, _ *domain.JobSpec) store.TriggerPlan {
				return store.TriggerPlan{
					Executions: []domain.Execution{planned(&domain.Job{ID: tr.JobID, TenantID: tr.TenantID, Revision: tr.Revision}, tr.NextFireAt, now)},
					NextFireAt: domain.Never, LastFireAt: tr.NextFireAt,
				}
			},
		})
		return f.mine(got.Executions), err
	}
	untouched := func() {
		t.Helper()
		view, err := f.s.FindJob(f.ctx, f.tenant, j.ID)
		f.ok(err)
		require.False(t, view.NextFireAt.After(f.now()), "it is still due")
		runs, err := f.s.ListExecutions(f.ctx, store.ListExecutionsParams{Tenant: f.tenant, Limit: 10})
		f.ok(err)
		require.Empty(t, runs)
	}
	one, two := newHolder(t, f.s, "one"+f.tenant.String()), newHolder(t, f.s, "two"+f.tenant.String())

	_, err := claim(0)
	f.code(domain.CodeStaleTerm, err)
	first := one.acquire(time.Millisecond, pt(p, 0))
	require.Len(t, first, 1)
	untilOver(t, f.s, p)
	_, err = claim(1)
	f.code(domain.CodeStaleTerm, err)
	untouched()

	one.renew(first...)
	require.Equal(t, first, one.release(false, first...))
	second := two.acquire(holderTTL, first...)
	require.Len(t, second, 1)
	_, err = claim(1)
	f.code(domain.CodeStaleTerm, err)
	untouched()

	got, err := claim(2)
	f.ok(err)
	require.Len(t, got, 1)
}

// testDoubtedClock: what the caller does not believe of the clock decides nothing.
func testDoubtedClock(t *testing.T, f *fixture) {
	j := f.jobFiring(f.now(), nil)
	e := f.run(f.job(nil))
	f.age(e, time.Hour)
	dead := f.register("dead", -time.Minute)
	at := f.now().Add(-time.Minute)
	latest := func() time.Time { return at }
	_, err := f.s.ClaimDueTriggers(f.ctx, store.ClaimDueTriggersParams{Partitions: f.held, Limit: 1000, Latest: latest, Plan: nothing})
	f.code(domain.CodeClockJump, err)
	_, err = f.s.SweepExecutions(f.ctx, store.SweepParams{Partitions: allPartitions, Limit: 1000, Latest: latest})
	f.code(domain.CodeClockJump, err)
	_, err = f.s.ExpireInstances(f.ctx, 1000, latest)
	f.code(domain.CodeClockJump, err)
	require.Equal(t, domain.Due, f.find(e).State)
	view, err := f.s.FindJob(f.ctx, f.tenant, j.ID)
	f.ok(err)
	require.True(t, view.NextFireAt.Before(domain.Never))

	at = f.now().Add(time.Minute)
	require.Contains(t, f.expire(latest), dead.ID)
	claimed, err := f.s.ClaimDueTriggers(f.ctx, store.ClaimDueTriggersParams{Partitions: f.held, Limit: 1000, Latest: latest, Plan: nothing})
	f.ok(err)
	require.Positive(t, claimed.Triggers)
	_, err = f.s.SweepExecutions(f.ctx, store.SweepParams{Partitions: allPartitions, Limit: 1000, Latest: latest})
	f.ok(err)
	require.Equal(t, domain.Missed, f.find(e).State)
}

// testListPlanned: what a dead node has planned, and nothing else.
func testListPlanned(t *testing.T, f *fixture) {
	now := f.now()
	j := f.job(nil)
	soon, later := f.runAt(j, now.Add(2*time.Second)), f.runAt(j, now.Add(time.Hour))
	offered, waits := f.run(j), f.run(j)
	f.offer(store.OfferMade, offered)
	f.wait([]store.Wait{{Tenant: f.tenant, ID: waits.ID, Reason: domain.ReasonWaitSlot, For: time.Second}})
	list := func(p store.ListPlannedParams) []domain.Execution {
		t.Helper()
		got, err := f.s.ListPlanned(f.ctx, p)
		f.ok(err)
		return f.mine(got)
	}
	got := list(store.ListPlannedParams{Partitions: []int{j.Partition}, Horizon: 3 * time.Second, Limit: 1000})
	require.Equal(t, []domain.ExecutionID{soon.ID}, identify(got))
	require.Equal(t, f.find(soon), got[0])
	require.NotEqual(t, soon.ID, later.ID)
	got = list(store.ListPlannedParams{Partitions: []int{j.Partition}, Horizon: 3 * time.Second, Limit: 1000, OfferedBy: []domain.NodeID{7, 1}})
	require.ElementsMatch(t, []domain.ExecutionID{soon.ID, offered.ID}, identify(got), "node 1 offered it")
	got = list(store.ListPlannedParams{Partitions: []int{j.Partition}, Horizon: 3 * time.Second, Limit: 1000, OfferedBy: []domain.NodeID{2}})
	require.Equal(t, []domain.ExecutionID{soon.ID}, identify(got))

	back, oneStep, started := f.offer(store.OfferMade, f.run(j)), f.oneStep(f.run(j)), f.oneStep(f.run(j))
	f.ok(f.s.RecordStarts(f.ctx, []store.Start{{Tenant: f.tenant, ID: started.ID, Fence: started.Fence, Instance: started.Instance, StartedAt: f.now()}}))
	_, err := f.s.GiveBackOffers(f.ctx, []store.GiveBack{{Tenant: f.tenant, ID: back.ID, Fence: back.Fence, Instance: back.Instance, Reason: domain.ReasonSessionLost}})
	f.ok(err)
	got = list(store.ListPlannedParams{Partitions: []int{j.Partition}, Horizon: 3 * time.Second, Limit: 1000})
	require.ElementsMatch(t, []domain.ExecutionID{soon.ID, back.ID}, identify(got), "it is due again")
	got = list(store.ListPlannedParams{Partitions: []int{j.Partition}, Horizon: 3 * time.Second, Limit: 1000, OfferedBy: []domain.NodeID{1, 3}})
	require.ElementsMatch(t, []domain.ExecutionID{soon.ID, back.ID, offered.ID, oneStep.ID}, identify(got), "what has started had its offer")
	got = list(store.ListPlannedParams{OffersOnly: []int{j.Partition}, Horizon: 3 * time.Second, Limit: 1000, OfferedBy: []domain.NodeID{1, 3}})
	require.ElementsMatch(t, []domain.ExecutionID{offered.ID, oneStep.ID}, identify(got), "what is planned is somebody else's")
	require.Empty(t, list(store.ListPlannedParams{OffersOnly: []int{j.Partition}, Horizon: 3 * time.Second, Limit: 1000}), "nobody is dead")
	require.Empty(t, list(store.ListPlannedParams{Partitions: []int{(j.Partition + 1) % domain.Partitions}, Horizon: time.Hour, Limit: 1000}))
	require.Empty(t, list(store.ListPlannedParams{}))
}

func nextTick(t *testing.T, s Store) {
	t.Helper()
	(&fixture{t: t, ctx: t.Context(), s: s}).tick()
}

// untilOver returns when the leases have run out.
func untilOver(t *testing.T, s Store, partitions ...int) {
	t.Helper()
	for {
		over, table := true, read(t, s)
		for _, p := range partitions {
			over = over && !table.Leases[p].Until.After(table.Now)
		}
		if over {
			return
		}
	}
}
